//! Calls of Marimo's C core. Unsafe code of this crate is here and in `underlay/onramp/ffi.rs`.
//!
//! Every function of the core is pure in its arguments: it reads the configuration, the table and the acknowledgement,
//! writes the state, and keeps no pointer. References of Rust meet its requirements: valid, aligned, and
//! exclusive where it writes. What remains to be shown is that both sides agree on the layout (the test below) and that
//! the core cannot divide by zero, which [`Shared`]'s constructor checks.

use super::{Ack, Config, KNOTS, Shared, State};

mod core {
    use super::{Ack, Config, KNOTS, State};

    unsafe extern "C" {
        #[cfg(test)]
        pub static incast_marimo_sizes: [u32; 4];
        pub fn incast_marimo_table_fault(table: *const [u32; KNOTS], config: *const Config) -> u32;
        pub fn incast_marimo_table_checksum(table: *const [u32; KNOTS]) -> u32;
        pub fn incast_marimo_config_valid(config: *const Config) -> u32;
        pub fn incast_marimo_load(table: *const [u32; KNOTS], share: u32) -> u32;
        pub fn incast_marimo_init(state: *mut State, config: *const Config, table: *const [u32; KNOTS]);
        pub fn incast_marimo_on_ack(
            state: *mut State,
            config: *const Config,
            table: *const [u32; KNOTS],
            ack: *const Ack,
        );
        pub fn incast_marimo_on_loss(state: *mut State, config: *const Config, position: u32, next: u32);
        pub fn incast_marimo_on_timeout(state: *mut State, config: *const Config, next: u32);
        pub fn incast_marimo_on_idle(state: *mut State, next: u32);
        pub fn incast_marimo_on_mtu(state: *mut State, before: u32, after: u32);
    }
}

/// Index of the first knot that `config` cannot use.
pub fn table_fault(knots: &[u32; KNOTS], config: &Config) -> Option<usize> {
    // SAFETY: R14: reads both arguments only; neither has invalid values.
    let fault = unsafe { core::incast_marimo_table_fault(knots, config) };
    (fault as usize).checked_sub(1)
}

pub fn table_checksum(knots: &[u32; KNOTS]) -> u32 {
    // SAFETY: R14: reads its argument only.
    unsafe { core::incast_marimo_table_checksum(knots) }
}

pub fn config_valid(config: &Config) -> bool {
    // SAFETY: R14: reads its argument only.
    unsafe { core::incast_marimo_config_valid(config) != 0 }
}

/// f at a share, both Q16.
pub fn load(knots: &[u32; KNOTS], share: u32) -> u32 {
    // SAFETY: R14: reads the table only, at indices that the share, which the core bounds, cannot push outside.
    unsafe { core::incast_marimo_load(knots, share) }
}

pub fn init(shared: &Shared) -> State {
    let mut state = State::default();
    // SAFETY: R14: `shared` was checked, so the window that it divides by is not zero.
    unsafe { core::incast_marimo_init(&mut state, &shared.config, &shared.knots) };
    state
}

#[inline]
pub fn on_ack(state: &mut State, shared: &Shared, ack: &Ack) {
    // SAFETY: R14: an epoch that ends has at least `min_epoch` packets, which was checked to be above zero.
    unsafe { core::incast_marimo_on_ack(state, &shared.config, &shared.knots, ack) };
}

pub fn on_loss(state: &mut State, shared: &Shared, position: u32, next: u32) {
    // SAFETY: R14: it does not divide.
    unsafe { core::incast_marimo_on_loss(state, &shared.config, position, next) };
}

pub fn on_timeout(state: &mut State, shared: &Shared, next: u32) {
    // SAFETY: R14: it does not divide.
    unsafe { core::incast_marimo_on_timeout(state, &shared.config, next) };
}

pub fn on_idle(state: &mut State, next: u32) {
    // SAFETY: R14: it does not divide.
    unsafe { core::incast_marimo_on_idle(state, next) };
}

pub fn on_mtu(state: &mut State, before: u16, after: u16) {
    // SAFETY: R14: it divides by `after` where that is larger than `before`, and so not zero.
    unsafe { core::incast_marimo_on_mtu(state, before.into(), after.into()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_on_sizes() {
        // SAFETY: R14: a constant of the C side.
        let sizes = unsafe { core::incast_marimo_sizes };
        let ours = [size_of::<State>(), size_of::<Config>(), size_of::<[u32; KNOTS]>(), size_of::<Ack>()];
        assert_eq!(sizes.map(|size| size as usize), ours);
        assert!(size_of::<State>() <= 64);
    }
}
