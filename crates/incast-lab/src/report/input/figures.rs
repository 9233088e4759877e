//! The curves of every grid point and scheme, read run by run.

use super::{
    ReportError,
    curves::{Ccdf, Series},
};
use crate::results::read::{FinishedRun, Point, Results};
use crate::{
    metrics::requests,
    results::{FileError, parquet, row::ALL},
};
use incast_units::Time;
use std::{cmp::Reverse, collections::BTreeMap};

/// Schemes times classes that are drawn in detail. With more, only some of the grid points are: a larger page could not
/// be loaded.
const MOST_DETAILED: usize = 160;
/// Points of all distributions together, and of all time series: what keeps a page below 2 MB.
const POINTS: usize = 50_000;
/// Points of one curve, at least and at most.
const PER_CURVE: (usize, usize) = (60, 400);
/// Ports of a grid point, and flows of a run, that are drawn over time.
const MOST_PORTS: usize = 6;
const MOST_FLOWS: usize = 8;

/// What is drawn of a class.
#[derive(Debug, Default)]
pub struct ClassCurves {
    /// Time to delivery of its counted flows, in microseconds, all seeds together.
    pub fct: Ccdf,
    /// Completion of its counted requests, in microseconds.
    pub rct: Ccdf,
}

/// The rate of a flow over time, in bit/s.
#[derive(Debug)]
pub struct FlowRate {
    /// Source host and number of the flow there.
    pub flow: (u32, u32),
    /// Its class.
    pub class: String,
    /// What the law assigned.
    pub assigned: Series,
    /// What was acknowledged.
    pub measured: Series,
    /// What the law believed of its path, if it keeps such a number.
    pub estimate: Option<Series>,
}

/// What is drawn of a scheme at a grid point.
#[derive(Debug, Default)]
pub struct SchemeCurves {
    /// In the order of [`Results::classes`].
    pub classes: Vec<ClassCurves>,
    /// Seed of the run whose samples over time are drawn.
    pub sampled_seed: Option<u64>,
    /// Queues in bytes by port.
    pub queues: BTreeMap<String, Series>,
    /// What came to stay or pass, in bit/s by port: sent plus growth of the queue. Drops are not in it.
    pub arrivals: BTreeMap<String, Series>,
    /// Rate of every link in bit/s, where all have the same.
    pub link_bps: Option<f64>,
    /// Rates of the flows with the most samples.
    pub rates: Vec<FlowRate>,
    /// Sampled flows that are not drawn.
    pub flows_left_out: usize,
}

/// What is drawn of a grid point.
#[derive(Debug)]
pub struct PointCurves {
    /// Its place among [`Results::points`].
    pub point: usize,
    /// In the order of [`Results::schemes`].
    pub schemes: Vec<SchemeCurves>,
    /// Ports to draw: those with the longest queues, in the order of their names.
    pub ports: Vec<String>,
    /// Sampled ports that are not drawn.
    pub ports_left_out: usize,
}

/// Everything that is drawn in detail.
#[derive(Debug)]
pub struct Figures {
    /// By grid point; fewer than there are if there are many.
    pub points: Vec<PointCurves>,
}

/// Reads the tables of all runs of the grid points that are drawn in detail.
///
/// # Errors
/// A table is missing or damaged.
pub fn read(results: &Results) -> Result<Figures, ReportError> {
    let per_point = results.schemes.len() * results.classes.len();
    let shown = spread(results.points.len(), (MOST_DETAILED / per_point).max(1));
    let clamp = |curves: usize| (POINTS / curves.max(1)).clamp(PER_CURVE.0, PER_CURVE.1);
    let most = clamp(shown.len() * per_point * 2);
    let most_over_time = clamp(shown.len() * results.schemes.len() * (2 * MOST_PORTS + 3 * MOST_FLOWS));
    let mut points = Vec::new();
    for index in shown {
        let point = &results.points[index];
        let mut schemes = Vec::new();
        for scheme in &results.schemes {
            let mut curves =
                SchemeCurves { classes: read_flows(results, point, scheme, most)?, ..SchemeCurves::default() };
            if let Some(run) = results.runs_of(point, scheme).next() {
                read_samples(run, most_over_time, &mut curves)?;
            }
            schemes.push(curves);
        }
        let (ports, ports_left_out) = longest(&schemes);
        points.push(PointCurves { point: index, schemes, ports, ports_left_out });
    }
    Ok(Figures { points })
}

