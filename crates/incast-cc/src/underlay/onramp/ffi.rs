//! On-Ramp's C core: its structs, and calls of it.
//!
//! Every function of the core is pure in its arguments: it reads the configuration, reads or writes the state, and
//! keeps no pointer. References of Rust meet its requirements: valid, aligned, and exclusive where it writes.
//! What remains to be shown is that both sides agree on the layout (the test below) and that the core cannot divide by
//! zero: it divides twice, by a count that it has just compared with zero, and by a sum with a number that it has, too.

/// Pauses that the core remembers.
const PAUSES: usize = 6;

/// `struct onramp_config`; the header says what the fields are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Config {
    pub threshold: u32,
    pub max_hold: u32,
    pub quantum: u32,
    pub small_quantum: u32,
    pub beta: u32,
    pub spread: u32,
    pub reference: u32,
    pub gain: u32,
    pub step: u32,
    pub variant: u8,
    pub release: u8,
    pub reserved: [u8; 2],
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
    pub(super) bound: u32,
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

mod c {
    use super::{Config, State};

    unsafe extern "C" {
        #[cfg(test)]
        pub static incast_onramp_sizes: [u32; 2];
        pub fn incast_onramp_config_valid(config: *const Config) -> u32;
        pub fn incast_onramp_init(state: *mut State);
        pub fn incast_onramp_release(state: *const State, config: *const Config, now: u64, queued: u64) -> u64;
        pub fn incast_onramp_on_release(state: *mut State, config: *const Config, now: u64, queued: u64);
        pub fn incast_onramp_on_report(state: *mut State, config: *const Config, now: u64, sent: u64, delay: i64);
    }
}

pub fn config_valid(config: &Config) -> bool {
    // SAFETY: R14: reads its argument only.
    unsafe { c::incast_onramp_config_valid(config) != 0 }
}

pub fn init() -> State {
    let mut state = State::default();
    // SAFETY: R14: writes its argument only.
    unsafe { c::incast_onramp_init(&mut state) };
    state
}

#[inline]
pub fn release(state: &State, config: &Config, now: u64, queued: u64) -> u64 {
    // SAFETY: R14: reads its arguments only.
    unsafe { c::incast_onramp_release(state, config, now, queued) }
}

#[inline]
pub fn on_release(state: &mut State, config: &Config, now: u64, queued: u64) {
    // SAFETY: R14: it does not divide.
    unsafe { c::incast_onramp_on_release(state, config, now, queued) };
}

#[inline]
pub fn on_report(state: &mut State, config: &Config, now: u64, sent: u64, delay: i64) {
    // SAFETY: R14: the number of pauses, by which it indexes, never exceeds the log's length.
    unsafe { c::incast_onramp_on_report(state, config, now, sent, delay) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_on_sizes() {
        // SAFETY: R14: a constant of the C side.
        let sizes = unsafe { c::incast_onramp_sizes };
        let ours = [size_of::<State>(), size_of::<Config>()];
        assert_eq!(sizes.map(|size| size as usize), ours);
        assert!(size_of::<State>() <= 128);
    }
}
