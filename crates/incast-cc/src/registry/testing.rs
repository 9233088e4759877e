//! A path small enough to check by hand: one sender, one bottleneck, a constant delay. It drives any law.
//!
//! Nothing overtakes anything on it, so a gap in the acknowledgements is a loss. The sender's NIC may be faster than
//! the bottleneck. All state is in integers, so that trajectories can be compared to the last digit.

use crate::registry::{LAWS, Law, LawParameters};
use crate::{
    Cnp, Feedback, HopTelemetry, Loss, Path,
    law::Opening,
    marking::Marking,
    message::{AckTag, Body},
    parameters::Raw,
};
use incast_units::{Bytes, Rate, Time};
use proptest::prelude::*;
use std::{collections::VecDeque, fmt::Write};

#[derive(Clone, Copy, Debug)]
struct Packet {
    position: u64,
    bytes: u64,
    sent: Time,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    packet: Packet,
    arrives: Time,
    marked: bool,
    /// When the bottleneck began to send it, and what it had sent until then.
    served: Time,
    sent_before: u64,
}

/// What a flow runs through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub path: Path,
    /// Rate of the bottleneck.
    pub bottleneck: Rate,
    pub marking: Marking,
    /// Bytes that the queue holds.
    pub buffer: u64,
    /// The path drops everything from one time to the other.
    pub outage: (Time, Time),
    /// Bytes of credit that the receiver keeps ahead of what arrived.
    pub ahead: u64,
    /// Payload of the flow.
    pub flow: u64,
    /// Retransmission timeout since the last acknowledgement.
    pub rto: Time,
}

impl Scenario {
    /// A 40 Gbit/s host behind a 10 Gbit/s port, 20 us: the bottleneck's BDP is 25 KB, the host's four times that.
    pub fn datacenter() -> Self {
        let path = Path::new(Rate::from_gbps(40), Time::from_us(20), 1448, 1538);
        Self {
            path,
            bottleneck: Rate::from_gbps(10),
            marking: Marking::Off,
            buffer: u64::MAX,
            outage: (Time::MAX, Time::MAX),
            ahead: 25_000,
            flow: u64::MAX,
            rto: Time::from_us(500),
        }
    }

    /// A path of 100 ms, where CUBIC is cubic.
    pub fn wide_area() -> Self {
        let mut scenario = Self::datacenter();
        scenario.path.rate = Rate::from_bps(400_000_000);
        scenario.path.base_rtt = Time::from_ms(100);
        scenario.bottleneck = Rate::from_bps(100_000_000);
        scenario.rto = Time::from_ms(400);
        scenario
    }

    /// Resolves and starts a law on this path.
    pub fn start(&self, name: &str, given: &[(String, Raw)]) -> Run {
        let parameters = LawParameters::resolve(name, &self.path, given).expect("registered").expect("allowed");
        let law = parameters.start(&self.path, Time::ZERO, 0);
        Run { notification_interval: parameters.transport().notification_interval, ..Run::new(*self, law) }
    }
}

/// A flow under way.
pub(crate) struct Run {
    scenario: Scenario,
    law: Law,
    /// Data below this position may be sent.
    credit: u64,
    now: Time,
    /// First position never sent.
    next: u64,
    outstanding: VecDeque<Packet>,
    again: VecDeque<(u64, u64)>,
    acks: VecDeque<Ack>,
    in_flight: u64,
    /// When the NIC is free, and when the bottleneck is.
    nic_free: Time,
    port_free: Time,
    /// Bytes that went through the bottleneck.
    port_bytes: u64,
    last_sent: Time,
    last_rtt: Time,
    progress: Time,
    numbers: u64,
    notification_interval: Option<Time>,
    next_notification: Time,
    pub delivered: u64,
    pub dropped: u64,
    pub marked: u64,
    pub timeouts: u64,
}

impl Run {
    pub fn new(scenario: Scenario, law: Law) -> Self {
        Self {
            scenario,
            credit: law.unscheduled(),
            law,
            now: Time::ZERO,
            next: 0,
            outstanding: VecDeque::new(),
            again: VecDeque::new(),
            acks: VecDeque::new(),
            in_flight: 0,
            nic_free: Time::ZERO,
            port_free: Time::ZERO,
            port_bytes: 0,
            last_sent: Time::ZERO,
            last_rtt: scenario.path.base_rtt,
            progress: Time::ZERO,
            numbers: 0,
            notification_interval: None,
            next_notification: Time::ZERO,
            delivered: 0,
            dropped: 0,
            marked: 0,
            timeouts: 0,
        }
    }

