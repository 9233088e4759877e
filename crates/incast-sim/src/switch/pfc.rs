//! Priority flow control: which neighbours this switch pauses, and what it does when it is paused itself.
//!
//! As long as no ingress is paused, departures stay lazy (see [`Switch::drain`]): what has not left yet only makes an
//! ingress look fuller than it is, so a switch catches up before it pauses one. From then on each departure is an event,
//! so that the neighbour may go on in time, until all of them have been told so.

use super::{FULL, Switch};
use crate::{
    config::Expiry,
    engine::{Event, queue::Key},
    fabric::{
        node::{NodeContext, class, pause},
        packet::Packet,
        queue::{MADE_HERE, Origin},
    },
    flow_control::{
        pause::{Heard, Notice},
        pfc::{Accounts, Rules},
    },
    probe::{EventKind, PauseCause},
};
use incast_units::Time;
use std::collections::BTreeSet;

/// Flow control of one switch.
#[derive(Debug)]
pub(super) struct Control {
    pub accounts: Accounts,
    /// By port, the priorities that its neighbour ought to pause, and those that it was told to, one bit each.
    ports: Vec<Asked>,
    /// Ports with a neighbour that is paused or has not been told that it may go on.
    loud: usize,
    /// By port, what its neighbour has asked for.
    pub heard: Vec<Heard>,
    response_delay: Time,
    expiry: Option<Expiry>,
    frame: u16,
    /// Departure events of earlier times, when departures were events before, carry another number.
    pub epoch: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    wanted: u8,
    told: u8,
    /// When it is told again.
    refresh: Time,
}

impl Control {
    pub fn new(rules: &Rules, accounts: Accounts, ports: usize) -> Self {
        Self {
            accounts,
            ports: vec![Asked::default(); ports],
            loud: 0,
            heard: vec![Heard::default(); ports],
            response_delay: rules.pfc.response_delay,
            expiry: rules.pfc.expiry,
            frame: rules.pfc.frame,
            epoch: 0,
        }
    }

    /// Changes what is asked of a neighbour, and keeps count of those of whom something is.
    fn change(&mut self, port: usize, change: impl FnOnce(&mut Asked)) {
        let asked = &mut self.ports[port];
        let before = asked.wanted | asked.told != 0;
        change(asked);
        let after = asked.wanted | asked.told != 0;
        self.loud = self.loud + usize::from(after) - usize::from(before);
    }
}

