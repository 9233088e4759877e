//! The safe face of `deploy/core/onramp.h`: a decision in its own units, nanoseconds and Q16.

use super::ffi;

pub use super::ffi::{Config, State};

/// 1 in Q16.
pub const ONE: u32 = 1 << 16;
/// The longest span that the core computes with, about one second.
pub const SPAN_MAX: u32 = 0x3fff_ffff;

/// One decision and its configuration, which was checked.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    config: Config,
    state: State,
}

impl Decision {
    /// A flow begins; `None` if the configuration is out of range.
    pub fn new(config: Config) -> Option<Self> {
        ffi::config_valid(&config).then(|| Self { config, state: ffi::init() })
    }
    /// When a packet that was handed over at `queued` may leave; `now` or earlier for at once.
    pub fn release(&self, now: u64, queued: u64) -> u64 {
        ffi::release(&self.state, &self.config, now, queued)
    }
    /// The first packet, handed over at `queued`, left.
    pub fn on_release(&mut self, now: u64, queued: u64) {
        ffi::on_release(&mut self.state, &self.config, now, queued);
    }
    /// The packet that left at `sent` took `delay` one way, which is below zero if clocks disagree.
    pub fn on_report(&mut self, now: u64, sent: u64, delay: i64) {
        ffi::on_report(&mut self.state, &self.config, now, sent, delay);
    }
    /// What was decided, for tests.
    #[cfg(test)]
    pub(super) fn state(&self) -> &State {
        &self.state
    }
}
