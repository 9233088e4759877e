//! `onrampctl metrics`: what `onrampctl status` says, in the text format of Prometheus.

use crate::{
    arguments,
    stamps::OnRamp,
    status::{Status, gather},
};
use hostctl::{
    failure::{Outcome, While},
    metrics, output, view,
    watch::Counts,
};

/// Prints the metrics, or writes them for the text-file collector of node_exporter.
pub fn metrics(arguments: &arguments::Metrics) -> Outcome {
    view::root()?;
    let text = text(&gather()?, &Counts::read::<OnRamp>());
    match &arguments.out {
        None => output::print("onrampctl", format_args!("{text}")),
        Some(path) => metrics::write(path, &text).during(format!("cannot write {}", path.display()))?,
    }
    Ok(())
}

fn text(status: &Status, watched: &Counts) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        metrics::metric(&mut text, "onramp", name, kind, help, values);
    };
    let one = |count: u64| [(String::new(), count)];
    let count = |list: &[String]| list.len() as u64;
    metric("loaded", "gauge", "Whether On-Ramp is attached to a device.", &one(status.devices.is_some().into()));
    metric("holds", "gauge", "Destinations that packets are held for.", &one(count(&status.holds)));
    metric("paths", "gauge", "Addresses that packets went to.", &one(status.paths as u64));
    let help = "Of those, addresses whose delays are counted by clocks that were compared.";
    metric("paths_known", "gauge", help, &one(status.paths_known as u64));
    metric("routes", "gauge", "Routes with the attributes that they were given.", &one(status.enabled.routes as u64));
    let help = "Routes that were enabled and have come back without.";
    metric("routes_drifted", "gauge", help, &one(count(&status.enabled.drifted)));
    metric("routes_due", "gauge", "Routes to be given back what they had.", &one(count(&status.enabled.due)));
    metric("watched", "gauge", "Whether onrampctl watch runs.", &one(status.watched.into()));
    metric("advice", "gauge", "What makes On-Ramp less than it could be.", &one(count(&status.advice)));
    let help = "How often an enabled route has come back without.";
    metric("route_drifts_total", "counter", help, &one(watched.drifts));
    let help = "How often one was put back by onrampctl watch.";
    metric("route_restores_total", "counter", help, &one(watched.restores));
    let events = status.counters.iter().map(|(name, count)| (format!("event=\"{name}\""), count));
    let events: Vec<_> = if status.devices.is_some() { events.collect() } else { Vec::new() };
    metric("events_total", "counter", "What has happened since On-Ramp was loaded.", &events);
    text
}
