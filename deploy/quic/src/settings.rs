//! Parameters of the controller, by the names that scenarios use.

use crate::reno::MIN_WINDOW;
use incast_cc::{
    Path,
    law::SenderLaw,
    parameters::{ParameterError, Raw},
    window::marimo::{
        Marimo,
        core::{Config, LoadTable, ONE, Shared},
    },
};
use incast_units::{Bytes, Rate, Time};
use std::{sync::Arc, time::Duration};

/// Packets of the initial window: RFC 9002, section 7.2.
const INITIAL_WINDOW: u64 = 10;

/// Payload of a full packet that sizes in parameters refer to.
const FULL: u32 = 1_200;

/// What the connections of an endpoint share.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) shared: Shared,
    pub(crate) table: LoadTable,
    /// Packets that leave at once: at the start, after a pause, between two departures.
    pub burst: u32,
    /// Smoothed round trips from which departures are paced.
    pub pace_from: Duration,
    /// Packets may be handed to the NIC in bundles (GSO). A queue marks a bundle as one packet and all packets in it
    /// arrive marked, so that shares of marks are wrong; it also needs less CPU.
    pub bundles: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(&[]).expect("defaults are allowed, as a test shows")
    }
}

impl Settings {
    /// With parameters of the scheme `marimo` (`incast list schemes`) that differ from their defaults.
    ///
    /// Where a default depends on the path, it is that of 10 packets per round trip: windows of QUIC start with 10
    /// packets, whatever the path. The least window is 2 packets, as QUIC has it.
    ///
    /// # Errors
    /// An unknown parameter, a wrong kind, or a value that is not allowed.
    pub fn new(given: &[(String, Raw)]) -> Result<Self, ParameterError> {
        let base_rtt = Time::from_us(96);
        let path = Path::new(Rate::from_gbps(1), base_rtt, FULL, FULL);
        debug_assert_eq!(path.bdp(), Bytes::new(INITIAL_WINDOW * u64::from(FULL)));
        let constants = Marimo::resolve(&path, given)?;
        let (config, table) = constants.core();
        let config = with_least_window(config);
        let shared = Shared::new(config, table).ok_or(ParameterError::Value {
            name: "min_window",
            message: format!("a least window of {MIN_WINDOW} packets does not fit the other parameters"),
        })?;
        Ok(Self {
            shared,
            table: table.clone(),
            burst: config.initial_window.div_ceil(ONE),
            pace_from: Duration::from_millis(2),
            bundles: false,
        })
    }

    /// What the core is told.
    pub fn config(&self) -> &Config {
        self.shared.config()
    }

    /// For a connection that goes on with a window that it has already.
    pub(crate) fn resumed(&self, window: u32, slow_start: bool) -> Shared {
        let config = *self.config();
        let initial_window = window.clamp(config.min_window, config.max_window);
        let slow_start = if slow_start { config.slow_start } else { incast_cc::window::marimo::core::START_STEADY };
        // Only fields that are within their ranges have changed.
        Shared::new(Config { initial_window, slow_start, ..config }, &self.table).unwrap_or_else(|| self.shared.clone())
    }

    /// For sharing among connections.
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}

/// QUIC's least window is larger than the core's.
fn with_least_window(config: Config) -> Config {
    let min_window = config.min_window.max(MIN_WINDOW * ONE);
    Config {
        min_window,
        initial_window: config.initial_window.max(min_window),
        max_window: config.max_window.max(min_window),
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_start_with_ten_packets_and_keep_two() {
        let settings = Settings::default();
        assert_eq!(settings.config().initial_window, 10 * ONE);
        assert_eq!(settings.config().min_window, 2 * ONE);
        assert_eq!(settings.burst, 10);
        let small = Settings::new(&[("initial_window".into(), Raw::Text("1200B".into()))]).expect("allowed");
        assert_eq!(small.config().initial_window, 2 * ONE);
    }

    #[test]
    fn parameters_are_checked_as_those_of_scenarios() {
        let unknown = Settings::new(&[("betta".into(), Raw::Float(0.5))]).expect_err("refused");
        assert!(unknown.to_string().contains("unknown parameter `betta`"));
        let wrong = Settings::new(&[("beta".into(), Raw::Float(0.3))]).expect_err("refused");
        assert!(wrong.to_string().contains("1/2"));
    }

    #[test]
    fn a_connection_resumes_with_its_window() {
        let settings = Settings::default();
        assert_eq!(settings.resumed(77 * ONE, false).config().initial_window, 77 * ONE);
        assert_eq!(settings.resumed(1, false).config().initial_window, 2 * ONE);
    }
}
