//! Two results folders beside each other: before and after a change of a setting, of a law or of the version. Where both have the
//! same flows, values are paired seed by seed.

use super::{
    read::Results,
    row::{ALL, Row, Seed},
    verdict::{self, Apart, LEAST_SEEDS, LEVEL, Pairs, Terms},
};
use crate::{
    metrics::{self, Better, Metric, statistics::holm},
    plain::paragraph,
    scenario::{Column, Indifference},
    text::{grid_point, json, number},
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Whether both have the same flows in each seed, so that they are paired.
    pub is_paired: bool,
    /// Runs that both have, and how many of them have the same digest.
    pub runs: usize,
    /// See [`Difference::runs`].
    pub same_digest: usize,
    /// Effective values that differ, by their keys: before and after; a key that one does not have is empty there.
    pub values: BTreeMap<String, (String, String)>,
    /// Schemes and grid points that only one of them has.
    pub only_before: Vec<String>,
    /// See [`Difference::only_before`].
    pub only_after: Vec<String>,
    /// Seeds that both have.
    pub seeds: usize,
    /// The numbers.
    pub numbers: Vec<Number>,
}

/// A number before and after.
#[derive(Clone, Debug)]
pub struct Number {
    /// The scheme and its grid point.
    pub of: String,
    /// The class of the flows.
    pub class: String,
    /// The number.
    pub metric: &'static Metric,
    /// Means over the seeds: of times and ratios the geometric ones.
    pub before: Option<f64>,
    /// See [`Number::before`].
    pub after: Option<f64>,
    /// What the change makes; `None` where some flows did not finish, or of one seed.
    pub change: Option<Apart>,
    /// It is told from none, with all numbers taken together; never of fewer than three seeds.
    pub is_told: bool,
    /// It does not count, or all seeds are the same.
    pub is_as_good: bool,
}

/// A scheme at a grid point.
type Place = (String, Map<String, Value>);

fn in_words((scheme, grid): &Place) -> String {
    if grid.is_empty() { scheme.clone() } else { format!("{scheme}, {}", grid_point(grid)) }
}

