//! Which connections use Marimo: those over a route, or all of the host; and back.
//!
//! A route names its congestion control, so that a rollout can begin with one destination. Neither command touches open
//! connections. `enable` does all that it is asked for or nothing, and keeps in a [journal](crate::journal) what was there; after
//! whatever happens to it, `rollback` puts that back.

use crate::{
    arguments,
    bpf::registered,
    failure::{Failure, Outcome, While},
    journal::Journal,
    layout::NAME,
    lock,
    netlink::{Control, Key, Prefix, Route, Routes},
    output::say,
};
use std::{collections::BTreeMap, fs, path::Path};

/// Congestion control of connections whose route names none.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
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
fn table(text: &str) -> Outcome<u32> {
    let tables = tables();
    let named = || tables.iter().find(|(_, name)| *name == text).map(|(number, _)| *number);
    text.parse().ok().or_else(named).ok_or_else(|| {
        let names: Vec<&str> = tables.values().map(String::as_str).collect();
        Failure::input(format!("--table: found {text:?}, allowed is a number or one of {}", names.join(", ")))
    })
}

/// A route as messages have it.
fn describe(route: &Route) -> String {
    let number = route.table();
    let table = tables().remove(&number).unwrap_or_else(|| number.to_string());
    format!("{} table {table}", route.describe())
}

fn in_words(control: &Control) -> String {
    let name = control.name.as_deref().unwrap_or("none");
    if control.lock { format!("lock {name}") } else { name.to_owned() }
}

/// New connections over some routes, or all of them, use Marimo.
pub fn enable(arguments: &arguments::Enable) -> Outcome {
    let prefixes = arguments
        .routes
        .iter()
        .map(|text| Prefix::parse(text).map(|prefixes| (text, prefixes)))
        .collect::<Outcome<Vec<_>>>()?;
    let table = table(&arguments.table)?;
    crate::load::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    let name =
        match &arguments.name {
            Some(name) => name.as_str(),
            None => NAMES.into_iter().find(|name| registered.iter().any(|known| known == name)).ok_or_else(
                || Failure::failed("neither bpf_marimo nor tcp_marimo is loaded (marimoctl load, modprobe)"),
            )?,
        };
    if !registered.iter().any(|known| known == name) {
        return Err(Failure::input(format!(
            "--name: found {name:?}, allowed is one of {}",
            registered.join(", ")
        )));
    }
    // All routes are looked up before the first is changed.
    let mut kernel = Routes::open()?;
    let all = kernel.all()?;
    let mut found: Vec<&Route> = Vec::new();
    for (text, prefixes) in &prefixes {
        let leads_there = |route: &&Route| {
            route.is_unicast()
                && route.table() == table
                && prefixes.iter().any(|prefix| route.leads_to(prefix))
        };
        let before = found.len();
        found.extend(all.iter().filter(leads_there));
        if found.len() == before {
            return Err(Failure::input(format!("found no route {text} in table {}", arguments.table)));
        }
    }
    found.dedup();
    let same = |key: &Key| all.iter().filter(|route| route.is_unicast() && route.key() == *key).count();
    if let Some(twice) = found.iter().find(|route| same(&route.key()) > 1) {
        return Err(Failure::input(format!(
            "{}: there are several routes of this destination and metric, of which the kernel would replace another; give each a \
             metric of its own",
            describe(twice)
        )));
    }
    let mut journal = Journal::open()?;
    let kept = journal.entries().to_vec();
    found.iter().for_each(|route| journal.add(route, name));
    journal.save()?;

    let mut changed: Vec<&Route> = Vec::new();
    let outcome = found.iter().try_for_each(|route| {
        let control = Control { name: Some(name.to_owned()), ..route.control() };
        kernel.replace(&route.with(&control)).during(format!("{}: the kernel refuses", describe(route)))?;
        changed.push(route);
        Ok(())
    });
    let outcome = outcome.and_then(|()| match arguments.default {
        true => fs::write(DEFAULT, name).during(format!("cannot write {DEFAULT}")),
        false => Ok(()),
    });
    if let Err(failure) = outcome {
        let mut left = Vec::new();
        for route in changed.iter().rev() {
            if let Err(error) = kernel.replace(&route.with(&route.control())) {
                left.push(format!("; {} is left changed: {error}", describe(route)));
            }
        }
        if left.is_empty() {
            journal.write(kept)?;
        }
        return Err(match failure {
            Failure::Failed(message) => {
                Failure::Failed(format!("{message}; nothing was changed{}", left.concat()))
            }
            bad_input => bad_input,
        });
    }
    for route in found {
        say!("{}: congestion control {name}, before: {}", describe(route), in_words(&route.control()));
    }
    if arguments.default {
        say!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    }
    Ok(())
}

/// New connections use what they used before Marimo: routes name what they named, and it is not the default.
pub fn rollback(arguments: &arguments::Rollback) -> Outcome {
    crate::load::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    let to = &arguments.to;
    if NAMES.contains(&to.as_str()) || !registered.contains(to) {
        return Err(Failure::input(format!(
            "--to: found {to:?}, allowed is one of {}",
            registered
                .iter()
                .filter(|name| !NAMES.contains(&name.as_str()))
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    let mut nothing = true;
    if NAMES.contains(&default()?.as_str()) {
        fs::write(DEFAULT, to).during(format!("cannot write {DEFAULT}"))?;
        say!("sysctl -w net.ipv4.tcp_congestion_control={to}");
        nothing = false;
    }
    let mut kernel = Routes::open()?;
    let mut journal = Journal::open()?;
    let all = kernel.all()?;
    let mut failures = Vec::new();
    let mut kept = Vec::new();
    for entry in journal.entries() {
        let Some(before) = entry.before() else { continue };
        let (key, control) = (before.key(), before.control());
        match all.iter().find(|route| route.is_unicast() && route.key() == key) {
            None => say!("{}: is gone", describe(&before)),
            Some(now) if now.control() == control => {}
            Some(now) if now.control().name.as_ref() != Some(&entry.name) => {
                say!("{}: left with {}, which was set since", describe(now), in_words(&now.control()));
            }
            // Only this of it: others may have changed the rest since.
            Some(now) => match kernel.replace(&now.with(&control)) {
                Ok(()) => say!("{}: congestion control {}, as before", describe(now), in_words(&control)),
                Err(error) => {
                    failures.push(format!("{}: the kernel refuses: {error}", describe(now)));
                    kept.push(entry.clone());
                    continue;
                }
            },
        }
        nothing = false;
    }
    // What names Marimo without us.
    for route in all.iter().filter(|route| names_marimo(route) && journal.entry(&route.key()).is_none()) {
        match kernel.replace(&route.with(&Control::default())) {
            Ok(()) => say!("{}: no congestion control", describe(route)),
            Err(error) => failures.push(format!("{}: the kernel refuses: {error}", describe(route))),
        }
        nothing = false;
    }
    journal.write(kept)?;
    if !failures.is_empty() {
        return Err(Failure::failed(failures.join("\n")));
    }
    if nothing {
        say!("nothing to undo: no route names Marimo, and the default is another");
    }
    Ok(())
}

fn names_marimo(route: &Route) -> bool {
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
