//! `marimoctl metrics`: what `marimoctl status` says, in the text format of Prometheus.

use crate::{
    arguments,
    failure::{Failure, Outcome, While},
    layout::NAME,
    module, output, routes,
    status::{Status, gather},
    view,
    watch::Counts,
};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, open, openat, renameat, unlinkat};
use std::{fmt::Write as _, fs::File, io::Write as _, path::Path};

/// Prints the metrics, or writes them for the text-file collector of node_exporter.
pub fn metrics(arguments: &arguments::Metrics) -> Outcome {
    view::root()?;
    let status = gather()?;
    if let Some(hidden) = status.hidden {
        return Err(Failure::failed(hidden));
    }
    let text = text(&status, &routes::default()?, routes::count(), &Counts::read());
    match &arguments.out {
        None => output::print(format_args!("{text}")),
        Some(path) => write(path, &text).during(format!("cannot write {}", path.display()))?,
    }
    Ok(())
}

/// The collector must never see half a file. Whoever may write to the folder must not lead root elsewhere: it is no link itself,
/// and files are made and renamed in it by name, without following one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = open(folder, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    // Of a process of this number that was killed: removed, if it is there, never followed.
    let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    let mut file = File::from(openat(&folder, &temporary, flags, mode)?);
    // Whatever the mask is: another user collects it.
    fchmod(&file, mode)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
    if written.is_err() {
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

/// One metric: its name, type, meaning and values by labels.
fn metric(text: &mut String, name: &str, kind: &str, help: &str, values: &[(String, u64)]) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP marimo_{name} {help}\n# TYPE marimo_{name} {kind}");
    for (labels, value) in values {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(text, "marimo_{name}{labels} {value}");
    }
}

fn text(status: &Status, default: &str, routes: Option<usize>, watched: &Counts) -> String {
    let mut text = String::new();
    let form = |name: &str| format!("form=\"{name}\"");
    let (bpf, module) = (form(NAME), form(module::NAME));
    let loaded = [(bpf.clone(), status.bpf.is_some().into()), (module.clone(), status.module.is_some().into())];
    metric(&mut text, "loaded", "gauge", "Whether this form of Marimo is loaded.", &loaded);
    let is_default = u64::from(routes::NAMES.contains(&default));
    metric(
        &mut text,
        "default",
        "gauge",
        "Whether Marimo is the default of new connections.",
        &[(String::new(), is_default)],
    );
    if let Some(routes) = routes {
        let routes = [(String::new(), routes as u64)];
        metric(&mut text, "routes", "gauge", "Routes that name Marimo as their congestion control.", &routes);
    }
    let one = |count: u64| [(String::new(), count)];
    let help = "Routes that were enabled and have come back without.";
    metric(&mut text, "routes_drifted", "gauge", help, &one(status.enabled.drifted.len() as u64));
    let help = "Routes to be given back what they had.";
    metric(&mut text, "routes_due", "gauge", help, &one(status.enabled.due.len() as u64));
    metric(&mut text, "watched", "gauge", "Whether marimoctl watch runs.", &one(status.watched.into()));
    let help = "How often an enabled route has come back without.";
    metric(&mut text, "route_drifts_total", "counter", help, &one(watched.drifts));
    let help = "How often one was put back by marimoctl watch.";
    metric(&mut text, "route_restores_total", "counter", help, &one(watched.restores));
    let namespaces = one(status.elsewhere.iter().filter(|namespace| namespace.default).count() as u64);
    let help = "Processes whose network namespace cannot be seen.";
    metric(&mut text, "unseen_processes", "gauge", help, &one(status.unseen_processes as u64));
    let help = "Other network namespaces whose default is Marimo, as far as they are seen.";
    metric(&mut text, "default_namespaces", "gauge", help, &namespaces);
    let draining = [(bpf.clone(), status.draining as u64)];
    metric(&mut text, "draining_copies", "gauge", "Unloaded copies with open connections.", &draining);
    let held = [(bpf.clone(), status.held as u64)];
    metric(&mut text, "held_copies", "gauge", "Unloaded copies without connections.", &held);
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
    metric(&mut text, "connections", "gauge", "Open connections.", &connections);
    metric(&mut text, "table_info", "gauge", "The table f in use, by its checksum.", &tables);
    metric(&mut text, "events_total", "counter", "What has happened since Marimo was loaded.", &events);
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
            enabled: routes::Enabled::default(),
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
