//! Whether marks can come: the thresholds of switch ports beside the longest queues that can be there.

use super::{agent, resolved::Resolved};
use incast_cc::marking::Marking;
use incast_sim::{
    Fabric, base_rtt,
    config::{Buffer, Ecn, SwitchConfig},
    flow_control::pfc::{Bounds, Rules},
    pfc_rules,
    topology::{Link, Topology},
};
use incast_units::{Rate, Time};
use std::collections::BTreeMap;

/// Names ports at which no queue reaches the threshold of marks. DCQCN (SIGCOMM 2015, section 4) derives thresholds from
/// this condition: marks before pauses.
pub fn warnings(topology: &Topology, scheme: &Resolved) -> Vec<String> {
    if !agent::uses_thresholds(scheme) {
        return Vec::new();
    }
    let fabric =
        Fabric { topology, switch: &scheme.switch, host: &scheme.host, classes: &scheme.classes, wire: scheme.wire };
    // Pauses bound the queues of these priorities alone.
    let rules = pfc_rules(fabric).filter(|rules| {
        let capable = scheme.classes.iter().filter(|class| class.law.transport().ecn_capable);
        let queue = |priority: u8| priority * scheme.switch.virtual_channels.max(1);
        capable.map(|class| queue(class.priority)).all(|queue| rules.lossless & 1 << queue != 0)
    });
    let base_rtt = base_rtt(fabric);
    let ports = topology.ports();
    let mut warnings = Vec::new();
    for (switch, nodes) in scheme.switch.kinds(topology.hosts..topology.nodes()) {
        let rules = rules.as_ref().zip(switch.pfc.as_ref()).map(|(rules, own)| rules.of(own));
        let place = match topology.names.get(nodes[0] as usize) {
            Some(name) if !scheme.switch.overrides.is_empty() => format!("{name}'s "),
            _ => String::new(),
        };
        let links = nodes
            .iter()
            .map(|node| ports.of(*node).iter().map(|end| topology.cables[end.cable as usize].link).collect::<Vec<_>>());
        let longest = longest_queues(&switch, rules.as_ref(), u64::from(scheme.path.wire_mss), links);
        warnings.extend(longest.into_iter().filter_map(|(bps, (bytes, why))| {
            let rate = Rate::from_bps(bps);
            let threshold = threshold(&switch.ecn, rate, base_rtt)?;
            (threshold >= bytes).then(|| {
                let name = &scheme.name;
                format!(
                    "scheme {name}: switch.ecn marks above {threshold} B at {place}ports of {rate}, and no queue gets there: {why} {bytes} B"
                )
            })
        }));
    }
    warnings
}

/// By rate: the longest queue of any port of it in switches of one configuration with these links, and what ends it.
fn longest_queues(
    switch: &SwitchConfig,
    rules: Option<&Rules>,
    largest_packet: u64,
    switches: impl Iterator<Item = Vec<Link>>,
) -> BTreeMap<u64, (u64, &'static str)> {
    // Dynamic thresholds are for packets that may be dropped.
    let by_buffer = match switch.buffer {
        Buffer::Shared { total, .. } if rules.is_some() => Some(total),
        ref buffer => longest_by_buffer(buffer, largest_packet),
    };
    let mut longest: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for links in switches {
        for (port, link) in links.iter().enumerate() {
            let ingresses = || links.iter().enumerate().filter(|(other, _)| *other != port);
            let by_pauses = rules.and_then(|rules| {
                let limits = ingresses().map(|(_, link)| most_of_ingress(rules, link.rate, link.delay));
                limits.sum::<Option<u64>>()
            });
            let ends = [(by_buffer, "the buffer lets none grow beyond"), (by_pauses, "pauses let none grow beyond")];
            let end = ends.into_iter().filter_map(|(bytes, why)| Some((bytes?, why))).min_by_key(|(bytes, _)| *bytes);
            let end = end.unwrap_or((u64::MAX, ""));
            let known = longest.entry(link.rate.bps()).or_insert(end);
            if end.0 > known.0 {
                *known = end;
            }
        }
    }
    longest
}

/// The queue above which a port of this rate may mark, in bytes.
fn threshold(ecn: &Ecn, rate: Rate, base_rtt: Time) -> Option<u64> {
    match ecn.marking(rate, base_rtt) {
        Marking::Off => None,
        Marking::Step { at } => Some(at),
        Marking::Red { min, .. } => Some(min),
    }
}

/// The longest queue that a buffer admits, in bytes.
fn longest_by_buffer(buffer: &Buffer, largest_packet: u64) -> Option<u64> {
    match *buffer {
        Buffer::Unlimited => None,
        Buffer::PerPort { bytes } => Some(bytes),
        Buffer::PerPortPackets { packets } => Some(u64::from(packets) * largest_packet),
        // q - reserve <= alpha (total - (q - reserve)), where nobody else has anything; and one packet beyond.
        Buffer::Shared { total, alpha: (numerator, denominator), reserve } => {
            let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
            let share = u128::from(total) * numerator / (numerator + denominator).max(1);
            Some(u64::try_from(share).unwrap_or(u64::MAX).saturating_add(reserve + largest_packet).min(total))
        }
    }
}

/// What an ingress brings at the most before it is paused, and until that takes effect, in bytes; none of dynamic
/// thresholds, which depend on the others.
fn most_of_ingress(rules: &Rules, rate: Rate, delay: Time) -> Option<u64> {
    let limits = rules.limits(rate, delay);
    match limits.threshold {
        Bounds::Static { xoff, .. } => Some(xoff.saturating_add(limits.headroom)),
        Bounds::Dynamic { .. } => None,
    }
}
