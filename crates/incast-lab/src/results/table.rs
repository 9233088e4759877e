//! The comparison on the terminal: the verdict, then a small table for each question, or one with every number.

use super::{
    claims::{Judgement, Status},
    compact::{self, TOO_SHORT},
    comparison::{self, Counters, Line, Shows, requests_of},
    row::{ALL, Row},
    settings, steady,
    verdict::{self, Terms},
};
use crate::{
    metrics::{self, Basis, Better, Metric, Scope, Unit, metric, ns_per_packet_hop, statistics::Interval},
    plain::{self, Plain, paragraph},
    scenario::Column,
    text::{SPREAD, bytes, grid_point, number, rounded, spread},
};
use serde_json::{Map, Value};
use std::fmt::Write;

/// What stands below the table.
#[derive(Clone, Debug, Default)]
pub struct Footer {
    /// For each scheme, what it changes against the scenario.
    pub schemes: Vec<(String, Vec<String>)>,
    /// What the workloads come to.
    pub workloads: Vec<String>,
    /// Some run has flow control by priority: its pauses and queues are what it is about.
    pub has_pfc: bool,
    /// Published numbers and what became of them.
    pub claims: Vec<Judgement>,
    /// Published numbers of schemes that were not run.
    pub not_run: usize,
    /// What verdicts are about.
    pub terms: Terms,
}

/// How much of a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Small tables in so many columns of a terminal.
    Fitting(usize),
    /// Every number, in one table for each grid point, as wide as it is.
    Wide,
}

impl Extent {
    fn width(self) -> usize {
        match self {
            Self::Fitting(width) => width,
            Self::Wide => usize::MAX,
        }
    }
}

/// The whole text.
pub fn render(title: &str, rows: &[Row], footer: &Footer, extent: Extent) -> String {
    let pooled: Vec<&Row> = rows.iter().filter(|row| row.is_pooled()).collect();
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for row in &pooled {
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    let width = extent.width();
    let mut text = String::new();
    paragraph(&mut text, 0, title, width);
    let (settings, verdicts) = (settings::settings(rows, &footer.terms), verdict::verdicts(rows, &footer.terms));
    match extent {
        Extent::Fitting(_) => {
            text.push_str(&settings::brief(&settings, width));
            text.push_str(&verdict::brief(&verdicts, width));
            let has_best = questions(&mut text, rows, &points, footer, width);
            legend(&mut text, &pooled, has_best, width);
        }
        Extent::Wide => {
            text.push_str(&settings::text(&settings, width));
            text.push_str(&verdict::text(&verdicts, width));
            every_number(&mut text, &pooled, &points, footer);
            legend(&mut text, &pooled, false, width);
        }
    }
    claims(&mut text, footer, extent);
    footer_text(&mut text, footer, extent);
    cost(&mut text, &pooled);
    text
}

/// A number of a class, and the heading of its column.
struct Asked {
    heading: String,
    class: String,
    metric: &'static Metric,
}

/// The columns of one small table.
struct Question {
    title: String,
    columns: Vec<Asked>,
}

/// What is asked of times and slowdowns, of flows and of requests.
const USUAL: [(&Metric, Option<&Metric>); 4] = [
    (metric("fct_us.p99"), Some(metric("rct_us.p99"))),
    (metric("fct_us.p50"), Some(metric("rct_us.p50"))),
    (metric("slowdown.p99"), None),
    (metric("long_flow_gbps"), None),
];
/// What is asked of the fabric and of all flows, as far as some scheme has it.
const COUNTED: [&Metric; 8] = [
    metric("completed"),
    metric("drops"),
    metric("lost"),
    metric("trims"),
    metric("retransmitted_bytes"),
    metric("timeouts"),
    metric("marks.edge"),
    metric("marks.fabric"),
];

fn usual_questions(pooled: &[&Row], footer: &Footer) -> Vec<Question> {
    let mut classes: Vec<&str> = Vec::new();
    for row in pooled.iter().filter(|row| row.class != ALL) {
        if !classes.contains(&row.class.as_str()) {
            classes.push(&row.class);
        }
    }
    if classes.len() < 2 {
        classes = vec![ALL];
    }
    let is_known = |class: &str, metric: &Metric| {
        pooled.iter().any(|row| row.class == class && row.values.value(metric.name).is_known())
    };
    let asked = |class: &str, metric: &'static Metric, heading: String| {
        is_known(class, metric).then(|| Asked { heading, class: class.to_owned(), metric })
    };
    let mut questions = Vec::new();
    for (flows, requests) in USUAL {
        let of = |class: &&str| {
            let own = asked(class, flows, (*class).to_owned());
            let of_requests = requests.and_then(|of| asked(class, of, requests_of(class, &footer.terms.classes)));
            [own, of_requests]
        };
        let columns: Vec<Asked> = classes.iter().flat_map(of).flatten().collect();
        questions.push(Question { title: flows.heading_with_unit(), columns });
    }
    let counted = COUNTED.into_iter().chain(extras(pooled, footer)).filter(|metric| {
        let mut of_all = pooled.iter().filter(|row| row.class == ALL);
        of_all.any(|row| row.number(metric.name).is_some_and(|number| number > 0.0)) || metric.name == "drops"
    });
    let columns = counted.map(|metric| Asked { heading: metric.heading_with_unit(), class: ALL.to_owned(), metric });
    questions.push(Question { title: "of all flows, in a run".into(), columns: columns.collect() });
    questions
}

