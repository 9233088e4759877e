//! A comparison of many schemes: one line for each, a few numbers, as text or Markdown.

use super::{
    claims::Judgement,
    row::{ALL, Row},
};
use crate::{
    metrics::{self, Metric, Scope, Unit, statistics::Interval},
    plain::{Line, Plain},
    scenario::{Column, tree::nearest::nearest},
    text::{bytes, grid_point, json, mean_count, rounded, significant, spread},
};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Mark of a number of a run that was too short for a steady state.
pub const TOO_SHORT: &str = "!";

/// The column that shows whether flows are missing.
const COMPLETED: &Metric = metrics::metric("completed");

/// Which tables there are, and what their columns stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A table for each grid point, a column for each number.
    #[default]
    ByPoint,
    /// A table for each number, a column for each grid point.
    ByNumber,
}

/// Lines of schemes, in cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The grid point or the number that all cells share; empty if there is none.
    pub title: String,
    /// What the columns are, in up to two lines each; the first is that of the schemes.
    pub header: Vec<String>,
    /// A line for each scheme, which comes first.
    pub lines: Vec<Vec<String>>,
}

/// The tables of these columns, from the rows that pool seeds. Schemes and grid points are in the order of the rows; a
/// scheme has a line in each table.
pub fn tables(rows: &[Row], columns: &[Column], layout: Layout) -> Vec<Table> {
    let pooled: Vec<&Row> = rows.iter().filter(|row| row.is_pooled()).collect();
    let columns = &completed(columns, &pooled);
    let (mut schemes, mut points): (Vec<&str>, Vec<&Map<String, Value>>) = Default::default();
    for row in &pooled {
        if !schemes.contains(&row.scheme.as_str()) {
            schemes.push(&row.scheme);
        }
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    let cell_of = |scheme: &str, point: &Map<String, Value>, column: &Column| {
        let row = pooled.iter().find(|row| row.scheme == scheme && row.class == column.class && row.grid == *point);
        row.map_or_else(String::new, |row| {
            let has_bound = metrics::find(&column.metric).is_some_and(Metric::has_bound);
            let short = if has_bound && row.is_too_short() { TOO_SHORT } else { "" };
            format!("{}{short}", cell(row, &column.metric))
        })
    };
    let table = |title: String, headings: Vec<String>, cells: &dyn Fn(&str) -> Vec<String>| Table {
        title,
        header: [vec!["scheme".to_owned()], headings].concat(),
        lines: schemes.iter().map(|scheme| [vec![(*scheme).to_owned()], cells(scheme)].concat()).collect(),
    };
    match layout {
        Layout::ByPoint => points
            .iter()
            .map(|point| {
                let headings = columns.iter().map(|column| heading(column, "\n")).collect();
                table(title(point, &points), headings, &|scheme| {
                    columns.iter().map(|column| cell_of(scheme, point, column)).collect()
                })
            })
            .collect(),
        Layout::ByNumber => {
            let axes = axes(&points);
            let title = |column: &Column| {
                let names: Vec<&str> = axes.iter().map(|(_, name)| name.as_str()).collect();
                let by = if names.is_empty() { String::new() } else { format!(", by {}", names.join(", ")) };
                format!("{}{by}", heading(column, " "))
            };
            let values = |point: &&Map<String, Value>| {
                let values = axes.iter().map(|(path, _)| point.get(*path).map_or_else(String::new, json));
                values.collect::<Vec<_>>().join(", ")
            };
            columns
                .iter()
                .map(|column| {
                    table(title(column), points.iter().map(values).collect(), &|scheme| {
                        points.iter().map(|point| cell_of(scheme, point, column)).collect()
                    })
                })
                .collect()
        }
    }
}

/// What was published beside what was measured: a table for each grid point, in the order of the claims.
pub fn claims(judged: &[Judgement]) -> Vec<Table> {
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for claim in judged {
        if !points.contains(&&claim.grid) {
            points.push(&claim.grid);
        }
    }
    let line = |claim: &Judgement| {
        // The name of a metric has its unit, but for bytes.
        let is_size = !claim.is_ratio && metrics::find(&claim.metric).is_some_and(|metric| metric.unit == Unit::Bytes);
        let text = |value: f64| match value {
            _ if is_size => bytes(value as u64),
            // Ratios far below one.
            _ if value != 0.0 && value.abs() < 0.01 => significant(value),
            _ => rounded(value, None),
        };
        let measured = |value: f64| {
            let number = text(value);
            let shown = match claim.interval.map(|Interval(low, high)| (low, high)) {
                None => number.clone(),
                Some(interval) if is_size || value.abs() < 0.01 => {
                    format!("{number} {}", spread(value, interval, text))
                }
                Some(interval) => rounded(value, Some(interval)),
            };
            let short = if claim.too_short { TOO_SHORT } else { "" };
            shown.replacen(&number, &format!("{number}{short}"), 1)
        };
        let note = claim.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        vec![
            format!("{}{note}", claim.claim),
            claim.published_text(text),
            claim.measured.map_or_else(|| "–".to_owned(), measured),
            claim.outcome(),
        ]
    };
    let header = ["claim", "published", "measured", "status"].map(str::to_owned);
    let table = |point: &Map<String, Value>| Table {
        title: title(point, &points),
        header: header.to_vec(),
        lines: judged.iter().filter(|claim| claim.grid == *point).map(line).collect(),
    };
    points.iter().map(|point| table(point)).collect()
}

/// The columns, and beside drops what stands in their place: trimmed packets and bytes sent again, where some scheme has
/// them. A scheme that trims drops nothing, and may send everything twice.
pub fn completed(columns: &[Column], pooled: &[&Row]) -> Vec<Column> {
    let mut all = columns.to_vec();
    let Some(drops) = all.iter().position(|column| column.metric == "drops") else { return all };
    for metric in ["retransmitted_bytes", "trims"] {
        let is_there = all.iter().any(|column| column.metric == metric);
        if !is_there && pooled.iter().any(|row| row.number(metric).is_some_and(|value| value > 0.0)) {
            all.insert(drops + 1, Column { class: ALL.to_owned(), metric: metric.to_owned() });
        }
    }
    all
}

/// Keys of several schemes that have one value at each point of a grid, as a zip gives them, are one axis: the first of
/// them, and what their paths end in.
fn distinct<'a>(points: &[&'a Map<String, Value>]) -> Vec<(&'a str, String)> {
    let paths: Vec<&str> = points.first().map_or_else(Vec::new, |point| point.keys().map(String::as_str).collect());
    let end = |a: &str, b: &str| {
        let same = a.rsplit('.').zip(b.rsplit('.')).take_while(|(a, b)| a == b).count();
        a.rsplitn(same + 1, '.').take(same).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(".")
    };
    let mut found: Vec<(&str, String)> = Vec::new();
    for path in paths {
        let is_alike = |(other, _): &&mut (&str, String)| {
            points.len() > 1
                && !end(path, other).is_empty()
                && points.iter().all(|point| point.get(path) == point.get(*other))
        };
        match found.iter_mut().find(is_alike) {
            Some((_, name)) => *name = end(path, name),
            None => found.push((path, path.to_owned())),
        }
    }
    // Two zips may end alike: then each has its first path.
    let names: Vec<String> = found.iter().map(|(_, name)| name.clone()).collect();
    for (path, name) in &mut found {
        if names.iter().filter(|other| other == &name).count() > 1 {
            *name = (*path).to_owned();
        }
    }
    found
}

