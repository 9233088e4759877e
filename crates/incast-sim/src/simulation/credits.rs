//! Credit-based flow control of a fabric: its parameters, and whether it can work there.

use super::{
    config::ConfigError,
    lossless::{largest_frame, used_priorities},
    path::Fabric,
};
use crate::{
    fabric::config::Buffer,
    flow_control::{
        config::Credits,
        credits::{BLOCK, MOST_BLOCKS, Rules},
    },
    switch::config::SwitchConfig,
};
use incast_cc::parameters::LEAST_PERIOD;
use incast_units::{Bytes, Time};

/// Resolves the credits of a fabric.
pub fn credit_rules(fabric: Fabric<'_>) -> Option<Rules> {
    let credits = fabric.switch.credits.clone()?;
    Some(Rules {
        lanes: used_priorities(fabric),
        frame: largest_frame(fabric).max(u64::from(credits.frame)),
        gap: u64::from(fabric.wire.gap),
        credits,
    })
}

/// Refuses credits together with what excludes them: priority flow control and trimming.
///
/// # Errors
/// Which of the two.
pub fn check_credits_alone(switch: &SwitchConfig) -> Result<(), ConfigError> {
    let refuse = |found: &str, allowed: &str| Err(ConfigError::value("switch.credits", found, allowed));
    if switch.credits.is_some() && switch.pfc.is_some() {
        return refuse("on, with priority flow control", "on with no switch.pfc, or off");
    }
    if switch.credits.is_some() && switch.trim.is_some() {
        let allowed = "on with no switch.trim, or off: packets that wait for credits are not trimmed";
        return refuse("on, with trimming", allowed);
    }
    Ok(())
}

/// Refuses credits with which some packets could never be sent, or for which switches lack buffer.
///
/// # Errors
/// What is wrong.
pub fn check_credits(fabric: Fabric<'_>) -> Result<(), ConfigError> {
    let Some(rules) = credit_rules(fabric) else { return Ok(()) };
    check_credits_alone(fabric.switch)?;
    check_values(fabric, &rules)?;
    check_buffer(fabric, &rules)
}

fn check_values(fabric: Fabric<'_>, rules: &Rules) -> Result<(), ConfigError> {
    let Credits { buffer, update, frame, refresh, deadlock_after } = &rules.credits;
    let switch = fabric.switch;
    if switch.virtual_channels != 1 {
        return Err(ConfigError::value(
            "switch.credits",
            "on, with virtual channels",
            "off: they are priority flow control's",
        ));
    }
    if switch.agent.reroutes() {
        return Err(ConfigError::value(
            "switch.credits",
            "on, with an agent that holds packets",
            "off, or another agent",
        ));
    }
    let mut buffers = switch.overrides.values().map(|own| own.buffer).chain([switch.buffer]);
    let packets = buffers.find_map(|buffer| match buffer {
        Buffer::PerPortPackets { packets } => Some(packets),
        _ => None,
    });
    if let Some(packets) = packets {
        let found = format!("on, with {packets} packets for each port");
        return Err(ConfigError::value("switch.credits", found, "off, or a buffer in bytes: credits count bytes"));
    }
    if *frame == 0 || *frame > 9_216 {
        return Err(ConfigError::value("switch.credits.frame", format!("{frame} bytes"), "1 to 9216 bytes"));
    }
    if let Some(time) = refresh.filter(|time| *time < LEAST_PERIOD) {
        return Err(ConfigError::value("switch.credits.refresh", time, "at least 10ns"));
    }
    if *deadlock_after == Some(Time::ZERO) {
        return Err(ConfigError::value("switch.credits.deadlock_after", "zero", "above zero"));
    }
    let least = rules.frame.div_ceil(BLOCK) * BLOCK;
    let most = MOST_BLOCKS * BLOCK;
    let (buffer, update) = (buffer.map(Bytes::get), update.map(Bytes::get));
    if let Some(buffer) = buffer
        && !(least..=most).contains(&buffer)
    {
        let allowed = format!("{least} B, one packet of {} B in blocks of 64, to {most} B", rules.frame);
        return Err(ConfigError::value("switch.credits.buffer", format!("{buffer} B"), allowed));
    }
    if let Some(update) = update
        && update > buffer.unwrap_or(most)
    {
        let allowed = format!("at most {} B, the buffer", buffer.unwrap_or(most));
        return Err(ConfigError::value("switch.credits.update", format!("{update} B"), allowed));
    }
    Ok(())
}

/// The buffers of all lanes must fit into the switch's buffer.
fn check_buffer(fabric: Fabric<'_>, rules: &Rules) -> Result<(), ConfigError> {
    let Fabric { topology, switch, .. } = fabric;
    let ports = topology.ports();
    for node in topology.hosts..topology.nodes() {
        let links = ports.of(node).iter().map(|end| &topology.cables[end.cable as usize].link);
        let own = links.map(|link| rules.limits(link.rate, link.delay).bytes().saturating_mul(rules.count()));
        let (needed, buffer, whose) = match switch.at(node).buffer {
            // A limit in packets was refused before.
            Buffer::Unlimited | Buffer::PerPortPackets { .. } => continue,
            Buffer::PerPort { bytes } => (own.max().unwrap_or(0), bytes, "the buffer of a port"),
            Buffer::Shared { total, .. } => (own.fold(0, u64::saturating_add), total, "its buffer"),
        };
        if needed > buffer {
            let (name, lanes) = (&topology.names[node as usize], rules.count());
            let found = format!("{needed} B at {name}, of all ports and {lanes} virtual lanes in use");
            return Err(ConfigError::value("switch.credits.buffer", found, format!("{whose}, {buffer} B")));
        }
    }
    Ok(())
}
