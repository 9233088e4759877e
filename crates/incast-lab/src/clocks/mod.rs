//! How well clocks agree after Huygens or two-way averaging, in a model of probes alone (`docs/clocks.md`).
//!
//! Hosts have clocks with offset, drift and timestamp noise; a random graph of them exchanges coded probes through
//! paths with queues; each window of probes gives an estimate of all clocks. [`synchronise`] compares methods window by
//! window, and [`residuals`] is what a packet-level run starts with.

mod model;
mod report;

use incast_cc::clock::{self, CodedPair, Edge, Graph, GraphError, Line, Point, Probe, coded, two_way};
use incast_units::Time;
use model::Clock;
use serde::Serialize;
use thiserror::Error;

pub use report::{Named, Row, Synchronisation, synchronise};

/// How clocks are estimated from probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Huygens: coded probes, envelopes, loop correction.
    Huygens,
    /// Huygens after leaving out the link that was found to be asymmetric. Ours.
    HuygensRepaired,
    /// Huygens without loop correction: along a shortest path to the reference.
    HuygensTree,
    /// Mean of all two-way exchanges, along a shortest path to the reference, as NTP's strata.
    TwoWayAverage,
    /// The fastest two-way exchange of each eighth of the window, along a shortest path to the reference.
    TwoWayMinimum,
}

impl Method {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::Huygens, Self::HuygensRepaired, Self::HuygensTree, Self::TwoWayAverage, Self::TwoWayMinimum];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Huygens => "huygens",
            Self::HuygensRepaired => "huygens-repaired",
            Self::HuygensTree => "huygens-tree",
            Self::TwoWayAverage => "two-way-average",
            Self::TwoWayMinimum => "two-way-minimum",
        }
    }
}

/// How timestamp noise is distributed around a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseShape {
    /// Normal; `noise` is its standard deviation.
    #[default]
    Normal,
    /// Uniform within plus and minus `noise`.
    Uniform,
    /// Packets seem to be sent earlier and received later, by an exponential time with mean `noise`: a host's software.
    Exponential,
}

/// A link that takes longer in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsymmetricLink {
    /// The host that sends in the slow direction.
    pub from: usize,
    /// The host that receives there.
    pub to: usize,
    /// How much longer it takes than the reverse path.
    pub extra: Time,
}

/// Clocks, paths, probes and estimators.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncSettings {
    /// Hosts, 2 to 1,024.
    pub hosts: usize,
    /// Peers that each host draws, 1 to `hosts` − 1; more when others draw it. Huygens: 10 to 20.
    pub peers: usize,
    /// Initial offsets are uniform within plus and minus this.
    pub offset: Time,
    /// Drifts are uniform within plus and minus this many ppm. Huygens: typically 5 to 10, up to 30.
    pub drift_ppm: f64,
    /// Size of the error of each timestamp.
    pub noise: Time,
    /// Its distribution.
    pub noise_shape: NoiseShape,
    /// Mean propagation delay; each path's is uniform from half to one and a half of it, the same in both directions.
    pub delay: Time,
    /// Mean share of the probes that find a queue; each path and direction has its own, around it.
    pub busy: f64,
    /// Mean of the exponential queueing delay of those.
    pub queueing: Time,
    /// Distance of the two packets of a coded pair. Huygens: 10 us.
    pub gap: Time,
    /// A pair is accepted if its gap changed by less than this; `None` is [`SyncSettings::guard`]'s formula.
    pub guard: Option<Time>,
    /// Distance of coded pairs on each path and direction.
    pub interval: Time,
    /// Probes of this long make an estimate. Huygens: 2 s.
    pub window: Time,
    /// How many windows there are.
    pub windows: u32,
    /// Share of each cloud that makes its edge; 0 is a hard margin.
    pub soft: f64,
    /// Standard deviations at which a link is named asymmetric.
    pub threshold: f64,
    /// A link that is slower in one direction.
    pub asymmetric: Option<AsymmetricLink>,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            hosts: 32,
            peers: 10,
            offset: Time::from_ms(1),
            drift_ppm: 10.0,
            noise: Time::from_us(1),
            noise_shape: NoiseShape::Normal,
            delay: Time::from_us(5),
            busy: 0.3,
            queueing: Time::from_us(10),
            gap: Time::from_us(10),
            guard: None,
            interval: Time::from_us(250),
            window: Time::from_ms(2_000),
            windows: 5,
            soft: 0.1,
            threshold: 6.0,
            asymmetric: None,
            seed: 1,
        }
    }
}