/// The axes of a grid, each with the shortest end of its path that no other has.
fn axes<'a>(points: &[&'a Map<String, Value>]) -> Vec<(&'a str, String)> {
    let distinct = distinct(points);
    let short = |name: &String| {
        let ends = name.match_indices('.').rev().map(|(dot, _)| &name[dot + 1..]).chain([name.as_str()]);
        let unique = |end: &&str| distinct.iter().filter(|(_, other)| other.ends_with(*end)).count() == 1;
        // "at" alone is ambiguous: "ecn.at".
        ends.clone().filter(|end| end.len() > 2).find(unique).unwrap_or(name).to_owned()
    };
    distinct.iter().map(|(path, name)| (*path, short(name))).collect()
}

/// A point among others of a grid.
fn title(point: &Map<String, Value>, points: &[&Map<String, Value>]) -> String {
    let values = distinct(points).into_iter().filter_map(|(path, name)| Some((name, point.get(path)?.clone())));
    grid_point(&values.collect())
}

/// Whose number it is, and which; numbers of the fabric have no class.
fn heading(column: &Column, between: &str) -> String {
    let Some(metric) = metrics::find(&column.metric) else { return column.metric.clone() };
    let heading = metric.heading_with_unit();
    if metric.scope == Scope::Class { format!("{}{between}{heading}", column.class) } else { heading }
}

