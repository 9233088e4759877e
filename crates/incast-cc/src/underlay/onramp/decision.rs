//! The safe face of `deploy/core/onramp.h`: its structs, and a decision in its own units, nanoseconds and Q16.

use super::ffi;

/// 1 in Q16.
pub const ONE: u32 = 1 << 16;
/// The longest span that the core computes with, about one second.
pub const SPAN_MAX: u32 = 0x3fff_ffff;
/// Pauses that the core remembers.
const PAUSES: usize = 6;

/// `struct onramp_config`; the fields are described in the header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Config {
    pub threshold: u32,
    pub max_hold: u32,
    pub quantum: u32,
    pub small_quantum: u32,
    pub beta: u32,
    pub pace: u32,
    pub gain: u32,
    pub step: u32,
    pub variant: u8,
    pub release: u8,
    pub ramp: u8,
    pub reserved: u8,
}

/// `struct onramp`: state of one decision.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub(super) pause_until: u64,
    opened: u64,
    released: u64,
    reported: u64,
    pub(super) next: u64,
    marker: u64,
    pub(super) outstanding: u32,
    pub(super) limit: u32,
    since: u32,
    flight: u32,
    pub(super) gap: u32,
    credit: u32,
    ends: [u32; PAUSES],
    lengths: [u32; PAUSES],
    pauses: u8,
    flags: u8,
}

impl State {
    /// `ONRAMP_HELD`: a pause has begun whose backlog may not be gone.
    #[cfg(test)]
    pub(super) fn held(&self) -> bool {
        self.flags & 2 != 0
    }
}

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
