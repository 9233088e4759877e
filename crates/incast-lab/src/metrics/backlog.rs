//! Whether a run was long enough for a steady state: the trend of the payload that waits in the network.
//!
//! Statistics of times describe a scheme only if they do not depend on how long the run was. While what waits in the
//! network still rises, they do. The counted arrivals are cut into equal parts, the mean backlog of each part is computed
//! (the method of batch means: Schmeiser, *Batch size effects in the analysis of simulation output*, Operations Research
//! 30(3), 1982), and a line through them is tested against their own fluctuation, as in Schruben, Singh and Tierney,
//! *Optimal tests for initialization bias in simulation output*, Operations Research 31(6), 1983. Neighbouring parts are
//! not independent, so that the variance is enlarged as that of a mean is under a first-order autoregression.
//!
//! `docs/reading-results.md` has the rates of false alarms and of misses that were measured.

use super::statistics::student_t_99;
use incast_sim::outcome::FlowRecord;
use incast_units::Time;
use std::ops::Range;

/// A run was too short if the lower limit of its growth is more than this part of its mean.
pub const MOST_GROWTH: f64 = 0.2;
/// Equal parts of the counted arrivals.
pub const PARTS: usize = 8;
/// So many flows have to start in each half of the counted arrivals.
const LEAST_FLOWS: usize = 30;
/// The residuals of a line through few points vary against each other: their autocorrelation is too low by about so much.
const BIAS: f64 = 1.5 / (PARTS - 2) as f64;
/// At the most; more would leave nothing independent.
const MOST_CORRELATED: f64 = 0.9;

/// Mean backlog in each part of the counted arrivals, in bytes.
pub type Series = [f64; PARTS];

/// What the workloads put on the most loaded link on average, before anything is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Over the link's rate.
    pub nominal: f64,
    /// Flows would have to arrive for so long, where they do not.
    pub duration_needed: Option<Time>,
}

/// How the backlog changes from the first half of the counted arrivals to the second, as a part of its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// By the line of least squares.
    pub growth: f64,
    /// Its lower limit, at a nominal 99%: eight parts tell their autocorrelation only roughly.
    pub at_least: f64,
}

/// The backlog of flows: their payload from the start of each to its delivery, which is taken as even.
///
/// `None` if fewer than 30 flows start in one half of `counted`: a batch of flows has no steady state.
pub fn series<'a>(
    flows: impl Iterator<Item = &'a FlowRecord>,
    counted: &Range<Time>,
    ended_at: Time,
) -> Option<Series> {
    let span = counted.end.saturating_sub(counted.start).ps();
    let edge = |number: usize| counted.start.saturating_add(Time::from_ps(span / PARTS as u64 * number as u64));
    let mut started = [0; 2];
    let mut waiting = [0.0; PARTS];
    for flow in flows.filter(|flow| flow.start < counted.end) {
        if counted.contains(&flow.start) {
            started[usize::from(flow.start >= edge(PARTS / 2))] += 1;
        }
        let (end, arrived) =
            flow.delivered.map_or((ended_at, flow.delivered_bytes), |delivered| (delivered, flow.bytes));
        for (part, sum) in waiting.iter_mut().enumerate() {
            *sum += mean_waiting(flow, end, arrived, &(edge(part)..edge(part + 1)));
        }
    }
    started.iter().all(|count| *count >= LEAST_FLOWS).then_some(waiting)
}

/// The trend over all runs of a grid point. `None` of nothing, or if nothing waits.
pub fn trend(runs: &[Series]) -> Option<Trend> {
    let runs_and_parts = (runs.len() * PARTS) as f64;
    let mean = runs.iter().flatten().sum::<f64>() / runs_and_parts;
    if runs.is_empty() || mean <= 0.0 {
        return None;
    }
    // Part numbers from their middle, as one vector of length 1.
    let middle = (PARTS - 1) as f64 / 2.0;
    let from_middle = |part: usize| part as f64 - middle;
    let square: f64 = (0..PARTS).map(|part| from_middle(part) * from_middle(part)).sum();
    let line = |part: usize| from_middle(part) / square.sqrt();
    let (mut slopes, mut squares, mut neighbours) = (0.0, 0.0, 0.0);
    for run in runs {
        let own = run.iter().sum::<f64>() / PARTS as f64;
        let slope: f64 = run.iter().enumerate().map(|(part, value)| value * line(part)).sum();
        let rest = |part: usize| run[part] - own - slope * line(part);
        slopes += slope;
        squares += (0..PARTS).map(|part| rest(part) * rest(part)).sum::<f64>();
        neighbours += (1..PARTS).map(|part| rest(part - 1) * rest(part)).sum::<f64>();
    }
    let count = runs.len() as f64;
    // A line takes its ends from the middle of the first half to that of the second: half the parts.
    let to_growth = PARTS as f64 / 2.0 / square.sqrt() / mean;
    let growth = slopes / count * to_growth;
    let degrees = runs.len() * (PARTS - 2);
    let correlated = if squares > 0.0 { (neighbours / squares + BIAS).clamp(0.0, MOST_CORRELATED) } else { 0.0 };
    let variance = squares / degrees as f64 * (1.0 + correlated) / (1.0 - correlated) / count;
    Some(Trend { growth, at_least: growth - student_t_99(degrees) * variance.sqrt() * to_growth })
}

