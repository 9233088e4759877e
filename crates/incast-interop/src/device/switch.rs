//! A kind of switch of a scenario as devices are told of it: numbers of bytes for each rate of its ports.

use super::{
    Refused, Wanted,
    ports::{Class, Port},
    rounding::percent,
};
use incast_cc::marking::Marking;
use incast_lab::scenario::tree::{error::list, nearest::nearest};
use incast_sim::{
    Fabric, base_rtt,
    config::{LoadBalancing, MarkAt, NotEct, SwitchConfig},
    flow_control::pfc::Limits,
    pfc_rules, used_priorities,
};
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
    let found = kinds.into_iter().find(|kind| kind.names.iter().any(|other| other == name));
    found.ok_or_else(|| {
        let switches = &wanted.config.topology.names[wanted.config.topology.hosts as usize..];
        let word = |name: &str| name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
        // Of leaf99 the nearest name has another number, which is no better a guess than any.
        let near = nearest(name, switches.iter().map(String::as_str)).filter(|near| word(near) != word(name));
        let mean = near.map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
        let (mut all, most) = (ranges(switches), 10);
        if all.len() > most {
            let more = all.split_off(most).len();
            all.push(format!("{more} more"));
        }
        let all = all.join(", ");
        Refused(vec![format!("--switch {name}: there is no such switch, allowed is {all}{mean}")])
    })
}

