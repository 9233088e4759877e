//! `marimoctl rollback`: new connections use what they used before Marimo.

use crate::{
    arguments,
    bpf::registered,
    routes::{DEFAULT, Marimo, NAMES, default},
};
use hostctl::{
    failure::{Failure, Outcome},
    lock,
    rollback::{self, Report},
    say,
    view::root,
};
use std::fs;

/// Routes name what they named, and Marimo is the default of no network namespace.
pub fn rollback(arguments: &arguments::Rollback) -> Outcome {
    root()?;
    let _lock = lock::hold::<Marimo>()?;
    let registered = registered()?;
    // Of what is not registered the kernel may load a module, unless somebody has typed it wrong.
    let is_wrong = |to: &str| NAMES.contains(&to) || (is_default() && !registered.iter().any(|name| name == to));
    if let Some(to) = arguments.to.as_deref().filter(|to| is_wrong(to)) {
        return Err(Failure::input(format!(
            "--to: found {to:?}, allowed is one of {}",
            registered.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    let to = arguments.to.as_deref().unwrap_or("cubic");
    let mut report = rollback::rollback::<Marimo>(&registered, |report| {
        if is_default() {
            take_back_default(to, report);
        }
    });
    if report.said.is_empty() && report.failures.is_empty() {
        report.said.push("nothing to undo: no route names Marimo, and the default is another".into());
    }
    for line in report.said {
        say!("{line}");
    }
    if report.failures.is_empty() { Ok(()) } else { Err(Failure::failed(report.failures.join("\n"))) }
}

fn is_default() -> bool {
    default().is_ok_and(|name| NAMES.contains(&name.as_str()))
}

/// A namespace that is not the first may have what the first one's administrator allows; Reno is always there.
fn take_back_default(to: &str, report: &mut Report) {
    for name in [to, "reno"] {
        match fs::write(DEFAULT, name) {
            Ok(()) => return report.said.push(format!("sysctl -w net.ipv4.tcp_congestion_control={name}")),
            Err(error) if name == "reno" => report.failures.push(format!("cannot write {DEFAULT}: {error}")),
            Err(_) => {}
        }
    }
}
