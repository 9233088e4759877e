//! Bundled scenarios with one value changed: each ends in a result or in a named error.

use incast_lab::scenario::{Form, Scenario};
use incast_sim::{SimulationError, simulate_observed};
use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use toml::{Table, Value};

/// Changes of each scenario, unless `INCAST_MUTATIONS` says how many.
const CHANGES: usize = 3;
/// A run is given up after this time, or with more memory: it would go on as it has begun.
const LONGEST: Duration = Duration::from_millis(400);
const LARGEST: u64 = 1 << 30;

/// Keys that name things.
const NAMES: &[&str] = &["name", "describe", "source", "note", "metric", "scheme", "class", "law", "ratio_to"];

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|end| end == "toml") {
            found.push(path);
        }
    }
}

/// Paths of all values, as `--set` has them, with the values.
fn leaves(table: &Table, prefix: &str, found: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        // A path cannot have a key that is a path itself.
        if key.contains('.') || NAMES.contains(&key.as_str()) || ["paper", "table", "short"].contains(&key.as_str()) {
            continue;
        }
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => leaves(inner, &path, found),
            Value::Array(items) => {
                for inner in items.iter().filter_map(Value::as_table) {
                    let name = ["class", "name", "law"].iter().find_map(|key| inner.get(*key)?.as_str());
                    if let Some(name) = name.filter(|name| !name.contains(['.', ' ', '+'])) {
                        leaves(inner, &format!("{path}.{name}"), found);
                    }
                }
            }
            other => found.push((path, other.clone())),
        }
    }
}

/// What a value is changed to.
fn replacements(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Boolean(true) => &["false"],
        Value::Boolean(false) => &["true"],
        Value::Integer(_) => &["0", "1", "2", "-1", "7", "1000000", "9223372036854775807"],
        Value::Float(_) => &["0.0", "1.0", "-1.0", "1e-300", "0.999999", "1e300", "inf", "nan"],
        Value::String(text) if text.ends_with("bps") => &["\"0bps\"", "\"1bps\"", "\"1Gbps\"", "\"100Tbps\""],
        Value::String(text) if text.ends_with("bdp") => &["\"0bdp\"", "\"1e9bdp\"", "\"0.001bdp\""],
        Value::String(text) if text.ends_with('B') => {
            &["\"0B\"", "\"1B\"", "\"100B\"", "\"1GB\"", "\"18446744073709551615B\""]
        }
        Value::String(text) if text.ends_with('s') && text.starts_with(|c: char| c.is_ascii_digit()) => {
            &["\"0s\"", "\"1ps\"", "\"1ns\"", "\"777us\"", "\"10s\"", "\"18000s\""]
        }
        _ => &[],
    }
}

/// Loads a scenario with a change and simulates its first run, or as much of it as there is time for.
fn attempt(path: &Path, set: &(String, String)) -> Result<(), String> {
    let scenario = Scenario::load_form(path, std::slice::from_ref(set), Form::Short).map_err(|e| e.to_string())?;
    let runs = scenario.runs();
    // The changed value may be of one scheme.
    let run = runs.iter().find(|run| set.0.contains(&format!("scheme.{}.", run.scheme))).or(runs.first());
    let Some(run) = run.filter(|run| run.estimated_memory() < LARGEST) else { return Ok(()) };
    let config = run.config(1).map_err(|error| error.to_string())?;
    let start = Instant::now();
    match simulate_observed(config, &mut |_| true, &|| start.elapsed() >= LONGEST) {
        Ok(_) | Err(SimulationError::Halted) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn one_changed_value_ends_in_a_result_or_a_named_error() {
    let changes = std::env::var("INCAST_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(CHANGES);
    let mut files = Vec::new();
    scenarios(Path::new("../../scenarios"), &mut files);
    files.sort();
    // A linear congruential generator (Knuth, MMIX).
    let mut state = 22u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut results, mut errors, mut panics) = (0, 0, Vec::new());
    for file in &files {
        let table: Table = fs::read_to_string(file).expect("a file").parse().expect("TOML");
        let mut all = Vec::new();
        leaves(&table, "", &mut all);
        all.retain(|(_, value)| !replacements(value).is_empty());
        for _ in 0..changes {
            let (key, value) = &all[draw(all.len())];
            let new = replacements(value);
            let set = (key.clone(), new[draw(new.len())].to_owned());
            match catch_unwind(AssertUnwindSafe(|| attempt(file, &set))) {
                Ok(Ok(())) => results += 1,
                Ok(Err(message)) => {
                    assert!(!message.trim().is_empty());
                    errors += 1;
                }
                Err(_) => panics.push(format!("{} --set {}={}", file.display(), set.0, set.1)),
            }
        }
    }
    println!("{results} results, {errors} errors");
    assert!(panics.is_empty(), "these panic:\n{}", panics.join("\n"));
    assert!(results > files.len() && errors > 0, "{results} results, {errors} errors");
}
