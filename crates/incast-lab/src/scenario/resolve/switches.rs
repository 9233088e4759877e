//! `[switch]` with `[[switch.override]]` to the simulator's configuration of all switches.

use super::{
    super::document::switch::{Buffer, Override as Table, OwnPfc, Pfc, Switch},
    files::Files,
    group::Group,
    measure::matches,
    switch,
};
use crate::scenario::tree::{
    error::Problem,
    place::{Step, keys},
};
use incast_cc::Path;
use incast_sim::{
    config::{Override, SwitchConfig},
    topology::{Tier, Topology},
};
use std::collections::BTreeMap;

/// Checks and converts the table that a scheme has.
pub fn resolve(
    common: &Switch,
    topology: &Topology,
    path: &Path,
    full_frame: u32,
    files: &mut Files,
) -> Result<SwitchConfig, Problem> {
    let ports = topology.ports();
    // By the tables that match them: the switches.
    let mut alike: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
    if common.overrides.is_empty() {
        alike.insert(Vec::new(), (topology.hosts..topology.nodes()).collect());
    } else {
        let matching = matching(common, topology)?;
        check_used(common, &matching)?;
        for (node, tables) in matching {
            alike.entry(tables).or_default().push(node);
        }
    }
    let mut config = {
        let nodes = alike.remove(&Vec::new()).unwrap_or_default();
        switch::resolve(common, &Group { topology, ports: &ports, nodes }, path, full_frame, files)?
    };
    for (tables, nodes) in alike {
        let mut own = common.clone();
        for index in &tables {
            change(&mut own, &common.overrides[*index])
                .map_err(|problem| problem.at(&keys!["switch", "override", *index]))?;
        }
        let group = Group { topology, ports: &ports, nodes };
        let own = switch::resolve(&own, &group, path, full_frame, files)
            .map_err(|problem| at_giver(problem, &common.overrides, &tables))?;
        let own = Override {
            buffer: own.buffer,
            ecn: own.ecn,
            mark_at: own.mark_at,
            not_ect: own.not_ect,
            pfc: own.pfc.map(|pfc| (pfc.threshold, pfc.headroom)),
        };
        config.overrides.extend(group.nodes.iter().map(|node| (*node, own.clone())));
    }
    Ok(config)
}

/// The switches that each table matches, a line each.
pub fn describe(common: &Switch, topology: &Topology) -> Vec<String> {
    let Ok(matching) = matching(common, topology) else { return Vec::new() };
    let line = |(index, table): (usize, &Table)| {
        let names = matching.iter().filter(|(_, tables)| tables.contains(&index));
        let names: Vec<&str> = names.map(|(node, _)| topology.names[*node as usize].as_str()).collect();
        let which = match names[..] {
            [] => "no switch".into(),
            [one] => one.to_owned(),
            [first, .., last] => format!("{} switches, {first} to {last}", names.len()),
        };
        format!("{:?} ({which}): {}", table.at, given(table).into_iter().map(Key::name).collect::<Vec<_>>().join(", "))
    };
    common.overrides.iter().enumerate().map(line).collect()
}

/// Each switch with the tables that match it.
fn matching(common: &Switch, topology: &Topology) -> Result<Vec<(u32, Vec<usize>)>, Problem> {
    let tiers = topology.tiers();
    let is_at = |pattern: &str, node: u32| {
        let tier = tiers[(node - topology.hosts) as usize];
        match pattern {
            "edge" => tier == Tier::Edge,
            "fabric" => tier == Tier::Fabric,
            pattern => matches(pattern, &topology.names[node as usize]),
        }
    };
    let of = |node| (0..common.overrides.len()).filter(|index| is_at(&common.overrides[*index].at, node)).collect();
    let all: Vec<(u32, Vec<usize>)> = (topology.hosts..topology.nodes()).map(|node| (node, of(node))).collect();
    for (index, table) in common.overrides.iter().enumerate() {
        if all.iter().any(|(_, tables)| tables.contains(&index)) {
            continue;
        }
        let names = &topology.names[topology.hosts as usize..];
        let ends = names.first().into_iter().chain(names.last().filter(|_| names.len() > 1));
        let ends: Vec<&str> = ends.map(String::as_str).collect();
        let allowed = format!("\"edge\", \"fabric\", or names of switches, {}, with * for any part", ends.join(" to "));
        let problem = Problem::value(format!("{:?}, which matches no switch", table.at), allowed);
        return Err(problem.at(&keys!["switch", "override", index, "at"]));
    }
    Ok(all)
}

/// Refuses tables that give nothing, and those of which nothing is left.
fn check_used(common: &Switch, matching: &[(u32, Vec<usize>)]) -> Result<(), Problem> {
    for (index, table) in common.overrides.iter().enumerate() {
        let here = |what: &str| Problem::new(what).at(&keys!["switch", "override", index]);
        let keys = given(table);
        if keys.is_empty() {
            return Err(here("nothing is given besides `at`: chip, profile, buffer, ecn, ecn_at, not_ect or pfc"));
        }
        let again = |tables: &[usize], key: &Key| {
            // A chip brings its buffer.
            let gives = |other: &Table| {
                given(other).contains(key) || key.0 == "buffer" && key.1.is_empty() && other.chip.is_some()
            };
            tables.iter().any(|other| *other > index && gives(&common.overrides[*other]))
        };
        let mut here_too = matching.iter().filter(|(_, tables)| tables.contains(&index));
        if here_too.all(|(_, tables)| keys.iter().all(|key| again(tables, key))) {
            return Err(here("has no effect: later tables give each of its keys again, for each of its switches"));
        }
    }
    Ok(())
}

