//! `[host]` to the simulator's configuration.

use crate::scenario::document::host::Host;
use crate::scenario::resolve::{clocks, refusal};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::Path;
use incast_sim::{
    checks::{check_host, check_mtu},
    config::{HostConfig, LoadBalancing, ReorderingWindow},
    topology::Topology,
};

/// Payload of a full packet, checked.
pub fn mtu(host: &Host) -> Result<u32, Problem> {
    check_mtu(host.mtu.get()).map_err(|error| refusal(error, &keys!["host"]))
}

/// Checks and converts.
pub fn resolve(
    host: &Host,
    balancing: LoadBalancing,
    network: &Path,
    topology: &Topology,
) -> Result<HostConfig, Problem> {
    clocks::check(&host.clock, topology).map_err(|problem| problem.at(&keys!["host", "clock"]))?;
    let config = HostConfig {
        mtu: mtu(host)?,
        rto_min: host.rto_min,
        ack_every: host.ack_every,
        ack_delay: host.ack_delay.unwrap_or(network.base_rtt),
        max_ack_delay: host.max_ack_delay,
        quick_acks: host.quick_acks,
        echo: host.echo,
        timer_tick: host.timer_tick,
        handshake: host.handshake,
        response_delay: host.response_delay,
        notification_delay: host.notification_delay,
        control_first: host.control_first,
        pace_credit: host.pace_credit,
        reordering: host.reordering.unwrap_or_else(|| default_reordering(balancing, network)),
        reordering_window: host.reordering_window.unwrap_or(if balancing.sprays() {
            ReorderingWindow::Srtt
        } else {
            ReorderingWindow::Adaptive
        }),
        prr: host.prr,
        lost_retransmission: host.lost_retransmission,
        schedulers: Vec::new(),
        give_up_after: None,
        path_penalty: host.path_penalty.unwrap_or(true),
    };
    check_host(&config).map_err(|error| refusal(error, &keys!["host"]))?;
    Ok(config)
}

/// RFC 6675's three packets; with spraying one BDP of packets, as all in flight may overtake one another.
pub fn default_reordering(balancing: LoadBalancing, network: &Path) -> u32 {
    if !balancing.sprays() {
        return 3;
    }
    let packets = network.bdp().get().div_ceil(u64::from(network.mss.max(1)));
    u32::try_from(packets).unwrap_or(u32::MAX).max(3)
}
