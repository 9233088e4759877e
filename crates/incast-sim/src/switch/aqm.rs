//! Active queue management: which packets a switch marks, and with which codepoint.

use crate::{
    engine::random::Stream,
    packet::Packet,
    settings::Class,
    switch::config::{Ecn, MarkAt, NotEct, SwitchConfig},
};
use incast_cc::{agent::Codepoint, marking::Marking};

/// Purpose of the random streams of RED.
const RED_STREAM: u32 = 0x5245_4400;

/// Index of a port's marking rule: ports of one rate share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleIndex(u16);

/// See the module.
#[derive(Debug)]
pub(super) struct Aqm {
    /// The different rules of the ports.
    rules: Vec<Marking>,
    /// By port; empty without RED.
    red: Vec<Stream>,
    mark_at: MarkAt,
    not_ect: NotEct,
    /// By port.
    leads_to_host: Vec<bool>,
}

impl Aqm {
    /// Of switch `node`, whose ports lead to hosts or not. Rules come with [`Self::add`].
    pub fn new(switch: &SwitchConfig, leads_to_host: Vec<bool>, seed: u64, node: u32) -> Self {
        let is_random = matches!(switch.ecn, Ecn::Red { .. } | Ecn::RedByRate { .. });
        let stream = |port: usize| Stream::new(seed, RED_STREAM, u64::from(node) << 20 | port as u64);
        let red = (0..leads_to_host.len()).filter(|_| is_random).map(stream).collect();
        let &SwitchConfig { mark_at, not_ect, .. } = switch;
        Self { rules: Vec::new(), red, mark_at, not_ect, leads_to_host }
    }

    /// Adds the rule of a port.
    pub fn add(&mut self, rule: Marking) -> RuleIndex {
        let known = self.rules.iter().position(|other| *other == rule);
        let index = known.unwrap_or_else(|| {
            self.rules.push(rule);
            self.rules.len() - 1
        });
        // There are no more rules than ports.
        RuleIndex(index as u16)
    }

    /// Whether a packet is marked that enters a queue of so many bytes.
    #[inline(always)]
    pub fn marks_entering(
        &mut self,
        port: usize,
        rule: RuleIndex,
        packet: &Packet,
        occupancy: impl FnOnce() -> u64,
    ) -> bool {
        packet.ecn_capable() && self.mark_at == MarkAt::Enqueue && self.marks(port, rule, occupancy())
    }

    /// Whether a packet that cannot be marked may be dropped for it.
    #[inline(always)]
    pub fn may_drop(&self, packet: &Packet) -> bool {
        self.not_ect == NotEct::Drop && !packet.ecn_capable()
    }

    /// Then: whether it is, where it enters a queue of so many bytes.
    #[cold]
    pub fn drops(&mut self, port: usize, rule: RuleIndex, bytes: u64) -> bool {
        self.marks(port, rule, bytes)
    }

    /// Packets are marked as they leave their queue.
    #[inline]
    pub fn marks_at_departure(&self) -> bool {
        self.mark_at == MarkAt::Dequeue
    }

    /// Then: whether a packet is marked that leaves so many bytes behind in its queue.
    #[inline(always)]
    pub fn marks_leaving(&mut self, port: usize, rule: RuleIndex, packet: &Packet, left: u64) -> bool {
        packet.ecn_capable() && self.marks(port, rule, left)
    }

    #[inline(always)]
    fn marks(&mut self, port: usize, rule: RuleIndex, bytes: u64) -> bool {
        let Self { rules, red, .. } = self;
        rules[usize::from(rule.0)].mark(bytes, || red[port].uniform())
    }

    /// There is a host at the other end of a port.
    #[inline]
    pub fn is_edge(&self, port: usize) -> bool {
        self.leads_to_host[port]
    }

    /// The codepoint of packets of a class that are marked at a port.
    #[inline]
    pub fn codepoint(&self, port: usize, class: &Class) -> Codepoint {
        if self.is_edge(port) && class.marks_at_edge {
            Codepoint::UndeterminedExperienced
        } else {
            Codepoint::CongestionExperienced
        }
    }
}
