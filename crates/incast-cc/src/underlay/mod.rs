//! Underlays: stages between a flow and its NIC that may hold packets, under any law.
//!
//! The stage keeps packets in the order in which they were handed over; what is decided here is when the first of them
//! may go. One decision may be shared by all flows to a destination ([`Scope`]).

modules!(underlay);

use crate::{
    Path,
    parameters::{Condition, ParameterError, ParameterInfo, Raw},
};
use incast_units::Time;

/// Description of an underlay, for listings.
#[derive(Clone, Copy, Debug)]
pub struct UnderlayInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// How tables print it.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [ParameterInfo],
}

crate::choice! {
    /// For what one decision is made.
    pub enum Scope {
        /// Each flow has its own.
        Flow = "flow",
        /// All flows of a class from a host to a destination share one.
        Destination = "destination",
    }
}

crate::choice! {
    /// How one-way delays come back to the sender.
    pub enum Reports {
        /// The receiver's underlay answers each data packet with one of its own.
        Own = "own",
        /// They ride on the transport's acknowledgements, of which there may be fewer than packets.
        Acknowledgements = "acks",
    }
}

/// What the stage around the decision is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// For what one decision is made.
    pub scope: Scope,
    /// How one-way delays come back.
    pub reports: Reports,
    /// The round-trip times that the flow's law and its timers see include the time that packets were held.
    pub rtt_with_hold: bool,
    /// Packets of a flow that may wait: what its law allows beyond stays with the flow.
    pub backlog: u32,
}

/// The packet that would go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it was handed over.
    pub queued: Time,
    /// Its bytes on the link, preamble and gap included.
    pub wire: u32,
}

/// The decision of one stage, for one flow or for all to one destination.
pub trait UnderlayStage: Sized {
    /// Parameters, resolved once for a fabric.
    type Parameters: Clone;
    /// Name, title, source.
    const INFO: UnderlayInfo;
    /// Parameters that have an effect only with some values of another one.
    const CONDITIONS: &'static [Condition] = &[];

    /// Resolves parameters: the defaults on `path`, replaced by those `given`.
    ///
    /// # Errors
    /// See [`crate::parameters!`].
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Self::Parameters, ParameterError>;
    /// The effective values of parameters, as a scenario would write them.
    fn values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)>;
    /// What is arranged around it.
    fn arrangement(parameters: &Self::Parameters) -> Arrangement;
    /// State of a flow, or of the first one to a destination, that starts at `now`. Through an empty fabric its
    /// packets take `longer` more one way than on the fabric's shortest path.
    fn start(parameters: &Self::Parameters, path: &Path, longer: Time, now: Time) -> Self;

    /// When the first packet may go to the NIC: `now` or earlier for at once. Asked again when that time has come, and
    /// whenever something else happens to its flow.
    fn release(&mut self, now: Time, head: &Head) -> Time;
    /// The first packet went to the NIC.
    fn on_release(&mut self, _now: Time, _head: &Head) {}
    /// The packet that went at `sent` took so long one way: picoseconds as the two hosts' clocks show it, below zero if
    /// they disagree.
    fn on_report(&mut self, now: Time, sent: Time, one_way_delay: i64);
}
