//! How long flows take to share fairly.

use super::statistics::jain;
use incast_sim::outcome::{FlowRecord, RateSample};
use incast_units::Time;
use std::collections::BTreeMap;

/// How long rates must stay fair, in base round trips: long enough not to take a crossing for an agreement, short enough
/// that the oscillation of laws that never rest does not count against them.
pub const HELD_ROUND_TRIPS: u64 = 30;

/// Time from the start of the last of the sampled flows until Jain's index of the rates that their laws assign reaches
/// `fair` and stays there for `held`, or until the first of them is done or sampling ends if that is sooner. A law that assigns neither a pace nor a
/// window counts with the rate that was measured.
///
/// `flows` are those that count. `None` with fewer than two sampled flows, or when the rates never settle.
pub fn convergence(flows: &[&FlowRecord], rates: &[RateSample], fair: f64, held: Time) -> Option<Time> {
    let mut known: BTreeMap<(u32, u32), &FlowRecord> =
        flows.iter().map(|flow| ((flow.source, flow.sequence), *flow)).collect();
    let sampled: std::collections::BTreeSet<_> =
        rates.iter().map(|rate| (rate.source, rate.sequence)).collect();
    known.retain(|id, _| sampled.contains(id));
    let from = known.values().map(|flow| flow.start).max()?;
    let until = known.values().filter_map(|flow| flow.delivered).min().unwrap_or(Time::MAX);
    let mut at: BTreeMap<Time, Vec<f64>> = BTreeMap::new();
    for rate in rates.iter().filter(|rate| rate.time > from && rate.time <= until) {
        if known.contains_key(&(rate.source, rate.sequence)) {
            let assigns = rate.assigned_bps < u64::MAX;
            let rate_bps = if assigns { rate.assigned_bps } else { rate.measured_bps };
            at.entry(rate.time).or_default().push(rate_bps as f64);
        }
    }
    let mut fair_since = None;
    for (time, shares) in at {
        let is_fair = shares.len() == known.len() && jain(&shares).is_some_and(|index| index >= fair);
        fair_since = if is_fair { fair_since.or(Some(time)) } else { None };
        if fair_since.is_some_and(|since| time.saturating_sub(since) >= held) {
            break;
        }
    }
    fair_since.map(|time| time.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is assigned where the receiver or the application decides.
    #[test]
    fn without_assigned_rates_the_measured_ones_count() {
        let flows = [0, 1].map(|source| FlowRecord { source, ..FlowRecord::default() });
        let rates = [(0, 90), (1, 10)].map(|(source, measured_bps)| RateSample {
            time: Time::from_us(1),
            source,
            assigned_bps: u64::MAX,
            measured_bps,
            ..RateSample::default()
        });
        let both: Vec<&FlowRecord> = flows.iter().collect();
        assert_eq!(convergence(&both, &rates, 0.95, Time::MAX), None);
        assert_eq!(convergence(&both, &rates, 0.6, Time::MAX), Some(Time::from_us(1)));
    }

    #[test]
    fn rates_must_stay_fair() {
        let flow =
            |source, start| FlowRecord { source, start: Time::from_us(start), ..FlowRecord::default() };
        let flows = [flow(0, 0), flow(1, 100)];
        let rate = |us, source, assigned_bps| RateSample {
            time: Time::from_us(us),
            source,
            assigned_bps,
            ..RateSample::default()
        };
        // Before the second flow starts, fair by chance, unfair, fair for good.
        let rates: Vec<RateSample> = [(50, 9, 0), (110, 5, 5), (120, 9, 1), (130, 6, 4), (140, 5, 5)]
            .into_iter()
            .flat_map(|(us, a, b)| [rate(us, 0, a), rate(us, 1, b)])
            .collect();
        let both: Vec<&FlowRecord> = flows.iter().collect();
        assert_eq!(convergence(&both, &rates, 0.95, Time::MAX), Some(Time::from_us(30)));
        assert_eq!(convergence(&both, &rates, 0.99, Time::MAX), Some(Time::from_us(40)));
        assert_eq!(convergence(&both, &rates[..6], 0.95, Time::MAX), None);
        assert_eq!(convergence(&both[..1], &rates, 0.95, Time::MAX), None);
        assert_eq!(convergence(&both, &[], 0.95, Time::MAX), None);
        // Fair by chance for an instant does not count, fair for the time asked for does, whatever comes later.
        assert_eq!(convergence(&both, &rates, 0.95, Time::ZERO), Some(Time::from_us(10)));
        assert_eq!(convergence(&both, &rates, 0.95, Time::from_us(10)), Some(Time::from_us(30)));
    }
}
