//! Whether the queues of switches can be scheduled as configured.

use crate::{
    config::{ConfigError, SwitchConfig},
    switch::scheduler::config::{Dwrr, Scheduling},
};

/// The least quantum: with less, a decision would take many rounds.
const LEAST_QUANTUM: u64 = 64;

fn refuse(what: &str, found: impl ToString, allowed: impl ToString) -> ConfigError {
    ConfigError::Value { what: what.to_owned(), found: found.to_string(), allowed: allowed.to_string() }
}

/// Refuses weights that do not fit the priorities, and what deficit round robin does not go together with.
///
/// # Errors
/// What is wrong.
pub fn check_scheduler(switch: &SwitchConfig) -> Result<(), ConfigError> {
    let Scheduling::Dwrr(Dwrr { strict, weights, quantum }) = &switch.scheduler else { return Ok(()) };
    if *strict >= switch.priorities {
        let allowed = format!("below the {} priorities of the switches", switch.priorities);
        return Err(refuse("switch.scheduler.strict", strict, allowed));
    }
    let expected = usize::from(switch.priorities - strict);
    if weights.len() != expected {
        let allowed = format!("{expected}, one for each priority that is not strict");
        return Err(refuse("switch.scheduler.weights", format!("{} weights", weights.len()), allowed));
    }
    if weights.contains(&0) {
        return Err(refuse("switch.scheduler.weights", 0, "1 to 65535"));
    }
    if let Some(quantum) = quantum.filter(|quantum| *quantum < LEAST_QUANTUM) {
        let allowed = format!("at least {LEAST_QUANTUM}B, the shortest frame");
        return Err(refuse("switch.scheduler.quantum", format!("{quantum}B"), allowed));
    }
    if switch.virtual_channels > 1 {
        let allowed = "\"strict\" with virtual channels, which take turns themselves";
        return Err(refuse("switch.scheduler", "deficit round robin", allowed));
    }
    if switch.trim.as_ref().is_some_and(|trim| trim.header_weight.is_some()) {
        let allowed = "\"strict\", or switch.trim.header_weight = \"strict\": a weight of headers is a scheduler of its own";
        return Err(refuse("switch.scheduler", "deficit round robin", allowed));
    }
    Ok(())
}