impl Switch<'_> {
    /// Admission where packets are counted by ingress. Pauses the ingress of a packet with which it is full.
    #[inline(never)]
    pub(super) fn admit_counted(
        &mut self,
        port: usize,
        queue: usize,
        packet: &Packet,
        context: &mut impl NodeContext,
    ) -> bool {
        if self.credits.is_some() {
            return self.admit_by_credits(port, queue, packet, context);
        }
        let wire = u64::from(packet.wire);
        let Origin { port: ingress, priority } = self.origin;
        if !self.counts(self.origin) {
            return self.admit_by_queue(port, queue, wire, context);
        }
        let mut full = self.would_pause(packet);
        if full && self.lazy {
            self.catch_up(context);
            full = self.would_pause(packet);
            if full {
                self.stop_being_lazy(context);
            }
        }
        let Some(control) = &mut self.pfc else { return true };
        let room = control.accounts.enter(ingress, priority, wire, &mut self.memory);
        if !room {
            self.counters.lossless_drops += 1;
        }
        let (from, bit) = (usize::from(ingress), 1 << priority);
        // What holds nothing has nothing that could leave and let it go on: it is never paused.
        if full
            && (room || control.accounts.bytes(ingress, priority) > 0)
            && control.ports[from].wanted & bit == 0
            && control.accounts.is_high(ingress, priority, &self.memory)
        {
            control.change(from, |asked| asked.wanted |= bit);
            if self.recorder.records_events() {
                self.record_cause(port, packet, context.now());
            }
            self.tell(from, context.now(), context);
        }
        room
    }

    /// Records why the ingress of a packet, which is about to wait at `port`, is paused.
    #[cold]
    fn record_cause(&mut self, port: usize, packet: &Packet, time: Time) {
        let (node, origin) = (self.node, self.origin);
        let Origin { port: ingress, priority } = origin;
        let held = |egress: usize| {
            let queues = self.group_of(priority).map(|priority| &self.queues[self.index(egress, priority)]);
            let own = queues.flat_map(|queue| self.pool.origins(queue)).filter(|(from, _)| *from == origin);
            let at_hand = if egress == port { u64::from(packet.wire) } else { 0 };
            own.map(|(_, bytes)| bytes).sum::<u64>() + at_hand
        };
        // Of equals the lowest.
        let egress = (0..self.ports.len()).rev().max_by_key(|egress| held(*egress)).unwrap_or(port);
        let egress_paused = self.ports[egress].permission.allowed(1 << priority) == 0;
        let egress = egress as u16;
        self.recorder.causes.push(PauseCause {
            time,
            node,
            ingress,
            priority,
            egress,
            egress_paused,
            root: (node, egress),
        });
    }

    /// Packets that came in like this are counted by ingress.
    pub(super) fn counts(&self, origin: Origin) -> bool {
        origin.port != MADE_HERE
            && self.pfc.as_ref().is_some_and(|control| control.accounts.is_lossless(origin.priority))
    }

    /// Whether the ingress of the packet at hand would be paused with it, as far as departures have happened.
    fn would_pause(&self, packet: &Packet) -> bool {
        self.pfc.as_ref().is_some_and(|control| {
            let wire = u64::from(packet.wire);
            control.accounts.reaches(self.origin.port, self.origin.priority, wire, &self.memory)
        })
    }

    /// A packet has left the memory that it was admitted to; its queue now holds `left` bytes.
    pub(super) fn release(&mut self, origin: Origin, packet: &Packet, left: u64) {
        if self.credits.is_some() {
            return self.release_credits(origin, packet, left);
        }
        let wire = u64::from(packet.wire);
        let counts = self.counts(origin);
        match &mut self.pfc {
            Some(control) if counts => {
                control.accounts.leave(origin.port, origin.priority, wire, &mut self.memory);
            }
            _ => self.memory.leave(wire, left),
        }
    }

    /// A packet that came in like this has left: its neighbour may go on if little enough of it is here.
    pub(super) fn reconsider(&mut self, origin: Origin, context: &mut impl NodeContext) {
        if self.credits.is_some() {
            return self.tell_credits(origin.port, origin.priority, context);
        }
        if !self.counts(origin) {
            return;
        }
        let Origin { port: ingress, priority } = origin;
        let Some(control) = &mut self.pfc else { return };
        let (from, bit) = (usize::from(ingress), 1 << priority);
        if control.ports[from].wanted & bit != 0 && control.accounts.is_low(ingress, priority, &self.memory) {
            control.change(from, |asked| asked.wanted &= !bit);
            self.tell(from, context.now(), context);
        }
    }

    /// Sees to it that the neighbour at a port knows what is asked of it.
    fn tell(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let Some(control) = &self.pfc else { return };
        let Asked { wanted, told, refresh } = control.ports[port];
        let out = &mut self.ports[port];
        if !out.link.is_up() {
            out.notice = false;
        } else if wanted == told {
            // Nothing new, but a refresh that waits for the link is due all the same.
            out.notice &= control.expiry.is_some() && told != 0 && refresh <= now;
        } else if out.link.idle(now) {
            self.send_notice(port, now, context);
        } else {
            out.notice = true;
            self.plan_departure(port, context);
        }
    }

    /// Sends the notice that waited for the link.
    #[cold]
    pub(super) fn send_waiting_notice(&mut self, port: usize, context: &mut impl NodeContext) {
        self.ports[port].notice = false;
        if self.credits.is_some() {
            return self.send_update(port, context.now(), context);
        }
        self.send_notice(port, context.now(), context);
    }

    /// Puts a pause frame on an idle link, if there is something to say: what has changed, and, where pauses expire,
    /// all of them anew.
    fn send_notice(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let Some(control) = &mut self.pfc else { return };
        let Asked { wanted, told, .. } = control.ports[port];
        let about = if control.expiry.is_some() { wanted | told } else { wanted ^ told };
        if about == 0 {
            return;
        }
        let time = control.expiry.map(|expiry| expiry.after);
        let packet = Notice { about, paused: wanted & about, time }.packet(self.node, control.frame);
        control.change(port, |asked| asked.told = wanted);
        self.counters.created_bytes += u64::from(packet.wire);
        if let Some(expiry) = control.expiry.filter(|_| wanted != 0) {
            let at = now + expiry.refresh;
            control.ports[port].refresh = at;
            context.schedule(at, self.pause_event(port, pause::REFRESH));
        }
        if !self.ports[port].link.send(now, &packet, None, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, &packet);
        }
    }

    fn pause_event(&self, port: usize, payload: u32) -> Event {
        Event { class: class::PAUSE, entity: self.base + port as u32, payload }
    }

    /// A pause frame arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn on_notice(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.consumed_bytes += u64::from(packet.wire);
        let Some(control) = &mut self.pfc else { return };
        let (now, notice) = (context.now(), Notice::read(packet));
        if control.response_delay > Time::ZERO {
            let at = now + control.response_delay;
            control.heard[port].put_off(at, notice);
            context.schedule(at, self.pause_event(port, pause::EFFECT));
        } else {
            self.apply(port, notice, context);
        }
    }

    /// What a neighbour asked for takes effect.
    fn apply(&mut self, port: usize, notice: Notice, context: &mut impl NodeContext) {
        let Some(control) = &mut self.pfc else { return };
        let now = context.now();
        if let Some(expiry) = control.heard[port].apply(now, notice) {
            context.schedule(expiry, self.pause_event(port, pause::EXPIRY));
        }
        if notice.paused != 0 {
            if self.lazy {
                self.drain::<FULL>(port, self.settings.ended_before(now), context);
            }
            self.pause(port, notice.paused, context);
        }
        if notice.resumed() != 0 {
            self.resume(port, notice.resumed(), context);
        }
    }

    /// An event of flow control has come.
    #[cold]
    pub(super) fn on_pause_event(&mut self, port: usize, payload: u32, context: &mut impl NodeContext) {
        if self.credits.is_some() {
            return self.on_reminder(port, context);
        }
        let now = context.now();
        match payload {
            pause::EFFECT => {
                while let Some(notice) = self.pfc.as_mut().and_then(|control| control.heard[port].due(now)) {
                    self.apply(port, notice, context);
                }
            }
            pause::EXPIRY => {
                let expired = self.pfc.as_mut().map_or(0, |control| control.heard[port].expire(now));
                if expired != 0 {
                    self.resume(port, expired, context);
                }
            }
            _ => {
                let asked = self.pfc.as_ref().map_or(Asked::default(), |control| control.ports[port]);
                let out = &mut self.ports[port];
                if asked.refresh == now && asked.told != 0 && out.link.is_up() {
                    if out.link.idle(now) {
                        self.send_waiting_notice(port, context);
                    } else {
                        out.notice = true;
                        self.plan_departure(port, context);
                    }
                }
            }
        }
    }

    /// The cable at a port went down or came up. What was said over it is forgotten.
    pub(super) fn reset_notices(&mut self, port: usize, up: bool, context: &mut impl NodeContext) {
        if self.credits.is_some() {
            return self.reset_credits(port, up, context);
        }
        let Some(control) = &mut self.pfc else { return };
        control.heard[port].forget();
        control.change(port, |asked| (asked.told, asked.refresh) = (0, Time::ZERO));
        self.ports[port].notice = false;
        if up {
            self.tell(port, context.now(), context);
        } else {
            self.resume(port, u8::MAX, context);
        }
    }

    /// Paused priorities of ports, and those without credits: port, priority, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        let ports = self.pfc.iter().flat_map(|control| control.heard.iter().enumerate());
        let paused = ports.flat_map(|(port, heard)| {
            (0..8u8).filter_map(move |priority| Some((port as u16, priority, heard.since(priority)?)))
        });
        paused.chain(self.blocked())
    }

    /// Queues that hold something and are paused: port, priority, and since when.
    pub fn paused_queues(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        self.paused()
            .filter(|(port, priority, _)| self.ports[usize::from(*port)].waiting & 1 << priority != 0)
    }

    /// Whether the neighbour at a port is kept from sending for a reason: it ought to pause, and packets of it wait here.
    pub fn keeps_paused(&self, port: u16, priority: u8) -> bool {
        let asks = self.pfc.as_ref().is_some_and(|control| {
            control.ports[usize::from(port)].wanted & 1 << priority != 0
                && control.accounts.bytes(port, priority) > 0
        });
        asks || self.holds_credits(port, priority)
    }

    /// Which ingress, with which priority, has packets in the queue of which egress and priority. What is held waits for those
    /// that went before.
    pub fn holdings(&self) -> BTreeSet<(u16, u8, u16, u8)> {
        let mut holdings = BTreeSet::new();
        for (index, queue) in self.queues.iter().enumerate() {
            let (priority, egress) = ((index / self.ports.len()) as u8, (index % self.ports.len()) as u16);
            let origins = self.pool.origins(queue).map(|(origin, _)| origin);
            holdings.extend(origins.map(|origin| (origin.port, origin.priority, egress, priority)));
        }
        self.held(|origin, after| {
            holdings.insert((origin.port, origin.priority, after, self.channel(origin, usize::from(after))));
        });
        holdings
    }

    /// Lets everything leave that has left by now.
    pub(super) fn catch_up(&mut self, context: &mut impl NodeContext) {
        let limit = self.settings.ended_before(context.now());
        let mut from = 0;
        while let Some(port) = self.busy.first_from(from) {
            from = port + 1;
            self.drain::<FULL>(port, limit, context);
        }
    }

    /// From now on each departure is an event. All ports have caught up.
    #[cold]
    fn stop_being_lazy(&mut self, context: &mut impl NodeContext) {
        self.lazy = false;
        if let Some(control) = &mut self.pfc {
            control.epoch = (control.epoch + 1) % Key::PAYLOADS;
        }
        while let Some(port) = self.busy.first_from(0) {
            self.busy.remove(port);
            self.plan_departure(port, context);
        }
    }

    /// Departures become lazy again when no neighbour is paused.
    #[inline]
    pub(super) fn relax(&mut self) {
        if self.may_be_lazy && !self.lazy && self.pfc.as_ref().is_some_and(|control| control.loud == 0) {
            self.lazy = true;
            for (port, out) in self.ports.iter_mut().enumerate() {
                out.departure = false;
                if out.waiting != 0 {
                    self.busy.insert(port);
                }
            }
        }
    }

    /// The number that departure events carry.
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.pfc.as_ref().map_or(0, |control| control.epoch)
    }
}
