//! Algorithm 1, state-driven detection: the state of a priority of a port, from a pause and the time after it.
//!
//! The states are bits of the port, which every packet reads; here is the data from which they follow. Equations
//! and readings: `docs/mercury.md`.

use super::readings::{Decrease, DuringPause, Parameters, Received, TimerStart};
use crate::agent::PortView;
use incast_units::{Rate, Time};

/// Detection state of one priority of a port.
#[derive(Clone, Debug, Default)]
pub struct Detection {
    /// When it was paused, and the bytes that have entered since.
    paused_at: Time,
    received: u64,
    /// When T expires, and the queue length when it began.
    expires: Time,
    began_with: u64,
    /// The queue has been longer since.
    rose: bool,
    /// T was started by a resume.
    resumed: bool,
}

impl Detection {
    fn start_timer(&mut self, now: Time, timer: Time, queue: u64) {
        (self.expires, self.began_with, self.rose) = (now.saturating_add(timer), queue, false);
    }

    fn has_decreased(&self, queue: u64, reading: Decrease) -> bool {
        queue < self.began_with && (reading == Decrease::End || !self.rose)
    }

    /// A pause begins. Returns whether the priority is Undetermined (M3).
    pub fn pause(&mut self, view: &PortView, is_undetermined: bool, parameters: &Parameters) -> bool {
        (self.paused_at, self.received) = (view.now, 0);
        let becomes = parameters.during_pause == DuringPause::Undetermined && !is_undetermined;
        if becomes {
            self.start_timer(view.now, parameters.state_timer.time(), view.queue_bytes);
        }
        is_undetermined || becomes
    }

    /// A packet of so many bytes enters the port: this priority (`own`) or another, while this one is paused or not.
    pub fn watch(&mut self, view: &PortView, bytes: u32, own: bool, is_paused: bool, parameters: &Parameters) {
        if is_paused && (own || parameters.received == Received::Port) {
            self.received += u64::from(bytes);
        }
        if own && view.queue_bytes + u64::from(bytes) > self.began_with {
            self.rose = true;
        }
    }

    /// `Q >= Thr and rxByte <= C Tp`, with some tolerance: the pause ends. Returns whether the priority is
    /// Undetermined for a time T.
    pub fn resume(&mut self, view: &PortView, threshold: u64, rate: Rate, parameters: &Parameters) -> bool {
        let sendable = rate.bytes_in(view.now.saturating_sub(self.paused_at)).get();
        let drains = self.received <= sendable.saturating_add(parameters.tolerance.get());
        if view.queue_bytes < threshold || !drains {
            self.resumed = false;
            return false;
        }
        if parameters.timer_start == TimerStart::EachResume || !self.resumed {
            self.resumed = true;
            self.start_timer(view.now, parameters.state_timer.time(), view.queue_bytes);
        }
        true
    }

    /// `Q >= Thr`, and the queue decreased during T: it is Undetermined and T may have expired. Returns whether it
    /// stays so.
    pub fn stays(&mut self, view: &PortView, threshold: u64, parameters: &Parameters) -> bool {
        if view.now < self.expires {
            return true;
        }
        let stays = view.queue_bytes >= threshold && self.has_decreased(view.queue_bytes, parameters.decrease);
        if stays {
            self.start_timer(view.now, parameters.state_timer.time(), view.queue_bytes);
        } else {
            self.resumed = false;
        }
        stays
    }
}
