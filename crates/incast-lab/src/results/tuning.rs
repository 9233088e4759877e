//! `tune.json`: what a search for settings found.

use super::{checksums, read::Unreadable, record::read_file, verdict::Apart};
use crate::metrics::statistics::Interval;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{io, path::Path};

/// Name of the file in the folder of the results.
pub const FILE: &str = "tune.json";

/// What was asked, and what was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// Name of the scenario of the search.
    pub scenario: String,
    /// The number that was to be good, as `CLASS:METRIC`.
    #[serde(rename = "for")]
    pub objective: String,
    /// The same in words.
    pub subject: String,
    /// More of it is better; else less is.
    pub higher_is_better: bool,
    /// The keys, each with its values in their order.
    pub axes: Vec<Axis>,
    /// What was found for each scheme.
    pub schemes: Vec<Found>,
}

/// A key and its values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Path of the key.
    pub key: String,
    /// Its values.
    pub values: Vec<Value>,
}

/// Values of all keys.
pub type Settings = Map<String, Value>;

/// What was found for a scheme.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The scheme.
    pub scheme: String,
    /// What was found is better than the start, on seeds that the search did not see.
    pub helps: bool,
    /// Where the search started.
    pub start: Settings,
    /// The best of the search.
    pub best: Settings,
    /// That, if it helps, or the start.
    pub advised: Settings,
    /// Seeds that the search did not see.
    pub unseen_seeds: usize,
    /// On how many of them the number is known, as all flows ended: with the start, and with the best.
    pub known_seeds: [usize; 2],
    /// The best against the start on these; `null` where flows did not finish, or nothing was tested.
    pub difference: Option<Difference>,
    /// Differences of settings that were tried, and of keys, are parts of the start's number.
    pub is_relative: bool,
    /// Numbers that may not get worse by more than is allowed, on these seeds.
    pub limits: Vec<Limit>,
    /// The same of other numbers.
    pub others: Vec<Named>,
    /// What is known of each key, in their order.
    pub keys: Vec<Key>,
    /// The best against the start under other conditions.
    pub conditions: Vec<Named>,
    /// Everything that was tried, best first.
    pub tried: Vec<Tried>,
    /// All combinations were tried, at least by short runs; else those of a pattern search.
    pub tried_all: bool,
    /// Full runs that it cost, or as many short ones.
    pub run_equivalents: f64,
    /// Queues still rose at the end of a run.
    pub too_short: bool,
    /// The search was interrupted.
    pub interrupted: bool,
    /// All of it in sentences.
    pub said: Vec<String>,
}

/// A difference with its confidence interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// 95% confidence interval.
    pub ci95: Interval,
    /// They are parts of the start's number.
    pub is_relative: bool,
}

impl From<&Apart> for Difference {
    fn from(apart: &Apart) -> Self {
        Self { mean: apart.difference, ci95: apart.interval, is_relative: apart.is_relative }
    }
}

/// A difference of something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Named {
    /// A number, or a condition.
    pub what: String,
    /// `null` where flows did not finish, or nothing was run.
    pub difference: Option<Difference>,
    /// Why a condition was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
}

/// A number that may not get worse by more than is allowed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Limit {
    /// The number and the bound.
    pub what: String,
    /// The best against the start; `null` where flows did not finish.
    pub difference: Option<Difference>,
    /// It is within the bound, on the mean of the seeds.
    pub is_kept: bool,
}

/// What is known of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    /// Its path.
    pub key: String,
    /// The values that full runs on three seeds or more do not tell from the best: of those with an order the first and the last,
    /// with nothing in between that is told apart.
    pub as_good: Vec<Value>,
    /// By how much the best with this key as at the start differs from the best; `null` where that is not known.
    pub left_alone: Option<f64>,
    /// That is by short runs, or by fewer than three seeds.
    pub is_rough: bool,
    /// Runs that differ only in this key are the same to the packet.
    pub does_nothing: bool,
}

/// Settings that were tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// The settings.
    pub settings: Settings,
    /// Seeds.
    pub seeds: usize,
    /// Of full runs, or of short ones.
    pub full: bool,
    /// Mean difference from the start; `null` where flows did not finish.
    pub difference: Option<f64>,
    /// A number that may not get worse did.
    pub is_excluded: bool,
}

impl Tuning {
    /// The file's text, with its checksum.
    ///
    /// # Errors
    /// Those of the serialisation, which writes to memory.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(checksums::seal)
    }
}

/// Reads the file, where there is one.
///
/// # Errors
/// It cannot be read, is not what a search writes, or has changed since it was written.
pub fn read(folder: &Path) -> Result<Option<Tuning>, Unreadable> {
    let path = folder.join(FILE);
    match read_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unreadable::new(&path, error)),
        Ok(bytes) => checksums::parse(&bytes, |_: &Tuning| true)
            .map(Some)
            .map_err(|error| Unreadable::new(&path, format!("not what incast tune wrote: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_has_changed_is_refused() {
        let folder = std::env::temp_dir().join(format!("incast-tuning-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        assert!(read(&folder).expect("no file").is_none());
        let axes = vec![Axis { key: "switch.ecn.at".into(), values: vec!["10KB".into(), "30KB".into()] }];
        let (scenario, objective, subject) = ("s-tune".into(), "web:slowdown.p99".into(), "web slowdown p99".into());
        let text = Tuning { scenario, objective, subject, higher_is_better: false, axes, schemes: Vec::new() }
            .to_json()
            .expect("written");
        fs::write(folder.join(FILE), &text).expect("a file");
        assert_eq!(read(&folder).expect("it is whole").map(|it| it.axes[0].values.len()), Some(2));
        for changed in [text.replace("30KB", "31KB"), text[..text.len() / 2].to_owned(), "{}".into()] {
            fs::write(folder.join(FILE), changed).expect("a file");
            let error = read(&folder).expect_err("refused").to_string();
            assert!(error.contains("tune.json: not what incast tune wrote"), "{error}");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
}
