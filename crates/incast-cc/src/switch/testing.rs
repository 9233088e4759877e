//! A switch without packets: it calls an agent with the events of a test.

use crate::{
    agent::{
        Codepoint, FlowAddress, Forward, Notification, PacketView, PortSetup, PortView, Site, SwitchAgent, SwitchView,
        Verdict,
    },
    marking::Marking,
};
use incast_units::{Rate, Time};

/// Ports of 40 Gbit/s, all alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub ports: u16,
    pub priorities: u8,
    pub marking: Marking,
}

/// What the agent sees of the switch.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    setting: Setting,
    /// Bytes that wait, by port, then priority.
    pub bytes: Vec<u64>,
    /// No port may send.
    pub blocked: bool,
}

impl SwitchView for Queues {
    fn ports(&self) -> u16 {
        self.setting.ports
    }
    fn priorities(&self) -> u8 {
        self.setting.priorities
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        self.bytes[usize::from(port) * usize::from(self.setting.priorities) + usize::from(priority)]
    }
    /// It has no packets.
    fn waiting(&self, _port: u16, _priority: u8) -> impl Iterator<Item = PacketView> {
        std::iter::empty()
    }
    fn rate(&self, _port: u16) -> Rate {
        RATE
    }
    fn may_send(&self, _port: u16, _priority: u8) -> bool {
        !self.blocked
    }
    fn alternatives(&self, _destination: u32) -> impl Iterator<Item = u16> {
        std::iter::empty()
    }
}

const RATE: Rate = Rate::from_gbps(40);

/// An agent and its switch.
#[derive(Debug)]
pub(super) struct Given<A> {
    pub agent: A,
    pub switch: Queues,
}

/// The address of a flow by its source.
pub(super) fn flow(source: u32) -> FlowAddress {
    FlowAddress { source, destination: 99, sequence: 0, slot: 0, ecmp_hash: source, class: 0 }
}

impl<A: SwitchAgent> Given<A> {
    pub fn new(setting: &Setting, parameters: &A::Parameters) -> Self {
        let ports = vec![PortSetup { rate: RATE, marking: setting.marking }; usize::from(setting.ports)];
        let agent = A::install(parameters, &Site { ports: &ports, priorities: setting.priorities });
        let bytes = vec![0; usize::from(setting.ports) * usize::from(setting.priorities)];
        Self { agent, switch: Queues { setting: *setting, bytes, blocked: false } }
    }

    fn view(&mut self, now: Time, port: u16, priority: u8, queue_bytes: u64) -> PortView {
        let index = usize::from(port) * usize::from(self.switch.setting.priorities) + usize::from(priority);
        self.switch.bytes[index] = queue_bytes;
        PortView { now, port, priority, queue_bytes, rate: RATE, stream: now.ps() }
    }

    fn packet(source: u32) -> PacketView {
        PacketView {
            flow: flow(source),
            ingress: Some(0),
            bytes: 1062,
            ecn_capable: true,
            codepoint: Codepoint::None,
            is_data: true,
            deflections: 0,
            marker: None,
        }
    }

    /// A packet of a flow enters, of which nothing is wanted; so many bytes wait before it.
    pub fn enter(&mut self, source: u32, now: Time, port: u16, priority: u8, queue_bytes: u64) {
        let view = self.view(now, port, priority, queue_bytes);
        let mut verdict = Verdict::default();
        self.agent.on_enqueue(&view, &Self::packet(source), &self.switch, &mut verdict);
        assert_eq!(verdict, Verdict::default());
    }

    /// A packet leaves; so many bytes stay. Returns its mark.
    pub fn leave(&mut self, now: Time, port: u16, priority: u8, queue_bytes: u64) -> Codepoint {
        let view = self.view(now, port, priority, queue_bytes);
        let mut verdict = Verdict::default();
        self.agent.on_dequeue(&view, &Self::packet(0), &self.switch, &mut verdict);
        assert_eq!((verdict.notify, verdict.forward), (None, Forward::Routed));
        verdict.mark
    }

    pub fn pause(&mut self, now: Time, port: u16, priority: u8, queue_bytes: u64) {
        let view = self.view(now, port, priority, queue_bytes);
        self.agent.on_pause(&view);
    }

    pub fn resume(&mut self, now: Time, port: u16, priority: u8, queue_bytes: u64) {
        let view = self.view(now, port, priority, queue_bytes);
        self.agent.on_resume(&view);
    }

    /// Time passes until `now`; returns what the agent sends meanwhile, with the times.
    pub fn pass(&mut self, now: Time) -> Vec<(Time, Notification)> {
        let mut sent = Vec::new();
        while self.agent.next_timer() <= now {
            let at = self.agent.next_timer();
            self.agent.on_timer(at, &self.switch, &mut |notification| sent.push((at, notification)));
            assert!(self.agent.next_timer() > at, "a timer that stands still");
        }
        sent
    }
}