/// Why clocks cannot be synchronised.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SyncError {
    /// A setting is out of its range.
    #[error("{key}: {message}")]
    Setting {
        /// The setting, as the command has it.
        key: &'static str,
        /// What was found and what is allowed.
        message: String,
    },
    /// No draw of the probe graph was connected.
    #[error("peers: {peers} for each of {hosts} hosts left some of them unconnected in 100 draws; use more")]
    Unconnected {
        /// Peers that each host draws.
        peers: usize,
        /// Hosts.
        hosts: usize,
    },
    /// Too few probes survived the guard.
    #[error("window {window}: too few coded pairs of host {host} were accepted; widen the guard or probe more often")]
    Unobserved {
        /// The window, from 1.
        window: u64,
        /// The first host whose clock is unknown.
        host: usize,
    },
}

impl SyncSettings {
    /// The most hosts, because factors are dense and probes of all pairs are kept for a moment.
    pub const MOST_HOSTS: usize = 1_024;
    /// The most coded pairs of a path in one window and direction.
    pub const MOST_PAIRS: u64 = 1_000_000;

    /// The guard of coded pairs. By default `2 × noise + 50 ns`: a gap has the noise of four timestamps, so that this
    /// is its standard deviation if noise is normal, and 50 ns are what gaps change by themselves.
    pub fn guard(&self) -> Time {
        self.guard.unwrap_or_else(|| self.noise.saturating_mul(2).saturating_add(Time::from_ns(50)))
    }

    /// Checks ranges.
    pub fn check(&self) -> Result<(), SyncError> {
        let rule = |holds: bool, key: &'static str, found: String, allowed: &str| {
            if holds {
                Ok(())
            } else {
                Err(SyncError::Setting { key, message: format!("found {found}, allowed is {allowed}") })
            }
        };
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let hosts = self.hosts;
        rule((2..=Self::MOST_HOSTS).contains(&hosts), "hosts", hosts.to_string(), "2 to 1024")?;
        let peers = format!("1 to {}, the other hosts", hosts - 1);
        rule((1..hosts).contains(&self.peers), "peers", self.peers.to_string(), &peers)?;
        let second = Time::from_ms(1_000);
        for (key, time) in [
            ("offset", self.offset),
            ("noise", self.noise),
            ("delay", self.delay),
            ("queueing", self.queueing),
            ("guard", self.guard()),
        ] {
            rule(time <= second, key, time.to_string(), "at most 1s")?;
        }
        let drift = (0.0..=200.0).contains(&self.drift_ppm);
        rule(drift, "drift-ppm", self.drift_ppm.to_string(), "0 to 200")?;
        rule(share(self.busy), "busy", self.busy.to_string(), "0 to 1")?;
        rule(share(self.soft), "soft", self.soft.to_string(), "0 to 1")?;
        rule(self.guard() > Time::ZERO, "guard", self.guard().to_string(), "more than 0")?;
        rule(self.gap > Time::ZERO && self.gap <= second, "gap", self.gap.to_string(), "above 0, at most 1s")?;
        rule(self.interval > self.gap, "interval", self.interval.to_string(), "longer than the gap")?;
        let minute = Time::from_ms(60_000);
        rule(self.window <= minute, "window", self.window.to_string(), "at most 60s")?;
        let pairs = self.window.ps() / self.interval.ps();
        let enough = (16..=Self::MOST_PAIRS).contains(&pairs);
        rule(enough, "interval", self.interval.to_string(), "16 to 1000000 intervals in a window")?;
        rule((1..=1_000).contains(&self.windows), "windows", self.windows.to_string(), "1 to 1000")?;
        rule(self.threshold > 0.0, "threshold", self.threshold.to_string(), "above 0")?;
        if let Some(link) = self.asymmetric {
            let (from, to) = (link.from, link.to);
            let known = from < hosts && to < hosts && from != to;
            let allowed = format!("two different hosts of 0 to {}", hosts - 1);
            rule(known, "asymmetric", format!("{from}-{to}"), &allowed)?;
            rule(link.extra <= second, "asymmetric", link.extra.to_string(), "at most 1s")?;
        }
        Ok(())
    }
}

