//! Routes that others make anew get back what they were given.
//!
//! A daemon of routes, a restart of the network's configuration or a link that went down and up makes a route anew as it knows
//! it: without what a tool has set. The kernel tells of each change; what has become of the routes in the journal is then looked at as a
//! whole, at most once a second.

use crate::{
    Tool, enable,
    failure::{Failure, Outcome, While},
    journal::{self, Entry, Journal, State, Watch},
    lock,
    netlink::{Changes, Key, Route, Routes, Setting, Table},
    output, rollback,
    routes::describe,
    view,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// Least time between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// A look takes at most one part of so many of the time: a list of a hundred thousand routes takes a while.
const SHARE: u32 = 20;
/// A route that comes back again and again is put back less and less often, down to once in so long.
const LONGEST: Duration = Duration::from_secs(60);

/// What a watcher has done in this network namespace since the boot, for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Routes that came back without what they were given.
    pub drifts: u64,
    /// How many of them got it again.
    pub restores: u64,
    /// How often the kernel refused that.
    pub refusals: u64,
}

impl Counts {
    fn path<T: Tool>() -> Outcome<PathBuf> {
        Ok(PathBuf::from(T::RUN).join(format!("watch-{}.json", journal::namespace()?)))
    }

    /// What was counted; nothing if nobody has watched.
    pub fn read<T: Tool>() -> Self {
        let text = Self::path::<T>().ok().and_then(|path| fs::read(path).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn write<T: Tool>(&self) -> Outcome {
        let path = Self::path::<T>()?;
        let temporary = path.with_extension("json.tmp");
        let text = serde_json::to_vec(self).during("cannot write")?;
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .during(format!("cannot write {}", path.display()))
    }
}

/// Whether a watcher runs in this network namespace.
pub fn is_watched<T: Tool>() -> bool {
    lock_name().is_ok_and(|name| lock::is_held::<T>(&name))
}

fn lock_name() -> Outcome<String> {
    Ok(format!("watch-{}.lock", journal::namespace()?))
}

/// What is remembered of a route between two looks.
struct Seen {
    state: State,
    /// Before this it is not put back again.
    not_before: Instant,
    wait: Duration,
    /// What the kernel has refused, which is said once.
    refused: Option<String>,
}

impl Seen {
    fn new(now: Instant) -> Self {
        Self { state: State::Kept, not_before: now, wait: PAUSE, refused: None }
    }

    /// It is put back, or tried to be: the next time comes later if this one came early.
    fn acted(&mut self, now: Instant) {
        let is_soon = now.saturating_duration_since(self.not_before) < 2 * self.wait;
        self.wait = if is_soon { (2 * self.wait).min(LONGEST) } else { PAUSE };
        self.not_before = now + self.wait;
    }
}

/// Watches until it is ended.
///
/// # Errors
/// Another one watches, or the kernel does not tell of changes.
pub fn watch<T: Tool>() -> Outcome {
    view::root()?;
    let name = lock_name()?;
    let _only = only::<T>(&name)?;
    let changes = Changes::open()?;
    let mut watcher = Watcher { seen: BTreeMap::new(), counts: Counts::read::<T>(), said: Vec::new() };
    watcher.counts.write::<T>()?;
    let mut complaint = String::new();
    loop {
        changes.drain()?;
        // Others that change something are waited for; the next look comes all the same.
        let mut took = Duration::ZERO;
        let found = lock::hold::<T>().and_then(|_lock| {
            let started = Instant::now();
            let found = watcher.look::<T>(started);
            took = started.elapsed();
            found
        });
        watcher.said.drain(..).for_each(|line| output::print(T::PROGRAM, format_args!("{line}\n")));
        let next = found.unwrap_or_else(|failure| {
            // Once, however often it is so.
            if failure.to_string() != complaint {
                complaint = failure.to_string();
                output::complain(T::PROGRAM, format_args!("watch: {complaint}"));
            }
            Some(LONGEST)
        });
        thread::sleep(PAUSE.max(took * SHARE));
        changes.wait(next)?;
    }
}

/// The lock of the one watcher. Who only asks whether there is one has it for a moment, too.
fn only<T: Tool>(name: &str) -> Outcome<lock::Lock> {
    for _ in 0..10 {
        if let Some(lock) = lock::try_hold::<T>(name)? {
            return Ok(lock);
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(Failure::failed(format!("another {} watches this network namespace", T::PROGRAM)))
}

struct Watcher {
    /// By what tells entries of the journal apart.
    seen: BTreeMap<String, Seen>,
    counts: Counts,
    /// What is to be said once the lock is free: a reader may stop.
    said: Vec<String>,
}

impl Watcher {
    /// Looks at all routes of the journal. Returns when to look again if nothing changes.
    fn look<T: Tool>(&mut self, now: Instant) -> Outcome<Option<Duration>> {
        self.said.extend(rollback::give_back_due::<T>());
        let journal = Journal::open::<T>()?;
        let entries = journal.entries();
        self.seen.retain(|route, _| entries.iter().any(|entry| entry.id() == route));
        if entries.is_empty() {
            return Ok(None);
        }
        let registered = T::registered()?;
        let mut kernel = Routes::open()?;
        let all = kernel.all()?;
        let before = self.counts.clone();
        let mut next: Option<Duration> = None;
        for entry in entries {
            let Some(route) = entry.before() else { continue };
            let wait = if entry.due {
                Some(LONGEST)
            } else if entry.pending {
                None
            } else {
                self.look_at::<T>(entry, &route, &mut kernel, &all, &registered, now)
            };
            next = next.into_iter().chain(wait).min();
        }
        if self.counts != before {
            self.counts.write::<T>()?;
        }
        Ok(next)
    }

    /// Returns when to look at it again.
    fn look_at<T: Tool>(
        &mut self,
        entry: &Entry,
        before: &Route,
        kernel: &mut Routes,
        all: &Table,
        registered: &[String],
        now: Instant,
    ) -> Option<Duration> {
        let seen = self.seen.entry(entry.id().to_owned()).or_insert_with(|| Seen::new(now));
        let was = std::mem::replace(&mut seen.state, journal::state::<T::Setting>(entry, before, all, registered));
        if seen.state != State::Drifted {
            if seen.state == State::Other && was != State::Other {
                let kind = T::Setting::KIND;
                self.said.push(format!("{}: has been given another {kind}, which stays", describe(before)));
            }
            return None;
        }
        let (name, key) = (entry.name(), before.key());
        let is_new = was != State::Drifted;
        if is_new {
            self.counts.drifts += 1;
        }
        // Of an unloaded one the kernel would take the name for that of a module that it is to load.
        if entry.watch == Watch::Report || !registered.iter().any(|known| known == name) {
            if is_new {
                self.said.push(format!("{}: has come back without {name}", describe(before)));
            }
            return None;
        }
        if now < seen.not_before {
            return Some(seen.not_before - now);
        }
        seen.acted(now);
        match put_back::<T>(&key, name, kernel, all) {
            Ok(()) => {
                self.counts.restores += 1;
                seen.state = State::Kept;
                seen.refused = None;
                self.said.push(format!("{}: has come back without {name}, which it has again", describe(before)));
            }
            Err(why) => {
                self.counts.refusals += 1;
                if seen.refused.as_ref() != Some(&why) {
                    self.said.push(format!(
                        "{}: has come back without {name}, and is not to have it: {why}",
                        describe(before)
                    ));
                    seen.refused = Some(why);
                }
            }
        }
        Some(seen.wait)
    }
}

fn put_back<T: Tool>(key: &Key, name: &str, kernel: &mut Routes, all: &Table) -> Result<(), String> {
    let Some(route) = all.find(key) else { return Err("it is gone".into()) };
    // It may be another's by now: one that router advertisements keep must not be changed.
    enable::check::<T>(route, all).map_err(|failure| failure.to_string())?;
    let setting = route.setting::<T::Setting>().named(name);
    kernel.replace(&route.with(&setting)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_comes_back_again_and_again_is_put_back_less_often() {
        let start = Instant::now();
        let mut seen = Seen::new(start);
        let mut at = start;
        let mut waits = Vec::new();
        for _ in 0..8 {
            seen.acted(at);
            waits.push(seen.wait.as_secs());
            at = seen.not_before;
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
        // After a quiet time it is put back at once again.
        at += Duration::from_secs(300);
        seen.acted(at);
        assert_eq!(seen.wait, PAUSE);
    }
}
