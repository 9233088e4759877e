//! RACK-TLP (RFC 8985): losses are found by the times at which packets were sent.
//!
//! A packet is lost when one that was sent later has been delivered and it is still missing an RTT and a reordering
//! window after it was sent. Retransmissions are packets like others, so that lost ones are found, too. This file has
//! the state of sections 5.3 and 6.2 and the episode of a tail loss probe (section 7.4);
//! [`super::selective_repeat`] has the list of packets.
//!
//! What differs from the RFC:
//! - An acknowledgement echoes the time at which the packet that caused it was sent, exactly, as the timestamps option
//!   does with a resolution. It names that packet, which a SACK block does not, and says when it is a duplicate, as
//!   D-SACK does (RFC 2883).
//! - `RACK.min_RTT` is the least RTT of the flow, without a window.

use incast_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For how long RACK-TLP waits for packets that are late (RFC 8985, section 6.2, step 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReorderingWindow {
    /// At first not at all or a quarter of the least RTT, and longer with each round trip in which a packet was sent again
    /// that had arrived, up to the smoothed RTT.
    #[default]
    Adaptive,
    /// The smoothed RTT, which is the RFC's upper bound, from the start: packets are known to arrive in any order.
    Srtt,
}

/// A packet of the list as RACK sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// When it was last sent, in picoseconds.
    pub stamp: u64,
    /// It was sent more than once.
    pub again: bool,
}

/// A tail loss probe that has been sent: `TLP.end_seq` and `TLP.is_retrans`.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u32,
    is_retransmission: bool,
}

/// See the module. Times are in picoseconds.
#[derive(Clone, Debug)]
pub struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: of the packets that have been delivered, the one that was sent last.
    latest: (u64, u32),
    /// `RACK.rtt`.
    rtt: u64,
    /// `RACK.min_RTT`; `u64::MAX` before the first sample.
    min_rtt: u64,
    /// `RACK.reordering_seen`.
    reordering_seen: bool,
    /// How the reordering window is chosen.
    wait: ReorderingWindow,
    /// `RACK.reo_wnd_mult`.
    multiplier: u32,
    /// `RACK.reo_wnd_persist`: recoveries after which the multiplier is reset.
    persist: u32,
    /// `RACK.dsack_round`: the multiplier grows once until this is acknowledged.
    round: Option<u32>,
    /// `RACK.segs_sacked`.
    pub sacked: u32,
    /// In fast or RTO recovery, until all below this packet have arrived.
    recovery: Option<u32>,
    probe: Option<Probe>,
    /// No RTT has been measured since the last probe.
    lacks_sample: bool,
    /// When a packet that may only be late is taken as lost; `u64::MAX` if there is none.
    due: u64,
}

/// Recoveries without a duplicate after which the reordering window is as small as at first (section 6.2, step 4).
const PERSIST: u32 = 16;

impl Rack {
    /// A flow that has sent nothing.
    pub fn new(wait: ReorderingWindow) -> Self {
        Self {
            wait,
            latest: (0, 0),
            rtt: 0,
            min_rtt: u64::MAX,
            reordering_seen: false,
            multiplier: 1,
            persist: 0,
            round: None,
            sacked: 0,
            recovery: None,
            probe: None,
            lacks_sample: false,
            due: u64::MAX,
        }
    }

    /// An acknowledgement has come for a packet that was sent at `echo` (steps 1 and 2).
    #[inline]
    pub fn on_ack(&mut self, now: u64, echo: u64) {
        self.min_rtt = self.min_rtt.min(now - echo);
        self.lacks_sample = false;
    }

    /// A packet is newly delivered (steps 2 and 3). `highest` is one past the highest packet delivered before.
    #[inline]
    pub fn on_delivered(&mut self, packet: u32, sent: Transmission, highest: u32, now: u64, echo: u64) {
        let Transmission { stamp, again } = sent;
        let rtt = now - stamp;
        if again {
            // Perhaps it was the original that arrived.
            if echo < stamp || rtt < self.min_rtt {
                return;
            }
        } else if packet < highest {
            self.reordering_seen = true;
        }
        self.rtt = rtt;
        self.latest = self.latest.max((stamp, packet));
    }

