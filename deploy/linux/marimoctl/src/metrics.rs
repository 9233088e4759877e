//! `marimoctl metrics`: what `marimoctl status` says, in the text format of Prometheus.

use crate::{
    arguments,
    layout::NAME,
    module,
    routes::{self, Marimo},
    status::{Status, gather},
};
use hostctl::{
    failure::{Failure, Outcome, While},
    output,
    routes::count,
    view::root,
    watch::Counts,
};

/// Prints the metrics, or writes them for the text-file collector of node_exporter.
pub fn metrics(arguments: &arguments::Metrics) -> Outcome {
    root()?;
    let status = gather()?;
    if let Some(hidden) = status.hidden {
        return Err(Failure::failed(hidden));
    }
    let text = text(&status, &routes::default()?, count::<Marimo>(), &Counts::read::<Marimo>());
    match &arguments.out {
        None => output::print(env!("CARGO_PKG_NAME"), format_args!("{text}")),
        Some(path) => hostctl::metrics::write(path, &text).during(format!("cannot write {}", path.display()))?,
    }
    Ok(())
}

fn text(status: &Status, default: &str, routes: Option<usize>, watched: &Counts) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        hostctl::metrics::metric(&mut text, "marimo", name, kind, help, values);
    };
    let form = |name: &str| format!("form=\"{name}\"");
    let (bpf, module) = (form(NAME), form(module::NAME));
    let loaded = [(bpf.clone(), status.bpf.is_some().into()), (module.clone(), status.module.is_some().into())];
    metric("loaded", "gauge", "Whether this form of Marimo is loaded.", &loaded);
    let is_default = u64::from(routes::NAMES.contains(&default));
    metric("default", "gauge", "Whether Marimo is the default of new connections.", &[(String::new(), is_default)]);
    if let Some(routes) = routes {
        let routes = [(String::new(), routes as u64)];
        metric("routes", "gauge", "Routes that name Marimo as their congestion control.", &routes);
    }
    let one = |count: u64| [(String::new(), count)];
    let help = "Routes that were enabled and have come back without.";
    metric("routes_drifted", "gauge", help, &one(status.enabled.drifted.len() as u64));
    let help = "Routes to be given back what they had.";
    metric("routes_due", "gauge", help, &one(status.enabled.due.len() as u64));
    metric("watched", "gauge", "Whether marimoctl watch runs.", &one(status.watched.into()));
    let help = "How often an enabled route has come back without.";
    metric("route_drifts_total", "counter", help, &one(watched.drifts));
    let help = "How often one was put back by marimoctl watch.";
    metric("route_restores_total", "counter", help, &one(watched.restores));
    let namespaces = one(status.elsewhere.iter().filter(|namespace| namespace.default).count() as u64);
    let help = "Processes whose network namespace cannot be seen.";
    metric("unseen_processes", "gauge", help, &one(status.unseen_processes as u64));
    let help = "Other network namespaces whose default is Marimo, as far as they are seen.";
    metric("default_namespaces", "gauge", help, &namespaces);
    let draining = [(bpf.clone(), status.draining as u64)];
    metric("draining_copies", "gauge", "Unloaded copies with open connections.", &draining);
    let held = [(bpf.clone(), status.held as u64)];
    metric("held_copies", "gauge", "Unloaded copies without connections.", &held);
    let (mut connections, mut events, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(of) = &status.bpf {
        connections.push((bpf.clone(), of.connections));
        tables.push((format!("{bpf},checksum=\"{}\"", of.table), 1));
        events.extend(of.counters.iter().map(|(name, count)| (format!("{bpf},event=\"{name}\""), count)));
    }
    if let Some(of) = &status.module {
        tables.push((format!("{module},checksum=\"{}\"", of.table), 1));
        for (name, count) in &of.counters {
            match name.as_str() {
                // Of the module: open connections.
                "connections" => connections.push((module.clone(), *count)),
                _ => events.push((format!("{module},event=\"{name}\""), *count)),
            }
        }
    }
    metric("connections", "gauge", "Open connections.", &connections);
    metric("table_info", "gauge", "The table f in use, by its checksum.", &tables);
    metric("events_total", "counter", "What has happened since Marimo was loaded.", &events);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_marimo_says_so() {
        let status = Status {
            lacking: None,
            bpf: None,
            draining: 0,
            held: 0,
            leftovers: false,
            hidden: None,
            module: None,
            enabled: hostctl::routes::Enabled::default(),
            watched: false,
            elsewhere: Vec::new(),
            unseen_processes: 0,
            advice: Vec::new(),
        };
        let text = text(&status, "cubic", Some(0), &Counts { drifts: 3, ..Counts::default() });
        assert!(text.contains("\nmarimo_route_drifts_total 3\n"), "{text}");
        assert!(text.contains("# TYPE marimo_loaded gauge\nmarimo_loaded{form=\"bpf_marimo\"} 0\n"), "{text}");
        assert!(text.contains("\nmarimo_default 0\n") && text.contains("\nmarimo_routes 0\n"), "{text}");
        assert!(!text.contains("marimo_connections"), "{text}");
        // The format: comments, and lines of a name, labels and a number.
        assert!(text.lines().all(|line| {
            line.starts_with("# ")
                || line
                    .rsplit_once(' ')
                    .is_some_and(|(name, value)| name.starts_with("marimo_") && value.parse::<u64>().is_ok())
        }));
    }
}
