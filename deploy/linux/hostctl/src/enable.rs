//! Routes get what a tool sets at them.
//!
//! A route has its own setting, so that a rollout can begin with one destination. Open connections are not touched.
//! [`Request::enable`] does all that it is asked for or nothing, and keeps in a [journal](crate::journal) what was there; after
//! whatever happens to it, [`rollback`] puts that back.

use crate::{
    Tool,
    failure::{Failure, Outcome, While},
    journal::{Entry, Journal, Watch},
    netlink::{Prefix, Route, Routes, Setting, Table},
    rollback,
    routes::{self, describe},
};
use rustix::net::netdevice::index_to_name;
use std::{collections::BTreeSet, fs, os::unix::net::UnixDatagram};

/// Of so many hosts it is looked at whether an MTU that was learned is forgotten: each is compared with all routes.
const MOST_WARNINGS: usize = 64;

const FORGOTTEN: &str =
    "which the kernel has forgotten with this change: where ICMP does not arrive, open connections stall";

/// Routes as they are typed.
pub struct Request<'a> {
    routes: Vec<(&'a String, Vec<Prefix>)>,
    table: (&'a str, u32),
    watch: Watch,
}

/// What was done.
pub struct Done {
    /// A line of each route.
    pub said: Vec<String>,
    /// What to warn of: the kernel has forgotten MTUs that it had learned.
    pub warnings: Vec<String>,
}

impl<'a> Request<'a> {
    /// Of routes in a table; what the watcher does about them.
    ///
    /// # Errors
    /// What is typed is no route or no table.
    pub fn new(routes: &'a [String], table: &'a str, watch: Watch) -> Outcome<Self> {
        let routes =
            routes.iter().map(|text| Prefix::parse(text).map(|prefixes| (text, prefixes))).collect::<Outcome<_>>()?;
        Ok(Self { routes, table: (table, routes::table(table)?), watch })
    }

    fn find<'t>(&self, all: &'t Table) -> Outcome<Vec<&'t Route>> {
        let mut found: Vec<&Route> = Vec::new();
        for (text, prefixes) in &self.routes {
            let leads_there = |route: &&Route| {
                route.is_unicast()
                    && route.table() == self.table.1
                    && prefixes.iter().any(|prefix| route.leads_to(prefix))
            };
            let before = found.len();
            found.extend(all.iter().filter(leads_there));
            if found.len() == before {
                return Err(Failure::input(format!("found no route {text} in table {}", self.table.0)));
            }
        }
        found.dedup();
        Ok(found)
    }

    /// Gives all of these routes the setting of this name, and does `finally`, or nothing of it. The caller holds the lock, and
    /// says what was done when all is.
    ///
    /// # Errors
    /// Why nothing was changed, or what could not be undone.
    pub fn enable<T: Tool>(
        &self,
        name: &str,
        registered: &[String],
        finally: impl FnOnce() -> Outcome,
    ) -> Outcome<Done> {
        // All routes are looked up before the first is changed.
        let mut kernel = Routes::open()?;
        let all = kernel.all()?;
        let found = self.find(&all)?;
        for route in &found {
            check::<T>(route, &all)?;
        }
        let mut journal = Journal::open::<T>()?;
        let mut kept = journal.entries().to_vec();
        for route in &found {
            journal.add::<T::Setting>(route, describe(route), name, self.watch, registered);
        }
        journal.save()?;
        // To warn is no reason to fail.
        let learned = kernel.learned().unwrap_or_default();
        let forgotten = learned.iter().take(MOST_WARNINGS).filter_map(|copy| {
            let (mtu, route) = (copy.learned_mtu()?, all.to(copy)?);
            let is_replaced = found.iter().any(|found| found.key() == route.key());
            let (to, from) = (copy.describe(), describe(route));
            is_replaced.then(|| format!("{from}: the path to {to} has MTU {mtu}, {FORGOTTEN}"))
        });
        // Copies of several CPUs are alike.
        let forgotten: BTreeSet<String> = forgotten.collect();

        let mut tried: Vec<&Route> = Vec::new();
        let outcome = found.iter().try_for_each(|route| {
            let setting = route.setting::<T::Setting>().named(name);
            tried.push(route);
            kernel.replace(&route.with(&setting)).during(format!("{}: the kernel refuses", describe(route)))
        });
        if let Err(failure) = outcome.and_then(|()| finally()) {
            let mut said = vec![failure.to_string()];
            // The one that was refused, too: of several next hops the kernel may have taken away some.
            // Without a list all of them are restored.
            let now = kernel.all().unwrap_or_default();
            for route in tried.iter().rev() {
                if now.find(&route.key()).is_some_and(|found| found.is_as(route)) {
                    continue;
                }
                if let Err(error) = kernel.restore(&route.message()) {
                    said.push(format!("{} is left changed: {error}; {}", describe(route), rollback::later::<T>()));
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
        let say = |route: &&Route| {
            let before = route.setting::<T::Setting>().in_words();
            format!("{}: {} {name}, before: {before}", describe(route), T::Setting::KIND)
        };
        Ok(Done { said: found.iter().map(say).collect(), warnings: forgotten.into_iter().collect() })
    }
}

/// Refuses a route that cannot be changed without harm.
///
/// # Errors
/// Why it cannot.
pub fn check<T: Tool>(route: &Route, all: &Table) -> Outcome {
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
         configure it (accept_ra = 0){}. 0.0.0.0/0 is the default route of IPv4 alone",
        describe(route),
        T::INSTEAD
    )))
}
