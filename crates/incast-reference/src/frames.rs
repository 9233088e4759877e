//! How long frames are, and the base RTT of full ones.

use super::Ps;
use incast_cc::law::Framing;
use incast_sim::{Config, base_path, config::ClassConfig};

/// Frame bytes of a data packet: Ethernet, IPv4, then TCP with timestamps, or UDP, BTH and ICRC.
pub fn data_bytes(class: &ClassConfig, payload: u32) -> u32 {
    let header = match class.law.info().framing {
        Framing::Tcp => 18 + 20 + 32,
        Framing::RoceV2 => 18 + 20 + 8 + 16,
        Framing::RoceV2Int => 18 + 20 + 8 + 16 + 42,
        Framing::InfiniBand => return payload + 8 + 12 + 4 + 2,
    };
    (payload + header).max(64)
}

/// Frame bytes of a control packet, without SACK blocks: with AETH in RoCE and InfiniBand.
pub fn control_bytes(class: &ClassConfig) -> u32 {
    match class.law.info().framing {
        Framing::Tcp => 18 + 20 + 32,
        Framing::RoceV2 => 18 + 20 + 8 + 16 + 4,
        Framing::RoceV2Int => 18 + 20 + 8 + 16 + 4 + 42,
        Framing::InfiniBand => 8 + 12 + 4 + 4 + 2,
    }
}

/// The longest base RTT of all classes.
pub fn base_rtt(config: &Config) -> Ps {
    let path = |class: &ClassConfig| base_path(&config.topology, config.host.mtu, class.law.info().framing);
    config.classes.iter().map(|class| path(class).base_rtt.ps()).max().unwrap_or(0)
}
