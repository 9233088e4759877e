//! `switch.credits` to the simulator's configuration, and whether it can work there.

use super::refusal;
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::{Fabric, checks::check_credits, credit_rules};
use incast_units::{Rate, Time};

/// Refuses what could never be sent, or has no buffer.
pub fn check(fabric: Fabric<'_>) -> Result<(), Problem> {
    check_credits(fabric).map_err(|error| refusal(error, &keys!["switch", "credits"]))
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
