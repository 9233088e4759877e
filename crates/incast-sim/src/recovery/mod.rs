//! Loss recovery: which packets of a flow have arrived, and when to act if no acknowledgement comes. No I/O; the time
//! is an argument.
//!
//! Packets are numbered from 0 in the order of the flow's bytes. Sequence numbers never wrap: a flow has fewer
//! than 2³² packets.

mod acked;
mod blocks;
mod go_back_n;
mod rack;
mod reassembly;
mod rtt;
mod scoreboard;
mod selective_repeat;

pub use self::{
    acked::Acked,
    blocks::Blocks,
    rack::ReorderingWindow,
    reassembly::{Reassembly, Received},
    rtt::RoundTrip,
    scoreboard::Scoreboard,
    selective_repeat::Ack,
};
use incast_units::Time;

/// Constants of the timers, the same for all flows of a run.
#[derive(Clone, Copy, Debug)]
pub struct TimerLimits {
    /// Least retransmission timeout.
    pub rto_min: Time,
    /// Base RTT, for the timeout before the first sample.
    pub base_rtt: Time,
    /// How long a receiver may delay the acknowledgement of a single packet, as far as senders know.
    pub max_ack_delay: Time,
}

/// Retransmission timeout of a SYN, as there is no RTT sample yet: RFC 6298, section 2.
const FIRST_TIMEOUT: Time = Time::from_ms(1000);
/// It is not doubled more often than this.
const MOST_SYN_BACKOFF: u8 = 6;

/// The sender's half of a flow: scoreboard, RTT estimate, retransmission timer and tail-loss probe.
#[derive(Clone, Debug)]
pub struct LossRecovery {
    /// Which packets have arrived.
    pub scoreboard: Scoreboard,
    /// Smoothed RTT.
    pub rtt: RoundTrip,
    /// When the retransmission timer expires; [`Time::MAX`] while it is off.
    deadline: Time,
    /// Time of the pending timer event. It may be before the deadline: an event that comes early is set again.
    event: Time,
    /// The deadline that the pending event is for: where timers have ticks, the event comes later than that. No event
    /// is needed for a later one.
    planned: Time,
    /// What the deadline is for.
    purpose: Purpose,
    /// When a retransmission timeout is due, whatever the deadline is for.
    timeout: Time,
    /// Expiries in a row.
    backoff: u8,
    /// A tail-loss probe is out. With RACK-TLP the scoreboard has its episode.
    probed: bool,
    /// The next packet may go whatever the window is: a probe (RFC 8985, section 7.3), or the first retransmission
    /// after a timeout (RFC 6298, section 5.4).
    pub ignores_window: bool,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// The retransmission timeout counts for each packet since it was sent: where acknowledgements of others do not show
    /// that it is lost.
    by_packet: bool,
}

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A retransmission timeout.
    Timeout,
    /// A tail loss probe.
    Probe,
    /// A packet that may only be late is taken as lost (RFC 8985, section 6.2, step 5).
    Reordering,
}

/// What a timer event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerEvent {
    /// A later event has replaced it.
    Stale,
    /// The deadline has moved: another event is needed at this time.
    Early(Time),
    /// The timer has expired.
    Expired,
}

impl LossRecovery {
    /// Recovery of a flow that has sent nothing; with a timeout for each packet, or one for the flow.
    pub fn new(scoreboard: Scoreboard, by_packet: bool) -> Self {
        Self {
            by_packet,
            scoreboard,
            rtt: RoundTrip::default(),
            deadline: Time::MAX,
            event: Time::MAX,
            planned: Time::MAX,
            purpose: Purpose::Timeout,
            timeout: Time::MAX,
            backoff: 0,
            probed: false,
            ignores_window: false,
            timeouts: 0,
            retransmitted_bytes: 0,
        }
    }

    /// Sets the timer: for what comes first of a late packet, a tail loss probe if the flow `may_probe`, and the
    /// retransmission timeout.
    #[inline]
    pub fn start_timer(&mut self, now: Time, may_probe: bool, limits: &TimerLimits) {
        if self.by_packet {
            // A packet that is overdue is so at once.
            let oldest = self.scoreboard.oldest().unwrap_or(now);
            self.timeout = oldest.saturating_add(self.packet_timeout(limits)).max(now);
            (self.purpose, self.deadline) = (Purpose::Timeout, self.timeout);
            return;
        }
        self.timeout = now.saturating_add(self.rtt.timeout(limits.rto_min, limits.base_rtt, self.backoff));
        (self.purpose, self.deadline) = match self.scoreboard.late_until() {
            Some(time) if time < self.timeout => (Purpose::Reordering, time.max(now)),
            _ => match self.probe_time(now, may_probe, limits) {
                Some(time) => (Purpose::Probe, time.min(self.timeout)),
                None => (Purpose::Timeout, self.timeout),
            },
        };
    }