/// Names in the order in which they are; those that count up from one to the next as a range, "leaf0 to leaf47".
fn ranges(names: &[String]) -> Vec<String> {
    let parts = |name: &str| {
        let word = name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        (name[..word].to_owned(), name[word..].parse::<u64>().ok())
    };
    let follows = |a: &String, b: &String| match (parts(a), parts(b)) {
        ((a, Some(first)), (b, Some(second))) => a == b && first.checked_add(1) == Some(second),
        _ => false,
    };
    let range = |names: &[String]| match names {
        [first, .., last] => format!("{first} to {last}"),
        names => names.concat(),
    };
    names.chunk_by(follows).map(range).collect()
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

    /// Whether packets of a class are kept.
    pub fn is_lossless(&self, class: &Class) -> bool {
        self.lossless & 1 << class.priority != 0
    }

    /// What no device of this kind does, whatever it is told.
    pub fn inexpressible(&self, wanted: &Wanted) -> Vec<String> {
        let own = &self.own;
        let mut refused = Vec::new();
        if let Some(agent) = own.agent.info() {
            refused.push(format!("switch.agent: no such switch runs {}", agent.name));
        }
        if own.credits.is_some() {
            refused.push("switch.credits: Ethernet has no credits".into());
        }
        if own.virtual_channels > 1 {
            refused
                .push("switch.virtual_channels: a queue is chosen at the ingress, and not by the way behind it".into());
        }
        if own.load_balancing != LoadBalancing::Ecmp {
            refused.push("switch.load_balancing: allowed is \"ecmp\"; others are no setting of queues".into());
        }
        if let Some(class) = wanted.config.classes.iter().find(|class| class.law.info().telemetry()) {
            refused.push(format!("scheme {}: {} needs telemetry in its packets", wanted.scheme, class.law.info().name));
        }
        refused
    }

    /// Of classes that are as they are by default: which lossless queues have DSCPs that others use.
    pub fn network_control(&self, classes: &[Class]) -> Option<String> {
        let is_used = |class: &&Class| self.is_lossless(class) && class.dscp.is_some_and(|dscp| dscp >= 48);
        let found: Vec<String> =
            classes.iter().filter(is_used).filter_map(|class| class.dscp.map(|dscp| dscp.to_string())).collect();
        (!found.is_empty()).then(|| {
            format!(
                "DSCP {} is of a lossless queue, and DSCP 48 and 56 are network control's (CS6, CS7): give --queues",
                found.join(" and ")
            )
        })
    }

    /// The device's ports of each rate.
    pub fn assigned<'a>(&'a self, ports: &'a [Port], refused: &mut Vec<String>) -> Vec<(&'a Ports, Vec<&'a Port>)> {
        let of = |kind: &'a Ports| (kind, ports.iter().filter(|port| port.rate == kind.rate).collect::<Vec<_>>());
        let device: Vec<_> = self.ports.iter().map(of).collect();
        let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
        ports.iter().for_each(|port| *rates.entry(port.rate.bps()).or_default() += 1);
        let counts: Vec<String> =
            rates.into_iter().map(|(bps, count)| format!("{count} of {}", Rate::from_bps(bps))).collect();
        let given = format!("given: {}", counts.join(", "));
        for (kind, found) in device.iter().filter(|(kind, found)| found.len() < kind.count) {
            let (have, rate) = (found.len(), kind.rate);
            let name = &self.names[0];
            refused.push(format!("--ports: {have} ports of {rate}, and {name} has {} of them; {given}", kind.count));
        }
        device
    }

    /// The device's ports of other rates.
    pub fn not_touched(&self, ports: &[Port]) -> Option<String> {
        let is_other = |port: &&Port| self.ports.iter().all(|kind| kind.rate != port.rate);
        let unused: Vec<&str> = ports.iter().filter(is_other).map(|port| port.name.as_str()).collect();
        let (name, list) = (&self.names[0], unused.join(" "));
        (!unused.is_empty()).then(|| format!("not touched, as {name} has no port of their rate: {list}"))
    }

    /// What writers of commands need: a device whose ports are enough, and what commands do not show.
    ///
    /// # Errors
    /// What a switch cannot be told.
    pub fn tested<'a>(&'a self, wanted: &Wanted, ports: &'a [Port], classes: &[Class]) -> Result<Tested<'a>, Refused> {
        let mut refused = self.inexpressible(wanted);
        if self.own.trim.is_some() {
            refused.push("switch.trim: allowed is --for sonic, whose tables have it".into());
        }
        let device = self.assigned(ports, &mut refused);
        if classes.iter().any(|class| class.dscp.is_none()) {
            refused.push("--queues is missing: which DSCP and queue the priority has, such as 0=3:26".into());
        }
        if !refused.is_empty() {
            return Err(Refused(refused));
        }
        let mut notes: Vec<String> = self.not_touched(ports).into_iter().collect();
        let left = [
            (true, "switch.buffer: what a queue may hold"),
            (self.lossless != 0, "switch.pfc: when a neighbour is paused, and the headroom"),
            (self.own.mark_at == MarkAt::Dequeue, "switch.ecn_at"),
        ];
        let left = left.into_iter().filter(|(is_left, _)| *is_left);
        notes.extend(left.map(|(_, what)| format!("not among the lines, as devices differ: {what}")));
        for kind in &self.ports {
            if let Marking::Red { p, .. } = kind.marking
                && let (percent, true) = percent(p)
            {
                let taken = f64::from(percent) / 100.0;
                let note =
                    format!("switch.ecn.p: {p} in the scenario, {taken} on the device (--as-rounded writes it back)");
                notes.push(note);
            }
        }
        notes.dedup();
        if self.ports.iter().any(|kind| kind.marking != Marking::Off) && self.own.not_ect == NotEct::Pass {
            notes.push("what is not ECN-capable passes in the scenario; devices may drop it where others are marked: simulate not_ect = \"drop\"".into());
        }
        notes.push("hosts must send with these DSCPs: sockets' IP_TOS, or their NIC's setting".into());
        Ok(Tested { device, notes })
    }
}

/// A device whose ports are enough.
#[derive(Debug)]
pub struct Tested<'a> {
    /// Its ports, by rate.
    pub device: Vec<(&'a Ports, Vec<&'a Port>)>,
    /// What the commands do not show.
    pub notes: Vec<String>,
}

/// `25Gbps` as a part of a name.
pub fn short(rate: Rate) -> String {
    rate.to_string().trim_end_matches("bps").to_lowercase().replace('.', "_")
}