/// `most` of `count` indices, evenly spread, first and last among them.
fn spread(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        (0..count).collect()
    } else if most < 2 {
        vec![0]
    } else {
        (0..most).map(|step| (count - 1) * step / (most - 1)).collect()
    }
}

fn read_flows(results: &Results, point: &Point, scheme: &str, most: usize) -> Result<Vec<ClassCurves>, ReportError> {
    // For each class: values in microseconds, and how many more are not known.
    let mut fct = vec![(Vec::new(), 0_usize); results.classes.len()];
    let mut rct = fct.clone();
    for run in results.runs_of(point, scheme) {
        let path = run.folder.join("flows.parquet");
        has(run, "flows.parquet")?;
        let classes = &run.record.classes;
        let flows = parquet::read_flows(&path, classes).map_err(|error| ReportError::unreadable(&path, error))?;
        let from = run.time("/warmup").unwrap_or(Time::ZERO);
        let until = run.time("/duration").unwrap_or(Time::MAX);
        let add = |to: &mut Vec<(Vec<f64>, usize)>, class: u16, start: Time, end: Option<Time>| {
            if start < from || start >= until {
                return;
            }
            let name = classes.get(usize::from(class)).map_or("", String::as_str);
            for (of, (known, unknown)) in results.classes.iter().zip(to.iter_mut()) {
                if of == ALL || of == name {
                    match end {
                        Some(end) => known.push(end.saturating_sub(start).as_us_f64()),
                        None => *unknown += 1,
                    }
                }
            }
        };
        for flow in &flows {
            add(&mut fct, flow.class, flow.start, flow.delivered);
        }
        for request in requests::group(&flows) {
            add(&mut rct, request.class, request.start, request.completion);
        }
    }
    let cdf = |(known, unknown): (Vec<f64>, usize)| Ccdf::new(known, unknown, most);
    Ok(fct.into_iter().zip(rct).map(|(fct, rct)| ClassCurves { fct: cdf(fct), rct: cdf(rct) }).collect())
}

/// Whether a run has a file.
fn has(run: &FinishedRun, name: &str) -> Result<bool, ReportError> {
    run.record.has(&run.folder, name).map_err(|FileError { path, source }| ReportError::unreadable(&path, source))
}

