//! A kind of switch of a scenario as devices are told of it: numbers of bytes for each rate of its ports.

use super::{Refused, Wanted};
use incast_cc::marking::Marking;
use incast_lab::scenario::tree::{error::list, nearest::nearest};
use incast_sim::{Fabric, base_rtt, config::SwitchConfig, flow_control::pfc::Limits, pfc_rules, used_priorities};
use incast_units::{Rate, Time};
use std::collections::BTreeMap;

/// Switches with the same configuration and as many ports of each rate.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Their names.
    pub names: Vec<String>,
    /// Their configuration.
    pub own: SwitchConfig,
    /// Ports by rate, the slowest first.
    pub ports: Vec<Ports>,
    /// Priorities that packets have, the highest (0) first.
    pub priorities: Vec<u8>,
    /// Those of them that are lossless, one bit each.
    pub lossless: u8,
}

/// Ports of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Ports {
    /// Their rate.
    pub rate: Rate,
    /// How many there are.
    pub count: usize,
    /// The longest of their cables, as a delay.
    pub delay: Time,
    /// When they mark.
    pub marking: Marking,
    /// When they pause their neighbours, with the longest of the cables.
    pub limits: Option<Limits>,
}

/// All kinds of switches, in the order of their first ones.
pub fn kinds(wanted: &Wanted) -> Vec<Switch> {
    let config = &wanted.config;
    let fabric = Fabric::from(config);
    let (topology, used) = (&config.topology, used_priorities(fabric));
    let (rules, links, base_rtt) = (pfc_rules(fabric), topology.ports(), base_rtt(fabric));
    let mut kinds: Vec<Switch> = Vec::new();
    for (own, nodes) in config.switch.kinds(topology.hosts..topology.nodes()) {
        let rules = rules.as_ref().zip(own.pfc.as_ref()).map(|(rules, own)| rules.of(own));
        let first = kinds.len();
        for node in nodes {
            let mut by_rate: BTreeMap<u64, (usize, Time)> = BTreeMap::new();
            for link in links.of(node).iter().map(|end| &topology.cables[end.cable as usize].link) {
                let (count, delay) = by_rate.entry(link.rate.bps()).or_default();
                *count += 1;
                *delay = link.delay.max(*delay);
            }
            let ports = by_rate.into_iter().map(|(bps, (count, delay))| {
                let rate = Rate::from_bps(bps);
                let marking = own.ecn.marking(rate, base_rtt);
                let limits = rules.as_ref().map(|rules| rules.limits(rate, delay));
                Ports { rate, count, delay, marking, limits }
            });
            let ports: Vec<Ports> = ports.collect();
            let name = topology.names[node as usize].clone();
            match kinds[first..].iter_mut().find(|kind| kind.ports == ports) {
                Some(kind) => kind.names.push(name),
                None => kinds.push(Switch {
                    names: vec![name],
                    own: own.clone().into_owned(),
                    ports,
                    priorities: (0..8).filter(|priority| used & 1 << priority != 0).collect(),
                    lossless: rules.as_ref().map_or(0, |rules| rules.pfc.priorities & used),
                }),
            }
        }
    }
    kinds
}

/// The kind of a switch, or the only one.
///
/// # Errors
/// There is no such switch, or several kinds and no name.
pub fn kind_of(wanted: &Wanted, name: Option<&str>) -> Result<Switch, Refused> {
    let mut kinds = kinds(wanted);
    let Some(name) = name else {
        if kinds.len() == 1 {
            return Ok(kinds.remove(0));
        }
        let firsts: Vec<&str> = kinds.iter().map(|kind| kind.names[0].as_str()).collect();
        return Err(Refused(vec![format!(
            "--switch is missing: switches are of {} kinds, allowed is {}",
            kinds.len(),
            list(&firsts, false)
        )]));
    };
    let names = wanted.config.topology.names.iter().skip(wanted.config.topology.hosts as usize).map(String::as_str);
    let mean = nearest(name, names).map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default();
    let found = kinds.into_iter().find(|kind| kind.names.iter().any(|other| other == name));
    found.ok_or_else(|| Refused(vec![format!("--switch {name}: there is no such switch{mean}")]))
}

impl Switch {
    /// The switches in a few words.
    pub fn describe(&self) -> String {
        match &self.names[..] {
            [one] => one.clone(),
            [first, .., last] => format!("{first} to {last} ({} switches)", self.names.len()),
            [] => String::new(),
        }
    }

    /// Bytes of the buffer, where all ports share one; and alpha and the reserve of each queue.
    ///
    /// # Errors
    /// Another kind of buffer.
    pub fn shared_buffer(&self) -> Result<(u64, f64, u64), String> {
        use incast_sim::config::Buffer;
        match self.own.buffer {
            Buffer::Shared { total, alpha: (numerator, denominator), reserve } => {
                Ok((total, f64::from(numerator) / f64::from(denominator), reserve))
            }
            Buffer::Unlimited => Err("switch.buffer is unlimited: give `total`, the buffer that the device has".into()),
            Buffer::PerPort { .. } => {
                Err("switch.buffer.per_port: devices share a buffer among their ports: give `total`".into())
            }
            Buffer::PerPortPackets { .. } => {
                Err("switch.buffer.per_port_packets: devices count bytes, and share a buffer: give `total`".into())
            }
        }
    }
}
