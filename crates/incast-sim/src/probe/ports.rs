//! Egress ports, sampled.

use incast_units::Time;

/// State of one egress queue as of `time`: every event before that instant has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSample {
    /// When.
    pub time: Time,
    /// Node.
    pub node: u32,
    /// Its port.
    pub port: u16,
    /// Priority.
    pub priority: u8,
    /// Bytes in the queue, the packet in service included.
    pub queue_bytes: u64,
    /// Bytes whose transmission has started since the run began.
    pub tx_bytes: u64,
    /// Time that at least one priority of the port spent paused since the run began.
    pub paused: Time,
    /// Packets of this priority marked since the run began.
    pub marks: u64,
    /// Packets of this priority dropped since the run began.
    pub drops: u64,
    /// Packets of this priority trimmed since the run began.
    pub trims: u64,
}

/// The ports of one node that are sampled.
#[derive(Debug)]
pub struct PortProbe {
    /// Period.
    pub every: Time,
    /// When the next sample is due.
    pub next: Time,
    /// The ports, ascending.
    pub ports: Vec<u16>,
    /// Samples so far.
    pub samples: Vec<PortSample>,
}

impl PortProbe {
    /// Samples `ports` every so often, from the start on.
    pub fn new(every: Time, ports: Vec<u16>) -> Self {
        Self { every, next: Time::ZERO, ports, samples: Vec::new() }
    }
}
