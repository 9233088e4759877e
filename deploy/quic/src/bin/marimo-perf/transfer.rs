//! What one flow is on the wire: a header, numbers that both sides can compute, and a receipt in the other direction.
//!
//! ```text
//!   client ── "incastQ1" · flow (u64) · bytes (u64) · bytes of content ──▶ server
//!   server ── bytes (u64) · FNV-1a of them (u64) · when the last one was there (u64, ns of the Unix era) · clock (u64) ──▶ client
//! ```
//! All numbers are little-endian; clock 0 is one that is not known.

use std::{
    fs,
    num::NonZeroU64,
    time::{Duration, SystemTime},
};

/// First bytes of a header.
const MAGIC: [u8; 8] = *b"incastQ1";
/// Bytes of a header.
pub const HEADER: usize = 24;
/// Bytes of a receipt.
pub const RECEIPT: usize = 32;

/// What a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its id.
    pub flow: u64,
    /// Its size.
    pub bytes: u64,
}

impl Header {
    /// On the wire.
    pub fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.flow.to_le_bytes());
        bytes[16..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }
    /// From the wire; `None` if it is not one.
    pub fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let [magic, flow, size] = words(bytes);
        (magic == u64::from_le_bytes(MAGIC)).then_some(Self { flow, bytes: size })
    }
}

/// What a server says when a flow has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Bytes of content.
    pub bytes: u64,
    /// Their checksum.
    pub checksum: u64,
    /// Nanoseconds of the Unix era at which the last one was there.
    pub arrived: u64,
    /// Which clock that is, if it is known.
    pub clock: Option<NonZeroU64>,
}

impl Receipt {
    /// On the wire.
    pub fn encode(self) -> [u8; RECEIPT] {
        let mut bytes = [0; RECEIPT];
        let clock = self.clock.map_or(0, NonZeroU64::get);
        for (place, word) in bytes.chunks_exact_mut(8).zip([self.bytes, self.checksum, self.arrived, clock]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
    /// From the wire.
    pub fn decode(bytes: &[u8; RECEIPT]) -> Self {
        let [size, checksum, arrived, clock] = words(bytes);
        Self { bytes: size, checksum, arrived, clock: NonZeroU64::new(clock) }
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Takes in more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    /// Of all of them.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The next `count` bytes of a flow's content, of which `offset`, a multiple of 8, are before: SplitMix64 from its id.
pub fn content(flow: u64, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    let mut index = offset / 8;
    while bytes.len() < count {
        let mut word = flow.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ word >> 31).to_le_bytes());
        index += 1;
    }
    bytes.truncate(count);
    bytes
}

/// Nanoseconds of the Unix era.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells machines apart: two processes with the same number read the same clock. `None` where a machine does not say.
pub fn clock() -> Option<NonZeroU64> {
    clock_of(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

fn clock_of(boot: &str) -> Option<NonZeroU64> {
    let boot = boot.trim();
    let mut sum = Checksum::default();
    sum.update(boot.as_bytes());
    if boot.is_empty() { None } else { NonZeroU64::new(sum.value()) }
}

/// A clock that is not known is another one.
pub fn same_clock(one: Option<NonZeroU64>, other: Option<NonZeroU64>) -> bool {
    one.is_some() && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_receipts_survive_the_wire() {
        let header = Header { flow: 3 << 32 | 9, bytes: 1 << 40 };
        assert_eq!(Header::decode(&header.encode()), Some(header));
        let mut wrong = header.encode();
        wrong[0] ^= 1;
        assert_eq!(Header::decode(&wrong), None);
        for clock in [NonZeroU64::new(8), None] {
            let receipt = Receipt { bytes: 5, checksum: u64::MAX, arrived: 7, clock };
            assert_eq!(Receipt::decode(&receipt.encode()), receipt);
        }
    }

    #[test]
    fn clocks_that_are_not_known_are_not_the_same() {
        let (one, other) = (clock_of("5d2e\n"), clock_of("5d2f\n"));
        assert!(same_clock(one, one) && !same_clock(one, other) && !same_clock(one, None));
        assert_eq!(clock_of(" \n"), None);
        assert!(!same_clock(None, None));
    }

    #[test]
    fn content_does_not_depend_on_how_it_is_cut() {
        let whole = content(77, 0, 1_000);
        let mut parts = content(77, 0, 320);
        parts.extend(content(77, 320, 680));
        assert_eq!(whole, parts);
        assert_ne!(whole, content(78, 0, 1_000));
        // The published value of FNV-1a for "foobar".
        let mut sum = Checksum::default();
        sum.update(b"foo");
        sum.update(b"bar");
        assert_eq!(sum.value(), 0x8594_4171_f739_67e8);
    }
}