/// The classes of a switch's priorities, the highest first: as given, or priority p is queue 7 − p with the class selector
/// of that number as DSCP (RFC 2474). A single priority has all packets, in queue 0, or in 3 where it is lossless.
///
/// # Errors
/// A priority that is not in use, one that lacks, or a queue or DSCP that is given twice.
pub fn classes(switch: &Switch, given: &[Class]) -> Result<Vec<Class>, String> {
    let mut classes = match switch.priorities[..] {
        _ if !given.is_empty() => given.to_vec(),
        [priority] => vec![Class { priority, tc: if switch.lossless == 0 { 0 } else { 3 }, dscp: None }],
        ref all => all.iter().map(|p| Class { priority: *p, tc: 7 - p, dscp: Some(8 * (7 - p)) }).collect(),
    };
    classes.sort_by_key(|class| class.priority);
    let priorities: Vec<u8> = classes.iter().map(|class| class.priority).collect();
    if priorities != switch.priorities {
        let used: Vec<String> = switch.priorities.iter().map(u8::to_string).collect();
        return Err(format!("--queues: each priority that the scheme uses is given once: {}", used.join(", ")));
    }
    for (index, class) in classes.iter().enumerate() {
        if classes[..index].iter().any(|other| other.tc == class.tc || other.dscp == class.dscp) {
            return Err(format!("--queues: queue {} or its DSCP is given twice", class.tc));
        }
    }
    let apart = classes.last().is_some_and(|class| switch.is_lossless(class) && class.dscp.is_some());
    if classes.iter().any(|class| class.tc == 0 && (apart || switch.is_lossless(class))) {
        return Err(
            "--queues: queue 0 and its priority group are for what is not lossless, and for what is in no class".into(),
        );
    }
    // Queues that are strict go in the order of their numbers, before those that take turns.
    let strict = switch.own.scheduler.dwrr().map_or(8, |dwrr| dwrr.strict);
    let above = classes.iter().filter(|class| class.priority < strict);
    if above
        .flat_map(|above| classes.iter().map(move |other| (above, other)))
        .any(|(above, other)| above.priority < other.priority && above.tc < other.tc)
    {
        return Err("--queues: a higher strict priority of the scenario (0 is the highest) needs a higher queue".into());
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(priorities: &[u8], lossless: u8) -> Switch {
        let (names, ports) = (vec!["s0".into()], Vec::new());
        Switch { names, own: SwitchConfig::plain(), ports, priorities: priorities.to_vec(), lossless }
    }

    #[test]
    fn priorities_have_queues_of_their_own() {
        let class = |priority, tc, dscp| Class { priority, tc, dscp };
        assert_eq!(classes(&switch(&[2], 0), &[]), Ok(vec![class(2, 0, None)]));
        assert_eq!(classes(&switch(&[0], 1), &[]), Ok(vec![class(0, 3, None)]));
        assert_eq!(classes(&switch(&[0, 1], 0), &[]), Ok(vec![class(0, 7, Some(56)), class(1, 6, Some(48))]));
        let given = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a class")).collect::<Vec<Class>>();
        let good = classes(&switch(&[0, 1], 2), &given(&["1=3:26", "0=6:48"]));
        assert_eq!(good, Ok(vec![class(0, 6, Some(48)), class(1, 3, Some(26))]));
        for (wrong, expected) in [
            (given(&["1=3:26"]), "each priority that the scheme uses is given once: 0, 1"),
            (given(&["1=3:26", "0=3:48"]), "given twice"),
            (given(&["1=3:26", "0=6:26"]), "given twice"),
            (given(&["1=6:26", "0=3:48"]), "needs a higher queue"),
            (given(&["1=0:0", "0=3:48"]), "queue 0 and its priority group"),
        ] {
            let found = classes(&switch(&[0, 1], 2), &wrong).expect_err("refused");
            assert!(found.contains(expected), "{found}");
        }
        for wrong in ["1", "1=3", "8=3:26", "1=8:26", "1=3:64", "a=b:c"] {
            assert!(wrong.parse::<Class>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_that_count_up_are_a_range() {
        let names = ["leaf0", "leaf1", "leaf2", "spine0", "edge", "edge7", "edge9"].map(str::to_owned);
        assert_eq!(ranges(&names), ["leaf0 to leaf2", "spine0", "edge", "edge7", "edge9"]);
    }
}
