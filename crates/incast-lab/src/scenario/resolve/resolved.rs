//! A scheme as the simulator runs it.

use super::nominal::Nominal;
use crate::scenario::document::{host::Host, switch::Switch};
use incast_cc::{Path, feedback::CnpContent};
use incast_sim::{
    config::{ClassConfig, HostConfig, SwitchConfig, Ties, Wire},
    topology::Topology,
};

/// A scheme at one grid point, ready to be simulated.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Name of the row.
    pub name: String,
    /// All switches.
    pub switch: SwitchConfig,
    /// All hosts.
    pub host: HostConfig,
    /// Classes by index.
    pub classes: Vec<ClassConfig>,
    /// How frames lie on links.
    pub wire: Wire,
    /// Order of simultaneous arrivals.
    pub ties: Ties,
    /// The network as the scheme's own law is given it.
    pub path: Path,
    /// The nominal load, where a workload has one.
    pub nominal: Option<Nominal>,
    /// The switch and host tables as merged.
    pub merged: (Switch, Host),
    /// Keys of the host table that are written, and not filled in by a profile.
    pub given_of_host: Vec<String>,
    /// What the scheme changes.
    pub footnotes: Vec<String>,
}

impl Resolved {
    /// Whether receivers or switches send notifications.
    pub fn has_notifications(&self) -> bool {
        self.receivers_notify() || self.switch.agent.effects().notifies != CnpContent::Nothing
    }

    /// Whether receivers of a class send notifications.
    pub fn receivers_notify(&self) -> bool {
        self.classes.iter().any(|class| class.law.transport().notification_interval.is_some())
    }

    /// Whether it is so at some switches.
    pub fn any_switch(&self, topology: &Topology, is_so: impl Fn(&SwitchConfig) -> bool) -> bool {
        self.switch.kinds(topology.hosts..topology.nodes()).iter().any(|(switch, _)| is_so(switch))
    }
}
