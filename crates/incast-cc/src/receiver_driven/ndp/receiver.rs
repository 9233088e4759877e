//! The receiver half: the pull queue of a host.

use super::{Message, Parameters};
use crate::{
    Path,
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::{Bytes, Time};
use std::{collections::VecDeque, convert::Infallible};

/// The PULLs of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulls {
    /// PULLs that are due to it.
    pub(super) owed: u32,
    /// The last PULL is to be repeated, unless a new one is due.
    pub(super) again: bool,
    /// It is in the pull queue.
    pub(super) queued: bool,
    pub(super) ended: bool,
    /// PULLs sent.
    pub(super) sent: u64,
    /// When the last packet arrived.
    pub(super) last_arrival: Time,
}

impl Pulls {
    /// Whether this PULL is the last one of a flow that has not ended. Once false, it stays false.
    #[inline]
    fn ends_with(&self, number: u64) -> bool {
        !self.ended && self.sent == number && self.owed == 0
    }
}

/// A PULL after which none is due to its flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// When it is to be repeated.
    pub(super) due: Time,
    pub(super) flow: u32,
    pub(super) number: u64,
}

/// The pull queue of a host.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// From one PULL to the next.
    pub(super) interval: Time,
    pub(super) pull_timeout: Time,
    /// By handle.
    flows: Vec<Pulls>,
    /// Flows to which PULLs are due, or whose last one is to be repeated. Those that have ended are skipped.
    pub(super) turns: VecDeque<u32>,
    /// No PULL is sent earlier.
    pub(super) next_pull: Time,
    /// In the order of their times.
    pub(super) last: VecDeque<Last>,
}

impl Receiver {
    /// The receiver of a host.
    pub fn new(parameters: &Parameters, path: &Path) -> Self {
        let packet = path.rate.time_of(Bytes::new(path.wire_mss.into()));
        Self {
            interval: packet.mul_f64(1.0 / parameters.pull_rate),
            pull_timeout: parameters.pull_timeout.time(),
            flows: Vec::new(),
            turns: VecDeque::new(),
            next_pull: Time::ZERO,
            last: VecDeque::new(),
        }
    }

    #[inline]
    pub(super) fn flow(&mut self, handle: u32) -> &mut Pulls {
        let index = handle as usize;
        if index >= self.flows.len() {
            self.grow(index);
        }
        &mut self.flows[index]
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.flows.resize(index + 1, Pulls::default());
    }

    /// Sends a PULL to the next flow to which one is due, or repeats its last one.
    fn pull(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        while let Some(handle) = self.turns.pop_front() {
            if self.pull_for(handle, now, send) {
                return;
            }
        }
    }

    /// Sends a PULL to a flow whose turn it is; false if it has none.
    #[inline]
    fn pull_for(&mut self, handle: u32, now: Time, send: &mut dyn FnMut(u32, Message)) -> bool {
        let flow = &mut self.flows[handle as usize];
        flow.queued = false;
        let again = std::mem::take(&mut flow.again);
        if flow.owed > 0 {
            flow.owed -= 1;
            flow.sent += 1;
        } else if !again || flow.ended {
            return false;
        }
        let number = flow.sent;
        send(handle, Message::Pull { number });
        if flow.owed > 0 {
            flow.queued = true;
            self.turns.push_back(handle);
        } else {
            self.remember(Last { due: now.saturating_add(self.pull_timeout), flow: handle, number });
        }
        self.next_pull = now.saturating_add(self.interval);
        true
    }

    /// Schedules the repetition of this PULL. Those before it that are no longer the last of their flow are dropped, so
    /// that no timer is set for them.
    #[inline]
    fn remember(&mut self, new: Last) {
        if let Some(last) = self.last.back_mut()
            && last.flow == new.flow
        {
            *last = new;
            return;
        }
        let flows = &self.flows;
        while self.last.pop_front_if(|last| !flows[last.flow as usize].ends_with(last.number)).is_some() {}
        self.last.push_back(new);
    }

    /// Puts the last PULLs into the queue again of flows from which no packet has arrived since the timeout.
    fn repeat(&mut self, now: Time) {
        while let Some(last) = self.last.pop_front_if(|last| last.due <= now) {
            let flow = &mut self.flows[last.flow as usize];
            if !flow.ends_with(last.number) {
                continue;
            }
            if flow.last_arrival.saturating_add(self.pull_timeout) <= now {
                flow.again = true;
                if !std::mem::replace(&mut flow.queued, true) {
                    self.turns.push_back(last.flow);
                }
            } else {
                self.last.push_back(Last { due: now.saturating_add(self.pull_timeout), ..last });
            }
        }
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Message;
    type Signal = Infallible;

    fn on_flow(&mut self, new: &NewFlow, _send: &mut dyn FnMut(u32, Message)) {
        *self.flow(new.flow) = Pulls::default();
    }

    #[inline]
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Message)) {
        let (now, handle) = (arrival.now, arrival.flow);
        if arrival.bytes == 0 && !arrival.duplicate {
            send(handle, Message::Nack { position: arrival.position });
        }
        let flow = self.flow(handle);
        flow.last_arrival = now;
        if flow.ended {
            return;
        }
        flow.owed += 1;
        let is_idle = self.next_pull <= now;
        if is_idle && self.turns.is_empty() {
            self.pull_for(handle, now, send);
            return;
        }
        let flow = self.flow(handle);
        if !std::mem::replace(&mut flow.queued, true) {
            self.turns.push_back(handle);
        }
        if is_idle {
            self.pull(now, send);
        }
    }

    fn on_end(&mut self, _now: Time, flow: u32, _end: End, _send: &mut dyn FnMut(u32, Message)) {
        let flow = self.flow(flow);
        (flow.ended, flow.owed, flow.again) = (true, 0, false);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        self.repeat(now);
        if self.next_pull <= now {
            self.pull(now, send);
        }
    }

    #[inline]
    fn next_timer(&self) -> Time {
        let pull = if self.turns.is_empty() { Time::MAX } else { self.next_pull };
        self.last.front().map_or(pull, |last| last.due.min(pull))
    }

    fn uses_tokens(&self) -> bool {
        true
    }
}
