//! The numbers of a row: measured of one run, or pooled over seeds.

use super::{
    ClassRun, FlowStatistics, METRICS, Measure, Metric, Scope,
    class_run::mean,
    statistics::{Interval, Statistic, confidence_around},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A number as `summary.json` has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// Of things that are counted.
    Count(u64),
    /// Of anything else.
    Real(f64),
}

impl Number {
    /// As a real number.
    pub fn real(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Real(real) => real,
        }
    }
}

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Number {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

/// The value of a metric in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// The number; `None` if it was not measured, or depends on flows that did not finish.
    pub number: Option<Number>,
    /// Lower bound of a number that depends on flows that did not finish.
    pub at_least: Option<f64>,
}

impl Value {
    /// There is a number or a bound.
    pub fn is_known(&self) -> bool {
        self.number.is_some() || self.at_least.is_some()
    }
}

impl<N: Into<Number>> From<Option<N>> for Value {
    fn from(number: Option<N>) -> Self {
        Self { number: number.map(Into::into), at_least: None }
    }
}

/// Values of all metrics, in the order of [`METRICS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<Value>);

impl Values {
    /// Of a class in one run. Only the row of all classes has numbers of the fabric and of the process.
    pub fn of_run(run: &ClassRun<'_>, is_all: bool) -> Self {
        Self::collect(|metric, values| {
            if metric.scope != Scope::Class && !is_all {
                return Value::default();
            }
            match metric.measure {
                Measure::Count(of) => Some(of(&run.statistics)).into(),
                Measure::Statistic(of) => statistic(of, &run.statistics),
                Measure::Trend(of) => run.statistics.trend.as_ref().map(of).into(),
                Measure::Sum(of) => Some(of(run)).into(),
                Measure::Mean(of) => of(run).into(),
                Measure::Largest(of) => Some(of(run)).into(),
                Measure::Derived(of) => of(values).into(),
            }
        })
    }

    /// Of several runs: `flows` are those of all of them.
    pub fn pooled(flows: &FlowStatistics, runs: &[&Self]) -> Self {
        Self::collect(|metric, values| {
            let numbers = || runs.iter().map(|run| run.value(metric.name).number);
            match metric.measure {
                Measure::Count(of) => Some(of(flows)).into(),
                Measure::Statistic(of) => statistic(of, flows),
                Measure::Trend(of) => flows.trend.as_ref().map(of).into(),
                Measure::Sum(_) => numbers().collect::<Option<Vec<_>>>().and_then(|all| sum(&all)).into(),
                Measure::Mean(_) => {
                    let all: Option<Vec<f64>> = numbers().map(|number| number.map(Number::real)).collect();
                    all.and_then(|all| mean(&all)).into()
                }
                Measure::Largest(_) => numbers().flatten().max_by(|a, b| a.real().total_cmp(&b.real())).into(),
                Measure::Derived(of) => of(values).into(),
            }
        })
    }

    /// Asks for each metric in turn, with those before it at hand.
    fn collect(mut value: impl FnMut(&Metric, &Self) -> Value) -> Self {
        let mut values = Self(Vec::with_capacity(METRICS.len()));
        for metric in METRICS {
            let next = value(metric, &values);
            values.0.push(next);
        }
        values
    }

    /// From a function that returns values by metric.
    ///
    /// # Errors
    /// The first that it does not have.
    pub fn try_from_each<E>(mut value: impl FnMut(&Metric) -> Result<Value, E>) -> Result<Self, E> {
        METRICS.iter().map(&mut value).collect::<Result<_, E>>().map(Self)
    }

    /// The value of a metric; without a number if there is no such metric.
    pub fn value(&self, metric: &str) -> Value {
        self.iter().find(|(known, _)| known.name == metric).map(|(_, value)| value).unwrap_or_default()
    }

    /// A number as a real one.
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.value(metric).number.map(Number::real)
    }

    /// A number that is a count.
    pub fn count(&self, metric: &str) -> Option<u64> {
        match self.value(metric).number? {
            Number::Count(count) => Some(count),
            Number::Real(_) => None,
        }
    }

    /// Replaces the value of a metric.
    #[cfg(test)]
    pub fn set(&mut self, metric: &str, value: Value) {
        let index = METRICS.iter().position(|known| known.name == metric).expect("a metric");
        self.0[index] = value;
    }

    /// Every metric with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric, Value)> + '_ {
        METRICS.iter().zip(self.0.iter().copied())
    }
}

fn statistic(of: fn(&FlowStatistics) -> Statistic, flows: &FlowStatistics) -> Value {
    let statistic = of(flows);
    Value { number: statistic.value.map(Number::Real), at_least: statistic.at_least }
}

/// The sum; a count if all are counts, and none of nothing.
fn sum(numbers: &[Number]) -> Option<Number> {
    let counts: Option<Vec<u64>> = numbers
        .iter()
        .map(|number| match number {
            Number::Count(count) => Some(*count),
            Number::Real(_) => None,
        })
        .collect();
    let total = match counts {
        Some(counts) => Number::Count(counts.iter().sum()),
        None => Number::Real(numbers.iter().map(|number| number.real()).sum()),
    };
    (!numbers.is_empty()).then_some(total)
}

/// Confidence intervals of the metrics of pooled runs, by their values in single ones.
pub fn intervals(pooled: &Values, runs: &[&Values]) -> BTreeMap<String, Option<Interval>> {
    let interval = |metric: &Metric| {
        let values: Vec<Option<f64>> = runs.iter().map(|run| run.number(metric.name)).collect();
        let scale = if metric.is_sum() { values.len() as f64 } else { 1.0 };
        let whole = pooled.number(metric.name)? / scale;
        let Interval(low, high) = confidence_around(whole, &values, metric.is_logarithmic())?;
        Some(Interval(low * scale, high * scale))
    };
    METRICS
        .iter()
        .filter(|metric| metric.has_interval())
        .map(|metric| (metric.name.to_owned(), interval(metric)))
        .collect()
}
