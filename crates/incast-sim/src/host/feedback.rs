//! Sender: an acknowledgement or another answer arrived, for the law and for reliability.

use super::{Host, order::Order, sending::SendFlow, underlay::clock_error};
use crate::fabric::{
    node::NodeContext,
    packet::{Kind, Packet, Telemetry},
};
use crate::recovery::Acked;
use incast_cc::{Feedback, spray::Fate};
use incast_units::Time;

impl Host<'_> {
    /// Sender: an acknowledgement, positive or negative.
    #[inline(never)]
    pub(super) fn on_ack(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let settings = self.settings;
        let mtu = settings.host.mtu;
        let slot = packet.slot;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.sequence != packet.sequence {
            // The slot has a new tenant: this answers a duplicate of a finished flow.
            return;
        }
        let (before, sent) = (flow.send.acked(), packet.echo(now));
        let handed_over = flow.handed_over(sent, &mut self.stages);
        let nothing_to_send = flow.send.next().is_none();
        if let Some(share) = packet.share() {
            flow.share = Some(share);
        }
        let acked = match packet.kind {
            Kind::Nack => flow.send.on_nack(packet.packets),
            _ => flow.send.on_ack(packet.position, packet.packets, handed_over.ps()),
        };
        let rtt = now - if flow.rtt_with_hold { handed_over } else { sent };
        flow.rtt.sample(rtt);
        let clock = self.clock.as_deref();
        let one_way_delay = || i64::from(packet.delay_ns) * 1000 - clock_error(clock, sent);
        if flow.listens {
            let (packets, marked) = packet.report();
            let feedback = Feedback {
                now,
                acked_bytes: payload_of(&acked, flow, mtu),
                packets,
                marked,
                acked: flow.position(flow.send.acked(), mtu),
                next: flow.position(flow.send.unsent(), mtu),
                in_flight: flow.in_flight(mtu),
                rtt,
                app_limited: flow.app_limited(before),
                nothing_to_send,
                endpoint_delay: Some(packet.endpoint_delay()),
                hops: Some(packet.hops()),
                one_way_delay: Some(one_way_delay()),
                telemetry: telemetry.map_or(&[], Telemetry::hops),
                share: flow.share,
            };
            flow.hear(&feedback, &acked, settings);
        } else {
            flow.stay(settings, false);
        }
        flow.report_arrival(packet);
        let heard_by = flow.heard_by;
        if let Some(stage) = heard_by {
            self.stages.at(stage).on_report(now, sent, one_way_delay());
        }
        if flow.send.is_done() {
            self.finish(slot, context);
        } else {
            if acked.packets > 0 {
                flow.backoff = 0;
                flow.probed = false;
                flow.restart_timer(now, settings);
            }
            self.offer_in_line(slot, context);
        }
        if let Some(stage) = heard_by {
            self.offer_first(stage, context);
        }
        self.pump(context);
    }

    #[inline(never)]
    pub(super) fn on_notification(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        if let Some(Some(flow)) = self.flows.get_mut(packet.slot as usize)
            && flow.sequence == packet.sequence
        {
            flow.law.on_cnp(context.now(), &packet.cnp());
            flow.refresh(self.settings);
            self.offer(packet.slot, context);
            self.pump(context);
        }
    }

    /// Sender: a switch had no room even for the header of a packet, and sent that back. So the packet is lost for certain.
    #[cold]
    pub(super) fn on_bounced(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let (now, settings, slot) = (context.now(), self.settings, packet.slot);
        let tenant = self.flows.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(flow) = tenant.filter(|flow| flow.sequence == packet.sequence) else { return };
        flow.report_trouble(packet.position, 1, Fate::Bounced);
        flow.on_resend(now, packet.position, 1, settings);
        let expected = flow.on_returned(settings.host.mtu);
        let is_bad_way = flow.paths.as_ref().is_some_and(|paths| paths.is_bad_way());
        if resends_at_once(expected, is_bad_way) && flow.waits_for_credit(now, settings.host.mtu) {
            flow.on_token(now, None, Time::MAX, settings);
        }
        self.offer(slot, context);
        self.pump(context);
    }

    /// Sender: an order of the receiver's scheduler.
    #[inline(never)]
    pub(super) fn on_credit(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let (now, settings, slot) = (context.now(), self.settings, packet.slot);
        let Some((order, priority)) = Order::read(packet) else { return };
        let tenant = self.flows.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(flow) = tenant.filter(|flow| flow.sequence == packet.sequence) else {
            if self.settings.host.give_up_after.is_some() {
                self.repeat_farewell(packet, context);
            }
            return;
        };
        if let Some(priority) = priority {
            flow.priority = priority;
        }
        if flow.speaks {
            flow.law.on_heard();
        }
        let is_resend = matches!(order, Order::Resend(..));
        match order {
            Order::Credit(position) => {
                flow.law.on_credit(now, position);
                flow.refresh(settings);
            }
            Order::Token(wanted, lifetime) => flow.on_token(now, wanted, lifetime, settings),
            Order::Resend(first, count) => {
                flow.report_trouble(first, count, Fate::Trimmed);
                flow.on_resend(now, first, count, settings);
            }
            Order::Pull(number) => flow.on_pull(number),
            Order::Answer => flow.law.on_answer(now),
            Order::Share(share) => {
                flow.share = Some(share);
                flow.law.on_share(now, share);
                flow.refresh(settings);
            }
        }
        if flow.patient {
            // The receiver lives: acknowledgements need not tell that.
            flow.backoff = 0;
            flow.restart_timer(now, settings);
        }
        let speaks = flow.speaks;
        if flow.queued {
            self.change_line(slot);
        }
        self.offer_in_line(slot, context);
        if is_resend && self.nic.is_behind(slot) {
            self.delay_resend(slot, now);
        }
        if speaks {
            self.say(slot, context);
        }
        self.pump(context);
    }

    /// Sender: what the receiver wants again waits behind other flows.
    #[cold]
    fn delay_resend(&mut self, slot: u32, now: Time) {
        if let Some(Some(flow)) = self.flows.get_mut(slot as usize) {
            flow.law.on_delayed_resend(now);
        }
    }
}

/// Whether a packet whose header came back goes out again at once, rather than with the next PULL: if no PULL is expected, as
/// otherwise the incast that filled the queue would come back as an echo; or if its way is bad, so that it takes another one.
///
/// Source: M. Handley et al., SIGCOMM 2017 (NDP), section 3.2.4. Its authors' simulator also wants at most one packet left
/// of the first window that nothing was heard of; here such packets count as PULLs expected.
const fn resends_at_once(pulls_expected: u64, way_is_bad: bool) -> bool {
    pulls_expected == 0 || way_is_bad
}

/// Payload bytes of newly acknowledged packets.
#[inline]
fn payload_of(acked: &Acked, flow: &SendFlow, mtu: u32) -> u64 {
    let full = u64::from(acked.packets) * u64::from(mtu);
    if acked.last { full - u64::from(mtu - flow.last_payload()) } else { full }
}