/// Payload of a flow that has not arrived, on average over a period, if `arrived` of it arrive evenly until `end`.
fn mean_waiting(flow: &FlowRecord, end: Time, arrived: u64, period: &Range<Time>) -> f64 {
    let (from, to) = (flow.start.max(period.start), end.min(period.end));
    if from >= to {
        return 0.0;
    }
    let life = end.saturating_sub(flow.start).ps() as f64;
    let waiting_at =
        |time: Time| flow.bytes as f64 - arrived as f64 * (time.saturating_sub(flow.start).ps() as f64 / life);
    let share = (to.ps() - from.ps()) as f64 / (period.end.ps() - period.start.ps()) as f64;
    // It falls evenly: its mean is that of its ends.
    (waiting_at(from) + waiting_at(to)) / 2.0 * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::engine::random::Stream;

    /// A link that serves one flow after the other, at so many times its rate in arrivals: flows of exponential sizes
    /// arrive from 0 to `lasts`, in units of the mean time that one takes. It is counted from a tenth on.
    fn link(load: f64, lasts: f64, seed: u64) -> Option<Series> {
        const MEAN: f64 = 1e6;
        let mut stream = Stream::new(seed, 7, 0);
        let (mut now, mut free) = (0.0, 0.0f64);
        let mut flows = Vec::new();
        loop {
            now += stream.exponential(MEAN / load);
            if now >= lasts * MEAN {
                break;
            }
            let service = stream.exponential(MEAN).max(1.0);
            free = free.max(now) + service;
            flows.push(FlowRecord {
                bytes: service as u64,
                start: Time::from_ps(now as u64),
                delivered: Some(Time::from_ps(free as u64 + 1)),
                ..FlowRecord::default()
            });
        }
        let end = Time::from_ps((lasts * MEAN) as u64);
        series(flows.iter(), &(end / 10..end), Time::MAX)
    }

    /// The part of 300 grid points of so many seeds that are called too short.
    fn alarms(load: f64, lasts: f64, seeds: u64) -> f64 {
        let is_too_short = |point: u64| {
            let runs: Option<Vec<Series>> = (0..seeds).map(|seed| link(load, lasts, point * seeds + seed)).collect();
            let trend = trend(&runs.expect("enough flows")).expect("something waits");
            trend.at_least > MOST_GROWTH
        };
        (0..300).filter(|point| is_too_short(*point)).count() as f64 / 300.0
    }

    #[test]
    fn runs_of_known_load_on_either_side() {
        // The units of time in which the queue of a link that starts empty becomes steady are 2 ρ / (1 − ρ)²: 4 of the
        // mean size at a half, 40 at 0.8.
        for (load, lasts) in [(0.5, 300.0), (0.8, 1000.0), (0.8, 4000.0)] {
            for seeds in [1, 3, 5] {
                let found = alarms(load, lasts, seeds);
                assert!(found <= 0.01, "{found} false alarms at {load} for {lasts} with {seeds} seeds");
            }
        }
        // Of 2,000 mean sizes at 1.05, a hundred too many arrive, give or take 63.
        for (load, lasts, seeds, most) in [
            (1.05, 2000.0, 1, 0.62),
            (1.05, 2000.0, 3, 0.27),
            (1.05, 2000.0, 5, 0.1),
            (1.2, 500.0, 1, 0.37),
            (1.2, 500.0, 3, 0.04),
            (1.2, 500.0, 5, 0.01),
        ] {
            let missed = 1.0 - alarms(load, lasts, seeds);
            assert!(missed <= most, "{missed} missed at {load} for {lasts} with {seeds} seeds");
        }
    }

    /// Flows of 1,000 bytes, one in each microsecond of 400, each delivered after the time that `life` gives.
    fn flows(life: impl Fn(u64) -> Option<u64>) -> Vec<FlowRecord> {
        (0..400)
            .map(|start| FlowRecord {
                bytes: 1000,
                start: Time::from_us(start),
                delivered: life(start).map(|life| Time::from_us(start + life)),
                ..FlowRecord::default()
            })
            .collect()
    }

    fn of(flows: &[FlowRecord], from: u64) -> Option<Trend> {
        trend(&[series(flows.iter(), &(Time::from_us(from)..Time::from_us(400)), Time::from_us(1000))?])
    }

    #[test]
    fn a_queue_that_carries_nine_tenths_of_its_load_grows_as_a_line() {
        // The flow that starts at s has s others before it, each of which takes 10/9 of a microsecond. A line from 0 has
        // a half of its mean in its first half, and three halves in its second.
        let found = of(&flows(|start| Some(1 + start / 9)), 0).expect("enough flows");
        assert!((found.growth - 1.0).abs() < 0.05 && found.at_least > 0.9, "{found:?}");
    }

    #[test]
    fn a_steady_queue_does_not_grow() {
        let even = of(&flows(|_| Some(20)), 40).expect("enough flows");
        assert!(even.growth.abs() < 1e-9, "{even:?}");
        let swinging = of(&flows(|start| Some(20 + start % 17)), 40).expect("enough flows");
        assert!(swinging.growth.abs() < 0.05 && swinging.at_least < 0.0, "{swinging:?}");
    }

    #[test]
    fn flows_that_never_end_are_all_backlog() {
        let found = of(&flows(|_| None), 0).expect("enough flows");
        assert!((found.growth - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn too_few_flows_tell_nothing() {
        let few: Vec<_> = flows(|_| None).into_iter().step_by(8).collect();
        assert_eq!(of(&few, 0), None);
        let batch = flows(|_| Some(5)).into_iter().filter(|flow| flow.start < Time::from_us(100));
        assert_eq!(of(&batch.collect::<Vec<_>>(), 0), None);
        assert_eq!(trend(&[]), None);
    }
}