    fn packet_timeout(&self, limits: &TimerLimits) -> Time {
        self.rtt.packet_timeout(limits.rto_min, limits.base_rtt, self.backoff)
    }

    /// When a probe is due if nothing more arrives.
    #[inline]
    fn probe_time(&self, now: Time, may_probe: bool, limits: &TimerLimits) -> Option<Time> {
        if !may_probe || !self.can_probe() {
            return None;
        }
        if !self.scoreboard.is_by_time() {
            return Some(now.saturating_add(self.rtt.probe_timeout(limits.max_ack_delay)?));
        }
        // The acknowledgement of a single packet may be delayed.
        let delay = if self.scoreboard.in_flight() == 1 { limits.max_ack_delay } else { Time::ZERO };
        Some(now.saturating_add(self.rtt.probe_timeout(delay).unwrap_or(FIRST_TIMEOUT)))
    }

    /// A new packet was sent while others were in flight: the probe is due that much later (RFC 8985, section 7.2).
    #[inline]
    pub fn on_sent(&mut self, now: Time) {
        if self.purpose == Purpose::Probe && self.scoreboard.is_by_time() {
            let wait = self.rtt.probe_timeout(Time::ZERO).unwrap_or(FIRST_TIMEOUT);
            self.deadline = now.saturating_add(wait).min(self.timeout);
        }
    }

    /// A packet has left the underlay that held it; it `is_new` if it was never sent before. A probe could not be planned
    /// while it was held.
    pub fn on_left(&mut self, now: Time, is_new: bool, may_probe: bool) {
        let is_planned = self.purpose != Purpose::Timeout;
        if !is_planned && may_probe && self.scoreboard.is_by_time() && self.can_probe() {
            self.purpose = Purpose::Probe;
        }
        if is_new || !is_planned {
            self.on_sent(now);
        }
    }

    /// A probe is due that what the underlay holds will serve as; what was planned as the timeout comes next (Linux:
    /// `tcp_send_loss_probe` where the packet is still in the host's queue).
    pub fn put_off_probe(&mut self) {
        (self.purpose, self.deadline) = (Purpose::Timeout, self.timeout);
    }

    /// What the timer is set for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Sets the timer for the answer to a SYN.
    pub fn start_syn_timer(&mut self, now: Time) {
        let timeout = FIRST_TIMEOUT.saturating_mul(1 << self.backoff.min(MOST_SYN_BACKOFF));
        (self.purpose, self.deadline) = (Purpose::Timeout, now.saturating_add(timeout));
    }

    /// Stops the timer.
    #[inline]
    pub fn stop_timer(&mut self) {
        self.deadline = Time::MAX;
    }

    /// The time of a timer event that is needed because none is pending before the deadline.
    #[inline]
    pub fn needs_event(&mut self, now: Time) -> Option<Time> {
        (self.deadline < self.planned).then(|| {
            // A deadline that passed before the tick of the timer comes at once.
            (self.event, self.planned) = (self.deadline.max(now), self.deadline);
            self.event
        })
    }

    /// A timer event has come. `round` rounds deadlines up to ticks of the timer.
    pub fn on_timer_event(&mut self, now: Time, round: impl FnOnce(Time) -> Time) -> TimerEvent {
        if self.event != now {
            return TimerEvent::Stale;
        }
        (self.event, self.planned) = (Time::MAX, Time::MAX);
        let due = round(self.deadline);
        if due > now {
            (self.event, self.planned) = (due, self.deadline);
            return TimerEvent::Early(due);
        }
        TimerEvent::Expired
    }

    /// A tail loss probe comes before the retransmission timeout, once, where the scoreboard has one (RFC 8985, section
    /// 7).
    #[inline]
    fn can_probe(&self) -> bool {
        self.scoreboard.may_probe() && (self.scoreboard.is_by_time() || !self.probed && self.backoff == 0)
    }

    /// The timer that has expired was set for a tail loss probe.
    pub fn is_probe_due(&self, may_probe: bool) -> bool {
        if self.scoreboard.is_by_time() {
            self.purpose == Purpose::Probe && may_probe
        } else {
            may_probe && self.can_probe() && self.rtt.probe_timeout(Time::ZERO).is_some()
        }
    }

    /// Sends a probe, whatever the window is. False if nothing is in flight.
    pub fn probe(&mut self) -> bool {
        let sends = self.scoreboard.probe();
        self.probed |= sends;
        self.ignores_window |= sends;
        sends
    }

