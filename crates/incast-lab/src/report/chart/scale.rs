//! Scales, ticks and units.

use crate::{
    metrics::{self, find},
    text::significant,
};

/// How values are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences.
    Linear,
    /// Equal ratios.
    Log,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Time,
    /// Bytes, in powers of ten.
    Bytes,
    /// Gbit/s.
    Rate,
    /// A share, shown in percent.
    Share,
    /// How many times.
    Ratio,
    /// Of no unit.
    Number,
}

impl Unit {
    /// The unit of a metric.
    pub fn of(metric: &str) -> Self {
        match find(metric).map(|metric| metric.unit) {
            Some(metrics::Unit::Microseconds) => Self::Time,
            Some(metrics::Unit::Ratio) => Self::Ratio,
            Some(metrics::Unit::Bytes) => Self::Bytes,
            Some(metrics::Unit::Gbps) => Self::Rate,
            _ => Self::Number,
        }
    }

    /// A value for people, in three significant digits.
    pub fn text(self, value: f64) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let size = value.abs();
            let (step, unit) = steps
                .iter()
                .rev()
                .find(|(step, _)| size >= step * 0.9995)
                .or(steps.first())
                .copied()
                .unwrap_or((1.0, ""));
            format!("{} {unit}", significant(value / step)).trim_end().to_owned()
        };
        match self {
            _ if value == 0.0 && self != Self::Share => "0".to_owned(),
            Self::Time => scaled(&[(1e-3, "ns"), (1.0, "µs"), (1e3, "ms"), (1e6, "s")]),
            Self::Bytes => scaled(&[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB")]),
            Self::Rate => scaled(&[(1e-6, "Kb/s"), (1e-3, "Mb/s"), (1.0, "Gb/s"), (1e3, "Tb/s")]),
            Self::Share => format!("{}%", significant(value * 100.0)),
            Self::Ratio => format!("{}×", significant(value)),
            Self::Number if value.abs() < 1e4 => significant(value),
            Self::Number => scaled(&[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")]),
        }
    }
}

/// A side of a plot: what it shows and how values become coordinates.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What is shown.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// How values are spaced.
    pub spacing: Spacing,
    from: f64,
    to: f64,
}

impl Axis {
    /// Spans the values. A linear axis starts at 0; a logarithmic one ignores what is not above 0.
    pub fn over(label: &str, unit: Unit, spacing: Spacing, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && (spacing == Spacing::Linear || *value > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (from, to) = match spacing {
            _ if low > high => (if spacing == Spacing::Log { 1.0 } else { 0.0 }, 10.0),
            Spacing::Linear => (low.min(0.0), if high > low.min(0.0) { high } else { low.min(0.0) + 1.0 }),
            // A little room, and never a single value.
            Spacing::Log => (low / 1.05, (high * 1.05).max(low * 2.0)),
        };
        Self { label: label.to_owned(), unit, spacing, from, to }
    }

    /// From the smallest value to the largest, without 0: for a quantity that was chosen, not measured.
    pub fn between(label: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Self {
        let mut axis = Self::over(label, unit, Spacing::Linear, [].into_iter());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low < high {
            let room = (high - low) * 0.04;
            (axis.from, axis.to) = (low - room, high + room);
        } else if low == high {
            // A single value is in the middle: 0 to twice it.
            let room = if low == 0.0 { 1.0 } else { low.abs() };
            (axis.from, axis.to) = (low - room, high + room);
        }
        axis
    }

    /// Where a value lies, from 0 at the start to 1 at the end; what is beyond is drawn at the edge.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.spacing {
            Spacing::Linear => (value - self.from) / (self.to - self.from),
            Spacing::Log => {
                let log = |v: f64| libm::log10(v.max(f64::MIN_POSITIVE));
                (log(value) - log(self.from)) / (log(self.to) - log(self.from))
            }
        };
        share.clamp(0.0, 1.0)
    }

    /// Values to write at the axis, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        match self.spacing {
            Spacing::Linear => self.linear_ticks(count),
            Spacing::Log => self.log_ticks(count),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let rough = (self.to - self.from) / count.max(1) as f64;
        let decade = libm::pow(10.0, libm::floor(libm::log10(rough)));
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * decade);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(decade * 10.0);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let first = libm::floor(libm::log10(self.from)) as i32;
        let last = libm::ceil(libm::log10(self.to)) as i32;
        let of = |factors: &[f64], every: i32| -> Vec<f64> {
            let decades = (first..=last).filter(|exponent| exponent.rem_euclid(every) == 0);
            let values = decades.flat_map(|exponent| {
                let decade = libm::pow(10.0, f64::from(exponent));
                factors.iter().map(move |factor| factor * decade)
            });
            values.filter(|value| (self.from..=self.to).contains(value)).collect()
        };
        // The densest choice that is not too dense.
        let choices = [of(&[1.0, 2.0, 3.0, 5.0, 7.0], 1), of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1), of(&[1.0], 1)];
        let fitting = choices.into_iter().find(|ticks| ticks.len() <= count);
        fitting.unwrap_or_else(|| of(&[1.0], (last - first) / count.max(1) as i32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_scale_themselves() {
        let cases = [
            (Unit::Time, 0.0, "0"),
            (Unit::Time, 0.25, "250 ns"),
            (Unit::Time, 12.34, "12.3 µs"),
            (Unit::Time, 999.9, "1 ms"),
            (Unit::Time, 1_870.0, "1.87 ms"),
            (Unit::Bytes, 64_000.0, "64 KB"),
            (Unit::Bytes, 4e6, "4 MB"),
            (Unit::Rate, 99.5, "99.5 Gb/s"),
            (Unit::Rate, 0.5, "500 Mb/s"),
            (Unit::Share, 0.995, "99.5%"),
            (Unit::Ratio, 3.375, "3.38×"),
            (Unit::Number, 0.4, "0.4"),
            (Unit::Number, 0.0125, "0.0125"),
            (Unit::Number, 123_456.0, "123 k"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.text(value), text, "{unit:?} {value}");
        }
        assert_eq!([Unit::of("fct_us.p99"), Unit::of("convergence_us")], [Unit::Time; 2]);
        assert_eq!([Unit::of("max_queue_bytes"), Unit::of("drops")], [Unit::Bytes, Unit::Number]);
    }

    #[test]
    fn ticks_are_round() {
        let linear = Axis::over("", Unit::Time, Spacing::Linear, [3.0, 98.0].into_iter());
        assert_eq!(linear.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let log = Axis::over("", Unit::Time, Spacing::Log, [8.0, 12_000.0].into_iter());
        assert_eq!(log.ticks(5), [10.0, 100.0, 1_000.0, 10_000.0]);
        let narrow = Axis::over("", Unit::Time, Spacing::Log, [11.0, 60.0].into_iter());
        assert_eq!(narrow.ticks(5), [20.0, 30.0, 50.0]);
        let axis = Axis::between("", Unit::Number, [0.2, 0.8].into_iter());
        assert!(axis.at(0.2) > 0.0 && axis.at(0.8) < 1.0);
    }

    #[test]
    fn a_single_value_is_in_the_middle_of_its_axis() {
        let axis = Axis::between("", Unit::Bytes, [30_000.0, 30_000.0].into_iter());
        assert_eq!((axis.at(0.0), axis.at(30_000.0), axis.at(60_000.0)), (0.0, 0.5, 1.0));
        assert!(axis.ticks(5).contains(&40_000.0), "{:?}", axis.ticks(5));
        assert_eq!(Axis::between("", Unit::Number, [0.0].into_iter()).at(0.0), 0.5);
        assert_eq!(Axis::between("", Unit::Number, [].into_iter()).at(10.0), 1.0, "no value at all");
    }

    proptest! {
        #[test]
        fn every_axis_is_usable(
            values in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e12_f64, Just(f64::INFINITY)], 0..6),
            log in any::<bool>(),
        ) {
            let spacing = if log { Spacing::Log } else { Spacing::Linear };
            let axis = Axis::over("", Unit::Number, spacing, values.iter().copied());
            for value in values.iter().copied().chain([0.0, 1.0]) {
                let at = axis.at(value);
                prop_assert!((0.0..=1.0).contains(&at), "{at}");
            }
            let ticks = axis.ticks(6);
            prop_assert!(ticks.len() <= 14, "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| axis.at(pair[0]) < axis.at(pair[1])), "{ticks:?}");
        }
    }
}
