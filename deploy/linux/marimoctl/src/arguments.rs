//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
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
    pub file: PathBuf,
    /// Where to [default: wherever it is loaded]
    #[arg(long)]
    pub form: Option<Form>,
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
