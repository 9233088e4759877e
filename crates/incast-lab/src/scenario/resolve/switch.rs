//! `[switch]` to the simulator's configuration.

use super::{
    super::document::switch::{self as document, Switch},
    agent, buffer,
    files::Files,
    group::Group,
    pfc, refusal, trim,
};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::Path;
use incast_sim::{
    checks::{check_credits_alone, check_not_ect, check_priorities, check_scheduler, check_trim},
    config::{Ecn, LoadBalancing, RedAtRate, Size, SwitchConfig},
};
use incast_units::{Rate, Time};
use std::collections::BTreeMap;

/// Checks and converts the table of some switches; `path` is for comparing thresholds with the buffer and for the defaults
/// of agents, the size of a full packet for those of trimming.
pub fn resolve(
    switch: &Switch,
    group: &Group<'_>,
    path: &Path,
    full_frame: u32,
    files: &mut Files,
) -> Result<SwitchConfig, Problem> {
    check_priorities(switch.priorities, switch.virtual_channels).map_err(|error| refusal(error, &keys!["switch"]))?;
    let agent =
        agent::resolve(&agent::of(switch)?, path, files).map_err(|problem| problem.at(&keys!["switch", "agent"]))?;
    let pfc = pfc::resolve(&switch.pfc, switch.priorities / switch.virtual_channels)?;
    let trim = switch.trim.0.as_ref().map(|trim| trim::resolve(trim, full_frame)).transpose()?;
    check_profile(switch, group).map_err(|problem| problem.at(&keys!["switch", "profile"]))?;
    check_ecn(&switch.ecn, group, path.base_rtt).map_err(|problem| problem.at(&keys!["switch", "ecn"]))?;
    let resolved = SwitchConfig {
        buffer: buffer::resolve(switch, group, path.wire_mss)?,
        ecn: switch.ecn.clone(),
        mark_at: switch.ecn_at,
        not_ect: switch.not_ect,
        priorities: switch.priorities,
        scheduler: switch.scheduler.clone(),
        virtual_channels: switch.virtual_channels,
        load_balancing: match switch.load_balancing {
            document::LoadBalancing::Ecmp | document::LoadBalancing::Iofd => LoadBalancing::Ecmp,
            document::LoadBalancing::Spray => LoadBalancing::Spray,
            document::LoadBalancing::SourceRouted => LoadBalancing::SourceRouted,
            document::LoadBalancing::SprayPermutation => LoadBalancing::SprayPermutation,
        },
        agent,
        telemetry: false,
        pfc,
        trim,
        credits: switch.credits.0.clone(),
        overrides: BTreeMap::new(),
    };
    check_credits_alone(&resolved).map_err(|error| refusal(error, &keys!["switch", "credits"]))?;
    check_not_ect(&resolved).map_err(|error| refusal(error, &keys!["switch", "not_ect"]))?;
    check_trim(&resolved).map_err(|error| refusal(error, &keys!["switch", "trim"]))?;
    check_scheduler(&resolved).map_err(|error| refusal(error, &keys!["switch", "scheduler"]))?;
    Ok(resolved)
}

/// Thresholds have one source, and a profile's are those of the rates that it was published for.
fn check_profile(switch: &Switch, group: &Group<'_>) -> Result<(), Problem> {
    let Some(profile) = switch.profile else { return Ok(()) };
    let (name, ecn) = (profile.name(), profile.ecn());
    if switch.ecn != ecn {
        return Err(Problem::new(format!("{name:?} sets ecn, which is given beside it; allowed is one of the two")));
    }
    let Ecn::RedByRate { rates } = ecn else { return Ok(()) };
    let unpublished = |rate: &Rate| rates.iter().all(|red| red.rate != *rate);
    let Some(rate) = group.rates().find(unpublished) else { return Ok(()) };
    let known: Vec<String> = rates.iter().map(|red| red.rate.to_string()).collect();
    Err(Problem::new(format!(
        "{name:?} has thresholds for ports of {}, and there are ports of {rate}; ecn = … gives some of one's own",
        known.join(", ")
    )))
}

fn check_ecn(ecn: &Ecn, group: &Group<'_>, base_rtt: Time) -> Result<(), Problem> {
    match ecn {
        Ecn::Off | Ecn::Step { .. } => Ok(()),
        Ecn::Red { min, max, p } => check_red(*min, *max, *p, base_rtt),
        Ecn::RedByRate { rates } => {
            for (index, &RedAtRate { rate, min, max, p }) in rates.iter().enumerate() {
                let here = |problem: Problem| problem.at(&keys!["rates", index]);
                check_red(min, max, p, base_rtt).map_err(here)?;
                if rates[..index].iter().any(|other| other.rate == rate) {
                    return Err(here(Problem::new(format!("the rate {rate} is given twice")).under("rate")));
                }
            }
            let without = |rate: &Rate| rates.iter().all(|red| red.rate != *rate);
            // A host's port is no switch's, but the other end of its link is.
            if let Some(rate) = group.rates().find(without) {
                let problem = Problem::new(format!("there are ports of {rate}, but no thresholds for them"));
                return Err(problem.under("rates"));
            }
            Ok(())
        }
    }
}

fn check_red(min: Size, max: Size, p: f64, base_rtt: Time) -> Result<(), Problem> {
    if !(p > 0.0 && p <= 1.0) {
        return Err(Problem::value(p, "above 0 and at most 1").under("p"));
    }
    let comparable = |size: Size| size.bytes(Rate::from_gbps(100), base_rtt);
    if comparable(min) > comparable(max) {
        return Err(Problem::value(min, format!("at most max, {max}")).under("min"));
    }
    Ok(())
}
