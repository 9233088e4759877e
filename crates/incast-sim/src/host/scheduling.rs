//! Receiver: the receiver half of receiver-driven protocols, its events and its messages.

use super::Host;
use crate::{
    fabric::node::{NodeContext, class},
    packet::{Kind, Packet},
    receiver::Arrival,
    recovery::Received,
};
use incast_cc::{
    message::{AckTag, Body},
    registry::Scheduler,
    scheduler::{self, End, NewFlow},
};
use incast_units::Time;

impl Host<'_> {
    /// Registers a flow with its scheduler at its first packet, before the packet is acknowledged.
    #[cold]
    pub(super) fn announce(&mut self, packet: &Packet, flow: u32, context: &mut impl NodeContext) {
        let mss = self.settings.host.mtu;
        let bytes = match packet.data().packets() {
            // The only packet of a flow knows its size, unless only its header came.
            1 if !packet.is_trimmed() => u64::from(packet.data().payload()),
            packets => u64::from(packets) * u64::from(mss),
        };
        let (now, source) = (context.now(), packet.data().source());
        let unscheduled = self.settings.unscheduled(packet.class, source);
        let new = NewFlow { now, flow, source, bytes, mss, unscheduled };
        let tag = packet.data().tag();
        self.with_scheduler_of(packet.class, context, |scheduler, send| {
            scheduler.on_flow(&new, send);
            if let Some(tag) = tag {
                scheduler.on_tag(new.now, flow, tag);
            }
            scheduler.next_timer()
        });
    }

    #[inline(always)]
    pub(super) fn consult_scheduler(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let Some(index) = class.scheduler else { return };
        if arrival.is_late() && self.receiver.is_abandoned(arrival.flow) {
            // The scheduler may not know the flow.
            return;
        }
        let mtu = u64::from(self.settings.host.mtu);
        // The packet has the flow's length in packets; only its last packet has the exact size.
        let size = u64::from(packet.data().packets()) * mtu;
        let arrived = self.receiver.records[arrival.flow as usize].bytes;
        let seen = scheduler::Arrival {
            now: context.now(),
            flow: arrival.flow,
            position: u64::from(packet.data().position()) * mtu,
            bytes: packet.data().payload(),
            expected: (u64::from(arrival.expected) * mtu).min(size),
            remaining: if arrival.expected == packet.data().packets() { 0 } else { size.saturating_sub(arrived) },
            marked: packet.marked(),
            duplicate: arrival.received == Received::Duplicate,
        };
        self.with_scheduler(usize::from(index), context, |scheduler, send| {
            if let Some(tag) = packet.data().tag() {
                scheduler.on_tag(seen.now, seen.flow, tag);
            }
            scheduler.on_data(&seen, send)
        });
    }

    /// Reports the end of a flow to its scheduler.
    #[inline(never)]
    pub(super) fn report_end(&mut self, flow: u32, end: End, context: &mut impl NodeContext) {
        if self.schedules {
            let (now, class) = (context.now(), self.receiver.records[flow as usize].class);
            self.with_scheduler_of(class, context, |scheduler, send| {
                scheduler.on_end(now, flow, end, send);
                scheduler.next_timer()
            });
        }
    }

    /// The tag of the acknowledgement of a packet.
    #[inline(never)]
    pub(super) fn ack_tag(&mut self, data: &Packet) -> Option<AckTag> {
        let index = self.settings.classes[usize::from(data.class)].scheduler?;
        let scheduler = &mut self.schedulers.as_mut()?.get_mut(usize::from(index))?.0;
        scheduler.ack_tag(self.receiver.index_of(data)?)
    }

    #[inline(never)]
    pub(super) fn on_scheduler_timer(&mut self, index: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let index = index as usize;
        let pending = self.schedulers.as_mut().and_then(|schedulers| schedulers.get_mut(index));
        let Some((_, event)) = pending.filter(|(_, event)| *event == now) else { return };
        *event = Time::MAX;
        self.with_scheduler(index, context, |scheduler, send| scheduler.on_timer(now, send));
        self.pump(context);
    }

    /// Calls the scheduler of a class, if it has one.
    pub(super) fn with_scheduler_of(
        &mut self,
        class: u8,
        context: &mut impl NodeContext,
        call: impl FnOnce(&mut Scheduler, &mut dyn FnMut(u32, Body)) -> Time,
    ) {
        if let Some(index) = self.settings.classes[usize::from(class)].scheduler {
            self.with_scheduler(usize::from(index), context, call);
        }
    }

    /// An acknowledgement takes its part of the link that a scheduler shares out.
    #[inline(never)]
    pub(super) fn count_ack(&mut self, packet: &Packet, now: Time) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let index = class.scheduler.filter(|_| class.tags_acks);
        let scheduler = index.zip(self.schedulers.as_mut());
        if let Some((scheduler, _)) = scheduler.and_then(|(index, list)| list.get_mut(usize::from(index))) {
            scheduler.on_ack(now, u64::from(packet.wire) + u64::from(self.settings.wire.gap));
        }
    }

    /// Calls a scheduler, sends the messages that it returns, and schedules an event for its timer.
    #[inline(always)]
    fn with_scheduler(
        &mut self,
        index: usize,
        context: &mut impl NodeContext,
        call: impl FnOnce(&mut Scheduler, &mut dyn FnMut(u32, Body)) -> Time,
    ) {
        // All are taken out, as a pointer: a scheduler itself is large.
        let taken = self.schedulers.take();
        debug_assert!(taken.is_some(), "schedulers do not call each other");
        let Some(mut schedulers) = taken else { return };
        debug_assert!(index < schedulers.len(), "a class names a scheduler that there is");
        if let Some((scheduler, event)) = schedulers.get_mut(index) {
            let next = call(scheduler, &mut |flow, body| self.send_message(flow, &body, context));
            if next < *event {
                *event = next.max(context.now());
                context.schedule(*event, self.event(class::SCHEDULER, index as u32));
            }
        }
        self.schedulers = Some(schedulers);
    }

    /// Sends a message to the sender of a flow.
    fn send_message(&mut self, flow: u32, body: &Body, context: &mut impl NodeContext) {
        let Some(about) = self.receiver.records.get(flow as usize) else { return };
        let class = &self.settings.classes[usize::from(about.class)];
        let mut packet = Packet::new(Kind::Credit, self.node, about.source, about.sequence, about.sender_slot);
        packet.ecmp_hash = about.reverse_hash;
        packet.control_mut().set_body(body);
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        packet.class = about.class;
        self.scatter(&mut packet);
        self.push_control(&mut packet, None, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        application::FlowSpec,
        engine::Event,
        fabric::{
            config::Wire,
            format::Format,
            link::{Receiver, Transmitter},
            node::Peer,
        },
        packet::Telemetry,
        routing::config::LoadBalancing,
        settings::{Class, Peers, Settings, host::HostConfig},
        topology::tests::link,
    };
    use incast_cc::{
        Path,
        law::{Framing, Recovery},
        message::Message as _,
        receiver_driven::dasr::share::Share,
        registry::{LawParameters, UnderlayParameters},
        testing::paced_tokens::{Message, PacedTokens},
    };
    use incast_units::{Rate, Time};

    const MTU: u32 = 1000;

    /// Records what a host sends, and ignores its timers.
    #[derive(Default)]
    struct World {
        now: Time,
        sent: Vec<Packet>,
    }

    impl NodeContext for World {
        fn now(&self) -> Time {
            self.now
        }
        fn send(&mut self, _peer: Peer, _arrival: Time, packet: &Packet, _telemetry: Option<&Telemetry>) {
            self.sent.push(*packet);
        }
        fn more_now(&self) -> bool {
            false
        }
        fn schedule(&mut self, _time: Time, _event: Event) {}
    }

    fn settings() -> Settings {
        let path = Path::new(Rate::from_gbps(100), Time::from_us(10), MTU, MTU + 90);
        let law = LawParameters::resolve("credit", &path, &[]).expect("a known law").expect("its defaults");
        let class = Class {
            transport: law.transport(),
            law,
            law_at: Vec::new(),
            recovery: Recovery::SelectiveRepeat,
            priority: 0,
            ack_priority: 0,
            notification_priority: 0,
            underlay: UnderlayParameters::None,
            shares_stages_of: 0,
            arrangement: None,
            reports: false,
            scheduler: Some(0),
            uses_tokens: true,
            tags_acks: true,
            ecn_capable: false,
            notification_interval: None,
            marks_at_edge: false,
            updates_gap: true,
            format: Format::of(Framing::Tcp),
            trimmable: false,
            path,
        };
        Settings {
            seed: 1,
            priorities: 1,
            load_balancing: LoadBalancing::Ecmp,
            pfc: None,
            credits: None,
            host: HostConfig {
                schedulers: vec![Scheduler::PacedTokens(PacedTokens::new(Time::from_us(1), 4_000, Time::from_us(100)))],
                ..HostConfig::plain(MTU)
            },
            clocks: Vec::new(),
            peers: Peers::default(),
            path_count: None,
            wire: Wire::default(),
            classes: vec![class],
            arrivals_first: false,
            base_rtt: Time::from_us(10),
            lookahead: Time::from_us(1),
            undisturbed_until: Time::MAX,
            record: false,
            rates: None,
            packets: None,
        }
    }

    fn host(settings: &Settings, node: u32, flows: Vec<FlowSpec>) -> Host<'_> {
        let link = Transmitter::new(&link(), Wire::default(), Peer { domain: 1, entity: 0 }, 1, 0);
        Host::new(settings, node, 0, link, Receiver::default(), flows, None)
    }

    /// Lets a host send all that waits, and returns it.
    fn flush(host: &mut Host<'_>, world: &mut World) -> Vec<Packet> {
        for _ in 0..100 {
            world.now += Time::from_us(1);
            host.on_event(Event { class: class::NIC, entity: 0, payload: 0 }, world);
        }
        std::mem::take(&mut world.sent)
    }

    fn data(source: u32, position: u32, packets: u32) -> Packet {
        let mut packet = Packet::new(Kind::Data, source, 9, 0, 5);
        packet.data_mut().set_position(position, packets);
        packet.data_mut().set_payload(MTU);
        packet.wire = 1070;
        packet
    }

    #[test]
    fn each_acknowledgement_says_how_many_senders_there_are_and_others_are_told() {
        let settings = settings();
        let (mut host, mut world) = (host(&settings, 9, Vec::new()), World::default());
        let acks = |sent: &[Packet]| -> Vec<(u32, Option<u32>)> {
            let acks = sent.iter().filter(|packet| packet.kind == Kind::Ack);
            acks.map(|ack| (ack.destination, ack.ack().tag().map(|tag| Share::from_tag(tag).senders()))).collect()
        };
        let told = |sent: &[Packet]| -> Vec<(u32, u32)> {
            let messages = sent.iter().filter(|packet| packet.kind == Kind::Credit);
            let shares = messages.filter_map(|packet| match Message::decode(&packet.control().body())? {
                Message::Share(share) => Some((packet.destination, share.senders())),
                Message::Instruct(_) => None,
            });
            shares.collect()
        };
        host.on_packet(&data(1, 0, 2), None, &mut world);
        let sent = flush(&mut host, &mut world);
        assert_eq!((acks(&sent), told(&sent)), (vec![(1, Some(1))], vec![]));
        // Known with the first acknowledgement of the second flow.
        host.on_packet(&data(2, 0, 1), None, &mut world);
        let sent = flush(&mut host, &mut world);
        assert_eq!((acks(&sent), told(&sent)), (vec![(2, Some(2))], vec![(1, 2), (1, 1)]));
        // That one is complete, and counts no longer.
        host.on_packet(&data(1, 1, 2), None, &mut world);
        let sent = flush(&mut host, &mut world);
        assert_eq!((acks(&sent), told(&sent)), (vec![(1, Some(1))], vec![]));
    }

    #[test]
    fn nothing_opens_a_flow_that_was_given_up() {
        let settings = settings();
        let (mut host, mut world) = (host(&settings, 9, Vec::new()), World::default());
        // The RST arrives first, then packets that were sent before it.
        host.on_packet(&Packet::new(Kind::Rst, 1, 9, 0, 5), None, &mut world);
        let mut signal = Packet::new(Kind::Signal, 1, 9, 0, 5);
        signal.control_mut().set_pair(0, 50);
        host.on_packet(&signal, None, &mut world);
        host.on_packet(&data(1, 0, 50), None, &mut world);
        host.on_packet(&Packet::new(Kind::Rst, 1, 9, 0, 5), None, &mut world);
        let sent = flush(&mut host, &mut world);
        assert!(sent.iter().all(|packet| packet.kind != Kind::Credit), "{sent:?}");
        assert_eq!(host.schedulers.as_ref().map(|schedulers| schedulers[0].0.next_timer()), Some(Time::MAX));
        assert_eq!((host.received().len(), host.received()[0].bytes), (1, 0));
    }

    #[test]
    fn a_law_gets_the_tags_of_acknowledgements_and_the_messages_of_its_receiver() {
        let mut settings = settings();
        let class = &mut settings.classes[0];
        class.law = LawParameters::resolve("dasr", &class.path, &[]).expect("a known law").expect("its defaults");
        class.uses_tokens = false;
        let spec = FlowSpec {
            start: Time::ZERO,
            source: 3,
            destination: 9,
            bytes: 50_000,
            class: 0,
            request: FlowSpec::NO_REQUEST,
            pinned: None,
        };
        let (mut host, mut world) = (host(&settings, 3, vec![spec]), World::default());
        host.on_event(Event { class: class::FLOW_START, entity: 0, payload: 0 }, &mut world);
        let sent = flush(&mut host, &mut world);
        assert_eq!(sent.len(), 1, "the law paces, and timers are not run");
        let share = |host: &Host<'_>| host.senders.get(0).and_then(|sender| sender.law.estimate());
        assert_eq!(share(&host), None);
        let mut ack = Packet::new(Kind::Ack, 9, 3, 0, 0);
        ack.ack_mut().set_cumulative(1);
        ack.ack_mut().set_echo(sent[0].data().sent(), Some(Share::of_senders(12).tag()));
        host.on_packet(&ack, None, &mut world);
        assert_eq!(share(&host), Some(12.0));
        let mut told = Packet::new(Kind::Credit, 9, 3, 0, 0);
        told.control_mut().set_body(&Share::of_senders(11).encode());
        host.on_packet(&told, None, &mut world);
        assert_eq!(share(&host), Some(11.0));
        // An acknowledgement without a tag changes nothing; its RTT is that of the echo alone.
        ack.ack_mut().set_echo(sent[0].data().sent(), None);
        host.on_packet(&ack, None, &mut world);
        assert_eq!(share(&host), Some(11.0));
        let smoothed = host.senders.get(0).map(|sender| sender.recovery.rtt.smoothed());
        assert_eq!(smoothed, Some(world.now));
    }
}
