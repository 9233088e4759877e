//! `--only scheme=marimo,load=0.4`: which of a scenario's runs are selected.

use super::RunError;
use crate::{
    results::row::{Row, Seed},
    scenario::{Run, tree::nearest::nearest},
};
use std::collections::BTreeMap;

/// Conditions of `--only`. Values of one key are alternatives; all keys must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    conditions: BTreeMap<String, Vec<String>>,
}

impl Only {
    /// Reads `key=value,key=value`; a value without a key belongs to the key before it. A value with a comma is in
    /// quotation marks: `scheme="DASR, 95%"`.
    ///
    /// # Errors
    /// The first part has no `=`, a key or value is empty, or a quotation mark is not closed.
    pub fn parse(arguments: &[String]) -> Result<Self, RunError> {
        let mut only = Self::default();
        for argument in arguments {
            let mut key: Option<String> = None;
            if argument.matches('"').count() % 2 == 1 {
                let message = "a quotation mark is not closed".into();
                return Err(RunError::Only { found: argument.clone(), message });
            }
            for part in split(argument) {
                let value = match part.split_once('=').filter(|_| !part.trim_start().starts_with('"')) {
                    Some((name, value)) => {
                        key = Some(name.trim().to_owned());
                        value
                    }
                    None => part,
                };
                let name = key.clone().filter(|name| !name.is_empty() && !value.trim().is_empty());
                let name = name.ok_or_else(|| RunError::Only {
                    found: argument.clone(),
                    message: "expected KEY=VALUE, such as scheme=dctcp or load=0.4".into(),
                })?;
                only.conditions.entry(name).or_default().push(value.trim().trim_matches('"').to_owned());
            }
        }
        Ok(only)
    }

    /// With this value of a key alone, whatever was said of that key before.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.conditions.insert(key.to_owned(), vec![value.to_owned()]);
        self
    }

    /// The selected runs, or rows.
    ///
    /// # Errors
    /// A key or value that none of them has.
    pub fn select<T: Facts>(&self, runs: Vec<T>) -> Result<Vec<T>, RunError> {
        for (key, values) in &self.conditions {
            let known = facts(&runs, key);
            if known.is_empty() {
                let keys = keys(&runs);
                let message = format!("no such key; allowed: {}{}", keys.join(", "), hint(key, &keys));
                return Err(RunError::Only { found: key.clone(), message });
            }
            if let Some(value) = values.iter().find(|value| !known.iter().any(|known| same(known, value))) {
                let message = format!("no run has it; there is {}{}", known.join(", "), hint(value, &known));
                return Err(RunError::Only { found: format!("{key}={value}"), message });
            }
        }
        let wanted = |run: &T| {
            self.conditions
                .iter()
                .all(|(key, values)| fact(run, key).iter().any(|fact| values.iter().any(|value| same(fact, value))))
        };
        Ok(runs.into_iter().filter(wanted).collect())
    }
}

/// The parts between commas that are not in quotation marks.
fn split(argument: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    argument.split(move |letter| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    })
}

/// What conditions are about.
pub trait Facts {
    /// Its scheme.
    fn scheme(&self) -> &str;
    /// Its seed, as text.
    fn seed(&self) -> String;
    /// Its grid point: paths and values as text.
    fn grid(&self) -> Vec<(&str, String)>;
}

impl Facts for Run {
    fn scheme(&self) -> &str {
        &self.scheme
    }
    fn seed(&self) -> String {
        self.seed.to_string()
    }
    fn grid(&self) -> Vec<(&str, String)> {
        let plain = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.grid.iter().map(|(path, value)| (path.as_str(), plain(value))).collect()
    }
}

impl Facts for Row {
    fn scheme(&self) -> &str {
        &self.scheme
    }
    fn seed(&self) -> String {
        match self.seed {
            Seed::One(seed) => seed.to_string(),
            Seed::Pooled(_) => "all".to_owned(),
        }
    }
    fn grid(&self) -> Vec<(&str, String)> {
        let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.grid.iter().map(|(path, value)| (path.as_str(), plain(value))).collect()
    }
}

/// What a run has under a key: `scheme`, `seed`, a grid path or its last part.
fn fact(run: &impl Facts, key: &str) -> Vec<String> {
    match key {
        "scheme" => vec![run.scheme().to_owned()],
        "seed" => vec![run.seed()],
        _ => {
            let named = |path: &str| path == key || path.rsplit('.').next() == Some(key);
            run.grid().into_iter().filter(|(path, _)| named(path)).map(|(_, value)| value).collect()
        }
    }
}

fn facts(runs: &[impl Facts], key: &str) -> Vec<String> {
    let mut all = Vec::new();
    for fact in runs.iter().flat_map(|run| fact(run, key)) {
        if !all.contains(&fact) {
            all.push(fact);
        }
    }
    all
}

fn keys(runs: &[impl Facts]) -> Vec<String> {
    let grid = runs.first().map(|run| run.grid().into_iter().map(|(path, _)| path.to_owned()).collect::<Vec<_>>());
    ["scheme".to_owned(), "seed".to_owned()].into_iter().chain(grid.unwrap_or_default()).collect()
}

/// Equal as text, or as numbers: `0.40` is `0.4`.
fn same(a: &str, b: &str) -> bool {
    a == b || a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).is_some_and(|(a, b)| a == b)
}

fn hint(found: &str, allowed: &[String]) -> String {
    nearest(found, allowed.iter().map(String::as_str))
        .map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_a_key_belong_to_the_key_before() {
        let only = Only::parse(&["scheme=a,b,load=0.4".into()]).expect("valid");
        assert_eq!(only.conditions["scheme"], ["a", "b"]);
        assert_eq!(only.conditions["load"], ["0.4"]);
        let quoted = Only::parse(&["scheme=\"DASR, 95%\",\"a = b\",c".into()]).expect("valid");
        assert_eq!(quoted.conditions["scheme"], ["DASR, 95%", "a = b", "c"]);
        for wrong in ["", "scheme", "=a", "scheme=", "scheme=a,,", "scheme=\"a,b"] {
            assert!(Only::parse(&[wrong.into()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn typos_find_the_nearest_name() {
        let names = ["dctcp".to_owned(), "cubic".to_owned()];
        assert_eq!(hint("dctpc", &names), " (did you mean \"dctcp\"?)");
        assert_eq!(hint("zzzzzzzz", &names), "");
    }

    #[test]
    fn conditions_select_runs() {
        let runs = super::super::testing::runs;
        let select = |text: &str| Only::parse(&[text.to_owned()]).and_then(|only| only.select(runs()));
        let count = |text: &str| select(text).map(|runs| runs.len()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Only::default().select(runs()).map(|runs| runs.len()).unwrap_or(0), 4);
        assert_eq!(count("scheme=dctcp"), 2);
        assert_eq!(count("scheme=dctcp,cubic,load=0.40"), 2);
        assert_eq!(count("workload.background.load=0.2,scheme=cubic,seed=1"), 1);
        let message = |text: &str| select(text).map(drop).expect_err("refused").to_string();
        assert!(message("scheme=dctpc").contains("did you mean \"dctcp\""));
        assert!(message("load=0.3").contains("0.2, 0.4"));
        assert!(message("lode=0.4").contains("workload.background.load"));
    }
}
