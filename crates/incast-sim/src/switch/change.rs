//! What changes around a switch: permission to send, and links that go down and up.

use super::{FULL, LINK_UP, NEW_EPOCH, Switch};
use crate::{fabric::node::NodeContext, probe::EventKind};

impl Switch<'_> {
    /// Forbids a port to send the priorities of `mask`.
    pub(super) fn pause(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        let mask = mask & u8::MAX >> (8 - self.priorities);
        let paused = self.ports[port].permission.pause(context.now(), mask, &mut self.pauses[port]);
        self.report_edges(port, paused, EventKind::Pause, context);
    }

    /// Allows it again.
    pub(super) fn resume(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        if self.lazy {
            // What the other priorities could send until now has gone.
            self.drain::<FULL>(port, self.settings.ended_before(now), context);
        }
        let resumed = self.ports[port].permission.resume(now, mask, &mut self.pauses[port]);
        self.report_edges(port, resumed, EventKind::Resume, context);
        let out = &self.ports[port];
        if out.link.idle(now) && out.permission.allowed(out.waiting) != 0 {
            self.depart(port, now, context);
        }
        if !self.lazy {
            self.plan_departure(port, context);
            self.relax();
        }
    }

    fn report_edges(&mut self, port: usize, priorities: u8, kind: EventKind, context: &mut impl NodeContext) {
        let now = context.now();
        if !self.plain {
            for priority in (0..self.priorities as u8).filter(|priority| priorities & 1 << priority != 0) {
                let view = self.view(port, priority, now);
                match kind {
                    EventKind::Pause => self.agent.on_pause(&view),
                    _ => self.agent.on_resume(&view),
                }
                self.plan_agent(context);
            }
        }
        self.recorder.edges(now, self.node, port as u16, priorities, kind);
    }

    /// A cable went down or came up somewhere: `payload` is `NEW_EPOCH` for a new table, else the port's new state.
    #[cold]
    pub(super) fn on_link(&mut self, port: usize, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            if let Some(rule) = self.later_rules.pop() {
                self.rule = rule;
                self.change_routes(context);
            }
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.drain::<FULL>(port, now, context);
        self.ports[port].link.switch(up);
        self.inputs[port].switch(now, up);
        if up {
            self.reset_notices(port, true, context);
            return;
        }
        // What waits for a dead link is lost; what is on it is lost at its far end.
        for priority in 0..self.priorities {
            let index = self.index(port, priority as u8);
            while let Some(packet) = self.pool.pop(&mut self.queues[index]) {
                let origin = self.pool.origin();
                self.origin = origin;
                self.release(origin, &packet, self.queues[index].bytes());
                self.lose(port, &packet, context);
                self.reconsider(origin, context);
            }
        }
        self.ports[port].waiting = 0;
        self.ports[port].waiting_bytes = self.holding.as_ref().map_or(0, |holding| holding.bytes[port]);
        self.forget_answers(port);
        self.reset_notices(port, false, context);
    }
}
