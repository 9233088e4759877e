//! Settings that are allowed, and plainly not what anybody wants: timers below the round trip, windows below a packet,
//! events that change nothing.

use super::resolved::Resolved;
use crate::scenario::document::Document;
use incast_cc::parameters::Raw;
use incast_sim::{
    config::{LinkEvent, Ties},
    topology::Topology,
};
use incast_units::{Bytes, Time};
use std::collections::BTreeMap;

/// A path that holds fewer packets than this is no path to speak of: a window has hardly any value between none and all.
const FEW_PACKETS: f64 = 3.0;

/// What looks degenerate in a scheme. `given` says whether a parameter of a class's law was given.
pub fn warnings(scheme: &Resolved, given: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let name = &scheme.name;
    let mut found = Vec::new();
    let path = scheme.path;
    let packets = path.bdp().get() as f64 / f64::from(path.mss.max(1));
    if packets < FEW_PACKETS {
        found
            .push(format!("scheme {name}: the BDP is {packets:.1} packets of {} B: windows are that coarse", path.mss));
    }
    if scheme.host.ack_every > 1 && scheme.host.ack_delay >= scheme.host.rto_min {
        let (delay, least) = (scheme.host.ack_delay, scheme.host.rto_min);
        found.push(format!(
            "scheme {name}: host.ack_delay = {delay} is not below host.rto_min = {least}: a lone packet is sent again before it is acknowledged"
        ));
    }
    let favours = scheme.ties != Ties::Seeded;
    if favours && scheme.switch.pfc.is_none() && scheme.switch.credits.is_none() {
        found.push(format!(
            "scheme {name}: with switch.ties other than \"seeded\" the same port always comes first: on a fabric that drops packets one of two equal senders may get nothing"
        ));
    }
    for class in &scheme.classes {
        for (key, value) in class.law.values() {
            let Raw::Text(value) = &value else { continue };
            if !given(&class.name, key) {
                continue;
            }
            let is_timer = key.ends_with("_timeout") || key == "rto";
            if is_timer && value.parse::<Time>().is_ok_and(|time| time < path.base_rtt) {
                found.push(format!(
                    "scheme {name}: {key} = {value} is below the base RTT, {}: what is on its way counts as lost",
                    path.base_rtt
                ));
            }
            let is_window = matches!(key, "window" | "initial_window");
            if is_window && value.parse::<Bytes>().is_ok_and(|bytes| bytes.get() < u64::from(path.mss)) {
                found.push(format!("scheme {name}: {key} = {value} is below a packet, {} B", path.mss));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Events of links that change nothing: a link that is up comes up, or is down and goes down.
pub fn events(document: &Document, topology: &Topology, events: &[LinkEvent]) -> Vec<String> {
    let mut order: Vec<(usize, &LinkEvent)> = events.iter().enumerate().collect();
    // Of events at one time the first in the file comes first.
    order.sort_by_key(|(_, event)| event.at);
    let mut is_up: BTreeMap<usize, bool> = BTreeMap::new();
    let mut found = Vec::new();
    for (index, event) in order {
        if is_up.insert(event.cable, event.up).unwrap_or(true) == event.up {
            let state = if event.up { "up" } else { "down" };
            let name = topology.cable_name(event.cable).unwrap_or_default();
            found.push(format!(
                "event[{index}] changes nothing: {name} is {state} at {} already",
                document.event[index].at
            ));
        }
    }
    found
}