/// Compares two folders in these numbers; without any, in those that the verdict of the second is about.
pub fn difference(before: &Results, after: &Results, columns: &[Column], indifferent: Indifference) -> Difference {
    let places = |results: &Results| -> Vec<Place> {
        let of = results
            .points
            .iter()
            .flat_map(|grid| results.schemes.iter().map(move |scheme| (scheme.clone(), grid.clone())));
        of.filter(|(scheme, grid)| results.pooled(grid, scheme, ALL).is_some()).collect()
    };
    let (of_before, of_after) = (places(before), places(after));
    let mut pairs: Vec<(Place, Place)> =
        of_before.iter().filter(|place| of_after.contains(place)).map(|place| (place.clone(), place.clone())).collect();
    // A law against another.
    if let ([one], [two]) = (&of_before[..], &of_after[..]) {
        pairs = vec![(one.clone(), two.clone())];
    }
    let lacks = |own: &[Place], is_first: bool| -> Vec<String> {
        let has = |place: &Place| pairs.iter().any(|(one, two)| if is_first { one == place } else { two == place });
        own.iter().filter(|place| !has(place)).map(in_words).collect()
    };
    let (only_before, only_after) = (lacks(&of_before, true), lacks(&of_after, false));
    let (mut values, mut runs, mut same_digest, mut is_paired) = (BTreeMap::new(), 0, 0, true);
    for (one, two) in &pairs {
        for run in before.runs_of(&one.1, &one.0) {
            let Some(other) = after.runs_of(&two.1, &two.0).find(|other| other.record.seed == run.record.seed) else {
                continue;
            };
            runs += 1;
            same_digest += usize::from(run.record.digest == other.record.digest);
            let (a, b) = (&run.record.scenario, &other.record.scenario);
            is_paired &= ["workload", "topology", "duration"].iter().all(|key| a.get(key) == b.get(key));
            compare("", a, b, &mut values);
        }
    }
    values.retain(|key, _| !matches!(key.as_str(), "name" | "describe" | "seeds"));
    let terms = Terms { columns: columns.to_vec(), classes: after.first().record.classes.clone(), ..Terms::default() };
    let subjects: Vec<_> = verdict::subjects(&after.rows, &terms)
        .into_iter()
        .filter(|(class, metric)| metric.better != Better::Neither && before.rows.iter().any(|row| row.class == *class))
        .collect();
    let seeds = &seeds_of(&before.rows) & &seeds_of(&after.rows);
    let mut numbers: Vec<(Number, Option<f64>)> = Vec::new();
    for (class, metric) in &subjects {
        for (one, two) in &pairs {
            let find = |results: &Results, (scheme, grid): &Place| -> Option<Vec<f64>> {
                let of = |seed: &u64| {
                    let is_it = |row: &&Row| {
                        row.scheme == *scheme
                            && row.grid == *grid
                            && row.class == *class
                            && row.seed == Seed::One(*seed)
                    };
                    results.rows.iter().find(is_it)?.number(metric.name)
                };
                seeds.iter().map(of).collect()
            };
            let of = if one == two { in_words(one) } else { format!("{} → {}", in_words(one), in_words(two)) };
            numbers.push(compared(of, class, metric, find(before, one), find(after, two), (is_paired, &indifferent)));
        }
    }
    let judged: Vec<f64> = numbers.iter().filter_map(|(_, p)| *p).collect();
    let mut told = holm(&judged, LEVEL).into_iter();
    let numbers = numbers.into_iter().map(|(number, p)| {
        let is_told = p.is_some() && told.next() == Some(true) && seeds.len() >= LEAST_SEEDS && !number.is_as_good;
        Number { is_told, ..number }
    });
    Difference {
        is_paired,
        runs,
        same_digest,
        values,
        only_before,
        only_after,
        seeds: seeds.len(),
        numbers: numbers.collect(),
    }
}

fn seeds_of(rows: &[Row]) -> BTreeSet<u64> {
    rows.iter().filter_map(|row| if let Seed::One(seed) = row.seed { Some(seed) } else { None }).collect()
}

/// The number, and the p-value of no change.
fn compared(
    of: String,
    class: &str,
    metric: &'static Metric,
    before: Option<Vec<f64>>,
    after: Option<Vec<f64>>,
    (is_paired, indifferent): (bool, &Indifference),
) -> (Number, Option<f64>) {
    let known = [before.as_deref(), after.as_deref()];
    let pairs = Pairs::new(metric, known.into_iter().flatten());
    let mean =
        |values: &Option<Vec<f64>>| values.as_deref().filter(|all| !all.is_empty()).map(|all| pairs.mean_of(all));
    let both = before.as_deref().zip(after.as_deref());
    let change = both.and_then(|(before, after)| match is_paired {
        true => pairs.apart(String::new(), after, before),
        false => pairs.apart_unpaired(String::new(), after, before),
    });
    let p_value = both.and_then(|(before, after)| match is_paired {
        true => pairs.p_value(after, before),
        false => pairs.p_value_unpaired(after, before),
    });
    let is_same = both.is_some_and(|(before, after)| before == after);
    let is_as_good = is_same || change.as_ref().is_some_and(|change| change.does_not_count(indifferent.part()));
    let (before, after) = (mean(&before), mean(&after));
    let number = Number { of, class: class.to_owned(), metric, before, after, change, is_told: false, is_as_good };
    // What is the same in every seed is no question.
    (number, p_value.filter(|_| !is_same))
}

