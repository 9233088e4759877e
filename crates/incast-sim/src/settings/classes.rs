//! Flow classes, resolved.

use crate::fabric::format::Format;
use incast_cc::{
    Path,
    law::{Recovery, Transport},
    registry::{Law, LawParameters, UnderlayParameters},
    underlay::Arrangement,
};
use incast_units::{Rate, Time};

/// A flow class, resolved.
#[derive(Debug)]
pub struct Class {
    /// The law and its parameters.
    pub law: LawParameters,
    /// The same for hosts at other rates.
    pub law_at: Vec<(Rate, LawParameters)>,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Priority of its data.
    pub priority: u8,
    /// Priority of its acknowledgements.
    pub ack_priority: u8,
    /// Priority of the receivers' congestion notifications.
    pub notification_priority: u8,
    /// Stage between flow and NIC.
    pub underlay: UnderlayParameters,
    /// The first class with the same stage and priority. Where flows to a destination share a decision, so do those of
    /// both classes: a host holds packets by where they go.
    pub shares_stages_of: u8,
    /// Arrangement of the underlay, if there is one.
    pub arrangement: Option<Arrangement>,
    /// Acknowledgements carry the one-way delay of data packets to senders' underlays.
    pub reports: bool,
    /// What the hosts of the law do differently from others.
    pub transport: Transport,
    /// Index of its scheduler in those of the hosts.
    pub scheduler: Option<u8>,
    /// Its scheduler gives out tokens.
    pub uses_tokens: bool,
    /// Its acknowledgements have tags of its scheduler.
    pub tags_acks: bool,
    /// Its packets are ECN-capable.
    pub ecn_capable: bool,
    /// Its receivers answer marks with congestion notifications, at most one for each flow in this time.
    pub notification_interval: Option<Time>,
    /// Ports that lead to hosts mark its packets with a codepoint of their own, for which receivers send no
    /// notification.
    pub marks_at_edge: bool,
    /// A new pace also changes the current gap.
    pub updates_gap: bool,
    /// Sizes on the wire.
    pub format: Format,
    /// Switches that trim may cut off the payload of its data.
    pub trimmable: bool,
    /// The path as the law sees it.
    pub path: Path,
}

impl Class {
    /// The law of a flow from a host of this rate, at the flow's start.
    pub fn start(&self, rate: Rate, now: Time, random: u32) -> Law {
        let other = self.law_at.iter().find(|(other, _)| *other == rate);
        match other {
            Some((rate, law)) => law.start(&Path { rate: *rate, ..self.path }, now, random),
            None => self.law.start(&self.path, now, random),
        }
    }
}
