//! Marimo's C core, `deploy/core/marimo.h`, and the table f that it reads.
//!
//! The C is the law; this is its safe face. `window/marimo.rs` converts a simulator's units into its own.

mod ffi;
mod table;
// Public for tests of what wraps the core, in this crate and in others.
#[doc(hidden)]
pub mod vectors;

pub use table::{LoadTable, TableError};

use thiserror::Error;

/// 1 as the core counts loads, shares and windows in packets: Q16.
pub const ONE: u32 = 1 << 16;
/// "No bound" in a configuration.
pub const NEVER: u32 = u32::MAX;
/// Points of a table.
pub const KNOTS: usize = 65;
/// Largest value of f.
pub const LOAD_MAX: u32 = 8 * ONE;
/// Largest window, in packets.
pub const WINDOW_MAX: u32 = 65_535;
/// Largest increase per round trip, in packets.
pub const INCREASE_MAX: u32 = 255;

/// What a decrease is computed from.
pub const FROM_MEMORY: u8 = 0;
/// See [`FROM_MEMORY`].
pub const FROM_EPOCH: u8 = 1;

/// How a connection starts.
pub const START_STEADY: u8 = 0;
/// See [`START_STEADY`].
pub const START_EPOCH: u8 = 1;
/// See [`START_STEADY`].
pub const START_MARK: u8 = 2;

/// `MARIMO_SLOW_START` in the state's flags.
const SLOW_START: u8 = 2;

/// `struct marimo_config`: what the paper leaves open. Loads and shares in Q16, windows in Q16 packets; the header
/// says what the fields are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Config {
    pub increase_below: u32,
    pub decrease_above: u32,
    pub target: u32,
    pub min_decrease: u32,
    pub max_decrease: u32,
    pub rho_after_decrease: u32,
    pub loss_rho: u32,
    pub loss_decrease: u32,
    pub initial_window: u32,
    pub min_window: u32,
    pub max_window: u32,
    pub increase: u32,
    pub max_increase: u32,
    pub min_epoch: u32,
    pub beta_shift: u8,
    pub decrease_from: u8,
    pub settle: u8,
    pub slow_start: u8,
}

/// Numbers that are not those of a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldsError {
    /// Too few or too many.
    #[error("found {0} numbers, a configuration has 18")]
    Count(usize),
    /// One of the four that are bytes is larger.
    #[error("{field}: found {found}, allowed is at most 255")]
    Byte {
        /// Its name.
        field: &'static str,
        /// The number.
        found: u32,
    },
}

impl Config {
    /// From its numbers in the order and the units of the C struct: loads and shares in Q16, windows and increases in
    /// Q16 packets, `min_epoch` in packets, then the shift, `decrease_from`, `settle` in epochs and `slow_start`.
    ///
    /// # Errors
    /// Another count, and a number that its field cannot hold. Whether they make sense is what [`Shared::new`] checks.
    pub fn from_fields(fields: &[u32]) -> Result<Self, FieldsError> {
        let &[
            increase_below,
            decrease_above,
            target,
            min_decrease,
            max_decrease,
            rho_after_decrease,
            loss_rho,
            loss_decrease,
            initial_window,
            min_window,
            max_window,
            increase,
            max_increase,
            min_epoch,
            beta_shift,
            decrease_from,
            settle,
            slow_start,
        ] = fields
        else {
            return Err(FieldsError::Count(fields.len()));
        };
        let byte = |field, found| u8::try_from(found).map_err(|_| FieldsError::Byte { field, found });
        Ok(Self {
            increase_below,
            decrease_above,
            target,
            min_decrease,
            max_decrease,
            rho_after_decrease,
            loss_rho,
            loss_decrease,
            initial_window,
            min_window,
            max_window,
            increase,
            max_increase,
            min_epoch,
            beta_shift: byte("beta_shift", beta_shift)?,
            decrease_from: byte("decrease_from", decrease_from)?,
            settle: byte("settle", settle)?,
            slow_start: byte("slow_start", slow_start)?,
        })
    }
}

/// `struct marimo_ack`: the content of one acknowledgement, in packets and positions modulo 2^32.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Ack {
    pub packets: u32,
    pub marked: u32,
    pub acked: u32,
    pub position: u32,
    pub next: u32,
    pub limited: u32,
}

/// `struct marimo`: state of one connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    window: u32,
    threshold: u32,
    before: u32,
    rho: u32,
    gain: u32,
    epoch_end: u32,
    epoch_packets: u32,
    epoch_marked: u32,
    cut_end: u32,
    epochs: u32,
    share: u32,
    flags: u8,
    streak: u8,
    settling: u8,
    ect_timeouts: u8,
}

/// A configuration and a table that fit each other and leave the core nothing to divide by zero: what connections
/// share.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    config: Config,
    knots: [u32; KNOTS],
}

impl Shared {
    /// Checks both; `None` if the configuration is out of range or the table does not cross its thresholds.
    pub fn new(config: Config, table: &LoadTable) -> Option<Self> {
        let shared = Self { config, knots: *table.knots() };
        (ffi::config_valid(&config) && ffi::table_fault(&shared.knots, &config).is_none()).then_some(shared)
    }
    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection(State);

impl Connection {
    /// A new connection.
    pub fn new(shared: &Shared) -> Self {
        Self(ffi::init(shared))
    }
    /// An acknowledgement arrived.
    #[inline]
    pub fn on_ack(&mut self, shared: &Shared, ack: &Ack) {
        ffi::on_ack(&mut self.0, shared, ack);
    }
    /// Packets were found lost, the first of them at `position`; `next` is the first position never sent.
    pub fn on_loss(&mut self, shared: &Shared, position: u32, next: u32) {
        ffi::on_loss(&mut self.0, shared, position, next);
    }
    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, shared: &Shared, next: u32) {
        ffi::on_timeout(&mut self.0, shared, next);
    }
    /// It sends again after a long pause.
    pub fn on_idle(&mut self, next: u32) {
        ffi::on_idle(&mut self.0, next);
    }
    /// Packets have `after` bytes instead of `before`: the window keeps its bytes if they grow, else its packets.
    pub fn on_mtu(&mut self, before: u16, after: u16) {
        ffi::on_mtu(&mut self.0, before, after);
    }
    /// Window in Q16 packets.
    #[inline]
    pub fn window(&self) -> u32 {
        self.0.window
    }
    /// Estimated load, Q16.
    pub fn rho(&self) -> u32 {
        self.0.rho
    }
    /// Marked share of the last epoch, Q16.
    pub fn share(&self) -> u32 {
        self.0.share
    }
    /// Epochs so far, modulo 2^32.
    pub fn epochs(&self) -> u32 {
        self.0.epochs
    }
    /// It doubles its window per round trip until a mark or a loss.
    pub fn in_slow_start(&self) -> bool {
        self.0.flags & SLOW_START != 0
    }
}
