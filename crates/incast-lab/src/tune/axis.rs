//! A key that is tuned, and the values that are tried.

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
    /// The values, smallest first; what is no number in the order of the list.
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
            Some((low, high)) => range(low.trim(), high.trim())?,
            None => Values::List(list(values)?),
        };
        Ok(Self { key, values })
    }
}

/// A list as a scenario would have it; texts need no quotation marks where they have no comma.
fn list(text: &str) -> Result<Vec<Value>, String> {
    let value = |text: &str| plain(&format!("[{text}]")).unwrap_or_else(|| vec![Value::String(text.to_owned())]);
    let all = plain(&format!("[{text}]")).unwrap_or_else(|| text.split(',').map(str::trim).flat_map(value).collect());
    for (index, one) in all.iter().enumerate() {
        if all[..index].contains(one) {
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
        self.is_ordered = self.levels.iter().all(|level| magnitude(level).is_some());
        if self.is_ordered {
            self.levels.sort_by(|a, b| magnitude(a).unwrap_or(0.0).total_cmp(&magnitude(b).unwrap_or(0.0)));
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

/// What orders values: numbers, also those with units.
fn magnitude(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::String(text) => {
            let units = [
                text.parse::<Bytes>().ok().map(|it| it.get() as f64),
                text.parse::<Time>().ok().map(|it| it.ps() as f64),
                text.parse::<Rate>().ok().map(|it| it.bps() as f64),
            ];
            units.into_iter().flatten().next().or_else(|| number(text).map(|(number, _)| number))
        }
        _ => None,
    }
}

/// Equal as numbers, with one unit, or as they are written.
pub fn same(a: &Value, b: &Value) -> bool {
    let unit = |value: &Value| value.as_str().and_then(number).map(|(_, unit)| unit.to_owned());
    let is_text = |value: &Value| value.is_str();
    let has_units = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.parse::<Bytes>().is_ok() || text.parse::<Time>().is_ok() || text.parse::<Rate>().is_ok()
    };
    let is_alike = is_text(a) == is_text(b) && (unit(a) == unit(b) || has_units(a) && has_units(b));
    a == b || is_alike && magnitude(a).zip(magnitude(b)).is_some_and(|(a, b)| a == b)
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