/// The columns of a scenario: those of one number together, and counts in a table of their own.
fn own_questions(columns: &[Column]) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    let mut counted = Vec::new();
    for column in columns {
        let Some(metric) = metrics::find(&column.metric) else { continue };
        if metric.better == Better::Neither {
            let class = if metric.scope == Scope::Class && column.class != ALL { &*column.class } else { "" };
            let heading = format!("{class} {}", metric.heading_with_unit());
            counted.push(Asked { heading: heading.trim().into(), class: column.class.clone(), metric });
            continue;
        }
        let asked = Asked { heading: column.class.clone(), class: column.class.clone(), metric };
        let title = metric.heading_with_unit();
        match questions.iter_mut().find(|question| question.title == title) {
            Some(question) => question.columns.push(asked),
            None => questions.push(Question { title, columns: vec![asked] }),
        }
    }
    questions.push(Question { title: "in a run".into(), columns: counted });
    questions
}

/// A table for each question: a column for each class, a line for each scheme at each grid point. Whether some number is
/// marked as the best.
fn questions(text: &mut String, rows: &[Row], points: &[&Map<String, Value>], footer: &Footer, width: usize) -> bool {
    let mut has_best = false;
    let pooled: Vec<&Row> = rows.iter().filter(|row| row.is_pooled()).collect();
    let questions = if footer.terms.columns.is_empty() {
        usual_questions(&pooled, footer)
    } else {
        own_questions(&compact::completed(&footer.terms.columns, &pooled))
    };
    for question in questions.iter().filter(|question| !question.columns.is_empty()) {
        let mut lines = Vec::new();
        for point in points {
            if !point.is_empty() {
                lines.push(plain::Line::Heading(grid_point(point)));
            }
            let here: Vec<&Row> = rows.iter().filter(|row| row.grid == **point).collect();
            lines.extend(lines_of(question, &here, &footer.terms));
        }
        has_best |= lines.iter().any(|line| match line {
            plain::Line::Cells(cells) => cells[1..].iter().any(|cell| cell.contains(BEST)),
            plain::Line::Heading(_) => false,
        });
        align_marks(&mut lines);
        let header = ["scheme".to_owned()].into_iter();
        let header = header.chain(question.columns.iter().map(|asked| asked.heading.clone())).collect();
        let _ = writeln!(text, "\n{}", question.title);
        text.push_str(&Plain { header, lines }.draw(width));
    }
    has_best
}

