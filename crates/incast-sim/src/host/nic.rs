//! The NIC: one port with its link, queues and flow control. Control packets go first, then flows by priority, those of
//! one priority in round robin.

use super::turns::Turns;
use crate::{
    fabric::{
        link::{Receiver, Transmitter},
        node::NodeContext,
        queue::{Pool, Queue},
    },
    flow_control::{
        Due, Effect, FlowControl,
        permission::{PauseRecord, Permission},
    },
    packet::{Kind, Packet, Telemetry},
    probe::PacketTrace,
    sender::QueuePlace,
    settings::Settings,
};
use incast_cc::agent::Codepoint;
use incast_units::Time;
use std::collections::BTreeSet;

/// Strict priorities of data.
const PRIORITIES: usize = 8;

/// The only port of a host.
const PORT: usize = 0;

/// See the module. What every packet needs comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Nic {
    /// Sending end.
    link: Transmitter,
    /// Receiving end.
    input: Receiver,
    flow_control: FlowControl,
    /// Control packets that wait.
    control: Queue,
    /// What may be sent.
    permission: Permission,
    /// An event for the choice of what comes next is pending.
    pub choice: bool,
    /// The last packet was a control packet: where they take turns, data is next.
    pub answered: bool,
    /// Priorities of the flows that go by rank, one bit each.
    ranked: u8,
    /// Priorities that there are, one bit each, as at a switch's port.
    priorities: u8,
    /// Flows with a packet to send, by its priority.
    turns: Turns,
    pool: Pool,
    /// How many control packets wait, by priority: very many may, and none of them be allowed to go.
    waiting: [u32; PRIORITIES],
    /// Flows with a packet to send that go by rank, if there ever were some.
    by_rank: Option<Box<Ranks>>,
    /// For how long not everything could be sent.
    pauses: PauseRecord,
}

/// Flows with a packet to send of which the one with the lowest rank goes first. As a group they have the highest of the
/// priorities of these packets, behind the flows of that priority in round robin.
#[derive(Debug, Default)]
struct Ranks {
    /// Rank, slot, and priority.
    flows: BTreeSet<(u64, u32, u8)>,
    /// How many there are, by priority.
    counts: [u32; PRIORITIES],
}

impl Nic {
    /// A NIC with its link.
    pub fn new(settings: &Settings, link: Transmitter, input: Receiver) -> Self {
        Self {
            flow_control: FlowControl::of_nic(settings.pfc.as_ref(), settings.credits.as_ref(), &link),
            link,
            input,
            control: Queue::default(),
            permission: Permission::default(),
            choice: false,
            answered: false,
            ranked: 0,
            priorities: u8::MAX >> (8 - settings.priorities),
            turns: Turns::default(),
            pool: Pool::default(),
            waiting: [0; PRIORITIES],
            by_rank: None,
            pauses: PauseRecord::default(),
        }
    }

    // ---- The link --------------------------------------------------------------------------------------------

    /// Its sending end.
    #[inline]
    pub fn link(&self) -> &Transmitter {
        &self.link
    }

    /// What was recorded of packets on the link.
    pub fn trace(&mut self) -> Option<&mut PacketTrace> {
        self.link.trace()
    }

    /// Its receiving end.
    pub fn input(&self) -> &Receiver {
        &self.input
    }

