//! Marks at an egress queue: a step (DCTCP) or a ramp (RED on the instantaneous queue, DCQCN).
//!
//! Sources: RFC 8257, section 3.1 (a step at K); M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
//! section 3.1; Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (DCQCN), SIGCOMM 2015,
//! figure 5 (the CP algorithm: a ramp from Kmin to Kmax up to Pmax, then a jump to 1). Unlike Floyd and Jacobson's
//! RED, both look at the instantaneous queue: an average over many RTTs hides the burst that is to be marked.

/// When an arriving packet is marked (CE), by the bytes that wait in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Marking {
    /// Never.
    #[default]
    Off,
    /// Always above `at`.
    Step {
        /// K: the longest queue that is not marked, in bytes.
        at: u64,
    },
    /// Never up to `min`, always above `max`, and with a probability that rises linearly to `p` between them.
    Red {
        /// Kmin in bytes.
        min: u64,
        /// Kmax in bytes.
        max: u64,
        /// Pmax, in [0, 1].
        p: f64,
    },
}

/// `p (q - Kmin) / (Kmax - Kmin)`, for `Kmin < q <= Kmax`.
fn ramp(queue_bytes: u64, min: u64, max: u64, p: f64) -> f64 {
    p * (queue_bytes - min) as f64 / (max - min) as f64
}

impl Marking {
    /// Whether a packet that meets `queue_bytes` is marked. `uniform` draws from [0, 1) and is called only where
    /// chance decides, so that a step uses up no random numbers.
    #[inline]
    pub fn mark(&self, queue_bytes: u64, uniform: impl FnOnce() -> f64) -> bool {
        match *self {
            Self::Off => false,
            Self::Step { at } => queue_bytes > at,
            // The order of the two tests lets min = max be a step and keeps the ramp from dividing by zero.
            Self::Red { min, .. } if queue_bytes <= min => false,
            Self::Red { max, .. } if queue_bytes > max => true,
            Self::Red { min, max, p } => uniform() < ramp(queue_bytes, min, max, p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn no_draw() -> f64 {
        panic!("chance does not decide here")
    }

    #[test]
    fn step_marks_above_the_threshold() {
        let step = Marking::Step { at: 30_000 };
        assert!(!step.mark(30_000, no_draw));
        assert!(step.mark(30_001, no_draw));
        assert!(!Marking::Off.mark(u64::MAX, no_draw));
    }

    #[test]
    fn ramp_rises_between_the_thresholds() {
        // DCQCN's published Kmin = 5 KB, Kmax = 200 KB, Pmax = 1 %.
        let red = Marking::Red { min: 5_000, max: 200_000, p: 0.01 };
        assert!(!red.mark(5_000, no_draw));
        assert!(red.mark(200_001, no_draw));
        assert!((ramp(102_500, 5_000, 200_000, 0.01) - 0.005).abs() < 1e-15);
        assert!(red.mark(102_500, || 0.004_999));
        assert!(!red.mark(102_500, || 0.005_001));
        assert!(red.mark(200_000, || 0.009_999));
        assert!(!red.mark(200_000, || 0.010_001));
    }

    proptest! {
        #[test]
        fn equal_thresholds_are_a_step(at in any::<u64>(), queue in any::<u64>(), p in 0.0..=1.0) {
            let red = Marking::Red { min: at, max: at, p };
            prop_assert_eq!(red.mark(queue, no_draw), Marking::Step { at }.mark(queue, no_draw));
        }

        #[test]
        fn longer_queues_are_marked_where_shorter_ones_are(
            min in 0u64..1 << 40, span in 0u64..1 << 40, p in 0.0..=1.0, queue in 0u64..1 << 41,
            longer in 0u64..1 << 41, draw in 0.0..1.0,
        ) {
            let red = Marking::Red { min, max: min + span, p };
            prop_assert!(!red.mark(queue, || draw) || red.mark(queue + longer, || draw));
        }
    }
}