/// A number with its confidence interval, to three digits or so. Sums are of a run.
pub fn cell(row: &Row, metric: &str) -> String {
    if metric == COMPLETED.name {
        let done = row.completed() == row.flows();
        return if done { "all".to_owned() } else { format!("{}/{}", row.completed(), row.flows()) };
    }
    let unknown = || "–".to_owned();
    let Some(metric) = metrics::find(metric) else { return unknown() };
    let value = row.per_run(metric);
    if metric.unit == Unit::Bytes {
        return value.map_or_else(unknown, |value| bytes(value as u64));
    }
    if metric.is_sum() || metric.scope != Scope::Class || !metric.has_interval() {
        return value.map_or_else(unknown, mean_count);
    }
    match (value, row.bound(metric.name), row.interval(metric.name)) {
        (Some(value), _, interval) => rounded(value, interval.map(|Interval(low, high)| (low, high))),
        (None, Some(bound), _) => format!("≥{}", rounded(bound, None)),
        (None, None, _) => unknown(),
    }
}

/// Tables for a terminal of so many columns.
pub fn text(tables: &[Table], width: usize) -> String {
    let mut text = String::new();
    for table in tables {
        if !table.title.is_empty() {
            let _ = writeln!(text, "\n{}", table.title);
        }
        let lines = table.lines.iter().cloned().map(Line::Cells).collect();
        text.push_str(&Plain { header: table.header.clone(), lines }.draw(width));
    }
    text
}

/// Tables for a page.
pub fn markdown(tables: &[Table]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut text = String::new();
    for table in tables {
        if !text.is_empty() {
            text.push('\n');
        }
        if !table.title.is_empty() {
            let _ = writeln!(text, "**{}**\n", table.title);
        }
        let _ = writeln!(text, "{}", line(&table.header));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(table.header.len().saturating_sub(1)));
        for cells in &table.lines {
            let _ = writeln!(text, "{}", line(cells));
        }
    }
    text
}

/// A column as one writes it: `small:slowdown.p99`, or `drops` of all flows.
///
/// # Errors
/// There is no such metric.
pub fn parse_column(text: &str) -> Result<Column, String> {
    let (class, metric) = text.rsplit_once(':').unwrap_or((ALL, text));
    if metrics::claimable().any(|name| name == metric) {
        return Ok(Column { class: class.to_owned(), metric: metric.to_owned() });
    }
    // A statistic alone may be of anything.
    let of_slowdown = || metrics::claimable().find(|name| name.strip_prefix("slowdown.") == Some(metric));
    let near = nearest(metric, metrics::claimable()).or_else(|| without_unit(metric)).or_else(of_slowdown);
    let hint = near.map(|near| format!(" (did you mean \"{near}\"?)"));
    Err(format!("there is no number {metric:?}{}; incast list metrics has all", hint.unwrap_or_default()))
}

