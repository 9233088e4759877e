//! The configuration of a simulation: that of its components, the flows, and what is measured.

use crate::{
    application::{Application, FlowSpec},
    fabric::format::Format,
    probe::PacketFilter,
    topology::{TooManySets, Topology},
};
pub use crate::{
    fabric::{
        chip::Chip,
        config::{Buffer, Size, Wire, also, also_off},
        trim::config::{Limit, Trim, Victim},
    },
    flow_control::config::{Alpha, Credits, Expiry, Headroom, Pfc, Threshold},
    recovery::ReorderingWindow,
    routing::config::LoadBalancing,
    settings::host::{Echo, HostClock, HostConfig, LostRetransmission, PaceCredit},
    switch::{
        config::{Ecn, MarkAt, NotEct, Override, RedAtRate, SwitchConfig},
        scheduler::config::Scheduling,
    },
};
use incast_cc::{
    law::Recovery,
    registry::{LawParameters, Scheduler, UnderlayParameters},
};
use incast_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One simulation: a fabric, its hosts, the flows, and what to measure.
#[derive(Debug)]
pub struct Config {
    /// Nodes, cables and routes.
    pub topology: Topology,
    /// All switches.
    pub switch: SwitchConfig,
    /// All hosts.
    pub host: HostConfig,
    /// All links.
    pub wire: Wire,
    /// Clocks of hosts, by host; hosts beyond the end have perfect clocks.
    pub clocks: Vec<HostClock>,
    /// Flow classes, by the index that flows name.
    pub classes: Vec<ClassConfig>,
    /// Flows whose start is known beforehand, in any order.
    pub flows: Vec<FlowSpec>,
    /// What opens flows during the run, by host; may be shorter than the number of hosts.
    pub applications: Vec<Option<Box<dyn Application>>>,
    /// Links that go down and up.
    pub link_events: Vec<LinkEvent>,
    /// What to sample.
    pub probes: Probes,
    /// Seed of every random stream.
    pub seed: u64,
    /// The run ends here if flows are still unfinished.
    pub end: Time,
    /// Threads for this one simulation; the results do not depend on it.
    pub threads: usize,
    /// How packets that arrive at one switch at the same picosecond are ordered.
    pub ties: Ties,
}

impl Config {
    /// Gives all classes this scheduler, at hosts of every rate.
    pub fn drive(&mut self, scheduler: Scheduler) {
        self.host.schedulers = vec![scheduler];
        self.classes.iter_mut().for_each(|class| class.scheduler = Some(0));
    }
}

/// Order of what happens at the same picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// By a hash of seed, node, time and port: no port is favoured.
    #[default]
    Seeded,
    /// Lower ports first.
    PortOrder,
    /// Lower ports first, and packets that arrive as a transmission ends wait with those that are there before the link
    /// takes its next packet: the order of simulators with one global list of events, in which an arrival was scheduled
    /// a link's delay earlier. Otherwise the link takes its next packet before newcomers are seen.
    ArrivalsFirst,
}

/// What flows of a class have in common.
#[derive(Clone, Debug)]
pub struct ClassConfig {
    /// Name, for messages.
    pub name: String,
    /// The law, of hosts with the fastest host link.
    pub law: LawParameters,
    /// The law of hosts with links of other rates; rates that are missing here have `law`.
    pub law_at: Vec<(Rate, LawParameters)>,
    /// Sizes of its frames.
    pub format: Format,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Priority of data packets.
    pub priority: u8,
    /// Priority of acknowledgements; `None` for that of the data, as TCP has it.
    pub ack_priority: Option<u8>,
    /// Priority of congestion notifications, from receivers or switches.
    pub notification_priority: u8,
    /// Stage between flow and NIC.
    pub underlay: UnderlayParameters,
    /// Index of its scheduler in [`HostConfig::schedulers`], which classes may share.
    pub scheduler: Option<u8>,
    /// Switches that trim may cut off the payload of its data.
    pub trimmable: bool,
}

