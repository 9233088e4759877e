//! Random streams: Philox4x32-10, keyed by (seed, purpose, key), so that no stream disturbs another.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// One block of Philox4x32 with ten rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// A stream of random numbers. Two streams that differ in seed, purpose or key are independent.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    purpose: u32,
    owner: u64,
    block: u32,
    ready: [u32; 4],
    used: u8,
}

impl Stream {
    /// The stream of `purpose` (what the numbers are for) and `owner` (a node, a flow, a class).
    ///
    /// A stream has 2³⁴ numbers of 32 bits before it repeats.
    pub fn new(seed: u64, purpose: u32, owner: u64) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], purpose, owner, block: 0, ready: [0; 4], used: 4 }
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            let counter = [self.block, self.purpose, self.owner as u32, (self.owner >> 32) as u32];
            self.ready = philox(counter, self.key);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        let number = self.ready[usize::from(self.used)];
        self.used += 1;
        number
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) | u64::from(self.next_u32()) << 32
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform among 0..n, without bias. `n` = 0 gives 0.
    ///
    /// Source: Lemire, "Fast random integer generation in an interval", TOMACS 29(1), 2019.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - uniform lies in (0, 1], whose logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }
}

/// Mixes 64 bits so that each input bit changes half of the output bits (the finaliser of SplitMix64).
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_vectors() {
        // Known-answer tests of the authors' Random123 distribution.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn draws_have_the_right_moments() {
        let mut stream = Stream::new(7, 1, 2);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.uniform()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let mean = (0..n).map(|_| stream.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        let mut seen = [0u32; 7];
        (0..n).for_each(|_| seen[stream.below(7) as usize] += 1);
        assert!(seen.iter().all(|count| count.abs_diff(n as u32 / 7) < 700), "{seen:?}");
    }

    #[test]
    fn streams_differ_by_each_part_of_their_key() {
        let first = |seed, purpose, owner| Stream::new(seed, purpose, owner).next_u64();
        let base = first(1, 1, 1);
        assert!(
            [first(2, 1, 1), first(1, 2, 1), first(1, 1, 2), first(1, 1, 1 << 32)].iter().all(|other| *other != base)
        );
        assert_eq!(first(1, 1, 1), base);
    }
}