/// The number of which the unit is left out: `rct.p99` is `rct_us.p99`.
fn without_unit(metric: &str) -> Option<&'static str> {
    let (name, statistic) = metric.split_once('.').unwrap_or((metric, ""));
    metrics::claimable().find(|other| {
        let (whole, its) = other.split_once('.').unwrap_or((other, ""));
        its == statistic && whole.strip_prefix(name).is_some_and(|unit| unit.starts_with('_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics::Value, results::claims::tests::row};

    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for (scheme, load, p99) in [("a", 0.2, 1.234), ("b|c", 0.2, 25.55), ("a", 0.4, 4321.0)] {
            let mut row = row(scheme, load, None, p99);
            row.runs = 2;
            row.ci95 = Some([("fct_us.p99".to_owned(), Some(Interval(p99 - 0.5, p99 + 0.5)))].into());
            rows.push(row);
        }
        let values = &mut rows[2].values;
        values.set("fct_us.p99", Value { number: None, at_least: Some(123.4) });
        values.set("flows", Some(7).into());
        values.set("retransmitted_bytes", Some(3_000_000).into());
        rows
    }

    fn columns(all: &[&str]) -> Vec<Column> {
        all.iter().map(|text| parse_column(text).expect("a column")).collect()
    }

    #[test]
    fn what_is_no_number_names_the_nearest_one_and_where_all_are() {
        for (found, meant) in
            [("rct.p99", "rct_us.p99"), ("web:fct.p50", "fct_us.p50"), ("slowdwn.p99", "slowdown.p99")]
        {
            let said = parse_column(found).expect_err(found);
            assert!(said.contains(&format!("(did you mean \"{meant}\"?); incast list metrics has all")), "{said}");
        }
        let said = parse_column("speed").expect_err("none");
        assert_eq!(said, "there is no number \"speed\"; incast list metrics has all");
        let said = parse_column("rpc:p99").expect_err("a statistic alone");
        assert!(said.contains("did you mean \"slowdown.p99\"?"), "{said}");
    }

    #[test]
    fn a_table_for_each_point() {
        let columns = columns(&["fct_us.p99", "completed", "drops", "retransmitted_bytes"]);
        let tables = tables(&rows(), &columns, Layout::ByPoint);
        let lines: Vec<_> = tables.iter().flat_map(|table| table.lines.clone()).collect();
        assert_eq!(tables[0].title, "load = 0.2");
        assert_eq!(tables[0].header, ["scheme", "all\nFCT p99 us", "all\nfinished", "drops", "all\nretransmitted"]);
        assert_eq!(lines[0], ["a", "1.23 ±0.50", "all", "2.0", "0"]);
        assert_eq!(lines[1], ["b|c", "25.6 ±0.5", "all", "2.0", "0"]);
        assert_eq!(lines[2], ["a", "≥123", "1/7", "2.0", "1.5 MB"], "sums are of a run");
        assert_eq!(lines[3], ["b|c", "", "", "", ""], "a run that failed leaves a gap");
        assert!(text(&tables, 80).contains("load = 0.4"));
    }

    #[test]
    fn what_stands_in_place_of_drops_is_shown() {
        let mut rows = rows();
        let header = |rows: &[Row]| tables(rows, &columns(&["drops"]), Layout::ByPoint)[0].header.clone();
        assert_eq!(header(&rows[..2]), ["scheme", "drops"]);
        rows[0].values.set("trims", Some(1_000_000).into());
        assert_eq!(header(&rows), ["scheme", "drops", "trims", "all\nretransmitted"]);
    }

    #[test]
    fn a_table_for_each_number() {
        let tables = tables(&rows(), &columns(&["fct_us.p99"]), Layout::ByNumber);
        assert_eq!(
            markdown(&tables),
            "**all FCT p99 us, by load**\n\n| scheme | 0.2 | 0.4 |\n|---|---:|---:|\n\
             | a | 1.23 ±0.50 | ≥123 |\n| b\\|c | 25.6 ±0.5 |  |\n"
        );
    }

    #[test]
    fn axes_have_the_shortest_names_that_differ() {
        let point = serde_json::json!({"workload.a.load": 1, "workload.b.load": 2, "workload.a.sizes": "x"});
        let point = point.as_object().expect("an object");
        let mut names: Vec<String> = axes(&[point]).into_iter().map(|(_, name)| name).collect();
        names.sort();
        assert_eq!(names, ["a.load", "b.load", "sizes"]);
        // What a zip gives several schemes is one axis.
        let of = |a: &str, b: &str| serde_json::json!({"scheme.x.threshold": a, "scheme.y.threshold": a, "scheme.z.threshold": b});
        let points = [of("1us", "1us"), of("2us", "3us")];
        let points: Vec<&Map<String, serde_json::Value>> =
            points.iter().filter_map(serde_json::Value::as_object).collect();
        let names: Vec<String> = axes(&points).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["threshold", "z.threshold"]);
        assert_eq!(title(points[1], &points), "scheme.z.threshold = 3us, threshold = 2us");
        let two = |a: u32, b: u32| serde_json::json!({"scheme.a.gain": a, "scheme.b.gain": a, "scheme.c.gain": b, "scheme.d.gain": b});
        let points = [two(1, 3), two(1, 4), two(2, 3), two(2, 4)];
        let points: Vec<&Map<String, serde_json::Value>> =
            points.iter().filter_map(serde_json::Value::as_object).collect();
        assert_eq!(title(points[1], &points), "scheme.a.gain = 1, scheme.c.gain = 4");
    }

    #[test]
    fn columns_are_written_as_class_and_number() {
        let column = parse_column("up to 1: KB:slowdown.p50").expect("a column");
        assert_eq!((column.class.as_str(), column.metric.as_str()), ("up to 1: KB", "slowdown.p50"));
        let message = parse_column("small:slowdwon.p99").expect_err("no such number");
        assert!(message.contains("slowdown.p99"), "{message}");
    }
}
