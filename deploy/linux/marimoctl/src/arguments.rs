//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use hostctl::journal::Watch;
use std::path::PathBuf;

/// Marimo on this host: loads its BPF form, watches and tunes that and the kernel module.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Registers the congestion control bpf_marimo.
    Load(Load),
    /// Takes it away; connections that use it keep their copy until they close.
    Unload(Unload),
    /// What is loaded, with which configuration and table, and what it has counted.
    Status(Status),
    /// Connections by their newest epoch, as the epochs come.
    Top(Top),
    /// Replaces f, while connections are open.
    SetTable(SetTable),
    /// New connections over routes, or all of the host, use Marimo.
    Enable(Enable),
    /// New connections use Marimo no more: undoes every `enable`.
    Rollback(Rollback),
    /// Keeps routes as `enable` left them, when others make them anew; runs until it is ended.
    Watch,
    /// Status in the text format of Prometheus.
    Metrics(Metrics),
}

/// `marimoctl load`.
#[derive(Args)]
pub struct Load {
    /// f, as `incast calibrate marimo` writes it [default: the calibrated one]
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Configuration: lines of NAME = VALUE, with the names of the simulator's parameters
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, after those of --config; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Congestion control of connections whose peer does not do ECN
    #[arg(long, value_name = "NAME", default_value = "reno")]
    pub fallback: String,
    /// Record every acknowledgement, not only epochs
    #[arg(long)]
    pub trace_acks: bool,
    /// Also into a kernel that is newer, or has other operations, than those that this was tried on
    #[arg(long)]
    pub any_kernel: bool,
}

/// `marimoctl unload`.
#[derive(Args)]
pub struct Unload {
    /// Wait so long until the last connection that uses it has closed
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
}

/// `marimoctl status`.
#[derive(Args)]
pub struct Status {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which form of Marimo.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The BPF object.
    Bpf,
    /// The kernel module.
    Module,
}

/// `marimoctl top`.
#[derive(Args)]
pub struct Top {
    /// Show one table after --seconds and end
    #[arg(long)]
    pub once: bool,
    /// One JSON object per record instead of a table
    #[arg(long)]
    pub json: bool,
    /// End after so long [default: never; with --once 1]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Also what was recorded before, as far as the trace still has it; not of the module
    #[arg(long)]
    pub recorded: bool,
    /// Which one to watch [default: the one that is loaded, the BPF object if both are]
    #[arg(long)]
    pub form: Option<Form>,
}

/// `marimoctl set-table`.
#[derive(Args)]
pub struct SetTable {
    /// f, as `incast calibrate marimo` writes it
    #[arg(required_unless_present = "previous")]
    pub file: Option<PathBuf>,
    /// The table that the last set-table replaced
    #[arg(long, conflicts_with = "file")]
    pub previous: bool,
    /// Where to [default: wherever it is loaded]
    #[arg(long)]
    pub form: Option<Form>,
}

/// `marimoctl enable`.
#[derive(Args)]
pub struct Enable {
    /// Routes as `ip route show` names them: 10.0.0.0/8, default; begin with few
    #[arg(value_name = "ROUTE", required_unless_present = "default")]
    pub routes: Vec<String>,
    /// Also connections whose route names no congestion control
    #[arg(long)]
    pub default: bool,
    /// Table of the routes
    #[arg(long, default_value = "main")]
    pub table: String,
    /// Which form [default: bpf_marimo if it is loaded, else marimo, the module's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What `watch` does when one of these routes comes back without it
    #[arg(long, value_enum, default_value_t)]
    pub watch: Watch,
}

/// `marimoctl rollback`.
#[derive(Args)]
pub struct Rollback {
    /// Default of new connections, if it is Marimo now [default: cubic, or reno where that is not to be had]
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,
}

/// `marimoctl metrics`.
#[derive(Args)]
pub struct Metrics {
    /// Write to this file, whole or not at all, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
