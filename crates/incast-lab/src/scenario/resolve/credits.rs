//! `switch.credits` to what the simulator wants, and whether it makes sense there.

use super::super::{
    document::credits::{Credits as Described, FlowControl},
    error::Problem,
    tree::{Step, keys},
};
use incast_sim::{
    ConfigError, Fabric, check_credits,
    config::{Credits, Pfc, Trim},
    credit_rules,
};
use incast_units::{Rate, Time};

fn at(key: &str, problem: Problem) -> Problem {
    problem.at(&keys!["switch", "credits", key])
}

/// Checks what can be said without the fabric, and converts.
pub fn resolve(
    credits: &FlowControl,
    pfc: Option<&Pfc>,
    trim: Option<&Trim>,
) -> Result<Option<Credits>, Problem> {
    let FlowControl::On(credits) = credits else { return Ok(None) };
    let Described { buffer, update, frame, refresh, deadlock_after } = credits;
    let here = |problem: Problem| problem.at(&keys!["switch", "credits"]);
    if pfc.is_some() {
        return Err(here(Problem::new("switches with credits have no switch.pfc: it is one or the other")));
    }
    if trim.is_some() {
        let message = "switches with credits have no switch.trim: what waits for credits is not trimmed";
        return Err(here(Problem::new(message)));
    }
    let frame =
        u16::try_from(frame.0.get()).map_err(|_| at("frame", Problem::value(frame, "1B to 9216B")))?;
    Ok(Some(Credits {
        buffer: buffer.map(|size| size.0.get()),
        update: update.map(|size| size.0.get()),
        frame,
        refresh: refresh.map(|time| time.0),
        deadlock_after: Some(deadlock_after.0),
    }))
}

/// Refuses what could never be sent, or has no memory.
pub fn check(fabric: Fabric<'_>) -> Result<(), Problem> {
    check_credits(fabric).map_err(|error| match error {
        ConfigError::Value { what, found, allowed } => {
            let path: Vec<Step> = what.split('.').map(Step::from).collect();
            Problem::value(found, allowed).at(&path)
        }
        other => Problem::new(other.to_string()).at(&keys!["switch", "credits"]),
    })
}

/// What credits come to, one line for each kind of link; nothing where there are none.
pub fn describe(fabric: Fabric<'_>) -> Vec<String> {
    let Some(rules) = credit_rules(fabric) else { return Vec::new() };
    let cables = fabric.topology.cables.iter();
    let mut links: Vec<(Rate, Time)> = cables.map(|cable| (cable.link.rate, cable.link.delay)).collect();
    links.sort_unstable_by_key(|(rate, delay)| (rate.bps(), delay.ps()));
    links.dedup();
    let line = |(rate, delay): (Rate, Time)| {
        let limits = rules.limits(rate, delay);
        format!(
            "links of {rate} with cables of {delay}: {} B for each end and each of {} virtual lanes in use \
             ({} full packets keep the link busy), updates of {} B",
            limits.bytes(),
            rules.count(),
            rules.packets_out(rate, delay),
            u64::from(limits.update) * 64,
        )
    };
    links.into_iter().map(line).collect()
}
