//! Routes as operators name them, and what has become of those that were changed.

use crate::{
    Tool,
    failure::{Failure, Outcome},
    journal::{self, Journal, State},
    netlink::{Route, Routes, Setting as _},
};
use serde::Serialize;
use std::{collections::BTreeMap, fs, path::Path};

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
///
/// # Errors
/// There is none of this name.
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

/// Routes that `enable` has changed, in this network namespace.
#[derive(Debug, Default, Serialize)]
pub struct Enabled {
    /// Those that have what it gave them.
    pub routes: usize,
    /// Those that are gone, or have been given another setting since.
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
pub fn enabled<T: Tool>() -> Outcome<Enabled> {
    let journal = Journal::open::<T>()?;
    let mut enabled = Enabled::default();
    if journal.entries().is_empty() {
        return Ok(enabled);
    }
    let (registered, all) = (T::registered()?, Routes::open()?.all()?);
    for entry in journal.entries() {
        let Some(before) = entry.before() else { continue };
        match journal::state::<T::Setting>(entry, &before, &all, &registered) {
            _ if entry.due || entry.pending => enabled.due.push(describe(&before)),
            State::Drifted => enabled.drifted.push(describe(&before)),
            State::Kept => enabled.routes += 1,
            State::Gone | State::Other => enabled.others += 1,
        }
    }
    Ok(enabled)
}

/// Whether a route has what is the tool's.
pub fn is_own<T: Tool>(route: &Route) -> bool {
    route.is_unicast() && route.setting::<T::Setting>().name().is_some_and(|name| T::is_own(&name))
}

/// How many routes have what is the tool's; `None` where the kernel does not say.
pub fn count<T: Tool>() -> Option<usize> {
    let routes = Routes::open().and_then(|mut kernel| kernel.all()).ok()?;
    Some(routes.iter().filter(|route| is_own::<T>(route)).count())
}
