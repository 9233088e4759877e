//! Which connections use Marimo: those over a route, or all of the host.
//!
//! A route names its congestion control, so that a rollout can begin with one destination. Open connections are not touched.
//! `enable` does all that it is asked for or nothing, and keeps in a [journal](crate::journal) what was there; after whatever
//! happens to it, [`rollback`](crate::rollback) puts that back.

use crate::{
    arguments,
    bpf::registered,
    failure::{Failure, Outcome, While},
    journal::{self, Journal, State},
    layout::NAME,
    lock,
    netlink::{Control, Key, Prefix, Route, Routes},
    output::{complain, say},
    rollback, view,
};
use rustix::net::netdevice::index_to_name;
use serde::Serialize;
use std::{collections::BTreeMap, fs, os::unix::net::UnixDatagram, path::Path};

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
fn table(text: &str) -> Outcome<u32> {
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

/// New connections over some routes, or all of them, use Marimo.
pub fn enable(arguments: &arguments::Enable) -> Outcome {
    let prefixes = arguments
        .routes
        .iter()
        .map(|text| Prefix::parse(text).map(|prefixes| (text, prefixes)))
        .collect::<Outcome<Vec<_>>>()?;
    let table = table(&arguments.table)?;
    view::root()?;
    let _lock = lock::hold()?;
    rollback::give_back_due();
    let registered = registered()?;
    let name = match &arguments.name {
        Some(name) => name.as_str(),
        None => NAMES
            .into_iter()
            .find(|name| registered.iter().any(|known| known == name))
            .ok_or_else(|| Failure::failed("neither bpf_marimo nor tcp_marimo is loaded (marimoctl load, modprobe)"))?,
    };
    if !registered.iter().any(|known| known == name) {
        return Err(Failure::input(format!("--name: found {name:?}, allowed is one of {}", registered.join(", "))));
    }
    // All routes are looked up before the first is changed.
    let mut kernel = Routes::open()?;
    let all = kernel.all()?;
    let mut found: Vec<&Route> = Vec::new();
    for (text, prefixes) in &prefixes {
        let leads_there = |route: &&Route| {
            route.is_unicast() && route.table() == table && prefixes.iter().any(|prefix| route.leads_to(prefix))
        };
        let before = found.len();
        found.extend(all.iter().filter(leads_there));
        if found.len() == before {
            return Err(Failure::input(format!("found no route {text} in table {}", arguments.table)));
        }
    }
    found.dedup();
    for route in &found {
        check(route, &all)?;
    }
    let mut journal = Journal::open()?;
    let kept = journal.entries().to_vec();
    // To warn is no reason to fail.
    let learned = kernel.learned().unwrap_or_default();
    let mut forgotten = Vec::new();
    for route in &found {
        journal.add(route, describe(route), name, arguments.watch, &registered);
        let copies = learned.iter().filter(|copy| route.covers(copy));
        let mtus = copies.filter_map(|copy| Some((copy.describe(), copy.learned_mtu()?)));
        forgotten.extend(mtus.map(|(host, mtu)| format!("{}: the path to {host} has MTU {mtu}", describe(route))));
    }
    journal.save()?;

    let mut tried: Vec<&Route> = Vec::new();
    let outcome = found.iter().try_for_each(|route| {
        let control = Control { name: Some(name.to_owned()), ..route.control() };
        tried.push(route);
        kernel.replace(&route.with(&control)).during(format!("{}: the kernel refuses", describe(route)))
    });
    let outcome = outcome.and_then(|()| match arguments.default {
        true => fs::write(DEFAULT, name).during(format!("cannot write {DEFAULT}")),
        false => Ok(()),
    });
    if let Err(failure) = outcome {
        let mut said = vec![failure.to_string()];
        // The one that was refused, too: of several next hops the kernel may have taken away some.
        let now = kernel.all()?;
        for route in tried.iter().rev() {
            if now.iter().any(|found| found.key() == route.key() && found.is_as(route)) {
                continue;
            }
            if let Err(error) = kernel.restore(&route.with(&route.control())) {
                said.push(format!("{} is left changed: {error}; {}", describe(route), rollback::LATER));
                journal.set_due(route);
            }
        }
        if said.len() == 1 {
            journal.write(kept)?;
            said.push("nothing was changed".into());
        } else {
            journal.save()?;
        }
        return Err(Failure::failed(said.join("\n")));
    }
    // All is done before any of it is said: a reader may go away.
    for route in found {
        say!("{}: congestion control {name}, before: {}", describe(route), in_words(&route.control()));
    }
    if arguments.default {
        say!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    }
    for line in forgotten {
        complain!(
            "{line}, which the kernel has forgotten with this change: where ICMP does not arrive, open connections stall"
        );
    }
    Ok(())
}

/// How many routes have a key: of more than one the kernel would replace any.
pub fn of_key(key: &Key, all: &[Route]) -> usize {
    all.iter().filter(|route| route.is_unicast() && route.key() == *key).count()
}

/// Refuses a route that cannot be changed without harm.
fn check(route: &Route, all: &[Route]) -> Outcome {
    if of_key(&route.key(), all) > 1 {
        return Err(Failure::input(format!(
            "{}: there are several routes of this destination and metric, of which the kernel would replace another; give each a \
             metric of its own",
            describe(route)
        )));
    }
    let Some(index) = route.advertised_on() else { return Ok(()) };
    let device = index_to_name(UnixDatagram::unbound().during("cannot ask for a device")?, index).unwrap_or_default();
    let accepts = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{device}/accept_ra"));
    if accepts.is_ok_and(|accepts| accepts.trim() == "0") {
        // A daemon's.
        return Ok(());
    }
    Err(Failure::input(format!(
        "{}: the kernel keeps this route by router advertisements, and takes none any more when somebody has changed it; \
         configure it (accept_ra = 0), or choose --default. 0.0.0.0/0 is the default route of IPv4 alone",
        describe(route)
    )))
}

/// Routes that `enable` has changed, in this network namespace.
#[derive(Debug, Default, Serialize)]
pub struct Enabled {
    /// Those that are as it has left them, or gone.
    pub routes: usize,
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
            _ if entry.due => enabled.due.push(describe(&before)),
            State::Drifted => enabled.drifted.push(describe(&before)),
            _ => enabled.routes += 1,
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
