//! Priority flow control of a fabric: its parameters, and whether it can be lossless there.

use super::{
    config::{ClassConfig, Config, ConfigError, Shortage},
    path::{Fabric, base_rtt},
};
use crate::{
    fabric::config::Buffer,
    flow_control::{
        config::{Alpha, Headroom, Pfc, Threshold},
        pfc::{Bounds, Limits, Rules},
    },
    switch::config::SwitchConfig,
    topology::Topology,
};
use incast_cc::{parameters::LEAST_PERIOD, registry::Scheduler};
use incast_units::{Bytes, Rate, Rounding, Time};
use std::{borrow::Cow, iter};

/// Resolves the flow control of a fabric.
pub fn pfc_rules(fabric: Fabric<'_>) -> Option<Rules> {
    let Fabric { topology, switch, wire, .. } = fabric;
    let pfc = switch.pfc.clone()?;
    let first = topology.cables.first();
    Some(Rules {
        lossless: spread(pfc.priorities & used_priorities(fabric), switch.virtual_channels),
        frame: largest_frame(fabric).max(u64::from(pfc.frame)),
        pfc,
        gap: u64::from(wire.gap),
        host_rate: first.map_or(Rate::from_gbps(1), |cable| cable.link.rate),
        base_rtt: base_rtt(fabric),
    })
}

/// Priorities that packets can have, one bit each.
pub fn used_priorities(fabric: Fabric<'_>) -> u8 {
    let Fabric { switch, host, classes, .. } = fabric;
    let mut used = 0u8;
    for class in classes {
        let notifies = class.law.transport().notification_interval.is_some() || !switch.agent.is_none();
        let notifications = if notifies { class.notification_priority } else { class.priority };
        for priority in [class.priority, class.ack_priority.unwrap_or(class.priority), notifications] {
            used |= 1u8.checked_shl(u32::from(priority)).unwrap_or(0);
        }
    }
    // Receivers may assign priorities.
    let assigned = host.schedulers.iter().map(Scheduler::priorities).max().unwrap_or(0);
    used |= (0..assigned.min(8)).fold(0, |mask, priority| mask | 1 << priority);
    used & u8::MAX >> (8 - switch.class_priorities().clamp(1, 8))
}

/// Bytes of the largest frame of any flow: any can be in service when a frame of flow control is ready.
pub(super) fn largest_frame(fabric: Fabric<'_>) -> u64 {
    let largest = |class: &ClassConfig| {
        let format = &class.format;
        format.data(fabric.host.mtu).max(format.control()).max(format.notification)
    };
    fabric.classes.iter().map(|class| u64::from(largest(class))).max().unwrap_or(0)
}

/// The queues of the priorities in `mask`, of which each has so many virtual channels.
fn spread(mask: u8, channels: u8) -> u8 {
    let channels = u32::from(channels.clamp(1, 8));
    let of = |priority: u32| (0..channels).map(move |channel| priority * channels + channel);
    let queues = (0..8).filter(|priority| mask & 1 << priority != 0).flat_map(of);
    queues.fold(0u8, |mask, queue| mask | 1u8.checked_shl(queue).unwrap_or(0))
}

/// Refuses flow control that makes no sense, or that could lose packets.
///
/// # Errors
/// What is wrong; where a switch lacks buffer, with what it would need.
pub fn check_pfc(fabric: Fabric<'_>) -> Result<(), ConfigError> {
    let Some(common) = pfc_rules(fabric) else { return Ok(()) };
    let Fabric { topology, switch, .. } = fabric;
    for switch in iter::once(Cow::Borrowed(switch)).chain(switch.others()) {
        let Some(pfc) = &switch.pfc else { continue };
        check_values(&switch, pfc)?;
    }
    let ports = topology.ports();
    for node in topology.hosts..topology.nodes() {
        let switch = switch.at(node);
        let rules = switch.pfc.as_ref().map_or_else(|| common.clone(), |own| common.of(own));
        let links: Vec<(Rate, Time)> = ports
            .of(node)
            .iter()
            .map(|end| topology.cables[end.cable as usize].link)
            .map(|link| (link.rate, link.delay))
            .collect();
        let shortage = |shortage| ConfigError::Lossy { switch: topology.names[node as usize].clone(), shortage };
        check_ports(&rules, &links).map_err(shortage)?;
        check_buffer(&rules, &links, &switch).map_err(shortage)?;
    }
    check_cables(topology, &common)
}