/// What a table can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(&'static str, &'static str);

impl Key {
    fn name(self) -> String {
        if self.1.is_empty() { self.0.into() } else { format!("{}.{}", self.0, self.1) }
    }
}

fn given(table: &Table) -> Vec<Key> {
    let Buffer { total, alpha, reserve, per_port, per_port_packets } = table.buffer.clone().unwrap_or_default();
    let pfc = table.pfc.clone().unwrap_or_default();
    let all = [
        (Key("chip", ""), table.chip.is_some()),
        (Key("profile", ""), table.profile.is_some()),
        (Key("buffer", ""), total.is_some() || per_port.is_some() || per_port_packets.is_some()),
        (Key("buffer", "alpha"), alpha.is_some()),
        (Key("buffer", "reserve"), reserve.is_some()),
        (Key("ecn", ""), table.ecn.is_some()),
        (Key("ecn_at", ""), table.ecn_at.is_some()),
        (Key("not_ect", ""), table.not_ect.is_some()),
        (Key("pfc", "xoff"), pfc.xoff.is_some()),
        (Key("pfc", "xon"), pfc.xon.is_some()),
        (Key("pfc", "alpha"), pfc.alpha.is_some()),
        (Key("pfc", "reserve"), pfc.reserve.is_some()),
        (Key("pfc", "resume_offset"), pfc.resume_offset.is_some()),
        (Key("pfc", "headroom"), pfc.headroom.is_some()),
    ];
    all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
}

/// Puts what a table gives in place of what is there.
fn change(switch: &mut Switch, table: &Table) -> Result<(), Problem> {
    if let Some(chip) = table.chip {
        switch.chip = Some(chip);
        // Its own buffer, unless the table gives another.
        if let Some(buffer) = &mut switch.buffer {
            *buffer = Buffer { total: None, per_port: None, per_port_packets: None, ..buffer.clone() };
        }
    }
    if let Some(own) = &table.buffer {
        let before = switch.buffer.take().unwrap_or_default();
        switch.buffer = Some(joined(before, own));
    }
    if let Some(ecn) = &table.ecn {
        (switch.ecn, switch.profile) = (ecn.clone(), table.profile);
    }
    switch.ecn_at = table.ecn_at.unwrap_or(switch.ecn_at);
    switch.not_ect = table.not_ect.unwrap_or(switch.not_ect);
    table.pfc.as_ref().map_or(Ok(()), |own| change_pfc(&mut switch.pfc, own))
}

/// A buffer with keys of another; none but these where they are of another kind.
fn joined(before: Buffer, own: &Buffer) -> Buffer {
    let kind = |it: &Buffer| (it.total.is_some(), it.per_port.is_some(), it.per_port_packets.is_some());
    if kind(own) != (false, false, false) && kind(own) != kind(&before) {
        return own.clone();
    }
    Buffer {
        total: own.total.or(before.total),
        alpha: own.alpha.or(before.alpha),
        reserve: own.reserve.or(before.reserve),
        per_port: own.per_port.or(before.per_port),
        per_port_packets: own.per_port_packets.or(before.per_port_packets),
    }
}

fn change_pfc(pfc: &mut Pfc, own: &OwnPfc) -> Result<(), Problem> {
    let OwnPfc { xoff, xon, alpha, reserve, resume_offset, headroom } = own.clone();
    let of_static = [("xoff", xoff.is_some()), ("xon", xon.is_some())];
    let of_dynamic =
        [("alpha", alpha.is_some()), ("reserve", reserve.is_some()), ("resume_offset", resume_offset.is_some())];
    let refuse = |keys: &[(&str, bool)], what: &str| match keys.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err(Problem::new(what).at(&keys!["pfc", *key])),
        None => Ok(()),
    };
    match pfc {
        Pfc::Off => {
            return Err(
                Problem::new("switch.pfc is off: flow control is there at all switches or at none").under("pfc")
            );
        }
        Pfc::Static(table) => {
            refuse(&of_dynamic, "switch.pfc has fixed thresholds, allowed is xoff, xon or headroom")?;
            table.xoff = xoff.unwrap_or(table.xoff);
            table.xon = xon.or(table.xon);
            table.headroom = headroom.unwrap_or(table.headroom);
        }
        Pfc::Dynamic(table) => {
            refuse(
                &of_static,
                "switch.pfc has dynamic thresholds, allowed is alpha, reserve, resume_offset or headroom",
            )?;
            table.alpha = alpha.unwrap_or(table.alpha);
            table.reserve = reserve.unwrap_or(table.reserve);
            table.resume_offset = resume_offset.unwrap_or(table.resume_offset);
            table.headroom = headroom.unwrap_or(table.headroom);
        }
    }
    Ok(())
}

/// A problem of `switch.KEY` at the last of these tables that gives the key, or else where it is.
fn at_giver(mut problem: Problem, overrides: &[Table], tables: &[usize]) -> Problem {
    let Some(Step::Key(key)) = problem.path.get(1) else { return problem };
    let gives = |index: &&usize| given(&overrides[**index]).iter().any(|own| own.0 == key);
    if let Some(index) = tables.iter().rev().find(gives) {
        problem.path.splice(1..1, keys!["override", *index]);
    }
    problem
}
