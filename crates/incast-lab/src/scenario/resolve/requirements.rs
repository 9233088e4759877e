//! What the laws of a scheme need of its fabric ([`incast_cc::law::Requirements`]), and is not there.

use super::resolved::Resolved;
use crate::scenario::document::thresholds::SwitchProfile;
use incast_cc::law::Recovery;
use incast_sim::{
    config::{Buffer, ClassConfig, Ecn, LoadBalancing, SwitchConfig},
    packet::TELEMETRY_HOPS,
    topology::Topology,
};
use incast_units::Rate;
use std::collections::BTreeSet;

/// A sentence for each need that is not met.
pub fn warnings(topology: &Topology, scheme: &Resolved) -> Vec<String> {
    let (switch, most_switches) = (&scheme.switch, topology.most_switches());
    let mut unmet: Vec<String> = Vec::new();
    let mut say = |what: String| {
        if !unmet.contains(&what) {
            unmet.push(what);
        }
    };
    let marks = scheme.any_switch(topology, |switch| switch.ecn != Ecn::Off) || !switch.agent.is_none();
    for class in &scheme.classes {
        let (law, needs) = (class.law.info().name, class.law.requirements());
        if needs.marks && !marks {
            say("its law uses ECN, but switch.ecn is off, so it only learns of congestion from losses".into());
        }
        if needs.trimming && switch.trim.is_none() {
            say(format!("switch.trim is off, so {law} learns of losses from timeouts only"));
        }
        if needs.telemetry && most_switches > TELEMETRY_HOPS as u32 {
            say(format!(
                "packets record {TELEMETRY_HOPS} hops, and paths have up to {most_switches} switches: its law does not see the last ones"
            ));
        }
        if let Some(agent) = needs.agent.filter(|agent| switch.agent.info().is_none_or(|own| own.name != *agent)) {
            say(format!("{law} reads what the agent {agent} of switches writes, and switch.agent is not {agent:?}"));
        }
        if needs.telemetry && needs.agent.is_none() && switch.agent.effects().advertises {
            say(format!("{law} takes the rates that switch.agent writes for those of links"));
        }
        if let Some(by) = reorders(switch) {
            if let Some(why) = needs.order {
                say(format!("{why}, and load_balancing = {by:?} reorders packets"));
            }
            if class.recovery == Recovery::GoBackN && most_switches > 1 {
                say(format!(
                    "{law} goes back N for each packet out of order, and load_balancing = {by:?} reorders packets"
                ));
            }
        }
        if let Some(why) = needs.backpressure.filter(|_| loses(switch, class)) {
            say(why.to_owned());
        }
    }
    unmet.into_iter().map(|what| format!("scheme {}: {what}", scheme.name)).collect()
}

/// A sentence for each law whose constants were published with other thresholds of marks than the fabric has. They are
/// the scheme's own to set, as a comparison shares them.
pub fn unlike_published(topology: &Topology, scheme: &Resolved) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for class in &scheme.classes {
        let name = class.law.requirements().published_with;
        let Some(profile) = SwitchProfile::ALL.into_iter().find(|profile| Some(profile.name().as_str()) == name) else {
            continue;
        };
        let ecn = profile.ecn();
        let rates: BTreeSet<u64> = topology.cables.iter().map(|cable| cable.link.rate.bps()).collect();
        let of = |ecn: &Ecn, bps: &u64| ecn.marking(Rate::from_bps(*bps), scheme.path.base_rtt);
        let alike = |switch: &Ecn| rates.iter().all(|bps| of(switch, bps) == of(&ecn, bps));
        let differs = |ecn: &Ecn| *ecn != Ecn::Off && !alike(ecn);
        if differs(&scheme.switch.ecn) || scheme.switch.overrides.values().any(|own| differs(&own.ecn)) {
            let published: Vec<String> = profile.published().marks.iter().map(|marks| marks.to_string()).collect();
            let scaled = if profile.published().is_scaled { ", in proportion to the rate" } else { "" };
            let line = format!(
                "those of {} with switch.profile = {:?} ({}{scaled})",
                class.law.info().name,
                profile.name(),
                published.join("; ")
            );
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found
}

/// How packets of a flow come to overtake one another, if they do.
fn reorders(switch: &SwitchConfig) -> Option<&'static str> {
    match switch.load_balancing {
        LoadBalancing::Spray => Some("spray"),
        LoadBalancing::SprayPermutation => Some("spray-permutation"),
        LoadBalancing::Ecmp | LoadBalancing::SourceRouted => None,
    }
}

/// Whether packets of a class are dropped where buffers are full, and all that follow them sent again.
fn loses(switch: &SwitchConfig, class: &ClassConfig) -> bool {
    let is_paused = switch.pfc.as_ref().is_some_and(|pfc| pfc.priorities & 1 << class.priority != 0);
    let is_limited = |buffer: &Buffer| *buffer != Buffer::Unlimited;
    class.recovery == Recovery::GoBackN
        && !is_paused
        && switch.credits.is_none()
        && (is_limited(&switch.buffer) || switch.overrides.values().any(|own| is_limited(&own.buffer)))
}
