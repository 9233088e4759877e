//! One file for each section of the page.

pub mod claims;
pub mod comparison;
pub mod cost;
pub mod distributions;
pub mod estimates;
pub mod over_time;
pub mod published;
pub mod scenario;
pub mod sizes;
pub mod sweep;

use super::load::Results;
use crate::results::summary::{ALL, Row};
use maud::{Markup, html};

/// A table that scrolls by itself where it is wider than the screen.
pub fn scrolling(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A title's part that says which flows.
pub fn of_class(class: &str) -> String {
    if class == ALL { "all flows".to_owned() } else { class.to_owned() }
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

/// A number of a row, or else its lower bound.
pub fn value_or_bound(row: &Row, metric: &str) -> (Option<f64>, Option<f64>) {
    (row.number(metric), row.bound(metric))
}

/// Some pooled row of this class has the number, or a bound of it.
pub fn is_measured(results: &Results, class: &str, metric: &str) -> bool {
    results.rows.iter().filter(|row| row.is_pooled() && row.class == class).any(|row| {
        let (value, bound) = value_or_bound(row, metric);
        value.or(bound).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let numbers = [0, 999, 1_000, 123_456, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
