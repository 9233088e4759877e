//! The command line.

use crate::{devices::Form, synchronised::Source};
use clap::{Args, Parser, Subcommand};
use hostctl::journal::Watch;
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

/// On-Ramp on this host: loads its BPF programs, says to which destinations packets are held, and watches them.
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
    /// Attaches On-Ramp to network devices; nothing is held before `enable`.
    Load(Load),
    /// Detaches it; what is held leaves first, and no connection is touched.
    Unload,
    /// Packets over routes are held, and both ends stamp in microseconds.
    Enable(Enable),
    /// Packets over routes are held no more, and the routes get back what they had.
    Disable(Disable),
    /// Whether a peer stamps in microseconds towards this host, by one connection to it.
    Probe(Probe),
    /// What is loaded, to which destinations packets are held, and what was counted.
    Status(Status),
    /// Paths by how long their packets are held, every second.
    Top(Top),
    /// Undoes every `enable`, in every network namespace that is seen from here.
    Rollback,
    /// Keeps routes as they were enabled, and estimates clocks; runs until it is ended.
    Watch(Following),
    /// Asks a peer that runs `watch --clock` how far both clocks are apart, and by how much that may be wrong.
    Clock(Clock),
    /// Status in the text format of Prometheus.
    Metrics(Metrics),
}

/// `onrampctl load`.
#[derive(Args)]
pub struct Load {
    /// Network devices, with fq as their queueing discipline; of the form qdisc one, with the kernel's default
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<String>,
    /// Who keeps packets
    #[arg(long, value_enum, default_value_t)]
    pub form: Form,
    /// Configuration: lines of NAME = VALUE, with the names of the simulator's parameters
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, after those of --config; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// `onrampctl enable`.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("peers").required(true).args(["peer", "stamps_only"]))]
pub struct Enable {
    /// Routes as `ip route show` names them: 10.0.0.0/8, default; begin with few
    #[arg(value_name = "ROUTE", required = true)]
    pub routes: Vec<String>,
    /// A listening port of a host behind these routes, which must stamp in microseconds by now; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub peer: Vec<SocketAddr>,
    /// Only the route's attributes, and nothing is held: of hosts that only receive, and of the first end
    #[arg(long)]
    pub stamps_only: bool,
    /// Table of the routes
    #[arg(long, default_value = "main")]
    pub table: String,
    /// What `watch` does when one of these routes comes back without its attributes
    #[arg(long, value_enum, default_value_t)]
    pub watch: Watch,
}

/// `onrampctl disable`.
#[derive(Args)]
pub struct Disable {
    /// Routes, as they were enabled
    #[arg(value_name = "ROUTE", required = true)]
    pub routes: Vec<String>,
}

/// `onrampctl probe`.
#[derive(Args)]
pub struct Probe {
    /// A listening port of the peer
    #[arg(value_name = "ADDRESS:PORT")]
    pub peer: SocketAddr,
}

/// `onrampctl status`.
#[derive(Args)]
pub struct Status {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `onrampctl top`.
#[derive(Args)]
pub struct Top {
    /// Show one table, of one second, and end
    #[arg(long)]
    pub once: bool,
    /// One JSON object per path and second instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `onrampctl watch`.
#[derive(Args)]
pub struct Following {
    /// Compares clocks with peers that do so, too: who says by how much this host's clock may be wrong (kernel, chrony, or a time
    /// such as 2us that you vouch for)
    #[arg(long, value_name = "SOURCE", requires = "key")]
    pub clock: Option<Source>,
    /// File with what all these hosts share: 16 octets and more, readable by nobody else
    #[arg(long, value_name = "FILE", requires = "clock")]
    pub key: Option<PathBuf>,
    /// UDP port of all these hosts
    #[arg(long, default_value_t = 61_319, requires = "clock")]
    pub port: u16,
}

/// `onrampctl clock`.
#[derive(Args)]
pub struct Clock {
    /// Address of the peer
    #[arg(value_name = "ADDRESS")]
    pub peer: IpAddr,
    /// Who says by how much this host's clock may be wrong: kernel, chrony, or a time such as 2us
    #[arg(long, value_name = "SOURCE")]
    pub clock: Source,
    /// File with what both hosts share
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// UDP port of the peer
    #[arg(long, default_value_t = 61_319)]
    pub port: u16,
}

/// `onrampctl metrics`.
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
