//! Which scheme is best in which number, which others are as good, and which the seeds do not tell from it: by differences
//! that are paired seed by seed, as all schemes of a seed have the same arrivals. Times and ratios are compared by their
//! quotients, in logarithms, other numbers by their differences.

use super::{
    compact::TOO_SHORT,
    row::{ALL, Row, Seed},
};
use crate::{
    metrics::{
        self, Better, Metric,
        statistics::{Interval, confidence, log_confidence, p_value, welch},
    },
    plain::paragraph,
    scenario::{Column, Indifference},
    text::{grid_point, number},
};
use serde_json::{Map, Value};
use std::{cmp::Ordering, collections::BTreeSet, fmt::Write};

/// Level of what is told apart where several are judged together.
pub const LEVEL: f64 = 0.05;

/// Fewer seeds have no verdict: with two, Student's t is 12.7, and chance decides whether they differ.
pub const LEAST_SEEDS: usize = 3;

/// What can be said about a grid point.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// The grid point.
    pub grid: Map<String, Value>,
    /// Seeds that every scheme has.
    pub seeds: usize,
    /// One for each number; none with too few seeds.
    pub verdicts: Vec<Verdict>,
}

/// The order of schemes in one number.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The class of the flows.
    pub class: String,
    /// The number.
    pub metric: &'static Metric,
    /// The scenario's baseline, which text always names.
    pub baseline: String,
    /// The scheme with the best mean over the seeds; empty if no scheme has a value in every seed.
    pub best: String,
    /// Some scheme's runs were too short for a steady state of the class.
    pub too_short: bool,
    /// Schemes whose difference from it is less than what counts, or certainly none that does.
    pub as_good: Vec<String>,
    /// Schemes whose difference from it may be none, and is none of [`EQUAL`] or more.
    pub close: Vec<String>,
    /// Schemes whose difference from it may be none, or large: there are too few seeds.
    pub open: Vec<Apart>,
    /// The others, by their distance.
    pub apart: Vec<Apart>,
    /// Schemes without a value in some seed, as flows did not finish.
    pub unknown: Vec<String>,
}

/// If the interval of a difference contains none at all, and nothing of this part or more, there is "no difference of" it.
pub const EQUAL: f64 = 0.15;

/// What verdicts are about, and what counts in them.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Columns that the scenario lists; the usual questions if there are none.
    pub columns: Vec<Column>,
    /// Classes of the workloads.
    pub classes: Vec<String>,
    /// The scheme that is always named; the first one if there is none.
    pub baseline: Option<String>,
    /// Parts below this do not count.
    pub indifferent: Indifference,
}

/// A scheme that differs from the best, or may.
#[derive(Clone, Debug)]
pub struct Apart {
    /// The scheme.
    pub scheme: String,
    /// Mean of the differences.
    pub difference: f64,
    /// Its 95% confidence interval.
    pub interval: Interval,
    /// They are parts of the best's mean, which is not 0.
    pub is_relative: bool,
}

impl Verdict {
    /// What it is about.
    pub fn subject(&self) -> String {
        format!("{}{}", subject_heading(&self.class, self.metric), if self.too_short { TOO_SHORT } else { "" })
    }
}

/// A number of a class in words.
pub fn subject_heading(class: &str, metric: &Metric) -> String {
    let class = if class == ALL { String::new() } else { format!("{class} ") };
    format!("{class}{}", metric.heading)
}

impl Apart {
    /// The difference is below this part, or certainly none that is not.
    pub fn does_not_count(&self, least: f64) -> bool {
        let Interval(low, high) = self.interval;
        let is_open = self.interval.contains(0.0);
        self.is_relative && if is_open { low > -least && high < least } else { self.difference.abs() < least }
    }

    /// `+12% [8.1%, 16%]`, or from ten times on `×12 [9.1, 16]`.
    pub fn text(&self) -> String {
        let Interval(low, high) = self.interval;
        let bound = |of: f64| match () {
            () if !self.is_relative => number(of),
            () if self.is_multiple() => two_digits(of + 1.0),
            () => format!("{}%", two_digits(of * 100.0)),
        };
        format!("{} [{}, {}]", self.size(), bound(low), bound(high))
    }

