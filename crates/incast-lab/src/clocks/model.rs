//! The probe-only model: clocks, paths with queues, and what coded probes between two hosts read.
//!
//! There are no packets of anybody else: what they do to probes is drawn. Every draw comes from a stream of (seed,
//! purpose, host or path and window), so that adding hosts' peers, windows or methods disturbs no other draw.

use super::{NoiseShape, SyncSettings};
use incast_cc::clock::{CodedPair, Probe};
use incast_sim::engine::random::Stream;

/// What a stream is for; numbers from 0x2000 on belong to clocks.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Purpose {
    /// Offset and drift of a host.
    Clock = 0x2000,
    /// Peers of all hosts.
    Graph = 0x2001,
    /// Delay and business of a path.
    Path = 0x2002,
    /// Queues, noise and phase of the probes of a path and window.
    Probes = 0x2003,
}

/// A clock that runs at a constant rate: at time t it reads `t + offset + drift × t`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Clock {
    pub offset_ps: f64,
    /// Seconds per second.
    pub drift: f64,
}

impl Clock {
    fn reads(&self, time_ps: i64, noise_ps: f64) -> i64 {
        let error = self.offset_ps + self.drift * time_ps as f64 + noise_ps;
        time_ps.saturating_add(error.round() as i64)
    }

    /// How much it is ahead of `other` when that one reads `reading_ps`, in picoseconds.
    pub fn ahead_of(&self, other: &Self, reading_ps: f64) -> f64 {
        let time = (reading_ps - other.offset_ps) / (1.0 + other.drift);
        (self.offset_ps - other.offset_ps) + (self.drift - other.drift) * time
    }
}

/// The hosts' clocks, each drawn uniformly within the settings' limits.
pub(super) fn clocks(settings: &SyncSettings) -> Vec<Clock> {
    let clock = |host: usize| {
        let mut stream = Stream::new(settings.seed, Purpose::Clock as u32, host as u64);
        Clock {
            offset_ps: settings.offset.ps() as f64 * (2.0 * stream.uniform() - 1.0),
            drift: settings.drift_ppm * 1e-6 * (2.0 * stream.uniform() - 1.0),
        }
    };
    (0..settings.hosts).map(clock).collect()
}

/// Who probes whom: each host draws its peers, and a pair that draws each other probes once. Pairs have the lower host
/// first and are sorted. The settings' asymmetric link is always among them.
///
/// A draw that leaves the hosts unconnected, which is likely for one peer each, is repeated: `attempt` numbers the
/// draws.
pub(super) fn pairs(settings: &SyncSettings, attempt: u64) -> Vec<(usize, usize)> {
    let mut stream = Stream::new(settings.seed, Purpose::Graph as u32, attempt);
    let mut pairs = Vec::with_capacity(settings.hosts * settings.peers + 1);
    for host in 0..settings.hosts {
        let mut others: Vec<usize> = (0..settings.hosts).filter(|other| *other != host).collect();
        for index in 0..settings.peers.min(others.len()) {
            let drawn = index + stream.below((others.len() - index) as u64) as usize;
            others.swap(index, drawn);
            pairs.push((host.min(others[index]), host.max(others[index])));
        }
    }
    if let Some(link) = settings.asymmetric {
        pairs.push((link.from.min(link.to), link.from.max(link.to)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
struct Direction {
    delay_ps: f64,
    /// Share of the probes that find a queue.
    busy: f64,
}

/// The coded pairs between two hosts within a window: first those from `a` to `b`, then those back.
pub(super) fn probes(
    settings: &SyncSettings,
    clocks: &[Clock],
    (a, b): (usize, usize),
    window: u64,
) -> [Vec<CodedPair>; 2] {
    let id = ((a as u64) << 32) | b as u64;
    let mut stream = Stream::new(settings.seed, Purpose::Path as u32, id);
    // The same in both directions.
    let delay_ps = settings.delay.ps() as f64 * (0.5 + stream.uniform());
    // Within 0 and 1 around the mean, and different there and back: load is seldom symmetric.
    let spread = settings.busy.min(1.0 - settings.busy);
    [(a, b), (b, a)].map(|(from, to)| {
        let busy = settings.busy + spread * (2.0 * stream.uniform() - 1.0);
        let extra = settings.asymmetric.filter(|link| (link.from, link.to) == (from, to));
        let delay_ps = delay_ps + extra.map_or(0.0, |link| link.extra.ps() as f64);
        // Hosts are below 2¹⁶ and windows below 2³².
        let owner = ((from as u64) << 48) | ((to as u64) << 32) | window;
        let mut stream = Stream::new(settings.seed, Purpose::Probes as u32, owner);
        one_way(settings, [clocks[from], clocks[to]], Direction { delay_ps, busy }, window, &mut stream)
    })
}

fn one_way(
    settings: &SyncSettings,
    [sender, receiver]: [Clock; 2],
    direction: Direction,
    window: u64,
    stream: &mut Stream,
) -> Vec<CodedPair> {
    let (interval, gap) = (settings.interval.ps() as i64, settings.gap.ps() as i64);
    let start = window as i64 * settings.window.ps() as i64;
    let end = start + settings.window.ps() as i64;
    let mean_ps = settings.queueing.ps() as f64;
    let mut noise = Noise::new(settings);
    let mut pairs = Vec::with_capacity((settings.window.ps() / settings.interval.ps()) as usize + 1);
    let mut sent = start + (stream.uniform() * interval as f64) as i64;
    while sent + gap < end {
        let mut waits = [0.0; 2];
        waits[0] = wait(stream, direction.busy, mean_ps);
        // Behind the first probe, what it found has drained for the gap, and others may have come in between.
        let left = (waits[0] - gap as f64).max(0.0);
        waits[1] = left + wait(stream, direction.busy, mean_ps);
        let mut probe = |sent: i64, wait: f64| {
            let received = sent + (direction.delay_ps + wait).round() as i64;
            Probe {
                // A late reading of what is sent and of what is received have opposite signs.
                sent_ps: sender.reads(sent, -noise.draw(stream)),
                received_ps: receiver.reads(received, noise.draw(stream)),
            }
        };
        pairs.push(CodedPair { first: probe(sent, waits[0]), second: probe(sent + gap, waits[1]) });
        sent += interval;
    }
    pairs
}

fn wait(stream: &mut Stream, busy: f64, mean_ps: f64) -> f64 {
    if stream.uniform() < busy { stream.exponential(mean_ps) } else { 0.0 }
}

/// Timestamp noise.
struct Noise {
    shape: NoiseShape,
    scale_ps: f64,
    /// Normal numbers come in twos.
    spare: Option<f64>,
}

impl Noise {
    fn new(settings: &SyncSettings) -> Self {
        Self { shape: settings.noise_shape, scale_ps: settings.noise.ps() as f64, spare: None }
    }

    /// How late a reading is, in picoseconds.
    fn draw(&mut self, stream: &mut Stream) -> f64 {
        if self.scale_ps == 0.0 {
            return 0.0;
        }
        self.scale_ps
            * match self.shape {
                NoiseShape::Normal => self.normal(stream),
                NoiseShape::Uniform => 2.0 * stream.uniform() - 1.0,
                NoiseShape::Exponential => stream.exponential(1.0),
            }
    }

    /// Source: G. Marsaglia, T. Bray, "A Convenient Method for Generating Normal Variables", SIAM Review 6(3), 1964.
    fn normal(&mut self, stream: &mut Stream) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * stream.uniform() - 1.0, 2.0 * stream.uniform() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(v * factor);
                return u * factor;
            }
        }
    }
}
