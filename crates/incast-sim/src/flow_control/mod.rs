//! Flow control of links: priority flow control (IEEE 802.1Qbb), credits (InfiniBand), and what they share.

pub mod credits;
pub mod pause;
pub mod permission;
pub mod pfc;
