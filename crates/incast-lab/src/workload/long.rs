//! Long flows: a few pairs of hosts that send for the whole run.

use super::{
    Expected, Generate,
    streams::{Purpose, draw_to_front, stream},
};
use incast_cc::law::SizeClass;
use incast_sim::FlowSpec;
use incast_units::{Bytes, Time};

/// Who sends to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// So many pairs, drawn.
    Random(u32),
    /// These.
    Given(Vec<(u32, u32)>),
}

/// Flows that start one after the other.
#[derive(Clone, Debug)]
pub struct Long {
    /// Class index of the flows.
    pub class: u16,
    /// Class name, for the random streams.
    pub name: String,
    /// Hosts of the fabric, at least 2.
    pub hosts: u32,
    /// Who sends to whom.
    pub pairs: Pairs,
    /// Bytes of each flow.
    pub size: u64,
    /// The flows last beyond the run's end.
    pub endless: bool,
    /// When the first one starts.
    pub start: Time,
    /// Time between one start and the next.
    pub stagger: Time,
    /// Sum of the bytes that can be sent at all, for the expected cost.
    pub capacity: Bytes,
}

impl Long {
    fn pairs(&self, seed: u64) -> Vec<(u32, u32)> {
        let count = match &self.pairs {
            Pairs::Given(pairs) => return pairs.clone(),
            Pairs::Random(count) => *count as usize,
        };
        // Senders come from one shuffled deck, receivers from another; a used-up deck is shuffled anew.
        let mut stream = stream(seed, Purpose::Long, &self.name, 0);
        let (mut senders, mut receivers, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        let fresh = |stream: &mut _| {
            let mut deck: Vec<u32> = (0..self.hosts).collect();
            draw_to_front(stream, &mut deck, self.hosts as usize);
            deck
        };
        while pairs.len() < count {
            if senders.is_empty() {
                senders = fresh(&mut stream);
            }
            if receivers.is_empty() {
                receivers = fresh(&mut stream);
            }
            let (Some(source), Some(mut destination)) = (senders.pop(), receivers.pop()) else { break };
            if source == destination {
                // Trade with the next card, or with an earlier pair if this was the last.
                if let Some(other) = receivers.last_mut() {
                    std::mem::swap(other, &mut destination);
                } else if let Some((_, other)) = pairs.last_mut() {
                    std::mem::swap(other, &mut destination);
                }
            }
            if source != destination {
                pairs.push((source, destination));
            }
        }
        pairs
    }

    fn count(&self) -> u64 {
        match &self.pairs {
            Pairs::Random(count) => u64::from(*count),
            Pairs::Given(pairs) => pairs.len() as u64,
        }
    }
}

impl Generate for Long {
    fn flows(&self, seed: u64, flows: &mut Vec<FlowSpec>) {
        for (index, (source, destination)) in self.pairs(seed).into_iter().enumerate() {
            flows.push(FlowSpec {
                start: self.start.saturating_add(self.stagger.saturating_mul(index as u64)),
                source,
                destination,
                bytes: self.size,
                class: self.class,
                request: FlowSpec::NO_REQUEST,
                pinned: None,
            });
        }
    }

    fn expected(&self) -> Expected {
        let flows = self.count() as f64;
        let bytes = if self.endless { self.capacity.get() as f64 } else { flows * self.size as f64 };
        Expected { flows, bytes, sources: flows.min(self.hosts.into()), open: 0.0 }
    }

    fn describe(&self) -> String {
        let size = if self.endless { "that last until the end".to_owned() } else { format!("of {} B", self.size) };
        format!("{}: {} flows {size}, from {} on, {} apart", self.name, self.count(), self.start, self.stagger)
    }

    fn smallest_long_flow(&self) -> Option<u64> {
        Some(self.size)
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        if self.endless {
            return Vec::new();
        }
        vec![(self.class, SizeClass { bytes: self.size, flows: self.expected().flows })]
    }

    fn starts(&self) -> (u64, u64) {
        let last = self.stagger.saturating_mul(self.count().saturating_sub(1));
        (self.start.ps(), self.start.saturating_add(last).ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_pairs_are_spread_evenly() {
        for (hosts, count) in [(2, 2), (2, 7), (3, 9), (16, 16), (16, 40)] {
            for seed in 0..50 {
                let long = Long {
                    class: 0,
                    name: "l".into(),
                    hosts,
                    pairs: Pairs::Random(count),
                    size: 1,
                    endless: false,
                    start: Time::ZERO,
                    stagger: Time::ZERO,
                    capacity: Bytes::ZERO,
                };
                let pairs = long.pairs(seed);
                assert_eq!(pairs.len(), count as usize);
                assert!(pairs.iter().all(|(a, b)| a != b), "{pairs:?}");
                let of_h0 = pairs.iter().filter(|(a, _)| *a == 0).count() as u32;
                assert!(of_h0 >= count / hosts && of_h0 <= count.div_ceil(hosts), "{hosts} {count} {pairs:?}");
            }
        }
    }
}
