//! Configuration of real switches and hosts: what a scheme needs of them, as text that they take.
//!
//! - [`sonic`]: tables of CONFIG_DB for one switch. [`eos`], [`nxos`]: commands for one switch.
//! - [`linux`]: sysctl, routes, links and modules of a host. [`mlnx`]: DCQCN and flow control of NVIDIA's NICs.
//! - [`rounded`]: the scenario with the values that a device takes, so that what is applied is what was simulated.

pub mod database;
pub mod eos;
pub mod linux;
mod marimo;
pub mod mlnx;
pub mod nxos;
mod onramp;
pub mod ports;
mod queues;
pub mod rounded;
pub mod rounding;
pub mod sonic;
pub mod switch;
mod trimming;

use incast_cc::{Path, parameters::Raw};
use incast_lab::scenario::{
    Run,
    tree::{error::list, nearest::nearest},
};
use incast_sim::{Config, config::ClassConfig};
use std::fmt;
use thiserror::Error;

/// For whom text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// [`sonic`].
    Sonic,
    /// [`eos`].
    Eos,
    /// [`nxos`].
    Nxos,
    /// [`linux`].
    Linux,
    /// [`mlnx`].
    Mlnx,
}

/// What a scheme runs with, at one grid point.
#[derive(Debug)]
pub struct Wanted {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme.
    pub scheme: String,
    /// What the simulator runs, without flows.
    pub config: Config,
    /// The class whose hosts are meant, where classes have hosts of their own.
    pub class: Option<String>,
    /// The network as the scheme's own law is given it.
    pub path: Path,
    /// The scenario says what a packet carries, rather than leave it to the default.
    pub gives_mtu: bool,
}

impl Wanted {
    /// That of a run.
    pub fn of(run: &Run) -> Self {
        let (scenario, scheme) = (run.scenario.clone(), run.scheme.clone());
        Self { scenario, scheme, config: run.without_flows(), class: None, path: run.path(), gives_mtu: true }
    }

    /// For hosts of one class.
    ///
    /// # Errors
    /// There is no such class.
    pub fn for_class(&mut self, name: &str) -> Result<(), Refused> {
        let names: Vec<&str> = self.config.classes.iter().map(|class| class.name.as_str()).collect();
        if !names.contains(&name) {
            let near = nearest(name, names.iter().copied());
            let mean = near.map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
            let allowed = list(&names, false);
            return Err(Refused(vec![format!("--class {name}: there is no such class, allowed is {allowed}{mean}")]));
        }
        self.class = Some(name.to_owned());
        Ok(())
    }

    /// Whether the hosts that are meant have connections of a class.
    fn is_for(&self, class: &ClassConfig) -> bool {
        self.class.as_ref().is_none_or(|name| *name == class.name)
    }

    /// The classes of the hosts that are meant.
    fn classes(&self) -> Vec<&ClassConfig> {
        self.config.classes.iter().filter(|class| self.is_for(class)).collect()
    }

    /// Where the text comes from, for its first line.
    fn origin(&self) -> String {
        format!("Scenario {}, scheme {}: written by incast config.", self.scenario, self.scheme)
    }
}

/// The value of a parameter of a class's law.
fn value(class: &ClassConfig, key: &str) -> Option<Raw> {
    class.law.values().into_iter().find(|(name, _)| *name == key).map(|(_, raw)| raw)
}

fn number(class: &ClassConfig, key: &str) -> Option<f64> {
    match value(class, key)? {
        Raw::Float(number) => Some(number),
        Raw::Integer(number) => Some(number as f64),
        _ => None,
    }
}

fn text(class: &ClassConfig, key: &str) -> Option<String> {
    match value(class, key)? {
        Raw::Text(text) => Some(text),
        _ => None,
    }
}

/// What a device cannot be told, one or more sentences.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// What there is to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Name and text of each file.
    pub files: Vec<(&'static str, String)>,
    /// Why it is so, what was rounded, and what is left to do: a sentence each.
    pub notes: Vec<String>,
}
