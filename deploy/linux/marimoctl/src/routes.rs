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
use rustix::net::netdevice::index_to_name;
use std::{collections::BTreeMap, fs, os::unix::net::UnixDatagram, path::Path};

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
    found.iter().for_each(|route| journal.add(route, name, &registered));
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
        for route in tried.iter().rev() {
            if let Err(error) = kernel.restore(&route.with(&route.control())) {
                said.push(format!("{} is left changed (marimoctl rollback): {error}", describe(route)));
            }
        }
        if said.len() == 1 {
            journal.write(kept)?;
            said.push("nothing was changed".into());
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
    Ok(())
}

/// How many routes have a key: of more than one the kernel would replace any.
fn of_key(key: &Key, all: &[Route]) -> usize {
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

/// New connections use what they used before Marimo: routes name what they named, and it is not the default.
pub fn rollback(arguments: &arguments::Rollback) -> Outcome {
    crate::load::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    let to = &arguments.to;
    let is_default = NAMES.contains(&default()?.as_str());
    if NAMES.contains(&to.as_str()) || (is_default && !registered.contains(to)) {
        return Err(Failure::input(format!(
            "--to: found {to:?}, allowed is one of {}",
            registered.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    // Whatever fails, the rest goes on; and all is done before any of it is said: a reader may go away.
    let (mut said, mut failures, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    if is_default {
        match fs::write(DEFAULT, to) {
            Ok(()) => said.push(format!("sysctl -w net.ipv4.tcp_congestion_control={to}")),
            Err(error) => failures.push(format!("cannot write {DEFAULT}: {error}")),
        }
    }
    let mut kernel = Routes::open()?;
    let all = kernel.all()?;
    let journal = Journal::open();
    let entries = match &journal {
        Ok(journal) => journal.entries().to_vec(),
        Err(failure) => {
            failures.push(failure.to_string());
            Vec::new()
        }
    };
    let mut known = Vec::new();
    for entry in entries {
        let Some(before) = entry.before() else {
            failures.push("an entry of the journal cannot be read".into());
            kept.push(entry);
            continue;
        };
        let (key, control) = (before.key(), before.control());
        known.push(key.clone());
        let several = of_key(&key, &all) > 1;
        let outcome = match all.iter().find(|route| route.is_unicast() && route.key() == key) {
            None => Ok(Some(format!("{}: is gone", describe(&before)))),
            Some(_) if several => Err(format!("{}: there are several routes of its metric now", describe(&before))),
            Some(now) if entry.is_ours(now, &registered) => match kernel.replace(&now.with(&control)) {
                // Only this of it: others may have changed the rest since.
                Ok(()) => Ok(Some(format!("{}: congestion control {}, as before", describe(now), in_words(&control)))),
                Err(error) => Err(format!("{}: the kernel refuses: {error}", describe(now))),
            },
            Some(now) if now.control() == control => Ok(None),
            Some(now) => {
                let now_has = in_words(&now.control());
                Ok(Some(format!("{}: left with {now_has}, which was set since", describe(now))))
            }
        };
        match outcome {
            Ok(line) => said.extend(line),
            Err(line) => {
                failures.push(line);
                kept.push(entry);
            }
        }
    }
    // What names Marimo without us.
    for route in all.iter().filter(|route| names_marimo(route) && !known.contains(&route.key())) {
        if of_key(&route.key(), &all) > 1 {
            failures.push(format!("{}: there are several routes of its metric", describe(route)));
            continue;
        }
        match kernel.replace(&route.with(&Control::default())) {
            Ok(()) => said.push(format!("{}: no congestion control", describe(route))),
            Err(error) => failures.push(format!("{}: the kernel refuses: {error}", describe(route))),
        }
    }
    if let Ok(mut journal) = journal
        && let Err(failure) = journal.write(kept)
    {
        failures.push(failure.to_string());
    }
    if said.is_empty() && failures.is_empty() {
        said.push("nothing to undo: no route names Marimo, and the default is another".into());
    }
    for line in said {
        say!("{line}");
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("\n"))) }
}

/// Whether routes have what `enable` gave them.
pub fn enabled() -> bool {
    Journal::open().is_ok_and(|journal| !journal.entries().is_empty())
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