    /// The law under way, and the time.
    pub fn law(&self) -> (&Law, Time) {
        (&self.law, self.now)
    }

    fn queue(&self) -> u64 {
        self.scenario.bottleneck.bytes_in(self.port_free.saturating_sub(self.now)).get()
    }

    fn mss(&self) -> u64 {
        self.scenario.path.mss.into()
    }

    fn wire(&self) -> u64 {
        self.scenario.path.wire_mss.into()
    }

    /// Position and size of what would be sent now.
    fn candidate(&self) -> Option<(u64, u64)> {
        let fresh = (self.next, self.mss().min(self.scenario.flow - self.next));
        let (position, bytes) = self.again.front().copied().unwrap_or(fresh);
        (bytes > 0 && position + bytes <= self.credit).then_some((position, bytes))
    }

    /// When the next packet may leave; [`Time::MAX`] if only an event can allow it.
    fn next_send(&self) -> Time {
        let Some((_, bytes)) = self.candidate() else { return Time::MAX };
        let window = self.law.window();
        if self.in_flight == 0 && window < bytes {
            let pause = self.last_rtt.saturating_mul(self.mss()).ps() / window;
            return (self.last_sent + Time::from_ps(pause)).max(self.nic_free).max(self.now);
        }
        if self.in_flight + bytes > window { Time::MAX } else { self.nic_free.max(self.now) }
    }

    fn send(&mut self) {
        let Some((position, bytes)) = self.candidate() else { return };
        if self.again.pop_front().is_none() {
            self.next += bytes;
        }
        let packet = Packet { position, bytes, sent: self.now, number: self.numbers };
        self.numbers += 1;
        if self.outstanding.is_empty() {
            self.progress = self.now;
        }
        self.outstanding.push_back(packet);
        self.in_flight += bytes;
        let rate = self.law.pacing_rate().unwrap_or(self.scenario.path.rate).min(self.scenario.path.rate);
        self.nic_free = self.now + rate.time_of(Bytes::new(self.wire()));
        self.last_sent = self.now;
        self.law.on_sent(self.now, bytes as u32);

        let queue = self.queue();
        let (from, to) = self.scenario.outage;
        if queue + self.wire() > self.scenario.buffer || (from..to).contains(&self.now) {
            self.dropped += 1;
            return;
        }
        let marked = self.scenario.marking.mark(queue, || 0.5);
        self.marked += u64::from(marked);
        let service = self.scenario.bottleneck.time_of(Bytes::new(self.wire()));
        let served = self.port_free.max(self.now);
        self.port_free = served + service;
        let arrives = self.port_free + (self.scenario.path.base_rtt - service);
        self.acks.push_back(Ack { packet, arrives, marked, served, sent_before: self.port_bytes });
        self.port_bytes += self.wire();
    }

    fn acknowledge(&mut self, ack: Ack) {
        let mut lost: Option<(u64, u64)> = None;
        let nothing_to_send = self.next == self.scenario.flow && self.again.is_empty();
        while let Some(first) = self.outstanding.pop_front() {
            self.in_flight -= first.bytes;
            if first.number == ack.packet.number {
                break;
            }
            self.again.push_back((first.position, first.bytes));
            let (position, bytes) = lost.unwrap_or((u64::MAX, 0));
            lost = Some((position.min(first.position), bytes + first.bytes));
        }
        self.delivered += ack.packet.bytes;
        self.progress = self.now;
        self.last_rtt = self.now - ack.packet.sent;
        let holes = self.outstanding.iter().map(|packet| packet.position);
        let acked = holes.chain(self.again.iter().map(|(position, _)| *position)).min().unwrap_or(self.next);
        self.credit = self.credit.max(ack.packet.position + ack.packet.bytes + self.scenario.ahead);
        // What came to the bottleneck before it began to send this packet, and left after it.
        let behind = self.acks.iter().take_while(|later| later.packet.sent <= ack.served).count() as u64;
        let hop = HopTelemetry {
            time: ack.served,
            sent_bytes: ack.sent_before,
            queue_bytes: (behind * self.wire()) as u32,
            rate_mbps: (self.scenario.bottleneck.bps() / 1_000_000) as u32,
        };
        self.law.on_ack(&Feedback {
            now: self.now,
            acked_bytes: ack.packet.bytes,
            telemetry: &[hop],
            packets: 1,
            marked: ack.marked.into(),
            acked,
            next: self.next,
            in_flight: self.in_flight,
            rtt: self.last_rtt,
            app_limited: self.next == self.scenario.flow,
            nothing_to_send,
            ..Feedback::default()
        });
        // The notification travels with the acknowledgement; the receiver's clock is taken to be that of its arrival.
        if let (true, Some(interval)) = (ack.marked, self.notification_interval)
            && self.now >= self.next_notification
        {
            self.next_notification = self.now + interval;
            self.law.on_cnp(self.now, &Cnp::CONGESTED);
        }
        if let Some((position, lost_bytes)) = lost {
            let (now, next, in_flight) = (self.now, self.next, self.in_flight);
            self.law.on_loss(&Loss { now, lost_bytes, position, last: position, next, in_flight, resent: None });
        }
    }