/// Leaves of two values that differ.
fn compare(key: &str, before: &Value, after: &Value, values: &mut BTreeMap<String, (String, String)>) {
    let inner = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match (before, after) {
        _ if before == after => {}
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                let of = |all: &Map<String, Value>| all.get(name).cloned().unwrap_or(Value::Null);
                compare(&inner(name), &of(a), &of(b), values);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() && a.iter().chain(b).all(Value::is_object) => {
            for (number, (a, b)) in a.iter().zip(b).enumerate() {
                let name = ["class", "name"].iter().find_map(|name| a.get(name)?.as_str());
                compare(&inner(name.map_or_else(|| number.to_string(), str::to_owned).as_str()), a, b, values);
            }
        }
        _ => {
            let text = |value: &Value| if value.is_null() { String::new() } else { json(value) };
            values.insert(key.to_owned(), (text(before), text(after)));
        }
    }
}

impl Number {
    /// It has a value before and after.
    fn is_known(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }

    /// `8.10 → 8.90, +9.8% [5.0%, 15%]`
    pub fn text(&self) -> String {
        let value = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), number);
        let (before, after) = (value(self.before), value(self.after));
        match &self.change {
            None => format!("{before} → {after}"),
            Some(change) if change.difference == 0.0 && change.interval.0 == change.interval.1 => {
                format!("{before}, the same")
            }
            Some(change) => format!("{before} → {after}, {}", change.text()),
        }
    }
}

/// What the numbers are, which tables of one folder have otherwise.
const MEANS: &str = "values are means over seeds of each seed's number; table and report pool the seeds";

/// How many keys that differ are named.
const NAMED: usize = 12;

impl Difference {
    /// For a terminal of so many columns.
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        let mut say = |indent: usize, line: &str| paragraph(&mut text, indent, line, width);
        if self.runs > 0 && self.same_digest == self.runs {
            say(0, &format!("all {} runs have the same digest: they are the same packet by packet", self.runs));
        } else if self.same_digest > 0 {
            say(0, &format!("{} of {} runs have the same digest", self.same_digest, self.runs));
        }
        if !self.values.is_empty() {
            say(0, "effective values that differ");
        }
        for (key, (before, after)) in self.values.iter().take(NAMED) {
            let or_none = |text: &String| if text.is_empty() { "none".to_owned() } else { text.clone() };
            say(2, &format!("{key}: {} → {}", or_none(before), or_none(after)));
        }
        if self.values.len() > NAMED {
            say(2, &format!("and {} more (--json has all)", self.values.len() - NAMED));
        }
        for (all, which) in [(&self.only_before, "before"), (&self.only_after, "after")] {
            if !all.is_empty() {
                say(0, &format!("only {which}: {}", all.join("; ")));
            }
        }
        // What is counted of the same packets may differ, as by a warm-up.
        let is_one = self.only_before.is_empty()
            && self.only_after.is_empty()
            && self.numbers.iter().all(|number| number.before == number.after);
        if is_one && self.runs > 0 && self.same_digest == self.runs {
            return text;
        }
        if self.numbers.is_empty() {
            say(
                0,
                "no number of both is of the same scheme, grid point and class; of a grid, the same points (--only) can be compared",
            );
            return text;
        }
        let how = if self.is_paired { "the same flows, paired seed by seed" } else { "other flows, not paired" };
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        let few = if self.seeds < LEAST_SEEDS { ": too few to tell anything apart" } else { "" };
        say(
            0,
            &format!(
                "{how}; {seeds}{few}; 95% intervals of each number by itself; what is told apart, of all together (Holm's procedure)"
            ),
        );
        if self.seeds > 1 {
            say(0, MEANS);
        }
        type Is = fn(&Number) -> bool;
        let kinds: [(&str, Is); 4] = [
            ("not known, as flows did not finish", |number| !number.is_known()),
            ("changed", |number| number.is_told),
            ("not told apart", |number| number.is_known() && !number.is_told && !number.is_as_good),
            ("as good", |number| number.is_as_good),
        ];
        for (title, is_it) in kinds {
            let of: Vec<&Number> = self.numbers.iter().filter(|number| is_it(number)).collect();
            if of.is_empty() {
                continue;
            }
            say(0, title);
            for number in of {
                let heading = verdict::subject_heading(&number.class, number.metric);
                let unit = number.metric.unit.heading();
                say(2, &format!("{heading}{unit}, {}: {}", number.of, number.text()));
            }
        }
        text
    }

    /// All of it.
    pub fn to_json(&self) -> Value {
        let number = |number: &Number| {
            json!({
                "of": number.of, "class": number.class, "metric": number.metric.name, "before": number.before,
                "after": number.after, "change": number.change.as_ref().map(|change| change.difference),
                "ci95": number.change.as_ref().map(|change| change.interval), "is_told": number.is_told,
                "is_as_good": number.is_as_good,
            })
        };
        let pairs = |(key, (before, after)): (&String, &(String, String))| json!({"key": key, "before": before, "after": after});
        json!({
            "is_paired": self.is_paired, "seeds": self.seeds, "runs": self.runs, "same_digest": self.same_digest,
            "values": self.values.iter().map(pairs).collect::<Vec<_>>(),
            "only_before": self.only_before, "only_after": self.only_after,
            "numbers_are": "means over seeds of each seed's number",
            "numbers": self.numbers.iter().map(number).collect::<Vec<_>>(),
        })
    }
}

