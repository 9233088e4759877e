//! Numbers and values as text for people.

use serde_json::{Map, Value};

/// About four significant digits, and never an exponent.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ if size == 0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    }
}

/// Decimals that give a value of 0.1 or more about three significant digits; a value and its error bar share them.
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    }
}

/// How a confidence interval is written behind the value that it is of.
enum Spread {
    /// Its ends are equally far from the value, to within a tenth.
    Half(f64),
    /// They are not.
    Ends(f64, f64),
    /// It reaches beyond ten times the value, or beyond a tenth: nothing is known.
    Open,
}

impl Spread {
    fn of(value: f64, (low, high): (f64, f64)) -> Self {
        let (below, above) = (value - low, high - value);
        let is_open = value > 0.0 && (high > 10.0 * value || low > 0.0 && low < value / 10.0);
        if (above - below).abs() <= 0.1 * above.abs().max(below.abs()) {
            Self::Half((high - low) / 2.0)
        } else if is_open {
            Self::Open
        } else {
            Self::Ends(low, high)
        }
    }
}

/// A 95% confidence interval, to stand behind its value: `±1.2`; `[17, 57]` where the value is not in its middle; `±?` where
/// it reaches beyond a factor of ten.
pub fn spread(value: f64, interval: (f64, f64), text: impl Fn(f64) -> String) -> String {
    match Spread::of(value, interval) {
        Spread::Half(half) => format!("±{}", text(half)),
        Spread::Ends(low, high) => format!("[{}, {}]", text(low), text(high)),
        Spread::Open => "±?".to_owned(),
    }
}

/// What [`spread`] writes, for legends.
pub const SPREAD: &str = "± or [ ] 95% confidence interval over seeds, ±? beyond a factor of ten";

/// A value of three significant digits or so, perhaps with its interval, whose half has the same digits.
pub fn rounded(value: f64, interval: Option<(f64, f64)>) -> String {
    let text = |number: f64, like: f64| {
        let decimals = decimals(like);
        if like.abs() < 1000.0 {
            return format!("{number:.decimals$}");
        }
        let unit = libm::exp10(libm::floor(libm::log10(like.abs())) - 2.0);
        format!("{:.decimals$}", (number / unit).round() * unit)
    };
    let Some(interval) = interval else { return text(value, value) };
    let own_digits = |number| match Spread::of(value, interval) {
        Spread::Half(_) => text(number, value),
        _ => text(number, number),
    };
    format!("{} {}", text(value, value), spread(value, interval, own_digits))
}

/// Three significant digits without trailing zeros.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if size == 0.0 => 0,
        _ if size >= 0.9995 => decimals(value),
        _ => 3 + (-libm::log10(size)).clamp(0.0, 9.0) as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A mean of whole numbers. One decimal is kept below 10, so that a small mean is not printed as 0.
pub fn mean_count(value: f64) -> String {
    if value > 0.0 && value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Bytes in powers of ten, with their unit.
pub fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0 => "0".to_owned(),
        1..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A JSON value; a string without its quotes.
pub fn json(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A TOML value; a string without its quotes.
pub fn toml(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A grid point in one line.
pub fn grid_point(point: &Map<String, Value>) -> String {
    point.iter().map(|(path, value)| format!("{path} = {}", json(value))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let numbers = [0, 999, 1_000, 123_456, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn small_means_are_not_zero() {
        assert_eq!([0.0, 0.25, 9.94, 9.96].map(mean_count), ["0", "0.2", "9.9", "10"]);
        assert_eq!([0.0, 0.01234, 99.9, 999.96].map(number), ["0", "0.0123", "99.90", "1000.0"]);
        assert_eq!([0.0, 0.012345, 1.5, 99.96, 123.4].map(significant), ["0", "0.0123", "1.5", "100", "123"]);
        let around = |value: f64, half: f64| rounded(value, Some((value - half, value + half)));
        assert_eq!(around(11_644.0, 3_216.0), "11600 ±3200");
        assert_eq!(around(508.8, 16.27), "509 ±16");
        assert_eq!([around(1.234, 0.5), around(25.55, 0.5)], ["1.23 ±0.50", "25.6 ±0.5"]);
        assert_eq!([0, 999, 1_500, 2_000_000].map(bytes), ["0", "999 B", "1.5 KB", "2.0 MB"]);
    }

    #[test]
    fn an_interval_is_halved_only_where_its_value_is_in_the_middle() {
        let by_factor = |value: f64, factor: f64| rounded(value, Some((value / factor, value * factor)));
        assert_eq!(by_factor(31.4, 1.05), "31.4 ±1.5");
        assert_eq!(by_factor(31.4, 2.0), "31.4 [15.7, 62.8]");
        assert_eq!(by_factor(31.4, 9.0), "31.4 [3.49, 283]");
        assert_eq!(by_factor(29.7, 1e8), "29.7 ±?");
        assert_eq!(rounded(4.0, Some((0.0, 9.0))), "4.00 [0.00, 9.00]");
        assert_eq!(rounded(0.0, Some((0.0, 0.0))), "0.00 ±0.00");
    }
}
