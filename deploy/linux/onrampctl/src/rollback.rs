//! `onrampctl rollback`: nothing is held any more, and routes have what they had before.

use crate::{bpf::Loaded, stamps::OnRamp};
use hostctl::{
    Tool as _,
    failure::Outcome,
    lock,
    rollback::{self, Report},
    say, view,
};

/// Undoes every `enable`, on the host in every network namespace.
pub fn rollback() -> Outcome {
    view::root()?;
    let _lock = lock::hold::<OnRamp>()?;
    let registered = OnRamp::registered()?;
    let mut report = rollback::rollback::<OnRamp>(&registered, nothing_held);
    if report.said.is_empty() && report.failures.is_empty() {
        report.said.push("nothing to undo: no route was enabled, and nothing is held".into());
    }
    report.said.iter().for_each(|line| say!("{line}"));
    report.outcome()
}

/// In this network namespace. What is held leaves when it would have.
fn nothing_held(report: &mut Report) {
    let outcome = Loaded::open().and_then(|loaded| {
        let Some(loaded) = loaded else { return Ok(Vec::new()) };
        let prefixes = loaded.prefixes()?;
        loaded.release(&prefixes)?;
        Ok(prefixes)
    });
    match outcome {
        Ok(prefixes) => {
            report.said.extend(prefixes.iter().map(|prefix| format!("{}: nothing is held", prefix.describe())))
        }
        Err(failure) => report.failures.push(failure.to_string()),
    }
}
