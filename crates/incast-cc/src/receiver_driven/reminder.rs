//! When the sender of a flow says again that there is one: for protocols whose receivers acknowledge whole flows.

use incast_units::Time;

/// Until anything was heard of the receiver it may not know of the flow, and each timeout says so. Once it knows, it is
/// the receiver's business what comes when; only its acknowledgement may have been lost, when all has been sent. What
/// else is heard does not shorten the doubling waits between such reminders.
#[derive(Clone, Debug)]
pub struct Reminder {
    heard: bool,
    /// The next one goes no earlier.
    not_before: Time,
    /// From that one to the one after it.
    wait: Time,
    most: Time,
}

/// Doublings after which the wait stays as it is, as retransmission timeouts have it.
const DOUBLINGS: u32 = 10;

impl Reminder {
    /// With nothing heard yet; `least` is the shortest wait.
    pub fn new(least: Time) -> Self {
        let most = least.saturating_mul(1 << DOUBLINGS);
        Self { heard: false, not_before: Time::ZERO, wait: least, most }
    }

    /// The receiver knows of the flow.
    pub fn on_heard(&mut self) {
        self.heard = true;
    }

    /// Nothing was heard for a timeout: whether a reminder goes. `all_sent` says that nothing is left to be sent for
    /// the first time.
    pub fn on_timeout(&mut self, now: Time, all_sent: bool) -> bool {
        if !self.heard {
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
        // Timeouts each 10 us, as what is heard starts their doubling afresh.
        let at = |us: &u64| reminder.on_timeout(Time::from_us(*us), true);
        let said: Vec<u64> = (100..1_000).step_by(10).filter(at).collect();
        assert_eq!(said, [100, 120, 160, 240, 400, 720]);
    }
}
