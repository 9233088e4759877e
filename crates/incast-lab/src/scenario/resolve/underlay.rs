//! `underlay` of a scheme or a class to what the simulator wants.

use super::{
    super::{document::named::Underlay, error::Problem},
    files::Files,
    scheme::{Resolved, parameter_problem, void_parameters},
};
use incast_cc::{
    Path,
    underlay::{UNDERLAYS, UnderlayParameters},
};

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

/// Given parameters of underlays that have no effect.
pub fn warnings(scheme: &Resolved, described: &super::super::document::scheme::Scheme) -> Vec<String> {
    let mut warnings = Vec::new();
    for class in &scheme.classes {
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
