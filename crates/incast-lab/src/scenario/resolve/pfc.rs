//! `switch.pfc` to the simulator's configuration, and whether it can be lossless there.

use super::{
    super::document::switch::{Pfc as Described, PfcCommon},
    refusal,
};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::marking::Marking;
use incast_sim::{
    ConfigError, Fabric,
    checks::{self, check_pfc},
    config::{Alpha, Buffer, Ecn, Expiry, Pfc, Shortage, SwitchConfig, Threshold},
    flow_control::pfc::{Bounds, Rules},
    pfc_rules,
    topology::{Ports, Topology},
};
use incast_units::{Rate, Time};

fn at(key: &str, problem: Problem) -> Problem {
    problem.at(&keys!["switch", "pfc", key])
}

/// Checks what can be said without the fabric, and converts.
pub fn resolve(pfc: &Described, priorities: u8) -> Result<Option<Pfc>, Problem> {
    let (threshold, common) = match pfc {
        Described::Off => return Ok(None),
        Described::Static(table) => {
            let xon = table.xon;
            (Threshold::Static { xoff: table.xoff, xon }, table.common())
        }
        Described::Dynamic(table) => {
            let (reserve, resume_offset) = (table.reserve.get(), table.resume_offset.get());
            (Threshold::Dynamic { alpha: table.alpha, reserve, resume_offset }, table.common())
        }
    };
    let PfcCommon { headroom, lossless, response_delay, frame, pause_time, refresh, deadlock_after, strict } = common;
    let mut mask = if lossless.is_none() { u8::MAX } else { 0 };
    for priority in lossless.unwrap_or_default() {
        if *priority >= priorities {
            let allowed = format!("0 to {}: switches have {priorities} priorities", priorities - 1);
            return Err(at("lossless", Problem::value(priority, allowed)));
        }
        mask |= 1 << priority;
    }
    let frame = u16::try_from(frame.get()).map_err(|_| at("frame", Problem::value(frame, "1B to 9216B")))?;
    let expiry = match (pause_time, refresh) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(at("refresh", Problem::new("only pauses that end after a `pause_time` are refreshed")));
        }
        (Some(after), refresh) => Some(Expiry { after, refresh: refresh.unwrap_or(after / 2) }),
    };
    Ok(Some(Pfc {
        threshold,
        headroom,
        priorities: mask,
        response_delay,
        frame,
        expiry,
        deadlock_after: Some(deadlock_after),
        strict,
    }))
}

/// Refuses what could lose packets.
pub fn check(fabric: Fabric<'_>) -> Result<(), Problem> {
    check_pfc(fabric).map_err(|error| match error {
        ConfigError::Lossy { switch, shortage } => {
            let strict = "; with strict = false what finds no room is dropped and counted";
            let (path, strict) = match shortage {
                Shortage::Unknown { .. } => (keys!["switch", "pfc", "headroom"].to_vec(), ""),
                Shortage::Headroom { .. } => (keys!["switch", "pfc", "headroom"].to_vec(), strict),
                Shortage::Buffer { .. } => (keys!["switch", "pfc"].to_vec(), strict),
                Shortage::Port { .. } => (keys!["switch", "pfc"].to_vec(), ""),
                Shortage::Order { .. } => (keys!["switch", "pfc", "xon"].to_vec(), ""),
            };
            Problem::new(format!("at {switch} {shortage}{strict}")).at(&path)
        }
        other => refusal(other, &keys!["switch", "pfc"]),
    })
}

/// Refuses what could lock up although there are virtual channels or deflection.
pub fn check_channels(fabric: Fabric<'_>) -> Result<(), Problem> {
    checks::check_channels(fabric).map_err(|error| refusal(error, &keys!["switch", "virtual_channels"]))
}

/// What flow control comes to, one line for each kind of switch port; nothing where there is none.
pub fn describe(fabric: Fabric<'_>) -> Vec<String> {
    let Some(common) = pfc_rules(fabric) else { return Vec::new() };
    let Fabric { topology, switch, .. } = fabric;
    let ports = topology.ports();
    let mut lines = Vec::new();
    for (own, nodes) in switch.kinds(topology.hosts..topology.nodes()) {
        let rules = own.pfc.as_ref().map_or_else(|| common.clone(), |own| common.of(own));
        let ends = nodes.iter().flat_map(|node| ports.of(*node));
        let links = ends.map(|end| &topology.cables[end.cable as usize].link);
        let mut links: Vec<(Rate, Time)> = links.map(|link| (link.rate, link.delay)).collect();
        links.sort_unstable_by_key(|(rate, delay)| (rate.bps(), delay.ps()));
        links.dedup();
        let place = match topology.names.get(nodes[0] as usize) {
            Some(name) if !switch.overrides.is_empty() => format!("{name} and its like: "),
            _ => String::new(),
        };
        lines.extend(links.iter().map(|link| format!("{place}{}", line(&rules, *link))));
        let ports: Vec<Vec<(Rate, Time)>> = nodes.iter().map(|node| links_of(topology, &ports, *node)).collect();
        let bounds = ports.iter().filter_map(|links| marks_before_pauses(&own, &rules, links));
        if let Some(bound) = bounds.min() {
            lines.push(format!(
                "{place}marks come before pauses, whatever the others hold, with thresholds below {bound} B \
                 (DCQCN, SIGCOMM 2015, section 4); {}",
                thresholds(&own.ecn, &links, rules.base_rtt)
            ));
        }
    }
    lines
}

