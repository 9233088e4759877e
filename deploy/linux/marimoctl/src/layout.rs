//! What is in the maps of the BPF object: the other side of `deploy/linux/bpf_marimo/bpf_marimo.h`.
//!
//! All structures are plain numbers without padding. [`Plain`] turns them into bytes and back; the maps' sizes, which
//! the kernel tells, are compared with theirs before one is written.

use incast_cc::window::marimo::core::{Ack, Config, KNOTS};
use serde::Serialize;

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

/// Structures of numbers only, without padding: any bytes are one, and all of its bytes are initialised.
///
/// # Safety
/// The type must be `repr(C)`, `Copy`, free of padding, and valid for every pattern of bits.
pub unsafe trait Plain: Copy {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the trait promises that all bytes are initialised; the slice lives as long as the borrow.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
    /// The structure that these bytes are, if there are as many as it has.
    fn read(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the length was compared, and the trait promises that every pattern is valid.
        (bytes.len() == size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

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

/// `struct bpf_marimo_counters`, summed over the CPUs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the header describes them")]
pub struct Counters {
    pub opened: u64,
    pub closed: u64,
    pub fallbacks: u64,
    pub acks: u64,
    pub delivered: u64,
    pub marked: u64,
    pub epochs: u64,
    pub decreases: u64,
    pub losses: u64,
    pub timeouts: u64,
    pub undone: u64,
    pub arrivals: u64,
    pub ce_changes: u64,
    pub echo_acks: u64,
    pub accecn: u64,
    pub inflating: u64,
    pub restarts: u64,
    pub untraced: u64,
    pub starts: u64,
    pub fallbacks_syn: u64,
    pub fallbacks_echo: u64,
    pub syns: u64,
    pub fallbacks_ect: u64,
}

/// How many numbers [`Counters`] has.
pub const COUNTERS: usize = size_of::<Counters>() / size_of::<u64>();

// SAFETY: numbers of one size.
unsafe impl Plain for Counters {}

impl Counters {
    /// Sum of what each CPU has counted; `None` if the sizes differ.
    pub fn sum(cpus: &[Vec<u8>]) -> Option<Self> {
        let mut sum = [0_u64; COUNTERS];
        for cpu in cpus {
            if cpu.len() != size_of::<Self>() {
                return None;
            }
            for (total, count) in sum.iter_mut().zip(cpu.chunks_exact(8)) {
                let count = u64::from_ne_bytes(count.try_into().expect("chunks of eight"));
                *total = total.wrapping_add(count);
            }
        }
        let bytes: Vec<u8> = sum.iter().flat_map(|count| count.to_ne_bytes()).collect();
        Self::read(&bytes)
    }
    /// Connections that use Marimo now.
    pub fn open(&self) -> u64 {
        self.opened.saturating_sub(self.closed)
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
    fn counters_are_summed_over_cpus() {
        let one = Counters { opened: 5, closed: 2, untraced: 1, ..Counters::default() };
        let sum = Counters::sum(&[one.bytes().to_vec(), one.bytes().to_vec()]).expect("as long");
        assert_eq!((sum.opened, sum.open(), sum.untraced), (10, 6, 2));
        assert!(Counters::sum(&[vec![0; 3]]).is_none());
    }
}
