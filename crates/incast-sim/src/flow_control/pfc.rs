//! Priority flow control (IEEE 802.1Qbb): what a switch holds of each neighbour's packets, and when it asks one to pause.
//!
//! Bytes are counted by the port and priority by which they came in, as long as they wait in the switch. An ingress
//! above its threshold is paused; what is still on its way goes to its headroom. docs/fabric.md has the formulas.

use crate::config::{Alpha, Buffer, Headroom, Pfc, Threshold};
use crate::fabric::buffer::Memory;
use incast_units::{Rate, Time};

/// Priorities of a port.
const PRIORITIES: usize = 8;

/// Fractions of memory have so many binary places.
const ALPHA_BITS: u32 = 20;

/// PFC with what it needs to know of the fabric.
#[derive(Clone, Debug)]
pub struct Rules {
    /// As configured.
    pub pfc: Pfc,
    /// Priorities that are lossless and that packets of this run can have, one bit each. Memory is set aside for
    /// these alone.
    pub lossless: u8,
    /// Bytes of the largest frame of any kind.
    pub frame: u64,
    /// Bytes between two frames.
    pub gap: u64,
    /// Rate of the first host's link: what thresholds by rate are relative to.
    pub host_rate: Rate,
    /// The fabric's base RTT: what thresholds in BDP are relative to.
    pub base_rtt: Time,
}

/// When a port pauses and resumes its neighbour; for each priority alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may come in above the threshold.
    pub headroom: u64,
    /// The threshold.
    pub threshold: Bounds,
}

/// See [`Threshold`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Fixed.
    Static {
        /// Pause at or above.
        xoff: u64,
        /// Resume at or below.
        xon: u64,
    },
    /// A share of the free memory.
    Dynamic {
        /// Alpha times 2^20.
        alpha: u64,
        /// Bytes set aside for the ingress, below the shared ones.
        reserve: u64,
        /// Resume so many bytes below the threshold.
        resume_offset: u64,
    },
}

impl Limits {
    /// Memory that belongs to one priority of the port and to nobody else.
    pub fn own(&self) -> u64 {
        match self.threshold {
            Bounds::Static { xoff, .. } => xoff.saturating_add(self.headroom),
            Bounds::Dynamic { reserve, .. } => reserve.saturating_add(self.headroom),
        }
    }
}

impl Rules {
    /// Bytes that can still come in once a packet has taken an ingress above its threshold, that packet included.
    ///
    /// The pause frame waits for the frame in service (one largest frame with its gap), takes its own time, travels,
    /// and takes effect after the response delay; the neighbour finishes what it is sending then (another largest
    /// frame); and what is on the cable at that time arrives too. To this comes the frame that went above.
    pub fn needed(&self, rate: Rate, delay: Time) -> u64 {
        let gap = self.gap;
        let way = delay.saturating_mul(2).saturating_add(self.pfc.response_delay);
        let on_the_way = (u128::from(rate.bps()) * u128::from(way.ps())).div_ceil(8_000_000_000_000);
        let frames = 2 * (self.frame + gap) + u64::from(self.pfc.frame) + gap + self.frame;
        u64::try_from(on_the_way).unwrap_or(u64::MAX).saturating_add(frames)
    }

    /// The limits of a port with a link of this rate and propagation delay.
    pub fn limits(&self, rate: Rate, delay: Time) -> Limits {
        let headroom = match self.pfc.headroom {
            Headroom::Computed => self.needed(rate, delay),
            Headroom::Bytes(bytes) => bytes,
            Headroom::RateTimesDelay(factor) => {
                (rate.as_f64() * delay.as_secs_f64() * factor / 8.0).round() as u64
            }
        };
        let threshold = match self.pfc.threshold {
            Threshold::Static { xoff, xon } => {
                let xoff = xoff.bytes(rate, self.base_rtt);
                let default = xoff.saturating_sub(2 * self.frame);
                Bounds::Static { xoff, xon: xon.map_or(default, |xon| xon.bytes(rate, self.base_rtt)) }
            }
            Threshold::Dynamic { alpha, reserve, resume_offset } => {
                Bounds::Dynamic { alpha: self.alpha(alpha, rate), reserve, resume_offset }
            }
        };
        Limits { headroom, threshold }
    }

    /// Alpha times 2^20.
    fn alpha(&self, alpha: Alpha, rate: Rate) -> u64 {
        match alpha {
            Alpha::Fixed(numerator, denominator) => {
                (u64::from(numerator) << ALPHA_BITS) / u64::from(denominator.max(1))
            }
            Alpha::ByRate => {
                let (mut shift, mut rate) = (3, rate.bps());
                while rate > self.host_rate.bps() && shift > 0 {
                    shift -= 1;
                    rate /= 2;
                }
                1 << (ALPHA_BITS - shift)
            }
        }
    }

