//! The nominal load of links: what the workloads of a scenario put on them on average, headers included.

use super::traffic::Traffic;
use crate::scenario::tree::error::Problem;
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
    /// With this warm-up flows have to arrive for so long that the backlog of every link is close to that of a steady
    /// state, on average over the counted time; at most [`LONGEST`]. `None` if there is none, as the load is 1 or more.
    pub settles: Option<Time>,
    /// Classes that have no nominal load, as their flows are a batch, a list or a closed loop.
    pub without: Vec<String>,
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
///
/// # Errors
/// It is above 1, and no workload says that this is wanted.
pub fn nominal(
    traffic: &Traffic,
    topology: &Topology,
    classes: &[ClassConfig],
    mtu: u32,
    wire: Wire,
    warmup: Time,
) -> Result<Option<Nominal>, Problem> {
    let Some(last) = traffic.steady.last() else { return Ok(None) };
    // Of each link and direction: bits per second, and the rate at which their variance grows.
    let mut total = vec![[(0.0, 0.0); 2]; topology.cables.len()];
    for steady in &traffic.steady {
        let overhead = overhead(&steady.sizes, &classes[usize::from(steady.class)], mtu, wire);
        for (sums, loads) in total.iter_mut().zip(&steady.loads) {
            for ((bits, variance), load) in sums.iter_mut().zip(loads) {
                *bits += load * overhead;
                *variance += load * overhead * overhead * steady.burst * 8.0;
            }
        }
    }
    let links = total.iter().enumerate().flat_map(|(cable, both)| {
        let rate = topology.cables[cable].link.rate.as_f64();
        both.iter().map(move |(bits, variance)| (cable, bits / rate, variance / (rate * rate)))
    });
    let Some((cable, load, _)) = links.clone().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
    let link = topology.cable_name(cable).unwrap_or_default();
    if load > 1.0 + 1e-9 && traffic.steady.iter().all(|steady| !steady.overload) {
        let together = if traffic.steady.len() > 1 { " with all workloads together" } else { "" };
        let found = format!("a load of {load:.4} on {link}{together}, headers included");
        let allowed = "at most 1 on every link (more with overload = true)";
        return Err(Problem::value(found, allowed).at(&last.key));
    }
    let settles = (load < 1.0).then(|| {
        let unit = links.map(|(_, load, variance)| variance / ((1.0 - load) * (1.0 - load))).fold(0.0, f64::max);
        settles(unit, warmup)
    });
    let without =
        traffic.classes.iter().zip(0..).filter(|(_, class)| traffic.steady.iter().all(|steady| steady.class != *class));
    Ok(Some(Nominal { load, link, settles, without: without.map(|(name, _)| name.clone()).collect() }))
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
