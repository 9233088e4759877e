//! `switch.agent` to the simulator's configuration, and what it changes at senders.

use super::{
    super::document::{
        named::Agent,
        scheme::Scheme,
        switch::{LoadBalancing, Switch},
    },
    files::Files,
    parameters::{given_parameters, parameter_problem, void_parameters},
    resolved::Resolved,
};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::{
    Path,
    feedback::CnpContent,
    granted_window,
    law::LawInfo,
    parameters::Raw,
    registry::{AGENTS, AgentParameters},
};
use incast_sim::{
    config::{ClassConfig, Ecn},
    topology::{Rule, Topology},
};

/// The agent of a table of switches: that which is named, or that which the choice of ports stands for.
pub fn of(switch: &Switch) -> Result<Agent, Problem> {
    let (agent, balancing) = (&switch.agent, switch.load_balancing);
    let refuse = |allowed: &str| {
        let found = format!("{:?} with agent {:?}", text(balancing), agent.kind);
        Err(Problem::value(found, allowed).at(&keys!["switch", "load_balancing"]))
    };
    match balancing {
        LoadBalancing::Iofd if agent.is_none() => Ok(Agent::plain(IOFD)),
        LoadBalancing::Iofd if agent.kind != IOFD => {
            refuse("\"ecmp\" with that agent, or \"iofd\" alone: a switch has one agent")
        }
        LoadBalancing::Spray | LoadBalancing::SourceRouted | LoadBalancing::SprayPermutation if agent.kind == IOFD => {
            refuse("\"ecmp\" or \"iofd\": the others reorder packets, or let senders choose the path")
        }
        _ => Ok(agent.clone()),
    }
}

/// The agent that deflects flows.
const IOFD: &str = "iofd";

/// The name of a choice.
fn text(balancing: LoadBalancing) -> &'static str {
    match balancing {
        LoadBalancing::Ecmp => "ecmp",
        LoadBalancing::Iofd => IOFD,
        LoadBalancing::Spray => "spray",
        LoadBalancing::SourceRouted => "source-routed",
        LoadBalancing::SprayPermutation => "spray-permutation",
    }
}

/// The agent with its parameters resolved. Faults are those of `switch.agent`.
pub fn resolve(agent: &Agent, path: &Path, files: &mut Files) -> Result<AgentParameters, Problem> {
    let mut given = agent.parameters.clone();
    let Some(info) = AGENTS.iter().find(|info| info.name == agent.kind) else {
        return match given.first() {
            Some((key, _)) => {
                Err(Problem::new(format!("unknown key: {:?} takes none", agent.kind)).under(key.as_str()))
            }
            None => Ok(AgentParameters::None),
        };
    };
    files.read_parameters(info.parameters, &mut given)?;
    match AgentParameters::resolve(info.name, path, &given) {
        Some(resolved) => {
            resolved.map_err(|error| parameter_problem(error, &format!("agent {}", info.name), &["kind"]))
        }
        None => Err(Problem::value(format!("{:?}", info.name), "an agent").under("kind")),
    }
}

/// What an agent changes about the defaults of a law: parameters that the law has and the scenario does not give.
pub fn sender_defaults<'a>(
    agent: &AgentParameters,
    law: &'a LawInfo,
    given: &'a [(String, Raw)],
) -> impl Iterator<Item = (String, Raw)> + use<'a> {
    let pairs = agent.info().map_or(&[][..], |agent| agent.sender);
    let wanted =
        |key: &str| law.parameters.iter().any(|row| row.name == key) && given.iter().all(|(other, _)| other != key);
    pairs.iter().filter(move |(key, _)| wanted(key)).map(|(key, text)| ((*key).to_owned(), raw(text)))
}

/// A value as a scenario would have it.
fn raw(text: &str) -> Raw {
    let flag = text.parse().map(Raw::Flag).ok();
    let number = || text.parse().map(Raw::Integer).or_else(|_| text.parse().map(Raw::Float)).ok();
    flag.or_else(number).unwrap_or_else(|| Raw::Text(text.to_owned()))
}

