//! Issues tokens at a constant pace to the flows in turn, and requests again what does not arrive: for tests of all
//! that a scheduler may do.

use crate::{
    message::{self, AckTag, Body, Instruction},
    receiver_driven::dasr::share::Share,
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::Time;
use std::convert::Infallible;

/// See the module.
#[derive(Clone, Debug)]
pub struct PacedTokens {
    /// From one token to the next.
    pub interval: Time,
    /// How long a sender may keep a token.
    pub lifetime: Time,
    /// Payload bytes of each flow that come without a token.
    pub unscheduled: u64,
    /// What has not come after this time without data of a flow is taken as lost.
    pub silence: Time,
    /// Tokens name the packet that is wanted; otherwise lost packets are requested apart from them.
    pub names_packets: bool,
    /// Priority of what is sent with tokens; `None` leaves it to the flow's class.
    pub priority: Option<u8>,
    /// Flows in progress, the next one to get a token first.
    flows: Vec<Progress>,
    /// The next token is given no earlier.
    next_token: Time,
}

/// What it sends: instructions, or the share of a flow, which laws that take instructions ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the transport.
    Instruct(Instruction),
    /// The share of the receiver's link.
    Share(Share),
}

const SHARE: u8 = u8::MAX;

impl message::Message for Message {
    fn encode(self) -> Body {
        match self {
            Self::Instruct(instruction) => instruction.encode(),
            Self::Share(share) => Body { code: SHARE, ..share.encode() },
        }
    }
    fn decode(body: &Body) -> Option<Self> {
        match body.code {
            SHARE => Share::decode(body).map(Self::Share),
            _ => Instruction::decode(body).map(Self::Instruct),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    flow: u32,
    mss: u64,
    /// All below has arrived.
    expected: u64,
    /// Bytes that have not.
    remaining: u64,
    /// Packets that should be on their way: unscheduled, or with a token.
    outstanding: u64,
    /// When data last arrived or was requested.
    last_arrival: Time,
}

impl Progress {
    /// More is missing than is on its way.
    fn wants(&self) -> bool {
        self.remaining > self.outstanding * self.mss
    }
}

impl PacedTokens {
    /// Tokens that live for ever and name no packet, without a priority.
    pub fn new(interval: Time, unscheduled: u64, silence: Time) -> Self {
        Self {
            interval,
            lifetime: Time::MAX,
            unscheduled,
            silence,
            names_packets: false,
            priority: None,
            flows: Vec::new(),
            next_token: Time::ZERO,
        }
    }

    /// Tells the flows, all but one, what their share is now.
    fn tell_shares(&self, but: u32, send: &mut dyn FnMut(u32, Message)) {
        let share = Share::of_senders(self.flows.len() as u32);
        let others = self.flows.iter().filter(|flow| flow.flow != but);
        others.for_each(|flow| send(flow.flow, Message::Share(share)));
    }

    /// A flow that went silent: whatever was on its way is lost.
    fn give_up_waiting(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        for flow in &mut self.flows {
            if flow.last_arrival.saturating_add(self.silence) > now {
                continue;
            }
            if !self.names_packets {
                let bytes = (flow.outstanding.max(1) * flow.mss).min(flow.remaining);
                let resend = Instruction::Resend { position: flow.expected, bytes, priority: self.priority };
                send(flow.flow, Message::Instruct(resend));
            }
            flow.outstanding = 0;
            flow.last_arrival = now;
        }
    }

    fn give_token(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        let Some(turn) = self.flows.iter().position(Progress::wants) else { return };
        self.flows.rotate_left(turn);
        let flow = &mut self.flows[0];
        let token = Instruction::Token {
            wanted: self.names_packets.then(|| flow.expected + flow.outstanding * flow.mss),
            lifetime: self.lifetime,
            priority: self.priority,
        };
        send(flow.flow, Message::Instruct(token));
        flow.outstanding += 1;
        self.flows.rotate_left(1);
        self.next_token = now.saturating_add(self.interval);
    }
}

impl ReceiverScheduler for PacedTokens {
    type Message = Message;
    type Signal = Infallible;

    fn on_flow(&mut self, new: &NewFlow, send: &mut dyn FnMut(u32, Message)) {
        let mss = u64::from(new.mss.max(1));
        self.flows.push(Progress {
            flow: new.flow,
            mss,
            expected: 0,
            remaining: new.bytes,
            outstanding: new.bytes.min(self.unscheduled).div_ceil(mss),
            last_arrival: new.now,
        });
        self.tell_shares(new.flow, send);
    }

    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Message)) {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.flow == arrival.flow) else { return };
        flow.last_arrival = arrival.now;
        flow.expected = arrival.expected;
        flow.remaining = arrival.remaining;
        flow.outstanding = flow.outstanding.saturating_sub(1);
        if arrival.bytes == 0 && !self.names_packets {
            let (position, bytes, priority) = (arrival.position, flow.mss, self.priority);
            send(flow.flow, Message::Instruct(Instruction::Resend { position, bytes, priority }));
        }
        self.next_token = self.next_token.max(arrival.now);
    }

    fn on_end(&mut self, _now: Time, flow: u32, _end: End, send: &mut dyn FnMut(u32, Message)) {
        self.flows.retain(|other| other.flow != flow);
        self.tell_shares(flow, send);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        self.give_up_waiting(now, send);
        if self.next_token <= now {
            self.give_token(now, send);
        }
    }

    #[inline]
    fn next_timer(&self) -> Time {
        let silence = self.flows.iter().map(|flow| flow.last_arrival.saturating_add(self.silence)).min();
        let token = self.flows.iter().any(Progress::wants).then_some(self.next_token);
        silence.into_iter().chain(token).min().unwrap_or(Time::MAX)
    }

    fn ack_tag(&mut self, _flow: u32) -> Option<AckTag> {
        Some(Share::of_senders(self.flows.len() as u32).tag())
    }
    fn tags_acks(&self) -> bool {
        true
    }
    fn uses_tokens(&self) -> bool {
        true
    }
    fn priorities(&self) -> u8 {
        self.priority.map_or(0, |priority| priority + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn at(us: u64) -> Time {
        Time::from_us(us)
    }

    fn scheduler() -> PacedTokens {
        PacedTokens { lifetime: at(5), priority: Some(3), ..PacedTokens::new(at(2), 2_000, at(50)) }
    }

    fn start(scheduler: &mut PacedTokens, now: Time, flow: u32, bytes: u64) -> Vec<(u32, Message)> {
        let mut sent = Vec::new();
        let new = NewFlow { now, flow, source: 7, bytes, mss: MSS, unscheduled: 2_000 };
        scheduler.on_flow(&new, &mut |flow, message| sent.push((flow, message)));
        sent
    }

    /// Packet `index` of a flow of `packets` arrives, all before it being there.
    fn arrive(scheduler: &mut PacedTokens, now: Time, flow: u32, index: u64, packets: u64) -> Vec<(u32, Message)> {
        let mut sent = Vec::new();
        let arrival = Arrival {
            now,
            flow,
            position: index * 1000,
            bytes: MSS,
            expected: (index + 1) * 1000,
            remaining: (packets - index - 1) * 1000,
            marked: false,
            duplicate: false,
        };
        scheduler.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
        sent
    }

    fn fire(scheduler: &mut PacedTokens) -> (Time, Vec<(u32, Message)>) {
        let (now, mut sent) = (scheduler.next_timer(), Vec::new());
        scheduler.on_timer(now, &mut |flow, message| sent.push((flow, message)));
        (now, sent)
    }

    fn token(flow: u32, wanted: Option<u64>) -> (u32, Message) {
        (flow, Message::Instruct(Instruction::Token { wanted, lifetime: at(5), priority: Some(3) }))
    }

    #[test]
    fn tokens_come_at_their_pace_to_flows_in_turn() {
        let mut scheduler = scheduler();
        assert_eq!(scheduler.next_timer(), Time::MAX);
        start(&mut scheduler, at(10), 0, 5_000);
        start(&mut scheduler, at(10), 1, 3_000);
        arrive(&mut scheduler, at(10), 0, 0, 5);
        arrive(&mut scheduler, at(11), 1, 0, 3);
        // Two packets of each are unscheduled: three and one are left.
        assert_eq!(fire(&mut scheduler), (at(11), vec![token(0, None)]));
        assert_eq!(fire(&mut scheduler), (at(13), vec![token(1, None)]));
        assert_eq!(fire(&mut scheduler), (at(15), vec![token(0, None)]));
        assert_eq!(fire(&mut scheduler), (at(17), vec![token(0, None)]));
        // Everything is on its way. Then there is silence.
        let lost =
            |flow, bytes| (flow, Message::Instruct(Instruction::Resend { position: 1_000, bytes, priority: Some(3) }));
        let (now, sent) = fire(&mut scheduler);
        assert_eq!((now, sent), (at(60), vec![lost(0, 4_000), token(0, None)]));
        let (now, sent) = fire(&mut scheduler);
        assert_eq!((now, sent), (at(61), vec![lost(1, 2_000)]), "the pace holds in silence too");
        assert_eq!(fire(&mut scheduler), (at(62), vec![token(1, None)]));
    }

    #[test]
    fn a_flow_that_ends_gets_nothing_more_and_the_others_hear_of_it() {
        let mut scheduler = scheduler();
        assert_eq!(start(&mut scheduler, at(0), 0, 9_000), []);
        let of_two = Share::of_senders(2);
        assert_eq!(start(&mut scheduler, at(0), 1, 9_000), [(0, Message::Share(of_two))]);
        assert_eq!(scheduler.ack_tag(1), Some(of_two.tag()));
        let mut sent = Vec::new();
        scheduler.on_end(at(1), 0, End::Abandoned, &mut |flow, message| sent.push((flow, message)));
        assert_eq!(sent, [(1, Message::Share(Share::of_senders(1)))]);
        for _ in 0..7 {
            assert_eq!(fire(&mut scheduler).1, [token(1, None)]);
        }
        scheduler.on_end(at(20), 1, End::Complete, &mut |_, _| {});
        assert_eq!(scheduler.next_timer(), Time::MAX);
    }

    #[test]
    fn tokens_may_name_what_is_missing() {
        let mut scheduler = PacedTokens { names_packets: true, ..scheduler() };
        start(&mut scheduler, at(0), 0, 4_000);
        assert_eq!(fire(&mut scheduler), (at(0), vec![token(0, Some(2_000))]));
        assert_eq!(fire(&mut scheduler), (at(2), vec![token(0, Some(3_000))]));
        // Nothing came: from the start.
        assert_eq!(fire(&mut scheduler), (at(50), vec![token(0, Some(0))]));
        assert_eq!(fire(&mut scheduler), (at(52), vec![token(0, Some(1_000))]));
    }

    #[test]
    fn a_header_without_its_payload_is_asked_for_at_once() {
        let mut scheduler = scheduler();
        start(&mut scheduler, at(0), 4, 2_000);
        let trimmed = Arrival {
            now: at(1),
            flow: 4,
            position: 1_000,
            bytes: 0,
            expected: 0,
            remaining: 2_000,
            marked: false,
            duplicate: false,
        };
        let mut sent = Vec::new();
        scheduler.on_data(&trimmed, &mut |flow, message| sent.push((flow, message)));
        let priority = Some(3);
        let resend = Instruction::Resend { position: 1_000, bytes: 1_000, priority };
        assert_eq!(sent, [(4, Message::Instruct(resend))]);
        assert_eq!(fire(&mut scheduler), (at(1), vec![token(4, None)]));
    }
}
