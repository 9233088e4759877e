//! Priority flow control at one port: what its neighbour has asked for.

use super::{
    Ps,
    agenda::{Agenda, What},
};
use incast_sim::outcome::{EventKind, EventRecord};
use incast_units::Time;

/// See the module.
#[derive(Debug)]
pub struct Pauses {
    node: u32,
    port: u32,
    response: Ps,
    /// Paused priorities, one bit each.
    pub mask: u8,
    /// How often the cable has failed: what was asked for before does not count.
    failures: u32,
    /// Pauses that began.
    pub edges: u64,
}

impl Pauses {
    pub fn new(node: u32, port: u32, response: Ps) -> Self {
        Self { node, port, response, mask: 0, failures: 0, edges: 0 }
    }

    pub fn forbids(&self, priority: u8) -> bool {
        self.mask & 1 << priority != 0
    }

    /// A frame has come. Returns whether it takes effect now.
    pub fn receive(&self, now: Ps, about: u8, paused: u8, agenda: &mut Agenda) -> bool {
        if self.response > 0 {
            let what = What::Pause { about, paused, failures: self.failures };
            agenda.add(now + self.response, self.node, self.port, what);
        }
        self.response == 0
    }

    /// What was asked for takes effect, if it was asked for since the cable last failed.
    pub fn apply(&mut self, now: Ps, about: u8, paused: u8, failures: Option<u32>, events: &mut Vec<EventRecord>) {
        if failures.is_some_and(|failures| failures != self.failures) {
            return;
        }
        for priority in (0..8).filter(|priority| about & 1 << priority != 0) {
            let (before, after) = (self.forbids(priority), paused & 1 << priority != 0);
            if before == after {
                continue;
            }
            self.mask ^= 1 << priority;
            self.edges += u64::from(after);
            events.push(EventRecord {
                time: Time::from_ps(now),
                node: self.node,
                port: self.port as u16,
                kind: if after { EventKind::Pause } else { EventKind::Resume },
                priority,
                source: EventRecord::NO_FLOW,
                sequence: 0,
            });
        }
    }

    /// The cable has failed.
    pub fn fail(&mut self, now: Ps, events: &mut Vec<EventRecord>) {
        self.apply(now, self.mask, 0, None, events);
        self.failures += 1;
    }
}
