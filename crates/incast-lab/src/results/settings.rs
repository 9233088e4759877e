//! Which value of a setting is best for each scheme, and which values cannot be told from it: across grid points, paired seed by
//! seed. For each value of one axis the others are at their best. Several values are compared with one, so that p-values are
//! corrected by Holm's procedure. Last, the schemes are compared with each other, each at its best.

use super::{
    row::{Row, Seed},
    verdict::{self, Apart, LEAST_SEEDS, LEVEL, Pairs, Terms, Verdict},
};
use crate::{
    metrics::{Metric, statistics::holm},
    plain::paragraph,
    text::{grid_point, json},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A point of the grid, or a part of one.
type Point = Map<String, Value>;

/// Axes that are no setting of the network or its hosts: a verdict is about each of their values.
const CONDITIONS: [&str; 8] = ["workload", "topology", "event", "events", "duration", "warmup", "drain", "measure"];

/// What can be said about the settings under some conditions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Values of the axes that are conditions.
    pub conditions: Point,
    /// One for each number that is judged.
    pub subjects: Vec<Subject>,
}

/// The settings for one number.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The class of the flows.
    pub class: String,
    /// The number.
    pub metric: &'static Metric,
    /// Schemes that have a value in each seed of some point.
    pub schemes: Vec<OfScheme>,
    /// Schemes against each other, each at its best point; of one scheme there is none.
    pub best: Option<Verdict>,
}

/// The settings of one scheme.
#[derive(Clone, Debug)]
pub struct OfScheme {
    /// Its name.
    pub scheme: String,
    /// Where it is best, in settings only.
    pub point: Point,
    /// Each axis.
    pub axes: Vec<Axis>,
}

/// One axis for one scheme.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its key, or several that change together.
    pub keys: Vec<String>,
    /// The best value, as text.
    pub best: String,
    /// Values without any difference from it.
    pub same: Vec<String>,
    /// Values whose difference does not count.
    pub as_good: Vec<String>,
    /// Values that cannot be told from it.
    pub open: Vec<Apart>,
    /// Values that can.
    pub apart: Vec<Apart>,
    /// Values at which some flows did not finish.
    pub unknown: Vec<String>,
    /// All values in their order on the axis.
    order: Vec<String>,
}

impl Axis {
    /// Whether the scheme has no use for this setting.
    pub fn is_unused(&self) -> bool {
        self.same.len() + 1 == self.order.len() && self.order.len() > 1
    }

    /// Values around the best one, itself among them, that cannot be told from it or are as good: the ends of the range.
    pub fn range(&self) -> (&str, &str) {
        let is_near = |value: &String| {
            *value == self.best
                || self.same.contains(value)
                || self.as_good.contains(value)
                || self.open.iter().any(|one| one.scheme == *value)
        };
        let at = self.order.iter().position(|value| *value == self.best).unwrap_or(0);
        let from = self.order[..at].iter().rev().take_while(|value| is_near(value)).count();
        let to = self.order[at..].iter().take_while(|value| is_near(value)).count();
        (&self.order[at - from], &self.order[at + to - 1])
    }

    fn is_between(&self, value: &str, from: &str, to: &str) -> bool {
        let place = |value: &str| self.order.iter().position(|known| known == value);
        (place(from)..=place(to)).contains(&place(value))
    }

    fn key(&self) -> String {
        self.keys.join(", ")
    }

    /// `switch.ecn.at = 0.2bdp; 0.1bdp to 0.2bdp not told apart: 0.1bdp +3% [-2%, 8%]; 1bdp is +38% [20%, 58%]`
    pub fn text(&self) -> String {
        let key = self.key();
        if self.is_unused() {
            return format!("{key} changes nothing");
        }
        let mut said = vec![format!("{key} = {}", self.best)];
        let named = |all: &[Apart], is: &str| {
            let each = all.iter().map(|one| format!("{}{is} {}", one.scheme, one.text()));
            each.collect::<Vec<_>>().join(", ")
        };
        let as_good: Vec<&str> = self.same.iter().chain(&self.as_good).map(String::as_str).collect();
        if !as_good.is_empty() {
            said.push(format!("as good: {}", as_good.join(", ")));
        }
        if !self.open.is_empty() {
            let (from, to) = self.range();
            let is_range = from != to && self.open.iter().all(|one| self.is_between(&one.scheme, from, to));
            let not_told =
                if is_range { format!("{from} to {to} not told apart") } else { "not told from it".to_owned() };
            said.push(format!("{not_told}: {}", named(&self.open, "")));
        }
        if !self.apart.is_empty() {
            said.push(named(&self.apart, " is"));
        }
        if !self.unknown.is_empty() {
            said.push(format!("not known, as flows did not finish: {}", self.unknown.join(", ")));
        }
        said.join("; ")
    }
}

