//! `pfc.txt`: pauses in the format of HPCC's ns-3 simulator.
//!
//! One line for each pause and each resume of a port, in the order of time: `time node kind port type`. Times are in
//! nanoseconds. `node` is the number at the end of the node's name, or its index if there is none. `kind` is 0 for
//! hosts and 1 for switches. Ports are numbered from 1 in the order of the links. `type` is 1 for a pause and 0 for its
//! end.

use super::fct_txt::number;
use incast_sim::{
    probe::{EventKind, EventRecord},
    topology::Topology,
};
use incast_units::Time;
use std::fmt::Write;

/// The whole file; `origin` is added to all times.
pub fn write(events: &[EventRecord], topology: &Topology, origin: Time) -> String {
    let mut text = String::new();
    for event in events {
        let pause = match event.kind {
            EventKind::Pause => 1,
            EventKind::Resume => 0,
            _ => continue,
        };
        let id = topology.names.get(event.node as usize).map_or(event.node, |name| number(name, event.node));
        let kind = u8::from(event.node >= topology.hosts);
        let time = event.time.saturating_add(origin).ps() / 1000;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{time} {id} {kind} {} {pause}", u32::from(event.port) + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::topology::file;

    #[test]
    fn lines_are_those_of_the_peer() {
        let text = "host h3\nhost h4\nswitch s0\nlink h3 s0 100Gbps 1us\nlink s0 h4 100Gbps 1us\n";
        let star = file::parse(text).expect("a star");
        let event = |ns: u64, node, port, kind| EventRecord {
            time: Time::from_ns(ns),
            node,
            port,
            kind,
            priority: 0,
            source: EventRecord::NO_FLOW,
            sequence: 0,
        };
        let events = [
            event(5, 0, 0, EventKind::Pause),
            event(6, 1, 0, EventKind::Drop),
            event(7, 2, 1, EventKind::Pause),
            event(9, 0, 0, EventKind::Resume),
        ];
        assert_eq!(
            write(&events, &star, Time::from_ms(2000)),
            "2000000005 3 0 1 1\n2000000007 0 1 2 1\n2000000009 3 0 1 0\n"
        );
    }
}
