//! Probes: samples, recorded events and packets. Nodes fill them; switching a probe on changes no other result.

mod causes;
mod events;
mod flows;
mod packets;
mod ports;
mod rates;

pub use causes::{PauseCause, find_roots};
pub use events::{EventKind, EventRecord, Recorder};
pub use flows::FlowRecord;
pub use packets::{PacketFacts, PacketFilter, PacketRecord, PacketTrace, Step};
pub use ports::{PortProbe, PortSample};
pub use rates::{ArrivedSample, RateSample};
