//! `marimoctl`: Marimo on this host. Loads its BPF form, and watches and tunes that and the kernel module.

mod arguments;
mod bpf;
mod configuration;
mod enable;
mod epoch;
mod layout;
mod load;
mod metrics;
mod module;
mod rollback;
mod routes;
mod set_table;
mod status;
mod table;
mod top;
mod tracefs;
mod unload;
mod view;

use arguments::{Cli, Command};
use clap::Parser;
use hostctl::{failure, watch};
use std::process::ExitCode;

fn main() -> ExitCode {
    hostctl::bpf::silence();
    let (name, outcome) = match Cli::parse().command {
        Command::Load(arguments) => ("load", load::load(&arguments)),
        Command::Unload(arguments) => ("unload", unload::unload(&arguments)),
        Command::Status(arguments) => ("status", status::status(&arguments)),
        Command::Top(arguments) => ("top", top::top(&arguments)),
        Command::SetTable(arguments) => ("set-table", set_table::set_table(&arguments)),
        Command::Enable(arguments) => ("enable", enable::enable(&arguments)),
        Command::Rollback(arguments) => ("rollback", rollback::rollback(&arguments)),
        Command::Watch => ("watch", watch::watch::<routes::Marimo>()),
        Command::Metrics(arguments) => ("metrics", metrics::metrics(&arguments)),
    };
    failure::end("marimoctl", name, outcome)
}