    fn time_out(&mut self) {
        assert!(self.acks.is_empty(), "the timeout of the scenario is too short");
        self.timeouts += 1;
        self.again.extend(self.outstanding.drain(..).map(|packet| (packet.position, packet.bytes)));
        self.again.make_contiguous().sort_unstable();
        self.in_flight = 0;
        self.progress = self.now;
        self.law.on_timeout(self.now, self.next);
    }

    /// Runs until `end`, and says whether anything is left to do.
    pub fn until(&mut self, end: Time) -> bool {
        loop {
            let ack = self.acks.front().map_or(Time::MAX, |ack| ack.arrives);
            let timer = self.law.next_timer();
            let timeout = if self.outstanding.is_empty() { Time::MAX } else { self.progress + self.scenario.rto };
            let send = self.next_send();
            let first = ack.min(timer).min(timeout).min(send);
            if first > end || first == Time::MAX {
                self.now = end;
                return first != Time::MAX;
            }
            self.now = first;
            if first == ack {
                if let Some(ack) = self.acks.pop_front() {
                    self.acknowledge(ack);
                }
            } else if first == timer {
                self.law.on_timer(first);
            } else if first == send {
                self.send();
            } else {
                self.time_out();
            }
        }
    }

    /// Window (or rate in Mbit/s, for a law that has one), bytes in flight and queue at 32 times, `interval` apart.
    pub fn trajectory(&mut self, interval: Time) -> String {
        let mut text = String::from("      time  window  flight   queue\n");
        for _ in 0..32 {
            self.until(self.now + interval);
            let window = self.law.window();
            let window = match self.law.pacing_rate() {
                Some(rate) => format!("{}M", rate.bps() / 1_000_000),
                None if window == u64::MAX => "-".to_owned(),
                None => window.to_string(),
            };
            let (time, in_flight, queue) = (self.now.to_string(), self.in_flight, self.queue());
            writeln!(text, "{time:>10} {window:>7} {in_flight:>7} {queue:>7}").expect("a String takes everything");
        }
        let Self { delivered, dropped, marked, timeouts, .. } = self;
        writeln!(text, "{delivered} B delivered, {dropped} packets dropped, {marked} marked, {timeouts} timeouts")
            .expect("a String takes everything");
        text
    }
}

mod golden {
    use super::*;

    fn trajectory(law: &str, given: &[(&str, Raw)], scenario: Scenario, interval: Time) -> String {
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        scenario.start(law, &given).trajectory(interval)
    }

    fn marking() -> Scenario {
        Scenario { marking: Marking::Step { at: 30_000 }, ..Scenario::datacenter() }
    }

    fn tail_drop() -> Scenario {
        Scenario { buffer: 60_000, ..Scenario::datacenter() }
    }

    fn outage() -> Scenario {
        Scenario { outage: (Time::from_us(600), Time::from_us(800)), ..tail_drop() }
    }

    #[test]
    fn dctcp() {
        insta::assert_snapshot!("dctcp_marking", trajectory("dctcp", &[], marking(), Time::from_us(50)));
        insta::assert_snapshot!("dctcp_outage", trajectory("dctcp", &[], outage(), Time::from_us(50)));
    }

    #[test]
    fn cubic() {
        insta::assert_snapshot!("cubic_tail_drop", trajectory("cubic", &[], tail_drop(), Time::from_us(200)));
        insta::assert_snapshot!("cubic_outage", trajectory("cubic", &[], outage(), Time::from_us(50)));
        let ten = [("initial_window", Raw::Text("14480B".into()))];
        let wide_area = Scenario { buffer: 1_250_000, ..Scenario::wide_area() };
        insta::assert_snapshot!("cubic_wide_area", trajectory("cubic", &ten, wide_area, Time::from_ms(500)));
    }

