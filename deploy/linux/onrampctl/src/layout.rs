//! Maps of the BPF programs as structures: the other side of `../onramp/bpf_onramp.h` and of the headers below it.

use hostctl::plain::Plain;
use serde::{Serialize, Serializer};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// `struct bpf_onramp_address`: of IPv6, or of IPv4 as that.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub [u8; 16]);

// SAFETY: octets.
unsafe impl Plain for Address {}

impl Address {
    /// An address, as the programs know it.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().octets()),
            IpAddr::V6(address) => Self(address.octets()),
        }
    }
    /// And as people do.
    pub fn ip(&self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }
}

/// `struct bpf_onramp_prefix`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Bits of an address of IPv6.
    pub length: u32,
    /// The first one.
    pub address: Address,
}

// SAFETY: a number of 32 bits and octets, a multiple of four: nothing to pad.
unsafe impl Plain for Prefix {}

impl Prefix {
    /// Of an address and as many of its bits.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let before = if address.is_ipv4() { 96 } else { 0 };
        let length = before + u32::from(length);
        Self { length, address: Address(Self::masked(length, Address::of(address).0)) }
    }
    /// Whether an address is one of these.
    pub fn covers(&self, address: &Address) -> bool {
        Self::masked(self.length, address.0) == self.address.0
    }
    /// An address of which only so many bits are kept.
    fn masked(length: u32, mut octets: [u8; 16]) -> [u8; 16] {
        for (place, octet) in octets.iter_mut().enumerate() {
            let kept = length.saturating_sub(8 * place as u32).min(8);
            *octet &= !(0xff_u16 >> kept) as u8;
        }
        octets
    }
    /// In words.
    pub fn describe(&self) -> String {
        match self.address.ip() {
            IpAddr::V4(address) => format!("{address}/{}", self.length.saturating_sub(96)),
            IpAddr::V6(address) => format!("{address}/{}", self.length),
        }
    }
}

/// `struct onramp_config` and `struct onramp_tcp_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the headers have them")]
pub struct Config {
    pub rule_threshold: u32,
    pub max_hold: u32,
    pub quantum: u32,
    pub small_quantum: u32,
    pub beta: u32,
    pub spread: u32,
    pub reference: u32,
    pub gain: u32,
    pub step: u32,
    pub variant: u8,
    pub release: u8,
    pub reserved: [u8; 2],
    pub threshold: u32,
    pub floor: u32,
    pub drift: u32,
    pub drain: u32,
}

// SAFETY: numbers of 32 bits and four octets: nothing to pad.
unsafe impl Plain for Config {}

/// `struct path` and `struct onramp_path`, as far as they are shown.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the headers have them")]
pub struct Path {
    pub lock: [u32; 2],
    pub pause_until: u64,
    pub rule: [u64; 15],
    pub since: u64,
    pub least: i64,
    pub estimated: u64,
    pub anchor: u32,
    pub rate: i32,
    pub drift: u32,
    pub reserved: u32,
    pub known: Known,
    pub window: Window,
    pub opened: u64,
    pub last: u64,
    pub reported: u64,
    pub stand_down: u64,
    pub packets: u64,
    pub held: u64,
    pub held_ns: u64,
    pub reports: u64,
    pub sent: u64,
    pub delay: u32,
    pub round_trip: u32,
    pub threshold: u32,
    pub reserved_2: u32,
}

// SAFETY: numbers, with reserved ones where the compiler of C leaves a gap, which the kernel zeroes.
unsafe impl Plain for Path {}

/// `struct onramp_known`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header has them")]
pub struct Known {
    pub told: u64,
    pub ahead: i64,
    pub used: u64,
    pub refused: u64,
    pub turned: u64,
    pub nearest: [i64; 2],
    pub trips: [u32; 2],
    pub error: u32,
    pub reserved: u32,
}

// SAFETY: numbers, with a reserved one where the compiler of C leaves a gap, which the kernel zeroes.
unsafe impl Plain for Known {}

/// `struct onramp_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header has them")]
pub struct Window {
    pub upper_at: u64,
    pub upper: i64,
    pub lower_at: u64,
    pub lower: i64,
}

// SAFETY: numbers of one size.
unsafe impl Plain for Window {}

/// `struct bpf_onramp_bounds`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header has them")]
pub struct Bounds {
    pub address: Address,
    pub window: Window,
}

// SAFETY: sixteen octets before numbers of 64 bits: nothing to pad.
unsafe impl Plain for Bounds {}

/// `struct bpf_onramp_rate`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header has them")]
pub struct Rate {
    pub address: Address,
    pub rate: i32,
    pub drift: u32,
}

// SAFETY: sixteen octets before two numbers of 32 bits: nothing to pad.
unsafe impl Plain for Rate {}

/// `struct bpf_onramp_difference`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header has them")]
pub struct Difference {
    pub address: Address,
    pub ahead: i64,
    pub error: u32,
    pub reserved: u32,
}

// SAFETY: sixteen octets, a number of 64 bits, two of 32: nothing to pad.
unsafe impl Plain for Difference {}

/// `ONRAMP_KNOWN`, ns.
const KNOWN: u64 = 5_000_000_000;

impl Path {
    fn was_used(&self) -> bool {
        self.known.used > 0 && self.reported <= self.known.used + KNOWN
    }

