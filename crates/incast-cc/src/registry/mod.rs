//! Dispatch tables over all algorithms, generated from the list in `algorithms.rs`.

mod agents;
mod laws;
mod schedulers;
#[cfg(test)]
pub(crate) mod testing;
mod underlays;

pub use agents::{AGENTS, Agent, AgentParameters};
pub use laws::{LAWS, Law, LawParameters};
pub use schedulers::Scheduler;
pub use underlays::{UNDERLAYS, Underlay, UnderlayParameters};
