//! What is said of runs that were too short for a steady state, and with which length they would not be.

use super::row::{ALL, Row};
use crate::scenario::LONGEST;
use incast_units::Time;

/// Why a row is marked.
pub fn reason(row: &Row) -> String {
    reason_of(&[row])
}

/// Why rows are marked, with the range of their numbers.
fn reason_of(rows: &[&Row]) -> String {
    let percent = |metric: &str| {
        let all = rows.iter().map(|row| row.number(metric).map_or(0.0, |growth| growth * 100.0));
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = (format!("{low:.0}%"), format!("{high:.0}%"));
        if low == high { low } else { format!("{low} to {high}") }
    };
    format!(
        "what waits rose by {} (at least {}) from the first half of the counted time to the second",
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

/// Marked rows of one grid point of which the same is said, each of the class of its scheme where the backlog grows the most.
struct Marked<'a> {
    rows: Vec<&'a Row>,
    advice: String,
}

impl Marked<'_> {
    /// `dctcp, web, load = 0.2`, or of several schemes `dctcp and cubic, web, load = 0.2`.
    fn whose(&self) -> String {
        let first = &self.rows[0];
        let is_one_class = self.rows.iter().all(|row| row.class == first.class);
        let name = |row: &&Row| match row.class.as_str() {
            class if class != ALL && !is_one_class => format!("{} ({class})", row.scheme),
            _ => row.scheme.clone(),
        };
        let names: Vec<String> = self.rows.iter().map(name).collect();
        let mut whose = match &names[..] {
            [head @ .., last] if !head.is_empty() => format!("{} and {last}", head.join(", ")),
            _ => names.concat(),
        };
        let class = if is_one_class && first.class != ALL { first.class.clone() } else { String::new() };
        for part in [class, crate::text::grid_point(&first.grid)].iter().filter(|part| !part.is_empty()) {
            whose.push_str(", ");
            whose.push_str(part);
        }
        whose
    }
}

/// A line for each grid point with pooled rows that are marked, and each advice: of which schemes, how their backlog grows in the
/// class where it grows the most, and what would do.
pub fn notes(pooled: &[&Row]) -> Vec<(String, String)> {
    let mut all: Vec<Marked<'_>> = Vec::new();
    let mut seen: Vec<(&str, &serde_json::Map<String, serde_json::Value>)> = Vec::new();
    for row in pooled.iter().filter(|row| row.is_too_short()) {
        if seen.contains(&(row.scheme.as_str(), &row.grid)) {
            continue;
        }
        seen.push((&row.scheme, &row.grid));
        let same = |other: &&&Row| other.scheme == row.scheme && other.grid == row.grid;
        let growth = |row: &Row| row.number("backlog_growth_low").unwrap_or(0.0);
        let worst = *pooled.iter().filter(same).max_by(|a, b| growth(a).total_cmp(&growth(b))).unwrap_or(row);
        let advice = advice(pooled.iter().filter(same).find(|row| row.class == ALL).copied());
        match all.iter_mut().find(|it| it.advice == advice && it.rows[0].grid == row.grid) {
            Some(marked) => marked.rows.push(worst),
            None => all.push(Marked { rows: vec![worst], advice }),
        }
    }
    all.iter().map(|it| (it.whose(), format!("{}; {}", reason_of(&it.rows), it.advice))).collect()
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

    #[test]
    fn what_is_said_of_several_schemes_is_said_once() {
        let marked = |scheme: &str, class: &str, growth: f64| {
            let mut row = row(scheme, 0.2, None, 100.0);
            row.class = class.into();
            row.values.set("backlog_growth", Some(growth).into());
            row.values.set("backlog_growth_low", Some(growth / 2.0).into());
            row.values.set("nominal_load", Some(0.615).into());
            row.values.set("duration_needed_us", Some(34_000.0).into());
            row
        };
        let all = [("a", 0.51), ("b", 0.56), ("c", 0.52)].map(|(scheme, growth)| marked(scheme, ALL, growth));
        let said = notes(&all.iter().collect::<Vec<_>>());
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].0, "a, b and c, load = 0.2");
        assert!(said[0].1.starts_with("what waits rose by 51% to 56% (at least 26% to 28%)"), "{said:?}");
        assert!(said[0].1.ends_with("for a nominal load of 0.615, 34ms would do"), "{said:?}");
        // The class where it grows the most may be another for each.
        let classes = [("a", ALL, 0.5), ("a", "web", 0.9), ("b", ALL, 0.7)].map(|(a, b, c)| marked(a, b, c));
        assert_eq!(notes(&classes.iter().collect::<Vec<_>>())[0].0, "a (web) and b, load = 0.2");
    }
}
