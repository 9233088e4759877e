//! How long flows take to share fairly.

use super::statistics::jain;
use incast_sim::outcome::{FlowRecord, RateSample};
use incast_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// How long rates must stay fair, in base round trips: long enough not to take a crossing for an agreement, short
/// enough that the oscillation of laws that never rest does not count against them.
pub const HELD_ROUND_TRIPS: u64 = 30;

/// What laws assign is more than this many times what flows get: flows have no feedback on each other yet, and equal
/// rates are those with which flows start.
const UNHEARD: f64 = 1.5;

/// Rates count as fair only while the flows together have so much of what one of them would have alone: two flows that
/// both get next to nothing are equal, and have not converged.
pub const UTILISATION: f64 = 0.9;

/// Time from the start of the last of the sampled flows until Jain's index of the rates that their laws assign reaches
/// `fair` and stays there for `held`, or until the first of them is done if that is sooner. Equal rates do not count as
/// long as the laws assign half as much again as flows get, nor while flows have less than [`UTILISATION`] of their
/// link, on average over a third of `held`. A law that assigns neither a pace nor a window counts with the rate that was
/// measured.
///
/// `flows` are those that count. `None` with fewer than two sampled flows, or when the rates never settle.
pub fn convergence(flows: &[&FlowRecord], rates: &[RateSample], fair: f64, held: Time) -> Option<Time> {
    let mut known: BTreeMap<(u32, u32), &FlowRecord> =
        flows.iter().map(|flow| ((flow.source, flow.sequence), *flow)).collect();
    let sampled: std::collections::BTreeSet<_> = rates.iter().map(|rate| (rate.source, rate.sequence)).collect();
    known.retain(|id, _| sampled.contains(id));
    let from = known.values().map(|flow| flow.start).max()?;
    let until = known.values().filter_map(|flow| flow.delivered).min().unwrap_or(Time::MAX);
    let mut at: BTreeMap<Time, (Vec<f64>, f64)> = BTreeMap::new();
    for rate in rates.iter().filter(|rate| rate.time > from && rate.time <= until) {
        if known.contains_key(&(rate.source, rate.sequence)) {
            let assigns = rate.assigned_bps < u64::MAX;
            let rate_bps = if assigns { rate.assigned_bps } else { rate.measured_bps };
            let (shares, measured) = at.entry(rate.time).or_default();
            shares.push(rate_bps as f64);
            *measured += rate.measured_bps as f64;
        }
    }
    let alone = |flow: &&FlowRecord| Some(flow.bytes as f64 * 8.0 / flow.ideal?.as_secs_f64());
    let least = UTILISATION * known.values().filter_map(alone).fold(0.0, f64::max);
    let mut recent: VecDeque<(Time, f64)> = VecDeque::new();
    let mut fair_since: Option<Time> = None;
    for (time, (shares, measured)) in at {
        recent.push_back((time, measured));
        while recent.front().is_some_and(|first| time - first.0 > held / 3) {
            recent.pop_front();
        }
        let mean = recent.iter().map(|sample| sample.1).sum::<f64>() / recent.len() as f64;
        let is_fair = shares.len() == known.len() && jain(&shares).is_some_and(|index| index >= fair);
        let is_heard = fair_since.is_some() || shares.iter().sum::<f64>() <= UNHEARD * measured;
        fair_since = if is_fair && is_heard && mean >= least { fair_since.or(Some(time)) } else { None };
        if let Some(since) = fair_since
            && time.saturating_sub(since) >= held
        {
            return Some(since.saturating_sub(from));
        }
    }
    // What no flow outlasted was not held.
    fair_since.filter(|_| until < Time::MAX).map(|since| since.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: u32, start: u64, delivered: Option<u64>) -> FlowRecord {
        let delivered = delivered.map(Time::from_us);
        FlowRecord { source, start: Time::from_us(start), delivered, ..FlowRecord::default() }
    }

    /// Samples at a time, of two flows that get what they are assigned.
    fn samples(list: &[(u64, u64, u64)]) -> Vec<RateSample> {
        let rate = |us, source, bps| RateSample {
            time: Time::from_us(us),
            source,
            assigned_bps: bps,
            measured_bps: bps,
            ..RateSample::default()
        };
        list.iter().flat_map(|&(us, a, b)| [rate(us, 0, a), rate(us, 1, b)]).collect()
    }

    #[test]
    fn without_assigned_rates_the_measured_ones_count() {
        let flows = [flow(0, 0, Some(1)), flow(1, 0, None)];
        let both: Vec<&FlowRecord> = flows.iter().collect();
        let mut rates = samples(&[(1, 90, 10)]);
        rates.iter_mut().for_each(|rate| rate.assigned_bps = u64::MAX);
        assert_eq!(convergence(&both, &rates, 0.95, Time::MAX), None);
    }

    #[test]
    fn rates_must_stay_fair() {
        let flows = [flow(0, 0, Some(145)), flow(1, 100, None)];
        // Before the second flow starts, fair by chance, unfair, fair for good.
        let rates = samples(&[(50, 9, 0), (110, 5, 5), (120, 9, 1), (130, 6, 4), (140, 5, 5)]);
        let both: Vec<&FlowRecord> = flows.iter().collect();
        assert_eq!(convergence(&both, &rates, 0.95, Time::MAX), Some(Time::from_us(30)));
        assert_eq!(convergence(&both, &rates, 0.99, Time::MAX), Some(Time::from_us(40)));
        assert_eq!(convergence(&both, &rates[..6], 0.95, Time::MAX), None);
        assert_eq!(convergence(&both[..1], &rates, 0.95, Time::MAX), None);
        assert_eq!(convergence(&both, &[], 0.95, Time::MAX), None);
        // Fair for the required time is enough, whatever comes later.
        assert_eq!(convergence(&both, &rates, 0.95, Time::ZERO), Some(Time::from_us(10)));
        assert_eq!(convergence(&both, &rates, 0.95, Time::from_us(10)), Some(Time::from_us(30)));
        // Where sampling ends before that time, nothing is known.
        let lasting = [flow(0, 0, None), flow(1, 100, None)];
        let both: Vec<&FlowRecord> = lasting.iter().collect();
        assert_eq!(convergence(&both, &rates, 0.95, Time::from_us(11)), None);
        assert_eq!(convergence(&both, &rates, 0.95, Time::from_us(10)), Some(Time::from_us(30)));
    }

    /// Two flows at line rate share one link: their rates are equal before anybody has noticed.
    #[test]
    fn rates_that_nobody_gets_are_not_shared() {
        let flows = [flow(0, 0, None), flow(1, 0, None)];
        let both: Vec<&FlowRecord> = flows.iter().collect();
        let mut rates = samples(&[(10, 100, 100), (20, 70, 30), (30, 50, 50), (40, 50, 50)]);
        rates[..2].iter_mut().for_each(|rate| rate.measured_bps = 50);
        assert_eq!(convergence(&both, &rates, 0.95, Time::from_us(10)), Some(Time::from_us(30)));
    }

    /// Two flows that both sit at 2% of the link are equal, and share nothing.
    #[test]
    fn rates_count_once_the_link_is_used() {
        // 1,250 bytes take 10 us alone: 1 Gbit/s.
        let alone = |source| FlowRecord { bytes: 1250, ideal: Some(Time::from_us(10)), ..flow(source, 0, None) };
        let flows = [alone(0), alone(1)];
        let both: Vec<&FlowRecord> = flows.iter().collect();
        let mbps = |us, each: u64| (us, each * 1_000_000, each * 1_000_000);
        let idle = samples(&[mbps(10, 10), mbps(20, 10), mbps(30, 10), mbps(40, 10)]);
        assert_eq!(convergence(&both, &idle, 0.95, Time::from_us(20)), None);
        let later = samples(&[mbps(10, 10), mbps(20, 10), mbps(30, 450), mbps(40, 450), mbps(50, 450)]);
        assert_eq!(convergence(&both, &later, 0.95, Time::from_us(20)), Some(Time::from_us(30)));
    }
}
