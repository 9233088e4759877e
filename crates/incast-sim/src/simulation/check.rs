//! Which configurations can be run. Errors name values as scenarios do; the readers of a scenario add file and line.

use super::{channels, credits, lossless, scheduling};
use crate::config::{Config, ConfigError, HostConfig};
use incast_units::{Bytes, Time};
use std::{borrow::Cow, iter};

/// The payload of a full packet.
///
/// # Errors
/// It is not allowed.
pub fn check_mtu(bytes: u64) -> Result<u32, ConfigError> {
    match bytes {
        64..=9216 => Ok(bytes as u32),
        _ => Err(ConfigError::value("host.mtu", Bytes::new(bytes), "64B to 9216B")),
    }
}

/// Receivers that repeat requests so often send them faster than a link carries them.
const LEAST_TIMEOUT: Time = Time::from_ns(100);

/// Refuses settings of hosts that are out of range.
///
/// # Errors
/// Which one, and what is allowed.
pub fn check_host(host: &HostConfig) -> Result<(), ConfigError> {
    let refuse =
        |key: &str, found: String, allowed: &str| Err(ConfigError::value(format!("host.{key}"), found, allowed));
    check_mtu(host.mtu.into())?;
    if host.rto_min < LEAST_TIMEOUT {
        return refuse("rto_min", host.rto_min.to_string(), "at least 100ns");
    }
    if !(1..=255).contains(&host.ack_every) {
        return refuse("ack_every", host.ack_every.to_string(), "1 to 255 packets");
    }
    if host.reordering == 0 {
        return refuse("reordering", host.reordering.to_string(), "1 or more packets");
    }
    if host.ack_delay == Time::ZERO && host.ack_every > 1 {
        return refuse("ack_delay", host.ack_delay.to_string(), "a time above 0");
    }
    if host.timer_tick > Time::from_ms(1000) {
        return refuse("timer_tick", host.timer_tick.to_string(), "at most 1 s");
    }
    if host.give_up_after == Some(0) {
        return refuse("give_up_after", 0.to_string(), "1 to 255 expiries");
    }
    Ok(())
}

/// Refuses numbers of priorities and virtual channels that are out of range.
///
/// # Errors
/// Which one, and what is allowed.
pub fn check_priorities(priorities: u8, virtual_channels: u8) -> Result<(), ConfigError> {
    if !(1..=8).contains(&priorities) {
        return Err(ConfigError::value("switch.priorities", priorities, "1 to 8"));
    }
    if !(1..=priorities).contains(&virtual_channels) {
        let allowed = format!("1 to {priorities}: switch.priorities are the queues of a port");
        return Err(ConfigError::value("switch.virtual_channels", virtual_channels, allowed));
    }
    Ok(())
}

/// Refuses configurations that cannot be run.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    let (topology, host, switch) = (&config.topology, &config.host, &config.switch);
    check_host(host)?;
    check_priorities(switch.priorities, switch.virtual_channels)?;
    channels::check_channels(config.into())?;
    if config.classes.len() > 256 {
        return Err(ConfigError::value("the number of flow classes", config.classes.len(), "at most 256"));
    }
    for class in &config.classes {
        let priorities = [Some(class.priority), class.ack_priority, Some(class.notification_priority)];
        if let Some(index) = class.scheduler.filter(|index| usize::from(*index) >= host.schedulers.len()) {
            return Err(ConfigError::value(
                format!("the scheduler of class {}", class.name),
                index,
                "the index of a scheduler",
            ));
        }
        for priority in priorities.into_iter().flatten() {
            if priority >= switch.class_priorities() {
                return Err(ConfigError::value(
                    format!("priority of class {}", class.name),
                    priority,
                    format!("below the {} priorities of the switches", switch.class_priorities()),
                ));
            }
        }
    }
    for flow in &config.flows {
        let known = |host: u32| host < topology.hosts;
        if !known(flow.source) || !known(flow.destination) || flow.source == flow.destination {
            return Err(ConfigError::value(
                "a flow",
                format!("{} to {}", flow.source, flow.destination),
                "two different hosts",
            ));
        }
        if flow.bytes == 0 || flow.bytes.div_ceil(u64::from(host.mtu)) > u64::from(u32::MAX) {
            return Err(ConfigError::value("the size of a flow", flow.bytes, "1 byte to 2^32 packets"));
        }
        if usize::from(flow.class) >= config.classes.len() {
            return Err(ConfigError::value("the class of a flow", flow.class, "the index of a class"));
        }
    }
    if let Some(event) = config.link_events.iter().find(|event| event.cable >= topology.cables.len()) {
        return Err(ConfigError::value("the cable of a link event", event.cable, "the index of a cable"));
    }
    let is_switch = |node: &&u32| (topology.hosts..topology.nodes()).contains(*node);
    if let Some(node) = switch.overrides.keys().find(|node| !is_switch(node)) {
        return Err(ConfigError::value("the node of a switch that differs", node, "a switch"));
    }
    for switch in iter::once(Cow::Borrowed(switch)).chain(switch.others()) {
        scheduling::check_not_ect(&switch)?;
        scheduling::check_trim(&switch)?;
    }
    scheduling::check_scheduler(switch)?;
    for scheduler in &host.schedulers {
        if scheduler.priorities() > switch.priorities {
            return Err(ConfigError::value(
                "the lowest priority that receivers assign",
                scheduler.priorities() - 1,
                format!("below the {} priorities of the switches", switch.priorities),
            ));
        }
    }
    for (what, every) in [
        ("the period of port samples", config.probes.ports.as_ref().map(|ports| ports.0)),
        ("the period of rate samples", config.probes.rates.map(|rates| rates.0)),
    ] {
        if every == Some(Time::ZERO) {
            return Err(ConfigError::value(what, "zero", "at least 1ps"));
        }
    }
    lossless::check_pfc(config.into())?;
    credits::check_credits(config.into())
}