fn check_values(switch: &SwitchConfig, pfc: &Pfc) -> Result<(), ConfigError> {
    let refuse = |what: &str, found: String, allowed: &str| Err(ConfigError::value(what, found, allowed));
    if pfc.priorities == 0 {
        return refuse("switch.pfc.lossless", "empty".into(), "at least one lossless priority");
    }
    if pfc.frame == 0 || u32::from(pfc.frame) > 9_216 {
        return refuse("switch.pfc.frame", format!("{} bytes", pfc.frame), "1 to 9216 bytes");
    }
    if let Buffer::PerPortPackets { packets } = switch.buffer {
        let found = format!("on, with {packets} packets for each port");
        return refuse("switch.pfc", found, "off, or a buffer in bytes: flow control counts bytes");
    }
    if let Threshold::Dynamic { alpha, .. } = pfc.threshold {
        if !matches!(switch.buffer, Buffer::Shared { .. }) {
            return refuse(
                "switch.pfc",
                "dynamic thresholds".into(),
                "static ones, or a buffer that the ports share: dynamic thresholds are parts of what is free there",
            );
        }
        if let Alpha::Fixed(alpha) = alpha
            && !(alpha > 0.0 && alpha <= 1024.0)
        {
            return refuse("switch.pfc.alpha", alpha.to_string(), "above 0 and at most 1024, or \"by-rate\"");
        }
    }
    if let Headroom::RateTimesDelay(factor) = pfc.headroom
        && !(0.0..=1e6).contains(&factor)
    {
        return refuse("switch.pfc.headroom", format!("{factor} x rate x delay"), "a factor from 0 to 1,000,000");
    }
    if pfc.deadlock_after == Some(Time::ZERO) {
        return refuse("switch.pfc.deadlock_after", "zero".into(), "above zero");
    }
    if let Some(expiry) = pfc.expiry
        && (expiry.refresh < LEAST_PERIOD || expiry.refresh >= expiry.after)
    {
        return refuse(
            "switch.pfc.refresh",
            expiry.refresh.to_string(),
            &format!("at least 10ns and below the pause time, {}", expiry.after),
        );
    }
    Ok(())
}

/// Whether a run with strict flow control is lossless unless the simulator has a bug: no cable fails or loses frames,
/// pause frames among them, and none is faster than its rate says.
pub fn is_promised(config: &Config) -> bool {
    let is_strict = config.switch.pfc.as_ref().is_some_and(|pfc| pfc.strict);
    let is_sound = config.topology.cables.iter().all(|cable| cable.link.loss == 0.0);
    is_strict && is_sound && config.link_events.is_empty() && config.wire.rounding == Rounding::Exact
}

/// Every port must have the headroom that it needs, and thresholds in order.
fn check_ports(rules: &Rules, links: &[(Rate, Time)]) -> Result<(), Shortage> {
    for (rate, delay) in links {
        if let Headroom::Chip(chip) = rules.pfc.headroom
            && chip.headroom(*rate, *delay).is_err()
        {
            return Err(Shortage::Unknown { chip, rate: *rate, delay: *delay });
        }
        let limits = rules.limits(*rate, *delay);
        if let Bounds::Static { xoff, xon } = limits.threshold
            && xon >= xoff
        {
            return Err(Shortage::Order { xoff, xon });
        }
        let needed = rules.needed(*rate, *delay);
        if rules.pfc.strict && limits.headroom < needed {
            return Err(Shortage::Headroom { rate: *rate, delay: *delay, found: limits.headroom, needed });
        }
    }
    Ok(())
}

/// The buffer of single ingresses and queues must fit into the switch's buffer.
fn check_buffer(rules: &Rules, links: &[(Rate, Time)], switch: &SwitchConfig) -> Result<(), Shortage> {
    let own = |limits: Limits| limits.own().saturating_mul(rules.count());
    let of = |(rate, delay): &(Rate, Time)| own(rules.limits(*rate, *delay));
    match switch.buffer {
        // A limit in packets was refused before.
        Buffer::Unlimited | Buffer::PerPortPackets { .. } => Ok(()),
        Buffer::PerPort { bytes } => {
            let most = links.iter().map(of).max().unwrap_or(0);
            if most > bytes { Err(Shortage::Port { found: bytes, needed: most }) } else { Ok(()) }
        }
        Buffer::Shared { total, reserve, .. } => {
            let queues = links.len() as u64 * u64::from(switch.priorities);
            let sum = links.iter().map(of).fold(0u64, u64::saturating_add);
            // A dynamic threshold needs shared buffer. Without, each packet beyond the reserve is in the headroom.
            let spare = match rules.pfc.threshold {
                Threshold::Static { .. } => 0,
                Threshold::Dynamic { .. } => rules.frame,
            };
            let needed = sum.saturating_add(spare).saturating_add(reserve.saturating_mul(queues));
            if rules.pfc.strict && needed > total {
                let headroom = links.iter().map(|(rate, delay)| rules.limits(*rate, *delay).headroom);
                let headroom = headroom.fold(0u64, u64::saturating_add).saturating_mul(rules.count());
                Err(Shortage::Buffer { found: total, needed, headroom })
            } else {
                Ok(())
            }
        }
    }
}

/// A pause that expires must be refreshed in time over every cable.
fn check_cables(topology: &Topology, rules: &Rules) -> Result<(), ConfigError> {
    let Some(expiry) = rules.pfc.expiry.filter(|_| rules.pfc.strict) else { return Ok(()) };
    let gap = rules.gap;
    for cable in &topology.cables {
        let wait = Bytes::new(rules.frame + gap + u64::from(rules.pfc.frame) + gap);
        let late = expiry.refresh.saturating_add(cable.link.rate.time_of(wait));
        if late > expiry.after {
            let allowed = format!(
                "at most {}: at {} a refresh can wait for {}, and must come before the pause of {} ends",
                expiry.after.saturating_sub(cable.link.rate.time_of(wait)),
                cable.link.rate,
                cable.link.rate.time_of(wait),
                expiry.after,
            );
            return Err(ConfigError::value("switch.pfc.refresh", expiry.refresh, allowed));
        }
    }
    Ok(())
}
