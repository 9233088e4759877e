//! What is said of runs that were too short for a steady state, and with which length they would not be.

use super::row::{ALL, Row};
use crate::scenario::LONGEST;
use incast_units::Time;

/// Why a row is marked.
pub fn reason(row: &Row) -> String {
    let percent = |metric: &str| row.number(metric).map_or(0.0, |growth| growth * 100.0);
    format!(
        "what waits rose by {:.0}% (at least {:.0}%) from the first half of the counted time to the second",
        percent("backlog_growth"),
        percent("backlog_growth_low")
    )
}

/// Which length would do, as far as the row of all classes knows.
fn advice(all: Option<&Row>) -> String {
    let of = |metric: &str| all.and_then(|row| row.number(metric));
    match (of("nominal_load"), of("duration_needed_us")) {
        (Some(load), _) if load >= 1.0 => format!("no length would do: the nominal load is {load:.3}"),
        (Some(load), Some(us)) if us >= LONGEST.as_us_f64() => {
            format!("for a nominal load of {load:.3} not even a day would do")
        }
        (Some(load), Some(us)) => {
            let needed = Time::from_us(us as u64);
            format!("for a nominal load of {load:.3}, {needed} would do")
        }
        (Some(load), None) => format!(
            "for a nominal load of {load:.3} the duration is enough: the scheme carries less, or needs longer, or this is \
             a false alarm, which a run of twice the duration tells"
        ),
        (None, _) => "there is no nominal load; a run of twice the duration tells whether it settles".into(),
    }
}

/// A line for each scheme and grid point with pooled rows that are marked: how the backlog grows, in the class where it
/// grows the most, and what would do.
pub fn notes(pooled: &[&Row]) -> Vec<(String, String)> {
    let mut notes: Vec<(String, String)> = Vec::new();
    let mut seen: Vec<(&str, &serde_json::Map<String, serde_json::Value>)> = Vec::new();
    for row in pooled.iter().filter(|row| row.is_too_short()) {
        if seen.contains(&(row.scheme.as_str(), &row.grid)) {
            continue;
        }
        seen.push((&row.scheme, &row.grid));
        let same = |other: &&&Row| other.scheme == row.scheme && other.grid == row.grid;
        let growth = |row: &Row| row.number("backlog_growth_low").unwrap_or(0.0);
        let worst = pooled.iter().filter(same).max_by(|a, b| growth(a).total_cmp(&growth(b))).unwrap_or(row);
        let all = pooled.iter().filter(same).find(|row| row.class == ALL).copied();
        let class = if worst.class == ALL { String::new() } else { format!(", {}", worst.class) };
        let at = crate::text::grid_point(&row.grid);
        let at = if at.is_empty() { at } else { format!(", {at}") };
        notes.push((format!("{}{class}{at}", row.scheme), format!("{}; {}", reason(worst), advice(all))));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::claims::tests::row;

    #[test]
    fn each_case_has_its_own_advice() {
        let note = |load: Option<f64>, needed: Option<f64>| {
            let mut row = row("a", 0.2, None, 100.0);
            row.values.set("backlog_growth", Some(0.83).into());
            row.values.set("backlog_growth_low", Some(0.41).into());
            row.values.set("nominal_load", load.into());
            row.values.set("duration_needed_us", needed.into());
            notes(&[&row]).remove(0)
        };
        let (whose, text) = note(Some(0.571), Some(14_000.0));
        assert_eq!(whose, "a, load = 0.2");
        assert!(text.starts_with("what waits rose by 83% (at least 41%)"), "{text}");
        assert!(text.ends_with("for a nominal load of 0.571, 14ms would do"), "{text}");
        assert!(note(Some(1.04), None).1.contains("no length would do"), "above capacity");
        assert!(note(Some(0.5), None).1.contains("twice the duration"), "not by its load");
        assert!(note(None, None).1.contains("there is no nominal load"), "a closed loop");
        assert!(notes(&[&row("a", 0.2, None, 100.0)]).is_empty());
    }
}