    /// Nothing is in flight that could be probed for: the next expiry is a timeout if there `is_reason` for one.
    pub fn skip_probe(&mut self, is_reason: bool) {
        self.probed = is_reason;
    }

    /// Counts a timeout.
    pub fn count_timeout(&mut self) {
        self.timeouts += 1;
        self.back_off();
    }

    /// Nothing has arrived for a timeout: the next one is twice as long (RFC 6298, section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The timer expired: what is in flight is presumed lost, or where each packet has its timeout what is overdue.
    /// Returns how many packets may go without being asked for.
    pub fn on_timeout(&mut self, now: Time, limits: &TimerLimits) -> u32 {
        let timeout = self.packet_timeout(limits);
        self.count_timeout();
        self.probed = false;
        if self.by_packet {
            let overdue = self.scoreboard.on_overdue(now.saturating_sub(timeout));
            if overdue.lost > 0 {
                return overdue.lost;
            }
        }
        self.scoreboard.on_timeout(now, self.rtt.smoothed());
        self.ignores_window = self.scoreboard.is_by_time();
        1
    }

    /// A packet that may only have been late is still missing.
    pub fn on_late(&mut self, now: Time) -> Acked {
        let found = self.scoreboard.on_late(now, self.rtt.smoothed());
        self.ignores_window |= found.starts_recovery;
        found
    }

    /// Packets have newly arrived.
    #[inline]
    pub fn on_progress(&mut self) {
        self.backoff = 0;
        self.probed = false;
    }

    /// A message of the receiver shows that it is reachable.
    #[inline]
    pub fn on_receiver_alive(&mut self) {
        self.backoff = 0;
    }

    /// The timer has expired so often in a row that the flow is given up.
    pub fn gives_up(&self, limit: Option<u8>) -> bool {
        limit.is_some_and(|limit| self.backoff >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_cc::law::Recovery;

    #[test]
    fn a_tick_after_the_deadline_needs_no_event_at_the_deadline() {
        let limits = TimerLimits { rto_min: Time::from_ms(1), base_rtt: Time::from_us(10), max_ack_delay: Time::ZERO };
        let mut recovery =
            LossRecovery::new(Scoreboard::new(Recovery::GoBackN, 10, 3, ReorderingWindow::Adaptive), false);
        let to_ticks = |time: Time| Time::from_ms(time.ps() / Time::from_ms(1).ps() + 1);
        recovery.start_timer(Time::ZERO, false, &limits);
        assert_eq!(recovery.needs_event(Time::ZERO), Some(Time::from_ms(1)));
        // The deadline moves to 1.4 ms, which is between two ticks.
        recovery.start_timer(Time::from_us(400), false, &limits);
        assert_eq!(recovery.needs_event(Time::ZERO), None);
        let event = recovery.on_timer_event(Time::from_ms(1), to_ticks);
        assert_eq!(event, TimerEvent::Early(Time::from_ms(2)));
        // At 1.5 ms the deadline has passed, and its event is pending.
        assert_eq!(recovery.needs_event(Time::ZERO), None);
        assert_eq!(recovery.on_timer_event(Time::from_ms(2), to_ticks), TimerEvent::Expired);
        // An earlier deadline than the pending event's needs one of its own.
        recovery.start_timer(Time::from_ms(2), false, &limits);
        assert_eq!(recovery.needs_event(Time::ZERO), Some(Time::from_ms(3)));
    }

    #[test]
    fn a_timeout_that_has_passed_before_the_tick_comes_at_once() {
        let mut recovery =
            LossRecovery::new(Scoreboard::new(Recovery::RackTlp, 10, 3, ReorderingWindow::Adaptive), false);
        let to_ticks = |time: Time| Time::from_ms(time.ps() / Time::from_ms(1).ps() + 1);
        // A probe was due at 1.1 ms, and the timeout at 1.2 ms.
        recovery.purpose = Purpose::Probe;
        (recovery.deadline, recovery.timeout) = (Time::from_us(1100), Time::from_us(1200));
        assert_eq!(recovery.needs_event(Time::ZERO), Some(Time::from_us(1100)));
        let event = recovery.on_timer_event(Time::from_us(1100), to_ticks);
        assert_eq!(event, TimerEvent::Early(Time::from_ms(2)));
        assert_eq!(recovery.on_timer_event(Time::from_ms(2), to_ticks), TimerEvent::Expired);
        recovery.put_off_probe();
        assert_eq!(recovery.needs_event(Time::from_ms(2)), Some(Time::from_ms(2)));
        assert_eq!(recovery.on_timer_event(Time::from_ms(2), to_ticks), TimerEvent::Expired);
        assert_eq!(recovery.purpose(), Purpose::Timeout);
    }
}
