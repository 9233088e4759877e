//! All-to-all: each host of a group sends one flow to each other one.

use super::{Expected, Generate};
use incast_cc::law::SizeClass;
use incast_sim::FlowSpec;
use incast_units::Time;

/// One flow for each ordered pair of hosts, all at once.
#[derive(Clone, Debug)]
pub struct AllToAll {
    /// Class index of the flows.
    pub class: u16,
    /// Class name.
    pub name: String,
    /// Hosts that send to each other, at least 2.
    pub hosts: Vec<u32>,
    /// Bytes of each flow.
    pub size: u64,
    /// When all start.
    pub start: Time,
}

impl Generate for AllToAll {
    fn flows(&self, _seed: u64, flows: &mut Vec<FlowSpec>) {
        for (index, source) in self.hosts.iter().enumerate() {
            // Each host begins with its right neighbour: no host is everybody's first.
            let (before, after) = self.hosts.split_at(index);
            for destination in after.iter().skip(1).chain(before) {
                flows.push(FlowSpec {
                    start: self.start,
                    source: *source,
                    destination: *destination,
                    bytes: self.size,
                    class: self.class,
                    request: FlowSpec::NO_REQUEST,
                    pinned: None,
                });
            }
        }
    }

    fn expected(&self) -> Expected {
        let hosts = self.hosts.len() as f64;
        let flows = hosts * (hosts - 1.0);
        Expected { flows, bytes: flows * self.size as f64, sources: hosts, open: 0.0 }
    }

    fn describe(&self) -> String {
        format!("{}: {} flows of {} B at {}", self.name, self.expected().flows, self.size, self.start)
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
    use std::collections::BTreeSet;

    #[test]
    fn every_ordered_pair_once() {
        let mut flows = Vec::new();
        let hosts = vec![7, 2, 3, 9, 4];
        AllToAll { class: 0, name: "a".into(), hosts: hosts.clone(), size: 1, start: Time::ZERO }.flows(1, &mut flows);
        let pairs: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.source, flow.destination)).collect();
        assert_eq!((flows.len(), pairs.len()), (20, 20));
        assert!(flows.iter().all(|flow| flow.source != flow.destination));
        assert!(flows.iter().all(|flow| hosts.contains(&flow.source) && hosts.contains(&flow.destination)));
        let firsts: BTreeSet<u32> = flows.iter().step_by(4).map(|flow| flow.destination).collect();
        assert_eq!(firsts.len(), 5, "no host is everybody's first");
    }
}