    /// Number of lossless priorities.
    pub fn count(&self) -> u64 {
        u64::from(self.lossless.count_ones())
    }
}

/// What one priority of one ingress holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// Bytes in its reserve and in the shared memory.
    held: u64,
    /// Bytes in its headroom.
    headroom: u64,
}

/// The counts of one switch.
#[derive(Clone, Debug)]
pub struct Accounts {
    lossless: u8,
    /// By port.
    limits: Vec<Limits>,
    /// By port, then priority.
    counts: Vec<Count>,
    /// Bytes of the switch's memory.
    total: u64,
}

impl Accounts {
    /// Of a switch with these ports. Takes what belongs to single ingresses out of the shared memory.
    pub fn new(rules: &Rules, ports: &[(Rate, Time)], buffer: Buffer, memory: &mut Memory) -> Self {
        let limits: Vec<Limits> = ports.iter().map(|(rate, delay)| rules.limits(*rate, *delay)).collect();
        let own = limits.iter().fold(0u64, |sum, limits| sum.saturating_add(limits.own()));
        memory.set_aside(own.saturating_mul(rules.count()));
        Self {
            lossless: rules.lossless,
            counts: vec![Count::default(); ports.len() * PRIORITIES],
            limits,
            total: match buffer {
                Buffer::Shared { total, .. } => total,
                Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } | Buffer::Unlimited => u64::MAX,
            },
        }
    }

    /// Packets of this priority are counted here.
    #[inline]
    pub fn is_lossless(&self, priority: u8) -> bool {
        self.lossless & 1 << priority != 0
    }

    #[inline]
    fn index(port: u16, priority: u8) -> usize {
        usize::from(port) * PRIORITIES + usize::from(priority)
    }

    /// A packet entered the memory, if it has room: false means that its ingress has no headroom left.
    #[inline]
    pub fn enter(&mut self, port: u16, priority: u8, bytes: u64, memory: &mut Memory) -> bool {
        let limits = self.limits[usize::from(port)];
        let count = &mut self.counts[Self::index(port, priority)];
        if memory.used().saturating_add(bytes) > self.total {
            return false;
        }
        match limits.threshold {
            Bounds::Static { xoff, .. } => {
                if count.held + bytes > xoff.saturating_add(limits.headroom) {
                    return false;
                }
                count.held += bytes;
                memory.hold(bytes, 0);
            }
            Bounds::Dynamic { alpha, reserve, .. } => {
                let share = (count.held + bytes).saturating_sub(reserve);
                let from_pool = share.min(bytes);
                if share > 0 && (share > part(memory.free(), alpha) || from_pool > memory.free()) {
                    if count.headroom + bytes > limits.headroom {
                        return false;
                    }
                    count.headroom += bytes;
                    memory.hold(bytes, 0);
                } else {
                    count.held += bytes;
                    memory.hold(bytes, from_pool);
                }
            }
        }
        true
    }

    /// A packet left the memory: what is above the threshold goes first.
    #[inline]
    pub fn leave(&mut self, port: u16, priority: u8, bytes: u64, memory: &mut Memory) {
        let limits = self.limits[usize::from(port)];
        let count = &mut self.counts[Self::index(port, priority)];
        match limits.threshold {
            Bounds::Static { .. } => {
                count.held -= bytes;
                memory.release(bytes, 0);
            }
            Bounds::Dynamic { reserve, .. } => {
                let from_headroom = count.headroom.min(bytes);
                let rest = bytes - from_headroom;
                let to_pool = rest.min(count.held.saturating_sub(reserve));
                count.headroom -= from_headroom;
                count.held -= rest;
                memory.release(bytes, to_pool);
            }
        }
    }

    /// The ingress must be paused.
    #[inline]
    pub fn is_high(&self, port: u16, priority: u8, memory: &Memory) -> bool {
        let count = self.counts[Self::index(port, priority)];
        match self.limits[usize::from(port)].threshold {
            Bounds::Static { xoff, .. } => count.held >= xoff,
            Bounds::Dynamic { alpha, reserve, .. } => {
                count.headroom > 0 || count.held.saturating_sub(reserve) >= part(memory.free(), alpha)
            }
        }
    }

    /// The ingress may go on.
    #[inline]
    pub fn is_low(&self, port: u16, priority: u8, memory: &Memory) -> bool {
        let count = self.counts[Self::index(port, priority)];
        match self.limits[usize::from(port)].threshold {
            Bounds::Static { xon, .. } => count.held <= xon,
            Bounds::Dynamic { alpha, reserve, resume_offset } => {
                let share = count.held.saturating_sub(reserve);
                count.headroom == 0
                    && (share == 0 || share.saturating_add(resume_offset) <= part(memory.free(), alpha))
            }
        }
    }

    /// Whether the ingress would have to be paused with this packet, or the whole memory has no room for it. What has
    /// not left yet although it could makes this true too early, never too late.
    #[inline]
    pub fn reaches(&self, port: u16, priority: u8, bytes: u64, memory: &Memory) -> bool {
        let count = self.counts[Self::index(port, priority)];
        if memory.used().saturating_add(bytes) > self.total {
            return true;
        }
        match self.limits[usize::from(port)].threshold {
            Bounds::Static { xoff, .. } => count.held + bytes >= xoff,
            Bounds::Dynamic { alpha, reserve, .. } => {
                let share = (count.held + bytes).saturating_sub(reserve);
                let after = memory.free().saturating_sub(share.min(bytes));
                count.headroom > 0 || share >= part(after, alpha)
            }
        }
    }

    /// Bytes of an ingress in the switch.
    pub fn bytes(&self, port: u16, priority: u8) -> u64 {
        let count = self.counts[Self::index(port, priority)];
        count.held + count.headroom
    }

    /// Bytes of all of them.
    pub fn total_bytes(&self) -> u64 {
        self.counts.iter().map(|count| count.held + count.headroom).sum()
    }
}

