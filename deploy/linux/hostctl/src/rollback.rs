//! Routes get back what they had before a tool changed them.
//!
//! A route is given back by a message that the kernel may refuse, although it keeps the same route: one next hop of several is
//! dead, or the connected route of the gateway is gone. Such a route stays in the journal, and is given back by the next command
//! that the kernel takes it from, or by the watcher.

use crate::{
    Tool,
    failure::{Failure, Outcome},
    journal::{Entry, Journal},
    namespaces,
    netlink::{Key, Route, Routes, Setting, Table},
    routes::{describe, is_own},
};
use std::collections::HashSet;

/// When a route is given back that the kernel refuses now.
pub fn later<T: Tool>() -> String {
    format!("the next command that changes something, or {} watch, does it when the kernel takes it", T::PROGRAM)
}

/// What was done, and what could not be.
#[derive(Default)]
pub struct Report {
    /// What was done, a line of each.
    pub said: Vec<String>,
    /// What could not be.
    pub failures: Vec<String>,
}

impl Report {
    /// As the outcome of all of it.
    ///
    /// # Errors
    /// Something could not be done.
    pub fn outcome(self) -> Outcome {
        if self.failures.is_empty() { Ok(()) } else { Err(Failure::failed(self.failures.join("\n"))) }
    }
}

/// Gives routes back what they had, and takes what is the tool's from others: of this network namespace, and on the host of all
/// others. In each, `first` is done before. Whatever fails, the rest goes on. The caller holds the lock, and says what was done
/// when all is: a reader may go away.
pub fn rollback<T: Tool>(registered: &[String], first: impl Fn(&mut Report) + Sync) -> Report {
    let mut report = Report::default();
    in_this_namespace::<T>(registered, &first, &mut report);
    // A container takes nothing from others.
    if namespaces::is_of_host() {
        in_other_namespaces::<T>(registered, &first, &mut report);
    }
    report
}

