//! Hosts: the NIC, flows, reliability, and the adapters between packets and laws.
//!
//! A flow's way through them: at its sender `flows`, `handshake` where flows are opened by one, `turns`, `timeout` if
//! nothing is heard; at its receiver `arrival`, with `scheduling` where a protocol is driven from there; and `feedback`
//! when the answer is back.

mod answering;
mod arrival;
mod change;
mod clock;
mod credits;
mod feedback;
mod flows;
pub mod format;
mod handshake;
mod nic;
mod order;
mod paths;
mod receiving;
mod rtt;
mod sample;
mod scheduling;
mod sending;
mod signals;
mod table;
mod timeout;
mod tokens;
mod turns;
mod underlay;

pub use self::sending::entropy;
use self::{
    answering::Answers, clock::Clock, flows::summary, nic::Nic, paths::Lots, receiving::Receiving,
    sending::SendFlow, underlay::Stages,
};
use crate::application::Application;
use crate::{
    config::{FlowSpec, HostClock},
    engine::{Event, prefetch::prefetch},
    fabric::{
        link::{Receiver, Transmitter},
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
    },
    probe::{EventKind, PacketTrace, RateSample, Recorder},
    settings::Settings,
};
use incast_cc::receiver::Scheduler;
use incast_units::Time;

/// What the sender knows of a finished or abandoned flow.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// What it was asked to be; `request` as it came out.
    pub spec: FlowSpec,
    /// Flow number at this host.
    pub sequence: u32,
    /// When the last byte was acknowledged.
    pub acked: Option<Time>,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Time in which it had packets that the underlay did not let go.
    pub held: Time,
}

/// A host.
#[derive(Debug)]
pub struct Host<'a> {
    settings: &'a Settings,
    nic: Nic,
    /// Flows that send; slots are reused.
    flows: Vec<Option<SendFlow>>,
    free: Vec<u32>,
    receiving: Receiving,
    /// Answers in the NIC, if it ever had some that took time.
    answers: Option<Box<Answers>>,
    /// Packets that an underlay holds.
    stages: Stages,
    /// Where it is not perfect.
    clock: Option<Box<Clock>>,
    /// With the time of the pending event of each. Away while one of them is asked.
    schedulers: Option<Box<[(Scheduler, Time)]>>,
    /// There are schedulers to ask.
    schedules: bool,
    /// Flows to start, latest first.
    upcoming: Vec<FlowSpec>,
    application: Option<Box<dyn Application>>,
    next_sequence: u32,
    /// Ways of control packets.
    lots: Lots,
    node: u32,
    base: u32,
    /// Finished flows.
    sent: Vec<Sent>,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets sent.
    pub injected: u64,
    /// Recorded events.
    pub recorder: Recorder,
    next_sample: Time,
    samples: Vec<RateSample>,
    /// Frame bytes of control packets lost with a link that went down.
    lost: (u64, u64),
    /// Frame bytes put on the link, or into queues before it.
    created_bytes: u64,
}

impl<'a> Host<'a> {
    /// A host with its link, the flows that start at it, and what runs on it.
    pub fn new(
        settings: &'a Settings,
        node: u32,
        base: u32,
        link: Transmitter,
        input: Receiver,
        mut flows: Vec<FlowSpec>,
        mut application: Option<Box<dyn Application>>,
    ) -> Self {
        if let Some(application) = &mut application {
            application.on_start(&mut |spec| flows.push(FlowSpec { source: node, ..spec }));
        }
        flows.sort_by_key(|spec| spec.start);
        flows.reverse();
        Self {
            settings,
            schedulers: Some(settings.schedulers(link.rate()).map(|it| (it, Time::MAX)).collect()),
            nic: Nic::new(settings, link, input),
            flows: Vec::new(),
            free: Vec::new(),
            receiving: Receiving::default(),
            answers: None,
            stages: Stages::default(),
            clock: settings
                .clocks
                .get(node as usize)
                .filter(|deviation| **deviation != HostClock::default())
                .map(|deviation| Box::new(Clock::new(*deviation, settings.seed, node))),
            schedules: !settings.host.schedulers.is_empty(),
            upcoming: flows,
            application,
            next_sequence: 0,
            lots: Lots::of_host(settings.seed, node),
            node,
            base,
            sent: Vec::new(),
            arrived: 0,
            injected: 0,
            recorder: Recorder::new(settings.record, settings.packets.as_ref(), node),
            next_sample: if settings.samples_rates_of(node) { Time::ZERO } else { Time::MAX },
            samples: Vec::new(),
            lost: (0, 0),
            created_bytes: 0,
        }
    }

    /// When the first flow starts.
    pub fn first_start(&self) -> Option<Time> {
        self.upcoming.last().map(|spec| spec.start)
    }

    fn event(&self, class: u8, slot: u32) -> Event {
        Event { class, entity: self.base, payload: slot }
    }

