//! `switch.scheduler` to what the simulator wants, and whether it makes sense there.

use super::super::{
    document::scheduler::{Dwrr as DescribedDwrr, Scheduler, StrictOverDwrr},
    tree::{error::Problem, place::Step},
};
use incast_sim::{
    ConfigError, Fabric, check_scheduler,
    config::SwitchConfig,
    switch::scheduler::config::{Dwrr, Scheduling},
};

/// Converts.
pub fn resolve(scheduler: &Scheduler) -> Scheduling {
    let (strict, weights, quantum) = match scheduler {
        Scheduler::Strict => return Scheduling::Strict,
        Scheduler::Dwrr(DescribedDwrr { weights, quantum }) => (0, weights, quantum),
        Scheduler::StrictOverDwrr(StrictOverDwrr { strict, weights, quantum }) => (*strict, weights, quantum),
    };
    Scheduling::Dwrr(Dwrr {
        strict,
        weights: weights.clone(),
        quantum: quantum.map(incast_units::Bytes::get),
    })
}

/// Refuses weights that do not fit the priorities, and what deficit round robin does not go together with.
pub fn check(switch: &SwitchConfig) -> Result<(), Problem> {
    check_scheduler(switch).map_err(|error| match error {
        ConfigError::Value { what, found, allowed } => {
            let path: Vec<Step> = what.split('.').map(Step::from).collect();
            Problem::value(found, allowed).at(&path)
        }
        other => Problem::new(other.to_string()),
    })
}

/// What the scheduler comes to, in one line; nothing for strict priorities.
pub fn describe(fabric: Fabric<'_>) -> Vec<String> {
    let Scheduling::Dwrr(dwrr) = &fabric.switch.scheduler else { return Vec::new() };
    let frames = fabric.classes.iter().map(|class| u64::from(class.format.data(fabric.host.mtu)));
    let quantum = dwrr.quantum.or(frames.max()).unwrap_or(0);
    let queue = |(index, weight): (usize, &u16)| {
        format!("priority {} {} B", usize::from(dwrr.strict) + index, quantum * u64::from(*weight))
    };
    let quanta: Vec<String> = dwrr.weights.iter().enumerate().map(queue).collect();
    let strict = match dwrr.strict {
        0 => String::new(),
        strict => format!("priorities below {strict} strict; "),
    };
    vec![format!("scheduler: {strict}deficit round robin with quanta of {}", quanta.join(", "))]
}
