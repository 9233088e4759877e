//! Pause frames: what one end of a link asks of the other, and what the other makes of it.

use crate::fabric::packet::{Kind, Packet};
use incast_units::Time;
use std::collections::VecDeque;

/// The priority of pause frames: that of no queue.
pub const NO_QUEUE: u8 = 8;

/// What a pause frame says: IEEE 802.1Qbb's class-enable vector and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Priorities that it is about, one bit each.
    pub about: u8,
    /// Those of them that must pause; the others may go on.
    pub paused: u8,
    /// For how long, unless told again; `None` until told otherwise.
    pub time: Option<Time>,
}

/// Times have 48 bits in a frame: more than four minutes.
const MOST_TIME: u64 = (1 << 48) - 1;

impl Notice {
    /// The frame that says it.
    pub fn packet(self, node: u32, bytes: u16) -> Packet {
        // It belongs to no flow and is not routed.
        let mut packet = Packet::new(Kind::Pause, node, 0, u32::MAX, u32::MAX);
        let time = self.time.map_or(0, |time| time.ps().clamp(1, MOST_TIME));
        packet.control_mut().set_value(u64::from(self.about) | u64::from(self.paused) << 8 | time << 16);
        packet.wire = bytes;
        packet.priority = NO_QUEUE;
        packet
    }

    /// What a pause frame says.
    pub fn read(packet: &Packet) -> Self {
        let value = packet.control().value();
        let time = value >> 16;
        Self {
            about: value as u8,
            paused: (value >> 8) as u8,
            time: (time > 0).then_some(Time::from_ps(time)),
        }
    }

    /// Priorities that may go on.
    pub fn resumed(self) -> u8 {
        self.about & !self.paused
    }
}

/// What a port has been told: until it takes effect, and until it expires.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// With the time at which it takes effect, in order.
    coming: VecDeque<(Time, Notice)>,
    /// By priority.
    pauses: [Pause; 8],
}

/// A pause that is in effect.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Time,
    until: Time,
}

impl Default for Pause {
    fn default() -> Self {
        Self { since: Time::MAX, until: Time::MAX }
    }
}

impl Heard {
    /// A notice takes effect later.
    pub fn put_off(&mut self, at: Time, notice: Notice) {
        self.coming.push_back((at, notice));
    }

    /// The next notice that takes effect by `now`.
    pub fn due(&mut self, now: Time) -> Option<Notice> {
        self.coming.pop_front_if(|(at, _)| *at <= now).map(|(_, notice)| notice)
    }

    /// A notice takes effect; returns when its pause expires.
    pub fn apply(&mut self, now: Time, notice: Notice) -> Option<Time> {
        let until = notice.time.map_or(Time::MAX, |time| now.saturating_add(time));
        for priority in (0..8u8).filter(|priority| notice.about & 1 << priority != 0) {
            let pause = &mut self.pauses[usize::from(priority)];
            if notice.paused & 1 << priority == 0 {
                *pause = Pause::default();
            } else {
                *pause = Pause { since: pause.since.min(now), until };
            }
        }
        (notice.paused & notice.about != 0 && until < Time::MAX).then_some(until)
    }

    /// Priorities whose pause expires by `now`; they are forgotten.
    pub fn expire(&mut self, now: Time) -> u8 {
        let mut mask = 0;
        for (priority, pause) in self.pauses.iter_mut().enumerate() {
            if pause.until <= now {
                *pause = Pause::default();
                mask |= 1 << priority;
            }
        }
        mask
    }

    /// Since when a priority has been paused without a break.
    pub fn since(&self, priority: u8) -> Option<Time> {
        Some(self.pauses[usize::from(priority)].since).filter(|since| *since < Time::MAX)
    }

    /// The link went down: nothing of it counts any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_what_was_meant() {
        for time in [None, Some(Time::from_ps(1)), Some(Time::from_us(335))] {
            let notice = Notice { about: 0b1001, paused: 0b1000, time };
            assert_eq!(Notice::read(&notice.packet(7, 64)), notice);
            assert_eq!(notice.resumed(), 1);
        }
    }

    #[test]
    fn pauses_expire_unless_refreshed() {
        let at = Time::from_us;
        let mut heard = Heard::default();
        let pause = |mask, time| Notice { about: mask, paused: mask, time: Some(at(time)) };
        assert_eq!(heard.apply(at(1), pause(0b11, 5)), Some(at(6)));
        assert_eq!(heard.apply(at(4), pause(0b01, 5)), Some(at(9)));
        assert_eq!((heard.expire(at(6)), heard.since(0), heard.since(1)), (0b10, Some(at(1)), None));
        assert_eq!(heard.apply(at(7), Notice { about: 1, paused: 0, time: None }), None);
        assert_eq!((heard.expire(at(20)), heard.since(0)), (0, None));
    }

    #[test]
    fn notices_take_effect_in_their_order() {
        let mut heard = Heard::default();
        let notice = |paused| Notice { about: 1, paused, time: None };
        heard.put_off(Time::from_us(2), notice(1));
        heard.put_off(Time::from_us(3), notice(0));
        assert_eq!(heard.due(Time::from_us(1)), None);
        assert_eq!(heard.due(Time::from_us(2)), Some(notice(1)));
        assert_eq!((heard.due(Time::from_us(2)), heard.due(Time::from_us(3))), (None, Some(notice(0))));
    }
}
