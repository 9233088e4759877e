//! What can be typed.

use clap::{Args, Parser, Subcommand, ValueEnum};
use incast_units::{Time, UnitError};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Send the flows of incast's scenarios over QUIC.
#[derive(Debug, Parser)]
#[command(name = "marimo-perf", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Both ends.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Receive flows until interrupted
    Server(Server),
    /// Send the flows whose sources are this machine, and write flows.parquet
    Client(Box<Client>),
}

/// Arguments of `server`.
#[derive(Debug, Args)]
pub struct Server {
    /// Addresses to listen on
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    pub listen: Vec<SocketAddr>,
    /// Where the certificate goes that is made at the start; clients pin it
    #[arg(long, value_name = "FILE")]
    pub certificate_out: PathBuf,
    /// End after this long instead of at an interrupt
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// How packets are sent.
    #[command(flatten)]
    pub transport: Transport,
}

/// Arguments of `client`.
#[derive(Debug, Args)]
pub struct Client {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Change a value: workload.incast.fan_in=4
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// The grid point or scheme whose traffic to send, where that is not all the same: load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// Seed of the traffic [default: the scenario's first]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The short form of the scenario
    #[arg(long)]
    pub short: bool,
    /// Address of a host of the scenario: h0=10.0.0.1
    #[arg(long = "host", value_name = "NAME=ADDRESS", value_parser = setting)]
    pub hosts: Vec<(String, String)>,
    /// Addresses of all hosts in their order, from the first of a range on: 10.0.0.1
    #[arg(long, value_name = "ADDRESS", conflicts_with = "hosts")]
    pub first_host: Option<std::net::IpAddr>,
    /// Port of the servers
    #[arg(long, value_name = "PORT", default_value_t = 4433)]
    pub port: u16,
    /// Hosts of the scenario that this machine is; the others' flows are theirs to send
    #[arg(long = "source", value_name = "NAME")]
    pub sources: Vec<String>,
    /// Be every host, servers included
    #[arg(long, conflicts_with_all = ["sources", "certificates"])]
    pub all: bool,
    /// Certificates of the servers
    #[arg(long = "certificate", value_name = "FILE")]
    pub certificates: Vec<PathBuf>,
    /// Second of the Unix era at which the scenario starts, for several clients at once [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub start_at: Option<f64>,
    /// Connections are made this long before their flows start; 0 counts the handshake as part of the flow
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration)]
    pub lead: Duration,
    /// Times between starts, and until the end, are this many times as long as in the scenario
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    pub stretch: u32,
    /// Flows that are not done this long after the last start are given up [default: the scenario's drain]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub drain: Option<Duration>,
    /// Folder of the results
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Overwrite the results that --out holds
    #[arg(long)]
    pub force: bool,
    /// How packets are sent.
    #[command(flatten)]
    pub transport: Transport,
}

/// Congestion controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Congestion {
    /// marimo.h
    Marimo,
    /// s2n-quic's own
    Cubic,
    /// s2n-quic's own
    Bbr,
}

/// What both ends can choose.
#[derive(Clone, Debug, Args)]
pub struct Transport {
    /// Congestion control
    #[arg(long, value_name = "NAME", default_value = "marimo")]
    pub congestion: Congestion,
    /// Change a parameter of Marimo, named as in scenarios: beta=0.25, table="f.table"
    #[arg(long = "parameter", value_name = "KEY=VALUE", value_parser = setting)]
    pub parameters: Vec<(String, String)>,
    /// Longest time for which acknowledgements are held back (max_ack_delay); tell both ends the same
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub ack_delay: Duration,
    /// Round trip that is assumed before one was measured
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub initial_rtt: Duration,
    /// Bytes of an IP packet
    #[arg(long, value_name = "BYTES", default_value_t = 1_500)]
    pub mtu: u16,
    /// Hand bundles of packets to the NIC (GSO): less CPU, but queues mark a bundle as one packet
    #[arg(long)]
    pub gso: bool,
    /// Smoothed round trips from which departures are paced
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = duration)]
    pub pace_from: Duration,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as beta=0.25".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let time: Time = text.parse().map_err(|error: UnitError| error.to_string())?;
    Ok(Duration::from_nanos(time.ps() / 1_000))
}
