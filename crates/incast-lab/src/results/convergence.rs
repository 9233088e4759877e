//! How long flows take to share fairly.

use super::statistics::jain;
use incast_sim::outcome::{FlowRecord, RateSample};
use incast_units::Time;
use std::collections::BTreeMap;

/// Jain index from which rates count as shared fairly.
const FAIR: f64 = 0.95;

/// Time from the start of the last of the sampled flows until Jain's index of their measured rates reaches 0.95 and
/// stays there until the first of them is done or sampling ends.
///
/// `flows` are those that count. `None` with fewer than two sampled flows, or when the rates never settle.
pub fn convergence(flows: &[&FlowRecord], rates: &[RateSample]) -> Option<Time> {
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
            at.entry(rate.time).or_default().push(rate.measured_bps as f64);
        }
    }
    let mut fair_since = None;
    for (time, measured) in at {
        let fair = measured.len() == known.len() && jain(&measured).is_some_and(|index| index >= FAIR);
        fair_since = if fair { fair_since.or(Some(time)) } else { None };
    }
    fair_since.map(|time| time.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_must_stay_fair() {
        let flow =
            |source, start| FlowRecord { source, start: Time::from_us(start), ..FlowRecord::default() };
        let flows = [flow(0, 0), flow(1, 100)];
        let rate = |us, source, measured_bps| RateSample {
            time: Time::from_us(us),
            source,
            measured_bps,
            ..RateSample::default()
        };
        // Before the second flow starts, fair by chance, unfair, fair for good.
        let rates: Vec<RateSample> = [(50, 9, 0), (110, 5, 5), (120, 9, 1), (130, 6, 4), (140, 5, 5)]
            .into_iter()
            .flat_map(|(us, a, b)| [rate(us, 0, a), rate(us, 1, b)])
            .collect();
        let both: Vec<&FlowRecord> = flows.iter().collect();
        assert_eq!(convergence(&both, &rates), Some(Time::from_us(30)));
        assert_eq!(convergence(&both, &rates[..6]), None);
        assert_eq!(convergence(&both[..1], &rates), None);
        assert_eq!(convergence(&both, &[]), None);
    }
}
