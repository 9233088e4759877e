//! Calibration traces: open-loop traffic over one bottleneck, observed once per round trip.
//!
//! Flows are a few packets long and leave at once, whatever feedback there is: under a closed loop the load would
//! hardly ever exceed 1, and f could not be seen there. Host links are twice as fast as the bottleneck, so that a
//! single sender can overload it.

use incast_cc::{
    Path,
    law::{Framing, Recovery},
    parameters::Raw,
    path::DEFAULT_RTO_MIN,
    registry::{LawParameters, UnderlayParameters},
};
use incast_sim::{
    Config, ConfigError, FlowSpec, base_path_of,
    config::{ClassConfig, Ecn, HostConfig, Probes, Size, SwitchConfig, Ties, Wire},
    engine::random::Stream,
    fabric::format::Format,
    simulate,
    topology::{Dumbbell, Link, Topology},
};
use incast_units::{Bytes, Rate, Time};

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// Delay of each of the three links of the path.
    pub delay: Time,
    /// Payload bytes of a packet.
    pub mtu: u32,
    /// Packets of a burst; bursts arrive as a Poisson process at each sender.
    pub burst: u32,
    /// Round trips observed at each point.
    pub rtts: u32,
    /// Offered loads.
    pub loads: Vec<f64>,
    /// Numbers of senders.
    pub senders: Vec<u32>,
    /// Marking thresholds in BDP of the bottleneck.
    pub thresholds: Vec<f64>,
    /// Seed of the arrivals.
    pub seed: u64,
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            rate: Rate::from_gbps(100),
            delay: Time::from_ns(1500),
            mtu: 1500,
            burst: 8,
            rtts: 250,
            loads: (3..=15).map(|tenths| f64::from(tenths) / 10.0).collect(),
            senders: vec![1, 2, 4, 8, 16, 32],
            thresholds: vec![0.1, 0.2, 0.5],
            seed: 1,
        }
    }
}

/// One point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Offered load.
    pub load: f64,
    /// Senders.
    pub senders: u32,
    /// Marking threshold in BDP.
    pub threshold: f64,
}

/// What the bottleneck saw in one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Share of the packets that were marked.
    pub share: f64,
    /// Bytes that arrived, over rate times round-trip time.
    pub load: f64,
    /// Bytes that arrived: the weight.
    pub bytes: f64,
}

/// Round trips at the start of a run that are not counted: the queue starts empty.
const WARM_UP: u64 = 10;
/// Purpose of the streams of arrivals, beside those of workloads.
const ARRIVALS: u32 = 0x1100;

/// Frames of the sources. Their acknowledgements have the 12 bytes of a SACK block, as when the table was made that kernels are
/// built with: a sweep of the same numbers gives that table.
fn format() -> Format {
    let tcp = Format::of(Framing::Tcp);
    Format { control: tcp.control + 12, blocks: false, ..tcp }
}