    #[test]
    fn bbr() {
        insta::assert_snapshot!("bbr", trajectory("bbr", &[], Scenario::datacenter(), Time::from_us(50)));
        insta::assert_snapshot!("bbr_tail_drop", trajectory("bbr", &[], tail_drop(), Time::from_us(50)));
        insta::assert_snapshot!("bbr_outage", trajectory("bbr", &[], outage(), Time::from_us(50)));
        let ten = [("initial_window", Raw::Text("14480B".into()))];
        let wide_area = Scenario::wide_area();
        insta::assert_snapshot!("bbr_wide_area", trajectory("bbr", &ten, wide_area, Time::from_ms(400)));
    }

    #[test]
    fn bbr3() {
        insta::assert_snapshot!("bbr3", trajectory("bbr3", &[], Scenario::datacenter(), Time::from_us(50)));
        insta::assert_snapshot!("bbr3_tail_drop", trajectory("bbr3", &[], tail_drop(), Time::from_us(50)));
        insta::assert_snapshot!("bbr3_outage", trajectory("bbr3", &[], outage(), Time::from_us(50)));
        let ecn = [("ecn", Raw::Flag(true))];
        insta::assert_snapshot!("bbr3_marking", trajectory("bbr3", &ecn, marking(), Time::from_us(50)));
    }

    #[test]
    fn swift() {
        insta::assert_snapshot!("swift", trajectory("swift", &[], Scenario::datacenter(), Time::from_us(50)));
        insta::assert_snapshot!("swift_outage", trajectory("swift", &[], outage(), Time::from_us(50)));
    }

    #[test]
    fn timely() {
        let scenario = Scenario::datacenter();
        insta::assert_snapshot!("timely", trajectory("timely", &[], scenario, Time::from_us(500)));
        let patched = [("variant", Raw::Text("patched".into()))];
        insta::assert_snapshot!("timely_patched", trajectory("timely", &patched, scenario, Time::from_ms(5)));
    }

    #[test]
    fn dcqcn() {
        insta::assert_snapshot!("dcqcn", trajectory("dcqcn", &[], marking(), Time::from_us(100)));
        let mellanox = [("variant", Raw::Text("mellanox".into()))];
        insta::assert_snapshot!("dcqcn_mellanox", trajectory("dcqcn", &mellanox, marking(), Time::from_us(100)));
    }

    #[test]
    fn ibcc() {
        insta::assert_snapshot!("ibcc", trajectory("ibcc", &[], marking(), Time::from_us(100)));
        let geometric = [("fill", Raw::Text("geometric".into())), ("becn", Raw::Text("ack".into()))];
        insta::assert_snapshot!("ibcc_geometric", trajectory("ibcc", &geometric, marking(), Time::from_us(100)));
    }

    #[test]
    fn hpcc() {
        let scenario = Scenario::datacenter();
        insta::assert_snapshot!("hpcc", trajectory("hpcc", &[], scenario, Time::from_us(20)));
        let lineage = [("profile", Raw::Text("hpcc-lineage".into()))];
        insta::assert_snapshot!("hpcc_lineage", trajectory("hpcc", &lineage, scenario, Time::from_us(20)));
    }

    #[test]
    fn dctcp_rate() {
        insta::assert_snapshot!("dctcp_rate", trajectory("dctcp-rate", &[], marking(), Time::from_us(50)));
    }

    /// What HPCC's simulator does, of the laws that exist otherwise too.
    #[test]
    fn lineage() {
        let lineage = [("profile", Raw::Text("hpcc-lineage".into()))];
        insta::assert_snapshot!("dcqcn_lineage", trajectory("dcqcn", &lineage, marking(), Time::from_us(100)));
        let scenario = Scenario::datacenter();
        insta::assert_snapshot!("timely_lineage", trajectory("timely", &lineage, scenario, Time::from_us(500)));
    }

    #[test]
    fn constant_window() {
        insta::assert_snapshot!("constant_window", trajectory("constant-window", &[], marking(), Time::from_us(10)));
    }

    #[test]
    fn constant_rate() {
        let half = [("rate", Raw::Text("5Gbps".into()))];
        insta::assert_snapshot!("constant_rate", trajectory("constant-rate", &half, marking(), Time::from_us(10)));
    }

