//! The command line.

use crate::{
    plan::{self, Host},
    queue::Watch,
    sys::Settings,
};
use clap::{Args, Parser, Subcommand, value_parser};
use std::{net::Ipv4Addr, path::PathBuf};

/// The longest time that may be asked for.
const MOST_SECONDS: u64 = 1_000_000;
/// Time for the connections of `churn` to end after the last one was opened. A sender that has lost enough packets in a
/// row waits up to 120 s before it retransmits (TCP_RTO_MAX).
const GRACE_SECONDS: u64 = 300;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// TCP traffic between the network namespaces of this kernel.
///
/// A namespace is a name below /run/netns, or - for that of this program.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0: no failure; 1: a flow or the machine failed; 2: bad input; 4: no failure, but flows \
                  that were not done at the deadline."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Plays the flows of a plan, compares every received byte with what was sent and writes one row per flow
    Play(Play),
    /// Keeps a number of short connections open for some time
    Churn(Churn),
}

/// `rig-traffic play`.
#[derive(Args)]
pub struct Play {
    /// The plan, as CSV
    #[arg(long, value_name = "PLAN.csv")]
    pub plan: PathBuf,
    /// File of the results
    #[arg(long, value_name = "FLOWS.csv")]
    pub out: PathBuf,
    /// Connections.
    #[command(flatten)]
    pub connection: Connection,
    /// Congestion control of the receiving ends [default: that of the senders]
    #[arg(long, value_name = "NAME", value_parser = plan::congestion)]
    pub receiver_congestion: Option<String>,
    /// A flow without ECN is a failure
    #[arg(long)]
    pub ecn_check: bool,
    /// Flows that have not ended by then have failed
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..=MOST_SECONDS))]
    pub deadline: u64,
    /// The device whose root queueing discipline is sampled
    #[arg(long, value_name = "NS:DEVICE", value_parser = queue, allow_hyphen_values = true, requires = "samples")]
    pub sample_queue: Option<Queue>,
    /// Time between two samples
    #[arg(long, value_name = "US", value_parser = value_parser!(u64).range(1..=1_000_000_000), requires = "sample_queue")]
    pub sample_interval_us: Option<u64>,
    /// File of the samples
    #[arg(long, value_name = "QUEUE.csv", requires = "sample_interval_us")]
    pub samples: Option<PathBuf>,
}

impl Play {
    /// How connections are set up.
    pub fn settings(&self) -> Settings {
        Settings { receiver: self.receiver_congestion.clone(), ..self.connection.settings() }
    }

    /// The deadline in nanoseconds.
    pub fn deadline_ns(&self) -> u64 {
        self.deadline * NS_PER_SECOND
    }

    /// The queue that is sampled, and where its samples go.
    pub fn watch(&self) -> Option<(Watch, &PathBuf)> {
        let Queue { namespace, device } = self.sample_queue.clone()?;
        let interval_ns = self.sample_interval_us? * 1000;
        Some((Watch { namespace, device, interval_ns }, self.samples.as_ref()?))
    }
}

/// `rig-traffic churn`.
#[derive(Args)]
pub struct Churn {
    /// Number of connections that are open at a time
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=20_000))]
    pub connections: u64,
    /// For how long new connections are opened
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=MOST_SECONDS))]
    pub seconds: u64,
    /// Connections.
    #[command(flatten)]
    pub connection: Connection,
    /// Namespace of the sender
    #[arg(long, value_name = "NS", value_parser = plan::namespace)]
    pub source_namespace: Namespace,
    /// IPv4 address of the sender
    #[arg(long, value_name = "ADDRESS")]
    pub source: Ipv4Addr,
    /// Namespace of the receiver
    #[arg(long, value_name = "NS", value_parser = plan::namespace)]
    pub destination_namespace: Namespace,
    /// IPv4 address of the receiver
    #[arg(long, value_name = "ADDRESS")]
    pub destination: Ipv4Addr,
    /// Most bytes of a connection
    #[arg(long, value_name = "MOST", default_value_t = 64 << 10, value_parser = value_parser!(u64).range(1..=1 << 40))]
    pub bytes: u64,
}

impl Churn {
    /// What to do.
    pub fn churn(&self) -> crate::churn::Churn {
        crate::churn::Churn {
            connections: self.connections,
            duration_ns: self.seconds * NS_PER_SECOND,
            most_bytes: self.bytes,
            grace_ns: GRACE_SECONDS * NS_PER_SECOND,
            source: Host { namespace: self.source_namespace.clone(), address: self.source },
            destination: Host { namespace: self.destination_namespace.clone(), address: self.destination },
        }
    }
}

/// What both commands need to know of connections.
#[derive(Args)]
pub struct Connection {
    /// Congestion control
    #[arg(long, value_name = "NAME", value_parser = plan::congestion)]
    pub congestion: String,
    /// SO_SNDBUF and SO_RCVBUF [default: tuned by the kernel]
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(i32).range(4096..=1 << 29))]
    pub socket_buffer: Option<i32>,
}

impl Connection {
    /// How connections are set up.
    pub fn settings(&self) -> Settings {
        Settings { congestion: self.congestion.clone(), receiver: None, socket_buffer: self.socket_buffer }
    }
}

/// A name below /run/netns; `None` is the namespace of this program. An alias, since an optional argument would be
/// another thing to the parser.
type Namespace = Option<String>;

/// A device in a namespace.
#[derive(Clone, Debug)]
pub struct Queue {
    namespace: Namespace,
    device: String,
}

fn queue(text: &str) -> Result<Queue, String> {
    let (namespace, device) = text.split_once(':').ok_or("a queue is NS:DEVICE")?;
    Ok(Queue { namespace: plan::namespace(namespace)?, device: device.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
