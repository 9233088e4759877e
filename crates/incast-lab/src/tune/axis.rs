//! A key that is tuned, and the values that are tried.

use crate::scenario::tree::path;
use incast_units::{Bytes, Rate, Time};
use std::str::FromStr;
use toml::Value;

/// Values of a range, by the number of keys: the more there are, the coarser is each.
const LEVELS: [usize; MOST_KEYS] = [16, 12, 9, 6, 5];

/// Keys at once.
pub const MOST_KEYS: usize = 5;

/// From this quotient of its ends on a range has equal quotients between its values, not equal differences.
const LOGARITHMIC_FROM: f64 = 4.0;

/// `KEY=a..b` or `KEY=a,b,c`, as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// Path of the key.
    pub key: String,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    List(Vec<Value>),
    Range { low: f64, high: f64, unit: Unit },
}

/// What a number of a range counts.
#[derive(Clone, Debug, PartialEq)]
enum Unit {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// Numbers with something behind them.
    Suffix(String),
    Bytes,
    Time,
    Rate,
}

/// A key and its values in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Path of the key.
    pub key: String,
    /// The values, smallest first; what are no numbers of one unit in the order of the list.
    pub levels: Vec<Value>,
    /// They have an order, so that some are neighbours.
    pub is_ordered: bool,
}

impl FromStr for Over {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected KEY=FROM..TO or KEY=VALUE,VALUE, such as scheme.dctcp.gain=0.02..0.5";
        let (key, values) = text.split_once('=').ok_or(expected)?;
        let (key, values) = (key.trim().to_owned(), values.trim());
        if key.is_empty() || values.is_empty() {
            return Err(expected.into());
        }
        let values = match values.split_once("..") {
            // Names of files may have dots, too.
            Some((low, high)) if !values.contains(',') => range(low.trim(), high.trim())?,
            _ => Values::List(list(values)?),
        };
        Ok(Self { key, values })
    }
}

/// A list as a scenario would have it; texts need no quotation marks where they have no comma.
fn list(text: &str) -> Result<Vec<Value>, String> {
    let value = |text: &str| plain(&format!("[{text}]")).unwrap_or_else(|| vec![Value::String(text.to_owned())]);
    let all = plain(&format!("[{text}]")).unwrap_or_else(|| text.split(',').map(str::trim).flat_map(value).collect());
    several(all)
}

fn several(all: Vec<Value>) -> Result<Vec<Value>, String> {
    for (index, one) in all.iter().enumerate() {
        if all[..index].iter().any(|other| same(other, one)) {
            return Err(format!("{one} is there twice"));
        }
    }
    if all.len() < 2 {
        return Err("a single value: nothing to choose from".into());
    }
    Ok(all)
}

fn plain(array: &str) -> Option<Vec<Value>> {
    let table: toml::Table = format!("values = {array}").parse().ok()?;
    table.get("values")?.as_array().cloned()
}

fn range(low: &str, high: &str) -> Result<Values, String> {
    let (a, b) = (number(low), number(high));
    let (Some((from, from_unit)), Some((to, to_unit))) = (a, b) else {
        return Err(format!("{low}..{high}: expected a number before and after the dots, with a unit or without"));
    };
    let is_whole = |text: &str| text.parse::<i64>().is_ok();
    let (low_value, high_value, unit) = if from_unit == to_unit {
        let unit = match from_unit {
            "" if is_whole(low) && is_whole(high) => Unit::Integer,
            "" => Unit::Real,
            suffix => Unit::Suffix(suffix.to_owned()),
        };
        (from, to, unit)
    } else {
        let both = |of: &dyn Fn(&str) -> Option<u64>| Some((of(low)? as f64, of(high)? as f64));
        let (read, unit) = [
            (both(&|text| text.parse::<Bytes>().ok().map(Bytes::get)), Unit::Bytes),
            (both(&|text| text.parse::<Time>().ok().map(Time::ps)), Unit::Time),
            (both(&|text| text.parse::<Rate>().ok().map(Rate::bps)), Unit::Rate),
        ]
        .into_iter()
        .find_map(|(read, unit)| Some((read?, unit)))
        .ok_or_else(|| format!("{low}..{high}: the two have different units"))?;
        (read.0, read.1, unit)
    };
    if low_value >= high_value {
        return Err(format!("{low}..{high}: the first has to be the smaller one"));
    }
    Ok(Values::Range { low: low_value, high: high_value, unit })
}

