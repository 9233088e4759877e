//! Which connections use Marimo: those over routes that name it, or all of a network namespace.

use crate::{
    bpf::registered,
    failure::{Failure, Outcome, While},
    journal::{self, Journal, State},
    layout::NAME,
    netlink::{Control, Route, Routes},
};
use serde::Serialize;
use std::{collections::BTreeMap, fs, path::Path};

/// Congestion control of connections whose route names none.
pub const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Marimo's names: of the BPF form and of the module.
pub const NAMES: [&str; 2] = [NAME, "marimo"];
/// Where names of tables are, the first that is there; and more of them, one file each.
const TABLES: [&str; 2] = ["/etc/iproute2/rt_tables", "/usr/share/iproute2/rt_tables"];
const MORE_TABLES: &str = "/etc/iproute2/rt_tables.d";

/// Names of tables by their numbers, as iproute2 knows them.
fn tables() -> BTreeMap<u32, String> {
    let mut tables: BTreeMap<u32, String> =
        [(253, "default"), (254, "main"), (255, "local")].map(|(number, name)| (number, name.into())).into();
    let more = fs::read_dir(MORE_TABLES).into_iter().flatten().flatten().map(|entry| entry.path());
    let first = TABLES.iter().map(Path::new).find(|path| path.is_file());
    for path in first.map(Path::to_owned).into_iter().chain(more) {
        let text = fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            if let (Some(Ok(number)), Some(name)) = (words.next().map(str::parse), words.next()) {
                tables.insert(number, name.to_owned());
            }
        }
    }
    tables
}

/// The number of a table that is typed.
pub fn table(text: &str) -> Outcome<u32> {
    let tables = tables();
    let named = || tables.iter().find(|(_, name)| *name == text).map(|(number, _)| *number);
    text.parse().ok().or_else(named).ok_or_else(|| {
        let names: Vec<&str> = tables.values().map(String::as_str).collect();
        Failure::input(format!("--table: found {text:?}, allowed is a number or one of {}", names.join(", ")))
    })
}

/// A route as messages have it.
pub fn describe(route: &Route) -> String {
    let number = route.table();
    let table = tables().remove(&number).unwrap_or_else(|| number.to_string());
    format!("{} table {table}", route.describe())
}

pub fn in_words(control: &Control) -> String {
    let name = control.name.as_deref().unwrap_or("none");
    if control.lock { format!("lock {name}") } else { name.to_owned() }
}

/// Routes that `enable` has changed, in this network namespace.
#[derive(Debug, Default, Serialize)]
pub struct Enabled {
    /// Those that have what it gave them.
    pub routes: usize,
    /// Those that are gone, or have been given another congestion control since.
    pub others: usize,
    /// Those that have come back without.
    pub drifted: Vec<String>,
    /// Those that the kernel would not give back what they had before.
    pub due: Vec<String>,
}

/// By the journal and the kernel.
///
/// # Errors
/// Neither tells.
pub fn enabled() -> Outcome<Enabled> {
    let journal = Journal::open()?;
    let mut enabled = Enabled::default();
    if journal.entries().is_empty() {
        return Ok(enabled);
    }
    let (registered, all) = (registered()?, Routes::open()?.all()?);
    for entry in journal.entries() {
        let Some(before) = entry.before() else { continue };
        match journal::state(entry, &before, &all, &registered) {
            _ if entry.due || entry.pending => enabled.due.push(describe(&before)),
            State::Drifted => enabled.drifted.push(describe(&before)),
            State::Kept => enabled.routes += 1,
            State::Gone | State::Other => enabled.others += 1,
        }
    }
    Ok(enabled)
}

pub fn names_marimo(route: &Route) -> bool {
    route.is_unicast() && route.control().name.is_some_and(|name| NAMES.contains(&name.as_str()))
}

/// The default of this network namespace.
pub fn default() -> Outcome<String> {
    Ok(fs::read_to_string(DEFAULT).during(format!("cannot read {DEFAULT}"))?.trim().to_owned())
}

/// How many routes name Marimo; `None` where the kernel does not say.
pub fn count() -> Option<usize> {
    let routes = Routes::open().and_then(|mut kernel| kernel.all()).ok()?;
    Some(routes.iter().filter(|route| names_marimo(route)).count())
}
