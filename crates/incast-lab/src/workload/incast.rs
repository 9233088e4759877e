//! Incast: groups of flows from many hosts to one.

use super::{
    Expected, Generate, request_id,
    streams::{Purpose, draw_to_front, stream},
};
use incast_cc::law::SizeClass;
use incast_sim::FlowSpec;
use incast_units::Time;

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Each host in turn.
    Rotate,
    /// Drawn for each group.
    Random,
    /// One host.
    Host(u32),
}

/// Groups at regular times.
#[derive(Clone, Debug)]
pub struct Incast {
    /// Class index of the flows.
    pub class: u16,
    /// Class name, for the random streams.
    pub name: String,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Hosts that may send.
    pub senders: Vec<u32>,
    /// Senders of a group.
    pub fan_in: u32,
    /// Bytes of each flow.
    pub size: u64,
    /// Time between groups.
    pub every: Time,
    /// Largest delay of a flow after its group's time.
    pub jitter: Time,
    /// Time from the start of one sender of a group to that of the next, by receiver; empty if all start at once.
    pub stagger: Vec<Time>,
    /// Who receives.
    pub receiver: Receiver,
    /// When the first group starts.
    pub start: Time,
    /// Every flow starts before this time; `start` for no groups.
    pub until: Time,
}

impl Incast {
    /// Groups of which the last possible start of a flow is before the end: a longer run begins with the same ones.
    fn groups(&self) -> u64 {
        let last = self.jitter.saturating_add(Self::last_turn(&self.stagger, self.fan_in));
        let span = self.until.saturating_sub(last).saturating_sub(self.start);
        span.ps().div_ceil(self.every.ps().max(1))
    }

    /// How long after its group the last of so many senders starts, jitter apart, at the receiver where that is
    /// longest.
    pub fn last_turn(stagger: &[Time], fan_in: u32) -> Time {
        let longest = stagger.iter().copied().max().unwrap_or(Time::ZERO);
        longest.saturating_mul(u64::from(fan_in.saturating_sub(1)))
    }
}

impl Generate for Incast {
    fn flows(&self, seed: u64, flows: &mut Vec<FlowSpec>) {
        for group in 0..self.groups() {
            // A stream for each group: a longer run starts with the same groups as a shorter one.
            let mut stream = stream(seed, Purpose::Incast, &self.name, group);
            let receiver = match self.receiver {
                Receiver::Rotate => (group % u64::from(self.hosts)) as u32,
                Receiver::Random => stream.below(u64::from(self.hosts)) as u32,
                Receiver::Host(host) => host,
            };
            let mut senders: Vec<u32> = self.senders.iter().copied().filter(|host| *host != receiver).collect();
            draw_to_front(&mut stream, &mut senders, self.fan_in as usize);
            let turn = self.stagger.get(receiver as usize).copied().unwrap_or(Time::ZERO);
            for (index, source) in senders.into_iter().take(self.fan_in as usize).enumerate() {
                let jitter =
                    if self.jitter == Time::ZERO { 0 } else { stream.below(self.jitter.ps().saturating_add(1)) };
                let own = turn.saturating_mul(index as u64).saturating_add(Time::from_ps(jitter));
                flows.push(FlowSpec {
                    start: (self.start + self.every * group).saturating_add(own),
                    source,
                    destination: receiver,
                    bytes: self.size,
                    class: self.class,
                    request: request_id(self.class, group),
                    pinned: None,
                });
            }
        }
    }

    fn expected(&self) -> Expected {
        let flows = self.groups() as f64 * f64::from(self.fan_in);
        let sources = flows.min(self.senders.len() as f64);
        Expected { flows, bytes: flows * self.size as f64, sources, open: 0.0 }
    }

    fn describe(&self) -> String {
        if self.groups() == 0 {
            return format!("{}: no groups", self.name);
        }
        format!(
            "{}: {} groups of {} × {} B, one every {} from {} on; {} flows",
            self.name,
            self.groups(),
            self.fan_in,
            self.size,
            self.every,
            self.start,
            self.expected().flows
        )
    }