    /// A packet arrived.
    #[inline(never)]
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.arrived += 1;
        if self.nic.credits.is_some() || !self.nic.input.is_sound() {
            return self.take_with_care(packet, telemetry, context);
        }
        self.nic.input.accept(context.now(), packet, || &self.nic.link);
        self.take(packet, telemetry, context);
    }

    /// The same on a link that failed once, or has credits.
    #[cold]
    #[inline(never)]
    fn take_with_care(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if !self.nic.input.accept(context.now(), packet, || &self.nic.link) {
            self.recorder.packet(context.now(), self.node, 0, EventKind::Lost, packet);
            return;
        }
        let has_credits = self.nic.credits.is_some();
        if has_credits {
            self.receive_credits(packet);
        }
        self.take(packet, telemetry, context);
        if has_credits {
            self.pump(context);
        }
    }

    /// Each kind of packet is somebody's business.
    #[inline(always)]
    fn take(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        match packet.kind {
            Kind::Data => self.on_data(packet, telemetry, context),
            Kind::Ack | Kind::Nack => self.on_ack(packet, telemetry, context),
            Kind::Cnp => self.on_notification(packet, context),
            Kind::Credit => self.on_credit(packet, context),
            Kind::Signal => self.on_signal(packet, context),
            Kind::Abandon => self.on_abandon(packet, context),
            Kind::Open => self.on_open(packet, context),
            Kind::Accept => self.on_accept(packet, context),
            Kind::Pause => self.on_notice(packet, context),
            Kind::Trimmed => self.on_header(packet, context),
            Kind::Bounced => self.on_bounced(packet, context),
            Kind::Report => self.on_report(packet, context),
            Kind::FlowControl => self.on_update(packet, context),
            Kind::Marker | Kind::MarkerAck => debug_assert!(false, "{:?} ends at switches", packet.kind),
        }
    }

    /// An event of this host has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        match event.class {
            class::DEPARTURE | class::LATE_DEPARTURE => {
                self.nic.departure = false;
                self.pump_if(self.nic.link.idle(context.now()), context);
            }
            class::RETRANSMISSION => self.on_timer(event.payload, context),
            class::RELEASE => self.on_release(event.payload, context),
            class::LAW => self.on_law_timer(event.payload, context),
            class::DELAYED_ACK => self.on_delayed_ack(event.payload, context),
            class::ANSWER => self.on_answers(event.payload, context),
            class::SCHEDULER => self.on_scheduler_timer(event.payload, context),
            class::FLOW_START => self.on_flow_start(context),
            class::LINK => self.on_link(event.payload, context),
            class::PAUSE => self.on_pause_event(event.payload, context),
            _ => {}
        }
    }

    /// This host will be needed soon: asks for its flows and, when those are `near`, for what they point to.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        self.receiving.prefetch(near);
    }

    /// A packet will arrive soon: asks for its flow.
    #[inline]
    pub fn prefetch_packet(&self, packet: &Packet) {
        if packet.kind != Kind::Data
            && let Some(flow) = self.flows.get(packet.slot as usize)
        {
            prefetch(std::ptr::from_ref(flow), 8);
        }
    }

    /// Records of all flows that this host started, finished or not, at the end of the run.
    pub fn sent(&self, end: Time) -> Vec<Sent> {
        let unfinished = self.flows.iter().flatten().map(|flow| summary(flow, end, None));
        self.sent.iter().copied().chain(unfinished).collect()
    }

    /// Flows whose time did not come before the end.
    pub fn unstarted(&self) -> usize {
        self.upcoming.len()
    }

    /// Records of all flows that arrived here.
    pub fn received(&self) -> &[receiving::Arrived] {
        &self.receiving.records
    }

    /// What was recorded of packets.
    pub fn traces(&mut self) -> Vec<&mut PacketTrace> {
        self.nic.link.trace().into_iter().chain(self.recorder.trace.as_deref_mut()).collect()
    }

    /// Priorities that its switch has paused, or has no room for, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u8, Time)> {
        let paused = (0..8u8).filter_map(|priority| Some((priority, self.nic.heard.since(priority)?)));
        paused.chain(self.nic.credits.iter().flat_map(|end| end.blocked()))
    }

    /// Pause edges and paused time of its NIC, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        (self.nic.pauses.edges(), self.nic.pauses.paused(now))
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Both ends of its link.
    pub fn link(&self) -> (&Transmitter, &Receiver) {
        (&self.nic.link, &self.nic.input)
    }

    /// Control packets and their bytes lost with a link.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    /// Frame bytes that wait in it.
    pub fn waiting_bytes(&self) -> u64 {
        self.nic.waiting_bytes()
    }

    /// Every byte that was made was sent, or waits, or was lost.
    pub fn conserves(&self) -> bool {
        // Packets in an underlay's stage are not made before they reach the NIC.
        self.created_bytes == self.nic.link.sent_bytes() + self.nic.waiting_bytes() + self.lost.1
    }
}
