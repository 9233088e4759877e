//! Sender: nothing was heard for too long.

use super::{Host, sending::SendFlow};
use crate::recovery::SelectiveRepeat;
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet},
    },
    probe::EventKind,
};
use incast_units::Time;

impl Host<'_> {
    /// A flow's deadline may have come.
    pub(super) fn on_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.timer_event != now {
            return;
        }
        flow.timer_event = Time::MAX;
        let due = settings.host.expiry(flow.deadline);
        if due > now {
            flow.timer_event = due;
            context.schedule(due, self.event(class::RETRANSMISSION, slot));
            return;
        }
        if flow.opening {
            self.open_again(slot, context);
            return;
        }
        if flow.holds_oldest(slot, &mut self.stages) {
            // What has not left this host is not lost: as Linux has it for what waits in a queueing discipline.
            flow.restart_timer(now, settings);
            self.offer(slot, context);
            self.pump(context);
            return;
        }
        let is_probe = flow.may_probe() && flow.rtt.probe_timeout(Time::ZERO).is_some();
        if is_probe && flow.send.prober().is_some_and(SelectiveRepeat::probe) {
            flow.probed = true;
        } else if flow.patient {
            // What is lost is the receiver's business; the law may remind it.
            flow.timeouts += 1;
            flow.backoff = flow.backoff.saturating_add(1);
            let next = flow.position(flow.send.unsent(), settings.host.mtu);
            flow.law.on_timeout(now, next);
            flow.refresh(settings);
            let packet = Packet::new(Kind::Data, self.node, flow.spec.destination, flow.sequence, slot);
            self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
        } else if flow.send.in_flight() > 0 || flow.send.next().is_none() {
            flow.timeouts += 1;
            flow.backoff = flow.backoff.saturating_add(1);
            flow.probed = false;
            flow.on_timeout(now, settings);
            let packet = Packet::new(Kind::Data, self.node, flow.spec.destination, flow.sequence, slot);
            self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
        } else if is_probe {
            // Nothing is in flight that could be probed for: the timeout proper decides.
            flow.probed = flow.waits_for_credit(now, settings.host.mtu);
        } else if flow.waits_for_credit(now, settings.host.mtu) {
            flow.timeouts += 1;
            flow.backoff = flow.backoff.saturating_add(1);
            flow.go_on_without_credit(now, settings);
            let packet = Packet::new(Kind::Data, self.node, flow.spec.destination, flow.sequence, slot);
            self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
        }
        if settings.host.give_up_after.is_some_and(|limit| flow.backoff >= limit) {
            self.abandon(slot, context);
            return;
        }
        flow.restart_timer(now, settings);
        if self.schedules {
            self.change_line(slot);
            self.say(slot, context);
        }
        self.offer(slot, context);
        self.pump(context);
    }
}

/// Sees to it that a flow's deadline is looked at.
#[inline]
pub(super) fn plan_timer(flow: &mut SendFlow, slot: u32, base: u32, context: &mut impl NodeContext) {
    if flow.deadline < flow.timer_event {
        start_timer(flow, slot, base, context);
    }
}

#[inline(never)]
fn start_timer(flow: &mut SendFlow, slot: u32, base: u32, context: &mut impl NodeContext) {
    flow.timer_event = flow.deadline;
    context.schedule(flow.deadline, Event { class: class::RETRANSMISSION, entity: base, payload: slot });
}
