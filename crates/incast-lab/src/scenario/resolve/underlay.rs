//! `underlay` of a scheme or a class to the simulator's configuration.

use super::{
    super::document::{named::Underlay, scheme::Scheme},
    files::Files,
    parameters::{parameter_problem, void_parameters},
    resolved::Resolved,
};
use crate::scenario::tree::error::Problem;
use incast_cc::{
    Path,
    law::Acknowledges,
    parameters::Setting,
    registry::{UNDERLAYS, UnderlayParameters},
    underlay::Reports,
};
use incast_units::Time;

/// The underlay with its parameters resolved. Faults are those of `underlay`.
pub fn resolve(underlay: &Underlay, path: &Path, files: &mut Files) -> Result<UnderlayParameters, Problem> {
    let mut given = underlay.parameters.clone();
    let Some(info) = UNDERLAYS.iter().find(|info| info.name == underlay.kind) else {
        return match given.first() {
            Some((key, _)) => {
                Err(Problem::new(format!("unknown key: {:?} takes none", underlay.kind)).under(key.as_str()))
            }
            None => Ok(UnderlayParameters::None),
        };
    };
    files.read_parameters(info.parameters, &mut given)?;
    match UnderlayParameters::resolve(info.name, path, &given) {
        Some(resolved) => {
            resolved.map_err(|error| parameter_problem(error, &format!("underlay {}", info.name), &["kind"]))
        }
        None => Err(Problem::value(format!("{:?}", info.name), "an underlay").under("kind")),
    }
}

/// Warnings about parameters of underlays that have no effect, and about combinations that make no sense.
pub fn warnings(scheme: &Resolved, described: &Scheme) -> Vec<String> {
    let mut warnings = Vec::new();
    for class in &scheme.classes {
        let Some(arrangement) = class.underlay.arrangement() else { continue };
        let by_acks = arrangement.reports == Reports::Acknowledgements;
        if by_acks && class.law.transport().acknowledges == Acknowledges::Flows {
            let law = class.law.info().name;
            let warning = format!(
                "scheme {}: underlay.reports = \"acks\" reports next to nothing, as {law} acknowledges flows, not packets",
                scheme.name
            );
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let threshold = class.underlay.values().into_iter().find(|(key, _)| *key == "threshold");
        let threshold = threshold.and_then(|(_, raw)| <Time as Setting>::read(&raw).ok());
        // Half of the longest round trip: data takes more than half of it.
        let alone = Time::from_ps(scheme.path.base_rtt.ps() / 2);
        if let Some(threshold) = threshold.filter(|threshold| *threshold < alone) {
            let warning = format!(
                "scheme {}: underlay.threshold = \"{threshold}\" is below half of the base RTT, {alone}: the longest paths are held without a queue",
                scheme.name
            );
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let refinement = described.by_class.iter().find(|(name, _)| *name == class.name);
        let own = refinement.and_then(|(_, refinement)| refinement.underlay.as_ref());
        let given = &own.unwrap_or(&described.underlay).parameters;
        let void = void_parameters(class.underlay.conditions(), &class.underlay.values(), |key| {
            given.iter().any(|(other, _)| other == key)
        });
        for void in void {
            let place =
                if own.is_some() { format!("by_class.{}.underlay", class.name) } else { "underlay".into() };
            let warning = format!("scheme {}: {place}.{void}", scheme.name);
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}