/// The parameters of laws that the agent changes, one line each.
pub fn footnotes(scheme: &Scheme, agent: &AgentParameters, classes: &[ClassConfig]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(info) = agent.info() else { return notes };
    for class in classes {
        let law = class.law.info();
        let given = given_parameters(scheme, &class.name, law);
        let changed = sender_defaults(agent, law, &given).map(|(key, raw)| format!("{key} = {raw}"));
        let changed = changed.collect::<Vec<_>>().join(" and ");
        let note = format!("{} has {changed}, as switch.agent is {:?}", law.name, info.name);
        if !changed.is_empty() && !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Something in a scheme uses the thresholds of `switch.ecn`.
pub fn uses_thresholds(scheme: &Resolved) -> bool {
    let agent = &scheme.switch.agent;
    let ports_mark = agent.info().is_none_or(|info| !info.marks);
    let capable = scheme.classes.iter().any(|class| class.law.transport().ecn_capable);
    agent.effects().reads_thresholds || ports_mark && capable
}

/// The agent marks, by the thresholds of its own or not at all: when its ports would do it does not matter.
pub fn decides_marks(scheme: &Resolved) -> bool {
    scheme.switch.agent.info().is_some_and(|info| info.marks)
}

/// Those of the `given` parameters of a law that set when granted windows end, where no switch grants any.
pub fn ungranted(scheme: &Resolved, given: impl Fn(&str) -> bool) -> Vec<&'static str> {
    if scheme.switch.agent.effects().notifies == CnpContent::Windows {
        return Vec::new();
    }
    granted_window::PARAMETERS.iter().copied().filter(|key| given(key)).collect()
}

/// Deflection and virtual channels where there is nothing for them to do.
pub fn idle(topology: &Topology, scheme: &Resolved) -> Vec<String> {
    let Resolved { name, switch, .. } = scheme;
    let mut warnings = Vec::new();
    let wants_longer = switch.agent.values().contains(&("loop_free_alternates", Raw::Flag(true)));
    let has_choice = |rule: &Rule| (0..topology.hosts).any(|host| rule.alternatives(host).nth(1).is_some());
    if switch.agent.reroutes() && !wants_longer && !topology.rules.iter().any(has_choice) {
        warnings
            .push(format!("scheme {name}: {IOFD} has no effect, as no switch has two ports of equal cost to a host"));
    }
    if switch.virtual_channels > 1 && switch.pfc.is_none() {
        warnings.push(format!("scheme {name}: switch.virtual_channels have no effect without switch.pfc"));
    }
    warnings
}

/// What has no effect of what an agent does.
pub fn warnings(scheme: &Resolved) -> Vec<String> {
    let Resolved { name, switch, classes, merged: (table, _), .. } = scheme;
    let Some(info) = switch.agent.info() else { return Vec::new() };
    let (agent, effects) = (format!("switch.agent {:?}", info.name), switch.agent.effects());
    let mut warnings = Vec::new();
    let is_off = switch.ecn == Ecn::Off && switch.overrides.values().all(|own| own.ecn == Ecn::Off);
    if effects.reads_thresholds && is_off {
        warnings.push(format!("{agent} uses the thresholds of switch.ecn, which is off"));
    }
    if effects.reads_pauses && switch.pfc.is_none() && switch.credits.is_none() {
        warnings.push(format!(
            "without switch.pfc or switch.credits nothing is paused, and what {agent} does about pauses has no effect"
        ));
    }
    let marks = if info.marks { effects.marks } else { table.ecn != Ecn::Off };
    for class in classes {
        let (law, uses) = (class.law.info(), class.law.capabilities().cnp);
        let ecn_capable = class.law.transport().ecn_capable;
        let notified = effects.notifies != CnpContent::Nothing;
        let (uses_notifications, sees_marks) = (notified && uses >= effects.notifies, marks && ecn_capable);
        if notified && !uses_notifications {
            let then = if sees_marks { "" } else { ", so its flows do not react to it" };
            warnings.push(format!("{} uses no notifications of {agent}{then}", law.name));
        } else if !uses_notifications && effects.marks && !ecn_capable {
            warnings.push(format!("{} does not use ECN, so its flows do not react to {agent}", law.name));
        } else if !marks && ecn_capable && uses < CnpContent::Congestion {
            warnings.push(format!("{} uses ECN, but with {agent} no packet is marked", law.name));
        } else if effects.undetermined && class.law.transport().marks_at_edge {
            let takes = "takes UE for a mark of the port to its receiver";
            warnings.push(format!("{law} {takes}: it does nothing about the UE of {agent}", law = law.name));
        } else if effects.undetermined && class.law.transport().notification_interval.is_none() {
            let learns = "learns of marks from acknowledgements, which carry CE but not UE";
            warnings.push(format!("{} {learns}: it does nothing about the UE of {agent}", law.name));
        }
    }
    let values = switch.agent.values();
    let void = void_parameters(switch.agent.conditions(), &values, |key| {
        table.agent.parameters.iter().any(|(other, _)| other == key)
    });
    warnings.extend(void.iter().map(|void| format!("switch.agent.{void}")));
    warnings.into_iter().map(|warning| format!("scheme {name}: {warning}")).collect()
}
