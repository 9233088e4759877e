//! `marimoctl rollback`: new connections use what they used before Marimo.
//!
//! A route is given back by a message that the kernel may refuse, although it keeps the same route: one next hop of several is
//! dead, or the connected route of the gateway is gone. Such a route stays in the journal, and is given back by the next command
//! that the kernel takes it from, or by the watcher.

use crate::{
    arguments,
    bpf::registered,
    failure::{Failure, Outcome},
    journal::{Entry, Journal},
    lock, namespaces,
    netlink::{Control, Key, Routes, Table},
    output::say,
    routes::{DEFAULT, NAMES, default, describe, in_words, names_marimo},
    view,
};
use std::{collections::HashSet, fs};

/// When a route is given back that the kernel refuses now.
pub const LATER: &str = "the next command that changes something, or marimoctl watch, does it when the kernel takes it";

/// What was done in a network namespace, and what could not be.
#[derive(Default)]
struct Report {
    said: Vec<String>,
    failures: Vec<String>,
}

/// Routes name what they named, and Marimo is the default of no network namespace.
pub fn rollback(arguments: &arguments::Rollback) -> Outcome {
    view::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    // Of what is not registered the kernel may load a module, unless somebody has typed it wrong.
    let is_wrong = |to: &str| NAMES.contains(&to) || (is_default() && !registered.iter().any(|name| name == to));
    if let Some(to) = arguments.to.as_deref().filter(|to| is_wrong(to)) {
        return Err(Failure::input(format!(
            "--to: found {to:?}, allowed is one of {}",
            registered.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    let to = arguments.to.as_deref().unwrap_or("cubic");
    // Whatever fails, the rest goes on; and all is done before any of it is said: a reader may go away.
    let mut report = Report::default();
    in_this_namespace(to, &registered, &mut report);
    // A container takes nothing from others.
    if namespaces::is_of_host() {
        in_other_namespaces(to, &registered, &mut report);
    }
    if report.said.is_empty() && report.failures.is_empty() {
        report.said.push("nothing to undo: no route names Marimo, and the default is another".into());
    }
    for line in report.said {
        say!("{line}");
    }
    if report.failures.is_empty() { Ok(()) } else { Err(Failure::failed(report.failures.join("\n"))) }
}

fn is_default() -> bool {
    default().is_ok_and(|name| NAMES.contains(&name.as_str()))
}

fn in_other_namespaces(to: &str, registered: &[String], report: &mut Report) {
    let others = match namespaces::others() {
        Ok(others) => others,
        Err(failure) => return report.failures.push(failure.to_string()),
    };
    for other in &others.seen {
        let work = || {
            let mut there = Report::default();
            in_this_namespace(to, registered, &mut there);
            there
        };
        let label = |line| format!("network namespace of {}: {line}", other.name);
        match other.within(work) {
            Ok(there) => {
                report.said.extend(there.said.into_iter().map(label));
                report.failures.extend(there.failures.into_iter().map(label));
            }
            Err(failure) => report.failures.push(failure.to_string()),
        }
    }
    if others.hidden > 0 {
        let hidden = others.hidden;
        report.failures.push(format!("the network namespaces of {hidden} processes cannot be seen from here"));
    }
}

fn in_this_namespace(to: &str, registered: &[String], report: &mut Report) {
    if is_default() {
        take_back_default(to, report);
    }
    let outcome = Routes::open().and_then(|mut kernel| {
        let all = kernel.all()?;
        let known = give_back_routes(&mut kernel, &all, registered, report);
        // What names Marimo without us.
        for route in all.iter().filter(|route| names_marimo(route) && !known.contains(&route.key())) {
            if all.count(&route.key()) > 1 {
                report.failures.push(format!("{}: there are several routes of its metric", describe(route)));
                continue;
            }
            match kernel.replace(&route.with(&Control::default())) {
                Ok(()) => report.said.push(format!("{}: no congestion control", describe(route))),
                Err(error) => report.failures.push(format!("{}: the kernel refuses: {error}", describe(route))),
            }
        }
        Ok(())
    });
    report.failures.extend(outcome.err().map(|failure| failure.to_string()));
}

/// A namespace that is not the first may have what the first one's administrator allows; Reno is always there.
fn take_back_default(to: &str, report: &mut Report) {
    for name in [to, "reno"] {
        match fs::write(DEFAULT, name) {
            Ok(()) => return report.said.push(format!("sysctl -w net.ipv4.tcp_congestion_control={name}")),
            Err(error) if name == "reno" => report.failures.push(format!("cannot write {DEFAULT}: {error}")),
            Err(_) => {}
        }
    }
}

/// Gives back what the journal has, and keeps in it what the kernel refuses. Returns the keys of all of them.
fn give_back_routes(kernel: &mut Routes, all: &Table, registered: &[String], report: &mut Report) -> HashSet<Key> {
    let mut journal = match Journal::open() {
        Ok(journal) => journal,
        Err(failure) => {
            report.failures.push(failure.to_string());
            return HashSet::new();
        }
    };
    let (mut known, mut kept) = (HashSet::new(), Vec::new());
    let entries: Vec<Entry> = journal.entries().iter().cloned().map(Entry::into_due).collect();
    // Before the first is given back: should this be ended in between, nobody is to put it back again.
    if let (false, Err(failure)) = (entries.is_empty(), journal.write(entries.clone())) {
        report.failures.push(failure.to_string());
    }
    for entry in entries {
        known.extend(entry.before().map(|before| before.key()));
        match give_back(&entry, kernel, all, registered) {
            Ok(line) => report.said.extend(line),
            Err(why) => {
                report.failures.push(format!("{why}; {LATER}"));
                kept.push(entry);
            }
        }
    }
    report.failures.extend(journal.write(kept).err().map(|failure| failure.to_string()));
    known
}

/// Gives a route back what it had before: only that, as others may have changed the rest since. Returns what was done, if
/// anything was.
///
/// # Errors
/// Why it could not be.
pub fn give_back(
    entry: &Entry,
    kernel: &mut Routes,
    all: &Table,
    registered: &[String],
) -> Result<Option<String>, String> {
    let Some(before) = entry.before() else { return Err("an entry of the journal cannot be read".into()) };
    let (key, control) = (before.key(), before.control());
    let Some(now) = all.find(&key) else {
        return Ok(Some(format!("{}: is gone", describe(&before))));
    };
    if all.count(&key) > 1 {
        return Err(format!("{}: there are several routes of its metric now", describe(&before)));
    }
    if entry.is_ours(now, registered) {
        return match kernel.replace(&now.with(&control)) {
            Ok(()) => Ok(Some(format!("{}: congestion control {}, as before", describe(now), in_words(&control)))),
            Err(error) => Err(format!("{}: the kernel refuses: {error}", describe(now))),
        };
    }
    if now.control() == control {
        return Ok(None);
    }
    Ok(Some(format!("{}: left with {}, which was set since", describe(now), in_words(&now.control()))))
}

/// Gives back what a rollback could not, where the kernel takes it by now: on the host in every network namespace. The caller holds
/// the lock; what fails stays due. Returns what was done, to be said at the end.
pub fn give_back_due() -> Vec<String> {
    let Ok(journal) = Journal::open() else { return Vec::new() };
    let mut said = give_back_due_here();
    if journal.others_are_due()
        && namespaces::is_of_host()
        && let Ok(others) = namespaces::others()
    {
        for other in &others.seen {
            let there = other.within(give_back_due_here).unwrap_or_default();
            said.extend(there.into_iter().map(|line| format!("network namespace of {}: {line}", other.name)));
        }
    }
    said
}

fn give_back_due_here() -> Vec<String> {
    let Ok(mut journal) = Journal::open() else { return Vec::new() };
    if !journal.entries().iter().any(|entry| entry.due) {
        return Vec::new();
    }
    let (Ok(registered), Ok(mut kernel)) = (registered(), Routes::open()) else { return Vec::new() };
    let Ok(all) = kernel.all() else { return Vec::new() };
    let (mut said, mut kept) = (Vec::new(), Vec::new());
    for entry in journal.entries().to_vec() {
        match entry.due.then(|| give_back(&entry, &mut kernel, &all, &registered)) {
            Some(Ok(line)) => said.extend(line),
            Some(Err(_)) | None => kept.push(entry),
        }
    }
    // What cannot be written is tried again.
    if kept.len() != journal.entries().len() && journal.write(kept).is_err() {
        return Vec::new();
    }
    said
}
