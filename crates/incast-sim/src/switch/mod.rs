//! A store-and-forward switch, put together from components that own their state.
//!
//! This file is a packet's path through it, from top to bottom: arrive, route, account for flow control, admit to the
//! buffer, mark, queue; later schedule, mark, agent, stamp INT, send. Components return what is to be done; only the
//! switch calls them. What other events do is in `control` (links, pause frames, credits), `actions` (the agent's timer
//! and its actions), and `overflow` (trimming). The path is generic over `Features` and compiled for each kind of
//! switch.

mod actions;
mod agent;
mod aqm;
mod build;
mod busy;
mod channels;
pub(crate) mod config;
mod control;
mod deflection;
mod egress;
mod features;
mod hold;
mod inspect;
mod overflow;
mod record;
pub mod scheduler;

pub use self::build::{Place, Routes};
use self::{
    agent::AgentHost,
    aqm::Aqm,
    channels::VirtualChannels,
    egress::{Departure, Egress},
    features::{All, Features, Forwarding, Kind, Lossless, MOST_AHEAD, Trimming as Trims},
    hold::Hold,
    record::Counters,
};
use crate::{
    engine::{Event, prefetch::prefetch, queue::Key},
    fabric::{
        buffer::SharedBuffer,
        link::Receiver,
        node::{Arrivals, NodeContext, class},
        queue::{Ingress, Load},
        trim::Trimming,
    },
    flow_control::{FlowControl, pause::NO_QUEUE},
    packet::{Packet, Telemetry},
    probe::{PortProbe, Recorder},
    routing::Router,
    settings::Settings,
};
use incast_cc::agent::Codepoint;
use incast_units::Time;

/// Payloads of link events.
pub const LINK_DOWN: u32 = 0;
/// See [`LINK_DOWN`].
pub const LINK_UP: u32 = 1;
/// A new routing table, of the whole fabric.
pub const NEW_EPOCH: u32 = 2;

/// A switch. What every packet needs comes first, as in a large fabric each line of it is fetched from memory.
#[derive(Debug)]
#[repr(C)]
pub struct Switch<'a> {
    settings: &'a Settings,
    node: u32,
    /// The first entity of this node in its domain.
    base: u32,
    /// The instance of the packet path.
    kind: Kind,
    /// Departures are lazy whenever no neighbour is paused.
    may_be_lazy: bool,
    /// Ingress, by port.
    inputs: Vec<Receiver>,
    router: Router,
    egress: Egress,
    buffer: SharedBuffer,
    aqm: Aqm,
    /// Sums.
    pub counters: Counters,
    flow_control: FlowControl,
    trimming: Option<Box<Trimming>>,
    channels: Option<Box<VirtualChannels>>,
    probe: Option<Box<PortProbe>>,
    hold: Option<Box<Hold>>,
    /// Recorded events.
    pub recorder: Recorder,
    agent: AgentHost,
}

/// Sentinel: the next hop is unknown, or there is none. It takes one register, unlike an `Option`.
const UNKNOWN: u16 = u16::MAX;

/// A packet in transit, and the ECMP hash with which it leaves. Two values, so that it is passed in registers.
#[derive(Clone, Copy)]
struct Transit<'p> {
    packet: &'p Packet,
    /// The ECMP hash that the packet has from here on. Kept apart so that the packet is copied only when it is stored
    /// or sent; where an agent may read the packet, it is a copy that has this hash. Read it through [`Self::hash`]:
    /// without spraying it is unused.
    hash: u32,
}

impl<'p> From<&'p Packet> for Transit<'p> {
    #[inline(always)]
    fn from(packet: &'p Packet) -> Self {
        Self { packet, hash: packet.ecmp_hash }
    }
}

impl Transit<'_> {
    /// The packet's ECMP hash from here on. Without spraying that is its own, so that no register holds a second one.
    #[inline(always)]
    fn hash<F: Features>(self) -> u32 {
        if F::SPRAYING { self.hash } else { self.packet.ecmp_hash }
    }

    /// The packet with that hash.
    #[inline(always)]
    fn to_packet<F: Features>(self) -> Packet {
        self.packet.with_hash(self.hash::<F>())
    }
}

