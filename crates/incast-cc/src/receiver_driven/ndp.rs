//! NDP: trimmed packets tell the receiver what the network could not carry, and it pulls everything after the first
//! window.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017. The switches' half is packet trimming; ways are the hosts' business, a random permutation of all of
//! them.
//!
//! - The sender sends its first window blindly; after that, a packet for each PULL, first what was trimmed. Each packet
//!   that arrives whole is acknowledged, each header without its payload is answered with a NACK (sections 3.2 and
//!   3.3).
//! - The receiver owes its senders a PULL for each packet that arrives, whole or trimmed. It sends them at the pace of
//!   its link, to senders in turn (section 3.3). PULLs count from the start of the flow, so that one that is lost is
//!   made up for by the next. When a flow is complete, what is owed to it is forgotten.
//! - The paper says nothing of the last PULL of a flow being lost. Here the receiver says it again when nothing has
//!   come of it for a timeout; that is idempotent.

use super::Profile;
use crate::message::{self, Body, Instruction};
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use crate::{
    Path,
    law::{
        Acknowledges, Framing, LawCapabilities, LawInfo, ReceiverDriven, Recovery, SendOrder, SenderLaw,
        Transport,
    },
    parameters::{ParameterError, Raw, chosen},
};
use incast_units::{Bytes, Time};
use std::{collections::VecDeque, convert::Infallible};

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate; \"paper\" is the evaluation of Polo, ICPP 2020"
    },
    unscheduled: Bytes {
        doc: "Payload bytes that are sent blindly: one packet at least, as a receiver pulls only what it has \
            heard of.",
        default: "BDP; paper: 12 packets",
        value: |path| path.bdp(),
        source: "SIGCOMM 2017, section 3.2: enough to fill the path; Polo, ICPP 2020: 12 packets"
    },
    pull_rate: f64 {
        doc: "Pace of PULLs, as a fraction of the rate at which full packets can arrive.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |rate| *rate > 0.0 && *rate <= 1.0,
        source: "SIGCOMM 2017, section 3.3; its authors' simulator runs with 0.99"
    },
    pull_timeout: Time {
        doc: "A PULL of which nothing has come for so long is repeated, if no other one is due.",
        default: "host.rto_min",
        value: |path| path.rto_min,
        allowed: "above 0",
        check: |time| *time > Time::ZERO,
        source: "ours: the paper has no remedy for a lost last PULL"
    },
});

/// The sender of a flow.
#[derive(Clone, Debug)]
pub struct Ndp {
    unscheduled: u64,
}

impl SenderLaw for Ndp {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "ndp",
        title: "NDP",
        source: "Handley et al., SIGCOMM 2017",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::NONE;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults.unscheduled = Bytes::new(12 * u64::from(path.mss));
        }
        defaults.with(given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn transport(_parameters: &Parameters) -> Transport {
        Transport {
            acknowledges: Acknowledges::Packets,
            order: SendOrder::Turns,
            trimmable: true,
            in_any_order: true,
            reminded: true,
            priority: 1,
            control_priority: Some(0),
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        Self { unscheduled: parameters.unscheduled.get().max(path.mss.into()) }
    }
}

impl ReceiverDriven for Ndp {
    type Receiver = Receiver;

    fn receiver(parameters: &Parameters, path: &Path) -> Receiver {
        Receiver::new(parameters, path)
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    #[inline]
    fn on_message(&mut self, _now: Time, message: Message) -> Option<Instruction> {
        Some(match message {
            Message::Pull { number } => Instruction::Tokens { in_all: number },
            // The payload is that of one packet, whose length only its sender knows.
            Message::Nack { position } => Instruction::Resend { position, bytes: 1, priority: None },
        })
    }
}

/// What a receiver sends to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A packet may be sent: the one with this number among those since the first PULL.
    Pull {
        /// PULLs of the flow in all.
        number: u64,
    },
    /// The packet at this position was trimmed.
    Nack {
        /// Its first byte.
        position: u64,
    },
}

const PULL: u8 = 0;
const NACK: u8 = 1;

impl message::Message for Message {
    #[inline]
    fn encode(self) -> Body {
        let (code, value) = match self {
            Self::Pull { number } => (PULL, number),
            Self::Nack { position } => (NACK, position),
        };
        Body { code, option: 0, values: [value, 0] }
    }
    #[inline]
    fn decode(body: &Body) -> Option<Self> {
        match body.code {
            PULL => Some(Self::Pull { number: body.values[0] }),
            NACK => Some(Self::Nack { position: body.values[0] }),
            _ => None,
        }
    }
}

/// What a receiver knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Pulls {
    /// PULLs owed.
    owed: u32,
    /// The last PULL is to be said again, unless a new one is owed.
    again: bool,
    /// It stands in the pull queue.
    queued: bool,
    ended: bool,
    /// PULLs sent.
    sent: u64,
    /// When a packet arrived last.
    heard: Time,
}

