//! What every kind of topology checks before it is built.

use super::{Link, TopologyError};
use incast_units::{Rate, Time};

/// Most nodes of a topology.
pub const MAX_NODES: u32 = 1 << 21;
/// Most cables of a topology.
pub const MAX_CABLES: u32 = 1 << 22;
/// Most ports of a node.
pub const MAX_PORTS: u32 = 65_535;
/// Slowest link: slower ones would overflow simulated time.
pub const MIN_RATE: Rate = Rate::from_bps(1_000);
/// Fastest link: on faster ones the transmission time of the smallest frame would be below the clock's resolution.
pub const MAX_RATE: Rate = Rate::from_gbps(100_000);
/// Longest propagation delay of a link.
pub const MAX_DELAY: Time = Time::from_ms(10_000);

/// The keys of one link of a kind, for messages.
pub(super) struct LinkKeys {
    pub rate: &'static str,
    pub delay: &'static str,
    pub loss: &'static str,
}

/// [`LinkKeys`] of a key such as `"host_link"`.
macro_rules! link_keys {
    ($key:literal) => {
        $crate::topology::check::LinkKeys {
            rate: concat!($key, ".rate"),
            delay: concat!($key, ".delay"),
            loss: concat!($key, ".loss"),
        }
    };
}
pub(super) use link_keys;

/// What is wrong with a link, and what is allowed: the name of the field, the value and the rule.
pub(super) enum LinkFault {
    Rate(Rate),
    Delay(Time),
    Loss(f64),
}

impl LinkFault {
    pub fn of(link: &Link) -> Option<Self> {
        if !(MIN_RATE..=MAX_RATE).contains(&link.rate) {
            Some(Self::Rate(link.rate))
        } else if link.delay > MAX_DELAY {
            Some(Self::Delay(link.delay))
        } else if !(0.0..1.0).contains(&link.loss) {
            Some(Self::Loss(link.loss))
        } else {
            None
        }
    }

    pub fn found(&self) -> String {
        match self {
            Self::Rate(rate) => rate.to_string(),
            Self::Delay(delay) => delay.to_string(),
            Self::Loss(loss) => loss.to_string(),
        }
    }

    pub fn allowed(&self) -> String {
        match self {
            Self::Rate(_) => format!("a rate of {MIN_RATE} to {MAX_RATE}"),
            Self::Delay(_) => format!("a delay of at most {MAX_DELAY}"),
            Self::Loss(_) => "a probability of at least 0 and below 1".to_owned(),
        }
    }
}

/// Refuses a link that cannot be simulated.
pub(super) fn link(keys: LinkKeys, link: &Link) -> Result<(), TopologyError> {
    match LinkFault::of(link) {
        None => Ok(()),
        Some(fault) => {
            let key = match fault {
                LinkFault::Rate(_) => keys.rate,
                LinkFault::Delay(_) => keys.delay,
                LinkFault::Loss(_) => keys.loss,
            };
            Err(TopologyError::Value { key, found: fault.found(), allowed: fault.allowed() })
        }
    }
}

/// Refuses counts below `least`.
pub(super) fn at_least(least: u32, counts: &[(&'static str, u32)]) -> Result<(), TopologyError> {
    match counts.iter().find(|(_, count)| *count < least) {
        None => Ok(()),
        Some(&(key, count)) => {
            Err(TopologyError::Value { key, found: count.to_string(), allowed: format!("at least {least}") })
        }
    }
}

/// How large a topology would be.
#[derive(Default)]
pub(super) struct Size {
    pub nodes: u128,
    pub cables: u128,
    /// Ports of the switch that has the most.
    pub ports: u128,
}

impl Size {
    /// Refuses what is too large, with an error at `key`.
    pub fn check(&self, key: &'static str, found: u32) -> Result<(), TopologyError> {
        let limits = [
            (self.nodes, MAX_NODES, "nodes"),
            (self.ports, MAX_PORTS, "ports in one switch"),
            (self.cables, MAX_CABLES, "cables"),
        ];
        match limits.into_iter().find(|(size, limit, _)| *size > u128::from(*limit)) {
            None => Ok(()),
            Some((size, limit, what)) => Err(TopologyError::Value {
                key,
                found: found.to_string(),
                allowed: format!("what comes to at most {limit} {what}, not {size}"),
            }),
        }
    }
}
