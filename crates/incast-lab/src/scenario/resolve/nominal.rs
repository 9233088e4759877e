//! The nominal load of links: what the workloads of a scenario put on them on average, headers included.

use super::traffic::{Steady, Traffic};
use crate::scenario::{
    document::{
        Document,
        workload::{LoadOf, Workload},
    },
    tree::error::Problem,
};
use incast_cc::law::SizeClass;
use incast_sim::{
    config::{ClassConfig, Wire},
    topology::Topology,
};
use incast_units::Time;

/// The nominal load of the most loaded link. Acknowledgements and what is sent again are not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Nominal {
    /// Bits per second over the link's rate.
    pub load: f64,
    /// The link.
    pub link: String,
    /// Whether one of the link's ends is a host.
    pub is_host: bool,
    /// The load that each of the workloads that have one puts on the link.
    pub shares: Vec<f64>,
    /// With this warm-up flows have to arrive for so long that the backlog of every link is close to that of a steady
    /// state, on average over the counted time; at most [`LONGEST`]. `None` if there is none, as the load is 1 or more.
    pub settles: Option<Time>,
    /// Classes that have no nominal load, as their flows are a batch, a list or a closed loop.
    pub without: Vec<String>,
}

impl Nominal {
    /// Whether flows that arrive until then do so for long enough, in words.
    pub fn settling(&self, until: Time) -> String {
        match self.settles {
            None => "there is no steady state".into(),
            Some(settles) if settles >= LONGEST => "not steady within a day".into(),
            Some(settles) if settles > until => {
                format!("TOO SHORT: a duration of {settles} would be enough with this warm-up, and it is {until}")
            }
            Some(settles) => format!("a duration of {settles} is enough with this warm-up, and it is {until}"),
        }
    }
}

/// Bytes on a link over payload bytes of flows of these sizes.
fn overhead(sizes: &[SizeClass], class: &ClassConfig, mtu: u32, wire: Wire) -> f64 {
    let frame = |payload: u32| f64::from(class.format.data(payload) + wire.gap);
    let full = frame(mtu);
    let on_wire = |bytes: u64| {
        let last = (bytes % u64::from(mtu)) as u32;
        (bytes / u64::from(mtu)) as f64 * full + if last > 0 { frame(last) } else { 0.0 }
    };
    let sum = |of: &dyn Fn(u64) -> f64| sizes.iter().map(|size| size.flows * of(size.bytes)).sum::<f64>();
    let payload = sum(&|bytes| bytes as f64);
    if payload > 0.0 { sum(&on_wire) / payload } else { 1.0 }
}

/// The nominal load under a scheme with these classes. `None` if no workload has one.
pub fn nominal(
    traffic: &Traffic,
    topology: &Topology,
    classes: &[ClassConfig],
    mtu: u32,
    wire: Wire,
    warmup: Time,
) -> Option<Nominal> {
    let overheads: Vec<f64> = traffic
        .steady
        .iter()
        .map(|steady| overhead(&steady.sizes, &classes[usize::from(steady.class)], mtu, wire))
        .collect();
    // Of each link and direction: bits per second, and the rate at which their variance grows.
    let mut total = vec![[(0.0, 0.0); 2]; topology.cables.len()];
    for (steady, overhead) in traffic.steady.iter().zip(&overheads) {
        for (sums, loads) in total.iter_mut().zip(&steady.loads) {
            for ((bits, variance), load) in sums.iter_mut().zip(loads) {
                *bits += load * overhead;
                *variance += load * overhead * overhead * steady.burst * 8.0;
            }
        }
    }
    let links = total.iter().zip(&topology.cables).enumerate().flat_map(|(index, (both, cable))| {
        let rate = cable.link.rate.as_f64();
        both.iter().zip(0..).map(move |((bits, variance), way)| ((index, way), bits / rate, variance / (rate * rate)))
    });
    let ((index, way), load, _) = links.clone().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| !overheads.is_empty())?;
    let cable = &topology.cables[index];
    let share = |(steady, overhead): (&Steady, &f64)| steady.loads[index][way] * overhead / cable.link.rate.as_f64();
    let settles = (load < 1.0).then(|| {
        let unit = links.map(|(_, load, variance)| variance / ((1.0 - load) * (1.0 - load))).fold(0.0, f64::max);
        settles(unit, warmup)
    });
    let without =
        traffic.classes.iter().zip(0..).filter(|(_, class)| traffic.steady.iter().all(|steady| steady.class != *class));
    Some(Nominal {
        load,
        link: topology.cable_name(index).unwrap_or_default(),
        is_host: cable.a.min(cable.b) < topology.hosts,
        shares: traffic.steady.iter().zip(&overheads).map(share).collect(),
        settles,
        without: without.map(|(name, _)| name.clone()).collect(),
    })
}

