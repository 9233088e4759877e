//! Hosts: a NIC, the senders and the receiver of its flows, and what runs on it.
//!
//! [`Host`] dispatches packets and events to these components and runs the actions that they return; they do not call
//! each other. Sending is in `send` and `transmit`, receiving in `receive`.

mod clock;
mod flow_control;
pub mod nic;
mod observe;
mod receive;
mod scheduling;
mod send;
mod signals;
mod transmit;
mod turns;

use self::{clock::Clock, nic::Nic};
use crate::{
    application::{Application, FlowSpec},
    engine::{Event, prefetch::prefetch},
    fabric::{
        link::{self, Transmitter},
        node::{NodeContext, class},
    },
    packet::{Kind, Packet, Telemetry},
    probe::{ArrivedSample, EventKind, RateSample, Recorder},
    receiver::{Receiver, response_delay::ResponseDelay},
    sender::{paths::RandomNumbers, slots::Senders, underlay::Stages},
    settings::{Settings, host::HostClock},
};
use incast_cc::registry::Scheduler;
use incast_units::Time;

/// Cache lines of a sender that an acknowledgement needs: all but the end, which only the largest laws use.
const SENDER_LINES: usize = 10;

/// The sender's record of a finished or abandoned flow.
#[derive(Clone, Copy, Debug)]
pub struct SentFlow {
    /// As it was opened; `request` is resolved.
    pub spec: FlowSpec,
    /// Flow number at this host.
    pub sequence: u32,
    /// When the last byte was acknowledged.
    pub acked: Option<Time>,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// For how long the underlay held packets of it.
    pub held: Time,
}

/// A host. What every packet needs comes first, as in a large fabric each line of it is fetched from memory.
#[derive(Debug)]
#[repr(C)]
pub struct Host<'a> {
    settings: &'a Settings,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets sent.
    pub injected: u64,
    /// Frame bytes put on the link, or into queues before it.
    created_bytes: u64,
    node: u32,
    base: u32,
    /// There are schedulers.
    schedules: bool,
    /// The host's clock, unless it is perfect.
    clock: Option<Box<Clock>>,
    /// When the next samples of its flows are due.
    next_sample: Time,
    nic: Nic,
    senders: Senders,
    receiver: Receiver,
    /// Packets that an underlay holds.
    stages: Stages,
    /// Paths of control packets.
    random: RandomNumbers,
    /// Receivers' schedulers, with the time of the pending event of each. Taken out while one of them is called.
    schedulers: Option<Box<[(Scheduler, Time)]>>,
    /// Responses that the NIC delays, if it ever delayed one.
    delayed_responses: Option<Box<ResponseDelay>>,
    /// Flows to start, latest first.
    upcoming: Vec<FlowSpec>,
    application: Option<Box<dyn Application>>,
    next_sequence: u32,
    /// Finished flows.
    sent: Vec<SentFlow>,
    /// Recorded events.
    pub recorder: Recorder,
    samples: Vec<RateSample>,
    arrived_samples: Vec<ArrivedSample>,
    /// Control packets lost with a link that went down, and their frame bytes.
    lost: (u64, u64),
}

impl<'a> Host<'a> {
    /// A host with its link, the flows that start at it, and what runs on it.
    pub fn new(
        settings: &'a Settings,
        node: u32,
        base: u32,
        link: Transmitter,
        input: link::Receiver,
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
            senders: Senders::default(),
            receiver: Receiver::new(settings),
            delayed_responses: None,
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
            random: RandomNumbers::of_host(settings.seed, node),
            node,
            base,
            sent: Vec::new(),
            arrived: 0,
            injected: 0,
            recorder: Recorder::new(settings.record, settings.packets.as_ref(), node),
            next_sample: if settings.rates.is_some() { Time::ZERO } else { Time::MAX },
            samples: Vec::new(),
            arrived_samples: Vec::new(),
            lost: (0, 0),
            created_bytes: 0,
        }
    }

    /// The sequence number and the destination of the flow whose timer an event is.
    pub fn flow_of(&self, event: Event) -> Option<(u32, u32)> {
        let is_of_flow = matches!(event.class, class::RETRANSMISSION | class::RELEASE | class::LAW);
        let sender = self.senders.get(event.payload).filter(|_| is_of_flow)?;
        Some((sender.flow.sequence, sender.flow.spec.destination))
    }

    fn event(&self, class: u8, payload: u32) -> Event {
        Event { class, entity: self.base, payload }
    }

    /// A packet arrived.
    #[inline(never)]
    pub fn on_packet(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        self.arrived += 1;
        if !self.nic.is_plain() {
            return self.on_packet_checked(packet, telemetry, context);
        }
        self.nic.accept(context.now(), packet);
        self.dispatch(packet, telemetry, context);
    }

    /// The same on a link that has failed before, or has credits.
    #[cold]
    #[inline(never)]
    fn on_packet_checked(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        if !self.nic.accept(context.now(), packet) {
            self.recorder.packet(context.now(), self.node, 0, EventKind::Lost, packet);
            return;
        }
        self.nic.count_received(packet);
        self.dispatch(packet, telemetry, context);
        if self.nic.flow_control().uses_credits() {
            self.pump(context);
        }
    }

    #[inline(always)]
    fn dispatch(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        match packet.kind {
            Kind::Data => self.on_data(packet, telemetry, context),
            Kind::Ack | Kind::Nack => self.on_ack(packet, telemetry, context),
            Kind::Cnp => self.on_cnp(packet, context),
            Kind::Credit => self.on_credit(packet, context),
            Kind::Signal => self.on_signal(packet, context),
            Kind::Rst => self.on_rst(packet, context),
            Kind::Syn => self.on_syn(packet, context),
            Kind::SynAck => self.on_syn_ack(packet, context),
            Kind::Pause | Kind::FlowControl => self.on_link_frame(packet, context),
            Kind::Trimmed => self.on_header(packet, context),
            Kind::Bounced => self.on_bounced(packet, context),
            Kind::Report => self.on_report(packet, context),
            Kind::Marker | Kind::MarkerAck | Kind::Isolation => {
                debug_assert!(false, "{:?} ends at switches", packet.kind)
            }
        }
    }

    /// An event of this host has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        match event.class {
            class::NIC => self.on_free(context),
            class::RETRANSMISSION => self.on_timer(event.payload, context),
            class::RELEASE => self.on_release(event.payload, context),
            class::LAW => self.on_law_timer(event.payload, context),
            class::DELAYED_ACK => self.on_delayed_ack(event.payload, context),
            class::RESPONSE => self.on_delayed_responses(event.payload, context),
            class::SCHEDULER => self.on_scheduler_timer(event.payload, context),
            class::FLOW_START => self.on_flow_start(context),
            class::LINK => self.on_link(event.payload, context),
            class::PAUSE => self.on_pause_event(event.payload, context),
            _ => {}
        }
    }

    /// How far the host's clock is ahead at `time`, in picoseconds.
    #[inline]
    fn clock_error(&self, time: Time) -> i64 {
        clock::error(self.clock.as_deref(), time)
    }

    /// Prefetches in two steps, before the host runs: first (`near` false) its flows, then (`near` true) what they point
    /// to.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        self.receiver.prefetch(near);
    }

    /// A packet will arrive soon: prefetches its flow.
    #[inline]
    pub fn prefetch_packet(&self, packet: &Packet) {
        if packet.kind != Kind::Data
            && let Some(sender) = self.senders.address(packet.slot)
        {
            prefetch(sender, SENDER_LINES);
        }
    }
}