    /// The same without the interval.
    fn size(&self) -> String {
        let sign = if self.difference > 0.0 { "+" } else { "" };
        match () {
            () if !self.is_relative => format!("{sign}{}", number(self.difference)),
            () if self.is_multiple() => format!("×{}", two_digits(self.difference + 1.0)),
            () => format!("{sign}{}%", two_digits(self.difference * 100.0)),
        }
    }

    fn is_multiple(&self) -> bool {
        self.difference >= 9.0
    }
}

/// A number with two digits that count: `0.12`, `1.2`, `12`, `120`.
fn two_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".into();
    }
    let rounded: f64 = format!("{number:.1e}").parse().unwrap_or(number);
    let digits = 1 - libm::floor(libm::log10(rounded.abs())) as i32;
    format!("{rounded:.*}", digits.max(0) as usize)
}

/// How the values of two are compared, seed by seed.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    by_quotient: bool,
    /// More is better.
    high: bool,
}

impl Pairs {
    /// For these values of a metric: in logarithms where it is a time or a ratio, and all are above zero.
    pub fn new<'a>(metric: &Metric, all: impl Iterator<Item = &'a [f64]>) -> Self {
        let mut values = all.flatten();
        let by_quotient = metric.is_logarithmic() && values.all(|value| *value > 0.0);
        Self { by_quotient, high: metric.better == Better::High }
    }

    fn on_scale(self, value: f64) -> f64 {
        if self.by_quotient { libm::log(value) } else { value }
    }

    fn mean(self, values: &[f64]) -> f64 {
        values.iter().map(|value| self.on_scale(*value)).sum::<f64>() / values.len() as f64
    }

    /// The mean, of times and ratios the geometric one.
    pub fn mean_of(self, values: &[f64]) -> f64 {
        if self.by_quotient { libm::exp(self.mean(values)) } else { self.mean(values) }
    }

    /// As [`Pairs::apart`], of values that have nothing to do with each other: by Welch's t, with as many degrees of freedom as the
    /// smaller of the two has, which is no narrower than his.
    pub fn apart_unpaired(self, name: impl Into<String>, values: &[f64], of_best: &[f64]) -> Option<Apart> {
        let scaled = |values: &[f64]| values.iter().map(|value| self.on_scale(*value)).collect::<Vec<_>>();
        let (difference, half, _) = welch(&scaled(values), &scaled(of_best))?;
        let (low, high) = (difference - half, difference + half);
        let base = self.mean(of_best);
        let unit = if base == 0.0 { 1.0 } else { base.abs() };
        let part = |of: f64| if self.by_quotient { libm::exp(of) - 1.0 } else { of / unit };
        let is_relative = self.by_quotient || base != 0.0;
        Some(Apart {
            scheme: name.into(),
            difference: part(difference),
            interval: Interval(part(low), part(high)),
            is_relative,
        })
    }

    /// The p-value that goes with it.
    pub fn p_value_unpaired(self, values: &[f64], of_best: &[f64]) -> Option<f64> {
        let scaled = |values: &[f64]| values.iter().map(|value| self.on_scale(*value)).collect::<Vec<_>>();
        welch(&scaled(values), &scaled(of_best)).map(|(_, _, p)| p)
    }

    /// The better one is less.
    pub fn order(self, a: &[f64], b: &[f64]) -> Ordering {
        let order = self.mean(a).total_cmp(&self.mean(b));
        if self.high { order.reverse() } else { order }
    }

    /// How far one is from the best; `None` of fewer than two seeds.
    pub fn apart(self, name: impl Into<String>, values: &[f64], of_best: &[f64]) -> Option<Apart> {
        let (mean, base) = (self.mean(values), self.mean(of_best));
        let pairs = values.iter().zip(of_best);
        let (difference, Interval(low, high)) = if self.by_quotient {
            let quotients: Vec<Option<f64>> = pairs.map(|(a, b)| Some(a / b)).collect();
            let Interval(low, high) = log_confidence(&quotients)?;
            (libm::exp(mean - base) - 1.0, Interval(low - 1.0, high - 1.0))
        } else {
            let differences: Vec<Option<f64>> = pairs.map(|(a, b)| Some(a - b)).collect();
            let Interval(low, high) = confidence(&differences)?;
            let unit = if base == 0.0 { 1.0 } else { base.abs() };
            ((mean - base) / unit, Interval(low / unit, high / unit))
        };
        let is_relative = self.by_quotient || base != 0.0;
        Some(Apart { scheme: name.into(), difference, interval: Interval(low, high), is_relative })
    }

    /// The p-value of no difference.
    pub fn p_value(self, values: &[f64], of_best: &[f64]) -> Option<f64> {
        let pairs = values.iter().zip(of_best);
        p_value(&pairs.map(|(a, b)| self.on_scale(*a) - self.on_scale(*b)).collect::<Vec<_>>())
    }
}

