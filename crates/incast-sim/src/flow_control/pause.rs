//! Pause frames (IEEE 802.1Qbb): their content, and the pauses of the port that receives them.

use crate::packet::{Kind, Packet};
use incast_units::Time;
use std::collections::VecDeque;

/// The priority of pause frames: they pass no queue.
pub const NO_QUEUE: u8 = 8;

/// The content of a pause frame: IEEE 802.1Qbb's class-enable vector and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    /// Priorities that it names, one bit each.
    pub class_enable: u8,
    /// Those of them that pause; the others resume.
    pub paused: u8,
    /// How long the pauses last unless refreshed; `None`: until a resume.
    pub time: Option<Time>,
}

/// Times have 48 bits in a frame: more than four minutes.
const MOST_TIME: u64 = (1 << 48) - 1;

impl PauseFrame {
    /// The frame with this content.
    pub fn packet(self, node: u32, bytes: u16) -> Packet {
        // It belongs to no flow and is not routed.
        let mut packet = Packet::new(Kind::Pause, node, 0, u32::MAX, u32::MAX);
        let time = self.time.map_or(0, |time| time.ps().clamp(1, MOST_TIME));
        packet.control_mut().set_value(u64::from(self.class_enable) | u64::from(self.paused) << 8 | time << 16);
        packet.wire = bytes;
        packet.priority = NO_QUEUE;
        packet
    }

    /// Reads a pause frame.
    pub fn read(packet: &Packet) -> Self {
        let value = packet.control().value();
        let time = value >> 16;
        Self { class_enable: value as u8, paused: (value >> 8) as u8, time: (time > 0).then_some(Time::from_ps(time)) }
    }

    /// Priorities that resume.
    pub fn resumed(self) -> u8 {
        self.class_enable & !self.paused
    }
}

/// Received pauses of a port: those that take effect later, and those in effect.
#[derive(Clone, Debug, Default)]
pub struct ReceivedPauses {
    /// Frames that take effect later, by time.
    coming: VecDeque<(Time, PauseFrame)>,
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

impl ReceivedPauses {
    /// A frame takes effect later.
    pub fn defer(&mut self, at: Time, frame: PauseFrame) {
        self.coming.push_back((at, frame));
    }

    /// The next frame that takes effect by `now`.
    pub fn due(&mut self, now: Time) -> Option<PauseFrame> {
        self.coming.pop_front_if(|(at, _)| *at <= now).map(|(_, frame)| frame)
    }

    /// A frame takes effect. Returns when its pauses expire.
    pub fn apply(&mut self, now: Time, frame: PauseFrame) -> Option<Time> {
        let until = frame.time.map_or(Time::MAX, |time| now.saturating_add(time));
        for priority in (0..8u8).filter(|priority| frame.class_enable & 1 << priority != 0) {
            let pause = &mut self.pauses[usize::from(priority)];
            if frame.paused & 1 << priority == 0 {
                *pause = Pause::default();
            } else {
                *pause = Pause { since: pause.since.min(now), until };
            }
        }
        (frame.paused & frame.class_enable != 0 && until < Time::MAX).then_some(until)
    }

    /// Removes and returns the priorities whose pause expires by `now`.
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

    /// Since when a priority has been paused without interruption.
    pub fn since(&self, priority: u8) -> Option<Time> {
        Some(self.pauses[usize::from(priority)].since).filter(|since| *since < Time::MAX)
    }

    /// The link went down: clears all pauses.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_frame_survives_its_packet() {
        for time in [None, Some(Time::from_ps(1)), Some(Time::from_us(335))] {
            let frame = PauseFrame { class_enable: 0b1001, paused: 0b1000, time };
            assert_eq!(PauseFrame::read(&frame.packet(7, 64)), frame);
            assert_eq!(frame.resumed(), 1);
        }
    }

    #[test]
    fn pauses_expire_unless_refreshed() {
        let at = Time::from_us;
        let mut pauses = ReceivedPauses::default();
        let pause = |mask, time| PauseFrame { class_enable: mask, paused: mask, time: Some(at(time)) };
        assert_eq!(pauses.apply(at(1), pause(0b11, 5)), Some(at(6)));
        assert_eq!(pauses.apply(at(4), pause(0b01, 5)), Some(at(9)));
        assert_eq!((pauses.expire(at(6)), pauses.since(0), pauses.since(1)), (0b10, Some(at(1)), None));
        assert_eq!(pauses.apply(at(7), PauseFrame { class_enable: 1, paused: 0, time: None }), None);
        assert_eq!((pauses.expire(at(20)), pauses.since(0)), (0, None));
    }

    #[test]
    fn frames_take_effect_in_order() {
        let mut pauses = ReceivedPauses::default();
        let frame = |paused| PauseFrame { class_enable: 1, paused, time: None };
        pauses.defer(Time::from_us(2), frame(1));
        pauses.defer(Time::from_us(3), frame(0));
        assert_eq!(pauses.due(Time::from_us(1)), None);
        assert_eq!(pauses.due(Time::from_us(2)), Some(frame(1)));
        assert_eq!((pauses.due(Time::from_us(2)), pauses.due(Time::from_us(3))), (None, Some(frame(0))));
    }
}
