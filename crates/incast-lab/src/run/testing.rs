//! A small scenario for the tests of this folder.

use crate::scenario::{Run, Scenario, Source};
use std::path::PathBuf;

/// Two schemes, two loads, one seed.
pub fn scenario() -> Scenario {
    scenario_with(&[])
}

/// The same with other values.
pub fn scenario_with(sets: &[(&str, &str)]) -> Scenario {
    let text = r#"
name = "testing"
duration = "200us"
drain = "100ms"
[topology]
kind = "single-switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { total = "1MB" }
[[workload]]
class = "background"
kind = "poisson"
sizes = { fixed = "20KB" }
load = 0.2
[[scheme]]
law = "dctcp"
switch.ecn = { kind = "step", at = "30KB" }
[[scheme]]
law = "cubic"
[grid]
"workload.background.load" = [0.2, 0.4]
"#;
    let source = Source { path: PathBuf::from("testing.toml"), text: text.to_owned() };
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::parse(source, &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// Its runs.
pub fn runs() -> Vec<Run> {
    scenario().runs()
}