    #[test]
    fn marimo() {
        let linear = ("table", Raw::Text("linear".into()));
        insta::assert_snapshot!(
            "marimo_paper",
            trajectory("marimo", std::slice::from_ref(&linear), marking(), Time::from_us(50))
        );
        let ours = [linear.clone(), ("rule", Raw::Text("settling".into()))];
        insta::assert_snapshot!("marimo_settling", trajectory("marimo", &ours, marking(), Time::from_us(50)));
        insta::assert_snapshot!("marimo_outage", trajectory("marimo", &[linear], outage(), Time::from_us(50)));
    }

    #[test]
    fn credit() {
        insta::assert_snapshot!("credit", trajectory("credit", &[], marking(), Time::from_us(10)));
    }
}

/// Alizadeh et al., SIGCOMM 2010, section 3.3, for one flow: the queue swings between K + 1 and K + 1 - A packets,
/// with A = 1/2 sqrt(2 (C RTT + K)).
#[test]
fn dctcp_keeps_the_queue_of_its_analysis() {
    let wire = 1538;
    let scenario = Scenario { marking: Marking::Step { at: 20 * wire }, ..Scenario::datacenter() };
    let mut run = scenario.start("dctcp", &[]);
    run.until(Time::from_ms(4));
    let delivered = run.delivered;
    let (mut least, mut most) = (u64::MAX, 0);
    for _ in 0..16_000 {
        run.until(run.now + Time::from_ns(1000));
        (least, most) = (least.min(run.queue()), most.max(run.queue()));
    }
    let bdp = 25_000.0 / wire as f64;
    let amplitude = 0.5 * (2.0 * (bdp + 20.0)).sqrt();
    let (least, most) = (least as f64 / wire as f64, most as f64 / wire as f64);
    assert!((20.0..=23.0).contains(&most), "{most}");
    assert!((least - (21.0 - amplitude)).abs() < 3.0, "{least}, expected {}", 21.0 - amplitude);
    let payload = 10e9 / 8.0 * 16e-3 * 1448.0 / 1538.0;
    assert!((run.delivered - delivered) as f64 > 0.999 * payload);
}

/// Whatever is lost, marked or cut off, a flow gets through.
#[test]
fn every_law_finishes_a_flow() {
    for info in LAWS {
        let scenario = Scenario {
            marking: Marking::Step { at: 30_000 },
            buffer: 60_000,
            outage: (Time::from_us(200), Time::from_us(300)),
            flow: 3_000_000,
            ..Scenario::datacenter()
        };
        let parameters = LawParameters::resolve(info.name, &scenario.path, &[]).expect("registered");
        if parameters.expect("allowed").receiver(&scenario.path).uses_tokens() {
            // There is no receiver here that would hand them out.
            continue;
        }
        let mut run = scenario.start(info.name, &[]);
        run.until(Time::from_ms(50));
        assert_eq!((run.delivered, run.in_flight), (3_000_000, 0), "{}", info.name);
        assert!(run.dropped > 0, "{}", info.name);
    }
}

/// What the outside may do to a law. Numbers are relative, so that every sequence is a possible one.
#[derive(Clone, Debug)]
enum Operation {
    Wait(u64),
    Sent {
        packets: u32,
    },
    Ack {
        packets: u32,
        marked: u32,
        cumulative: bool,
        rtt: u64,
        app_limited: bool,
        extras: Option<Extras>,
    },
    Loss {
        packets: u32,
        offset: u64,
    },
    Timeout,
    Notification {
        cnp: Cnp,
    },
    /// Of the receiver half, or of another protocol.
    Message {
        body: Body,
    },
    /// A flow that is driven by its receiver opens: before anything else, or not at all.
    Open {
        opening: Opening,
    },
    DeferredResend,
    Timer,
}

/// The optional parts of feedback.
#[derive(Clone, Debug)]
struct Extras {
    endpoint_delay: u64,
    held: u64,
    one_way_delay: i64,
    hops: Vec<(u32, u64, u32)>,
    tag: Option<AckTag>,
}