impl Sweep {
    /// Every combination, in a fixed order.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for &senders in &self.senders {
            for &threshold in &self.thresholds {
                points.extend(self.loads.iter().map(|&load| Point { load, senders, threshold }));
            }
        }
        points
    }

    /// Simulates one point.
    ///
    /// # Errors
    /// Values that no network can have.
    pub fn run(&self, point: &Point) -> Result<Vec<Sample>, ConfigError> {
        let bottleneck = Link { rate: self.rate, delay: self.delay, loss: 0.0 };
        let host_link = Link { rate: Rate::from_bps(self.rate.bps().saturating_mul(2)), ..bottleneck };
        let dumbbell = Dumbbell { left: point.senders, right: 1, host_link, bottleneck };
        let topology =
            dumbbell.build().map_err(|error| ConfigError::value("the fabric of the sweep", error, "a network"))?;
        let port = topology
            .find_port("s0->s1")
            .ok_or_else(|| ConfigError::value("the fabric of the sweep", "no port s0->s1", "a dumbbell"))?;
        let path = self.path(&topology);
        let rtt = path.base_rtt;
        let end = rtt.saturating_mul(u64::from(self.rtts) + WARM_UP);
        let flows = self.flows(point, path.wire_mss, end);
        // A window that nothing ever limits: DCTCP's, whose packets can be marked.
        let endless = || Raw::Text("1000GB".to_owned());
        let given = [("initial_window".to_owned(), endless()), ("min_window".to_owned(), endless())];
        let law = match LawParameters::resolve("dctcp", &path, &given) {
            Some(Ok(law)) => law,
            Some(Err(error)) => {
                return Err(ConfigError::value("the sources' law", error, "dctcp"));
            }
            None => return Err(ConfigError::value("the sources' law", "none", "dctcp")),
        };
        let at = self.rate.bytes_in(rtt).get() as f64 * point.threshold;
        let outcome = simulate(Config {
            topology,
            switch: SwitchConfig { ecn: Ecn::Step { at: Size::Bytes(at as u64) }, ..SwitchConfig::plain() },
            // Nothing is lost, so nothing may be sent twice, however long the queue.
            host: HostConfig { rto_min: Time::from_ms(60_000), ..HostConfig::plain(self.mtu) },
            classes: vec![ClassConfig {
                name: "open".into(),
                law,
                law_at: Vec::new(),
                recovery: Recovery::GoBackN,
                format: format(),
                priority: 0,
                ack_priority: None,
                notification_priority: 0,
                underlay: UnderlayParameters::None,
                scheduler: None,
                trimmable: false,
            }],
            flows,
            applications: Vec::new(),
            link_events: Vec::new(),
            clocks: Vec::new(),
            probes: Probes { ports: Some((rtt, vec![port])), ..Probes::default() },
            seed: self.seed,
            end,
            threads: 1,
            ties: Ties::Seeded,
            wire: Wire::default(),
        })?;
        // Bytes on the wire have preamble and gap, which ports do not count.
        let frame = f64::from(path.wire_mss - incast_sim::packet::GAP);
        let capacity = self.rate.bytes_in(rtt).get() as f64 * frame / f64::from(path.wire_mss);
        let samples = outcome.ports.windows(2).skip(WARM_UP as usize).filter_map(|pair| {
            let arrived = |sample: &incast_sim::outcome::PortSample| (sample.tx_bytes + sample.queue_bytes) as f64;
            let bytes = arrived(&pair[1]) - arrived(&pair[0]);
            let packets = bytes / frame;
            let marked = (pair[1].marks - pair[0].marks) as f64;
            (packets >= 1.0).then(|| Sample { share: (marked / packets).min(1.0), load: bytes / capacity, bytes })
        });
        Ok(samples.collect())
    }

    /// Bursts of each sender as a Poisson process of its own.
    fn flows(&self, point: &Point, wire_mss: u32, end: Time) -> Vec<FlowSpec> {
        let burst = self.rate.time_of(Bytes::new(u64::from(self.burst) * u64::from(wire_mss)));
        let gap = burst.ps() as f64 * f64::from(point.senders) / point.load;
        let mut flows = Vec::new();
        for source in 0..point.senders {
            // The same arrivals, closer together, at every load: points differ by what they are about.
            let mut stream = Stream::new(self.seed, ARRIVALS, u64::from(source) << 32 | u64::from(point.senders));
            let mut now = 0u64;
            loop {
                now = now.saturating_add(stream.exponential(gap).round() as u64);
                if now >= end.ps() {
                    break;
                }
                flows.push(FlowSpec {
                    start: Time::from_ps(now),
                    source,
                    destination: point.senders,
                    bytes: u64::from(self.burst) * u64::from(self.mtu),
                    class: 0,
                    request: FlowSpec::NO_REQUEST,
                    pinned: None,
                });
            }
        }
        flows
    }

    fn path(&self, topology: &Topology) -> Path {
        base_path_of(topology, self.mtu, DEFAULT_RTO_MIN, &format(), incast_sim::packet::GAP)
    }

    /// Base round-trip time of the fabric.
    pub fn base_rtt(&self) -> Option<Time> {
        let bottleneck = Link { rate: self.rate, delay: self.delay, loss: 0.0 };
        let host_link = Link { rate: Rate::from_bps(self.rate.bps().saturating_mul(2)), ..bottleneck };
        let topology: Topology = Dumbbell { left: 1, right: 1, host_link, bottleneck }.build().ok()?;
        Some(self.path(&topology).base_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_load_is_what_arrives_even_above_one() {
        let sweep = Sweep { rtts: 400, ..Sweep::default() };
        for (load, senders) in [(0.5, 1), (0.5, 8), (1.4, 1), (1.4, 32)] {
            let samples = sweep.run(&Point { load, senders, threshold: 0.2 }).expect("simulated");
            assert!(samples.len() >= 380, "{}", samples.len());
            let mean = samples.iter().map(|sample| sample.load).sum::<f64>() / samples.len() as f64;
            assert!((mean / load - 1.0).abs() < 0.06, "{load} with {senders} senders: {mean}");
            let marked = samples.iter().map(|sample| sample.share).sum::<f64>() / samples.len() as f64;
            assert!(if load > 1.0 { marked > 0.9 } else { marked < 0.2 }, "{load}: {marked}");
        }
    }
}
