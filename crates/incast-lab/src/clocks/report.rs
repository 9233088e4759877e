//! Methods side by side, window by window.

use super::{Method, Net, SyncError, SyncSettings};
use serde::Serialize;

/// Errors of the hosts' clocks in one window by one method, in nanoseconds; host 0, the reference, is not counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which method.
    pub method: Method,
    /// Which window, from 1; `None` for all of them pooled.
    pub window: Option<u32>,
    /// Mean size of the error when the window ends.
    pub mean_ns: f64,
    /// 99th percentile (nearest rank).
    pub p99_ns: f64,
    /// Largest.
    pub max_ns: f64,
    /// The same at the end of the next window, by the line of this one: what clocks have come to before the next
    /// correction.
    pub next_mean_ns: f64,
    /// 99th percentile of those.
    pub next_p99_ns: f64,
    /// Largest of those.
    pub next_max_ns: f64,
}

/// A link that was named asymmetric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    /// The host that sends in the slower direction.
    pub from: usize,
    /// The host that receives there.
    pub to: usize,
    /// The windows in which it was named, from 1.
    pub windows: Vec<u32>,
    /// Mean of the estimates of how much longer that direction takes, in nanoseconds.
    pub extra_ns: f64,
    /// Mean of its studentised residuals.
    pub deviations: f64,
}

/// What came of all windows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Synchronisation {
    /// Hosts.
    pub hosts: usize,
    /// Pairs of hosts that probe each other.
    pub links: usize,
    /// The guard that coded pairs met, in nanoseconds.
    pub guard_ns: f64,
    /// Share of the coded pairs that kept their gap.
    pub accepted: f64,
    /// For each method its windows and then all of them.
    pub rows: Vec<Row>,
    /// The links that were named, most often named first.
    pub asymmetric: Vec<Named>,
}

/// Probes for all windows and compares the methods. The same settings always give the same.
pub fn synchronise(settings: &SyncSettings) -> Result<Synchronisation, SyncError> {
    let net = Net::new(settings)?;
    let length_ps = settings.window.ps() as f64;
    // For each method and window: errors at the end, and one window later.
    let mut errors: Vec<Vec<[Vec<f64>; 2]>> = vec![Vec::new(); Method::ALL.len()];
    let mut asymmetric: Vec<Named> = Vec::new();
    let (mut accepted, mut sent) = (0, 0);
    for window in 0..settings.windows {
        let measured = net.measure(u64::from(window), &Method::ALL)?;
        accepted += measured.accepted;
        sent += measured.sent;
        for (method, errors) in Method::ALL.iter().zip(&mut errors) {
            let clocks = measured.clocks(*method);
            let at = |after_ps: f64| {
                let hosts = clocks.iter().enumerate().skip(1);
                hosts.map(|(host, line)| net.error_ns(host, line, u64::from(window), after_ps).abs()).collect()
            };
            errors.push([at(length_ps), at(2.0 * length_ps)]);
        }
        if let Some(found) = measured.asymmetry {
            let (a, b) = measured.pairs[found.edge];
            let extra_ns = found.forward_minus_reverse_ns;
            let (from, to) = if extra_ns > 0.0 { (a, b) } else { (b, a) };
            note(&mut asymmetric, from, to, window + 1, extra_ns.abs(), found.deviations);
        }
    }
    asymmetric.sort_by(|one, other| {
        other.windows.len().cmp(&one.windows.len()).then((one.from, one.to).cmp(&(other.from, other.to)))
    });
    let mut rows = Vec::new();
    for (method, windows) in Method::ALL.into_iter().zip(errors) {
        if method == Method::HuygensRepaired && asymmetric.is_empty() {
            continue;
        }
        for (window, [end, next]) in (1..).zip(&windows) {
            rows.push(row(method, Some(window), end.clone(), next.clone()));
        }
        let pooled = |index: usize| windows.iter().flat_map(|window| window[index].iter().copied()).collect();
        rows.push(row(method, None, pooled(0), pooled(1)));
    }
    Ok(Synchronisation {
        hosts: settings.hosts,
        links: net.pairs.len(),
        guard_ns: settings.guard().ps() as f64 / 1e3,
        accepted: accepted as f64 / sent.max(1) as f64,
        rows,
        asymmetric,
    })
}

/// Adds a window to what is known of a link; estimates are kept as means.
fn note(all: &mut Vec<Named>, from: usize, to: usize, window: u32, extra_ns: f64, deviations: f64) {
    match all.iter_mut().find(|named| (named.from, named.to) == (from, to)) {
        Some(named) => {
            named.windows.push(window);
            let count = named.windows.len() as f64;
            named.extra_ns += (extra_ns - named.extra_ns) / count;
            named.deviations += (deviations - named.deviations) / count;
        }
        None => all.push(Named { from, to, windows: vec![window], extra_ns, deviations }),
    }
}

fn row(method: Method, window: Option<u32>, end: Vec<f64>, next: Vec<f64>) -> Row {
    let [mean_ns, p99_ns, max_ns] = statistics(end);
    let [next_mean_ns, next_p99_ns, next_max_ns] = statistics(next);
    Row { method, window, mean_ns, p99_ns, max_ns, next_mean_ns, next_p99_ns, next_max_ns }
}

/// Mean, 99th percentile by nearest rank, and maximum. There are always two hosts, so at least one error.
fn statistics(mut errors: Vec<f64>) -> [f64; 3] {
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    errors.sort_by(f64::total_cmp);
    let rank = (errors.len() * 99).div_ceil(100).max(1);
    [mean, errors[rank - 1], errors[errors.len() - 1]]
}