/// The largest load that one of the schemes has, if it is above 1 and no workload says that this is wanted: at the
/// workload with the largest share of it.
pub fn overload<'a>(document: &Document, traffic: &Traffic, all: impl Iterator<Item = &'a Nominal>) -> Option<Problem> {
    let nominal = all.max_by(|a, b| a.load.total_cmp(&b.load)).filter(|nominal| nominal.load > 1.0 + 1e-9)?;
    if traffic.steady.iter().any(|steady| steady.overload) {
        return None;
    }
    let shares = || traffic.steady.iter().zip(&nominal.shares);
    let (most, _) = shares().max_by(|a, b| a.1.total_cmp(b.1))?;
    let together = if traffic.steady.len() > 1 {
        let each = shares().map(|(steady, share)| format!("{} {share:.3}", traffic.classes[usize::from(steady.class)]));
        format!(" with all workloads together ({})", each.collect::<Vec<_>>().join(", "))
    } else {
        String::new()
    };
    let found = format!("a load of {:.4} on {}{together}, headers included", nominal.load, nominal.link);
    let is_most = |workload: &&Workload| workload.class() == traffic.classes[usize::from(most.class)];
    let advice = match document.workload.iter().find(is_most) {
        Some(Workload::Poisson(poisson)) if !nominal.is_host && poisson.load_of != LoadOf::Bottleneck => {
            "; with load_of = \"bottleneck\" `load` is that of the busiest link"
        }
        _ => "",
    };
    let allowed = format!("at most 1 on every link (more with overload = true{advice})");
    Some(Problem::value(found, allowed).at(&most.key))
}

/// Nobody simulates for longer; a load that is hardly below 1 would need it.
pub const LONGEST: Time = Time::from_ms(86_400_000);

/// The mean backlog over the counted time is at most so much below that of a steady state.
const MOST_BELOW: f64 = 0.05;

/// How long flows have to arrive, `warmup` included.
///
/// A queue that starts empty comes close to its steady state as a reflected Brownian motion does, whose mean at time t is
/// a part H(t) of its limit; t counts units of σ²/μ² of the queue's input, its variance per time over the square of the
/// capacity that is left (Abate and Whitt, *Transient behavior of regulated Brownian motion, I*, Advances in Applied
/// Probability 19(3), 1987).
fn settles(unit_s: f64, warmup: Time) -> Time {
    let warmup_s = warmup.as_secs_f64();
    if unit_s <= 0.0 {
        return warmup;
    }
    if unit_s >= LONGEST.as_secs_f64() {
        return LONGEST;
    }
    let from = warmup_s / unit_s;
    let below = |until: f64| (lacking(until) - lacking(from)) / (until - from);
    // The area is at most one half, so that this is long enough.
    let (mut short, mut long) = (from, from + 0.5 / MOST_BELOW);
    for _ in 0..60 {
        let middle = (short + long) / 2.0;
        if middle > from && below(middle) <= MOST_BELOW { long = middle } else { short = middle }
    }
    // Two digits of microseconds, rounded up.
    let us = (long * unit_s * 1e6).clamp(1.0, LONGEST.as_us_f64());
    let unit = libm::exp10((libm::floor(libm::log10(us)) - 1.0).max(0.0));
    Time::from_us((libm::ceil(us / unit - 1e-9) * unit) as u64)
}

/// The integral of 1 − H from 0 to t, with 1 − H(t) = 2(1 + t)Q(√t) − 2√t φ(√t).
fn lacking(t: f64) -> f64 {
    let root = t.sqrt();
    let density = libm::exp(-t / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
    let above = 0.5 * libm::erfc(root / std::f64::consts::SQRT_2);
    (2.0 * t + t * t) * above + (0.5 - above) - root * density * (1.0 + t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_queue_lacks_is_the_integral_of_its_distance_from_the_steady_state() {
        let distance = |t: f64| {
            let root = t.sqrt();
            let density = libm::exp(-t / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
            (1.0 + t) * libm::erfc(root / std::f64::consts::SQRT_2) - 2.0 * root * density
        };
        let step = 1e-4;
        let sum: f64 = (0..20_000).map(|index| distance((f64::from(index) + 0.5) * step) * step).sum();
        assert!((lacking(2.0) - sum).abs() < 1e-6, "{} {sum}", lacking(2.0));
        assert!((lacking(50.0) - 0.5).abs() < 1e-6 && lacking(0.0) == 0.0);
    }

    #[test]
    fn a_warm_up_shortens_what_is_needed() {
        let ms = |warmup: u64| settles(1e-3, Time::from_ms(warmup)).as_secs_f64() * 1e3;
        assert!((ms(0) - 10.0).abs() < 1e-9, "one half of a unit is 5% of ten: {}", ms(0));
        assert!(ms(1) <= 4.0 && ms(1) > 1.0, "{}", ms(1));
        assert!((ms(10) - 10.0).abs() < 1e-6, "the warm-up alone does: {}", ms(10));
        assert_eq!(settles(0.0, Time::from_ms(2)), Time::from_ms(2));
        assert_eq!([settles(1e9, Time::ZERO), settles(f64::INFINITY, Time::from_ms(1))], [LONGEST; 2]);
    }
}