/// The lines of a grid point, whose rows these are.
fn lines_of(question: &Question, rows: &[&Row], terms: &Terms) -> Vec<plain::Line> {
    let mut schemes: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.is_pooled()) {
        if !schemes.contains(&row.scheme.as_str()) {
            schemes.push(&row.scheme);
        }
    }
    let best: Vec<Vec<String>> = question.columns.iter().map(|asked| best(asked, rows, terms)).collect();
    let line = |scheme: &&str| {
        let cells = question.columns.iter().zip(&best).map(|(asked, best)| {
            let row = rows.iter().find(|row| row.is_pooled() && row.scheme == **scheme && row.class == asked.class);
            let Some(row) = row else { return String::new() };
            let star = if best.iter().any(|name| name == scheme) { BEST } else { "" };
            let short = if asked.metric.has_bound() && row.is_too_short() { TOO_SHORT } else { "" };
            format!("{}{star}{short}", compact::cell(row, asked.metric.name))
        });
        plain::Line::Cells([(*scheme).to_owned()].into_iter().chain(cells).collect())
    };
    schemes.iter().map(line).collect()
}

const BEST: &str = "*";

/// Marks stand beside numbers, not below their last digits.
fn align_marks(lines: &mut [plain::Line]) {
    let marks = |cell: &str| cell.chars().rev().take_while(|mark| "*!".contains(*mark)).count();
    let columns = lines.iter().map(|line| if let plain::Line::Cells(cells) = line { cells.len() } else { 0 });
    for column in 1..columns.max().unwrap_or(0) {
        let cells = |line: &plain::Line| match line {
            plain::Line::Cells(cells) => marks(&cells[column]),
            plain::Line::Heading(_) => 0,
        };
        let most = lines.iter().map(cells).max().unwrap_or(0);
        for line in lines.iter_mut() {
            if let plain::Line::Cells(cells) = line {
                let missing = most - marks(&cells[column]);
                cells[column].push_str(&" ".repeat(missing));
            }
        }
    }
}

/// The best scheme, and those that the seeds do not show to be worse. None with too few seeds, of what is neither good nor
/// bad, or if there is one scheme.
fn best(asked: &Asked, rows: &[&Row], terms: &Terms) -> Vec<String> {
    let Some(found) = verdict::verdict(rows, terms, &asked.class, asked.metric) else { return Vec::new() };
    let open = found.open.into_iter().map(|apart| apart.scheme);
    let best = Some(found.best).filter(|best| !best.is_empty());
    let all: Vec<String> = best.into_iter().chain(found.as_good).chain(found.close).chain(open).collect();
    if all.len() + found.apart.len() > 1 { all } else { Vec::new() }
}

/// What marks mean, and how long runs should have been.
fn legend(text: &mut String, pooled: &[&Row], has_best: bool, width: usize) {
    let mut parts: Vec<&str> = Vec::new();
    if has_best {
        parts.push("* best, or not shown to be worse");
    }
    if pooled.iter().any(|row| row.runs > 1) {
        parts.push(SPREAD);
    }
    if pooled.iter().any(|row| row.completed() < row.flows()) {
        parts.push("≥ lower bound, as not every flow finished");
    }
    let notes = steady::notes(pooled);
    if !notes.is_empty() {
        parts.push("! run too short for a steady state");
    }
    if !parts.is_empty() {
        text.push('\n');
        paragraph(text, 0, &parts.join("; "), width);
    }
    for (whose, why) in notes {
        paragraph(text, 2, &format!("{whose}: {why}"), width);
    }
}

/// One table for each grid point, with a line for each class of a scheme and every number of the usual ones.
fn every_number(text: &mut String, pooled: &[&Row], points: &[&Map<String, Value>], footer: &Footer) {
    let mut has_mixed = false;
    for point in points {
        let _ = writeln!(text, "\n{}", grid_point(point));
        let here: Vec<&Row> = pooled.iter().copied().filter(|row| row.grid == **point).collect();
        let lines = comparison::lines(&here, &footer.terms.classes);
        has_mixed |= lines.iter().any(|line| line.shows == Shows::Mixed);
        text.push_str(&table_of(&lines, footer).draw(usize::MAX));
    }
    if has_mixed {
        text.push_str("mixed: sizes of the classes differ too much for a common percentile; see their rows.\n");
    }
}

