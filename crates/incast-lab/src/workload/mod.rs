//! Workloads: what a scenario's `[[workload]]` tables turn into. One file per kind.

pub mod all_to_all;
pub mod builtin;
pub mod distribution;
pub mod fit;
pub mod flow_log;
pub mod incast;
pub mod loads;
pub mod long;
pub mod permutation;
pub mod poisson;
pub mod rpc;
pub mod spacing;
pub mod streams;
pub mod trace;
mod trace_parquet;
mod trace_rows;

use incast_cc::law::SizeClass;
use incast_sim::{FlowSpec, application::Application};
use incast_units::Time;
use std::fmt::Debug;

/// How much traffic is to be expected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Flows.
    pub flows: f64,
    /// Payload bytes of all of them, which may be more than can be sent before a run ends.
    pub bytes: f64,
    /// Hosts that send, at the most.
    pub sources: f64,
    /// Of a closed loop, flows that are under way at a time, at the most; else 0.
    pub open: f64,
}

/// The largest flow: 2^40 bytes, which packets of 256 bytes or more can number.
pub const MOST_BYTES: u64 = 1 << 40;

/// Traffic of one `[[workload]]` table, ready to be generated.
pub trait Generate: Debug + Send + Sync {
    /// Adds the flows that are known beforehand.
    fn flows(&self, seed: u64, flows: &mut Vec<FlowSpec>);
    /// How much is to be expected.
    fn expected(&self) -> Expected;
    /// One line for people: what `load` came to, how many flows.
    fn describe(&self) -> String;
    /// What opens flows during the run at `host`.
    fn application(&self, _seed: u64, _host: u32) -> Option<Box<dyn Application>> {
        None
    }
    /// The class of its requests, if its flows are of some.
    fn request_class(&self) -> Option<u16> {
        None
    }
    /// The smallest and the largest flow that there can be; `None` where flows do not end.
    fn size_range(&self) -> Option<(u64, u64)> {
        let sizes = self.sizes();
        let bytes = || sizes.iter().map(|(_, size)| size.bytes);
        Some((bytes().min()?, bytes().max()?))
    }
    /// The smallest flow, for those kinds whose flows are long.
    fn smallest_long_flow(&self) -> Option<u64> {
        None
    }
    /// Classes and sizes of the flows, and how many of each are to be expected; flows that never end are left out.
    fn sizes(&self) -> Vec<(u16, SizeClass)>;
    /// The same as somebody knows it who has seen the traffic until this time: a distribution does not change, of a
    /// trace only the flows that have started are known.
    fn sizes_until(&self, _until: Time) -> Vec<(u16, SizeClass)> {
        self.sizes()
    }
    /// The earliest and latest start that is possible, in picoseconds.
    fn starts(&self) -> (u64, u64);
}

/// Request ids of groups that are known beforehand lie above all those that hosts give out: a host has a number below
/// 2^20, and gives out 2^32 of them. All are below 2^53, so that tools that read them as floating point keep them apart.
pub fn request_id(class: u16, group: u64) -> u64 {
    1 << 52 | u64::from(class & 0xfff) << 40 | (group & ((1 << 40) - 1))
}