/// Alpha, times 2^20, of so many bytes.
#[inline]
fn part(bytes: u64, alpha: u64) -> u64 {
    u64::try_from((u128::from(bytes) * u128::from(alpha)) >> ALPHA_BITS).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(threshold: Threshold, headroom: Headroom) -> Rules {
        Rules {
            pfc: Pfc { headroom, ..Pfc::new(threshold) },
            lossless: 0b11,
            frame: 1000,
            gap: 20,
            host_rate: Rate::from_gbps(100),
            base_rtt: Time::from_us(8),
        }
    }

    fn dynamic(alpha: Alpha) -> Threshold {
        Threshold::Dynamic { alpha, reserve: 4096, resume_offset: 3072 }
    }

    #[test]
    fn headroom_is_what_can_still_arrive() {
        let rules = rules(dynamic(Alpha::ByRate), Headroom::Computed);
        // 100 Gbit/s is 12.5 bytes per nanosecond: 2 us of cable are 25,000 bytes.
        let frames = 2 * 1020 + 84 + 1000;
        assert_eq!(rules.needed(Rate::from_gbps(100), Time::from_us(1)), 25_000 + frames);
        let slow = Rules { pfc: Pfc { response_delay: Time::from_us(2), ..rules.pfc.clone() }, ..rules };
        assert_eq!(slow.needed(Rate::from_gbps(100), Time::from_us(1)), 50_000 + frames);
    }

    #[test]
    fn the_lineage_gives_faster_ports_a_larger_part() {
        let rules = rules(dynamic(Alpha::ByRate), Headroom::RateTimesDelay(3.0));
        let of = |gbps| rules.limits(Rate::from_gbps(gbps), Time::from_us(1));
        let alpha = |limits: Limits| match limits.threshold {
            Bounds::Dynamic { alpha, .. } => alpha as f64 / f64::from(1 << ALPHA_BITS),
            Bounds::Static { .. } => 0.0,
        };
        assert_eq!(
            [25, 100, 200, 400, 800, 1600].map(|gbps| alpha(of(gbps))),
            [0.125, 0.125, 0.25, 0.5, 1.0, 1.0]
        );
        assert_eq!((of(100).headroom, of(400).headroom), (37_500, 150_000));
    }

    #[test]
    fn a_static_threshold_pauses_at_xoff_and_resumes_at_xon() {
        let size = crate::config::Size::Bytes;
        let rules =
            rules(Threshold::Static { xoff: size(3000), xon: Some(size(1000)) }, Headroom::Bytes(2000));
        let buffer = Buffer::Shared { total: 100_000, alpha: (1, 1), reserve: 0 };
        let mut memory = Memory::new(buffer, 0);
        let mut accounts =
            Accounts::new(&rules, &[(Rate::from_gbps(100), Time::ZERO); 2], buffer, &mut memory);
        assert_eq!(memory.free(), 100_000 - 2 * 2 * 5000);
        let mut seen = Vec::new();
        for _ in 0..6 {
            let before = accounts.reaches(1, 0, 1000, &memory);
            let entered = accounts.enter(1, 0, 1000, &mut memory);
            seen.push((before, entered, accounts.is_high(1, 0, &memory), accounts.is_high(1, 1, &memory)));
        }
        let (low, high, full) =
            ((false, true, false, false), (true, true, true, false), (true, false, true, false));
        assert_eq!(seen, [low, low, high, high, high, full]);
        for left in [4000, 3000, 2000, 1000] {
            assert!(!accounts.is_low(1, 0, &memory));
            accounts.leave(1, 0, 1000, &mut memory);
            assert_eq!(accounts.bytes(1, 0), left);
        }
        assert!(accounts.is_low(1, 0, &memory));
    }

    /// One ingress alone may take alpha / (1 + alpha) of the pool and its reserve; then the headroom, of which what leaves
    /// leaves first; and it goes on when it is far enough below the threshold again.
    #[test]
    fn a_dynamic_threshold_follows_the_free_memory() {
        let rules = rules(dynamic(Alpha::Fixed(1, 8)), Headroom::Bytes(1_000));
        // Two priorities of two ports have 4,096 and 1,000 each; 90,000 are shared.
        let buffer = Buffer::Shared { total: 90_000 + 4 * 5_096, alpha: (1, 1), reserve: 0 };
        let mut memory = Memory::new(buffer, 0);
        let mut accounts =
            Accounts::new(&rules, &[(Rate::from_gbps(100), Time::ZERO); 2], buffer, &mut memory);
        let mut entered = 0;
        while !accounts.is_high(0, 1, &memory) {
            assert!(accounts.enter(0, 1, 1, &mut memory));
            entered += 1;
        }
        // At 10,000 shared bytes an eighth of the other 80,000 is reached.
        assert_eq!((entered, memory.free()), (4_096 + 10_000, 80_000));
        assert_eq!((0..2_000).filter(|_| accounts.enter(0, 1, 1, &mut memory)).count(), 1_000);
        assert_eq!(memory.free(), 80_000);
        // Another ingress lowers the threshold for all.
        assert!(!accounts.is_high(1, 1, &memory) && accounts.enter(1, 1, 12_000, &mut memory));
        assert_eq!(memory.free(), 80_000 - (12_000 - 4_096));
        accounts.leave(1, 1, 12_000, &mut memory);
        let mut left = 0;
        while !accounts.is_low(0, 1, &memory) {
            accounts.leave(0, 1, 1, &mut memory);
            left += 1;
        }
        // The headroom, then until s + 3,072 <= (90,000 - s) / 8: s = 7,269.
        assert_eq!(left, 1_000 + (10_000 - 7_269));
    }

    proptest! {
        /// No ingress takes more than its own and the shared memory, what it may not have it does not get, everything
        /// comes back, and what was put off makes thresholds look nearer, never farther.
        #[test]
        fn memory_is_shared_out_and_comes_back(
            steps in proptest::collection::vec((0u16..3, 0u8..2, 64u64..1500, any::<bool>()), 1..300),
            alpha in (1u32..64, 1u32..16),
            headroom in 0u64..5000,
            fixed in proptest::option::of(1500u64..6000),
        ) {
            let threshold = match fixed {
                Some(xoff) => Threshold::Static { xoff: crate::config::Size::Bytes(xoff), xon: None },
                None => Threshold::Dynamic { alpha: Alpha::Fixed(alpha.0, alpha.1), reserve: 1000, resume_offset: 500 },
            };
            let rules = rules(threshold, Headroom::Bytes(headroom));
            let buffer = Buffer::Shared { total: 70_000, alpha: (1, 1), reserve: 0 };
            let mut memory = Memory::new(buffer, 0);
            let mut accounts =
                Accounts::new(&rules, &[(Rate::from_gbps(100), Time::ZERO); 3], buffer, &mut memory);
            let free = memory.free();
            let mut inside: Vec<(u16, u8, u64)> = Vec::new();
            for (port, priority, bytes, enters) in steps {
                if enters {
                    let (before, reaches) = (accounts.clone(), accounts.reaches(port, priority, bytes, &memory));
                    let mut early = memory;
                    if accounts.enter(port, priority, bytes, &mut memory) {
                        inside.push((port, priority, bytes));
                        prop_assert_eq!(reaches, accounts.is_high(port, priority, &memory));
                        // Had something left before, no new threshold would have been reached.
                        if let Some((other, its, size)) = inside.first().copied().filter(|_| inside.len() > 1 && !reaches) {
                            let mut caught_up = before;
                            caught_up.leave(other, its, size, &mut early);
                            prop_assert!(!caught_up.reaches(port, priority, bytes, &early));
                        }
                    } else {
                        prop_assert!(reaches, "only an ingress above its threshold is refused");
                    }
                } else if let Some((port, priority, bytes)) = inside.pop() {
                    accounts.leave(port, priority, bytes, &mut memory);
                }
                let sum: u64 = inside.iter().map(|packet| packet.2).sum();
                prop_assert!(sum <= 70_000 && memory.used() == sum && accounts.total_bytes() == sum);
            }
            for (port, priority, bytes) in inside {
                accounts.leave(port, priority, bytes, &mut memory);
            }
            prop_assert_eq!((memory.used(), memory.free(), accounts.total_bytes()), (0, free, 0));
        }
    }
}
