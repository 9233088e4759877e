//! When a receiver sends acknowledgements, NACKs and congestion notifications.

use super::{Arrival, Receiver};
use crate::{
    packet::Packet,
    recovery::Received,
    settings::{
        Class,
        host::{Echo, HostConfig},
    },
};
use incast_cc::{Cnp, agent::Codepoint};
use incast_units::Time;

/// What to do about an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub enum AckDecision {
    /// Send it now.
    Now,
    /// The mark has changed: send what [`Receiver::split_ack`] returns.
    Split,
    /// Send it later. An event is needed at this time, unless one is pending.
    Later(Option<Time>),
}

/// Two acknowledgements: one for the packets before one whose mark differs, then one for that packet alone.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// For the packets before.
    pub earlier: DelayedAck,
    /// Report of the last packet: itself, and whether it was marked.
    pub own: (u32, u32),
}

/// An acknowledgement that was delayed.
#[derive(Clone, Copy, Debug)]
pub struct DelayedAck {
    /// The packet that it is for.
    pub data: Packet,
    /// When that arrived.
    pub arrived: Time,
    /// All packets below have arrived.
    pub expected: u32,
    /// Packets and marked packets that it reports on.
    pub report: (u32, u32),
}

impl Receiver {
    /// A packet is to be acknowledged: at once if delaying is off, or if the sender needs the information at once.
    #[inline(always)]
    pub fn acknowledge(&mut self, now: Time, data: &Packet, arrival: &Arrival, host: &HostConfig) -> AckDecision {
        let at_once = host.ack_every <= 1
            || arrival.report.0 >= host.ack_every
            || arrival.out_of_order
            || arrival.received == Received::Duplicate
            || arrival.completes
            || arrival.mark_changes
            || data.is_last()
            || data.data().position() < host.quick_acks;
        if !at_once {
            return AckDecision::Later(self.delay_ack(now, data, arrival, host));
        }
        if arrival.mark_changes && arrival.report.0 > 1 && host.echo == Echo::Flag {
            return AckDecision::Split;
        }
        if let Some(progress) = self.progress(arrival.slot) {
            progress.pending = (0, 0);
        }
        AckDecision::Now
    }

    /// Delays the acknowledgement of a packet; returns when an event is needed for it.
    fn delay_ack(&mut self, now: Time, data: &Packet, arrival: &Arrival, host: &HostConfig) -> Option<Time> {
        let progress = self.progress(arrival.slot)?;
        progress.last = Some((*data, now));
        (progress.ack_event == Time::MAX).then(|| {
            progress.ack_event = host.expiry(now + host.ack_delay);
            progress.ack_event
        })
    }

    /// The mark has changed: the packets before this one are acknowledged first, with the flag that they had. So a
    /// sender that sees only flags learns of each mark (RFC 8257, section 3.2). `None` if there is one acknowledgement
    /// for all.
    #[cold]
    pub fn split_ack(&mut self, data: &Packet, arrival: &Arrival) -> Option<Split> {
        let own = (1, u32::from(data.marked()));
        let progress = self.progress(arrival.slot)?;
        progress.pending = (0, 0);
        let (last, arrived) = progress.last.take()?;
        let earlier = DelayedAck {
            data: last,
            arrived,
            // Packets wait for their acknowledgement only where they came in order.
            expected: arrival.expected.min(last.data().position() + 1),
            report: (arrival.report.0 - own.0, arrival.report.1 - own.1),
        };
        Some(Split { earlier, own })
    }

    /// The event of a delayed acknowledgement has come.
    pub fn on_delayed_ack(&mut self, now: Time, slot: u32) -> Option<DelayedAck> {
        let progress = self.progress(slot)?;
        if progress.ack_event != now {
            return None;
        }
        progress.ack_event = Time::MAX;
        let report = std::mem::take(&mut progress.pending);
        let expected = progress.expected();
        let (data, arrived) = progress.last.take().filter(|_| report.0 > 0)?;
        Some(DelayedAck { data, arrived, expected, report })
    }

    /// Go-back-N: a packet came out of order. Returns the report of the NACK, which is sent once for each gap.
    #[cold]
    pub fn refuse(&mut self, arrival: &Arrival) -> Option<(u32, u32)> {
        let progress = self.progress(arrival.slot)?;
        let report = std::mem::take(&mut progress.pending);
        (!std::mem::replace(&mut progress.nacked, true)).then_some(report)
    }

    /// A marked packet arrived: the congestion notification that it causes ([`super::notification`]), if any.
    pub fn notify(
        &mut self,
        now: Time,
        data: &Packet,
        arrival: &Arrival,
        interval: Time,
        class: &Class,
    ) -> Option<Cnp> {
        let codepoint = data.codepoint();
        // The mark of a port that leads to a host: the scheduler handles those.
        if class.marks_at_edge && codepoint != Codepoint::CongestionExperienced {
            return None;
        }
        self.progress(arrival.slot)?.notification.on_mark(now, codepoint, interval)
    }
}
