//! A row of `summary.json`.

use crate::metrics::{Metric, Number, Scope, SizeBin, Value, Values, backlog::MOST_GROWTH, statistics::Interval};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
    ser::SerializeMap,
};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Name of the class that stands for all of them.
pub const ALL: &str = "all";

/// The metric group after which the bins of sizes stand.
const BEFORE_SIZES: &str = "slowdown";

/// Ending of the key of a lower bound.
pub const AT_LEAST: &str = "_at_least";

/// Which seeds a row covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Seed {
    /// One run.
    One(u64),
    /// All of them, pooled: the string `"all"`.
    Pooled(String),
}

/// One row: a grid point, a scheme, a class, and a seed or all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the class, or `all`.
    pub class: String,
    /// The seed, or `"all"`.
    pub seed: Seed,
    /// The grid point.
    pub grid: Map<String, Json>,
    /// Runs pooled; 1 for a row of one seed.
    pub runs: u64,
    /// Slowdown by flow size.
    pub by_size: Vec<SizeBin>,
    /// The numbers.
    pub values: Values,
    /// In pooled rows: 95% confidence intervals over the seeds, by metric; `None` with one seed or where a seed's value
    /// is unknown.
    pub ci95: Option<BTreeMap<String, Option<Interval>>>,
}

impl Row {
    /// The run was too short for a steady state: what waits still rises.
    pub fn is_too_short(&self) -> bool {
        self.number("backlog_growth_low").is_some_and(|low| low > MOST_GROWTH)
    }

    /// The number of a metric.
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.values.number(metric)
    }

    /// The number of a metric that counts something.
    pub fn count(&self, metric: &str) -> Option<u64> {
        self.values.count(metric)
    }

    /// The number of a metric in one run: the mean over the runs where a pooled row has their sum.
    pub fn per_run(&self, metric: &Metric) -> Option<f64> {
        let runs = if metric.is_sum() { self.runs.max(1) as f64 } else { 1.0 };
        self.number(metric.name).map(|value| value / runs)
    }

    /// The lower bound of a metric that is unknown as flows did not finish.
    pub fn bound(&self, metric: &str) -> Option<f64> {
        self.values.value(metric).at_least
    }

    /// The confidence interval of a metric in a pooled row.
    pub fn interval(&self, metric: &str) -> Option<Interval> {
        *self.ci95.as_ref()?.get(metric)?
    }

    /// The same of the confidence interval.
    pub fn interval_per_run(&self, metric: &Metric) -> Option<Interval> {
        let runs = if metric.is_sum() { self.runs.max(1) as f64 } else { 1.0 };
        self.interval(metric.name).map(|Interval(low, high)| Interval(low / runs, high / runs))
    }

    /// Counted flows.
    pub fn flows(&self) -> u64 {
        self.count("flows").unwrap_or(0)
    }

    /// Counted flows that were delivered.
    pub fn completed(&self) -> u64 {
        self.count("completed").unwrap_or(0)
    }

    /// Packets marked, wherever.
    pub fn marks(&self) -> Option<u64> {
        Some(self.count("marks.edge")? + self.count("marks.fabric")?)
    }

    /// The row pools all seeds.
    pub fn is_pooled(&self) -> bool {
        matches!(self.seed, Seed::Pooled(_))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("scheme", &self.scheme)?;
        row.serialize_entry("class", &self.class)?;
        row.serialize_entry("seed", &self.seed)?;
        row.serialize_entry("grid", &self.grid)?;
        row.serialize_entry("runs", &self.runs)?;
        row.serialize_entry("too_short", &self.is_too_short())?;
        let values: Vec<(&Metric, Value)> = self.values.iter().collect();
        for members in values.chunk_by(|a, b| a.0.group().0.is_some() && a.0.group().0 == b.0.group().0) {
            let (metric, value) = members[0];
            let Some(group) = metric.group().0 else {
                row.serialize_entry(metric.name, &value.number)?;
                continue;
            };
            let is_of_a_class = members.iter().any(|(metric, _)| metric.scope == Scope::Class);
            let is_known = members.iter().any(|(_, value)| value.number.is_some());
            row.serialize_entry(group, &(is_of_a_class || is_known).then_some(Group(members)))?;
            if group == BEFORE_SIZES {
                row.serialize_entry("by_size", &self.by_size)?;
            }
        }
        if let Some(ci95) = &self.ci95 {
            row.serialize_entry("ci95", ci95)?;
        }
        row.end()
    }
}

/// Metrics that share an object: their numbers, then the lower bounds of those that are unknown.
struct Group<'a>(&'a [(&'static Metric, Value)]);

impl Serialize for Group<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut group = serializer.serialize_map(None)?;
        for (metric, value) in self.0 {
            group.serialize_entry(metric.group().1, &value.number)?;
        }
        for (metric, value) in self.0 {
            if let Some(bound) = value.at_least {
                group.serialize_entry(&format!("{}{AT_LEAST}", metric.group().1), &bound)?;
            }
        }
        group.end()
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let row = Map::deserialize(deserializer)?;
        fn field<T: DeserializeOwned, E: Error>(row: &Map<String, Json>, key: &'static str) -> Result<T, E> {
            let value = row.get(key).ok_or_else(|| E::missing_field(key))?;
            T::deserialize(value).map_err(|error| E::custom(format!("{key}: {error}")))
        }
        let values = Values::try_from_each(|metric| {
            let (group, member) = metric.group();
            let object = group.map_or(Some(&row), |group| row.get(group)?.as_object());
            let read = |key: &str| {
                let number = object.and_then(|object| object.get(key)).map(Option::<Number>::deserialize);
                number.transpose().map(Option::flatten)
            };
            Ok(Value { number: read(member)?, at_least: read(&format!("{member}{AT_LEAST}"))?.map(Number::real) })
        })
        .map_err(|error: serde_json::Error| D::Error::custom(error))?;
        Ok(Self {
            scheme: field(&row, "scheme")?,
            class: field(&row, "class")?,
            seed: field(&row, "seed")?,
            grid: field(&row, "grid")?,
            runs: field(&row, "runs")?,
            by_size: field(&row, "by_size")?,
            values,
            ci95: if row.contains_key("ci95") { field(&row, "ci95")? } else { None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::METRICS;

    #[test]
    fn metrics_that_a_file_does_not_have_are_unknown() {
        let text = r#"{"scheme":"a","class":"all","seed":3,"grid":{},"runs":1,"flows":7,
            "fct_us":{"mean":null,"mean_at_least":2.5},"by_size":[]}"#;
        let row: Row = serde_json::from_str(text).expect("a row");
        assert_eq!((row.flows(), row.number("fct_us.mean"), row.bound("fct_us.mean")), (7, None, Some(2.5)));
        assert_eq!(METRICS.iter().filter(|metric| row.number(metric.name).is_some()).count(), 1);
        assert!(serde_json::from_str::<Row>("{}").is_err());
    }
}