/// The numbers that the scenario's columns name, or else the 99th percentile of the slowdown of each workload, of its
/// requests' times and the rate of its long flows, as far as there are such.
pub fn subjects(rows: &[Row], terms: &Terms) -> Vec<(String, &'static Metric)> {
    let Terms { columns, classes: workloads, .. } = terms;
    let has = |class: &str, name: &str| rows.iter().any(|row| row.class == class && row.values.value(name).is_known());
    if !columns.is_empty() {
        let named = columns.iter().filter_map(|column| {
            let metric = metrics::find(&column.metric)?;
            (metric.better != Better::Neither).then(|| (column.class.clone(), metric))
        });
        return named.collect();
    }
    let classes: Vec<&str> = match &workloads[..] {
        [] | [_] => vec![ALL],
        several => several.iter().map(String::as_str).collect(),
    };
    const DEFAULT: [&Metric; 3] =
        [metrics::metric("slowdown.p99"), metrics::metric("rct_us.p99"), metrics::metric("long_flow_gbps")];
    let both = classes.iter().flat_map(|class| DEFAULT.map(|metric| (*class, metric)));
    both.filter(|(class, metric)| has(class, metric.name)).map(|(class, metric)| (class.to_owned(), metric)).collect()
}

/// The verdicts of each grid point with several schemes.
pub fn verdicts(rows: &[Row], terms: &Terms) -> Vec<Verdicts> {
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for row in rows {
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    let subjects = subjects(rows, terms);
    let of_point = |grid: &Map<String, Value>| {
        let here: Vec<&Row> = rows.iter().filter(|row| row.grid == *grid).collect();
        let (schemes, seeds) = compared(&here);
        if schemes.len() < 2 {
            return None;
        }
        let of = |(class, metric): &(String, &'static Metric)| verdict(&here, terms, class, metric);
        let verdicts = subjects.iter().filter_map(of).collect();
        Some(Verdicts { grid: grid.clone(), seeds: seeds.len(), verdicts })
    };
    points.into_iter().filter_map(of_point).collect()
}

/// The schemes of these rows, and the seeds that all of them have.
pub fn compared<'a>(rows: &[&'a Row]) -> (Vec<&'a str>, BTreeSet<u64>) {
    let mut schemes: Vec<&str> = Vec::new();
    for row in rows {
        if !schemes.contains(&row.scheme.as_str()) {
            schemes.push(&row.scheme);
        }
    }
    let seeds_of = |scheme: &&str| -> BTreeSet<u64> {
        let own = rows.iter().filter(|row| row.scheme == *scheme);
        own.filter_map(|row| if let Seed::One(seed) = row.seed { Some(seed) } else { None }).collect()
    };
    let seeds = schemes.iter().map(seeds_of).reduce(|a, b| &a & &b).unwrap_or_default();
    (schemes, seeds)
}

