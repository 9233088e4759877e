//! Virtual channels: whether a fabric has enough for its routes, and the route data of switches.

use super::{
    config::{Config, ConfigError},
    path::Fabric,
};
use crate::{
    fabric::config::Buffer,
    routing::{Detours, SwitchOrder, config::LoadBalancing},
    switch::config::SwitchConfig,
    topology::Rule,
};
use incast_units::Time;
use std::sync::Arc;

/// Refuses settings that do not go together with virtual channels, or with an agent that holds packets. Refuses
/// fabrics, too, whose usual paths take more virtual channels than there are, where that could cause a deadlock.
///
/// # Errors
/// What is wrong, and how many channels there would have to be.
pub fn check_channels(fabric: Fabric<'_>) -> Result<(), ConfigError> {
    let Fabric { topology, switch, .. } = fabric;
    if switch.agent.reroutes() {
        if switch.load_balancing != LoadBalancing::Ecmp {
            let found = format!("{:?}, with an agent that keeps flows in order", switch.load_balancing);
            let allowed = "ECMP: the others reorder packets, or let senders choose the path";
            return Err(ConfigError::value("switch.load_balancing", found, allowed));
        }
        let buffers = switch.overrides.values().map(|own| &own.buffer).chain([&switch.buffer]);
        if buffers.into_iter().any(|buffer| matches!(buffer, Buffer::PerPortPackets { .. })) {
            let allowed = "a buffer in bytes: what an agent holds waits at no port";
            return Err(ConfigError::value("switch.buffer", "a number of packets for each port", allowed));
        }
    }
    if switch.virtual_channels != 1 {
        check_numbers(fabric)?;
    }
    if too_few_matter(switch) {
        let order = SwitchOrder::new(topology, &topology.ports());
        let detours = Detours::new(topology, &order, &topology.rules, &|_| false, false);
        is_enough(switch, &detours, Time::ZERO)?;
    }
    Ok(())
}

/// Refuses settings that do not go together with several virtual channels.
fn check_numbers(fabric: Fabric<'_>) -> Result<(), ConfigError> {
    let Fabric { switch, host, classes, .. } = fabric;
    let refuse = |allowed: &str| Err(ConfigError::value("switch.virtual_channels", switch.virtual_channels, allowed));
    if switch.trim.is_some() {
        return refuse("1 where switches trim: what is trimmed is not paused");
    }
    let assigns = host.schedulers.iter().any(|scheduler| scheduler.priorities() > 0)
        || classes.iter().any(|class| class.law.capabilities().priorities);
    if assigns {
        return refuse("1 with laws that assign the priority of each packet");
    }
    Ok(())
}

/// Whether too few channels are an error: packets could wait for each other in a cycle that the channels are meant to
/// break, or that only deflection makes possible.
fn too_few_matter(switch: &SwitchConfig) -> bool {
    switch.virtual_channels > 1 || switch.pfc.is_some() && switch.agent.reroutes()
}

fn is_enough(switch: &SwitchConfig, detours: &Detours, from: Time) -> Result<(), ConfigError> {
    let (has, needs) = (switch.virtual_channels, detours.channels());
    if !too_few_matter(switch) || needs <= has {
        return Ok(());
    }
    let since = if from > Time::ZERO { format!(" from {from} on") } else { String::new() };
    let allowed = format!(
        "{needs} or more: the usual paths of this fabric{since} take as many, and on fewer packets could wait for each other in a cycle"
    );
    Err(ConfigError::value("switch.virtual_channels", has, &allowed))
}

/// The routes of the epoch that begins at a time, as virtual channels or an agent need them; else `None`.
pub fn detours(
    config: &Config,
    order: &SwitchOrder,
    at: Time,
    rules: &[Rule],
    down: &dyn Fn(usize) -> bool,
) -> Result<Option<Arc<Detours>>, ConfigError> {
    let (topology, switch) = (&config.topology, &config.switch);
    if switch.virtual_channels == 1 && !switch.agent.reroutes() {
        return Ok(None);
    }
    let detours = Detours::new(topology, order, rules, down, switch.agent.reroutes());
    is_enough(switch, &detours, at)?;
    Ok(Some(Arc::new(detours)))
}