/// A number and what stands behind it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| c.is_alphabetic() || c == '%').unwrap_or(text.len());
    // The exponent of a float is not a unit.
    let (value, unit) = match text.parse::<f64>() {
        Ok(value) => (value, ""),
        Err(_) => (text[..end].trim().parse().ok()?, text[end..].trim()),
    };
    value.is_finite().then_some((value, unit))
}

impl Over {
    /// A key with these values.
    ///
    /// # Errors
    /// There are fewer than two, or one is there twice.
    pub fn listed(key: &str, values: Vec<Value>) -> Result<Self, String> {
        Ok(Self { key: key.to_owned(), values: Values::List(several(values)?) })
    }

    /// The first value.
    pub fn first(&self) -> Value {
        match &self.values {
            Values::List(values) => values.first().cloned().unwrap_or(Value::Boolean(false)),
            Values::Range { low, unit, .. } => unit.value(*low),
        }
    }

    /// The values, of one of `keys` keys, with that from which the search starts among them.
    pub fn axis(&self, keys: usize, start: &Value) -> Axis {
        let levels = match &self.values {
            Values::List(values) => values.clone(),
            Values::Range { low, high, unit } => {
                let count = LEVELS[keys.clamp(1, MOST_KEYS) - 1];
                spread(*low, *high, count, *unit == Unit::Integer).into_iter().map(|value| unit.value(value)).collect()
            }
        };
        Axis { key: self.key.clone(), levels, is_ordered: true }.with(start)
    }
}

impl Axis {
    fn sorted(mut self) -> Self {
        let measures: Option<Vec<(f64, Unit)>> = self.levels.iter().map(measure).collect();
        self.is_ordered = measures.is_some_and(|all| all.windows(2).all(|pair| pair[0].1 == pair[1].1));
        if self.is_ordered {
            let number = |level: &Value| measure(level).map_or(0.0, |(number, _)| number);
            self.levels.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        self
    }

    /// With one more value, unless it has that.
    #[must_use]
    pub fn with(mut self, value: &Value) -> Self {
        if self.place(value).is_none() {
            self.levels.push(value.clone());
        }
        self.sorted()
    }

    /// Place of a value.
    pub fn place(&self, value: &Value) -> Option<usize> {
        self.levels.iter().position(|level| same(level, value))
    }
}

/// Numbers from `low` to `high`, both included, with two digits that count between them.
fn spread(low: f64, high: f64, count: usize, is_integer: bool) -> Vec<f64> {
    let is_logarithmic = low > 0.0 && high / low >= LOGARITHMIC_FROM;
    let at = |step: usize| {
        let part = step as f64 / (count - 1) as f64;
        if is_logarithmic { low * libm::pow(high / low, part) } else { low + (high - low) * part }
    };
    let mut all: Vec<f64> = Vec::with_capacity(count);
    for step in 0..count {
        let value = match step {
            0 => low,
            _ if step == count - 1 => high,
            _ if is_integer => at(step).round(),
            _ if is_logarithmic => format!("{:.1e}", at(step)).parse().unwrap_or(low),
            // Differences of a linear range may be small beside its values.
            _ => format!("{:.3e}", at(step)).parse().unwrap_or(low),
        };
        if all.last().is_none_or(|last| *last < value) && value <= high {
            all.push(value);
        }
    }
    all
}

impl Unit {
    fn value(&self, number: f64) -> Value {
        match self {
            Self::Integer => Value::Integer(number as i64),
            Self::Real => Value::Float(number),
            Self::Suffix(suffix) => Value::String(format!("{number}{suffix}")),
            Self::Bytes => Value::String(Bytes::new(number as u64).to_string()),
            Self::Time => Value::String(Time::from_ps(number as u64).to_string()),
            Self::Rate => Value::String(Rate::from_bps_f64(number).to_string()),
        }
    }
}

/// What orders values of one unit: numbers, also those with units. The unit is that of the number.
fn measure(value: &Value) -> Option<(f64, Unit)> {
    match value {
        Value::Integer(number) => Some((*number as f64, Unit::Real)),
        Value::Float(number) => Some((*number, Unit::Real)),
        Value::String(text) => {
            let units = [
                text.parse::<Bytes>().ok().map(|it| (it.get() as f64, Unit::Bytes)),
                text.parse::<Time>().ok().map(|it| (it.ps() as f64, Unit::Time)),
                text.parse::<Rate>().ok().map(|it| (it.bps() as f64, Unit::Rate)),
            ];
            let own = || number(text).map(|(number, unit)| (number, Unit::Suffix(unit.to_owned())));
            units.into_iter().flatten().next().or_else(own)
        }
        _ => None,
    }
}

/// Two paths are one, however they are quoted.
pub fn is_same_key(a: &str, b: &str) -> bool {
    steps(a) == steps(b)
}

/// Two paths are one, or one lies within the other.
pub fn overlap(a: &str, b: &str) -> bool {
    steps(a).iter().zip(&steps(b)).all(|(a, b)| a == b)
}

fn steps(path: &str) -> Vec<String> {
    path::split(path).unwrap_or_else(|_| vec![path.to_owned()])
}

/// Equal as numbers of one unit, or as they are written.
pub fn same(a: &Value, b: &Value) -> bool {
    a == b || measure(a).zip(measure(b)).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str, keys: usize, start: impl Into<Value>) -> Vec<String> {
        let over: Over = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        over.axis(keys, &start.into()).levels.iter().map(crate::text::toml).collect()
    }

