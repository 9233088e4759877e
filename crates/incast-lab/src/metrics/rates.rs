//! Rates of sampled flows over the counted time, added up over a class.

use incast_sim::outcome::{FlowRecord, RateSample};
use incast_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rate over time, in Gbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The lowest sample.
    pub min: Option<f64>,
    /// Mean of the samples.
    pub mean: Option<f64>,
}

/// Which samples count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Period of the samples.
    pub every: Time,
    /// The samples look back on a period that does not begin earlier,
    pub from: Time,
    /// and end at this time at the latest.
    pub until: Time,
}

/// What the laws of the flows assign, and what arrives and is acknowledged: at each sample the sum over those flows
/// that were there for the whole period before it. Without such a sample there is no number.
pub fn extents(flows: &[&FlowRecord], samples: &[RateSample], sampling: &Sampling) -> (Extent, Extent) {
    let Sampling { every, from, until } = *sampling;
    // Sampled or not, only these can be looked up.
    let known: BTreeMap<(u32, u32), &FlowRecord> =
        flows.iter().map(|flow| ((flow.source, flow.sequence), *flow)).collect();
    let mut sums: BTreeMap<Time, (u128, u128)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.time >= from + every && sample.time <= until) {
        let Some(flow) = known.get(&(sample.source, sample.sequence)) else { continue };
        let is_whole =
            flow.start + every <= sample.time && flow.delivered.is_none_or(|delivered| delivered >= sample.time);
        if is_whole {
            let (assigned, measured) = sums.entry(sample.time).or_default();
            *assigned += u128::from(assigned_bps(sample));
            *measured += u128::from(sample.measured_bps);
        }
    }
    (extent(sums.values().map(|sums| sums.0)), extent(sums.values().map(|sums| sums.1)))
}

/// A law that assigns neither a pace nor a window counts with what was measured.
fn assigned_bps(sample: &RateSample) -> u64 {
    if sample.assigned_bps == u64::MAX { sample.measured_bps } else { sample.assigned_bps }
}

fn extent(sums: impl Iterator<Item = u128> + Clone) -> Extent {
    let gbps = |bps: f64| bps / 1e9;
    let count = sums.clone().count();
    Extent {
        min: sums.clone().min().map(|least| gbps(least as f64)),
        mean: (count > 0).then(|| gbps(sums.sum::<u128>() as f64 / count as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    fn flow(source: u32, start: u64, delivered: Option<u64>) -> FlowRecord {
        FlowRecord { source, start: US(start), delivered: delivered.map(US), ..FlowRecord::default() }
    }

    fn sample(us: u64, source: u32, assigned_gbps: u64, measured_gbps: u64) -> RateSample {
        RateSample {
            time: US(us),
            source,
            assigned_bps: assigned_gbps * 1_000_000_000,
            measured_bps: measured_gbps * 1_000_000_000,
            ..RateSample::default()
        }
    }

    fn sampling() -> Sampling {
        Sampling { every: US(10), from: US(20), until: US(60) }
    }

    #[test]
    fn flows_count_while_they_last_and_add_up() {
        let flows = [flow(0, 0, None), flow(1, 25, Some(55)), flow(2, 0, None)];
        let both: Vec<&FlowRecord> = flows[..2].iter().collect();
        let samples = [
            // Looks back to before the counted time.
            sample(20, 0, 1, 1),
            sample(30, 0, 8, 7),
            // Began in this period.
            sample(30, 1, 1, 1),
            sample(40, 0, 4, 3),
            sample(40, 1, 5, 4),
            sample(50, 0, 6, 5),
            sample(50, 1, 2, 1),
            // Of no flow of the class.
            sample(50, 2, 9, 9),
            sample(60, 0, 9, 9),
            // Ended in this period.
            sample(60, 1, 1, 1),
            // After the counted time.
            sample(70, 0, 1, 1),
        ];
        let (assigned, measured) = extents(&both, &samples, &sampling());
        assert_eq!(assigned, Extent { min: Some(8.0), mean: Some((8.0 + 9.0 + 8.0 + 9.0) / 4.0) });
        assert_eq!(measured, Extent { min: Some(6.0), mean: Some((7.0 + 7.0 + 6.0 + 9.0) / 4.0) });
        assert_eq!(extents(&both, &[], &sampling()), Default::default());
        assert_eq!(extents(&[], &samples, &sampling()), Default::default());
    }

    #[test]
    fn a_law_that_assigns_nothing_counts_with_what_was_measured() {
        let lasting = flow(0, 0, None);
        let assigned = |assigned_bps| {
            let sample = RateSample { assigned_bps, ..sample(40, 0, 0, 3) };
            extents(&[&lasting], &[sample], &sampling()).0.min
        };
        assert_eq!(assigned(10_000_000_000), Some(10.0));
        assert_eq!(assigned(u64::MAX), Some(3.0));
    }
}
