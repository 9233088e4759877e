//! Which connections use Marimo: those over routes that name it, or all of a network namespace.

use crate::{bpf, layout::NAME};
use hostctl::{
    Tool,
    failure::{Outcome, While},
    netlink::{Metrics, Setting},
};
use std::fs;

/// Congestion control of connections whose route names none.
pub const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Marimo's names: of the BPF form and of the module.
pub const NAMES: [&str; 2] = [NAME, "marimo"];
/// The attribute of a route's metrics, which libc does not name.
const RTAX_CC_ALGO: u16 = 16;

/// A route's congestion control, and whether applications may choose another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    name: Option<String>,
    lock: bool,
}

impl Setting for Control {
    const KIND: &'static str = "congestion control";

    fn read(metrics: &Metrics) -> Self {
        let name = metrics.get(RTAX_CC_ALGO).map(|name| {
            let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
            String::from_utf8_lossy(&name[..end]).into_owned()
        });
        Self { name, lock: metrics.is_locked(RTAX_CC_ALGO) }
    }

    fn write(&self, metrics: &mut Metrics) {
        metrics.set(RTAX_CC_ALGO, self.name.as_ref().map(|name| format!("{name}\0").into_bytes()));
        metrics.lock(RTAX_CC_ALGO, self.lock);
    }

    fn name(&self) -> Option<String> {
        self.name.clone()
    }

    fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    fn in_words(&self) -> String {
        let name = self.name.as_deref().unwrap_or("none");
        if self.lock { format!("lock {name}") } else { name.to_owned() }
    }
}

/// This tool.
pub struct Marimo;

impl Tool for Marimo {
    type Setting = Control;
    const PROGRAM: &'static str = env!("CARGO_PKG_NAME");
    const SUBJECT: &'static str = "Marimo";
    const RUN: &'static str = "/run/marimo";
    const STATE: &'static str = "/var/lib/marimo";
    const INSTEAD: &'static str = ", or choose --default";

    fn registered() -> Outcome<Vec<String>> {
        bpf::registered()
    }

    fn is_own(name: &str) -> bool {
        NAMES.contains(&name)
    }
}

/// The default of this network namespace.
pub fn default() -> Outcome<String> {
    Ok(fs::read_to_string(DEFAULT).during(format!("cannot read {DEFAULT}"))?.trim().to_owned())
}
