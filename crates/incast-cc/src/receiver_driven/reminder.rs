//! When a sender announces its flow again: for protocols whose receivers acknowledge whole flows.

use incast_units::Time;

/// Until a message of the receiver has arrived, the announcement may be lost, and each timeout repeats it. After that
/// the receiver schedules the flow, and only its acknowledgement may be lost, when all has been sent. The waits between
/// such reminders double; other messages of the receiver do not shorten them.
#[derive(Clone, Debug)]
pub struct Reminder {
    received: bool,
    /// The next one goes no earlier.
    not_before: Time,
    /// From that one to the one after it.
    wait: Time,
    most: Time,
}

/// Doublings after which the wait stays as it is, as retransmission timeouts have it.
const DOUBLINGS: u32 = 10;

impl Reminder {
    /// Before any message of the receiver; `least` is the shortest wait.
    pub fn new(least: Time) -> Self {
        let most = least.saturating_mul(1 << DOUBLINGS);
        Self { received: false, not_before: Time::ZERO, wait: least, most }
    }

    /// A message of the receiver has arrived.
    pub fn on_heard(&mut self) {
        self.received = true;
    }

    /// Nothing arrived for a timeout: whether a reminder is sent. `all_sent`: nothing is left to be sent for the first
    /// time.
    pub fn on_timeout(&mut self, now: Time, all_sent: bool) -> bool {
        if !self.received {
            return true;
        }
        if !all_sent || now < self.not_before {
            return false;
        }
        self.wait = self.wait.saturating_mul(2).min(self.most);
        self.not_before = now.saturating_add(self.wait);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_until_something_is_heard_and_then_when_all_is_sent() {
        let mut reminder = Reminder::new(Time::from_us(10));
        assert!((1..9).all(|us| reminder.on_timeout(Time::from_us(us), false)));
        reminder.on_heard();
        assert!(!(10..90).any(|us| reminder.on_timeout(Time::from_us(us), false)));
        // Timeouts each 10 us, as an arriving message restarts their doubling.
        let at = |us: &u64| reminder.on_timeout(Time::from_us(*us), true);
        let said: Vec<u64> = (100..1_000).step_by(10).filter(at).collect();
        assert_eq!(said, [100, 120, 160, 240, 400, 720]);
    }
}
