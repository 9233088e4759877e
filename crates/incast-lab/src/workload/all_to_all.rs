//! All-to-all: each host sends one flow to each other host.

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
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Bytes of each flow.
    pub size: u64,
    /// When all start.
    pub start: Time,
}

impl Generate for AllToAll {
    fn flows(&self, _seed: u64, flows: &mut Vec<FlowSpec>) {
        for source in 0..self.hosts {
            // Each host begins with its right neighbour: no host is everybody's first.
            for distance in 1..self.hosts {
                flows.push(FlowSpec {
                    start: self.start,
                    source,
                    destination: ((u64::from(source) + u64::from(distance)) % u64::from(self.hosts)) as u32,
                    bytes: self.size,
                    class: self.class,
                    request: FlowSpec::NO_REQUEST,
                    pinned: None,
                });
            }
        }
    }

    fn expected(&self) -> Expected {
        let flows = f64::from(self.hosts) * (f64::from(self.hosts) - 1.0);
        Expected { flows, bytes: flows * self.size as f64, sources: self.hosts.into(), open: 0.0 }
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
        AllToAll { class: 0, name: "a".into(), hosts: 5, size: 1, start: Time::ZERO }.flows(1, &mut flows);
        let pairs: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.source, flow.destination)).collect();
        assert_eq!((flows.len(), pairs.len()), (20, 20));
        assert!(flows.iter().all(|flow| flow.source != flow.destination));
    }
}
