//! `underlay` of a scheme or a class to the simulator's configuration.

use super::{
    super::document::{host::Sync, named::Underlay, scheme::Scheme},
    files::Files,
    parameters::{parameter_problem, void_parameters},
    resolved::Resolved,
};
use crate::scenario::tree::error::Problem;
use incast_cc::{
    Path,
    law::Acknowledges,
    parameters::{Raw, Setting},
    registry::{UNDERLAYS, UnderlayParameters},
    underlay::Reports,
};
use incast_sim::{
    config::ClassConfig,
    topology::{Topology, ideal},
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
pub fn warnings(topology: &Topology, scheme: &Resolved, written: &Scheme) -> Vec<String> {
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
        for warning in thresholds(topology, scheme, class) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let refinement = written.by_class.iter().find(|(name, _)| *name == class.name);
        let own = refinement.and_then(|(_, refinement)| refinement.underlay.as_ref());
        let given = &own.unwrap_or(&written.underlay).parameters;
        let void = void_parameters(class.underlay.conditions(), &class.underlay.values(), |key| {
            given.iter().any(|(other, _)| other == key)
        });
        for void in void {
            let place = if own.is_some() { format!("by_class.{}.underlay", class.name) } else { "underlay".into() };
            let warning = format!("scheme {}: {place}.{void}", scheme.name);
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Warnings about what a threshold of one-way delays leaves for queues, and about reports that come late.
fn thresholds(topology: &Topology, scheme: &Resolved, class: &ClassConfig) -> Vec<String> {
    let (name, host) = (&scheme.name, &scheme.merged.1);
    let values = class.underlay.values();
    let of = |key: &str| values.iter().find(|(other, _)| *other == key).map(|(_, raw)| raw);
    let mut warnings = Vec::new();
    if let Some(threshold) = of("threshold").and_then(|raw| <Time as Setting>::read(raw).ok()) {
        // Longer paths have a threshold that is higher by as much, or the same.
        let is_of_path = matches!(of("base_delay"), Some(Raw::Text(base)) if base == "path");
        let (alone, paths) = match is_of_path {
            true => (scheme.path.least_delay, "all paths"),
            false => (one_way(topology, scheme.path.wire_mss), "the longest paths"),
        };
        // Both ends are off, each either way.
        let drift = host.clock.drift_ppm * 1e-6 * scheme.path.base_rtt.as_us_f64();
        let off = (host.clock.offset.most() + host.clock.noise).saturating_mul(2) + Time::from_ns((2e3 * drift) as u64);
        if threshold < alone {
            warnings.push(format!(
                "scheme {name}: underlay.threshold = \"{threshold}\" is below the one-way delay of a full packet, {alone}: {paths} are held without a queue"
            ));
        } else if off > threshold - alone && host.clock.sync == Sync::None {
            warnings.push(format!(
                "scheme {name}: underlay.threshold = \"{threshold}\" leaves {} for queues beyond the one-way delay of a full packet, and two clocks may differ by {off}: some flows are held without a queue",
                threshold - alone
            ));
        }
    }
    let is_clocked = matches!(of("release"), Some(Raw::Text(release)) if release == "clocked");
    let by_acks = class.underlay.arrangement().is_some_and(|it| it.reports == Reports::Acknowledgements);
    if is_clocked && by_acks && scheme.host.ack_every > 1 {
        warnings.push(format!(
            "scheme {name}: underlay.release = \"clocked\" releases a packet for each report, and host.ack_every = {} reports several packets at once",
            scheme.host.ack_every
        ));
    }
    warnings
}

/// The longest time of a full packet from host to host through an empty fabric: a round trip without the way back.
fn one_way(topology: &Topology, wire_mss: u32) -> Time {
    let there = ideal::max_base_rtt(topology, wire_mss, 0);
    let back = Time::from_ps(ideal::max_base_rtt(topology, 0, 0).ps() / 2);
    there - back
}
