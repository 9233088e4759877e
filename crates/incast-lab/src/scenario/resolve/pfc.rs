//! `switch.pfc` to the simulator's configuration, and whether it can be lossless there.

use super::{
    super::document::switch::{Pfc as Described, PfcCommon},
    refusal,
};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::{
    ConfigError, Fabric,
    checks::{self, check_pfc},
    config::{Expiry, Pfc, Shortage, Threshold},
    flow_control::pfc::{Bounds, Rules},
    pfc_rules,
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
    }
    lines
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
