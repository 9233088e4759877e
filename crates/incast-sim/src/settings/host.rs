//! The configuration of hosts.

use crate::recovery::ReorderingWindow;
use incast_cc::{path::DEFAULT_RTO_MIN, registry::Scheduler};
use incast_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All hosts of a fabric.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Smallest retransmission timeout.
    pub rto_min: Time,
    /// An acknowledgement for each n-th packet; 1 for every packet. Marks, gaps and the last packet are acknowledged at
    /// once.
    pub ack_every: u32,
    /// A coalesced acknowledgement waits no longer than this.
    pub ack_delay: Time,
    /// What a sender adds to the tail-loss probe of a single packet; `None` for [`Self::ack_delay`] where acknowledgements are
    /// coalesced.
    pub max_ack_delay: Option<Time>,
    /// So many packets at the start of each flow are acknowledged at once whatever `ack_every` is.
    pub quick_acks: u32,
    /// How a coalesced acknowledgement tells of marks.
    pub echo: Echo,
    /// Timers expire only at multiples of this, the first one after their time; zero for exactly then.
    pub timer_tick: Time,
    /// A round trip opens each flow of a sender-driven class before its data.
    pub handshake: bool,
    /// Time in a receiver's NIC from the arrival of data until its acknowledgement can leave.
    pub response_delay: Time,
    /// The same for a congestion notification.
    pub notification_delay: Time,
    /// Acknowledgements and other control packets go before data; otherwise they take turns with it.
    pub control_first: bool,
    /// A packet is lost when one sent this many packets later has arrived (DupThresh of RFC 6675, applied to the
    /// highest arrival). With RACK-TLP it is DupThresh of RFC 8985.
    pub reordering: u32,
    /// For how long RACK-TLP waits for packets that are late.
    pub reordering_window: ReorderingWindow,
    /// What laws are told of a retransmission that is lost.
    pub lost_retransmission: LostRetransmission,
    /// In loss recovery, windows that laws have cut take effect by proportional rate reduction (RFC 6937). Not with
    /// laws that pace.
    pub prr: bool,
    /// Receiver-driven schedulers; each host has a copy of each. Classes name one by its index.
    pub schedulers: Vec<Scheduler>,
    /// How much of the time that a paced packet waits for others of its host its flow catches up on.
    pub pace_credit: PaceCredit,
    /// A sender gives a flow up when its retransmission timer has expired so often in a row; `None` for never.
    pub give_up_after: Option<u8>,
    /// With [`LoadBalancing::SprayPermutation`](crate::config::LoadBalancing::SprayPermutation): paths with outlying
    /// numbers of trimmed or lost packets are left out for a while.
    pub path_penalty: bool,
}

impl HostConfig {
    /// Sender-driven hosts that acknowledge every packet, with a retransmission timeout of at least 1 ms. `mtu` is the
    /// payload of a full packet in bytes.
    pub fn plain(mtu: u32) -> Self {
        Self {
            mtu,
            rto_min: DEFAULT_RTO_MIN,
            ack_every: 1,
            ack_delay: Time::ZERO,
            max_ack_delay: None,
            quick_acks: 0,
            echo: Echo::Counts,
            timer_tick: Time::ZERO,
            handshake: false,
            response_delay: Time::ZERO,
            notification_delay: Time::ZERO,
            control_first: true,
            reordering: 3,
            reordering_window: ReorderingWindow::Adaptive,
            prr: false,
            lost_retransmission: LostRetransmission::NewLoss,
            schedulers: Vec::new(),
            pace_credit: PaceCredit::default(),
            give_up_after: None,
            path_penalty: true,
        }
    }
}

impl HostConfig {
    /// When a timer that is set to this time expires.
    #[inline]
    pub fn expiry(&self, time: Time) -> Time {
        let tick = self.timer_tick.ps();
        if tick == 0 || time == Time::MAX { time } else { Time::from_ps((time.ps() / tick + 1).saturating_mul(tick)) }
    }
}

/// How an acknowledgement of several packets tells of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// It counts packets and marks since the last one.
    #[default]
    Counts,
    /// It has one flag for all of them, so that packets before a change of marks get an acknowledgement of their own
    /// (RFC 8257, section 3.2).
    Flag,
}

/// What a law is told of a retransmission that is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LostRetransmission {
    /// That it is a new loss, for which the window is reduced again (RFC 5681, section 4.3; RFC 8985, section 3.4).
    #[default]
    NewLoss,
    /// That it belongs to the recovery that goes on, as in Linux, which reduces the window once for each recovery.
    SameRecovery,
}

/// How much of the time that a paced packet waits for others in the NIC its flow catches up on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum PaceCredit {
    /// Nothing: the gap after a packet begins when it is sent.
    None,
    /// At most half of the gap after each packet. Linux: `sch_fq`, and TCP's own pacing (`tcp_update_skb_after_send`).
    HalfPacket,
    /// All, up to the gaps of some packets: a rate limiter's burst. Only the wait in the NIC counts, not the time for which
    /// window or application had nothing to send.
    Burst {
        /// That many packets.
        packets: u16,
    },
}

impl Default for PaceCredit {
    /// Ten packets: the default of Intel's E810 (15 KiB) in packets of 1,500 bytes, and what QUIC's pacer may send at once
    /// (RFC 9002, section 7.7).
    fn default() -> Self {
        Self::Burst { packets: 10 }
    }
}

impl PaceCredit {
    /// By how much the gap after a packet that has `waited` is shorter.
    #[inline]
    pub fn of(self, gap: Time, waited: Time) -> Time {
        match self {
            Self::None => Time::ZERO,
            Self::HalfPacket => waited.min(Time::from_ps(gap.ps() / 2)),
            Self::Burst { packets } => waited.min(Time::from_ps(gap.ps().saturating_mul(packets.into()))),
        }
    }
}

/// How a host's clock deviates from the simulation's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostClock {
    /// Offset at the start, in picoseconds; positive if the clock is ahead.
    pub offset_ps: i64,
    /// Drift, in parts per million; positive if the clock is fast.
    pub drift_ppm: f64,
    /// Largest additional error of a reading. The errors of readings are independent and uniform in both directions.
    pub noise: Time,
}
