//! `marimoctl enable`: connections over some routes, or all of the host, use Marimo.
//!
//! A route names its congestion control, so that a rollout can begin with one destination. Open connections are not touched.
//! `enable` does all that it is asked for or nothing, and keeps in a [journal](crate::journal) what was there; after whatever
//! happens to it, [`rollback`] puts that back.

use crate::{
    arguments,
    bpf::registered,
    failure::{Failure, Outcome, While},
    journal::{Entry, Journal},
    lock,
    netlink::{Control, Prefix, Route, Routes, Table},
    output::{complain, say},
    rollback,
    routes::{DEFAULT, NAMES, describe, in_words, table},
    view,
};
use rustix::net::netdevice::index_to_name;
use std::{collections::BTreeSet, fs, os::unix::net::UnixDatagram};

/// Of so many hosts it is looked at whether an MTU that was learned is forgotten: each is compared with all routes.
const MOST_WARNINGS: usize = 64;

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
    let given_back = rollback::give_back_due();
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
    let mut kept = journal.entries().to_vec();
    for route in &found {
        journal.add(route, describe(route), name, arguments.watch, &registered);
    }
    journal.save()?;
    // To warn is no reason to fail.
    let learned = kernel.learned().unwrap_or_default();
    let forgotten = learned.iter().take(MOST_WARNINGS).filter_map(|copy| {
        let (mtu, route) = (copy.learned_mtu()?, all.to(copy)?);
        let is_replaced = found.iter().any(|found| found.key() == route.key());
        is_replaced.then(|| format!("{}: the path to {} has MTU {mtu}", describe(route), copy.describe()))
    });
    // Copies of several CPUs are alike.
    let forgotten: BTreeSet<String> = forgotten.collect();

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
        // Without a list all of them are restored.
        let now = kernel.all().unwrap_or_default();
        for route in tried.iter().rev() {
            if now.find(&route.key()).is_some_and(|found| found.is_as(route)) {
                continue;
            }
            if let Err(error) = kernel.restore(&route.with(&route.control())) {
                said.push(format!("{} is left changed: {error}; {}", describe(route), rollback::LATER));
                // Of one that had been enabled before, the entry of then says what it was at first.
                let of_now = |entry: &&Entry| entry.before().is_some_and(|before| before.key() == route.key());
                if !kept.iter().any(|entry| of_now(&entry)) {
                    kept.extend(journal.entries().iter().find(of_now).cloned().map(Entry::into_due));
                }
            }
        }
        if said.len() == 1 {
            said.push("nothing was changed".into());
        }
        journal.write(kept)?;
        return Err(Failure::failed(said.join("\n")));
    }
    journal.settle()?;
    // All is done before any of it is said: a reader may go away.
    given_back.iter().for_each(|line| say!("{line}"));
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

/// Refuses a route that cannot be changed without harm.
///
/// # Errors
/// Why it cannot.
pub fn check(route: &Route, all: &Table) -> Outcome {
    if all.count(&route.key()) > 1 {
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