impl OfScheme {
    /// All of its axes.
    pub fn text(&self) -> String {
        let axes: Vec<String> = self.axes.iter().map(Axis::text).collect();
        format!("{}: {}", self.scheme, axes.join("; "))
    }

    /// It has no use for any of the settings.
    pub fn is_indifferent(&self) -> bool {
        self.axes.iter().all(Axis::is_unused)
    }

    /// Its name and where it is best, without the settings that it has no use for.
    fn name_at_best(&self) -> String {
        let used = self.axes.iter().filter(|axis| !axis.is_unused());
        let at: Vec<String> = used.map(|axis| format!("{} = {}", axis.key(), axis.best)).collect();
        if at.is_empty() { self.scheme.clone() } else { format!("{} with {}", self.scheme, at.join(", ")) }
    }
}

impl Subject {
    /// The schemes against each other.
    pub fn at_their_best(&self, most: usize) -> Option<String> {
        let mut best = self.best.clone()?;
        best.best = self.name_of(&best.best);
        Some(best.sentence(most))
    }

    /// A scheme, and the settings at which it is best.
    pub fn name_of(&self, scheme: &str) -> String {
        let found = self.schemes.iter().find(|of| of.scheme == scheme);
        found.map_or_else(|| scheme.to_owned(), OfScheme::name_at_best)
    }
}

fn is_condition(key: &str) -> bool {
    CONDITIONS.contains(&key.split('.').next().unwrap_or(key))
}

