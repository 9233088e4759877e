//! Puts a simulation together, runs it, and collects what it leaves behind.

mod build;
mod channels;
mod check;
mod collect;
pub mod config;
mod credits;
mod deadlock;
mod digest;
mod domain;
mod lossless;
mod memory;
pub mod outcome;
mod partition;
mod path;
mod scheduling;

use self::{
    config::{Config, ConfigError, LinkEvent},
    deadlock::DeadlockDetector,
    domain::Domain,
    outcome::Outcome,
};
use crate::engine::{
    executor::MOST_THREADS,
    executor::{Inspector, Reached},
    halt::{Halt, Halted, Livelock},
};
use incast_units::Time;
use std::collections::BTreeSet;

pub use credits::credit_rules;
pub use lossless::{pfc_rules, used_priorities};
pub use memory::{Demand, MemoryEstimate, estimate_memory};
pub use path::{Fabric, base_path, base_path_of, base_rtt};

/// Checks of parts of a configuration, for whoever knows where each part is written.
pub mod checks {
    pub use super::{
        channels::check_channels,
        check::{check_host, check_mtu, check_priorities},
        credits::{check_credits, check_credits_alone},
        lossless::check_pfc,
        scheduling::{check_not_ect, check_scheduler, check_trim},
    };
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Configured end.
    pub end: Time,
    /// Link traversals so far.
    pub packet_hops: u64,
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// A configuration that cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Time did not move any more, which only a bug in the simulator can cause.
    #[error("{0}")]
    Livelock(Livelock),
    /// It was halted.
    #[error("the simulation was halted")]
    Halted,
}

/// Runs a simulation.
///
/// # Errors
/// A configuration that cannot be run.
///
/// # Panics
/// As [`simulate_observed`], and if time does not move any more.
pub fn simulate(config: Config) -> Result<Outcome, ConfigError> {
    match simulate_observed(config, &mut |_| true, &|| false) {
        Ok(outcome) => Ok(outcome),
        Err(SimulationError::Config(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// The link events that change something, by time, at most one failure and then one recovery of a cable at a time.
fn link_changes(mut events: Vec<LinkEvent>) -> Vec<LinkEvent> {
    events.sort_by_key(|event| (event.at, event.cable));
    let (mut down, mut changes) = (BTreeSet::new(), Vec::new());
    for together in events.chunk_by(|one, other| (one.at, one.cable) == (other.at, other.cable)) {
        let last = together[together.len() - 1];
        let was_down = down.contains(&last.cable);
        let fails = !was_down && together.iter().any(|event| !event.up);
        changes.extend(fails.then_some(LinkEvent { up: false, ..last }));
        changes.extend((last.up && (fails || was_down)).then_some(last));
        if last.up {
            down.remove(&last.cable);
        } else {
            down.insert(last.cable);
        }
    }
    changes
}

/// Runs a simulation. `observe` is called between windows from time to time, and ends the run by returning false: the
/// outcome is that of the time reached. `halt` is asked often enough, by any thread, that the simulation ends well within
/// a second of its first true; then there is no outcome.
///
/// # Errors
/// A configuration that cannot be run, a livelock, or `halt`.
///
/// # Panics
/// If bytes were lost or created, or a lossless packet was dropped, which only a bug in the simulator can cause.
pub fn simulate_observed(
    mut config: Config,
    observe: &mut dyn FnMut(&Progress) -> bool,
    halt: &Halt<'_>,
) -> Result<Outcome, SimulationError> {
    check::check(&config)?;
    config.link_events = link_changes(config.link_events);
    let (end, threads) = (config.end, config.threads.clamp(1, MOST_THREADS));
    let is_lossless = lossless::is_promised(&config) || config.switch.credits.is_some();
    let plan = build::Plan::new(&config)?;
    let settings = plan.settings(&config);
    let (topology, mut executor) = build::executor(config, &plan, &settings, threads);
    let wall = std::time::Instant::now();
    let mut observe = |reached: Reached| observe(&Progress { now: reached.time, end, packet_hops: reached.messages });
    let by_pfc = settings.pfc.as_ref().and_then(|rules| rules.pfc.deadlock_after);
    let after = by_pfc.or(settings.credits.as_ref().and_then(|rules| rules.credits.deadlock_after));
    let mut detector = after.map(|after| DeadlockDetector::new(&plan, &topology, &settings, after));
    let statistics = match &mut detector {
        None => executor.run(end, threads, &mut observe, None, halt),
        Some(detector) => {
            let every = detector.every();
            let inspect = &mut |now: Time, domains: &[&Domain<'_>]| detector.inspect(now, domains);
            executor.run(end, threads, &mut observe, Some(Inspector { every, inspect }), halt)
        }
    };
    let statistics = statistics.map_err(|halted| match halted {
        Halted::Asked => SimulationError::Halted,
        Halted::Livelock(livelock) => SimulationError::Livelock(livelock),
    })?;
    let wall = wall.elapsed();
    let mut outcome = collect::outcome(&topology, &plan, &settings, executor, &statistics, end, halt)
        .ok_or(SimulationError::Halted)?;
    outcome.cost.wall_s = wall.as_secs_f64();
    assert!(
        !is_lossless || outcome.totals.lossless_drops == 0,
        "lossless priorities dropped {} packets for lack of buffer, which strict flow control excludes",
        outcome.totals.lossless_drops
    );
    if let Some(detector) = detector {
        outcome.totals.pfc_cycles = detector.cycles;
        outcome.totals.pfc_stranded = detector.stranded;
        outcome.deadlock = detector.found;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const fn event(at: u64, cable: usize, up: bool) -> LinkEvent {
        LinkEvent { at: Time::from_us(at), cable, up }
    }

    #[test]
    fn what_finds_a_cable_as_it_is_changes_nothing() {
        let (up, down) = (|at| event(at, 3, true), |at| event(at, 3, false));
        assert_eq!(link_changes(vec![up(1), up(2)]), []);
        assert_eq!(link_changes(vec![down(5), up(2), down(3), up(9)]), [down(3), up(9)]);
        // For no time at all, it is up in vain, but what is on it when it goes down is lost.
        assert_eq!(link_changes(vec![down(1), up(2), down(2)]), [down(1)]);
        assert_eq!(link_changes(vec![down(2), up(2)]), [down(2), up(2)]);
        assert_eq!(link_changes(vec![down(2), up(2), down(2)]), [down(2)]);
        assert_eq!(link_changes(vec![up(2), down(2), event(2, 1, false)]), [event(2, 1, false), down(2)]);
    }

    proptest! {
        /// At each time cables are as they would be by the whole list, and each change is one.
        #[test]
        fn changes_leave_cables_as_all_events_do(
            list in proptest::collection::vec((0u64..6, 0usize..3, any::<bool>()), 0..24),
        ) {
            let events: Vec<LinkEvent> = list.into_iter().map(|(at, cable, up)| event(at, cable, up)).collect();
            let changes = link_changes(events.clone());
            for until in (0..6).map(Time::from_us) {
                let states = |events: &[LinkEvent]| {
                    let mut events: Vec<&LinkEvent> = events.iter().filter(|event| event.at <= until).collect();
                    events.sort_by_key(|event| event.at);
                    let mut states = BTreeMap::from([0, 1, 2].map(|cable| (cable, true)));
                    states.extend(events.iter().map(|event| (event.cable, event.up)));
                    states
                };
                prop_assert_eq!(states(&changes), states(&events));
            }
            let mut is_up = [true; 3];
            for change in &changes {
                prop_assert!(is_up[change.cable] != change.up);
                is_up[change.cable] = change.up;
            }
        }
    }
}