impl ClassConfig {
    /// The first class of the configuration with the same stage and priority, by its index.
    pub(super) fn shares_stages_of(&self, config: &Config) -> u8 {
        let stage =
            |class: &Self| (class.underlay.info().map(|info| info.name), class.underlay.values(), class.priority);
        let own = stage(self);
        config.classes.iter().position(|other| stage(other) == own).map_or(0, |index| index as u8)
    }
}

/// A cable that goes down or up. Of events of one cable at one time the first in the list happens first; one that finds
/// the cable so already changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    /// When.
    pub at: Time,
    /// Index into the topology's cables.
    pub cable: usize,
    /// It comes up, or it goes down.
    pub up: bool,
}

/// What is sampled.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Egress ports by (node, port), sampled with this period.
    pub ports: Option<(Time, Vec<(u32, u16)>)>,
    /// Flows of at least so many bytes, sampled with this period.
    pub rates: Option<(Time, u64)>,
    /// Record each drop, mark, timeout and deflection.
    pub events: bool,
    /// Record each step of some packets. With a flow, [`Self::rates`] samples that flow alone.
    pub packets: Option<PacketFilter>,
}

/// Why a simulation cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A value is impossible.
    #[error("{what} is {found}, allowed is {allowed}")]
    Value {
        /// What is wrong.
        what: String,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// Flow control could drop packets.
    #[error("PFC is not lossless at switch {switch}: {shortage}")]
    Lossy {
        /// Name of the switch.
        switch: String,
        /// What it lacks.
        shortage: Shortage,
    },
    /// The routes around links that are down do not fit into tables.
    #[error("the routes from {at} on: {error}")]
    Routes {
        /// Start of the routing epoch.
        at: Time,
        /// Which switch, and what does not fit.
        error: TooManySets,
    },
}

impl ConfigError {
    /// The error of a value.
    pub fn value(what: impl Into<String>, found: impl ToString, allowed: impl ToString) -> Self {
        Self::Value { what: what.into(), found: found.to_string(), allowed: allowed.to_string() }
    }
}

/// What a switch lacks to be lossless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Shortage {
    /// A port's headroom is too small.
    #[error(
        "the headroom of a port of {rate} with a cable of {delay} is {found} B for each priority, \
         and {needed} B can still arrive after it has decided to pause"
    )]
    Headroom {
        /// Rate of the port.
        rate: Rate,
        /// Propagation delay of its cable.
        delay: Time,
        /// Its headroom in bytes.
        found: u64,
        /// What is needed.
        needed: u64,
    },
    /// A chip's vendor has no headroom for a port.
    #[error("{chip}: {}, or a size in bytes", chip.headroom(*rate, *delay).err().unwrap_or_default())]
    Unknown {
        /// The chip.
        chip: Chip,
        /// Rate of the port.
        rate: Rate,
        /// Propagation delay of its cable.
        delay: Time,
    },
    /// The shared buffer is too small.
    #[error(
        "its buffer is {found} B, and what its ports need of their own comes to {needed} B, {headroom} B of that headroom"
    )]
    Buffer {
        /// Bytes of the buffer.
        found: u64,
        /// Reserves or static thresholds, and headroom, of all ports and lossless priorities.
        needed: u64,
        /// The headroom of them.
        headroom: u64,
    },
    /// The buffer of a port is too small.
    #[error("the buffer of a port is {found} B, and its lossless priorities need {needed} B")]
    Port {
        /// Bytes of the buffer.
        found: u64,
        /// Threshold and headroom of all lossless priorities.
        needed: u64,
    },
    /// The threshold to resume is not below the threshold to pause.
    #[error("xon is {xon} B, allowed is below xoff, {xoff} B")]
    Order {
        /// Upper threshold.
        xoff: u64,
        /// Lower threshold.
        xon: u64,
    },
}
