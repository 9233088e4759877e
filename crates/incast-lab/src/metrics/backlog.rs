//! Whether the payload that waits in the network grows without end.
//!
//! A fabric that gets more than it can carry has no steady state. The longer such a run, the later its flows: a
//! percentile of their times says how long the run was, and nothing about the scheme.

use incast_sim::outcome::FlowRecord;
use incast_units::Time;
use std::ops::Range;

/// Rows whose backlog grows by more than this share of the payload offered have no statistics of times.
pub const MOST_GROWTH: f64 = 0.05;
/// So many flows have to start in each of the two periods.
const LEAST_FLOWS: usize = 30;

/// Growth of the backlog over the second half of the arrivals, which last from 0 to `until`, as a share of the payload
/// offered.
///
/// The backlog is the payload of flows that have started, less what was delivered of it; a flow's delivery is taken as
/// even from its start to its end. What would wait if each flow were alone is subtracted: it rises and falls with the
/// arrivals. The mean of the third quarter is subtracted from that of the fourth, and divided by the payload offered in
/// the time between their middles. In a fabric that carries a share c of the load, that is 1 − c if all flows share it,
/// half of that if they are served one after the other; in one that carries all, it goes to 0 with the length of the run.
///
/// `None` if fewer than 30 flows start in one of the two quarters.
pub fn growth<'a>(flows: impl Iterator<Item = &'a FlowRecord>, until: Time, ended_at: Time) -> Option<f64> {
    let quarter = |number: u64| Time::from_ps(until.ps() / 4 * number);
    let [third, fourth] = [quarter(2)..quarter(3), quarter(3)..until];
    let (mut started, mut offered, mut waiting) = ([0; 2], 0, [0.0; 2]);
    for flow in flows.filter(|flow| flow.start < until) {
        let alone = flow.ideal.map(|ideal| flow.start.saturating_add(ideal));
        let (end, arrived) =
            flow.delivered.map_or((ended_at, flow.delivered_bytes), |delivered| (delivered, flow.bytes));
        for (index, period) in [&third, &fourth].into_iter().enumerate() {
            if period.contains(&flow.start) {
                started[index] += 1;
                offered += flow.bytes;
            }
            waiting[index] += mean_waiting(flow, end, arrived, period);
            waiting[index] -= alone.map_or(0.0, |end| mean_waiting(flow, end, flow.bytes, period));
        }
    }
    let is_enough = started.iter().all(|count| *count >= LEAST_FLOWS) && offered > 0;
    is_enough.then(|| (waiting[1] - waiting[0]) / (offered as f64 / 2.0))
}

/// Payload of a flow that has not arrived, on average over a period, if `arrived` of it arrive evenly until `end`.
fn mean_waiting(flow: &FlowRecord, end: Time, arrived: u64, period: &Range<Time>) -> f64 {
    let (from, to) = (flow.start.max(period.start), end.min(period.end));
    if from >= to {
        return 0.0;
    }
    let life = end.saturating_sub(flow.start).ps() as f64;
    let waiting_at = |time: Time| {
        flow.bytes as f64 - arrived as f64 * (time.saturating_sub(flow.start).ps() as f64 / life)
    };
    let share = (to.ps() - from.ps()) as f64 / (period.end.ps() - period.start.ps()) as f64;
    // It falls evenly: its mean is that of its ends.
    (waiting_at(from) + waiting_at(to)) / 2.0 * share
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn of(flows: &[FlowRecord]) -> Option<f64> {
        growth(flows.iter(), Time::from_us(400), Time::from_us(1000))
    }

    #[test]
    fn a_queue_that_carries_nine_tenths_of_its_load_grows() {
        // The flow that starts at s has s others before it, each of which takes 10/9 of a microsecond. On average
        // half of a waiting flow is counted as delivered.
        let found = of(&flows(|start| Some(1 + start / 9))).expect("enough flows");
        assert!((found - 0.05).abs() < 0.005, "{found}");
    }

    #[test]
    fn a_steady_queue_does_not_grow() {
        assert!(of(&flows(|_| Some(20))).expect("enough flows").abs() < 1e-9);
        let swinging = of(&flows(|start| Some(20 + start % 17))).expect("enough flows");
        assert!(swinging.abs() < 0.01, "{swinging}");
    }

    #[test]
    fn more_load_in_the_fourth_quarter_is_no_growth_if_nothing_waits() {
        let mut more = flows(|_| Some(20));
        for flow in &mut more {
            flow.ideal = Some(Time::from_us(20));
            flow.bytes *= if flow.start < Time::from_us(300) { 1 } else { 10 };
        }
        assert!(of(&more).expect("enough flows").abs() < 1e-9);
    }

    #[test]
    fn flows_that_never_end_are_all_backlog() {
        assert!((of(&flows(|_| None)).expect("enough flows") - 1.0).abs() < 0.01);
    }

    #[test]
    fn too_few_flows_tell_nothing() {
        let few: Vec<_> = flows(|_| None).into_iter().step_by(4).collect();
        assert_eq!(of(&few), None);
    }
}
