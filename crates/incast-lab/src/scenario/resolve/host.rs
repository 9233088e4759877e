//! `[host]` to what the simulator wants.

use crate::scenario::document::host::Host;
use crate::scenario::resolve::clocks;
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::Path;
use incast_sim::config::{HostConfig, LoadBalancing};
use incast_units::Time;

/// Payload of a full packet, checked.
pub fn mtu(host: &Host) -> Result<u32, Problem> {
    match host.mtu.get() {
        bytes @ 64..=9216 => Ok(bytes as u32),
        _ => Err(Problem::value(host.mtu, "64B to 9216B").at(&keys!["host", "mtu"])),
    }
}

/// Checks and converts.
pub fn resolve(
    host: &Host,
    balancing: LoadBalancing,
    network: &Path,
    hosts: u32,
) -> Result<HostConfig, Problem> {
    let at = |key: &str, found: &dyn std::fmt::Display, allowed: &str| {
        Err(Problem::value(found, allowed).at(&keys!["host", key]))
    };
    clocks::check(&host.clock, hosts).map_err(|problem| problem.at(&keys!["host", "clock"]))?;
    if host.rto_min == Time::ZERO {
        return at("rto_min", &host.rto_min, "a time above 0");
    }
    if !(1..=255).contains(&host.ack_every) {
        return at("ack_every", &host.ack_every, "1 to 255 packets");
    }
    if host.reordering == Some(0) {
        return at("reordering", &0, "1 or more packets");
    }
    if host.ack_delay.is_some_and(|delay| delay == Time::ZERO) && host.ack_every > 1 {
        return at("ack_delay", &"0ps", "a time above 0");
    }
    if host.timer_tick > Time::from_ms(1000) {
        return at("timer_tick", &host.timer_tick, "at most 1 s");
    }
    Ok(HostConfig {
        mtu: mtu(host)?,
        rto_min: host.rto_min,
        ack_every: host.ack_every,
        ack_delay: host.ack_delay.unwrap_or(network.base_rtt),
        quick_acks: host.quick_acks,
        echo: host.echo,
        timer_tick: host.timer_tick,
        handshake: host.handshake,
        response_delay: host.response_delay,
        notification_delay: host.notification_delay,
        control_first: host.control_first,
        reordering: host.reordering.unwrap_or_else(|| default_reordering(balancing, network)),
        schedulers: Vec::new(),
        give_up_after: None,
        path_penalty: host.path_penalty.unwrap_or(true),
    })
}

/// RFC 6675's three packets; with spraying one BDP of packets, as all in flight may overtake one another.
pub fn default_reordering(balancing: LoadBalancing, network: &Path) -> u32 {
    match balancing {
        LoadBalancing::Ecmp | LoadBalancing::SourceRouted => 3,
        LoadBalancing::Spray | LoadBalancing::SprayPermutation => {
            let packets = network.bdp().get().div_ceil(u64::from(network.mss.max(1)));
            u32::try_from(packets).unwrap_or(u32::MAX).max(3)
        }
    }
}