/// Columns of numbers that matter in some scenarios only.
const EXTRAS: [&Metric; 4] =
    [metric("assigned_gbps.min"), metric("measured_gbps.min"), metric("max_queue_bytes"), metric("pfc_pauses")];

/// The columns that these rows need: rates where they were sampled; queues and pauses with flow control, or where a
/// claim is about them.
fn extras(rows: &[&Row], footer: &Footer) -> Vec<&'static Metric> {
    let claimed = |metric: &Metric| footer.claims.iter().any(|claim| claim.metric == metric.name);
    let wanted = |metric: &&Metric| match metric.basis {
        Basis::Run => footer.has_pfc || claimed(metric),
        _ => rows.iter().any(|row| row.number(metric.name).is_some()),
    };
    EXTRAS.into_iter().filter(wanted).collect()
}

fn table_of(lines: &[Line<'_>], footer: &Footer) -> Plain {
    let has_classes = lines.iter().any(|line| line.class != ALL);
    let rows: Vec<&Row> = lines.iter().map(|line| line.row).collect();
    let statistics = comparison::statistics(rows.iter().copied());
    let counters = Counters::of(rows.iter().copied());
    let extras = extras(&rows, footer);
    let mut header = vec!["scheme".to_owned()];
    if has_classes {
        header.push("class".to_owned());
    }
    header.push("flows".to_owned());
    header.extend(statistics.iter().map(|(metric, _)| metric.heading_with_unit()));
    header.extend(counters.headings().into_iter().map(str::to_owned));
    header.extend(extras.iter().map(|metric| metric.heading_with_unit()));
    let of = |line: &Line<'_>| {
        let row = line.row;
        let mut cells = vec![row.scheme.clone()];
        if has_classes {
            cells.push(line.class.clone());
        }
        cells.push(line.count(|count| count.to_string()));
        cells.extend(statistics.iter().map(|(metric, interval)| measured(line, metric, *interval)));
        cells.extend(counters.cells(line, |count| count.to_string()));
        let extra = |metric| if line.shows == Shows::Requests { String::new() } else { extra(row, metric) };
        cells.extend(extras.iter().map(|metric| extra(metric)));
        plain::Line::Cells(cells)
    };
    Plain { header, lines: lines.iter().map(of).collect() }
}

/// A value, or its lower bound, perhaps with its confidence interval.
fn measured(line: &Line<'_>, column: &'static Metric, with_interval: bool) -> String {
    let Some(metric) = line.metric(column) else { return line.without_metric().to_owned() };
    let row = line.row;
    let interval = row.interval(metric.name).filter(|_| with_interval);
    let short = if metric.has_bound() && row.is_too_short() { TOO_SHORT } else { "" };
    match (row.number(metric.name), row.bound(metric.name), interval) {
        (Some(value), _, Some(Interval(low, high))) => {
            format!("{} {}{short}", number(value), spread(value, (low, high), number))
        }
        (Some(value), _, None) => format!("{}{short}", number(value)),
        (None, Some(bound), _) => format!("≥{}{short}", number(bound)),
        // A rate has no bound: the class has no such flows.
        (None, None, _) if metric.unit == Unit::Gbps => String::new(),
        (None, None, _) => "–".to_owned(),
    }
}

fn extra(row: &Row, metric: &Metric) -> String {
    match row.count(metric.name) {
        Some(value) if metric.unit == Unit::Bytes => bytes(value),
        Some(value) => value.to_string(),
        None => row.number(metric.name).map_or_else(String::new, number),
    }
}