fn extras() -> impl Strategy<Value = Extras> {
    let hops = prop::collection::vec((0u32..10_000_000, 0u64..1 << 30, 1_000u32..800_000), 0..5);
    let delay = || 0u64..1 << 30;
    (delay(), delay(), -(1i64 << 40)..1 << 40, hops, any::<u16>()).prop_map(
        |(endpoint_delay, held, one_way_delay, hops, tag)| Extras {
            endpoint_delay,
            held,
            one_way_delay,
            hops,
            tag: AckTag::new(tag),
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let ack = (1u32..16, 0u32..16, any::<bool>(), 1u64..1 << 40, prop::bool::weighted(0.2), prop::option::of(extras()));
    prop_oneof![
        3 => (0u64..1 << 38).prop_map(Operation::Wait),
        6 => (1u32..64).prop_map(|packets| Operation::Sent { packets }),
        12 => ack.prop_map(|(packets, marked, cumulative, rtt, app_limited, extras)| Operation::Ack {
            packets, marked: marked.saturating_sub(8).min(packets), cumulative, rtt, app_limited, extras
        }),
        2 => (1u32..16, any::<u64>()).prop_map(|(packets, offset)| Operation::Loss { packets, offset }),
        1 => Just(Operation::Timeout),
        1 => (any::<bool>(), any::<bool>(), prop::option::of(0u64..1 << 30)).prop_map(|(congested, undetermined, window)| {
            Operation::Notification { cnp: Cnp { congested, undetermined, window } }
        }),
        5 => (0u8..5, 0u8..9, any::<[u64; 2]>()).prop_map(|(code, option, values)| {
            Operation::Message { body: Body { code, option, values } }
        }),
        1 => Just(Operation::DeferredResend),
        2 => Just(Operation::Timer),
    ]
}

fn opening() -> impl Strategy<Value = Operation> {
    (1u64..1 << 30, 1u64..400, 0u32..100_000).prop_map(|(bytes, gbps, degree)| Operation::Open {
        opening: Opening { bytes, receiver: Rate::from_gbps(gbps), degree },
    })
}

/// The least that feedback needs to be consistent: positions that only rise.
struct Model {
    law: Law,
    mss: u64,
    now: Time,
    acked: u64,
    next: u64,
    in_flight: u64,
    sent_bytes: u64,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        let now = self.now;
        match operation {
            Operation::Wait(ps) => self.now = now + Time::from_ps(*ps),
            Operation::Sent { packets } => {
                for _ in 0..*packets {
                    self.law.on_sent(now, self.mss as u32);
                    self.next += self.mss;
                    self.in_flight += self.mss;
                }
            }
            Operation::Ack { packets, marked, cumulative, rtt, app_limited, extras } => {
                let acked_bytes = (u64::from(*packets) * self.mss).min(self.in_flight);
                self.in_flight -= acked_bytes;
                if *cumulative {
                    self.acked = (self.acked + acked_bytes).min(self.next);
                }
                let hops = extras.as_ref().map_or(&[][..], |extras| &extras.hops);
                let telemetry: Vec<_> = hops
                    .iter()
                    .map(|(queue_bytes, sent, rate_mbps)| {
                        self.sent_bytes += sent;
                        let sent_bytes = self.sent_bytes;
                        HopTelemetry { time: now, sent_bytes, queue_bytes: *queue_bytes, rate_mbps: *rate_mbps }
                    })
                    .collect();
                let held = extras.as_ref().map_or(0, |extras| extras.held).min(*rtt);
                self.law.on_ack(&Feedback {
                    now,
                    acked_bytes,
                    packets: *packets,
                    marked: *marked,
                    acked: self.acked,
                    next: self.next,
                    in_flight: self.in_flight,
                    rtt: Time::from_ps(*rtt),
                    held: Time::from_ps(held),
                    app_limited: *app_limited,
                    nothing_to_send: *app_limited,
                    endpoint_delay: extras.as_ref().map(|extras| Time::from_ps(extras.endpoint_delay.min(*rtt - held))),
                    one_way_delay: extras.as_ref().map(|extras| extras.one_way_delay),
                    telemetry: &telemetry,
                    hops: extras.as_ref().map(|extras| extras.hops.len() as u8),
                    tag: extras.as_ref().and_then(|extras| extras.tag),
                });
            }
            Operation::Loss { packets, offset } if self.next > self.acked => {
                let lost_bytes = (u64::from(*packets) * self.mss).min(self.in_flight);
                self.in_flight -= lost_bytes;
                let position = self.acked + offset % (self.next - self.acked);
                let (next, in_flight) = (self.next, self.in_flight);
                self.law.on_loss(&Loss { now, lost_bytes, position, last: position, next, in_flight, resent: None });
            }
            Operation::Loss { .. } => {}
            Operation::Timeout => {
                self.in_flight = 0;
                self.law.on_timeout(now, self.next);
            }
            Operation::Notification { cnp } => self.law.on_cnp(now, cnp),
            Operation::Message { body } => drop(self.law.on_message(now, body)),
            Operation::Open { opening } => self.law.on_open(opening),
            Operation::DeferredResend => self.law.on_deferred_resend(now),
            Operation::Timer => {
                self.now = match self.law.next_timer() {
                    Time::MAX => now,
                    due => due.max(now),
                };
                self.law.on_timer(self.now);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No panic, no overflow, a usable decision after every event; and the same events give the same decisions.
    #[test]
    fn laws_survive_everything(
        gbps in 1u64..400, base_us in 1u64..10_000, mss in 64u32..9000, random in any::<u32>(),
        opening in prop::option::of(opening()), operations in prop::collection::vec(operation(), 1..200),
    ) {
        let path = Path::new(Rate::from_gbps(gbps), Time::from_us(base_us), mss, mss + 90);
        let set = |key: &str, value: &str| [(key.to_owned(), Raw::Text(value.to_owned()))];
        let (lineage, quiet) = (set("profile", "hpcc-lineage"), set("grant_until", "timeout"));
        let ecn = [("ecn".to_owned(), Raw::Flag(true))];
        let cases = LAWS
            .iter()
            .flat_map(|info| [(info, &[][..]), (info, &lineage[..]), (info, &quiet[..]), (info, &ecn[..])]);
        for (info, given) in cases {
            let parameters = LawParameters::resolve(info.name, &path, given).expect("registered");
            let Ok(parameters) = parameters else {
                prop_assert!(!given.is_empty(), "{}: defaults", info.name);
                continue;
            };
            let start = || Model {
                law: parameters.start(&path, Time::ZERO, random),
                mss: mss.into(), now: Time::ZERO, acked: 0, next: 0, in_flight: 0, sent_bytes: 0,
            };
            let (mut model, mut twin) = (start(), start());
            for operation in opening.iter().chain(&operations) {
                let before = format!("{:?}", model.law);
                model.apply(operation);
                twin.apply(operation);
                let capabilities = parameters.capabilities();
                let is_feedback =
                    matches!(operation, Operation::Sent { .. } | Operation::Ack { .. } | Operation::Loss { .. });
                if is_feedback && !capabilities.acknowledgements {
                    prop_assert_eq!(&before, &format!("{:?}", model.law), "{}: it uses acknowledgements", info.name);
                }
                let (signal, tag) = (model.law.take_signal(), model.law.tag());
                prop_assert_eq!(signal, twin.law.take_signal(), "{}", info.name);
                prop_assert!(capabilities.signals || signal.is_none() && tag.is_none(), "{}: it sends", info.name);
                let law = &model.law;
                prop_assert!(capabilities.timer || law.next_timer() == Time::MAX, "{}: it has a timer", info.name);
                prop_assert!(law.window() >= 1, "{}: no window after {operation:?}", info.name);
                prop_assert!(law.pacing_rate().is_none_or(|rate| rate.bps() > 0), "{}: no pace", info.name);
                for position in [model.acked, model.next, model.next + model.mss] {
                    let priorities = [false, true].map(|again| law.priority(position, again));
                    let allowed = if capabilities.priorities { 8 } else { 0 };
                    let is_allowed = priorities.into_iter().flatten().all(|priority| priority < allowed);
                    prop_assert!(is_allowed, "{}: {priorities:?}", info.name);
                }
                let takes_grants = info.parameters.iter().any(|parameter| parameter.name == "grant_until");
                if let (true, Operation::Notification { cnp: Cnp { window: Some(window), .. } }) = (takes_grants, operation) {
                    prop_assert!(law.window() <= (*window).max(1), "{}: more than is granted", info.name);
                }
                if matches!(operation, Operation::Timer) {
                    prop_assert!(law.next_timer() > model.now, "{}: the timer stands still", info.name);
                }
                let decision = |law: &Law| (law.window(), law.pacing_rate(), law.unscheduled(), law.next_timer());
                prop_assert_eq!(decision(law), decision(&twin.law), "{}", info.name);
                prop_assert!(!format!("{law:?}").contains("NaN"), "{}: {law:?}", info.name);
            }
        }
    }
}