impl Pulls {
    /// This PULL is the last one of a flow that goes on; once it is not, it never is again.
    #[inline]
    fn ends_with(&self, number: u64) -> bool {
        !self.ended && self.sent == number && self.owed == 0
    }
}

/// A PULL that is the last one for now.
#[derive(Clone, Copy, Debug)]
struct Last {
    due: Time,
    flow: u32,
    number: u64,
}

/// The pull queue of a host.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// From one PULL to the next.
    interval: Time,
    pull_timeout: Time,
    /// By handle.
    flows: Vec<Pulls>,
    /// Flows to which PULLs are owed, or one is to be repeated, the next one first; those that have ended are passed
    /// over.
    turns: VecDeque<u32>,
    /// No PULL is sent earlier.
    next_pull: Time,
    /// In the order of their times.
    last: VecDeque<Last>,
}

impl Receiver {
    /// The receiver of a host.
    pub fn new(parameters: &Parameters, path: &Path) -> Self {
        let packet = path.rate.time_of(Bytes::new(path.wire_mss.into()));
        Self {
            interval: packet.mul_f64(1.0 / parameters.pull_rate),
            pull_timeout: parameters.pull_timeout,
            flows: Vec::new(),
            turns: VecDeque::new(),
            next_pull: Time::ZERO,
            last: VecDeque::new(),
        }
    }