/// How many claims have which status, then those with a decided one; all of them in a wide text.
fn claims(text: &mut String, footer: &Footer, extent: Extent) {
    let claims = &footer.claims;
    if claims.is_empty() && footer.not_run == 0 {
        return;
    }
    const ORDER: [Status; 4] = [Status::NotReproduced, Status::SameDirection, Status::Reproduced, Status::Inconclusive];
    let of = |status: Status| claims.iter().filter(move |claim| claim.status == status);
    let counts: Vec<String> = ORDER
        .into_iter()
        .rev()
        .map(|status| (of(status).count(), status))
        .filter(|(count, _)| *count > 0)
        .map(|(count, status)| format!("{count} {status}"))
        .chain((footer.not_run > 0).then(|| format!("{} of schemes that were not run", footer.not_run)))
        .collect();
    text.push('\n');
    paragraph(text, 0, &format!("published numbers: {}", counts.join(", ")), extent.width());
    let is_wide = extent == Extent::Wide;
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for claim in claims {
        if !points.contains(&&claim.grid) {
            points.push(&claim.grid);
        }
    }
    let decided = |status: &Status| is_wide || *status != Status::Inconclusive;
    let at = |point: &Map<String, Value>| {
        ORDER.into_iter().filter(decided).flat_map(of).filter(move |claim| claim.grid == *point).collect::<Vec<_>>()
    };
    let shown: Vec<&Judgement> = points.into_iter().flat_map(at).collect();
    if shown.len() < claims.len() {
        text.push_str("--wide and the report list the inconclusive ones, and say why\n");
    }
    if shown.is_empty() {
        return;
    }
    let mut header = vec!["claim", "published", "measured", "95% interval", "status"];
    if is_wide {
        header.push("why");
    }
    let mut lines = Vec::new();
    let mut point = None;
    for claim in shown {
        if point != Some(&claim.grid) && !claim.grid.is_empty() {
            lines.push(plain::Line::Heading(grid_point(&claim.grid)));
        }
        point = Some(&claim.grid);
        let short = |value: f64| rounded(value, None);
        let interval = claim.interval.map(|i| format!("{} to {}", short(i.0), short(i.1)));
        let mut cells = vec![
            claim.claim.clone(),
            claim.published_text(short),
            claim.measured.map_or_else(
                || "–".to_owned(),
                |value| format!("{}{}", short(value), if claim.too_short { TOO_SHORT } else { "" }),
            ),
            interval.unwrap_or_else(|| "–".to_owned()),
            claim.outcome(),
        ];
        if is_wide {
            cells.push(claim.why.clone());
        }
        lines.push(plain::Line::Cells(cells));
    }
    let header = header.into_iter().map(str::to_owned).collect();
    text.push_str(&Plain { header, lines }.draw(extent.width()));
}

fn footer_text(text: &mut String, footer: &Footer, extent: Extent) {
    if !footer.workloads.is_empty() && extent == Extent::Wide {
        text.push_str("\nworkloads\n");
        footer.workloads.iter().for_each(|line| paragraph(text, 2, line, extent.width()));
    }
    let changed: Vec<_> = footer.schemes.iter().filter(|(_, notes)| !notes.is_empty()).collect();
    if !changed.is_empty() {
        text.push_str("\nwhat schemes change\n");
        for (scheme, notes) in changed {
            paragraph(text, 2, &format!("{scheme}: {}", notes.join("; ")), extent.width());
        }
    }
}

