//! In-band telemetry that travels with a packet.

use crate::engine;
use incast_cc::feedback::HopTelemetry;
use std::{fmt, mem::MaybeUninit};

/// Hops that a packet can record: a few more than the header of HPCC has places (five; SIGCOMM 2019, figure 7).
pub const TELEMETRY_HOPS: usize = 8;

/// The queues and rates that a packet met: one record per switch, in order. Later hops than it can hold are left out.
///
/// Only the records that there are get copied in the hot path: most paths are shorter than the longest.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Telemetry {
    count: u8,
    hops: [MaybeUninit<HopTelemetry>; TELEMETRY_HOPS],
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { count: 0, hops: [MaybeUninit::uninit(); TELEMETRY_HOPS] }
    }
}

impl Telemetry {
    /// Adds a hop.
    #[inline]
    pub fn push(&mut self, hop: HopTelemetry) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            place.write(hop);
            self.count += 1;
        }
    }
    /// The hops so far.
    #[inline]
    pub fn hops(&self) -> &[HopTelemetry] {
        let hops = &self.hops[..usize::from(self.count)];
        // SAFETY: R13: the first `count` places have been written, and `MaybeUninit<T>` has the layout of T.
        unsafe { &*(std::ptr::from_ref(hops) as *const [HopTelemetry]) }
    }
    /// A copy, of no more than there is.
    #[inline]
    pub fn duplicate(&self) -> Self {
        let mut copy = Self::default();
        copy.assign(self);
        copy
    }
    /// Becomes a copy of another.
    #[inline]
    pub fn assign(&mut self, other: &Self) {
        self.count = other.count;
        for (place, hop) in self.hops.iter_mut().zip(other.hops()) {
            place.write(*hop);
        }
    }
}

// SAFETY: R16: `count` is written, and as many hops; the others need no value.
unsafe impl engine::Attachment for Telemetry {
    #[inline]
    fn copy_to(&self, place: &mut MaybeUninit<Self>) {
        let place = place.as_mut_ptr();
        // SAFETY: R13: the place is valid for writes; its hops need no value beyond `count`.
        unsafe {
            (&raw mut (*place).count).write(self.count);
            let hops = (&raw mut (*place).hops).cast::<HopTelemetry>();
            std::ptr::copy_nonoverlapping(self.hops().as_ptr(), hops, self.hops().len());
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hops()).finish()
    }
}