/// The order of the schemes of one grid point, whose rows these are. `None` with too few seeds, and of what is neither
/// good nor bad.
pub fn verdict(rows: &[&Row], terms: &Terms, class: &str, metric: &'static Metric) -> Option<Verdict> {
    let (schemes, seeds) = compared(rows);
    if seeds.len() < LEAST_SEEDS || !is_judged(terms, class, metric) {
        return None;
    }
    ordered(rows, terms, &schemes, &seeds, (class, metric))
}

/// Whether one of two values is better: not of what is neither good nor bad, nor of what the flows of several workloads have
/// together, which depends on how many there are of each.
pub fn is_judged(terms: &Terms, class: &str, metric: &Metric) -> bool {
    let of_all_flows = ["fct_us.", "slowdown.", "rct_us.", "goodput_gbps"];
    let is_mixed = class == ALL && terms.classes.len() > 1 && of_all_flows.iter().any(|of| metric.name.starts_with(of));
    !is_mixed && metric.better != Better::Neither
}

fn ordered(
    rows: &[&Row],
    terms: &Terms,
    schemes: &[&str],
    seeds: &BTreeSet<u64>,
    (class, metric): (&str, &'static Metric),
) -> Option<Verdict> {
    let values = |scheme: &str| -> Option<Vec<f64>> {
        let of = |seed: &u64| {
            let seed = Seed::One(*seed);
            rows.iter().find(|row| row.scheme == scheme && row.class == class && row.seed == seed)?.number(metric.name)
        };
        seeds.iter().map(of).collect()
    };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for scheme in schemes {
        match values(scheme) {
            Some(values) => known.push((*scheme, values)),
            None => unknown.push((*scheme).to_owned()),
        }
    }
    let pairs = Pairs::new(metric, known.iter().map(|(_, all): &(&str, Vec<f64>)| &all[..]));
    let mut own = rows.iter().filter(|row| row.is_pooled() && row.class == class);
    let too_short = metric.has_bound() && own.any(|row| row.is_too_short());
    let nothing = Verdict {
        class: class.to_owned(),
        metric,
        baseline: terms.baseline.as_deref().or(schemes.first().copied()).unwrap_or_default().to_owned(),
        best: String::new(),
        too_short,
        as_good: Vec::new(),
        close: Vec::new(),
        open: Vec::new(),
        apart: Vec::new(),
        unknown,
    };
    let Some((best, of_best)) = known.iter().min_by(|a, b| pairs.order(&a.1, &b.1)).cloned() else {
        return Some(nothing);
    };
    let (mut as_good, mut close, mut open, mut apart) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let least = terms.indifferent.part();
    for (scheme, values) in known.iter().filter(|(scheme, _)| *scheme != best) {
        let one = pairs.apart(*scheme, values, &of_best)?;
        let Interval(low, high) = one.interval;
        let is_equal = low == 0.0 && high == 0.0 || one.is_relative && low > 1.0 / (1.0 + EQUAL) - 1.0 && high < EQUAL;
        match one.interval.contains(0.0) {
            _ if one.does_not_count(least) => as_good.push(one.scheme),
            true if is_equal => close.push(one.scheme),
            true => open.push(one),
            false => apart.push(one),
        }
    }
    for list in [&mut open, &mut apart] {
        list.sort_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs()));
    }
    Some(Verdict { best: best.to_owned(), as_good, close, open, apart, ..nothing })
}

/// How many schemes a line of text names of each kind, beside the baseline and the worst.
const NAMED: usize = 6;

/// The verdicts for a terminal of so many columns; nothing where there are none.
pub fn text(all: &[Verdicts], width: usize) -> String {
    let mut text = String::new();
    if all.is_empty() {
        return text;
    }
    let least = all.iter().map(|point| point.seeds).min().unwrap_or(0);
    if all.iter().all(|point| point.seeds < LEAST_SEEDS) {
        let _ = writeln!(text, "verdict: too few seeds ({least}; at least {LEAST_SEEDS} are needed)");
        return text;
    }
    if all.iter().all(|point| point.verdicts.is_empty()) {
        return text;
    }
    text.push_str("verdict, by differences seed by seed, with 95% intervals\n");
    for point in all.iter().filter(|point| !point.verdicts.is_empty() || point.seeds < LEAST_SEEDS) {
        let few = if point.seeds < LEAST_SEEDS { format!("too few seeds ({})", point.seeds) } else { String::new() };
        let at = grid_point(&point.grid);
        let between = if at.is_empty() || few.is_empty() { "" } else { ": " };
        if !(at.is_empty() && few.is_empty()) {
            paragraph(&mut text, 2, &format!("{at}{between}{few}"), width);
        }
        let indent = if at.is_empty() { 2 } else { 4 };
        for verdict in &point.verdicts {
            paragraph(&mut text, indent, &verdict.sentence(NAMED), width);
        }
    }
    text
}

