//! By how much this host's clock, which others synchronise, is ahead of the one that stamps are made by, and may be wrong.

use crate::layout::{Address, Difference};
use hostctl::failure::{Failure, Outcome, While};
use incast_units::Time;
use rustix::time::{ClockId, clock_gettime};
use std::{io, process::Command, str::FromStr};

/// Of an error that nobody knows a bound of.
pub const UNKNOWN: u64 = u64::MAX;
/// Stamps are cut to microseconds, and so is the difference, ns.
const ROUNDING: u64 = 2_000;
/// A kernel to which nobody has said anything for 20 s counts so much more, at 500 ppm, us.
const FORSAKEN: i64 = 10_000;
const SECOND: f64 = 1e9;

/// Who says by how much this host's clock may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `maxerror` of adjtimex(2): what the daemon has said, 500 ppm more since then.
    Kernel,
    /// `chronyc tracking`: offset, root dispersion and half of the root delay.
    Chrony,
    /// The operator, ns.
    Stated(u64),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Self::Kernel),
            "chrony" => Ok(Self::Chrony),
            _ => match text.parse::<Time>().map(|time| time.ps() / 1_000) {
                Ok(ns @ 1..1_000_000_000) => Ok(Self::Stated(ns)),
                _ => Err("allowed is kernel, chrony, or a time below 1s such as 2us".into()),
            },
        }
    }
}

impl Source {
    /// The bound now, ns.
    fn error(self) -> Outcome<u64> {
        match self {
            // Somebody has to keep the clock where it is said to be.
            Self::Stated(ns) => kernel().and_then(|us| match us {
                ..FORSAKEN => Ok(ns),
                _ => Err(Failure::failed("nobody has set the kernel's clock for 20 s (adjtimex)")),
            }),
            Self::Kernel => Ok(u64::try_from(kernel()?).unwrap_or_default() * 1_000),
            Self::Chrony => {
                let doing = "cannot run chronyc -c tracking";
                let output = Command::new("chronyc").args(["-c", "tracking"]).output().during(doing)?;
                let text = String::from_utf8_lossy(&output.stdout);
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr);
                    return Err(Failure::failed(format!("{doing}: {} {}{}", output.status, text.trim(), said.trim())));
                }
                tracked(&text).ok_or_else(|| Failure::failed("chrony is not synchronised (chronyc tracking)"))
            }
        }
    }
}

/// By how much the kernel takes its clock to be wrong, us.
fn kernel() -> Outcome<i64> {
    // SAFETY: zeroes are such a structure, and a request that changes nothing.
    let mut clock = unsafe { std::mem::zeroed::<libc::timex>() };
    // SAFETY: the structure lives as long as the call.
    match unsafe { libc::adjtimex(&raw mut clock) } {
        -1 => Err(io::Error::last_os_error()).during("cannot read the clock's error"),
        _ if clock.status & libc::STA_UNSYNC != 0 => {
            Err(Failure::failed("the kernel says that nobody synchronises its clock (adjtimex)"))
        }
        _ => Ok(clock.maxerror),
    }
}

/// The bound that chronyc(1) gives for the error of a clock, of what `chronyc -c tracking` prints: ns.
fn tracked(text: &str) -> Option<u64> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let number = |place: usize| fields.get(place)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let (offset, delay, dispersion) = (number(4)?, number(10)?, number(11)?);
    let bound = (offset.abs() + dispersion + delay / 2.0) * SECOND;
    (*fields.get(13)? != "Not synchronised" && bound < SECOND).then(|| bound.ceil() as u64)
}

/// What a host says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns.
    pub ahead: i64,
    /// By how much CLOCK_REALTIME may be wrong, ns; [`UNKNOWN`] if nobody knows.
    pub error: u64,
}

impl Clock {
    /// Both clocks now; the error is of the reading alone.
    fn read() -> Self {
        let read = |id| {
            let time = clock_gettime(id);
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        // Of five the one that was interrupted least.
        let readings = (0..5).map(|_| {
            let before = read(ClockId::Monotonic);
            let real = read(ClockId::Realtime);
            let took = read(ClockId::Monotonic) - before;
            (took, real - before - took / 2)
        });
        let (took, ahead) = readings.min().unwrap_or_default();
        Self { ahead, error: took.unsigned_abs() }
    }

    pub fn own(source: Source) -> Outcome<Self> {
        let Self { ahead, error } = Self::read();
        Ok(Self { ahead, error: error.saturating_add(source.error()?) })
    }

    /// The difference of the monotonic clocks, as seen from `self`.
    pub fn difference(&self, peer: &Self, address: Address) -> Difference {
        let error = self.error.saturating_add(peer.error).saturating_add(ROUNDING);
        Difference {
            address,
            ahead: self.ahead.wrapping_sub(peer.ahead),
            error: u32::try_from(error).unwrap_or(u32::MAX),
            reserved: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_chrony_is_that_of_its_manual() {
        let line = "C0A80001,10.0.0.1,2,1700000000.1,-0.000000300,0.0000001,0.0000002,1.5,0.001,0.02,0.000004000,0.000001500,1.0,Normal\n";
        assert_eq!(tracked(line), Some(3_800));
        assert_eq!(tracked(&line.replace("Normal", "Not synchronised")), None);
        assert_eq!(tracked("506 Cannot talk to daemon\n"), None);
        assert_eq!(tracked(&line.replace("0.000004000", "nan")), None);
    }

    #[test]
    fn a_source_is_named_or_a_time() {
        assert_eq!("chrony".parse(), Ok(Source::Chrony));
        assert_eq!("2us".parse(), Ok(Source::Stated(2_000)));
        for wrong in ["", "ntp", "0us", "1s", "-1us"] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_clocks_give_the_difference_of_what_stamps_are_made_by() {
        // The peer was started 10 s later: its monotonic clock is behind.
        let (own, peer) = (Clock { ahead: 50_000_000_000, error: 700 }, Clock { ahead: 60_000_000_000, error: 300 });
        let found = own.difference(&peer, Address([0; 16]));
        assert_eq!((found.ahead, found.error), (-10_000_000_000, 3_000));
        let unknown = own.difference(&Clock { error: UNKNOWN, ..peer }, Address([0; 16]));
        assert_eq!(unknown.error, u32::MAX);
        // Of this machine: both readings differ by what clocks do in between.
        let (first, second) = (Clock::read(), Clock::read());
        assert!(first.ahead.abs_diff(second.ahead) <= first.error + second.error + 10_000_000, "{first:?} {second:?}");
    }
}
