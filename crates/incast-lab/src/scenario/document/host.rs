//! `[host]`.

use incast_cc::{law::Recovery, path::DEFAULT_RTO_MIN};
use incast_sim::config::{Echo, LostRetransmission, PaceCredit, ReorderingWindow};
use incast_units::{Bytes, Time, UnitError};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// Transport settings of all hosts.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Where the defaults of the other keys come from, and with `"linux"` those of the laws that Linux has.
    #[serde(skip_serializing_if = "HostProfile::is_standard")]
    pub profile: HostProfile,
    /// Payload of a full packet, 64 to 9,216 bytes; headers come on top.
    pub mtu: Bytes,
    /// Smallest retransmission timeout. 100 ms with the scenario's `profile = "hpcc-lineage"`, 200 ms with the hosts'
    /// `profile = "linux"`.
    pub rto_min: Time,
    /// One acknowledgement for so many packets. Marks, gaps and the last packet are acknowledged at once.
    pub ack_every: u32,
    /// A coalesced acknowledgement waits no longer than this. Default: the base RTT; with `profile = "linux"` 40 ms, or a
    /// tick less than `rto_min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Time>,
    /// What a sender adds to the tail-loss probe of a single packet, as its acknowledgement may be delayed (RFC 8985, section 7.2).
    /// Default: `ack_delay` where acknowledgements are coalesced, otherwise nothing; with `profile = "linux"` the `rto_min`,
    /// whatever the receiver does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ack_delay: Option<Time>,
    /// So many packets at the start of each flow are acknowledged at once, whatever `ack_every` is. Linux does so with
    /// up to 16.
    pub quick_acks: u32,
    /// How an acknowledgement of several packets echoes marks.
    pub echo: Echo,
    /// Timers of hosts expire at multiples of this only, at the first one after their time: 1ms is Linux with HZ =
    /// 1000. Default: exactly.
    pub timer_tick: Time,
    /// A round trip opens each flow before its data, as TCP's connections are opened. Otherwise they are open from the
    /// start.
    pub handshake: bool,
    /// Time in a receiver's NIC from the arrival of data until its acknowledgement can leave.
    pub response_delay: Time,
    /// The same for a congestion notification.
    pub notification_delay: Time,
    /// In NICs, acknowledgements and other control packets go before data. Otherwise they take turns with it.
    pub control_first: bool,
    /// How much of the time for which a paced packet waits in the NIC for others its flow catches up on. Default: all of
    /// it, up to ten packets at once.
    pub pace_credit: PaceCredit,
    /// A packet is lost when one sent so many packets later has arrived; with RACK-TLP, so many arrivals out of order
    /// end the wait for late packets until reordering has been seen (DupThresh). Default: 3 (RFC 6675), and with spraying
    /// (`"spray"`, `"spray-permutation"`) one bandwidth-delay product of packets, as all that is in flight may arrive
    /// in any order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<u32>,
    /// For how long RACK-TLP waits for late packets. Default: `"adaptive"`, and with spraying `"srtt"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering_window: Option<ReorderingWindow>,
    /// What the loss of a retransmission is to a law, where packets are sent again selectively.
    pub lost_retransmission: LostRetransmission,
    /// In loss recovery, the window that a law has cut takes effect over a round trip, by proportional rate reduction
    /// (RFC 6937). Not with laws that pace.
    pub prr: bool,
    /// With `load_balancing = "spray-permutation"`, senders leave out for a while paths on which outlying numbers of
    /// packets are trimmed or lost. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_penalty: Option<bool>,
    /// Loss recovery. Default: that of each law's transport, which is RACK-TLP (RFC 8985) for TCP. Receiver-driven
    /// protocols whose packets arrive in any order keep selective repeat with `"rack-tlp"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Sizes of frames. Default: those of each law's transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// How far the clocks of hosts are off, by which one-way delays are measured. Each host draws its own.
    pub clock: Clock,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            profile: HostProfile::Standard,
            mtu: Bytes::new(4096),
            rto_min: DEFAULT_RTO_MIN,
            ack_every: 1,
            ack_delay: None,
            max_ack_delay: None,
            quick_acks: 0,
            echo: Echo::Counts,
            timer_tick: Time::ZERO,
            handshake: false,
            response_delay: Time::ZERO,
            notification_delay: Time::ZERO,
            control_first: true,
            pace_credit: PaceCredit::default(),
            reordering: None,
            reordering_window: None,
            prr: false,
            lost_retransmission: LostRetransmission::NewLoss,
            path_penalty: None,
            recovery: None,
            frames: None,
            clock: Clock::default(),
        }
    }
}