/// Columns by their names; those of the scenario if none is given.
pub fn columns(given: &[Column], results: &Results) -> Vec<Column> {
    let all = if given.is_empty() { &results.columns } else { given };
    all.iter().filter(|column| metrics::find(&column.metric).is_some()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_that_differ_are_named_by_their_keys() {
        let before = json!({"host": {"mtu": "1KB", "rto_min": "1ms"}, "workload": [{"class": "web", "load": 0.4}], "seeds": [1]});
        let after = json!({"host": {"mtu": "1KB", "rto_min": "5ms", "prr": true}, "workload": [{"class": "web", "load": 0.5}], "seeds": [1, 2]});
        let mut values = BTreeMap::new();
        compare("", &before, &after, &mut values);
        let found: Vec<String> = values.iter().map(|(key, (a, b))| format!("{key}: {a} -> {b}")).collect();
        assert_eq!(
            found,
            ["host.prr:  -> true", "host.rto_min: 1ms -> 5ms", "seeds: [1] -> [1,2]", "workload.web.load: 0.4 -> 0.5"]
        );
    }

    #[test]
    fn a_change_is_paired_where_the_flows_are_the_same() {
        // Seeds differ by far more than the change does.
        let before = vec![100.0, 200.0, 400.0];
        let after: Vec<f64> = [1.10, 1.11, 1.09].iter().zip(&before).map(|(factor, value)| factor * value).collect();
        let metric = metrics::metric("fct_us.p99");
        let of = |is_paired| {
            let number = compared(
                "x".into(),
                "web",
                metric,
                Some(before.clone()),
                Some(after.clone()),
                (is_paired, &Indifference::default()),
            );
            (number.0.change.expect("three seeds").interval, number.1.expect("three seeds"))
        };
        let ((paired, p), (unpaired, q)) = (of(true), of(false));
        assert!(paired.0 > 0.05 && paired.1 < 0.15 && p < 0.01, "{paired:?} {p}");
        assert!(unpaired.0 < -0.5 && unpaired.1 > 1.0 && q > 0.5, "{unpaired:?} {q}");
        let same = compared(
            "x".into(),
            "web",
            metric,
            Some(before.clone()),
            Some(before.clone()),
            (true, &Indifference::default()),
        )
        .0;
        assert_eq!((same.is_as_good, same.text().as_str()), (true, "200.0, the same"));
        let unknown = compared("x".into(), "web", metric, None, Some(before), (true, &Indifference::default())).0;
        assert_eq!(unknown.text(), "unknown → 200.0");
    }
}
