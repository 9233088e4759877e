//! What a search for settings found, and a map of what it tried.

use super::scrolling;
use crate::{
    results::tuning::{Axis, Found, Settings, Tuning},
    text::json,
};
use maud::{Markup, html};
use serde_json::Value;

/// One part for each scheme; nothing of results that are not a search's.
pub fn section(tuning: Option<&Tuning>) -> Markup {
    let Some(tuning) = tuning else { return html! {} };
    html! {
        section.tuning {
            h2 { "Settings for " (tuning.subject) }
            @for found in &tuning.schemes {
                @let map = |rows, columns| map(found, tuning.higher_is_better, rows, columns);
                h3 { (found.scheme) }
                ul { @for line in &found.said { li { (line) } } }
                @match &tuning.axes[..] {
                    [one] => (map(None, one)),
                    [rows, columns] => (map(Some(rows), columns)),
                    axes => { @for axis in axes { (map(None, axis)) } }
                }
            }
            p.note {
                "Differences from the start, seed by seed; of settings that differ in other keys the best one. What only short \
                 runs have tried is in italics, and what makes a number worse that must not be is struck out. The start has a \
                 dashed frame, the best of the search a solid one."
            }
        }
    }
}

/// What was tried, over one or two keys.
fn map(found: &Found, is_high: bool, rows: Option<&Axis>, columns: &Axis) -> Markup {
    let one = [Value::Null];
    let values = rows.map_or(&one[..], |rows| &rows.values[..]);
    let is_it = |settings: &Settings, row: &Value, column: &Value| {
        settings.get(&columns.key) == Some(column) && rows.is_none_or(|rows| settings.get(&rows.key) == Some(row))
    };
    let worst = found.tried.iter().filter_map(|it| it.difference).fold(0.0, |most, it| f64::max(most, it.abs()));
    let label = rows.map_or_else(|| columns.key.clone(), |rows| format!("{} by {}", rows.key, columns.key));
    let table = html! {
        table.map {
            thead {
                tr {
                    th { @if let Some(rows) = rows { (rows.key) } }
                    @for column in &columns.values { th scope="col" { (json(column)) } }
                }
            }
            tbody {
                @for row in values {
                    tr {
                        th scope="row" { @if rows.is_some() { (json(row)) } }
                        @for column in &columns.values { (cell((found, is_high), &|settings| is_it(settings, row, column), worst)) }
                    }
                }
            }
        }
    };
    html! {
        p { code { (columns.key) } @if let Some(rows) = rows { " across, " code { (rows.key) } " down" } }
        (scrolling(&label, &table))
    }
}

fn cell((found, is_high): (&Found, bool), is_it: &dyn Fn(&Settings) -> bool, worst: f64) -> Markup {
    // The best comes first.
    let Some(tried) = found.tried.iter().find(|it| is_it(&it.settings)) else { return html! { td { "" } } };
    let frame = match (is_it(&found.best), is_it(&found.start)) {
        (true, _) => "best",
        (_, true) => "start",
        _ => "",
    };
    let Some(difference) = tried.difference else { return html! { td class=(frame) { "?" } } };
    let colour = if difference == 0.0 || (difference > 0.0) == is_high { "good" } else { "bad" };
    let share = if worst > 0.0 { (difference.abs() / worst).sqrt() * 60.0 } else { 0.0 };
    let text = if found.is_relative { format!("{:+.1}%", difference * 100.0) } else { format!("{difference:+}") };
    html! {
        td class=(frame) title=(format!("{} seeds", tried.seeds))
            style=(format!("background: color-mix(in srgb, var(--{colour}) {share:.0}%, transparent)")) {
            @if tried.is_excluded { s { (text) } } @else if tried.full { (text) } @else { em { (text) } }
        }
    }
}