/// `profile` of `[host]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// Hosts without the properties of an implementation: exact timers, open connections, an acknowledgement for each
    /// packet.
    #[default]
    Standard,
    /// Linux 6.18 as installed, with HZ = 1000: least timeout 200 ms, acknowledgements for two packets or after 40
    /// ms, sixteen quick ones, DCTCP's echo, timers by the tick, a handshake, one reduction a recovery, over a round
    /// trip, pacing as `fq` does it. DCTCP, CUBIC, BBR and Marimo start with ten segments and are as Linux's modules.
    Linux,
}

impl HostProfile {
    /// Whether it changes nothing.
    pub fn is_standard(&self) -> bool {
        *self == Self::Standard
    }
}

/// Sizes of frames, frame check sequence included, preamble and gap not. What is not given is that of the law's
/// transport.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Frames {
    /// Around the payload of a data packet, 0 to 1,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// An acknowledgement or other control packet, 1 to 1,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Bytes>,
    /// A congestion notification from the receiver, 1 to 1,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<Bytes>,
    /// The smallest frame, 1 to 1,000 bytes; shorter ones are padded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<Bytes>,
}

/// Deviation of the hosts' clocks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// Largest offset of a host's clock either way, at most 1 s: uniform. Or a table of known offsets by host, such as
    /// `{ h3 = "2us", h7 = "-500ns" }`, negative if the clock is behind; the others have none.
    pub offset: Offset,
    /// Largest drift either way in parts per million, 0 to 200: uniform.
    pub drift_ppm: f64,
    /// Largest error of a reading either way, at most 100 ms: uniform, each reading by itself.
    pub noise: Time,
    /// How the clocks were synchronised before the run. What that leaves takes the place of offset and drift; noise
    /// stays.
    #[serde(skip_serializing_if = "Sync::is_none")]
    pub sync: Sync,
}

/// The offsets of the hosts' clocks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum Offset {
    /// The largest one either way.
    Largest(Time),
    /// Those of named hosts.
    Of(BTreeMap<String, Ahead>),
}

impl Default for Offset {
    fn default() -> Self {
        Self::Largest(Time::ZERO)
    }
}

impl Offset {
    /// The largest offset that a clock may have, either way.
    pub fn most(&self) -> Time {
        match self {
            Self::Largest(largest) => *largest,
            Self::Of(hosts) => {
                hosts.values().map(|ahead| Time::from_ps(ahead.0.unsigned_abs())).max().unwrap_or_default()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Offset;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time such as \"30us\", or a table of times by host such as { h3 = \"2us\", h7 = \"-500ns\" }",
                )
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Offset, E> {
                let invalid = |_| E::invalid_value(serde::de::Unexpected::Str(text), &self);
                text.parse().map(Offset::Largest).map_err(invalid)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Offset, A::Error> {
                let mut hosts = BTreeMap::new();
                while let Some((host, ahead)) = entries.next_entry()? {
                    hosts.insert(host, ahead);
                }
                Ok(Offset::Of(hosts))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// By how many picoseconds a clock is ahead; negative if it is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead(pub i64);

impl FromStr for Ahead {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let behind = text.trim_start().strip_prefix('-');
        let time: Time = behind.unwrap_or(text).parse()?;
        let ps = i64::try_from(time.ps()).unwrap_or(i64::MAX);
        Ok(Self(if behind.is_some() { -ps } else { ps }))
    }
}

impl fmt::Display for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.0 < 0 { "-" } else { "" }, Time::from_ps(self.0.unsigned_abs()))
    }
}

incast_units::written_as_text!(
    Ahead,
    "ClockOffset",
    "a time such as \"2us\" or \"-500ns\", negative if the clock is behind (units ps, ns, us, ms, s)",
    r"^\s*-?[0-9_]*\.?[0-9_]*\s*(ps|ns|us|µs|ms|s)\s*$"
);

/// How clocks were synchronised, in a model of probes alone over 2 s with 10 peers for each host (`incast clock-sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// Not at all.
    #[default]
    None,
    /// Huygens: coded probes, envelopes, loop correction.
    Huygens,
    /// As NTP: mean of all two-way exchanges.
    TwoWayAverage,
    /// The fastest two-way exchange of each eighth of the window.
    TwoWayMinimum,
}

impl Sync {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}
