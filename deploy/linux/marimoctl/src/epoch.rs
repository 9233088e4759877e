//! One entry of either trace: the BPF object's ring or the module's tracepoints.

use crate::layout::{self, Record};
use incast_cc::window::marimo::core::ONE;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An epoch that ended, or what else a trace tells of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// `epoch`, `loss`, `timeout`, `fallback`, `decision` or `open`.
    pub kind: &'static str,
    /// CLOCK_MONOTONIC, seconds.
    pub time: f64,
    /// Which connection.
    pub connection: String,
    /// Epochs so far.
    pub epochs: u32,
    /// Marked share of the last one.
    pub share: f64,
    /// Estimated load.
    pub rho: f64,
    /// The algorithm's window, packets.
    pub window: f64,
    /// Where slow start ends, packets; none yet if it has not ended once.
    pub threshold: Option<f64>,
    /// The window that TCP was given, packets.
    pub cwnd: u32,
    /// What only the BPF object's trace has.
    #[serde(flatten)]
    pub more: Option<More>,
}

/// See [`Entry::more`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as in the header")]
pub struct More {
    pub netns: u32,
    pub srtt_us: u32,
    pub in_flight: u32,
    pub pacing_rate: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub retransmits: u32,
    pub flags: u32,
    pub events: u32,
    pub packets: u32,
    pub marked: u32,
    pub acked: u32,
    pub position: u32,
    pub next: u32,
    pub limited: u32,
}

/// Q16 as a number.
fn q16(number: u32) -> f64 {
    f64::from(number) / f64::from(ONE)
}

/// A threshold, unless it stands for none.
pub fn threshold(number: u32) -> Option<f64> {
    (number != u32::MAX).then(|| q16(number))
}

impl Entry {
    /// An entry of the ring.
    pub fn of(record: &Record) -> Self {
        let kind = match record.kind {
            layout::EPOCH => "epoch",
            layout::LOSS => "loss",
            layout::TIMEOUT => "timeout",
            layout::FALLBACK => "fallback",
            layout::DECISION => "decision",
            layout::OPEN => "open",
            _ => "unknown",
        };
        let address = |bytes: &[u8; 16], port: u32| {
            let port = port as u16;
            if record.family == libc::AF_INET as u32 {
                let [a, b, c, d, ..] = *bytes;
                SocketAddr::from((Ipv4Addr::new(a, b, c, d), port))
            } else {
                SocketAddr::from((Ipv6Addr::from(*bytes).to_canonical(), port))
            }
        };
        Self {
            kind,
            time: record.time as f64 / 1e9,
            connection: format!(
                "{} > {}",
                address(&record.source, record.source_port),
                address(&record.destination, record.destination_port)
            ),
            epochs: record.epochs,
            share: q16(record.share),
            rho: q16(record.rho),
            window: q16(record.window),
            threshold: threshold(record.threshold),
            cwnd: record.cwnd,
            more: Some(More {
                netns: record.netns,
                srtt_us: record.srtt,
                in_flight: record.in_flight,
                pacing_rate: record.pacing_rate,
                delivered: record.delivered,
                delivered_ce: record.delivered_ce,
                retransmits: record.retransmits,
                flags: record.flags,
                events: record.events,
                packets: record.ack.packets,
                marked: record.ack.marked,
                acked: record.ack.acked,
                position: record.ack.position,
                next: record.ack.next,
                limited: record.ack.limited,
            }),
        }
    }

    /// A line of the module's tracepoint `tcp_marimo:epoch`, as trace_pipe prints it; `None` for any other line.
    pub fn of_tracepoint(line: &str) -> Option<Self> {
        let (before, fields) = line.split_once(" epoch: ")?;
        let time = before.trim_end().rsplit(' ').next()?.trim_end_matches(':').parse().ok()?;
        let field = |name: &str| fields.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| field(name)?.parse::<u32>().ok();
        let end = |address: &str, port: &str| {
            let port = field(port)?.parse::<u16>().ok()?;
            let address = field(address)?.parse::<IpAddr>().ok()?.to_canonical();
            Some(SocketAddr::new(address, port).to_string())
        };
        Some(Self {
            kind: "epoch",
            time,
            connection: format!("{} > {}", end("saddr", "sport")?, end("daddr", "dport")?),
            epochs: number("epochs")?,
            share: q16(number("share")?),
            rho: q16(number("rho")?),
            window: q16(number("window")?),
            threshold: threshold(number("threshold")?),
            cwnd: number("cwnd")?,
            more: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_an_entry() {
        let mut record = Record {
            time: 1_500_000_000,
            kind: layout::EPOCH,
            family: 2,
            source_port: 40_000,
            destination_port: 80,
            rho: ONE,
            share: ONE / 2,
            window: 5 * ONE / 2,
            threshold: u32::MAX,
            ..Record::default()
        };
        record.source[..4].copy_from_slice(&[10, 0, 0, 1]);
        record.destination[..4].copy_from_slice(&[10, 0, 0, 2]);
        let entry = Entry::of(&record);
        assert_eq!(entry.connection, "10.0.0.1:40000 > 10.0.0.2:80");
        assert_eq!((entry.kind, entry.time, entry.share, entry.rho, entry.window), ("epoch", 1.5, 0.5, 1.0, 2.5));
        assert_eq!(entry.threshold, None);
        record.family = 10;
        assert!(Entry::of(&record).connection.starts_with("[a00:1::]:40000"), "{}", Entry::of(&record).connection);
    }

    #[test]
    fn a_tracepoint_line_becomes_an_entry() {
        let line = "          <idle>-0       [001] ..s2.    12.345678: epoch: skaddr=00000000abcd \
                    saddr=10.0.0.1 sport=5001 daddr=10.0.0.2 dport=40000 epochs=7 share=32768 rho=65536 window=655360 threshold=4294967295 cwnd=10 latched=0";
        let entry = Entry::of_tracepoint(line).expect("an epoch");
        assert_eq!(entry.connection, "10.0.0.1:5001 > 10.0.0.2:40000");
        let six = line.replace("=10.0.0.1 ", "=fd00::1 ").replace("=10.0.0.2 ", "=::ffff:10.0.0.2 ");
        let entry = Entry::of_tracepoint(&six).expect("an epoch");
        assert_eq!(entry.connection, "[fd00::1]:5001 > 10.0.0.2:40000");
        let entry = Entry::of_tracepoint(line).expect("an epoch");
        assert_eq!((entry.time, entry.epochs, entry.share, entry.window), (12.345_678, 7, 0.5, 10.0));
        assert_eq!(Entry::of_tracepoint("CPU:1 [LOST 3 EVENTS]"), None);
        assert_eq!(Entry::of_tracepoint(&line.replace("rho=65536 ", "")), None);
    }
}
