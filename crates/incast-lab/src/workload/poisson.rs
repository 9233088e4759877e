//! Poisson arrivals: one independent process at each source host, destinations uniform among the others.

use super::{
    Expected, Generate,
    distribution::Distribution,
    streams::{Purpose, stream},
};
use incast_cc::law::SizeClass;
use incast_sim::FlowSpec;
use incast_units::Time;

/// Independent arrivals at each source.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// Class index of the flows.
    pub class: u16,
    /// Class name, for the random streams.
    pub name: String,
    /// Each source and its mean time between flows in picoseconds.
    pub sources: Vec<(u32, f64)>,
    /// Destinations; a source never sends to itself.
    pub destinations: Vec<u32>,
    /// Flow sizes.
    pub sizes: Distribution,
    /// Arrivals end here.
    pub duration: Time,
    /// The load as people wrote it.
    pub label: String,
}

impl Generate for Poisson {
    fn flows(&self, seed: u64, flows: &mut Vec<FlowSpec>) {
        for (source, mean_gap) in &self.sources {
            let mut stream = stream(seed, Purpose::Poisson, &self.name, u64::from(*source));
            let own = self.destinations.iter().position(|host| host == source);
            let others = self.destinations.len() - usize::from(own.is_some());
            if others == 0 {
                continue;
            }
            let mut now = 0u64;
            loop {
                now = now.saturating_add(stream.exponential(*mean_gap).round() as u64);
                let bytes = self.sizes.sample(&mut stream);
                let mut pick = stream.below(others as u64) as usize;
                if own.is_some_and(|own| pick >= own) {
                    pick += 1;
                }
                if now >= self.duration.ps() {
                    break;
                }
                flows.push(FlowSpec {
                    start: Time::from_ps(now),
                    source: *source,
                    destination: self.destinations[pick],
                    bytes,
                    class: self.class,
                    request: FlowSpec::NO_REQUEST,
                    pinned: None,
                });
            }
        }
    }

    fn expected(&self) -> Expected {
        let flows: f64 = self.sources.iter().map(|(_, gap)| self.duration.ps() as f64 / gap).sum();
        Expected { flows, bytes: flows * self.sizes.mean(), sources: self.sources.len() as f64, open: 0.0 }
    }

    fn describe(&self) -> String {
        let per_second: f64 = self.sources.iter().map(|(_, gap)| 1e12 / gap).sum();
        format!(
            "{}: {}; mean size {:.0} B, {:.0} flows/s from {} hosts, about {:.0} flows",
            self.name,
            self.label,
            self.sizes.mean(),
            per_second,
            self.sources.len(),
            self.expected().flows
        )
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        let sizes = self.sizes.spread(self.expected().flows);
        sizes.into_iter().map(|size| (self.class, size)).collect()
    }

    fn size_range(&self) -> Option<(u64, u64)> {
        Some(self.sizes.range())
    }

    fn starts(&self) -> (u64, u64) {
        (0, self.duration.ps().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::distribution::Interpolation;
    use crate::workload::{builtin, distribution::Table};

    fn sample(sources: u32) -> Poisson {
        let table = Table::parse(builtin::text("websearch").expect("bundled")).expect("valid");
        let sizes = Distribution::Table { table, interpolation: Interpolation::Linear, max: u64::MAX };
        // 40% of 100 Gbps.
        let gap = sizes.mean() * 8.0 / (0.4 * 100e9) * 1e12;
        Poisson {
            class: 0,
            name: "background".into(),
            sources: (0..sources).map(|host| (host, gap)).collect(),
            destinations: (0..32).collect(),
            sizes,
            duration: Time::from_ms(200),
            label: String::new(),
        }
    }

    #[test]
    fn the_load_is_met() {
        // One run of 18,700 flows is off by 1.7% (one sigma), 16 of them together by 0.4%.
        let mut flows = Vec::new();
        (1..=16).for_each(|seed| sample(32).flows(seed, &mut flows));
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let load = bytes as f64 * 8.0 / (16.0 * 32.0 * 100e9 * 0.2);
        assert!((load / 0.4 - 1.0).abs() < 0.012, "{load}");
        let expected = 16.0 * sample(32).expected().flows;
        assert!((flows.len() as f64 / expected - 1.0).abs() < 0.006, "{} of {expected}", flows.len());
        assert!(flows.iter().all(|flow| flow.source != flow.destination && flow.start < Time::from_ms(200)));
        let mut per_destination = [0u32; 32];
        flows.iter().for_each(|flow| per_destination[flow.destination as usize] += 1);
        let mean = flows.len() as f64 / 32.0;
        let chi: f64 = per_destination.iter().map(|n| (f64::from(*n) - mean) * (f64::from(*n) - mean) / mean).sum();
        assert!(chi < 61.1, "31 degrees of freedom, 0.1%: {chi}");
    }

    #[test]
    fn a_host_draws_the_same_whoever_else_sends() {
        let (mut all, mut one) = (Vec::new(), Vec::new());
        sample(32).flows(1, &mut all);
        sample(1).flows(1, &mut one);
        assert!(!one.is_empty());
        assert_eq!(one, all.into_iter().filter(|flow| flow.source == 0).collect::<Vec<_>>());
    }
}
