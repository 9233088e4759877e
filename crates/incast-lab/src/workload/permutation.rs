//! A permutation: each host of a group sends one flow to another one, each receives one.

use super::{
    Expected, Generate,
    streams::{Purpose, draw_to_front, stream},
};
use incast_cc::law::SizeClass;
use incast_sim::FlowSpec;
use incast_units::Time;

/// One flow from each host.
#[derive(Clone, Debug)]
pub struct Permutation {
    /// Class index of the flows.
    pub class: u16,
    /// Class name, for the random streams.
    pub name: String,
    /// Hosts that send to each other, at least 2.
    pub hosts: Vec<u32>,
    /// Bytes of each flow.
    pub size: u64,
    /// When all start.
    pub start: Time,
}

impl Permutation {
    /// The destination of each, as an index: a uniformly drawn permutation in which no host keeps its place.
    fn destinations(&self, seed: u64) -> Vec<u32> {
        let hosts = self.hosts.len() as u32;
        let mut stream = stream(seed, Purpose::Permutation, &self.name, 0);
        let mut order: Vec<u32> = (0..hosts).collect();
        // About one permutation in e has no fixed point: 200 failures in a row do not happen, and if they did, a
        // rotation would do.
        for _ in 0..200 {
            draw_to_front(&mut stream, &mut order, self.hosts.len());
            if order.iter().enumerate().all(|(host, other)| host as u32 != *other) {
                return order;
            }
        }
        (0..hosts).map(|host| (host + 1) % hosts).collect()
    }
}

impl Generate for Permutation {
    fn flows(&self, seed: u64, flows: &mut Vec<FlowSpec>) {
        for (source, destination) in self.hosts.iter().zip(self.destinations(seed)) {
            flows.push(FlowSpec {
                start: self.start,
                source: *source,
                destination: self.hosts[destination as usize],
                bytes: self.size,
                class: self.class,
                request: FlowSpec::NO_REQUEST,
                pinned: None,
            });
        }
    }

    fn expected(&self) -> Expected {
        let hosts = self.hosts.len() as f64;
        Expected { flows: hosts, bytes: hosts * self.size as f64, sources: hosts, open: 0.0 }
    }

    fn describe(&self) -> String {
        format!("{}: {} flows of {} B at {}", self.name, self.hosts.len(), self.size, self.start)
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        vec![(self.class, SizeClass { bytes: self.size, flows: self.expected().flows })]
    }

    fn starts(&self) -> (u64, u64) {
        (self.start.ps(), self.start.ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_sends_to_itself_and_everybody_receives() {
        for hosts in [2, 3, 128] {
            let of = (0..hosts).rev().collect();
            let permutation = Permutation { class: 0, name: "p".into(), hosts: of, size: 1, start: Time::ZERO };
            for seed in 0..50 {
                let mut order = permutation.destinations(seed);
                assert!(order.iter().enumerate().all(|(host, other)| host as u32 != *other));
                order.sort_unstable();
                assert!(order.iter().enumerate().all(|(host, other)| host as u32 == *other));
            }
        }
    }
}
