//! Calls of On-Ramp's C core.
//!
//! Every function of the core is pure in its arguments: it reads the configuration, reads or writes the state, and
//! keeps no pointer. References of Rust meet its requirements: valid, aligned, and exclusive where it writes.
//! What remains to be shown is that both sides agree on the layout (the test below) and that the core cannot divide by
//! zero: it divides once, by a count that it has just compared with zero.

use super::decision::{Config, State};

mod c {
    use super::{Config, State};

    unsafe extern "C" {
        #[cfg(test)]
        pub static incast_onramp_sizes: [u32; 2];
        pub fn incast_onramp_config_valid(config: *const Config) -> u32;
        pub fn incast_onramp_init(state: *mut State);
        pub fn incast_onramp_release(
            state: *const State,
            config: *const Config,
            now: u64,
            queued: u64,
        ) -> u64;
        pub fn incast_onramp_on_release(state: *mut State, config: *const Config, now: u64, queued: u64);
        pub fn incast_onramp_on_report(
            state: *mut State,
            config: *const Config,
            now: u64,
            sent: u64,
            delay: i64,
        );
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
