//! Which parts a switch has. The packet path is generic over them and compiled for each kind of switch.

use super::config::{NotEct, SwitchConfig};
use crate::routing::config::LoadBalancing;
use crate::settings::Settings;

/// What is known of a switch when a run starts. `false` means that the part is not there, `true` that it may be.
pub(super) trait Features {
    /// Flow control or virtual channels: queues can be paused.
    const FLOW_CONTROL: bool;
    /// An in-switch agent, or active queue management that drops.
    const AGENT: bool;
    /// Packet trimming.
    const TRIM: bool;
    /// Packets carry INT, or ports are sampled.
    const TELEMETRY: bool;
    /// Departures may have to be events; without, they are always lazy (see [`super::Switch::drain`]).
    const EVENTS: bool;
    /// Load balancing other than ECMP: the port does not depend on the flow's hash alone, or the hash changes on the
    /// way.
    const SPRAYING: bool;
    /// Schedulers other than strict priority.
    const SCHEDULER: bool;
    /// Packets whose ports are looked up before their turn. With events between packets there are few in a row.
    const AHEAD: usize = if Self::EVENTS || Self::SPRAYING { 1 } else { MOST_AHEAD };
}

/// The largest [`Features::AHEAD`]: memory takes as long as eight packets take that are in the cache.
pub(super) const MOST_AHEAD: usize = 8;

/// Only forwards, by ECMP.
#[derive(Debug)]
pub(super) struct Forwarding;

impl Features for Forwarding {
    const FLOW_CONTROL: bool = false;
    const AGENT: bool = false;
    const TRIM: bool = false;
    const TELEMETRY: bool = false;
    const EVENTS: bool = false;
    const SPRAYING: bool = false;
    const SCHEDULER: bool = false;
}

/// Forwards by any load balancing and any scheduler, and may trim.
#[derive(Debug)]
pub(super) struct Trimming;

impl Features for Trimming {
    const FLOW_CONTROL: bool = false;
    const AGENT: bool = false;
    const TRIM: bool = true;
    const TELEMETRY: bool = false;
    const EVENTS: bool = false;
    const SPRAYING: bool = true;
    const SCHEDULER: bool = true;
}

/// Forwards by ECMP; there may be flow control, and departures may be events.
#[derive(Debug)]
pub(super) struct Lossless;

impl Features for Lossless {
    const FLOW_CONTROL: bool = true;
    const AGENT: bool = false;
    const TRIM: bool = false;
    const TELEMETRY: bool = false;
    const EVENTS: bool = true;
    const SPRAYING: bool = false;
    const SCHEDULER: bool = false;
}

/// Everything: right for every switch.
#[derive(Debug)]
pub(super) struct All;

impl Features for All {
    const FLOW_CONTROL: bool = true;
    const AGENT: bool = true;
    const TRIM: bool = true;
    const TELEMETRY: bool = true;
    const EVENTS: bool = true;
    const SPRAYING: bool = true;
    const SCHEDULER: bool = true;
}

/// The instance of the packet path that a switch uses for packets and window ends. Other events are rare and use
/// [`All`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Forwarding,
    Trimming,
    Lossless,
    All,
}

impl Kind {
    /// The smallest instance that is right for a switch. `always_lazy`: its departures never have to be events.
    pub fn of(settings: &Settings, switch: &SwitchConfig, always_lazy: bool, is_sampled: bool) -> Self {
        let needs_all = switch.virtual_channels > 1
            || !switch.agent.is_none()
            || switch.not_ect == NotEct::Drop
            || switch.telemetry
            || is_sampled;
        let pauses = !always_lazy || settings.pfc.is_some() || settings.credits.is_some();
        let forwards =
            switch.load_balancing == LoadBalancing::Ecmp && switch.trim.is_none() && switch.scheduler.dwrr().is_none();
        match (needs_all, pauses, forwards) {
            (false, false, true) => Self::Forwarding,
            (false, false, false) => Self::Trimming,
            (false, true, true) => Self::Lossless,
            _ => Self::All,
        }
    }
}
