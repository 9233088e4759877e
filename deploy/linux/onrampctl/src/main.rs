//! `onrampctl`: On-Ramp on this host. Loads its BPF programs, says to which destinations packets are held, and watches them.

mod arguments;
mod bpf;
mod clocks;
mod configuration;
mod devices;
mod enable;
mod exchange;
mod layout;
mod load;
mod message;
mod metrics;
mod probe;
mod rollback;
mod stamps;
mod status;
mod synchronised;
mod top;
mod watch;

use arguments::{Cli, Command};
use clap::Parser;
use hostctl::failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    hostctl::bpf::silence();
    let (name, outcome) = match Cli::parse().command {
        Command::Load(arguments) => ("load", load::load(&arguments)),
        Command::Unload => ("unload", load::unload()),
        Command::Enable(arguments) => ("enable", enable::enable(&arguments)),
        Command::Disable(arguments) => ("disable", enable::disable(&arguments)),
        Command::Probe(arguments) => ("probe", probe::probe(&arguments)),
        Command::Status(arguments) => ("status", status::status(&arguments)),
        Command::Top(arguments) => ("top", top::top(&arguments)),
        Command::Rollback => ("rollback", rollback::rollback()),
        Command::Watch(arguments) => ("watch", watch::watch(&arguments)),
        Command::Clock(arguments) => ("clock", exchange::clock(&arguments)),
        Command::Metrics(arguments) => ("metrics", metrics::metrics(&arguments)),
    };
    failure::end("onrampctl", name, outcome)
}