    /// A packet was sent before the latest one that has been delivered.
    #[inline]
    pub fn is_older(&self, packet: u32, sent: Transmission) -> bool {
        (sent.stamp, packet) < self.latest
    }

    /// When a packet that is older is lost.
    #[inline]
    pub fn lost_at(&self, sent: Transmission, window: u64) -> u64 {
        sent.stamp.saturating_add(self.rtt).saturating_add(window)
    }

    /// A packet is late, and lost at `time` if it does not arrive until then.
    #[inline]
    pub fn wait_until(&mut self, time: u64) {
        // The latest one, so that one event finds all of them (step 5).
        self.due = if self.due == u64::MAX { time } else { self.due.max(time) };
    }

    /// No packet is late.
    #[inline]
    pub fn stop_waiting(&mut self) {
        self.due = u64::MAX;
    }

    /// When a late packet is lost.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        (self.due != u64::MAX).then(|| Time::from_ps(self.due))
    }

    /// Adapts the reordering window to an acknowledgement (step 4). All below `acked` has arrived, nothing from
    /// `unsent` on was sent.
    #[inline]
    pub fn adapt(&mut self, acked: u32, unsent: u32, is_duplicate: bool) {
        if self.round.is_some_and(|round| acked >= round) {
            self.round = None;
        }
        let ends = self.recovery.is_some_and(|until| acked >= until);
        if is_duplicate && self.round.is_none() {
            self.round = Some(unsent);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSIST;
        } else if ends {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.multiplier = 1;
            }
        }
        if ends {
            self.recovery = None;
        }
    }

    /// The reordering window.
    #[inline]
    pub fn window(&self, smoothed_rtt: u64, threshold: u32) -> u64 {
        if self.wait == ReorderingWindow::Srtt {
            return smoothed_rtt;
        }
        if !self.reordering_seen && (self.recovery.is_some() || self.sacked >= threshold) {
            return 0;
        }
        if self.min_rtt == u64::MAX {
            return 0;
        }
        (self.min_rtt / 4).saturating_mul(self.multiplier.into()).min(smoothed_rtt)
    }

    /// Packets are lost: recovery lasts until all that has been sent has arrived. True if it begins now.
    #[inline]
    pub fn enter_recovery(&mut self, unsent: u32) -> bool {
        let starts = self.recovery.is_none();
        self.recovery.get_or_insert(unsent);
        starts
    }

    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self, unsent: u32) {
        self.recovery = Some(unsent);
        self.probe = None;
        self.stop_waiting();
    }

    /// A probe may be planned (section 7.2): outside recovery, with nothing delivered out of order, and (section 7.3)
    /// with no probe out and an RTT measured since the last one.
    #[inline]
    pub fn may_probe(&self) -> bool {
        self.recovery.is_none() && self.sacked == 0 && self.probe.is_none() && !self.lacks_sample
    }

    /// A probe is sent: its packet is the last one before `end`.
    pub fn on_probe(&mut self, end: u32, is_retransmission: bool) {
        self.probe = Some(Probe { end, is_retransmission });
        self.lacks_sample = true;
    }

    /// Ends the episode of a probe if an acknowledgement does (section 7.4.2). True if the probe has repaired a loss,
    /// to which congestion control must react.
    #[inline]
    pub fn ends_episode(&mut self, acked: u32, duplicate: Option<u32>) -> Option<u32> {
        let Probe { end, is_retransmission } = self.probe.filter(|probe| acked >= probe.end)?;
        if !is_retransmission || duplicate == Some(end - 1) {
            self.probe = None;
            return None;
        }
        if acked > end {
            self.probe = None;
            return Some(end - 1);
        }
        None
    }
}