/// What synchronisation leaves of a host's clock: it reads `offset_ps` more than the reference, host 0, and gains
/// `drift_ppm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Residual {
    /// True clock minus estimated clock at the end of the last window, in picoseconds; positive if the corrected clock
    /// is ahead of host 0's.
    pub offset_ps: i64,
    /// What is left of the rates' difference, in ppm.
    pub drift_ppm: f64,
}

/// The clocks of a packet-level run that begins when the last of the settings' windows ends: what `method` leaves of
/// each host's offset and drift. Host 0 is the reference and has none. The same settings always give the same.
///
/// Windows are independent, so only the last one is simulated: 8,000 coded pairs of each path and direction by default.
///
/// ```
/// use incast_lab::clocks::{Method, SyncSettings, residuals};
///
/// let settings = SyncSettings { hosts: 8, peers: 4, windows: 2, ..SyncSettings::default() };
/// let left = residuals(&settings, Method::Huygens)?;
/// assert_eq!(left.len(), 8);
/// assert!(left.iter().all(|clock| clock.offset_ps.abs() < 500_000));
/// # Ok::<(), incast_lab::clocks::SyncError>(())
/// ```
pub fn residuals(settings: &SyncSettings, method: Method) -> Result<Vec<Residual>, SyncError> {
    let net = Net::new(settings)?;
    let window = u64::from(settings.windows - 1);
    let measured = net.measure(window, &[method])?;
    let estimate = measured.clocks(method);
    let end_ps = settings.window.ps() as f64;
    let residual = |(host, line): (usize, &Line)| Residual {
        offset_ps: (net.error_ns(host, line, window, end_ps) * 1_000.0).round() as i64,
        drift_ppm: net.rate_error(host, line) * 1e6,
    };
    Ok(estimate.iter().enumerate().map(residual).collect())
}

/// The hosts of the model, and who probes whom.
struct Net<'a> {
    settings: &'a SyncSettings,
    clocks: Vec<Clock>,
    pairs: Vec<(usize, usize)>,
}

/// The probes of a window.
struct Measured {
    /// The pairs whose envelope is known, and its lines.
    graph: Graph,
    envelopes: Vec<Line>,
    /// The pairs of hosts behind the graph's edges.
    pairs: Vec<(usize, usize)>,
    /// All pairs, with the requested two-way lines.
    two_way: Option<(Graph, Vec<Line>, Vec<Line>)>,
    asymmetry: Option<clock::Asymmetry>,
    accepted: u64,
    sent: u64,
}

impl<'a> Net<'a> {
    fn new(settings: &'a SyncSettings) -> Result<Self, SyncError> {
        settings.check()?;
        let connected = |pairs: &Vec<(usize, usize)>| graph(settings.hosts, pairs).is_ok();
        let unconnected = SyncError::Unconnected { peers: settings.peers, hosts: settings.hosts };
        let pairs = (0..100).map(|attempt| model::pairs(settings, attempt)).find(connected).ok_or(unconnected)?;
        Ok(Self { settings, clocks: model::clocks(settings), pairs })
    }