    #[inline]
    fn flow(&mut self, handle: u32) -> &mut Pulls {
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

    /// Sends a PULL to the next flow to which one is owed, or says its last one again.
    fn pull(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        while let Some(handle) = self.turns.pop_front() {
            if self.pull_for(handle, now, send) {
                return;
            }
        }
    }

    /// Sends a PULL to a flow whose turn it is; false if there is nothing to say.
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

    /// This PULL is to be said again if nothing comes of it. Those before it that are no longer the last of their flow
    /// are dropped, so that no timer is set for them.
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

    /// Puts PULLs of which nothing has come into the queue again. Those that were followed by others need not be.
    fn repeat(&mut self, now: Time) {
        while let Some(last) = self.last.pop_front_if(|last| last.due <= now) {
            let flow = &mut self.flows[last.flow as usize];
            if !flow.ends_with(last.number) {
                continue;
            }
            if flow.heard.saturating_add(self.pull_timeout) <= now {
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
        flow.heard = now;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message as _;
    use incast_units::Rate;
    use proptest::prelude::*;

    fn at(us: u64) -> Time {
        Time::from_us(us)
    }

    /// A full packet takes a microsecond.
    fn path() -> Path {
        Path {
            rate: Rate::from_gbps(8),
            base_rtt: at(20),
            mss: 936,
            wire_mss: 1000,
            rto_min: Time::from_ms(1),
        }
    }

    fn receiver(given: &[(String, Raw)]) -> Receiver {
        Receiver::new(&Ndp::resolve(&path(), given).expect("allowed"), &path())
    }

    fn arrive(
        receiver: &mut Receiver,
        now: Time,
        flow: u32,
        packet: u64,
        whole: bool,
    ) -> Vec<(u32, Message)> {
        let mut sent = Vec::new();
        let arrival = Arrival {
            now,
            flow,
            position: packet * 936,
            bytes: if whole { 936 } else { 0 },
            expected: 0,
            remaining: 1,
            marked: false,
            duplicate: false,
        };
        receiver.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
        sent
    }

    fn open(receiver: &mut Receiver, flow: u32) {
        receiver.on_flow(&NewFlow { now: at(0), flow, source: flow, bytes: 9_360, mss: 936 }, &mut |_, _| {});
    }

    fn fire(receiver: &mut Receiver) -> (Time, Vec<(u32, Message)>) {
        let (now, mut sent) = (receiver.next_timer(), Vec::new());
        receiver.on_timer(now, &mut |flow, message| sent.push((flow, message)));
        (now, sent)
    }

    fn pull(flow: u32, number: u64) -> (u32, Message) {
        (flow, Message::Pull { number })
    }

    /// As the snapshots print it.
    fn shown(sent: &[(u32, Message)]) -> String {
        let shown = sent.iter().map(|(flow, message)| match message {
            Message::Pull { number } => format!("Pull {{ flow: {flow}, number: {number} }}"),
            Message::Nack { position } => {
                format!("Resend {{ flow: {flow}, position: {position}, bytes: 1, priority: None }}")
            }
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn messages_are_carried_and_become_instructions() {
        let mut law = Ndp { unscheduled: 0 };
        for (message, instruction) in [
            (Message::Pull { number: 1 << 40 }, Instruction::Tokens { in_all: 1 << 40 }),
            (
                Message::Nack { position: 936 },
                Instruction::Resend { position: 936, bytes: 1, priority: None },
            ),
        ] {
            assert_eq!(message::Message::decode(&message.encode()), Some(message));
            assert_eq!(law.on_message(Time::ZERO, message), Some(instruction));
        }
    }

    #[test]
    fn pulls_are_paced_and_senders_take_turns() {
        let mut receiver = receiver(&[]);
        (0..3).for_each(|flow| open(&mut receiver, flow));
        // The pacer is idle: the first goes at once, and the rest at the pace of the link.
        assert_eq!(arrive(&mut receiver, at(10), 0, 0, true), [pull(0, 1)]);
        for (flow, packet) in [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0)] {
            assert_eq!(arrive(&mut receiver, at(10), flow, packet, true), []);
        }
        let order: Vec<_> = (0..5).map(|_| fire(&mut receiver)).collect();
        let expected = [(0, 2), (1, 1), (2, 1), (0, 3), (0, 4)];
        for (step, (flow, number)) in expected.into_iter().enumerate() {
            assert_eq!(order[step], (at(11 + step as u64), vec![pull(flow, number)]));
        }
        // The pace holds when more comes right afterwards.
        assert_eq!(arrive(&mut receiver, Time::from_ns(15_500), 1, 1, true), []);
        assert_eq!(fire(&mut receiver), (at(16), vec![pull(1, 2)]));
    }

    #[test]
    fn the_pace_is_a_fraction_of_the_links() {
        let mut receiver = receiver(&[("pull_rate".into(), Raw::Float(0.5))]);
        open(&mut receiver, 0);
        (0..3).for_each(|packet| drop(arrive(&mut receiver, at(10), 0, packet, true)));
        assert_eq!([fire(&mut receiver).0, fire(&mut receiver).0], [at(12), at(14)]);
    }

    #[test]
    fn a_header_is_answered_at_once_and_owed_a_pull() {
        let mut receiver = receiver(&[]);
        open(&mut receiver, 0);
        let nack = |packet: u64| (0, Message::Nack { position: packet * 936 });
        assert_eq!(arrive(&mut receiver, at(10), 0, 4, false), [nack(4), pull(0, 1)]);
        assert_eq!(arrive(&mut receiver, at(10), 0, 5, false), [nack(5)]);
        assert_eq!(fire(&mut receiver), (at(11), vec![pull(0, 2)]));
    }

    #[test]
    fn a_flow_that_is_complete_is_owed_nothing() {
        let mut receiver = receiver(&[]);
        (0..2).for_each(|flow| open(&mut receiver, flow));
        (0..5).for_each(|packet| drop(arrive(&mut receiver, at(10), 0, packet, true)));
        arrive(&mut receiver, at(10), 1, 0, true);
        receiver.on_end(at(10), 0, End::Complete, &mut |_, _| {});
        assert_eq!(arrive(&mut receiver, at(10), 0, 4, true), []);
        assert_eq!(fire(&mut receiver), (at(11), vec![pull(1, 1)]));
        // What is left is a repetition. The first PULL was the last one for a moment, but its flow has ended.
        assert_eq!(fire(&mut receiver), (at(1011), vec![pull(1, 1)]));
    }

    #[test]
    fn the_last_pull_is_repeated_until_something_comes() {
        let mut receiver = receiver(&[]);
        open(&mut receiver, 0);
        arrive(&mut receiver, at(10), 0, 0, true);
        assert_eq!(fire(&mut receiver), (at(1010), vec![pull(0, 1)]));
        assert_eq!(fire(&mut receiver), (at(2010), vec![pull(0, 1)]));
        assert_eq!(arrive(&mut receiver, at(2500), 0, 1, true), [pull(0, 2)]);
        // The old one has been followed by another: no timer is set for it any more.
        assert_eq!(fire(&mut receiver), (at(3500), vec![pull(0, 2)]));
        receiver.on_end(at(3600), 0, End::Abandoned, &mut |_, _| {});
        assert_eq!(fire(&mut receiver), (at(4500), vec![]));
        assert_eq!(receiver.next_timer(), Time::MAX);
    }

    #[test]
    fn pulls_that_are_due_again_keep_the_pace() {
        let mut receiver = receiver(&[]);
        for flow in 0..3 {
            open(&mut receiver, flow);
            arrive(&mut receiver, at(10), flow, 0, true);
        }
        assert_eq!([fire(&mut receiver).0, fire(&mut receiver).0], [at(11), at(12)]);
        // The others fall due while it waits for the link; what is new goes instead of what is said again.
        let steps: Vec<_> = (0..2).map(|_| fire(&mut receiver)).collect();
        assert_eq!(steps, [(at(1010), vec![pull(0, 1)]), (at(1011), vec![pull(1, 1)])]);
        assert_eq!(arrive(&mut receiver, at(1011), 0, 1, true), []);
        assert_eq!(arrive(&mut receiver, at(1011), 2, 1, true), []);
        assert_eq!(fire(&mut receiver), (at(1012), vec![pull(0, 2)]));
        assert_eq!(fire(&mut receiver), (at(1013), vec![pull(2, 2)]));
        // All at once, after a silence: one at a time.
        let mut sent = Vec::new();
        receiver.on_timer(at(9000), &mut |flow, message| sent.push((flow, message)));
        assert_eq!((sent, receiver.next_timer()), (vec![pull(1, 1)], at(9001)));
        assert_eq!(fire(&mut receiver), (at(9001), vec![pull(0, 2)]));
        assert_eq!(fire(&mut receiver), (at(9002), vec![pull(2, 2)]));
    }

    #[test]
    fn the_header_of_what_is_here_already_is_not_answered_with_a_nack() {
        let mut receiver = receiver(&[]);
        open(&mut receiver, 0);
        let arrival = Arrival {
            now: at(10),
            flow: 0,
            position: 936,
            bytes: 0,
            expected: 1872,
            remaining: 936,
            marked: false,
            duplicate: true,
        };
        let mut sent = Vec::new();
        receiver.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
        assert_eq!(sent, [pull(0, 1)]);
    }

    #[test]
    fn one_packet_at_least_goes_blindly() {
        let credit = |size: &str| {
            let given = [("unscheduled".to_owned(), Raw::Text(size.into()))];
            let parameters = Ndp::resolve(&path(), &given).expect("allowed");
            Ndp::start(&parameters, &path(), Time::ZERO, 0).unscheduled()
        };
        assert_eq!(["0B", "1B", "936B", "5KB"].map(credit), [936, 936, 936, 5_000]);
    }

    /// Three senders whose first windows collide, PULLs that are lost, and what comes of them.
    #[test]
    fn golden_trajectory() {
        use std::fmt::Write;
        let mut receiver = receiver(&[("pull_timeout".into(), Raw::Text("40us".into()))]);
        let mut text = String::new();
        // When, of which flow, which packet, whether whole.
        let mut script: VecDeque<(u64, u32, u64, bool)> = VecDeque::new();
        for packet in 0..4 {
            (0..3).for_each(|flow| {
                script.push_back((10 + packet, flow, packet, (packet + u64::from(flow)) % 3 != 2))
            });
        }
        script.extend([
            (30, 0, 2, true),
            (31, 1, 1, true),
            (32, 0, 4, true),
            (120, 1, 4, true),
            (121, 1, 5, false),
        ]);
        (0..3).for_each(|flow| open(&mut receiver, flow));
        for _ in 0..60 {
            let timer = receiver.next_timer();
            let next = script.front().map_or(Time::MAX, |step| at(step.0));
            let (now, cause, sent) = match script.pop_front_if(|_| next <= timer) {
                Some((us, flow, packet, whole)) => {
                    let what = if whole { "data" } else { "header" };
                    (
                        at(us),
                        format!("{what} {packet} of {flow}"),
                        arrive(&mut receiver, at(us), flow, packet, whole),
                    )
                }
                None if timer < at(200) => {
                    let (now, sent) = fire(&mut receiver);
                    (now, "timer".to_owned(), sent)
                }
                None => break,
            };
            let _ = writeln!(text, "{:>6} ns {cause}: {}", now.ps() / 1000, shown(&sent));
        }
        insta::assert_snapshot!("ndp_receiver", text);
    }

    #[test]
    fn the_first_window_is_one_bdp_or_the_papers_twelve_packets() {
        let unscheduled = |given: &[(String, Raw)]| Ndp::resolve(&path(), given).map(|it| it.unscheduled);
        assert_eq!(unscheduled(&[]), Ok(path().bdp()));
        let paper = ("profile".to_owned(), Raw::Text("paper".into()));
        assert_eq!(unscheduled(std::slice::from_ref(&paper)), Ok(Bytes::new(12 * 936)));
        let own = ("unscheduled".to_owned(), Raw::Text("5KB".into()));
        assert_eq!(unscheduled(&[own, paper]), Ok(Bytes::new(5_000)));
    }

    /// The rules alone, with the state of a [`Receiver`]: every flow stands in line before its PULL goes, and every
    /// PULL that is the last one for now is remembered until it falls due, whatever becomes of its flow.
    struct Naive(Receiver);

    impl Naive {
        fn line_up(&mut self, handle: u32) {
            if !std::mem::replace(&mut self.0.flow(handle).queued, true) {
                self.0.turns.push_back(handle);
            }
        }

        fn pull(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
            while let Some(handle) = self.0.turns.pop_front() {
                let flow = self.0.flow(handle);
                flow.queued = false;
                let (again, is_owed) = (std::mem::take(&mut flow.again), flow.owed > 0);
                if !is_owed && (!again || flow.ended) {
                    continue;
                }
                flow.owed -= u32::from(is_owed);
                flow.sent += u64::from(is_owed);
                let (number, is_last) = (flow.sent, flow.owed == 0);
                send(handle, Message::Pull { number });
                if is_last {
                    self.0.last.push_back(Last { due: now + self.0.pull_timeout, flow: handle, number });
                } else {
                    self.line_up(handle);
                }
                self.0.next_pull = now + self.0.interval;
                return;
            }
        }
    }

    impl ReceiverScheduler for Naive {
        type Message = Message;
        type Signal = Infallible;

        fn on_flow(&mut self, new: &NewFlow, send: &mut dyn FnMut(u32, Message)) {
            self.0.on_flow(new, send);
        }

        fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Message)) {
            let (now, handle) = (arrival.now, arrival.flow);
            if arrival.bytes == 0 && !arrival.duplicate {
                send(handle, Message::Nack { position: arrival.position });
            }
            let flow = self.0.flow(handle);
            flow.heard = now;
            if flow.ended {
                return;
            }
            flow.owed += 1;
            self.line_up(handle);
            if self.0.next_pull <= now {
                self.pull(now, send);
            }
        }

        fn on_end(&mut self, now: Time, flow: u32, end: End, send: &mut dyn FnMut(u32, Message)) {
            self.0.on_end(now, flow, end, send);
        }

        fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
            while let Some(last) = self.0.last.pop_front_if(|last| last.due <= now) {
                let after = self.0.pull_timeout;
                let flow = self.0.flow(last.flow);
                if flow.ended || flow.sent != last.number || flow.owed > 0 {
                    continue;
                }
                if flow.heard + after <= now {
                    flow.again = true;
                    self.line_up(last.flow);
                } else {
                    self.0.last.push_back(Last { due: now + after, ..last });
                }
            }
            if self.0.next_pull <= now {
                self.pull(now, send);
            }
        }

        fn next_timer(&self) -> Time {
            self.0.next_timer()
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Data { whole: bool, duplicate: bool },
        End,
        NewFlow,
    }

    /// Half microseconds since the step before, whether timers of this very time come first, a flow, what happens.
    type Step = (u64, bool, u32, Event);

    fn step() -> impl Strategy<Value = Step> {
        let event = prop_oneof![
            16 => (prop::bool::weighted(0.7), prop::bool::weighted(0.2))
                .prop_map(|(whole, duplicate)| Event::Data { whole, duplicate }),
            1 => Just(Event::End),
            1 => Just(Event::NewFlow),
        ];
        (prop_oneof![4 => 0u64..4, 1 => 0u64..200], any::<bool>(), any::<u32>(), event)
    }

    /// What a receiver says and when, and how often its timer goes off.
    fn play(
        receiver: &mut impl ReceiverScheduler<Message = Message>,
        flows: u32,
        steps: &[Step],
    ) -> (Vec<(Time, u32, Message)>, u32) {
        let (mut said, mut timers) = (Vec::new(), 0);
        let (mut now, mut flows) = (Time::ZERO, flows);
        let new = |now: Time, flow: u32| NewFlow { now, flow, source: flow, bytes: 93_600, mss: 936 };
        (0..flows).for_each(|flow| receiver.on_flow(&new(now, flow), &mut |_, _| {}));
        // After the last step there is silence.
        let silence = (1_000, true, 0, Event::NewFlow);
        for (number, (wait, timers_first, flow, event)) in steps.iter().chain([&silence]).enumerate() {
            now += Time::from_ns(500 * wait);
            let until = if *timers_first { now + Time::from_ps(1) } else { now };
            while receiver.next_timer() < until {
                let due = receiver.next_timer();
                timers += 1;
                receiver.on_timer(due, &mut |flow, message| said.push((due, flow, message)));
            }
            let flow = flow % flows;
            match *event {
                Event::Data { whole, duplicate } => {
                    let arrival = Arrival {
                        now,
                        flow,
                        position: number as u64 * 936,
                        bytes: if whole { 936 } else { 0 },
                        expected: 0,
                        remaining: 1,
                        marked: false,
                        duplicate,
                    };
                    receiver.on_data(&arrival, &mut |flow, message| said.push((now, flow, message)));
                }
                Event::End => receiver.on_end(now, flow, End::Complete, &mut |_, _| {}),
                Event::NewFlow => {
                    receiver.on_flow(&new(now, flows), &mut |_, _| {});
                    flows += 1;
                }
            }
        }
        (said, timers)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

        /// What is dropped early would have come to nothing, and what is answered at once is not out of turn.
        #[test]
        fn says_what_a_naive_receiver_says(
            flows in 1u32..6, pull_timeout in 1u64..40, half_pace in any::<bool>(),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let given = [
                ("pull_timeout".to_owned(), Raw::Text(format!("{pull_timeout}us"))),
                ("pull_rate".to_owned(), Raw::Float(if half_pace { 0.5 } else { 1.0 })),
            ];
            let (said, timers) = play(&mut receiver(&given), flows, &steps);
            let (expected, most_timers) = play(&mut Naive(receiver(&given)), flows, &steps);
            prop_assert_eq!(said, expected);
            prop_assert!(timers <= most_timers);
        }
    }
}
