//! Flows, and the applications that open them during a run.

use crate::routing::Pinned;
use incast_units::Time;
use std::fmt;

/// A flow to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Start time.
    pub start: Time,
    /// Sending host.
    pub source: u32,
    /// Receiving host.
    pub destination: u32,
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// Index into [`Config::classes`](crate::Config::classes).
    pub class: u16,
    /// Group of the flow (an incast, an RPC), or [`FlowSpec::NO_REQUEST`].
    pub request: u64,
    /// Its paths there and back, with [`LoadBalancing::SourceRouted`](crate::config::LoadBalancing::SourceRouted).
    pub pinned: Option<Pinned>,
}

impl FlowSpec {
    /// The flow belongs to no group.
    pub const NO_REQUEST: u64 = u64::MAX;
    /// The flow opens a group of its own, called (source << 32) + sequence.
    pub const OWN_REQUEST: u64 = u64::MAX - 1;
}

/// A flow, as both of its hosts know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Sending host.
    pub source: u32,
    /// Number of the flow at its source.
    pub sequence: u32,
    /// Receiving host.
    pub destination: u32,
    /// Class index.
    pub class: u16,
    /// Payload bytes.
    pub bytes: u64,
}

/// An application on one host. It is called once per flow, never per packet.
///
/// Flows that it opens start at the time they name, which must not be in the past, and on this host:
/// the host fills in [`FlowSpec::source`].
pub trait Application: Send + fmt::Debug {
    /// The run begins.
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec));
    /// A flow to this host is complete.
    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec));
    /// All bytes of a flow from this host are acknowledged.
    fn on_acked(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec));
}