fn links_of(topology: &Topology, ports: &Ports, node: u32) -> Vec<(Rate, Time)> {
    let links = ports.of(node).iter().map(|end| &topology.cables[end.cable as usize].link);
    links.map(|link| (link.rate, link.delay)).collect()
}

/// The threshold t below which marks come before pauses in the worst case, in bytes. The queues of n ports and k priorities
/// are as long as they may be without marks, n k t together, and those of one priority came in by one port, which is paused
/// at alpha (X - n k t), X being what is neither reserved nor headroom: n t < alpha (X - n k t), or t < alpha X / (n (1 + k
/// alpha)). SIGCOMM 2015, section 4, has it for k = 8. None where thresholds are fixed or follow the rate.
fn marks_before_pauses(switch: &SwitchConfig, rules: &Rules, links: &[(Rate, Time)]) -> Option<u64> {
    let Threshold::Dynamic { alpha: Alpha::Fixed(alpha), .. } = rules.pfc.threshold else { return None };
    let Buffer::Shared { total, reserve, .. } = switch.buffer else { return None };
    let own = links.iter().map(|(rate, delay)| rules.limits(*rate, *delay).own()).fold(0u64, u64::saturating_add);
    let lossy = u64::from(switch.priorities).saturating_sub(rules.count()) * links.len() as u64;
    let shared = total.saturating_sub(own.saturating_mul(rules.count())).saturating_sub(reserve.saturating_mul(lossy));
    Some(bound(shared, alpha, links.len() as u64, rules.count()))
}

/// alpha X / (n (1 + k alpha)).
fn bound(shared: u64, alpha: f64, ports: u64, priorities: u64) -> u64 {
    (alpha * shared as f64 / (ports.max(1) as f64 * (1.0 + priorities as f64 * alpha))) as u64
}

/// What ports of these links mark at.
fn thresholds(ecn: &Ecn, links: &[(Rate, Time)], base_rtt: Time) -> String {
    let mut rates: Vec<Rate> = links.iter().map(|(rate, _)| *rate).collect();
    rates.dedup();
    let of = |rate: &Rate| match ecn.marking(*rate, base_rtt) {
        Marking::Off => None,
        Marking::Step { at: least } | Marking::Red { min: least, .. } => Some(format!("{least} B at ports of {rate}")),
    };
    let all: Vec<String> = rates.iter().filter_map(of).collect();
    if all.is_empty() { "switch.ecn is off".into() } else { format!("switch.ecn marks above {}", all.join(", ")) }
}

fn line(rules: &Rules, (rate, delay): (Rate, Time)) -> String {
    let limits = rules.limits(rate, delay);
    let threshold = match limits.threshold {
        Bounds::Static { xoff, xon } => format!("xoff {xoff} B, xon {xon} B"),
        Bounds::Dynamic { alpha, reserve, resume_offset } => format!(
            "alpha {}, reserve {reserve} B, resume {resume_offset} B below",
            alpha as f64 / f64::from(1u32 << 20)
        ),
    };
    format!(
        "ports of {rate} with cables of {delay}: headroom {} B for each of {} lossless priorities in use ({} B needed); {threshold}",
        limits.headroom,
        rules.count(),
        rules.needed(rate, delay),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's own number (12 MB, 32 ports of 40 Gbit/s, 8 priorities with 22.4 KB of headroom each, beta 8), and
    /// buffers of shipped switches with two lossless priorities and alpha 1, whose thresholds are above or below.
    #[test]
    fn marks_come_before_pauses_below_the_papers_bound() {
        assert_eq!(bound(12_000_000 - 8 * 32 * 22_400, 1.0, 32, 8), 21_755);
        let shipped = [
            ("Tomahawk", 10_900_000, 32, 250_000, true),
            ("Tomahawk 2", 34_500_000, 64, 2_000_000, true),
            ("Tomahawk 5", 129_000_000, 64, 131_072, false),
        ];
        for (name, shared, ports, threshold, is_above) in shipped {
            assert_eq!(threshold > bound(shared, 1.0, ports, 2), is_above, "{name}");
        }
    }
}
