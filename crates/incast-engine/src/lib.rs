//! The engine: runs domains that send each other messages, in windows. It knows nothing about networks.
//!
//! > A node never touches another node. It only puts packets on its own links.
//!
//! A *domain* is whatever shares one event loop. What a domain sends at time t arrives at t + L at the earliest, L
//! being the *lookahead*. Within a window [kL, (k + 1)L) domains therefore cannot influence each other: each one's
//! events of the window run to the end, in any order of domains and on any number of threads, with the same
//! result. Then the window's output is handed over, and the next window is the one with the earliest pending event.
//! Where domains can be divided in two so that none sends to its own half, the halves take turns in windows of 2 L.
//!
//! Rules R1 to R9 and R16 of docs/unsafe.md say which thread may access what, and when, and what types must keep. Unsafe
//! code here cites them.
//!
//! The order of events inside a domain is total and depends on simulated state alone; see [`queue::Key`].

mod active_set;
#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod arrivals;
#[cfg(not(loom))]
mod balance;
#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
pub mod domain;
#[cfg(not(loom))]
pub mod executor;
#[cfg(not(loom))]
pub mod halt;
#[cfg(not(loom))]
mod inspector;
mod mailbox;
#[cfg(not(loom))]
mod mapping;
mod message;
#[cfg(loom)]
mod models;
pub mod prefetch;
#[cfg(not(loom))]
mod primitives;
#[cfg(not(loom))]
pub mod queue;
pub mod random;
#[cfg(not(loom))]
mod run;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod sort;
mod sync;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
mod ties;
pub mod vectors;
#[cfg(not(loom))]
mod visit;
#[cfg(not(loom))]
mod worker;

#[cfg(loom)]
use models::{arena, arrivals, primitives};

#[cfg(not(loom))]
pub use self::{
    domain::{Context, Domain, Messages},
    executor::{Executor, Reached},
    queue::Event,
    worker::Statistics,
};
pub use message::{Attachment, Message, Parcel};