    fn request_class(&self) -> Option<u16> {
        Some(self.class)
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        vec![(self.class, SizeClass { bytes: self.size, flows: self.expected().flows })]
    }

    fn starts(&self) -> (u64, u64) {
        let last = self.groups().saturating_sub(1).saturating_mul(self.every.ps());
        let turns = Self::last_turn(&self.stagger, self.fan_in);
        let last = last.saturating_add(turns.ps()).saturating_add(self.jitter.ps());
        (self.start.ps(), self.start.ps().saturating_add(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn groups_rotate_and_senders_differ() {
        let incast = Incast {
            class: 3,
            name: "incast".into(),
            hosts: 8,
            senders: (0..8).collect(),
            fan_in: 5,
            size: 1000,
            every: Time::from_us(100),
            jitter: Time::from_us(10),
            stagger: Vec::new(),
            receiver: Receiver::Rotate,
            start: Time::ZERO,
            until: Time::from_ms(1),
        };
        let mut flows = Vec::new();
        incast.flows(1, &mut flows);
        assert_eq!((flows.len() as f64, flows.len()), (incast.expected().flows, 50));
        // A group whose flows could start at the end or later is left out, and all others stay as they are.
        let shorter = Incast { until: Time::from_us(910), ..incast.clone() };
        let mut fewer = Vec::new();
        shorter.flows(1, &mut fewer);
        assert_eq!(fewer, flows[..45]);
        let none = Incast { until: incast.start, every: Time::MAX, ..incast.clone() };
        let mut no_flows = Vec::new();
        none.flows(1, &mut no_flows);
        assert!(no_flows.is_empty() && none.expected().bytes == 0.0);
        assert_eq!(none.describe(), "incast: no groups");
        let longer = Incast { until: Time::from_ps(910_000_001), ..incast.clone() };
        assert_eq!(longer.expected().flows, 50.0);
        // Some bursts in the middle of a run.
        let burst = Incast { start: Time::from_us(300), until: Time::from_us(800), ..incast.clone() };
        let mut middle = Vec::new();
        burst.flows(1, &mut middle);
        let times: BTreeSet<u64> = middle.iter().map(|flow| flow.start.ps() / 100_000_000).collect();
        assert_eq!((middle.len(), times), (25, (3..8).collect()));
        assert_eq!(burst.starts(), (300_000_000, 710_000_000));
        for (group, flows) in flows.chunks(5).enumerate() {
            let senders: BTreeSet<u32> = flows.iter().map(|flow| flow.source).collect();
            assert_eq!(senders.len(), 5);
            for flow in flows {
                assert_eq!(flow.destination as usize, group % 8);
                assert_ne!(flow.destination, flow.source);
                assert_eq!(flow.request, request_id(3, group as u64));
                let offset = flow.start - Time::from_us(100) * group as u64;
                assert!(offset <= Time::from_us(10));
            }
        }
        // One after the other: the same senders with the same jitter, each a turn of its receiver later than the one
        // before.
        let turns: Vec<Time> = (0..8).map(|host| Time::from_us(1 + host)).collect();
        let staggered = Incast { stagger: turns.clone(), ..incast.clone() };
        let mut later = Vec::new();
        staggered.flows(1, &mut later);
        // The last turn could be at 32 us, so that a group at 960 us would not do; there is none.
        assert_eq!((later.len() as f64, later.len()), (staggered.expected().flows, 50));
        assert_eq!(staggered.starts(), (0, 942_000_000));
        for (index, (flow, same)) in later.iter().zip(&flows).enumerate() {
            let turn = turns[same.destination as usize] * (index as u64 % 5);
            assert_eq!(*flow, FlowSpec { start: same.start + turn, ..*same });
        }
        let shorter = Incast { until: Time::from_us(942), ..staggered };
        assert_eq!(shorter.expected().flows, 45.0);
    }
}