/// The part of a point with settings, or with conditions.
fn part(point: &Point, conditions: bool) -> Point {
    let of = point.iter().filter(|(key, _)| is_condition(key) == conditions);
    of.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The settings of each combination of conditions under which some axis has several values; nothing with too few seeds.
pub fn settings(rows: &[Row], terms: &Terms) -> Vec<Settings> {
    let mut all: Vec<Point> = Vec::new();
    for row in rows {
        let conditions = part(&row.grid, true);
        if !all.contains(&conditions) {
            all.push(conditions);
        }
    }
    let of = |conditions: Point| {
        let here: Vec<&Row> = rows.iter().filter(|row| part(&row.grid, true) == conditions).collect();
        let axes = axes(&here);
        let subjects = verdict::subjects(rows, terms);
        let subjects: Vec<Subject> = match axes.is_empty() {
            true => Vec::new(),
            false => {
                subjects.iter().filter_map(|(class, metric)| subject(&here, &axes, terms, class, metric)).collect()
            }
        };
        (!subjects.is_empty()).then_some(Settings { conditions, subjects })
    };
    all.into_iter().filter_map(of).collect()
}

/// The axes of these rows that are settings and have several values: each key, or all together where they are no product.
fn axes(rows: &[&Row]) -> Vec<Vec<String>> {
    let mut points: Vec<Point> = Vec::new();
    for row in rows {
        let point = part(&row.grid, false);
        if !points.contains(&point) {
            points.push(point);
        }
    }
    let Some(first) = points.first() else { return Vec::new() };
    let values = |key: &str| -> Vec<&Value> {
        let mut all = Vec::new();
        for value in points.iter().filter_map(|point| point.get(key)) {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    };
    let keys: Vec<&String> = first.keys().filter(|key| values(key).len() > 1).collect();
    let product: usize = keys.iter().map(|key| values(key).len()).product();
    if product == points.len() {
        return keys.into_iter().map(|key| vec![key.clone()]).collect();
    }
    vec![keys.into_iter().cloned().collect()]
}

/// What a scheme has at a point.
struct At {
    point: Point,
    /// By seed; `None` if one is not known.
    values: Option<Vec<f64>>,
}

fn subject(
    rows: &[&Row],
    axes: &[Vec<String>],
    terms: &Terms,
    class: &str,
    metric: &'static Metric,
) -> Option<Subject> {
    let (schemes, seeds) = verdict::compared(rows);
    if !verdict::is_judged(terms, class, metric) || seeds.len() < LEAST_SEEDS {
        return None;
    }
    let mut found: Vec<OfScheme> = Vec::new();
    for scheme in &schemes {
        let own: Vec<&Row> = rows.iter().copied().filter(|row| row.scheme == *scheme && row.class == class).collect();
        let points = of_points(&own, &seeds, metric);
        let known: Vec<&[f64]> = points.iter().filter_map(|at| at.values.as_deref()).collect();
        let pairs = Pairs::new(metric, known.iter().copied());
        let best = points.iter().filter(|at| at.values.is_some()).min_by(|a, b| order(&pairs, a, b));
        let Some(best) = best else { continue };
        let judged = axes.iter().filter_map(|keys| axis(keys, &points, best, &pairs, terms));
        found.push(OfScheme { scheme: (*scheme).to_owned(), point: best.point.clone(), axes: judged.collect() });
    }
    let at_best = |row: &&Row| found.iter().any(|of| of.scheme == row.scheme && of.point == part(&row.grid, false));
    let at_best: Vec<&Row> = rows.iter().copied().filter(at_best).collect();
    let best = (found.len() > 1).then(|| verdict::verdict(&at_best, terms, class, metric)).flatten();
    (!found.is_empty()).then(|| Subject { class: class.to_owned(), metric, schemes: found, best })
}

/// The values of a scheme at each of its points that has all seeds: of an interrupted command, or of a search, not all have.
fn of_points(rows: &[&Row], seeds: &BTreeSet<u64>, metric: &Metric) -> Vec<At> {
    let mut points: Vec<At> = Vec::new();
    for row in rows.iter().filter(|row| row.is_pooled()) {
        let point = part(&row.grid, false);
        let of = |seed: &u64| rows.iter().find(|one| one.seed == Seed::One(*seed) && part(&one.grid, false) == point);
        let Some(of_seeds) = seeds.iter().map(of).collect::<Option<Vec<_>>>() else { continue };
        let values = of_seeds.into_iter().map(|row| row.number(metric.name)).collect();
        points.push(At { point, values });
    }
    points
}

fn order(pairs: &Pairs, a: &At, b: &At) -> std::cmp::Ordering {
    match (&a.values, &b.values) {
        (Some(a), Some(b)) => pairs.order(a, b),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => std::cmp::Ordering::Equal,
    }
}

/// A part of a point as text: its values, where several keys change together with their keys.
fn label(keys: &[String], point: &Point) -> String {
    match keys {
        [key] => point.get(key).map(json).unwrap_or_default(),
        several => {
            let of: Point = several.iter().filter_map(|key| Some((key.clone(), point.get(key)?.clone()))).collect();
            format!("({})", grid_point(&of))
        }
    }
}

fn axis(keys: &[String], points: &[At], best: &At, pairs: &Pairs, terms: &Terms) -> Option<Axis> {
    // Each value with the others at their best.
    let mut at_value: Vec<(String, &At)> = Vec::new();
    for at in points {
        let value = label(keys, &at.point);
        match at_value.iter_mut().find(|(known, _)| *known == value) {
            Some((_, kept)) if order(pairs, at, kept).is_lt() => *kept = at,
            Some(_) => {}
            None => at_value.push((value, at)),
        }
    }
    if at_value.len() < 2 {
        return None;
    }
    let own = label(keys, &best.point);
    let of_best = best.values.as_deref()?;
    let mut axis = Axis {
        keys: keys.to_vec(),
        best: own.clone(),
        same: Vec::new(),
        as_good: Vec::new(),
        open: Vec::new(),
        apart: Vec::new(),
        unknown: Vec::new(),
        order: at_value.iter().map(|(value, _)| value.clone()).collect(),
    };
    let mut compared = Vec::new();
    for (value, at) in at_value.into_iter().filter(|(value, _)| *value != own) {
        match at.values.as_deref() {
            None => axis.unknown.push(value),
            Some(values) if values == of_best => axis.same.push(value),
            Some(values) => compared.push((pairs.apart(value, values, of_best)?, pairs.p_value(values, of_best)?)),
        }
    }
    let differs = holm(&compared.iter().map(|(_, p)| *p).collect::<Vec<_>>(), LEVEL);
    for ((one, _), is_told) in compared.into_iter().zip(differs) {
        match is_told {
            _ if one.does_not_count(terms.indifferent.part()) => axis.as_good.push(one.scheme),
            true => axis.apart.push(one),
            false => axis.open.push(one),
        }
    }
    Some(axis)
}

/// The settings for a terminal of so many columns; nothing where there are none.
pub fn text(all: &[Settings], width: usize) -> String {
    written(all, width, true)
}

/// The same in few lines where there are several conditions: each scheme at its best alone.
pub fn brief(all: &[Settings], width: usize) -> String {
    written(all, width, all.len() < 2)
}

fn written(all: &[Settings], width: usize, with_values: bool) -> String {
    let mut text = String::new();
    if all.is_empty() {
        return text;
    }
    let heading = if with_values {
        "settings: each scheme at its best, then its values, paired seed by seed"
    } else {
        "settings: each scheme at its best; the values of each in the report, and with --wide"
    };
    paragraph(&mut text, 0, heading, width);
    for of in all {
        let at = grid_point(&of.conditions);
        let indent = if at.is_empty() { 2 } else { 4 };
        if !at.is_empty() {
            paragraph(&mut text, 2, &at, width);
        }
        for line in of.subjects.iter().filter_map(|subject| subject.at_their_best(6)) {
            paragraph(&mut text, indent, &line, width);
        }
        for subject in of.subjects.iter().filter(|_| with_values) {
            let used: Vec<&OfScheme> = subject.schemes.iter().filter(|scheme| !scheme.is_indifferent()).collect();
            if !used.is_empty() {
                paragraph(&mut text, indent, &verdict::subject_heading(&subject.class, subject.metric), width);
            }
            for scheme in used {
                paragraph(&mut text, indent + 2, &scheme.text(), width);
            }
        }
    }
    text
}

/// The same as data.
pub fn to_json(all: &[Settings]) -> Value {
    let apart = |one: &Apart| json!({"value": one.scheme, "difference": one.difference, "ci95": one.interval, "is_relative": one.is_relative});
    let axis = |axis: &Axis| {
        let (from, to) = axis.range();
        json!({
            "keys": axis.keys, "best": axis.best, "unused": axis.is_unused(), "range": [from, to],
            "same": axis.same, "as_good": axis.as_good, "unknown": axis.unknown,
            "open": axis.open.iter().map(apart).collect::<Vec<_>>(),
            "apart": axis.apart.iter().map(apart).collect::<Vec<_>>(),
        })
    };
    let scheme = |of: &OfScheme| json!({"scheme": of.scheme, "point": of.point, "axes": of.axes.iter().map(axis).collect::<Vec<_>>()});
    let subject = |of: &Subject| {
        json!({
            "class": of.class, "metric": of.metric.name, "at_their_best": of.at_their_best(usize::MAX),
            "schemes": of.schemes.iter().map(scheme).collect::<Vec<_>>(),
        })
    };
    let settings = |of: &Settings| json!({"conditions": of.conditions, "subjects": of.subjects.iter().map(subject).collect::<Vec<_>>()});
    all.iter().map(settings).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{claims::tests::row, compact::parse_column};

    /// Rows of a scheme: values by seed at each point.
    fn rows(scheme: &str, points: &[(Value, &[f64])]) -> Vec<Row> {
        let of = |(grid, values): &(Value, &[f64])| {
            let seeds = (1..).map(Some).take(values.len());
            let pooled = [(None, values[0])];
            let each = seeds.zip(values.iter().copied()).chain(pooled);
            let rows = each.map(|(seed, value)| Row {
                grid: grid.as_object().expect("an object").clone(),
                ..row(scheme, 0.2, seed, value)
            });
            rows.collect::<Vec<_>>()
        };
        points.iter().flat_map(of).collect()
    }

    fn at(value: &str) -> Value {
        json!({"switch.ecn.at": value})
    }

    fn about(rows: &[Row]) -> Vec<Settings> {
        let columns = vec![parse_column("fct_us.p99").expect("a column")];
        settings(rows, &Terms { columns, ..Terms::default() })
    }

    const NOISE: [f64; 5] = [1.0, 1.3, 0.8, 1.1, 0.9];

    fn noisy(value: f64, other: f64) -> Vec<f64> {
        NOISE.iter().enumerate().map(|(seed, noise)| noise * value * (1.0 + other * (seed % 2) as f64)).collect()
    }

    #[test]
    fn the_best_threshold_and_the_flat_range_around_it() {
        let values = [noisy(12.0, 0.01), noisy(10.0, 0.0), noisy(9.9, 0.1), noisy(20.0, 0.01)];
        let points: Vec<(Value, &[f64])> =
            ["0.1bdp", "0.2bdp", "0.5bdp", "1bdp"].map(at).into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        let mut all = rows("dctcp", &points);
        let same = noisy(15.0, 0.0);
        all.extend(rows("cubic", &points.iter().map(|(point, _)| (point.clone(), &same[..])).collect::<Vec<_>>()));
        let found = about(&all);
        let [Settings { subjects, .. }] = &found[..] else { panic!("{found:?}") };
        let [subject] = &subjects[..] else { panic!("{found:?}") };
        let dctcp = &subject.schemes[0].axes[0];
        assert_eq!((dctcp.best.as_str(), dctcp.range()), ("0.2bdp", ("0.2bdp", "0.5bdp")), "{dctcp:?}");
        let apart: Vec<&str> = dctcp.apart.iter().map(|one| one.scheme.as_str()).collect();
        assert_eq!(apart, ["0.1bdp", "1bdp"]);
        assert!(subject.schemes[1].axes[0].is_unused());
        let text = text(&found, 200);
        assert!(text.contains("dctcp: switch.ecn.at = 0.2bdp; 0.2bdp to 0.5bdp not told apart: 0.5bdp "), "{text}");
        assert!(text.contains("FCT p99: dctcp with switch.ecn.at = 0.2bdp; cubic is +50%"), "{text}");
        assert!(!text.contains("cubic: "), "it has no use for it: {text}");
    }

    #[test]
    fn several_values_need_more_than_one_would() {
        // Logarithms of the quotients: 0.06 to 0.3, whose p-value is 0.031.
        let near = |factor: f64| -> Vec<f64> { [1.06, 1.3, 1.1, 1.25].iter().map(|one| one * factor).collect() };
        let values = [vec![100.0; 4], near(100.0), near(100.5), near(101.0)];
        let points: Vec<(Value, &[f64])> =
            ["a", "b", "c", "d"].map(at).into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        let told = |points: &[(Value, &[f64])]| {
            let axis = about(&rows("x", points))[0].subjects[0].schemes[0].axes[0].clone();
            (axis.apart.len(), axis.open.len())
        };
        assert_eq!((told(&points[..2]), told(&points)), ((1, 0), (0, 3)));
    }

    #[test]
    fn loads_are_conditions_and_other_settings_are_at_their_best() {
        let grid = |load: f64, at: &str, alpha: f64| json!({"workload.web.load": load, "switch.ecn.at": at, "switch.alpha": alpha});
        let values: Vec<(Value, Vec<f64>)> = [0.3, 0.6]
            .into_iter()
            .flat_map(|load| {
                let of = move |at: &str, alpha: f64, value: f64| (grid(load, at, alpha), noisy(value * load, 0.0));
                [of("a", 1.0, 30.0), of("a", 2.0, 20.0), of("b", 1.0, 40.0), of("b", 2.0, 10.0)]
            })
            .collect();
        let points: Vec<(Value, &[f64])> = values.iter().map(|(grid, all)| (grid.clone(), &all[..])).collect();
        let found = about(&rows("x", &points));
        assert_eq!(found.len(), 2, "one for each load");
        let of = &found[0].subjects[0].schemes[0];
        let best: Vec<(&str, &str)> = of.axes.iter().map(|axis| (axis.keys[0].as_str(), axis.best.as_str())).collect();
        assert_eq!(best, [("switch.alpha", "2.0"), ("switch.ecn.at", "b")]);
        // With alpha at its best, a has 20 and not 30.
        let ecn = &of.axes[1];
        assert!((ecn.apart[0].difference - 1.0).abs() < 1e-9, "{ecn:?}");
        assert!(found[0].subjects[0].best.is_none(), "one scheme has no other");
    }

    #[test]
    fn axes_that_change_together_are_one() {
        let both = |at: &str, alpha: f64| json!({"switch.ecn.at": at, "switch.alpha": alpha});
        let (one, two) = (noisy(1.0, 0.0), noisy(2.0, 0.0));
        let found = about(&rows("x", &[(both("a", 1.0), &one), (both("b", 2.0), &two)]));
        let axes = &found[0].subjects[0].schemes[0].axes;
        assert_eq!((axes.len(), axes[0].keys.len()), (1, 2));
        assert!(about(&rows("x", &[(at("a"), &one)])).is_empty(), "one point has no other");
        let few = about(&rows("x", &[(at("a"), &one[..2]), (at("b"), &two[..2])]));
        assert!(few.is_empty(), "two seeds are too few");
    }

    #[test]
    fn a_value_that_was_not_run_on_all_seeds_is_not_compared() {
        let (one, two, three) = (noisy(1.0, 0.0), noisy(2.0, 0.0), noisy(3.0, 0.0));
        let found = about(&rows("x", &[(at("a"), &one), (at("b"), &two[..2]), (at("c"), &three)]));
        let axis = &found[0].subjects[0].schemes[0].axes[0];
        assert_eq!((axis.best.as_str(), axis.apart.len(), axis.unknown.len()), ("a", 1, 0), "{axis:?}");
        let alone = about(&rows("x", &[(at("a"), &one), (at("b"), &two[..2])]));
        assert!(alone.iter().all(|of| of.subjects.iter().all(|of| of.schemes.iter().all(|of| of.axes.is_empty()))));
    }
}
