//! Parameters of laws, agents and underlays: which are given, which are refused, which have no effect.

use crate::scenario::document::{parameters::Parameters, scheme::Scheme};
use crate::scenario::tree::{error::Problem, renamed::renamed};
use incast_cc::{
    law::LawInfo,
    parameters::{Condition, ParameterError, Raw},
};

/// What a scenario gives for a class: one of another law starts from that law's defaults, one of the same law from the
/// scheme's parameters.
pub fn given_parameters(scheme: &Scheme, class: &str, law: &LawInfo) -> Parameters {
    let refinement = scheme.by_class.iter().find(|(name, _)| name == class).map(|(_, refinement)| refinement);
    let mut given = if law.name == scheme.law { scheme.parameters.clone() } else { Vec::new() };
    for (key, raw) in refinement.map_or(&[][..], |refinement| &refinement.parameters) {
        given.retain(|(other, _)| other != key);
        given.push((key.clone(), raw.clone()));
    }
    given
}

/// A parameter of `whose` that is refused, in a table that has other keys besides.
pub fn parameter_problem(error: ParameterError, whose: &str, others: &[&str]) -> Problem {
    match error {
        ParameterError::Unknown { name, allowed } => {
            let names = allowed.into_iter().chain(others.iter().copied());
            Problem::unknown(format!("unknown key for the {whose}"), &name, names).under(name)
        }
        ParameterError::Value { name, message } => {
            // Of a choice: what was found and what is allowed, each in quotes.
            let mut quoted = message.split('"').skip(1).step_by(2);
            let new = quoted.next().and_then(|found| renamed(found, quoted));
            let new = new.map(|new| format!("{message}: it is called {new:?} now"));
            Problem::new(new.unwrap_or(message)).under(name)
        }
    }
}

/// Those of the `given` parameters that do nothing, and with which value of which other one. A parameter that the value
/// of another one names (`decrease_guard = "cnp-interval"`) does something there.
pub fn void_parameters(conditions: &[Condition], values: &[(&str, Raw)], given: impl Fn(&str) -> bool) -> Vec<String> {
    let named = |parameter: &str| {
        values.iter().any(|(key, value)| {
            *key != parameter && matches!(value, Raw::Text(text) if text.replace('-', "_") == parameter)
        })
    };
    let given = conditions.iter().filter(|condition| given(condition.parameter) && !named(condition.parameter));
    let void = given.filter_map(|condition| {
        let (key, value) = values.iter().find(|(key, _)| *key == condition.other)?;
        let (value, shown) = match value {
            Raw::Text(text) => (text.as_str(), format!("{text:?}")),
            Raw::Flag(flag) => (if *flag { "true" } else { "false" }, flag.to_string()),
            _ => return None,
        };
        let void = !condition.values.contains(&value);
        void.then(|| format!("{} has no effect with {key} = {shown}", condition.parameter))
    });
    void.collect()
}
