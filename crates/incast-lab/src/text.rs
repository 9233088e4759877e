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

/// A value of three significant digits or so, perhaps with its error bar in the same digits.
pub fn rounded(value: f64, error: Option<f64>) -> String {
    let decimals = decimals(value);
    let unit = if value.abs() < 1000.0 { 1.0 } else { libm::exp10(libm::floor(libm::log10(value.abs())) - 2.0) };
    let text = |number: f64| format!("{:.decimals$}", (number / unit).round() * unit);
    let plain = |number: f64| format!("{number:.decimals$}");
    let text = |number: f64| if unit > 1.0 { text(number) } else { plain(number) };
    error.map_or_else(|| text(value), |error| format!("{} ±{}", text(value), text(error)))
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
        let rounded = |value, error| rounded(value, Some(error));
        assert_eq!(rounded(11_644.0, 3_216.0), "11600 ±3200");
        assert_eq!(rounded(508.8, 16.27), "509 ±16");
        assert_eq!([rounded(1.234, 0.5), rounded(25.55, 0.5)], ["1.23 ±0.50", "25.6 ±0.5"]);
        assert_eq!([0, 999, 1_500, 2_000_000].map(bytes), ["0", "999 B", "1.5 KB", "2.0 MB"]);
    }
}
