//! Memory of a switch: who may still enter.

use crate::config::Buffer;

/// Admission to the egress queues of one switch.
///
/// Bytes are those of frames. A packet occupies memory from its arrival until its transmission starts; one that
/// meets an idle port never does.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    policy: Buffer,
    /// Bytes of the pool in use, beyond the queues' reserves.
    pool_used: u64,
    /// Size of the pool.
    pool: u64,
    /// All bytes in use.
    used: u64,
}

/// Dynamic-threshold arithmetic works on reserves taken off.
fn beyond(bytes: u64, reserve: u64) -> u64 {
    bytes.saturating_sub(reserve)
}

impl Memory {
    /// Memory of a switch with `queues` egress queues.
    pub fn new(policy: Buffer, queues: u64) -> Self {
        let pool = match policy {
            Buffer::Shared { total, reserve, .. } => total.saturating_sub(reserve.saturating_mul(queues)),
            Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } | Buffer::Unlimited => u64::MAX,
        };
        Self { policy, pool_used: 0, pool, used: 0 }
    }

    /// A packet of `bytes` may enter a queue that holds `queue` bytes, at a port that holds `port` bytes.
    #[inline]
    pub fn admits(&self, bytes: u64, queue: u64, port: u64) -> bool {
        match self.policy {
            // Packets are counted elsewhere: see `fabric/trim.rs`.
            Buffer::Unlimited | Buffer::PerPortPackets { .. } => true,
            Buffer::PerPort { bytes: limit } => port + bytes <= limit,
            Buffer::Shared { alpha: (numerator, denominator), reserve, .. } => {
                let share = beyond(queue + bytes, reserve);
                if share == 0 {
                    return true;
                }
                let free = self.pool - self.pool_used;
                let fits = share - beyond(queue, reserve) <= free;
                fits && u128::from(beyond(queue, reserve)) * u128::from(denominator)
                    < u128::from(free) * u128::from(numerator)
            }
        }
    }

    /// A packet entered a queue that held `queue` bytes.
    #[inline]
    pub fn enter(&mut self, bytes: u64, queue: u64) {
        self.used += bytes;
        if let Buffer::Shared { reserve, .. } = self.policy {
            self.pool_used += beyond(queue + bytes, reserve) - beyond(queue, reserve);
        }
    }

    /// A packet left a queue that now holds `queue` bytes.
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

    /// A packet entered that is admitted by other rules and takes so many bytes of the pool.
    #[inline]
    pub fn hold(&mut self, bytes: u64, from_pool: u64) {
        self.used += bytes;
        self.pool_used += from_pool;
    }

    /// It left.
    #[inline]
    pub fn release(&mut self, bytes: u64, to_pool: u64) {
        self.used -= bytes;
        self.pool_used -= to_pool;
    }

    /// A packet may be held in a place beside the queues, which has no reserve and holds `held` bytes already, for a port that
    /// holds `port` bytes. It takes all its bytes of the pool.
    pub fn admits_beside(&self, bytes: u64, held: u64, port: u64) -> bool {
        match self.policy {
            Buffer::Unlimited | Buffer::PerPortPackets { .. } => true,
            Buffer::PerPort { bytes: limit } => port + bytes <= limit,
            Buffer::Shared { alpha: (numerator, denominator), .. } => {
                let free = self.free();
                bytes <= free
                    && u128::from(held) * u128::from(denominator) < u128::from(free) * u128::from(numerator)
            }
        }
    }

    /// Bytes of the pool that are free.
    #[inline]
    pub fn free(&self) -> u64 {
        self.pool - self.pool_used
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_queue_takes_alpha_of_what_is_free() {
        // Choudhury and Hahne: a single queue settles at alpha / (1 + alpha) of the memory.
        for (alpha, share) in [((1, 1), 500), ((1, 2), 334), ((8, 1), 889)] {
            let mut memory = Memory::new(Buffer::Shared { total: 1000, alpha, reserve: 0 }, 4);
            let mut queue = 0;
            while memory.admits(1, queue, queue) {
                memory.enter(1, queue);
                queue += 1;
            }
            assert_eq!(queue, share, "{alpha:?}");
        }
    }

    #[test]
    fn reserves_are_always_there() {
        let mut memory = Memory::new(Buffer::Shared { total: 1000, alpha: (100, 1), reserve: 100 }, 2);
        let mut queue = 0;
        while memory.admits(10, queue, queue) {
            memory.enter(10, queue);
            queue += 10;
        }
        assert!(queue >= 890, "{queue}");
        assert!(memory.admits(100, 0, 0));
    }

    proptest! {
        #[test]
        fn never_overflows_and_returns_to_empty(
            steps in proptest::collection::vec((0usize..4, 1u64..300, proptest::bool::ANY), 1..200),
            alpha in (1u32..20, 1u32..20),
            reserve in 0u64..100,
        ) {
            let total = 2000;
            let mut memory = Memory::new(Buffer::Shared { total, alpha, reserve }, 4);
            let mut queues: [Vec<u64>; 4] = Default::default();
            let sum = |queue: &Vec<u64>| queue.iter().sum::<u64>();
            for (queue, bytes, enters) in steps {
                if enters && memory.admits(bytes, sum(&queues[queue]), sum(&queues[queue])) {
                    memory.enter(bytes, sum(&queues[queue]));
                    queues[queue].push(bytes);
                } else if let Some(bytes) = queues[queue].pop() {
                    memory.leave(bytes, sum(&queues[queue]));
                }
                prop_assert!(memory.used() <= total);
                prop_assert_eq!(memory.used(), queues.iter().map(sum).sum::<u64>());
            }
            for queue in &mut queues {
                while let Some(bytes) = queue.pop() {
                    memory.leave(bytes, sum(queue));
                }
            }
            prop_assert_eq!((memory.used(), memory.pool_used), (0, 0));
        }
    }
}
