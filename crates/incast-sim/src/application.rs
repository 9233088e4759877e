//! Applications: what opens flows in answer to what happens.

use crate::config::FlowSpec;
use incast_units::Time;
use std::fmt;

/// A flow as its two hosts know it.
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

/// What runs on one host. It is asked once per flow, never per packet.
///
/// Flows it opens start at the time they name, which must not be in the past, and on this host:
/// [`FlowSpec::source`] is filled in by the host.
pub trait Application: Send + fmt::Debug {
    /// The run begins.
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec));
    /// A flow to this host is complete.
    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec));
    /// A flow from this host is acknowledged as a whole.
    fn on_acked(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec));
}
