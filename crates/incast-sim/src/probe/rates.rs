//! Rates and windows of flows, sampled.

use incast_units::Time;

/// What a receiver has of one flow as of `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedSample {
    /// When.
    pub time: Time,
    /// Sending host.
    pub source: u32,
    /// Number of the flow at its source.
    pub sequence: u32,
    /// Payload bytes that have arrived, duplicates not counted.
    pub bytes: u64,
}

/// State of one flow as of `time`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// When.
    pub time: Time,
    /// Sending host.
    pub source: u32,
    /// Number of the flow at its source.
    pub sequence: u32,
    /// Pacing rate that the law assigns, at most what its window permits in a base RTT; window / smoothed RTT for
    /// laws without pacing. On the wire with a pace, payload without, in bit/s.
    pub assigned_bps: u64,
    /// Payload that has reached the receiver since the last sample, in whatever order, in bit/s.
    pub measured_bps: u64,
    /// The law's own window in bytes ([`incast_cc::law::SenderLaw::assigned_window`]); `u64::MAX` without.
    pub window_bytes: u64,
    /// The law's estimate of its path ([`incast_cc::law::SenderLaw::estimate`]).
    pub estimate: Option<f32>,
}
