//! Sends the flows of a scenario over QUIC, and writes what became of them as the simulator does.
//!
//! - [`arguments`]: what can be typed.
//! - [`traffic`]: a scenario's flows, and which addresses its hosts have.
//! - [`transport`]: endpoints of s2n-quic, with the settings that matter in a datacenter.
//! - [`transfer`]: what one flow is on the wire: a header, numbers that both sides can compute, a receipt.
//! - [`server`], [`client`]: both ends.
//! - [`results`]: the files.

mod arguments;
mod client;
mod results;
mod server;
mod traffic;
mod transfer;
mod transport;

use arguments::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

/// Why nothing, or not everything, was done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The input is at fault: exit code 2.
    #[error("{0}")]
    Input(String),
    /// Something else is: exit code 1.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Something outside failed while doing `what`.
    fn other(what: impl std::fmt::Display) -> impl FnOnce(&dyn std::fmt::Display) -> Self {
        move |error| Self::Other(format!("{what}: {error}"))
    }
}

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Server(arguments) => server::run(&arguments),
        Command::Client(arguments) => client::run(&arguments),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(if matches!(failure, Failure::Input(_)) { 2 } else { 1 })
        }
    }
}
