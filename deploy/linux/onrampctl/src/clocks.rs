//! How much faster the clocks of peers run: the line between both bounds that acknowledgements show, as Huygens finds it.
//!
//! The programs keep the least one-way delay of each path, and let it rise by as much as clocks may drift. With an estimate it
//! follows the peer's clock and rises by the estimate's error alone. Without this process they go on with what they know.

use crate::{
    bpf::Loaded,
    layout::{Address, Bounds, Rate},
};
use hostctl::failure::{Outcome, While};
use hostctl::plain::Plain as _;
use incast_cc::clock::{Point, envelope};
use libbpf_rs::RingBufferBuilder;
use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Windows of 2^28 ns that a line is drawn through, and the fewest for one.
const MOST: usize = 64;
const FEWEST: usize = 16;
/// Q30.
const ONE: f64 = (1_u64 << 30) as f64;
/// What an estimate over some windows may be wrong: a few microseconds of noise in four seconds and more.
const ERROR_PPM: f64 = 5.0;
/// `ONRAMP_APART`, ns: a clock was set.
const APART: u64 = 262_144_000;
/// No clock is as wrong as that: the stamps are something else.
const MOST_PPM: f64 = 900.0;

/// Windows of each path.
#[derive(Default)]
pub struct Clocks(BTreeMap<Address, VecDeque<Bounds>>);

impl Clocks {
    fn add(&mut self, bounds: Bounds) {
        let windows = self.0.entry(bounds.address).or_default();
        // An anchor of another time is not to be compared with this one.
        let jumped = windows.back().is_some_and(|last| {
            let gap = bounds.window.upper_at.saturating_sub(last.window.upper_at);
            gap > 60_000_000_000 || bounds.window.upper.abs_diff(last.window.upper) > APART
        });
        if jumped {
            windows.clear();
        }
        windows.push_back(bounds);
        if windows.len() > MOST {
            windows.pop_front();
        }
    }

    fn rate(address: Address, windows: &VecDeque<Bounds>) -> Option<Rate> {
        if windows.len() < FEWEST {
            return None;
        }
        let start = windows.front()?.window.upper_at;
        let at = |time: u64| time.wrapping_sub(start) as i64 as f64;
        let upper: Vec<Point> =
            windows.iter().map(|b| Point { at_ns: at(b.window.upper_at), ahead_ns: b.window.upper as f64 }).collect();
        let lower: Vec<Point> =
            windows.iter().map(|b| Point { at_ns: at(b.window.lower_at), ahead_ns: b.window.lower as f64 }).collect();
        let line = envelope(&upper, &lower, 0.0)?.line;
        if line.rate.abs() > MOST_PPM * 1e-6 {
            return None;
        }
        Some(Rate { address, rate: (line.rate * ONE).round() as i32, drift: (ERROR_PPM * 1e-6 * ONE).round() as u32 })
    }
}

/// Estimates for so long, once a second.
///
/// # Errors
/// On-Ramp was unloaded meanwhile, or the kernel refuses.
pub fn follow(loaded: &Loaded, clocks: &mut Clocks, long: Duration) -> Outcome {
    let found = RefCell::new(Vec::new());
    let map = loaded.map("bounds")?;
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&map, |bytes| {
            found.borrow_mut().extend(Bounds::read(bytes));
            0
        })
        .during("cannot read bounds")?;
    let ring = builder.build().during("cannot read bounds")?;
    // An interrupted wait is no error.
    let _ = ring.poll(long);
    let found = found.take();
    for bounds in &found {
        clocks.add(*bounds);
    }
    // What nothing came of for a while is no path any more.
    let newest = found.iter().map(|bounds| bounds.window.upper_at).max().unwrap_or(0);
    clocks.0.retain(|_, windows| {
        windows.back().is_some_and(|last| newest.saturating_sub(last.window.upper_at) < 120_000_000_000)
    });
    let changed: std::collections::BTreeSet<Address> = found.iter().map(|bounds| bounds.address).collect();
    for address in changed {
        if let Some(rate) = clocks.0.get(&address).and_then(|windows| Clocks::rate(address, windows)) {
            loaded.set_rate(&rate)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Window;

    #[test]
    fn the_rate_of_a_clock_is_found_below_a_queue() {
        let address = Address([7; 16]);
        let mut clocks = Clocks::default();
        // 37 ppm, a round trip of 50 us, queues of up to 300 us that are empty now and then.
        for window in 0..40_u64 {
            let at = window << 28;
            let ahead = |time: u64| (time as f64 * 37e-6) as i64;
            let queue = (window * 7_919 % 5) as i64 * 75_000;
            let (upper_at, lower_at) = (at + 1_000_000, at + 90_000_000);
            let upper = ahead(upper_at) + 25_000 + queue;
            let window = Window { upper_at, upper, lower_at, lower: ahead(lower_at) - 25_000 };
            clocks.add(Bounds { address, window });
        }
        let rate = Clocks::rate(address, &clocks.0[&address]).expect("enough windows");
        let ppm = f64::from(rate.rate) / ONE * 1e6;
        assert!((ppm - 37.0).abs() < ERROR_PPM, "{ppm}");
        // A clock that was set begins anew.
        let window = Window { upper_at: 41 << 28, upper: 1 << 40, lower_at: 41 << 28, lower: 1 << 40 };
        clocks.add(Bounds { address, window });
        assert!(Clocks::rate(address, &clocks.0[&address]).is_none());
    }
}
