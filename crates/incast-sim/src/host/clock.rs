//! A host's clock: how far it deviates from the simulation's time.

use crate::{engine::random::mix, settings::host::HostClock};
use incast_units::Time;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    deviation: HostClock,
    key: u64,
}

/// Purpose of the stream of reading errors.
const CLOCK_STREAM: u64 = 0x434c_4f43;

impl Clock {
    /// The clock of a host.
    pub fn new(deviation: HostClock, seed: u64, node: u32) -> Self {
        Self { deviation, key: mix(seed ^ mix(CLOCK_STREAM << 32 | u64::from(node))) }
    }

    /// How far it is ahead, in picoseconds, when it is read at `now`. Readings at one instant agree.
    pub fn error(&self, now: Time) -> i64 {
        let HostClock { offset_ps, drift_ppm, noise } = self.deviation;
        let drift = now.ps() as f64 * drift_ppm * 1e-6;
        // Uniform between both extremes.
        let draw = (mix(self.key ^ now.ps()) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        offset_ps.saturating_add((drift + draw * noise.ps() as f64) as i64)
    }
}

/// How far a host's clock is ahead at `time`, in picoseconds. `None` is a perfect clock.
#[inline]
pub fn error(clock: Option<&Clock>, time: Time) -> i64 {
    clock.map_or(0, |clock| clock.error(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_drift_and_noise_add_up() {
        let noise = Time::from_ns(3);
        let clock = Clock::new(HostClock { offset_ps: -7_000, drift_ppm: 20.0, noise }, 1, 2);
        // 20 ppm of a millisecond are 20 ns.
        let errors = (0..10_000u64).map(|ns| clock.error(Time::from_ms(1) + Time::from_ns(ns)) - 13_000);
        let errors: Vec<i64> = errors.collect();
        let (least, most) = (errors.iter().min(), errors.iter().max());
        assert!(least.is_some_and(|least| (-3_000..-2_900).contains(least)), "{least:?}");
        // The drift goes on for 10 us: 0.2 ns.
        assert!(most.is_some_and(|most| (2_900..3_200).contains(most)), "{most:?}");
        let mean = errors.iter().sum::<i64>() / 10_000;
        assert!((0..200).contains(&mean), "{mean}");
    }

    #[test]
    fn readings_at_one_instant_agree_and_hosts_differ() {
        let deviation = HostClock { offset_ps: 0, drift_ppm: 0.0, noise: Time::from_us(1) };
        let clock = |node| Clock::new(deviation, 1, node);
        assert_eq!(clock(1).error(Time::from_us(5)), clock(1).error(Time::from_us(5)));
        assert_ne!(clock(1).error(Time::from_us(5)), clock(2).error(Time::from_us(5)));
    }
}
