//! The packet buffer of a switch: admission to it, and how full it is.

use crate::fabric::config::Buffer;

/// The packet buffer of one switch.
///
/// Bytes are those of frames. A packet occupies buffer from its arrival until its transmission starts; one that meets
/// an idle port never does.
#[derive(Clone, Copy, Debug)]
pub struct SharedBuffer {
    policy: Buffer,
    /// Bytes of the pool in use, beyond the queues' reserves.
    pool_used: u64,
    /// Size of the pool.
    pool: u64,
    /// All bytes in use.
    used: u64,
}

/// How full a buffer is: what the thresholds of flow control depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// All bytes in use.
    pub used: u64,
    /// Free bytes of the pool.
    pub free: u64,
}

/// What a packet takes that is admitted by the rules of flow control or of held packets, not by those of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Bytes of the packet.
    pub bytes: u64,
    /// Those of them that come from the pool.
    pub from_pool: u64,
}

/// The part of `bytes` that exceeds a queue's reserve.
#[inline]
fn beyond(bytes: u64, reserve: u64) -> u64 {
    bytes.saturating_sub(reserve)
}

impl SharedBuffer {
    /// The buffer of a switch with `queues` egress queues.
    pub fn new(policy: Buffer, queues: u64) -> Self {
        let pool = match policy {
            Buffer::Shared { total, reserve, .. } => total.saturating_sub(reserve.saturating_mul(queues)),
            Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } | Buffer::Unlimited => u64::MAX,
        };
        Self { policy, pool_used: 0, pool, used: 0 }
    }

    /// Whether a packet of `bytes` may enter a queue of `queue` bytes at a port where `port` bytes and `packets`
    /// packets wait.
    #[inline]
    pub fn admits(&self, bytes: u64, queue: u64, port: u64, packets: impl FnOnce() -> u32) -> bool {
        // In the order of frequency: `match` compiles to an indirect jump, which takes more instructions.
        if let Buffer::Shared { alpha: (numerator, denominator), reserve, .. } = self.policy {
            let share = beyond(queue + bytes, reserve);
            if share == 0 {
                return true;
            }
            let free = self.pool - self.pool_used;
            let fits = share - beyond(queue, reserve) <= free;
            return fits
                && u128::from(beyond(queue, reserve)) * u128::from(denominator)
                    < u128::from(free) * u128::from(numerator);
        }
        matches!(self.policy, Buffer::Unlimited) || self.port_admits(bytes, port, packets())
    }

    /// The limit of a port admits a packet.
    #[inline(never)]
    fn port_admits(&self, bytes: u64, port: u64, packets: u32) -> bool {
        match self.policy {
            Buffer::PerPort { bytes: limit } => port + bytes <= limit,
            Buffer::PerPortPackets { packets: limit } => packets < limit,
            Buffer::Unlimited | Buffer::Shared { .. } => true,
        }
    }

    /// Whether a packet may be held beside the queues, in a place without a reserve where `held` bytes are held
    /// already, for a port where `port` bytes wait. All its bytes come from the pool.
    pub fn admits_held(&self, bytes: u64, held: u64, port: u64) -> bool {
        match self.policy {
            Buffer::Unlimited | Buffer::PerPortPackets { .. } => true,
            Buffer::PerPort { bytes: limit } => port + bytes <= limit,
            Buffer::Shared { alpha: (numerator, denominator), .. } => {
                let free = self.pool - self.pool_used;
                bytes <= free && u128::from(held) * u128::from(denominator) < u128::from(free) * u128::from(numerator)
            }
        }
    }

    /// A packet enters a queue of `queue` bytes.
    #[inline]
    pub fn enter(&mut self, bytes: u64, queue: u64) {
        self.used += bytes;
        if let Buffer::Shared { reserve, .. } = self.policy {
            self.pool_used += beyond(queue + bytes, reserve) - beyond(queue, reserve);
        }
    }

    /// A packet leaves a queue, which then holds `queue` bytes.
    #[inline]
    pub fn leave(&mut self, bytes: u64, queue: u64) {
        self.used -= bytes;
        if let Buffer::Shared { reserve, .. } = self.policy {
            self.pool_used -= beyond(queue + bytes, reserve) - beyond(queue, reserve);
        }
    }

    /// Takes bytes out of the pool for good.
    pub fn set_aside(&mut self, bytes: u64) {
        if matches!(self.policy, Buffer::Shared { .. }) {
            self.pool = self.pool.saturating_sub(bytes);
        }
    }

    /// A packet enters that takes this charge.
    #[inline]
    pub fn take(&mut self, charge: Charge) {
        self.used += charge.bytes;
        self.pool_used += charge.from_pool;
    }

    /// It leaves.
    #[inline]
    pub fn give_back(&mut self, charge: Charge) {
        self.used -= charge.bytes;
        self.pool_used -= charge.from_pool;
    }

    /// How full it is.
    #[inline]
    pub fn level(&self) -> Level {
        Level { used: self.used, free: self.pool - self.pool_used }
    }

    /// Ports share the buffer: what leaves one port makes room at others.
    pub fn is_shared(&self) -> bool {
        matches!(self.policy, Buffer::Shared { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_queue_takes_alpha_of_what_is_free() {
        // Choudhury and Hahne: a single queue settles at alpha / (1 + alpha) of the buffer.
        for (alpha, share) in [((1, 1), 500), ((1, 2), 334), ((8, 1), 889)] {
            let mut buffer = SharedBuffer::new(Buffer::Shared { total: 1000, alpha, reserve: 0 }, 4);
            let mut queue = 0;
            while buffer.admits(1, queue, queue, || 0) {
                buffer.enter(1, queue);
                queue += 1;
            }
            assert_eq!(queue, share, "{alpha:?}");
        }
    }

    #[test]
    fn reserves_are_always_there() {
        let mut buffer = SharedBuffer::new(Buffer::Shared { total: 1000, alpha: (100, 1), reserve: 100 }, 2);
        let mut queue = 0;
        while buffer.admits(10, queue, queue, || 0) {
            buffer.enter(10, queue);
            queue += 10;
        }
        assert!(queue >= 890, "{queue}");
        assert!(buffer.admits(100, 0, 0, || 0));
    }

    proptest! {
        #[test]
        fn never_overflows_and_returns_to_empty(
            steps in proptest::collection::vec((0usize..4, 1u64..300, proptest::bool::ANY), 1..200),
            alpha in (1u32..20, 1u32..20),
            reserve in 0u64..100,
        ) {
            let total = 2000;
            let mut buffer = SharedBuffer::new(Buffer::Shared { total, alpha, reserve }, 4);
            let mut queues: [Vec<u64>; 4] = Default::default();
            let sum = |queue: &Vec<u64>| queue.iter().sum::<u64>();
            for (queue, bytes, enters) in steps {
                if enters && buffer.admits(bytes, sum(&queues[queue]), sum(&queues[queue]), || 0) {
                    buffer.enter(bytes, sum(&queues[queue]));
                    queues[queue].push(bytes);
                } else if let Some(bytes) = queues[queue].pop() {
                    buffer.leave(bytes, sum(&queues[queue]));
                }
                prop_assert!(buffer.used <= total);
                prop_assert_eq!(buffer.used, queues.iter().map(sum).sum::<u64>());
            }
            for queue in &mut queues {
                while let Some(bytes) = queue.pop() {
                    buffer.leave(bytes, sum(queue));
                }
            }
            prop_assert_eq!((buffer.used, buffer.pool_used), (0, 0));
        }
    }
}