fn read_samples(run: &FinishedRun, most: usize, curves: &mut SchemeCurves) -> Result<(), ReportError> {
    let period = |pointer: &str| run.time(pointer).map_or(1, Time::ps);
    let path = run.folder.join("ports.parquet");
    if has(run, "ports.parquet")? {
        curves.sampled_seed = Some(run.record.seed);
        let period = period("/measure/ports/every");
        curves.link_bps = run.link_bps();
        // Rows of one port and time follow each other, one per priority.
        let mut last: Option<(u64, String, u64, u64)> = None;
        let mut before: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut keep = |(time, port, queue, sent): (u64, String, u64, u64)| {
            let series = curves.queues.entry(port.clone()).or_insert_with(|| Series::new(period, most));
            series.add(time, queue as f64);
            let come = sent.saturating_add(queue);
            if let Some((then, earlier)) = before.insert(port.clone(), (time, come))
                && then < time
            {
                let bps = come.saturating_sub(earlier) as f64 * 8e12 / (time - then) as f64;
                curves.arrivals.entry(port).or_insert_with(|| Series::new(period, most)).add(then, bps);
            }
        };
        parquet::each_port(&path, |time, port, queue, sent| match &mut last {
            Some(same) if same.0 == time && same.1 == port => {
                same.2 = same.2.saturating_add(queue);
                same.3 = same.3.saturating_add(sent);
            }
            _ => {
                if let Some(done) = last.replace((time, port.to_owned(), queue, sent)) {
                    keep(done);
                }
            }
        })
        .map_err(|error| ReportError::unreadable(&path, error))?;
        if let Some(done) = last {
            keep(done);
        }
    }
    let path = run.folder.join("rates.parquet");
    if has(run, "rates.parquet")? {
        curves.sampled_seed = Some(run.record.seed);
        let period = period("/measure/rates/every");
        let mut samples: BTreeMap<u64, u64> = BTreeMap::new();
        parquet::each_rate(&path, |_, flow, _, _, _| *samples.entry(flow).or_default() += 1)
            .map_err(|error| ReportError::unreadable(&path, error))?;
        let mut flows: Vec<u64> = samples.keys().copied().collect();
        flows.sort_by_key(|flow| (Reverse(samples[flow]), *flow));
        curves.flows_left_out = flows.len().saturating_sub(MOST_FLOWS);
        flows.truncate(MOST_FLOWS);
        flows.sort_unstable();
        let classes = classes_of(run, &flows)?;
        curves.rates = flows
            .iter()
            .zip(classes)
            .map(|(flow, class)| FlowRate {
                flow: ((flow >> 32) as u32, *flow as u32),
                class,
                assigned: Series::new(period, most),
                measured: Series::new(period, most),
                estimate: None,
            })
            .collect();
        parquet::each_rate(&path, |time, flow, assigned, measured, estimate| {
            if let Ok(index) = flows.binary_search(&flow) {
                let rate = &mut curves.rates[index];
                rate.assigned.add(time, assigned as f64);
                rate.measured.add(time, measured as f64);
                if let Some(estimate) = estimate {
                    rate.estimate.get_or_insert_with(|| Series::new(period, most)).add(time, estimate);
                }
            }
        })
        .map_err(|error| ReportError::unreadable(&path, error))?;
    }
    Ok(())
}

/// The classes of flows that are given by source and number.
fn classes_of(run: &FinishedRun, wanted: &[u64]) -> Result<Vec<String>, ReportError> {
    let mut classes = vec![String::new(); wanted.len()];
    let path = run.folder.join("flows.parquet");
    parquet::each_class(&path, |id, class| {
        if let Ok(index) = wanted.binary_search(&id) {
            class.clone_into(&mut classes[index]);
        }
    })
    .map_err(|error| ReportError::unreadable(&path, error))?;
    Ok(classes)
}

/// The ports with the longest queues under any scheme, and how many others there are.
fn longest(schemes: &[SchemeCurves]) -> (Vec<String>, usize) {
    let mut peaks: BTreeMap<&String, f64> = BTreeMap::new();
    for (port, series) in schemes.iter().flat_map(|scheme| &scheme.queues) {
        let peak = series.peaks().iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
        let known = peaks.entry(port).or_default();
        *known = known.max(peak);
    }
    let mut ports: Vec<(&String, f64)> = peaks.into_iter().collect();
    ports.sort_by(|a, b| b.1.total_cmp(&a.1));
    let left_out = ports.len().saturating_sub(MOST_PORTS);
    ports.truncate(MOST_PORTS);
    let mut names: Vec<String> = ports.into_iter().map(|(port, _)| port.clone()).collect();
    names.sort();
    (names, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_points_are_spread() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(10, 4), [0, 3, 6, 9]);
        assert_eq!(spread(10, 1), [0]);
    }

    #[test]
    fn ports_with_the_longest_queues_are_drawn() {
        let mut one = SchemeCurves::default();
        for port in 0..9_u32 {
            let mut series = Series::new(1, 10);
            series.add(0, f64::from(port));
            one.queues.insert(format!("s0->h{port}"), series);
        }
        let (ports, left_out) = longest(&[one, SchemeCurves::default()]);
        assert_eq!(left_out, 3);
        assert_eq!(ports, ["s0->h3", "s0->h4", "s0->h5", "s0->h6", "s0->h7", "s0->h8"]);
    }
}