    /// Whether delays are counted by clocks that are known.
    pub fn is_known(&self) -> bool {
        self.was_used() && self.why_relative().is_none()
    }

    /// Why they are not, where hosts have compared their clocks.
    pub fn why_relative(&self) -> Option<Relative> {
        match self.known {
            Known { refused, .. } if refused > self.reported => Some(Relative::Contradicted),
            Known { told: 0, .. } => None,
            Known { told, .. } if self.reported > told + KNOWN => Some(Relative::Silent),
            Known { error: u32::MAX, .. } => Some(Relative::Unknown),
            Known { error, .. } if error > self.threshold / 4 => Some(Relative::Coarse),
            Known { told, .. } if self.reported > told && !self.was_used() => Some(Relative::Foreign),
            _ => None,
        }
    }
}

/// Why delays of a path are counted from the least one, though hosts have compared their clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relative {
    /// A packet would have arrived before it was sent.
    Contradicted,
    /// The peer does not answer any more.
    Silent,
    /// The peer does not know by how much its clock may be wrong.
    Unknown,
    /// Both clocks together may be wrong by more than a quarter of the threshold.
    Coarse,
    /// Its connections have stamps of their own, or none has acknowledged anything.
    Foreign,
}

impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contradicted => "stamps contradict what the hosts say of their clocks",
            Self::Silent => "the peer says nothing of its clock any more",
            Self::Unknown => "the peer does not know by how much its clock may be wrong",
            Self::Coarse => "the clocks may be wrong by more than a quarter of the threshold (onrampctl top --json)",
            Self::Foreign => "its connections have stamps of their own (net.ipv4.tcp_timestamps = 2 at the peer)",
        })
    }
}

/// Names of the numbers of `struct bpf_onramp_counters`, in its order.
pub const COUNTERS: [&str; 11] = [
    "packets",
    "held",
    "reports",
    "ignored",
    "zeroed",
    "not_kept",
    "milliseconds",
    "without_stamps",
    "forwarded",
    "stamped",
    "full",
];

/// What has been counted, in the order of [`COUNTERS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters([u64; COUNTERS.len()]);

impl Counters {
    /// Sum of what each CPU has counted.
    pub fn sum(cpus: &[Vec<u8>]) -> Self {
        let mut sum = Self::default();
        for cpu in cpus {
            for (total, octets) in sum.0.iter_mut().zip(cpu.chunks_exact(8)) {
                let octets: [u8; 8] = octets.try_into().unwrap_or_default();
                *total = total.wrapping_add(u64::from_ne_bytes(octets));
            }
        }
        sum
    }
    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COUNTERS.into_iter().zip(self.0)
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_header() {
        let header = include_str!("../../onramp/bpf_onramp.h");
        let body = header.split("struct bpf_onramp_counters {").nth(1).and_then(|rest| rest.split('}').next());
        let names = body.expect("the structure").split("onramp_u64 ").skip(1);
        let names: Vec<_> = names.map(|name| name.trim().trim_end_matches(';')).collect();
        assert_eq!(names, COUNTERS);
        let cpu: Vec<u8> = (1..=11_u64).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(Counters::sum(&[cpu.clone(), cpu]).iter().last(), Some(("full", 22)));
    }

    #[test]
    fn why_clocks_are_not_used_is_told() {
        let octets = vec![0; size_of::<Path>()];
        let of = |reported: u64, told: u64, used: u64, refused: u64, error: u32| {
            let mut path = Path::read(&octets).expect("as many octets");
            (path.reported, path.threshold) = (reported, 100_000);
            path.known = Known { told, used, refused, error, ..path.known };
            (path.is_known(), path.why_relative())
        };
        let second = 1_000_000_000;
        assert_eq!(of(9 * second, 0, 0, 0, 0), (false, None));
        assert_eq!(of(9 * second, 8 * second, 9 * second, 0, 25_000), (true, None));
        // Idle since: told after the last acknowledgement.
        assert_eq!(of(9 * second, 10 * second, 0, 0, 25_000), (false, None));
        for (path, why) in [
            (of(9 * second, 10 * second, 9 * second, 0, 25_001), Relative::Coarse),
            (of(9 * second, 8 * second, 9 * second, 0, u32::MAX), Relative::Unknown),
            (of(9 * second, 3 * second, 3 * second, 0, 1), Relative::Silent),
            (of(9 * second, 0, 8 * second, 10 * second, 1), Relative::Contradicted),
            (of(9 * second, 8 * second, 0, 0, 1), Relative::Foreign),
        ] {
            assert_eq!(path, (false, Some(why)));
        }
    }

    #[test]
    fn prefixes_of_both_families_are_of_one_form() {
        let four = Prefix::new("10.2.3.4".parse().expect("an address"), 20);
        assert_eq!((four.length, four.describe().as_str()), (116, "10.2.0.0/20"));
        let six = Prefix::new("fd00:1::7".parse().expect("an address"), 32);
        assert_eq!((six.length, six.describe().as_str()), (32, "fd00:1::/32"));
        let inside = |address: &str| four.covers(&Address::of(address.parse().expect("an address")));
        assert!(inside("10.2.15.255") && !inside("10.2.16.0") && !inside("fd00::1"));
        assert_eq!(Prefix::new("0.0.0.0".parse().expect("an address"), 0).describe(), "0.0.0.0/0");
    }
}