fn cost(text: &mut String, pooled: &[&Row]) {
    // What shares another run's simulation cost nothing.
    let simulated = pooled.iter().filter(|row| row.number("cpu_s").is_some_and(|cpu_s| cpu_s > 0.0));
    let hops: u64 = simulated.filter_map(|row| row.count("packet_hops")).sum();
    let cpu_s: f64 = pooled.iter().filter_map(|row| row.number("cpu_s")).sum();
    if let Some(cost) = ns_per_packet_hop(cpu_s, hops) {
        let runs: u64 = pooled.iter().filter(|row| row.class == ALL).map(|row| row.runs).sum();
        let _ = writeln!(text, "\n{runs} runs, {hops} packet-hops, {cpu_s:.2} s of CPU, {cost:.1} ns per packet-hop");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::claims::{judge, tests::row};

    fn heading(rows: &[Row], footer: &Footer) -> String {
        let text = render("title", rows, footer, Extent::Wide);
        text.lines().skip(2).take_while(|line| !line.contains('─')).collect::<Vec<_>>().join("\n")
    }

    fn about(metric: &str, rows: &[Row]) -> Footer {
        let claim = serde_json::json!({ "metric": metric, "scheme": "a", "at_most": 1.0 });
        let claim = serde_json::from_value(claim).expect("a claim");
        Footer { claims: judge(&[claim], rows), ..Footer::default() }
    }

    /// The comparison of all schemes, with the columns of its scenario.
    #[test]
    fn a_comparison_fits_the_terminal() {
        let path = std::path::Path::new("../../scenarios/all/leaf-spine-100g.toml");
        let scenario = crate::scenario::Scenario::load(path, &[]).expect("a scenario");
        let mut rows = Vec::new();
        for (index, scheme) in scenario.schemes().iter().enumerate() {
            for (seed, column) in [None, Some(1), Some(2), Some(3)]
                .iter()
                .flat_map(|seed| scenario.columns.iter().map(move |column| (*seed, column)))
            {
                let value = 1000.0 + 37.0 * index as f64 + seed.unwrap_or(2) as f64;
                let known = rows.iter_mut().find(|row: &&mut Row| {
                    row.scheme == *scheme
                        && row.class == column.class
                        && row.is_pooled() == seed.is_none()
                        && seed.is_none_or(|seed| row.seed == crate::results::Seed::One(seed))
                });
                let own = match known {
                    Some(own) => own,
                    None => {
                        rows.push(Row { class: column.class.clone(), ..row(scheme, 0.5, seed, value) });
                        rows.last_mut().expect("just added")
                    }
                };
                own.values.set(&column.metric, Some(value).into());
            }
        }
        let notes = vec!["switch.ecn = { kind = \"step\", at = \"65KB\" }".to_owned(); 3];
        let footer = Footer {
            terms: Terms { columns: scenario.columns.clone(), ..Terms::default() },
            schemes: scenario.schemes().into_iter().map(|scheme| (scheme, notes.clone())).collect(),
            ..Footer::default()
        };
        for width in [80, 100, 140] {
            let text = render(&scenario.describe, &rows, &footer, Extent::Fitting(width));
            let longest = text.lines().map(|line| line.chars().count()).max().expect("lines");
            assert!(longest <= width, "{longest} in {width}\n{text}");
            for scheme in scenario.schemes() {
                assert!(text.lines().filter(|line| line.starts_with(&scheme)).count() >= 3, "{scheme}\n{text}");
            }
            assert!(text.contains("*") && text.contains("verdict"), "{text}");
        }
    }

    #[test]
    fn rates_have_columns_where_they_were_sampled() {
        let mut rows = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0)];
        assert!(!heading(&rows, &Footer::default()).contains("Gbps"));
        rows[1].values.set("assigned_gbps.min", Some(2.5).into());
        rows[1].values.set("measured_gbps.min", Some(1.25).into());
        let text = render("title", &rows, &Footer::default(), Extent::Wide);
        assert_eq!((text.matches("assigned").count(), text.matches("measured").count()), (1, 1), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("b ")).expect("a row of b");
        assert!(line.split_whitespace().rev().take(2).eq(["1.25", "2.50"]), "{text}");
    }

    #[test]
    fn queues_and_pauses_have_columns_where_they_matter() {
        let mut rows = [row("a", 0.2, None, 100.0)];
        rows[0].values.set("max_queue_bytes", Some(1_234_000).into());
        rows[0].values.set("pfc_pauses", Some(17).into());
        let has = |footer: &Footer| {
            let heading = heading(&rows, footer);
            (heading.contains("longest"), heading.contains("pauses"))
        };
        assert_eq!(has(&Footer::default()), (false, false));
        assert_eq!(has(&Footer { has_pfc: true, ..Footer::default() }), (true, true));
        assert_eq!(has(&about("max_queue_bytes", &rows)), (true, false));
        assert_eq!(has(&about("pfc_pauses", &rows)), (false, true));
        let text = render("title", &rows, &Footer { has_pfc: true, ..Footer::default() }, Extent::Wide);
        let line = text.lines().find(|line| line.trim_start().starts_with("a ")).expect("a row of a");
        assert!(line.contains("1.2 MB") && line.trim_end().ends_with(" 17"), "{text}");
        // Without class, requests and long flows, and with numbers of a usual length.
        assert!(text.lines().all(|line| line.chars().count() <= 132), "{text}");
    }
}