impl Switch<'_> {
    // ---- Arrival ----------------------------------------------------------------------------------------------

    /// A packet arrived at `port`, and something else happens at the same instant, but later. This is rare: no need of
    /// another copy of the smaller instances.
    #[inline(never)]
    pub fn on_packet(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.arrive::<All>(port, packet, telemetry, UNKNOWN, context);
    }

    /// Packets arrived, each at its port.
    #[inline]
    pub fn on_packets<'p>(&mut self, arrivals: impl Arrivals<'p>) {
        match self.kind {
            Kind::Forwarding => self.arrive_all::<Forwarding>(arrivals),
            Kind::Trimming => self.arrive_all::<Trims>(arrivals),
            Kind::Lossless => self.arrive_all::<Lossless>(arrivals),
            Kind::All => self.arrive_all::<All>(arrivals),
        }
    }

    /// Each instance is a function of its own, so that none saves registers for another.
    ///
    /// With ECMP a packet's port depends on the packet alone. It is looked up [`Features::AHEAD`] packets before its turn,
    /// so that the port is in the cache when it comes; half way the line to which the packet will be copied is fetched.
    #[inline(never)]
    fn arrive_all<'p, F: Features>(&mut self, mut arrivals: impl Arrivals<'p>) {
        let mut ports = [UNKNOWN; MOST_AHEAD];
        for (ahead, port) in ports.iter_mut().enumerate().take(F::AHEAD) {
            *port = self.look_ahead::<F>(arrivals.peek(ahead));
        }
        let mut turn = 0;
        while let Some((port, packet, telemetry)) = arrivals.next() {
            let next_hop = ports[turn % F::AHEAD];
            ports[turn % F::AHEAD] = self.look_ahead::<F>(arrivals.peek(F::AHEAD - 1));
            if F::AHEAD > 1 {
                let soon = usize::from(ports[(turn + F::AHEAD / 2) % F::AHEAD]);
                if let Some(out) = self.egress.ports().get(soon) {
                    arrivals.context().prefetch(out.link.peer());
                }
            }
            turn += 1;
            self.arrive::<F>(port, packet, telemetry, next_hop, arrivals.context());
        }
    }

    /// The port to which a packet that arrives soon will be sent, which is prefetched. Only with ECMP, where it depends on
    /// that packet alone.
    #[inline(always)]
    fn look_ahead<F: Features>(&self, soon: Option<(usize, &Packet)>) -> u16 {
        if F::SPRAYING {
            return UNKNOWN;
        }
        let Some((ingress, packet)) = soon else { return UNKNOWN };
        let Some(port) = self.router.by_hash(packet) else { return UNKNOWN };
        self.egress.prefetch_port(usize::from(port));
        if F::AHEAD > 1 {
            prefetch(self.inputs.as_ptr().wrapping_add(ingress), 1);
            self.egress.prefetch_queue(usize::from(port), packet.priority);
        }
        port
    }

    #[inline(always)]
    fn arrive<F: Features>(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        next_hop: u16,
        context: &mut impl NodeContext,
    ) {
        self.counters.arrived += 1;
        if !self.inputs[port].accept(context.now(), packet, || &self.egress.port(port).link) {
            return self.record_lost::<F>(port, packet.into(), context.now());
        }
        if (F::FLOW_CONTROL || F::AGENT) && packet.priority == NO_QUEUE {
            return self.on_link_frame(port, packet, context);
        }
        let ingress = Ingress { port: port as u16, priority: packet.priority };
        let telemetry = if F::TELEMETRY { telemetry } else { None };
        let has_credits = F::FLOW_CONTROL && self.flow_control.receive(port, packet);
        self.forward::<F>(packet, telemetry, ingress, next_hop, context);
        if has_credits {
            self.update_neighbour(ingress, context);
        }
    }

    /// Routes a packet. The agent may choose another port; with virtual channels the port decides on the queue.
    #[inline(always)]
    fn forward<F: Features>(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        next_hop: u16,
        context: &mut impl NodeContext,
    ) {
        let route =
            if F::SPRAYING { self.router.route(packet) } else { (next_hop != UNKNOWN).then_some((next_hop, 0)) };
        let Some((port, hash)) = route else { return self.lose_unrouted(packet, context.now()) };
        let port = usize::from(port);
        let mut transit = Transit { packet, hash };
        let (rehashed, mut on_channel);
        if F::AGENT && F::SPRAYING && hash != packet.ecmp_hash {
            rehashed = packet.with_hash(hash);
            transit.packet = &rehashed;
        }
        if F::AGENT && self.agent.chooses_port() {
            return self.redirect(port, transit.packet, telemetry, ingress, context);
        }
        if F::FLOW_CONTROL
            && let Some(channels) = &self.channels
        {
            on_channel = *transit.packet;
            on_channel.priority = channels.queue(ingress, port);
            transit.packet = &on_channel;
        }
        self.enqueue::<F>(port, transit, telemetry, ingress, context);
    }

    // ---- Egress -----------------------------------------------------------------------------------------------

    /// At `now`, before the event of that time, transmissions that end earlier than this have ended.
    #[inline(always)]
    fn ended_before<F: Features>(&self, now: Time) -> Time {
        if F::EVENTS { self.settings.ended_before(now) } else { now + Time::from_ps(1) }
    }

    /// The link of a port is idle. With `ties = "arrivals-first"` it is not yet at the instant at which a transmission
    /// ends: its end comes after everything else of that instant.
    #[inline]
    fn is_idle(&self, port: usize, now: Time) -> bool {
        self.egress.port(port).link.free_at() < self.settings.ended_before(now)
    }

    /// A packet is sent at once if the link is idle and nothing is queued that may go before it; otherwise it is
    /// queued.
    #[inline(always)]
    fn enqueue<F: Features>(
        &mut self,
        port: usize,
        transit: Transit<'_>,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let (now, packet) = (context.now(), transit.packet);
        let limit = self.ended_before::<F>(now);
        if self.may_send_now::<F>(port, packet, limit, context) {
            self.counters.update_max_queue(u64::from(packet.wire));
            if F::AGENT && self.agent.is_by_port() && !self.agent.skips(port, 0) {
                return self.pass_by_agent(port, packet, telemetry, ingress, context);
            }
            return self.transmit::<F>(port, now, transit, telemetry, ingress, context);
        }
        if F::AGENT && self.agent.is_by_port() {
            let queued = self.egress.queue_bytes(port, packet.priority);
            if !self.agent.skips(port, queued) {
                let verdict = self.agent_on_enqueue(port, packet, ingress, context);
                if !verdict.is_nothing() {
                    return self.queue_with_verdict(port, packet, telemetry, ingress, &verdict, context);
                }
            }
        }
        self.queue::<F>(port, transit, telemetry, ingress, context);
    }

    /// Whether the link of a port is idle, may carry the packet, and nothing that is queued goes before it. Departures
    /// that are due happen first.
    #[inline(always)]
    fn may_send_now<F: Features>(
        &mut self,
        port: usize,
        packet: &Packet,
        limit: Time,
        context: &mut impl NodeContext,
    ) -> bool {
        let mut out = self.egress.port(port);
        if out.link.free_at() >= limit {
            return false;
        }
        if (!F::EVENTS || self.egress.is_lazy()) && out.waiting != 0 {
            self.drain::<F>(port, limit, context);
            out = self.egress.port(port);
            if out.link.free_at() >= limit {
                return false;
            }
        }
        // Where departures are always lazy and nothing is ever paused, an idle link has nothing queued by now.
        let bit = 1 << packet.priority;
        let is_first = !F::EVENTS || out.permission.allowed(out.waiting | bit) == bit;
        is_first && out.link.is_up() && self.has_credits::<F>(port, packet)
    }

    /// As [`Self::enqueue`], for packets that are not on the path of arrivals.
    #[inline(never)]
    fn enqueue_apart(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        self.enqueue::<All>(port, packet.into(), telemetry, ingress, context);
    }

    /// Queues a packet. It is lost if its link is down, and dropped or trimmed if the buffer does not admit it. Rare
    /// cases are calls at the end of the function, which keeps registers free.
    #[inline(always)]
    fn queue<F: Features>(
        &mut self,
        port: usize,
        transit: Transit<'_>,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let packet = transit.packet;
        if !self.egress.port(port).link.is_up() {
            return self.lose(port, packet, ingress, context);
        }
        let mut load = self.egress.load(port, packet.priority);
        if F::FLOW_CONTROL && self.flow_control.counts(ingress) {
            if !self.admit_lossless(port, packet, ingress, context) {
                return self.reject::<F>(port, transit, telemetry, ingress, context);
            }
            load = self.egress.load(port, packet.priority);
        } else if F::AGENT && self.aqm.may_drop(packet) && self.drops_early::<F>(port, packet, load, context.now()) {
            return self.drop_packet(port, packet, ingress, context);
        } else if self.has_place::<F>(packet, load) && self.has_room(port, packet, load) {
            self.buffer.enter(u64::from(packet.wire), load.bytes());
        } else {
            return self.queue_late::<F>(port, transit, telemetry, ingress, context);
        }
        self.append::<F>(port, transit, load, telemetry, ingress, context);
    }

    /// A packet has no room: it is queued if it has once all departures that are due have happened.
    #[inline(never)]
    fn queue_late<F: Features>(
        &mut self,
        port: usize,
        transit: Transit<'_>,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let packet = transit.packet;
        if self.has_place::<F>(packet, self.egress.load(port, packet.priority)) && self.egress.is_lazy() {
            self.catch_up(context);
            let load = self.egress.load(port, packet.priority);
            if self.has_room(port, packet, load) {
                self.buffer.enter(u64::from(packet.wire), load.bytes());
                return self.append::<F>(port, transit, load, telemetry, ingress, context);
            }
        }
        self.reject::<F>(port, transit, telemetry, ingress, context);
    }

    /// A packet is not admitted.
    #[inline(never)]
    fn reject<F: Features>(
        &mut self,
        port: usize,
        transit: Transit<'_>,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        if F::TRIM && self.trimming.is_some() {
            self.handle_overflow(port, &transit.to_packet::<F>(), telemetry, ingress, context);
        } else {
            self.drop_packet(port, transit.packet, ingress, context);
        }
    }

    /// Whether a switch that trims has not reached the limit of the packet's queue. True in all other switches.
    #[inline(always)]
    fn has_place<F: Features>(&self, packet: &Packet, load: Load) -> bool {
        let Some(trimming) = self.trimming.as_ref().filter(|_| F::TRIM) else { return true };
        trimming.limit(packet.priority).admits(u64::from(packet.wire), load.packets(), load.bytes())
    }

    /// The buffer admits a packet to its queue.
    #[inline(always)]
    fn has_room(&self, port: usize, packet: &Packet, load: Load) -> bool {
        let waiting = self.egress.port(port).waiting_bytes;
        self.buffer.admits(u64::from(packet.wire), load.bytes(), waiting, || self.egress.packets_at(port))
    }

    /// Admission of a packet that flow control counts by its ingress. Pauses the ingress if it is full with this
    /// packet.
    #[inline(never)]
    fn admit_lossless(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) -> bool {
        let wire = u64::from(packet.wire);
        let mut is_full = self.flow_control.reaches(ingress, wire, self.buffer.level());
        if is_full && self.egress.is_lazy() {
            // Departures that are due can only empty the ingress. Once it is paused they must be events, so that it
            // resumes in time.
            self.catch_up(context);
            is_full = self.flow_control.reaches(ingress, wire, self.buffer.level());
            if is_full {
                self.use_departure_events(context);
            }
        }
        let charge = self.flow_control.enter(ingress, wire, self.buffer.level());
        match charge {
            Some(charge) => self.buffer.take(charge),
            None => self.counters.lossless_drops += 1,
        }
        if is_full && self.flow_control.must_pause(ingress, self.buffer.level()) {
            if self.recorder.records_events() {
                self.record_pause_cause(port, packet, ingress, context.now());
            }
            self.announce(usize::from(ingress.port), context);
        }
        charge.is_some()
    }

    /// Marks a packet that the buffer has admitted, and appends it to its queue, which holds `load`.
    #[inline(always)]
    fn append<F: Features>(
        &mut self,
        port: usize,
        transit: Transit<'_>,
        load: Load,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let (now, packet) = (context.now(), transit.packet);
        let priority = packet.priority;
        let queued = self.queued_bytes::<F>(port, priority, load.bytes());
        let mark = self.mark_entering(port, packet, queued, now);
        let length = self.egress.push::<F>(port, packet, transit.hash::<F>(), mark, telemetry, ingress, now);
        self.counters.update_max_queue(length);
        if F::EVENTS && !self.egress.is_lazy() {
            self.recorder.queued(now, port as u16, length - u64::from(packet.wire), packet, mark);
            self.block_head(port, priority, context);
            self.plan_departure(port, context);
        }
    }

    /// A packet that cannot be marked finds a queue of which others are marked.
    #[inline(never)]
    fn drops_early<F: Features>(&mut self, port: usize, packet: &Packet, load: Load, now: Time) -> bool {
        let is_control = packet.kind != crate::packet::Kind::Data;
        if is_control && self.settings.classes[usize::from(packet.class)].transport.control_ecn_capable {
            return false;
        }
        let queued = self.queued_bytes::<F>(port, packet.priority, load.bytes());
        let out = self.egress.port(port);
        let occupancy = queued + out.link.in_service(now, packet.priority);
        self.aqm.drops(port, out.marking, occupancy)
    }

    /// The mark of a packet that enters a queue of `queued` bytes.
    #[inline(always)]
    fn mark_entering(&mut self, port: usize, packet: &Packet, queued: u64, now: Time) -> Codepoint {
        let out = self.egress.port(port);
        let occupancy = || queued + out.link.in_service(now, packet.priority);
        if self.aqm.marks_entering(port, out.marking, packet, occupancy) {
            self.count_mark(port, packet, now)
        } else {
            Codepoint::None
        }
    }

    /// Marks a packet that was just taken from its queue and leaves `left` bytes behind, if its rule says so.
    #[inline]
    fn mark_leaving(&mut self, port: usize, departure: &Departure, left: u64, now: Time) {
        let (rule, packet) = (self.egress.port(port).marking, self.egress.taken(departure));
        if self.aqm.marks_leaving(port, rule, packet, left) {
            let packet = *packet;
            let mark = self.count_mark(port, &packet, now);
            self.egress.mark_taken(departure, mark);
        }
    }

    /// Bytes that marking counts as queued where a queue holds `bytes`: those of all virtual channels of a priority.
    #[inline(always)]
    fn queued_bytes<F: Features>(&self, port: usize, priority: u8, bytes: u64) -> u64 {
        match &self.channels {
            Some(channels) if F::FLOW_CONTROL => {
                channels.group(priority).map(|queue| self.egress.queue_bytes(port, queue)).sum()
            }
            _ => bytes,
        }
    }

    // ---- Departure --------------------------------------------------------------------------------------------

    /// Runs all departures of the window. Returns when the next packet leaves. In most windows nothing is
    /// queued.
    #[inline]
    pub fn finish_window(&mut self, limit: Time, context: &mut impl NodeContext) -> Time {
        let Some(first) = self.egress.busy_from(0) else { return Time::MAX };
        match self.kind {
            Kind::Forwarding => self.drain_all::<Forwarding>(first, limit, context),
            Kind::Trimming => self.drain_all::<Trims>(first, limit, context),
            Kind::Lossless => self.drain_all::<Lossless>(first, limit, context),
            Kind::All => self.drain_all::<All>(first, limit, context),
        }
    }

    /// Runs the departures of the busy ports, of which `port` is the first.
    #[inline(never)]
    fn drain_all<F: Features>(&mut self, mut port: usize, limit: Time, context: &mut impl NodeContext) -> Time {
        let mut next = Time::MAX;
        loop {
            let departure = self.drain::<F>(port, limit, context);
            if departure == Time::MAX && (!F::EVENTS || self.egress.port(port).waiting == 0) {
                self.egress.forget(port);
            }
            next = next.min(departure);
            let Some(later) = self.egress.busy_from(port + 1) else { return next };
            port = later;
        }
    }

    /// Runs the departures of all ports that are due now.
    fn catch_up(&mut self, context: &mut impl NodeContext) {
        if let Some(first) = self.egress.busy_from(0) {
            self.drain_all::<All>(first, self.settings.ended_before(context.now()), context);
        }
    }

    /// Runs the departures of a port before `limit`. Returns when the next one is, if something may leave.
    ///
    /// *Lazy departures.* An event for each departure would double the events of a loaded fabric. Where a switch has
    /// its domain to itself and nothing watches departures, those that are due are applied before anything that
    /// depends on them: the next packet for the same port, a packet without room, a full ingress, a pause or a resume, a
    /// link change, a sample, the agent's timer, and the end of the window, by which what left must be on its link. The
    /// results are those of one event for each departure.
    #[inline]
    fn drain<F: Features>(&mut self, port: usize, limit: Time, context: &mut impl NodeContext) -> Time {
        loop {
            let out = self.egress.port(port);
            let at = out.link.free_at();
            // Without events nothing is ever paused.
            let allowed = if F::EVENTS { out.allowed() } else { out.waiting };
            if allowed == 0 {
                return Time::MAX;
            }
            if at >= limit {
                return at;
            }
            self.depart::<F>(port, allowed, at, context);
        }
    }

    /// The link is free at `now`: the packet that the scheduler picks among the priorities `allowed` leaves its queue
    /// and the buffer.
    #[inline(always)]
    fn depart<F: Features>(&mut self, port: usize, allowed: u8, now: Time, context: &mut impl NodeContext) {
        let Some(departure) = self.egress.pop::<F>(port, allowed) else { return };
        let priority = departure.priority;
        let ingress = if F::FLOW_CONTROL || F::AGENT { self.egress.ingress(&departure) } else { Ingress::LOCAL };
        self.release::<F>(ingress, u64::from(departure.place.wire), departure.left);
        let left = self.queued_bytes::<F>(port, priority, departure.left);
        if self.aqm.marks_at_departure() {
            self.mark_leaving(port, &departure, left, now);
        }
        if F::FLOW_CONTROL {
            self.spend_credits(port, priority, departure.place.wire, context);
        }
        if F::AGENT && !self.agent.is_none() && !self.agent.skips(port, 0) {
            let (packet, telemetry) = (*self.egress.taken(&departure), self.egress.telemetry(&departure));
            self.send_by_agent(port, now, &packet, telemetry.as_ref(), ingress, context);
        } else if !self.egress.send_taken::<F>(port, &departure, now, context) {
            let packet = *self.egress.taken(&departure);
            self.record_lost::<F>(port, (&packet).into(), now);
        }
        if F::FLOW_CONTROL && !self.egress.is_lazy() {
            self.update_neighbour(ingress, context);
        }
    }

    /// A packet leaves the buffer; its queue then holds `left` bytes.
    #[inline(always)]
    fn release<F: Features>(&mut self, ingress: Ingress, wire: u64, left: u64) {
        if F::FLOW_CONTROL && self.flow_control.counts(ingress) {
            self.buffer.give_back(self.flow_control.leave(ingress, wire));
        } else {
            self.buffer.leave(wire, left);
        }
    }

    /// Sends a packet that was not queued.
    #[inline(always)]
    fn transmit<F: Features>(
        &mut self,
        port: usize,
        now: Time,
        transit: Transit<'_>,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let packet = transit.packet;
        if F::FLOW_CONTROL {
            self.spend_credits(port, packet.priority, packet.wire, context);
        }
        if F::AGENT && !self.agent.is_none() && !self.agent.skips(port, 0) {
            self.send_by_agent(port, now, packet, telemetry, ingress, context);
        } else if !self.egress.send::<F>(port, packet, transit.hash::<F>(), telemetry, now, context) {
            self.record_lost::<F>(port, transit, now);
        }
    }

    // ---- What flow control advertises -------------------------------------------------------------------------

    // ---- Departure events -------------------------------------------------------------------------------------

    /// Schedules an event for when the link of a port is free, if there is something to send.
    #[inline]
    fn plan_departure(&mut self, port: usize, context: &mut impl NodeContext) {
        if let Some((at, payload)) = self.egress.plan_departure(port, context.now()) {
            let entity = self.base + port as u32;
            context.schedule(at, Event { class: self.settings.departure(), entity, payload });
        }
    }

    /// A departure event. Frames of flow control are sent before answers to markers, and these before packets.
    fn on_departure(&mut self, port: usize, epoch: u32, context: &mut impl NodeContext) {
        if !self.egress.begin_departure(port, epoch) {
            return;
        }
        let now = context.now();
        let out = self.egress.port(port);
        let allowed = out.allowed();
        if out.link.idle(now) {
            if out.frame_waits {
                self.send_frame(port, context);
            } else if out.messages_wait {
                self.send_message(port, context);
            } else if allowed != 0 {
                self.depart::<All>(port, allowed, now, context);
            }
        }
        self.plan_departure(port, context);
        self.relax();
    }

    /// From now on each departure is an event. All ports have caught up.
    #[cold]
    fn use_departure_events(&mut self, context: &mut impl NodeContext) {
        self.egress.use_events(Key::PAYLOADS);
        while let Some(port) = self.egress.take_busy() {
            self.plan_departure(port, context);
        }
    }

    /// Departures become lazy again when no neighbour is paused.
    #[inline]
    fn relax(&mut self) {
        if self.may_be_lazy && !self.egress.is_lazy() && self.flow_control.pauses_nobody() {
            self.egress.use_lazy_departures();
        }
    }

    // ---- Events -----------------------------------------------------------------------------------------------

    /// An event of this switch has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        let port = (event.entity - self.base) as usize;
        match event.class {
            class::DEPARTURE | class::LATE_DEPARTURE => self.on_departure(port, event.payload, context),
            class::AGENT => self.on_agent_timer(context),
            class::PAUSE => self.on_pause_event(port, event.payload, context),
            class::LINK => self.on_link(port, event.payload, context),
            _ => {}
        }
    }
}
