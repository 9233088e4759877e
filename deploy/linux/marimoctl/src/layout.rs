//! What is in the maps of the BPF object: the other side of `deploy/linux/bpf_marimo/bpf_marimo.h`.
//!
//! All structures are plain numbers without padding. [`Plain`] turns them into bytes and back; the maps' sizes, which
//! the kernel tells, are compared with theirs before one is written.

use hostctl::plain::Plain;
use incast_cc::window::marimo::core::{Ack, Config, KNOTS};
use serde::{Serialize, Serializer};

/// Name under which the kernel knows the BPF form.
pub const NAME: &str = "bpf_marimo";

/// Kinds of [`Record`].
pub const EPOCH: u32 = 1;
/// See [`EPOCH`].
pub const LOSS: u32 = 2;
/// See [`EPOCH`].
pub const TIMEOUT: u32 = 3;
/// See [`EPOCH`].
pub const FALLBACK: u32 = 4;
/// See [`EPOCH`].
pub const DECISION: u32 = 5;
/// See [`EPOCH`].
pub const OPEN: u32 = 6;

/// `struct bpf_marimo_settings`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The algorithm's configuration.
    pub config: Config,
    /// Whether every decision is recorded.
    pub trace_acks: u32,
    /// Congestion control of connections without ECN, padded with zeroes.
    pub fallback: [u8; 16],
}

// SAFETY: 14 and 1 numbers of 32 bits, 4 and 16 of 8: nothing to pad.
unsafe impl Plain for Settings {}

impl Settings {
    /// The fallback's name.
    pub fn fallback(&self) -> String {
        let end = self.fallback.iter().position(|&byte| byte == 0).unwrap_or(self.fallback.len());
        String::from_utf8_lossy(&self.fallback[..end]).into_owned()
    }
}

/// `struct marimo_table`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Knots(pub [u32; KNOTS]);

// SAFETY: numbers of one size.
unsafe impl Plain for Knots {}

/// Names of the numbers of `struct bpf_marimo_counters`, in its order. Since layout 1 they are the same: what later layouts count
/// besides is in maps of its own, so that an earlier marimoctl reads what it knows.
pub const COUNTERS: [&str; 22] = [
    "opened",
    "closed",
    "fallbacks",
    "acks",
    "delivered",
    "marked",
    "epochs",
    "decreases",
    "losses",
    "timeouts",
    "undone",
    "arrivals",
    "ce_changes",
    "echo_acks",
    "accecn",
    "inflating",
    "restarts",
    "untraced",
    "starts",
    "fallbacks_syn",
    "fallbacks_echo",
    "syns",
];
/// Those of `struct bpf_marimo_counters_2`.
pub const COUNTERS_2: [&str; 1] = ["fallbacks_ect"];

/// What has been counted, by name: as many as the version that is loaded has, and this one knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(Vec<(&'static str, u64)>);

impl Counters {
    /// Sum of what each CPU has counted under these names.
    pub fn sum(names: &[&'static str], cpus: &[Vec<u8>]) -> Self {
        let one = |at: usize, cpu: &Vec<u8>| Some(u64::from_ne_bytes(cpu.get(8 * at..8 * at + 8)?.try_into().ok()?));
        let sum = |(at, name): (usize, &&'static str)| {
            let counts = cpus.iter().map(|cpu| one(at, cpu)).collect::<Option<Vec<_>>>()?;
            Some((*name, counts.into_iter().fold(0, u64::wrapping_add)))
        };
        Self(names.iter().enumerate().map_while(sum).collect())
    }
    /// And others.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
    /// In the order of the structure.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }
    /// One of them; 0 if what is loaded does not count it.
    pub fn get(&self, name: &str) -> u64 {
        self.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }
    /// Connections that use Marimo now.
    pub fn open(&self) -> u64 {
        self.get("opened").saturating_sub(self.get("closed"))
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// `struct bpf_marimo_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Record {
    pub time: u64,
    pub pacing_rate: u64,
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u32,
    pub destination_port: u32,
    pub family: u32,
    pub kind: u32,
    pub netns: u32,
    pub epochs: u32,
    pub share: u32,
    pub rho: u32,
    pub window: u32,
    pub threshold: u32,
    pub flags: u32,
    pub cwnd: u32,
    pub srtt: u32,
    pub in_flight: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub retransmits: u32,
    pub events: u32,
    pub ack: Ack,
}

// SAFETY: the numbers of 64 bits come first, then an even count of those of 32: nothing to pad.
unsafe impl Plain for Record {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_no_padding_and_survive_their_bytes() {
        assert_eq!(size_of::<Settings>(), 14 * 4 + 4 + 4 + 16);
        assert_eq!(size_of::<Record>(), 2 * 8 + 2 * 16 + 18 * 4 + 6 * 4);
        let record = Record { time: 7, retransmits: 3, ack: Ack { limited: 1, ..Ack::default() }, ..Record::default() };
        let read = Record::read(record.bytes()).expect("as long");
        assert_eq!((read.time, read.retransmits, read.ack.limited), (7, 3, 1));
        assert!(Record::read(&record.bytes()[1..]).is_none());
    }

    #[test]
    fn counters_are_those_of_the_header() {
        let header = include_str!("../../bpf_marimo/bpf_marimo.h");
        for (structure, known) in [("bpf_marimo_counters", &COUNTERS[..]), ("bpf_marimo_counters_2", &COUNTERS_2)] {
            let body = header.split(&format!("struct {structure} {{")).nth(1).and_then(|rest| rest.split('}').next());
            let names = body.expect("the structure").split("marimo_u64 ").skip(1);
            let names: Vec<_> = names.map(|name| name.trim().trim_end_matches(';')).collect();
            assert_eq!(names, known);
        }
    }

    #[test]
    fn counters_are_summed_over_cpus() {
        let cpu = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
        let mut one = vec![0; COUNTERS.len()];
        (one[0], one[1], one[17]) = (5, 2, 1);
        let sum = Counters::sum(&COUNTERS, &[cpu(&one), cpu(&one)]);
        assert_eq!((sum.get("opened"), sum.open(), sum.get("untraced")), (10, 6, 2));
        // An earlier version has fewer, a later one more.
        let earlier = Counters::sum(&COUNTERS, &[cpu(&one[..20]), cpu(&one[..20])]);
        assert_eq!((earlier.open(), earlier.iter().count(), earlier.get("syns")), (6, 20, 0));
        one.push(7);
        assert_eq!(Counters::sum(&COUNTERS, &[cpu(&one)]).iter().count(), COUNTERS.len());
        assert_eq!(Counters::sum(&COUNTERS, &[]).open(), 0);
        let both = sum.and(Counters::sum(&COUNTERS_2, &[cpu(&[3])]));
        assert_eq!((both.open(), both.get("fallbacks_ect")), (6, 3));
    }
}