    /// Starts to transmit a packet; the link must be idle. False if it will be lost on the wire.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) -> bool {
        self.link.send(now, packet, telemetry, context)
    }

    /// What arrives is neither lost nor counted by credits.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.flow_control.uses_credits() && self.input.is_sound()
    }

    /// A packet arrived; false if the link failed while it was on the way.
    #[inline(always)]
    pub fn accept(&mut self, now: Time, packet: &Packet) -> bool {
        self.input.accept(now, packet, || &self.link)
    }

    /// The link goes down or comes up.
    pub fn set_link(&mut self, now: Time, up: bool) -> Effect {
        self.link.switch(up);
        self.input.switch(now, up);
        self.flow_control.reset(PORT, up, now)
    }

    // ---- Flow control ----------------------------------------------------------------------------------------

    /// Flow control of the host's only port.
    #[inline]
    pub fn flow_control(&self) -> &FlowControl {
        &self.flow_control
    }

    /// What may be sent.
    #[inline]
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// For how long not everything could be sent.
    pub fn pauses(&self) -> &PauseRecord {
        &self.pauses
    }

    /// The switch has sent a frame of flow control.
    pub fn on_frame(&mut self, packet: &Packet, now: Time) -> Effect {
        self.flow_control.on_frame(PORT, packet, now)
    }

    /// An event of flow control has come.
    pub fn on_event(&mut self, payload: u32, now: Time) -> Effect {
        self.flow_control.on_event(PORT, payload, self.link.is_up(), now)
    }

    /// A frame of flow control is to be sent.
    fn has_frame(&self, now: Time) -> bool {
        self.flow_control.due(PORT, now) == Due::Now
    }

    /// The next frame of flow control that host `node` sends.
    pub fn take_frame(&mut self, node: u32, now: Time) -> Option<Packet> {
        self.flow_control.take_frame(PORT, node, now).map(|frame| frame.packet)
    }

    /// A packet arrived, whose buffer is free at once: the other end of the link gets its credits back.
    pub fn count_received(&mut self, packet: &Packet) {
        if packet.kind != Kind::FlowControl {
            self.flow_control.pass(PORT, packet);
        }
    }

    /// The switch has room for a packet of `wire` bytes.
    fn may_send(&self, lane: u8, wire: u16) -> bool {
        self.flow_control.may_send(PORT, lane, wire)
    }

    /// The next packet of data of a lane, of `wire` bytes, is to leave. Returns whether it has to wait for credits; the
    /// lane then counts as blocked.
    pub fn block(&mut self, lane: u8, wire: u16, now: Time) -> bool {
        self.flow_control.block(PORT, lane, wire, now)
    }

    /// A packet leaves, on a link with credits.
    pub fn spend_credits(&mut self, lane: u8, wire: u16, now: Time) -> Effect {
        self.flow_control.on_departure(PORT, lane, wire, now)
    }

    /// Forbids the NIC to send the priorities of `mask`. Returns those that were allowed before.
    pub fn pause(&mut self, mask: u8, now: Time) -> u8 {
        self.permission.pause(now, mask & self.priorities, &mut self.pauses)
    }

    /// Allows it again. Returns those that were forbidden before.
    pub fn resume(&mut self, mask: u8, now: Time) -> u8 {
        self.permission.resume(now, mask, &mut self.pauses)
    }

    // ---- What waits ------------------------------------------------------------------------------------------

    /// Priorities of the flows that wait, one bit each.
    #[inline]
    fn ready(&self) -> u8 {
        self.turns.mask() | self.ranked
    }

    /// Something waits that may be sent.
    #[inline]
    pub fn has_work(&self, now: Time) -> bool {
        if self.flow_control.uses_credits() {
            return self.has_credited_work(now);
        }
        self.next_control_allowed() || self.has_ready_flow()
    }

    #[inline(never)]
    fn has_credited_work(&self, now: Time) -> bool {
        self.has_frame(now) || self.has_ready_flow() || self.next_credited().is_some()
    }

    #[inline]
    fn next_control_allowed(&self) -> bool {
        if self.permission.is_clear() {
            return !self.control.is_empty();
        }
        self.permission.allowed(self.waiting_priorities(|_| true)) != 0
    }

    // ---- Control packets -------------------------------------------------------------------------------------

    /// When the transmission of a control packet that is ready at `now` starts, where that is known. With
    /// `undisturbed_until` in the future only the packet on the link comes before it, unless another control packet
    /// waits.
    ///
    /// Packets that start later than `ahead` are not sent beforehand: the engine would only defer them.
    #[inline]
    pub fn start_of_control(&self, now: Time, undisturbed_until: Time, ahead: Time) -> Option<Time> {
        let start = self.link.free_at().max(now);
        let is_known = self.control.is_empty() && start < undisturbed_until && self.link.is_simple();
        debug_assert!(!is_known || self.permission.is_clear() && self.link.is_up(), "something holds up the NIC");
        (is_known && start <= now + ahead).then_some(start)
    }

    /// Queues a control packet.
    #[inline]
    pub fn push_control(&mut self, packet: &Packet, telemetry: Option<&Telemetry>) {
        self.waiting[usize::from(packet.priority)] += 1;
        self.pool.push(&mut self.control, packet, Codepoint::None, telemetry);
    }

    /// The next control packet that may go.
    #[inline]
    pub fn pop_control(&mut self) -> Option<Packet> {
        if self.flow_control.uses_credits() {
            return self.pop_credited();
        }
        let packet = if self.permission.is_clear() {
            self.pool.pop(&mut self.control)
        } else {
            let permission = self.permission;
            self.pool.pop_first(&mut self.control, |packet| permission.allowed(1 << packet.priority) != 0)
        }?;
        self.waiting[usize::from(packet.priority)] -= 1;
        Some(packet)
    }

    /// Priorities of the control packets that wait, of those that are `wanted`, one bit each.
    fn waiting_priorities(&self, wanted: impl Fn(u8) -> bool) -> u8 {
        let waiting = (0u8..).zip(&self.waiting).filter(|(priority, count)| **count > 0 && wanted(*priority));
        waiting.fold(0, |mask, (priority, _)| mask | 1 << priority)
    }

    /// The first control packet whose lane has credits; those of a lane keep their order.
    fn next_credited(&self) -> Option<&Packet> {
        let mut untried = self.waiting_priorities(|lane| self.may_send(lane, 1));
        let mut waiting = self.pool.packets(&self.control).map(|(packet, _)| packet);
        while untried != 0 {
            let packet = waiting.next()?;
            if untried & 1 << packet.priority != 0 && self.may_send(packet.priority, packet.wire) {
                return Some(packet);
            }
            untried &= !(1 << packet.priority);
        }
        None
    }

    /// Takes the first control packet whose lane has credits.
    #[inline(never)]
    fn pop_credited(&mut self) -> Option<Packet> {
        let lane = self.next_credited()?.priority;
        let packet = self.pool.pop_first(&mut self.control, |packet| packet.priority == lane)?;
        self.waiting[usize::from(lane)] -= 1;
        Some(packet)
    }

    /// The telemetry that a control packet which was just taken echoes.
    #[inline]
    pub fn telemetry(&self, packet: &Packet) -> Option<Telemetry> {
        self.pool.telemetry(packet)
    }

    /// Removes all control packets.
    pub fn drain_control(&mut self) -> impl Iterator<Item = Packet> {
        self.waiting.fill(0);
        std::iter::from_fn(|| self.pool.pop(&mut self.control))
    }

    /// Frame bytes of control packets that wait.
    pub fn waiting_bytes(&self) -> u64 {
        self.control.bytes()
    }

    // ---- Flows -----------------------------------------------------------------------------------------------

    /// A flow has a packet to send: it waits at its `place`.
    #[inline]
    pub fn offer(&mut self, slot: u32, place: &QueuePlace) {
        if place.by_rank {
            return self.push_ranked(slot, place);
        }
        self.turns.push_back(slot, place.priority);
    }

    /// A flow that was taken from its queue cannot send: puts it back to the front.
    pub fn put_back(&mut self, slot: u32, place: &QueuePlace) {
        if place.by_rank {
            return self.push_ranked(slot, place);
        }
        self.turns.push_front(slot, place.priority);
    }

    /// A flow leaves its queue before it has sent.
    #[cold]
    pub fn remove(&mut self, slot: u32, place: &QueuePlace) {
        if place.by_rank {
            return self.remove_ranked((place.rank, slot, place.priority));
        }
        self.turns.remove(slot, place.priority);
    }

    /// A flow of those that may send waits.
    #[inline]
    fn has_ready_flow(&self) -> bool {
        self.permission.allowed(self.ready()) != 0
    }

    /// Takes the next flow that may send.
    #[inline]
    pub fn pop_flow(&mut self) -> Option<u32> {
        let allowed = self.permission.allowed(self.ready());
        if allowed == 0 {
            return None;
        }
        let priority = allowed.trailing_zeros() as u8;
        self.turns.pop_front(priority).or_else(|| self.pop_ranked())
    }

    #[inline(never)]
    fn push_ranked(&mut self, slot: u32, place: &QueuePlace) {
        let ranks = self.by_rank.get_or_insert_default();
        ranks.flows.insert((place.rank, slot, place.priority));
        ranks.counts[usize::from(place.priority)] += 1;
        self.ranked |= 1 << place.priority;
    }

    fn remove_ranked(&mut self, flow: (u64, u32, u8)) {
        let Some(ranks) = &mut self.by_rank else { return };
        if ranks.flows.remove(&flow) {
            let count = &mut ranks.counts[usize::from(flow.2)];
            *count -= 1;
            if *count == 0 {
                self.ranked &= !(1 << flow.2);
            }
        }
    }

    /// Takes the first flow by rank whose packet may go.
    #[cold]
    #[inline(never)]
    fn pop_ranked(&mut self) -> Option<u32> {
        let permission = self.permission;
        let mut flows = self.by_rank.as_ref()?.flows.iter();
        let first = *flows.find(|(.., priority)| permission.allowed(1 << priority) != 0)?;
        self.remove_ranked(first);
        Some(first.1)
    }

    /// Another flow goes by rank before this one.
    pub fn is_behind(&self, slot: u32) -> bool {
        let first = self.by_rank.as_ref().and_then(|ranks| ranks.flows.first());
        first.is_some_and(|first| first.1 != slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::Event,
        fabric::{
            config::Wire,
            node::{NodeContext, Peer, pause},
        },
        flow_control::{
            config::{Alpha, Credits, Expiry, Pfc, Threshold},
            credits::{self, Update},
            pause::PauseFrame,
            pfc,
        },
        routing::config::LoadBalancing,
        settings::{Peers, host::HostConfig},
        topology::Link,
    };
    use incast_units::{Bytes, Rate};

    const DELAY: Time = Time::from_ns(50);
    const SIMPLE: Link = Link { rate: Rate::from_gbps(100), delay: DELAY, loss: 0.0 };
    const INSTANT: Time = Time::from_ps(1);

    /// Takes what is sent, and keeps nothing.
    struct World(Time);

    impl NodeContext for World {
        fn now(&self) -> Time {
            self.0
        }
        fn more_now(&self) -> bool {
            false
        }
        fn send(&mut self, _peer: Peer, _arrival: Time, _packet: &Packet, _telemetry: Option<&Telemetry>) {}
        fn schedule(&mut self, _time: Time, _event: Event) {}
    }

    fn nic(link: &Link, wire: Wire) -> Nic {
        nic_with(link, wire, |_| {})
    }

    fn nic_with(link: &Link, wire: Wire, change: impl FnOnce(&mut Settings)) -> Nic {
        let mut settings = Settings {
            seed: 1,
            priorities: 2,
            load_balancing: LoadBalancing::Ecmp,
            pfc: None,
            credits: None,
            host: HostConfig::plain(1000),
            clocks: Vec::new(),
            peers: Peers::default(),
            path_count: None,
            wire,
            classes: Vec::new(),
            arrivals_first: false,
            base_rtt: Time::from_us(10),
            lookahead: DELAY,
            undisturbed_until: Time::MAX,
            record: false,
            rates: None,
            packets: None,
        };
        change(&mut settings);
        let link = Transmitter::new(link, wire, Peer { domain: 1, entity: 0 }, 1, 0);
        Nic::new(&settings, link, Receiver::default())
    }

    fn packet(kind: Kind, wire: u16) -> Packet {
        let mut packet = Packet::new(kind, 0, 1, 0, 0);
        packet.wire = wire;
        packet
    }

    fn place(priority: u8, rank: Option<u64>) -> QueuePlace {
        QueuePlace { queued: true, by_rank: rank.is_some(), priority, rank: rank.unwrap_or_default() }
    }

    #[test]
    fn a_control_packet_starts_at_once_on_an_idle_link() {
        let (nic, now) = (nic(&SIMPLE, Wire::default()), Time::from_us(1));
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
        // What starts when something may disturb it is not known.
        assert_eq!(nic.start_of_control(now, now + INSTANT, DELAY), Some(now));
        assert_eq!(nic.start_of_control(now, now, DELAY), None);
        assert_eq!(nic.start_of_control(now, Time::ZERO, DELAY), None);
    }

    #[test]
    fn a_control_packet_waits_for_what_is_on_the_link_but_not_for_long() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let sent_at = Time::from_us(1);
        nic.transmit(sent_at, &packet(Kind::Data, 9000), None, &mut World(sent_at));
        let free = sent_at + Time::from_ps((9000 + 20) * 80);
        assert_eq!(nic.link.free_at(), free);
        assert_eq!(nic.start_of_control(free - INSTANT, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free + INSTANT, Time::MAX, DELAY), Some(free + INSTANT));
        // So much ahead, and no longer.
        assert_eq!(nic.start_of_control(free - DELAY, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free - DELAY - INSTANT, Time::MAX, DELAY), None);
        assert_eq!(nic.start_of_control(sent_at, Time::MAX, DELAY), None);
        // It is the start that has to be undisturbed.
        assert_eq!(nic.start_of_control(free - DELAY, free + INSTANT, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free - DELAY, free, DELAY), None);
    }

    #[test]
    fn a_control_packet_behind_another_one_starts_nobody_knows_when() {
        let (mut nic, now) = (nic(&SIMPLE, Wire::default()), Time::from_us(1));
        nic.push_control(&packet(Kind::Ack, 64), None);
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), None);
        assert!(nic.pop_control().is_some());
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
        // Data give way to it.
        nic.offer(0, &place(0, None));
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
    }

    #[test]
    fn a_paused_nic_sends_its_other_priorities() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let at = |priority| {
            let mut packet = packet(Kind::Ack, 64);
            packet.priority = priority;
            packet
        };
        nic.push_control(&at(1), None);
        nic.push_control(&at(0), None);
        nic.offer(7, &place(1, None));
        nic.offer(8, &place(0, None));
        assert_eq!(nic.pause(0b110, Time::ZERO), 0b10);
        assert_eq!(nic.pop_control().map(|packet| packet.priority), Some(0));
        assert!(nic.pop_control().is_none());
        assert_eq!((nic.pop_flow(), nic.pop_flow(), nic.has_work(Time::ZERO)), (Some(8), None, false));
        assert_eq!(nic.resume(u8::MAX, Time::ZERO), 0b10);
        assert!(nic.has_work(Time::ZERO));
        assert_eq!((nic.pop_control().map(|packet| packet.priority), nic.pop_flow()), (Some(1), Some(7)));
    }

    #[test]
    fn pauses_take_effect_end_and_are_forgotten_with_the_link() {
        let at = Time::from_us;
        let threshold = Threshold::Dynamic { alpha: Alpha::ByRate, reserve: 0, resume_offset: 0 };
        let expiry = Some(Expiry { after: at(10), refresh: at(5) });
        let rules = |response_delay| pfc::Rules {
            pfc: Pfc { response_delay, expiry, ..Pfc::new(threshold) },
            lossless: 0b11,
            frame: 1_000,
            gap: 20,
            host_rate: SIMPLE.rate,
            base_rtt: at(8),
        };
        let frame = |paused| PauseFrame { class_enable: 0b11, paused, time: Some(at(10)) }.packet(0, 64);
        let (quiet, event) = (Effect::default(), |at, payload| Some((at, payload)));
        let mut nic = nic_with(&SIMPLE, Wire::default(), |settings| settings.pfc = Some(rules(at(2))));
        assert_eq!(nic.on_frame(&frame(0b01), at(1)), Effect { event: event(at(3), pause::EFFECT), ..quiet });
        let expires = Effect { event: event(at(13), pause::EXPIRY), pause: 0b01, resume: 0b10, ..quiet };
        assert_eq!(nic.on_event(pause::EFFECT, at(3)), expires);
        assert_eq!(nic.on_event(pause::EXPIRY, at(12)), quiet);
        assert_eq!(nic.flow_control().paused().collect::<Vec<_>>(), [(0, 0, at(3))]);
        assert_eq!(nic.on_event(pause::EXPIRY, at(13)), Effect { resume: 0b01, ..quiet });
        // A frame that was to take effect when the link went down never does.
        nic.on_frame(&frame(0b10), at(20));
        assert_eq!(nic.set_link(at(21), false), Effect { resume: u8::MAX, ..quiet });
        assert_eq!((nic.on_event(pause::EFFECT, at(22)), nic.has_frame(at(22))), (quiet, false));
        // At once, without a time of response.
        let mut nic = nic_with(&SIMPLE, Wire::default(), |settings| settings.pfc = Some(rules(Time::ZERO)));
        let both = Effect { event: event(at(11), pause::EXPIRY), pause: 0b11, ..quiet };
        assert_eq!(nic.on_frame(&frame(0b11), at(1)), both);
        assert!(nic.take_frame(0, at(1)).is_none());
    }

    #[test]
    fn a_nic_without_credits_blocks_requests_and_starts_anew_with_its_link() {
        let quiet = Effect::default();
        let rules = credits::Rules {
            credits: Credits { buffer: Some(Bytes::new(65 * credits::BLOCK)), ..Credits::default() },
            lanes: 0b1,
            frame: 1_024,
            gap: 2,
        };
        for loss in [0.0, 0.1] {
            let link = Link { loss, ..SIMPLE };
            let mut nic = nic_with(&link, Wire::default(), |settings| settings.credits = Some(rules.clone()));
            let refresh = rules.limits(link.rate, link.delay).refresh;
            // Only on a link that loses packets an update may be missing.
            let reminder = |now| (loss > 0.0).then_some((now + refresh, pause::REFRESH));
            let now = Time::from_us(1);
            assert_eq!(nic.spend_credits(0, 4_000, now), Effect { event: reminder(now), ..quiet }, "loss {loss}");
            assert_eq!(nic.spend_credits(0, 64, now), quiet, "the event is pending");
            assert!(!nic.block(0, 32, now) && nic.block(0, 65, now));
            assert_eq!(nic.flow_control().paused().collect::<Vec<_>>(), [(0, 0, now)]);
            let later = now + refresh;
            let request = Effect { event: reminder(later), has_frame: loss > 0.0, ..quiet };
            assert_eq!(nic.on_event(pause::REFRESH, later), request);
            assert_eq!(nic.has_frame(later), loss > 0.0);
            let update = Update { lane: 0, sent: 0, limit: 128, requests: true }.packet(9, 64);
            assert_eq!(nic.on_frame(&update, later), Effect { resume: 1, has_frame: true, ..quiet });
            let answer = nic.take_frame(7, later).map(|packet| Update::read(&packet));
            assert_eq!(answer.map(|answer| (answer.sent, answer.lane)), Some((64, 0)));
            assert_eq!(nic.set_link(later, false), Effect { resume: u8::MAX, ..quiet });
            assert_eq!(nic.on_event(pause::REFRESH, later), quiet, "nothing is requested while it is down");
            let anew = Effect { event: reminder(later), resume: u8::MAX, has_frame: true, ..quiet };
            assert_eq!(nic.set_link(later, true), anew);
            assert!(nic.block(0, 1, later), "the switch has advertised nothing yet");
        }
    }

    #[test]
    fn a_flow_that_cannot_send_keeps_its_turn() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let (turn, rank) = (place(0, None), place(0, Some(3)));
        [1, 2, 3].iter().for_each(|slot| nic.offer(*slot, &turn));
        nic.offer(4, &rank);
        assert_eq!(nic.pop_flow(), Some(1));
        nic.put_back(1, &turn);
        nic.remove(2, &turn);
        assert_eq!((nic.pop_flow(), nic.pop_flow(), nic.pop_flow()), (Some(1), Some(3), Some(4)));
        nic.put_back(4, &rank);
        assert_eq!((nic.pop_flow(), nic.pop_flow()), (Some(4), None));
    }

    #[test]
    fn flows_by_rank_wait_behind_those_that_take_turns() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let shortest = [(1, place(1, Some(9))), (2, place(1, Some(4))), (3, place(0, Some(7)))];
        shortest.iter().for_each(|(slot, place)| nic.offer(*slot, place));
        assert!(nic.is_behind(1) && !nic.is_behind(2));
        nic.offer(4, &place(1, None));
        nic.offer(5, &place(0, None));
        // As a group they have the highest of their priorities, whatever the first one's is.
        assert_eq!((nic.pop_flow(), nic.pop_flow()), (Some(5), Some(2)));
        nic.remove(3, &shortest[2].1);
        assert_eq!((nic.pop_flow(), nic.pop_flow(), nic.pop_flow()), (Some(4), Some(1), None));
        // Of those that are paused none goes.
        shortest.iter().for_each(|(slot, place)| nic.offer(*slot, place));
        nic.pause(1, Time::ZERO);
        assert_eq!((nic.pop_flow(), nic.pop_flow(), nic.pop_flow()), (Some(2), Some(1), None));
    }

    #[test]
    fn what_every_packet_needs_lies_together() {
        // Of a queue of control packets and the flows that take turns, only the ends.
        let near = std::mem::offset_of!(Nic, pool);
        assert!(near <= 4 * 64, "{near} bytes are more than four cache lines");
    }

    #[test]
    fn on_a_link_that_is_not_simple_no_start_is_known() {
        let lossy = Link { loss: 0.5, ..SIMPLE };
        let uneven = Link { rate: Rate::from_gbps(3), ..SIMPLE };
        let no_gap = Wire { gap: 0, ..Wire::default() };
        let cases = [(lossy, Wire::default()), (uneven, Wire::default()), (SIMPLE, no_gap)];
        for (link, wire) in cases {
            let nic = nic(&link, wire);
            assert!(!nic.link.is_simple());
            assert_eq!(nic.start_of_control(Time::from_us(1), Time::MAX, DELAY), None);
        }
    }
}