    #[test]
    fn ranges_are_spread_in_their_units_and_have_the_start() {
        assert_eq!(levels("k=1..16", 5, 4), ["1", "2", "4", "8", "16"]);
        assert_eq!(levels("k=1..3", 5, 2), ["1", "2", "3"], "whole numbers come once");
        assert_eq!(levels("k=0.1..0.3", 5, 0.25), ["0.1", "0.15", "0.2", "0.25", "0.3"]);
        assert_eq!(levels("k=10KB..160KB", 5, "65KB"), ["10KB", "20KB", "40KB", "65KB", "80KB", "160KB"]);
        assert_eq!(levels("k=500KB..8MB", 5, "1MB"), ["500KB", "1MB", "2MB", "4MB", "8MB"]);
        assert_eq!(levels("k=800ns..2us", 5, "1us"), ["800ns", "1us", "1.1us", "1.4us", "1.7us", "2us"]);
        assert_eq!(levels("k=0.1bdp..0.2bdp", 5, "0.15bdp").len(), 5);
        assert_eq!(levels("k=0.05..0.8", 1, 1.5).len(), 17, "the start may lie outside");
    }

    #[test]
    fn lists_are_values_of_any_kind() {
        assert_eq!(levels("k=b,a", 1, "a"), ["b", "a"]);
        assert_eq!(levels("k=true,false", 1, true), ["true", "false"]);
        assert_eq!(levels("k=\"off\", \"a,b\"", 1, "off"), ["off", "a,b"]);
        assert_eq!(levels("k=3,1,2", 1, 2), ["1", "2", "3"]);
        assert_eq!(levels("k=../a.csv,../b.csv", 1, "../a.csv"), ["../a.csv", "../b.csv"]);
        let is_ordered =
            |text: &str, start: &str| text.parse::<Over>().expect("a list").axis(1, &start.into()).is_ordered;
        assert!(is_ordered("k=1MB,30KB,65KB", "30KB") && is_ordered("k=0.5bdp,0.1bdp", "0.1bdp"));
        assert!(!is_ordered("k=0.5bdp,30KB", "30KB"), "which of the two is more depends on the fabric");
        let tables = levels("k={kind=\"step\",at=\"10KB\"},{kind=\"step\",at=\"20KB\"}", 1, "off");
        assert_eq!(tables.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("gain", "expected KEY=FROM..TO"),
            ("=1..2", "expected KEY=FROM..TO"),
            ("k=", "expected KEY=FROM..TO"),
            ("k=1", "a single value"),
            ("k=1,1", "twice"),
            ("k=2..1", "the smaller one"),
            ("k=1KB..2us", "different units"),
            ("k=a..b", "expected a number"),
            ("k=1..nan", "expected a number"),
        ] {
            let error = text.parse::<Over>().map(drop).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