/// Of more points than these the table's text has a line for each number, and not the verdict of each.
const POINTS: usize = 2;

/// The same in few lines where there are many grid points: for each number which scheme is best at how many.
pub fn brief(all: &[Verdicts], width: usize) -> String {
    let judged: Vec<&Verdicts> = all.iter().filter(|point| !point.verdicts.is_empty()).collect();
    if judged.len() <= POINTS {
        return text(all, width);
    }
    let mut text = String::new();
    let heading = format!(
        "verdict at each of {} grid points, by differences seed by seed; in full in the report, and with --wide",
        judged.len()
    );
    paragraph(&mut text, 0, &heading, width);
    let few = all.iter().filter(|point| point.seeds < LEAST_SEEDS).count();
    if few > 0 {
        paragraph(&mut text, 2, &format!("too few seeds at {few} more"), width);
    }
    let mut subjects: Vec<String> = Vec::new();
    for verdict in judged.iter().flat_map(|point| &point.verdicts) {
        let subject = subject_heading(&verdict.class, verdict.metric);
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    for subject in subjects {
        let of_subject = |verdict: &&Verdict| subject_heading(&verdict.class, verdict.metric) == subject;
        let here: Vec<(&Map<String, Value>, &Verdict)> =
            judged.iter().filter_map(|point| Some((&point.grid, point.verdicts.iter().find(of_subject)?))).collect();
        let too_short = if here.iter().any(|(_, verdict)| verdict.too_short) { TOO_SHORT } else { "" };
        let said = best_at(&here).into_iter().chain(named_at(&here)).collect::<Vec<_>>().join("; ");
        paragraph(&mut text, 2, &format!("{subject}{too_short}: {said}"), width);
    }
    text
}

/// `a at 5 points, told from all others at 2`, `b at load = 0.2`.
fn best_at(here: &[(&Map<String, Value>, &Verdict)]) -> Vec<String> {
    let mut schemes: Vec<(&str, Vec<_>)> = Vec::new();
    for one in here {
        match schemes.iter_mut().find(|(scheme, _)| *scheme == one.1.best) {
            Some((_, wins)) => wins.push(one),
            None => schemes.push((&one.1.best, vec![one])),
        }
    }
    schemes.sort_by_key(|(scheme, wins)| (scheme.is_empty(), std::cmp::Reverse(wins.len())));
    let said = schemes.into_iter().map(|(scheme, wins)| {
        let alone = wins.iter().filter(|(_, verdict)| verdict.is_alone()).count();
        let at = match &wins[..] {
            _ if wins.len() == here.len() => format!("all {}", here.len()),
            [(grid, _)] => grid_point(grid),
            several => format!("{} points", several.len()),
        };
        match alone {
            _ if scheme.is_empty() => format!("no scheme has a value in every seed at {at}"),
            0 => format!("{scheme} at {at}, told from all others at none"),
            _ if alone == wins.len() => format!("{scheme} at {at}, told from all others"),
            _ => format!("{scheme} at {at}, told from all others at {alone}"),
        }
    });
    said.collect()
}

/// By how much the baseline is worse than the best, and the scheme that is furthest from it, where they are told from it.
fn named_at(here: &[(&Map<String, Value>, &Verdict)]) -> Vec<String> {
    let size = |one: &&Apart| one.difference.abs();
    let apart = || here.iter().flat_map(|(_, verdict)| &verdict.apart);
    let worst = apart().max_by(|a, b| size(a).total_cmp(&size(b))).map(|one| one.scheme.as_str());
    let baseline = here.first().map(|(_, verdict)| verdict.baseline.as_str());
    let mut named: Vec<&str> = baseline.into_iter().chain(worst).collect();
    named.dedup();
    let said = named.into_iter().filter_map(|scheme| {
        let own = || apart().filter(|one| one.scheme == scheme);
        let least = own().min_by(|a, b| size(a).total_cmp(&size(b)))?;
        let most = own().max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let (least, most) = (least.size(), most.size());
        let range = if least == most { least } else { format!("{least} to {most}") };
        Some(format!("{scheme} is {range}, at {}", own().count()))
    });
    said.collect()
}

impl Verdict {
    /// The best differs from each other one.
    fn is_alone(&self) -> bool {
        self.as_good.is_empty() && self.close.is_empty() && self.open.is_empty() && self.unknown.is_empty()
    }

    /// All that is said, with at most so many names of each kind.
    pub fn sentence(&self, most: usize) -> String {
        let best = (!self.best.is_empty()).then(|| self.best.clone());
        let said: Vec<String> = best.into_iter().chain(self.others(most)).collect();
        format!("{}: {}", self.subject(), said.join("; "))
    }

    /// What is said about the other schemes, each kind in a line with at most so many names; the baseline and the scheme
    /// that is furthest from the best are always named.
    pub fn others(&self, most: usize) -> Vec<String> {
        let worst = self.apart.last().map(|last| last.scheme.as_str());
        let list = |names: Vec<(&str, String)>| {
            let all = names.len();
            let kept = names.into_iter().enumerate().filter(|(place, (scheme, _))| {
                *place < most || *scheme == self.baseline || Some(*scheme) == worst || all == most + 1
            });
            let kept: Vec<String> = kept.map(|(_, (_, text))| text).collect();
            let more = all - kept.len();
            if more == 0 { kept.join(", ") } else { format!("{}, and {more} more", kept.join(", ")) }
        };
        let mut lines = Vec::new();
        let named = |all: &[Apart], is: &str| {
            list(all.iter().map(|one| (one.scheme.as_str(), format!("{}{is} {}", one.scheme, one.text()))).collect())
        };
        let plain = |all: &[String]| list(all.iter().map(|name| (name.as_str(), name.clone())).collect());
        if !self.as_good.is_empty() {
            lines.push(format!("as good: {}", plain(&self.as_good)));
        }
        if !self.close.is_empty() {
            lines.push(format!("no difference of {:.0}% from {}", EQUAL * 100.0, plain(&self.close)));
        }
        if !self.apart.is_empty() {
            lines.push(named(&self.apart, " is"));
        }
        if !self.open.is_empty() {
            lines.push(format!("too few seeds to tell from {}", named(&self.open, "")));
        }
        if !self.unknown.is_empty() {
            lines.push(format!("not known, as flows did not finish: {}", plain(&self.unknown)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{claims::tests::row, compact::parse_column};

    fn rows(schemes: &[(&str, &[f64])]) -> Vec<Row> {
        let of = |(scheme, values): &(&str, &[f64])| -> Vec<Row> {
            values.iter().zip(1..).map(|(value, seed)| row(scheme, 0.2, Some(seed), *value)).collect()
        };
        schemes.iter().flat_map(of).collect()
    }

    fn about(schemes: &[(&str, &[f64])]) -> Vec<Verdicts> {
        about_parts(schemes, Indifference::default())
    }

    fn about_parts(schemes: &[(&str, &[f64])], indifferent: Indifference) -> Vec<Verdicts> {
        let columns = vec![parse_column("fct_us.p99").expect("a column")];
        verdicts(&rows(schemes), &Terms { columns, indifferent, ..Terms::default() })
    }

    #[test]
    fn of_many_points_it_is_said_who_is_best_where() {
        let point = |load: f64, a: [f64; 3]| {
            let of = move |scheme: &'static str, values: [f64; 3]| {
                values.into_iter().zip(1..).map(move |(value, seed)| row(scheme, load, Some(seed), value))
            };
            of("a", a).chain(of("b", [100.0, 201.0, 400.0])).collect::<Vec<_>>()
        };
        let columns = vec![parse_column("fct_us.p99").expect("a column")];
        let terms = Terms { columns, ..Terms::default() };
        // Far better, better within the noise, worse, and not known in a seed.
        let points = [
            point(0.2, [50.0, 100.0, 200.0]),
            point(0.4, [60.0, 190.0, 395.0]),
            point(0.6, [200.0, 402.0, 801.0]),
            point(0.8, [50.0, 100.0, f64::INFINITY]),
        ];
        let of = |points: &[Vec<Row>]| verdicts(&points.concat(), &terms);
        assert_eq!(brief(&of(&points[..2]), 80), text(&of(&points[..2]), 80));
        let expected = "verdict at each of 3 grid points, by differences seed by seed; in full in the\n  report, and with --wide\n  \
                        FCT p99: a at 2 points, told from all others at 1; b at load = 0.6, told\n    from all others; a is +100%, at 1; b is +100%, at 1\n";
        assert_eq!(brief(&of(&points[..3]), 80), expected);
        let said = brief(&of(&points[1..]), 200);
        assert!(said.contains("b at 2 points, told from all others at 1; a at load = 0.4"), "{said}");
    }

    #[test]
    fn differences_are_paired_by_seed() {
        // Seeds differ by far more than the schemes do: unpaired, nothing could be told.
        let schemes: [(&str, &[f64]); 4] = [
            ("b", &[103.0, 205.0, 402.0, 304.0]),
            ("a", &[100.0, 200.0, 400.0, 300.0]),
            ("c", &[95.0, 212.0, 400.0, 306.0]),
            ("d", &[150.0, 250.0, 450.0, 350.0]),
        ];
        let all = about_parts(&schemes, serde_json::from_str("\"0%\"").expect("a part"));
        let [verdict] = &all[0].verdicts[..] else { panic!("{all:?}") };
        assert_eq!((verdict.best.as_str(), verdict.close.as_slice()), ("a", &["c".to_owned()][..]));
        let [b, d] = &verdict.apart[..] else { panic!("{verdict:?}") };
        // Quotients 1.03, 1.025, 1.005, 1.01333: their logarithms have the mean 0.018121 and the deviation 0.011110, and t of
        // three degrees is 3.182446.
        let half = 3.182_446 * 0.011_109_6 / 2.0;
        assert!((b.difference - (libm::exp(0.018_121_0) - 1.0)).abs() < 1e-5, "{b:?}");
        assert!((b.interval.0 - (libm::exp(0.018_121_0 - half) - 1.0)).abs() < 1e-5, "{b:?}");
        assert!(d.interval.0 > 0.0, "{d:?}");
        let expected = "verdict, by differences seed by seed, with 95% intervals\n  load = 0.2\n    FCT p99: a; no \
                        difference of 15% from c; b is +1.8% [0.044%, 3.6%], d is\n      +25% [2.2%, 54%]\n";
        assert_eq!(text(&all, 80), expected);
        // By default a difference of 1.8% does not count.
        let all = about(&schemes);
        assert_eq!((&all[0].verdicts[0].as_good[..], all[0].verdicts[0].apart.len()), (&["b".to_owned()][..], 1));
    }

    #[test]
    fn an_interval_on_both_sides_is_no_equality() {
        // 1.2 against 193 on average, and 34 against 1,919 ± 2,945: too few seeds.
        let all = about(&[("a", &[1.0, 1.2, 1.4]), ("b", &[2.0, 570.0, 1.1]), ("c", &[1.02, 1.25, 1.39])]);
        let [verdict] = &all[0].verdicts[..] else { panic!("{all:?}") };
        assert_eq!((verdict.best.as_str(), verdict.close.as_slice()), ("a", &["c".to_owned()][..]));
        assert_eq!((verdict.open.len(), verdict.apart.len()), (1, 0), "{verdict:?}");
        let lines = verdict.others(6);
        assert!(lines[1].starts_with("too few seeds to tell from b "), "{lines:?}");
    }

    #[test]
    fn the_baseline_and_the_worst_are_always_named_and_little_does_not_count() {
        let seeds = |value: f64| [value, 1.01 * value, 1.02 * value];
        let all = about(&[
            ("first", &seeds(9.0)),
            ("a little", &[1.002, 1.011, 1.022]),
            ("a", &seeds(1.0)),
            ("b", &seeds(2.0)),
            ("c", &seeds(3.0)),
            ("d", &seeds(4.0)),
            ("worst", &seeds(20.0)),
        ]);
        let [verdict] = &all[0].verdicts[..] else { panic!("{all:?}") };
        let [good, line] = &verdict.others(2)[..] else { panic!("{verdict:?}") };
        assert_eq!(good, "as good: a little");
        for named in ["b is", "c is", "first is", "worst is", ", and 1 more"] {
            assert!(line.contains(named), "{line}");
        }
        let [_, line] = &verdict.others(4)[..] else { panic!("{verdict:?}") };
        assert!(!line.contains("more"), "one more is named: {line}");
    }

    #[test]
    fn two_digits_count() {
        let texts = [0.0, 0.0123, 0.96, 1.24, 9.97, 12.4, 334.0, -45.6].map(two_digits);
        assert_eq!(texts, ["0", "0.012", "0.96", "1.2", "10", "12", "330", "-46"]);
    }

    #[test]
    fn times_of_several_workloads_together_are_not_judged() {
        let rows = rows(&[("a", &[1.0, 1.1, 1.2]), ("b", &[2.0, 2.1, 2.2])]);
        let of = |classes: &[&str]| {
            let columns = vec![parse_column("fct_us.p99").expect("a column")];
            let classes = classes.iter().map(|class| (*class).to_owned()).collect();
            verdicts(&rows, &Terms { columns, classes, ..Terms::default() })
        };
        assert_eq!((of(&["web"])[0].verdicts.len(), of(&["web", "incast"])[0].verdicts.len()), (1, 0));
        assert_eq!(text(&of(&["web", "incast"]), 80), "", "no heading of nothing");
    }

    #[test]
    fn two_seeds_are_too_few() {
        let all = about(&[("a", &[1.0, 2.0]), ("b", &[10.0, 20.0])]);
        assert_eq!((all[0].seeds, all[0].verdicts.len()), (2, 0));
        assert_eq!(text(&all, 80), "verdict: too few seeds (2; at least 3 are needed)\n");
        // Only seeds that all have count.
        let all = about(&[("a", &[1.0, 2.0, 3.0]), ("b", &[10.0, 20.0])]);
        assert_eq!(all[0].seeds, 2);
        assert_eq!(text(&about(&[("a", &[1.0, 2.0, 3.0])]), 80), "", "nothing to compare with");
    }

    #[test]
    fn more_is_better_for_rates_and_what_is_unknown_is_not_ranked() {
        let mut rows = rows(&[("a", &[1.0; 3]), ("b", &[1.0; 3]), ("c", &[1.0; 3])]);
        for (row, value) in rows.iter_mut().zip([5.0, 5.0, 5.0, 4.0, 4.5, 4.0]) {
            row.values.set("goodput_gbps", Some(value).into());
        }
        let columns = ["goodput_gbps", "drops"].map(|name| parse_column(name).expect("a column")).to_vec();
        let all = verdicts(&rows, &Terms { columns, ..Terms::default() });
        let [verdict] = &all[0].verdicts[..] else { panic!("counters are neither good nor bad: {all:?}") };
        assert_eq!((verdict.best.as_str(), verdict.unknown.as_slice()), ("a", &["c".to_owned()][..]));
        assert_eq!(verdict.apart.len(), 1);
        assert!(verdict.apart[0].text().starts_with("-17% [-31%"), "{}", verdict.apart[0].text());
        let lines = verdict.others(6);
        assert!(lines[1].contains("flows did not finish: c"), "{lines:?}");
    }
}