    /// Probes for a window, and lines of what the methods need.
    fn measure(&self, window: u64, methods: &[Method]) -> Result<Measured, SyncError> {
        let settings = self.settings;
        let start_ps = window as i64 * settings.window.ps() as i64;
        let guard_ps = settings.guard().ps() as i64;
        let wants_two_way = methods.iter().any(|m| matches!(m, Method::TwoWayAverage | Method::TwoWayMinimum));
        let wants_envelopes = methods.iter().any(|m| !matches!(m, Method::TwoWayAverage | Method::TwoWayMinimum));
        let (mut envelopes, mut known) = (Vec::new(), Vec::new());
        let (mut averages, mut minima) = (Vec::new(), Vec::new());
        let (mut accepted, mut sent) = (0, 0);
        for pair in &self.pairs {
            let [there, back] = model::probes(settings, &self.clocks, *pair, window);
            if wants_two_way {
                let exchanges = two_way::exchanges(&first_packets(&there), &first_packets(&back));
                // At least 16 pairs in each direction make more than two exchanges at different times.
                averages.push(two_way::average(&exchanges, start_ps).unwrap_or_default());
                minima.push(two_way::fastest(&exchanges, 8, start_ps).unwrap_or_default());
            }
            if wants_envelopes {
                let upper: Vec<Point> =
                    coded::accepted(&there, guard_ps).map(|probe| Point::forward(probe, start_ps)).collect();
                let lower: Vec<Point> =
                    coded::accepted(&back, guard_ps).map(|probe| Point::reverse(probe, start_ps)).collect();
                sent += (there.len() + back.len()) as u64;
                accepted += (upper.len() + lower.len()) as u64 / 2;
                if let Some(found) = clock::envelope(&upper, &lower, settings.soft) {
                    envelopes.push(found.line);
                    known.push(*pair);
                }
            }
        }
        if !wants_envelopes {
            known.clone_from(&self.pairs);
        }
        let unobserved = |error: GraphError| {
            let host = if let GraphError::Disconnected { node } = error { node } else { 0 };
            SyncError::Unobserved { window: window + 1, host }
        };
        let known_graph = graph(settings.hosts, &known).map_err(unobserved)?;
        let two_way = if wants_two_way {
            Some((graph(settings.hosts, &self.pairs).map_err(unobserved)?, averages, minima))
        } else {
            None
        };
        let asymmetry = wants_envelopes.then(|| self.asymmetry(&known_graph, &envelopes)).flatten();
        Ok(Measured { graph: known_graph, envelopes, pairs: known, two_way, asymmetry, accepted, sent })
    }

    /// Judged in the middle of the window, where lines are known best.
    fn asymmetry(&self, graph: &Graph, lines: &[Line]) -> Option<clock::Asymmetry> {
        let clocks = graph.clocks(lines, true);
        let middle_ns = self.settings.window.ps() as f64 / 2e3;
        let differences: Vec<f64> =
            graph.seen_from_reference(lines, &clocks).iter().map(|line| line.at(middle_ns)).collect();
        clock::asymmetry(graph, &differences, self.settings.threshold)
    }

    /// True clock minus estimated clock of a host, in nanoseconds, when the reference reads `after_ps` past the start
    /// of the window.
    fn error_ns(&self, host: usize, estimate: &Line, window: u64, after_ps: f64) -> f64 {
        let reading_ps = window as f64 * self.settings.window.ps() as f64 + after_ps;
        self.clocks[host].ahead_of(&self.clocks[0], reading_ps) / 1e3 - estimate.at(after_ps / 1e3)
    }

    /// True rate minus estimated rate of a host over the reference, in seconds per second.
    fn rate_error(&self, host: usize, estimate: &Line) -> f64 {
        let (own, reference) = (self.clocks[host].drift, self.clocks[0].drift);
        (own - reference) / (1.0 + reference) - estimate.rate
    }
}

impl Measured {
    /// How much each host's clock is ahead of host 0's, as a method has it.
    fn clocks(&self, method: Method) -> Vec<Line> {
        match (method, &self.two_way) {
            (Method::TwoWayAverage, Some((graph, averages, _))) => graph.clocks(averages, false),
            (Method::TwoWayMinimum, Some((graph, _, minima))) => graph.clocks(minima, false),
            (Method::HuygensTree, _) => self.graph.clocks(&self.envelopes, false),
            (Method::HuygensRepaired, _) => self.repaired().unwrap_or_else(|| self.graph.clocks(&self.envelopes, true)),
            _ => self.graph.clocks(&self.envelopes, true),
        }
    }

    /// The clocks without the link that is asymmetric, if there is one. It is in a loop, or it would not have been
    /// named.
    fn repaired(&self) -> Option<Vec<Line>> {
        let named = self.asymmetry?.edge;
        let (mut edges, mut lines) = (self.graph.edges().to_vec(), self.envelopes.clone());
        edges.remove(named);
        lines.remove(named);
        Graph::new(self.graph.nodes(), edges).ok().map(|graph| graph.clocks(&lines, true))
    }
}

fn first_packets(pairs: &[CodedPair]) -> Vec<Probe> {
    pairs.iter().map(|pair| pair.first).collect()
}

fn graph(hosts: usize, pairs: &[(usize, usize)]) -> Result<Graph, GraphError> {
    let edge = |(a, b): &(usize, usize)| Edge { a: *a, b: *b, weight: 1.0 };
    Graph::new(hosts, pairs.iter().map(edge).collect())
}

#[cfg(test)]
mod tests;
