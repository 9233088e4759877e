//! Groups of flows that belong together: an incast, an RPC.

use incast_sim::{FlowSpec, outcome::FlowRecord};
use incast_units::Time;
use std::collections::BTreeMap;

/// One group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub request: u64,
    /// Class of its first flow.
    pub class: u16,
    /// Start of its first flow.
    pub start: Time,
    /// When its last flow was delivered; `None` while any is missing.
    pub completion: Option<Time>,
    /// Number of flows.
    pub flows: u64,
    /// Their payload bytes.
    pub bytes: u64,
}

/// Groups the flows of a run, in the order of the groups' numbers.
pub fn group(flows: &[FlowRecord]) -> Vec<Request> {
    let mut groups: BTreeMap<u64, Request> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.request != FlowSpec::NO_REQUEST) {
        let group = groups.entry(flow.request).or_insert(Request {
            request: flow.request,
            class: flow.class,
            start: flow.start,
            completion: Some(Time::ZERO),
            flows: 0,
            bytes: 0,
        });
        if flow.start < group.start {
            (group.start, group.class) = (flow.start, flow.class);
        }
        group.completion = group.completion.zip(flow.delivered).map(|(a, b)| a.max(b));
        group.flows += 1;
        group.bytes += flow.bytes;
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_done_when_its_last_flow_is() {
        let flow = |request, start, delivered: Option<u64>| FlowRecord {
            request,
            start: Time::from_us(start),
            delivered: delivered.map(Time::from_us),
            bytes: 10,
            ..FlowRecord::default()
        };
        let flows = [
            flow(7, 5, Some(9)),
            flow(7, 3, Some(20)),
            flow(FlowSpec::NO_REQUEST, 0, Some(1)),
            flow(2, 1, Some(4)),
            flow(2, 1, None),
        ];
        let groups = group(&flows);
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].request, groups[0].completion, groups[0].flows), (2, None, 2));
        assert_eq!((groups[1].start, groups[1].completion), (Time::from_us(3), Some(Time::from_us(20))));
        assert_eq!(groups[1].bytes, 20);
    }
}