fn in_other_namespaces<T: Tool>(registered: &[String], first: &(impl Fn(&mut Report) + Sync), report: &mut Report) {
    let others = match namespaces::others() {
        Ok(others) => others,
        Err(failure) => return report.failures.push(failure.to_string()),
    };
    for other in &others.seen {
        let work = || {
            let mut there = Report::default();
            in_this_namespace::<T>(registered, first, &mut there);
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

fn in_this_namespace<T: Tool>(registered: &[String], first: &impl Fn(&mut Report), report: &mut Report) {
    first(report);
    let outcome = Routes::open().and_then(|mut kernel| {
        let all = kernel.all()?;
        let known = give_back_routes::<T>(&mut kernel, &all, registered, |_| true, report);
        // What has it without us.
        for route in all.iter().filter(|route| is_own::<T>(route) && !known.contains(&route.key())) {
            if all.count(&route.key()) > 1 {
                report.failures.push(format!("{}: there are several routes of its metric", describe(route)));
                continue;
            }
            match kernel.replace(&route.with(&T::Setting::default())) {
                Ok(()) => report.said.push(format!("{}: no {}", describe(route), T::Setting::KIND)),
                Err(error) => report.failures.push(format!("{}: the kernel refuses: {error}", describe(route))),
            }
        }
        Ok(())
    });
    report.failures.extend(outcome.err().map(|failure| failure.to_string()));
}

/// Gives back the enabled routes of this network namespace that are wanted. The caller holds the lock.
///
/// # Errors
/// The kernel does not list routes.
pub fn some<T: Tool>(wanted: impl Fn(&Route) -> bool) -> Outcome<Report> {
    let mut report = Report::default();
    let (registered, mut kernel) = (T::registered()?, Routes::open()?);
    let all = kernel.all()?;
    give_back_routes::<T>(&mut kernel, &all, &registered, wanted, &mut report);
    Ok(report)
}

/// Gives back what the journal has and is wanted, and keeps in it what the kernel refuses. Returns the keys of all of them.
fn give_back_routes<T: Tool>(
    kernel: &mut Routes,
    all: &Table,
    registered: &[String],
    wanted: impl Fn(&Route) -> bool,
    report: &mut Report,
) -> HashSet<Key> {
    let mut journal = match Journal::open::<T>() {
        Ok(journal) => journal,
        Err(failure) => {
            report.failures.push(failure.to_string());
            return HashSet::new();
        }
    };
    let (mut known, mut kept) = (HashSet::new(), Vec::new());
    let is_wanted = |entry: &Entry| entry.before().is_none_or(|before| wanted(&before));
    let due = |entry: &Entry| if is_wanted(entry) { entry.clone().into_due() } else { entry.clone() };
    let entries: Vec<Entry> = journal.entries().iter().map(due).collect();
    // Before the first is given back: should this be ended in between, nobody is to put it back again.
    if let (false, Err(failure)) = (entries.is_empty(), journal.write(entries.clone())) {
        report.failures.push(failure.to_string());
    }
    for entry in entries {
        if !is_wanted(&entry) {
            kept.push(entry);
            continue;
        }
        known.extend(entry.before().map(|before| before.key()));
        match give_back::<T>(&entry, kernel, all, registered) {
            Ok(line) => report.said.extend(line),
            Err(why) => {
                report.failures.push(format!("{why}; {}", later::<T>()));
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
fn give_back<T: Tool>(
    entry: &Entry,
    kernel: &mut Routes,
    all: &Table,
    registered: &[String],
) -> Result<Option<String>, String> {
    let Some(before) = entry.before() else { return Err("an entry of the journal cannot be read".into()) };
    let (key, setting) = (before.key(), before.setting::<T::Setting>());
    let Some(now) = all.find(&key) else {
        return Ok(Some(format!("{}: is gone", describe(&before))));
    };
    if all.count(&key) > 1 {
        return Err(format!("{}: there are several routes of its metric now", describe(&before)));
    }
    if entry.is_ours::<T::Setting>(now, registered) {
        return match kernel.replace(&now.with(&setting)) {
            Ok(()) => {
                let (kind, words) = (T::Setting::KIND, setting.in_words());
                Ok(Some(format!("{}: {kind} {words}, as before", describe(now))))
            }
            Err(error) => Err(format!("{}: the kernel refuses: {error}", describe(now))),
        };
    }
    let left: T::Setting = now.setting();
    if left == setting {
        return Ok(None);
    }
    Ok(Some(format!("{}: left with {}, which was set since", describe(now), left.in_words())))
}

/// Gives back what a rollback could not, where the kernel takes it by now: on the host in every network namespace. The caller holds
/// the lock; what fails stays due. Returns what was done, to be said at the end.
pub fn give_back_due<T: Tool>() -> Vec<String> {
    let Ok(journal) = Journal::open::<T>() else { return Vec::new() };
    let mut said = give_back_due_here::<T>();
    if journal.others_are_due()
        && namespaces::is_of_host()
        && let Ok(others) = namespaces::others()
    {
        for other in &others.seen {
            let there = other.within(give_back_due_here::<T>).unwrap_or_default();
            said.extend(there.into_iter().map(|line| format!("network namespace of {}: {line}", other.name)));
        }
    }
    said
}

fn give_back_due_here<T: Tool>() -> Vec<String> {
    let Ok(mut journal) = Journal::open::<T>() else { return Vec::new() };
    if !journal.entries().iter().any(|entry| entry.due) {
        return Vec::new();
    }
    let (Ok(registered), Ok(mut kernel)) = (T::registered(), Routes::open()) else { return Vec::new() };
    let Ok(all) = kernel.all() else { return Vec::new() };
    let (mut said, mut kept) = (Vec::new(), Vec::new());
    for entry in journal.entries().to_vec() {
        match entry.due.then(|| give_back::<T>(&entry, &mut kernel, &all, &registered)) {
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
