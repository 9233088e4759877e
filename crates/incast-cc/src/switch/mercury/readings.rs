//! What the paper leaves open: parameters, readings and their names (`docs/mercury.md`).

use crate::parameters::{Raw, Setting};
use incast_units::{Bytes, Time};

crate::choice! {
    /// M2: what sends notifications.
    pub enum Trigger {
        /// A data packet that enters a congested port.
        Enqueue = "enqueue",
        /// A timer: each flow that waits at a congested port.
        Periodic = "periodic",
    }
}

crate::choice! {
    /// M3: the state of a port while it is paused.
    pub enum DuringPause {
        /// The text: it enters Undetermined when PFC is triggered.
        Undetermined = "undetermined",
        /// The algorithm: nothing is set before it is resumed.
        Unchanged = "unchanged",
    }
}

crate::choice! {
    /// M4: what comes in during a pause.
    pub enum Received {
        /// What enters the paused priority.
        Priority = "priority",
        /// What enters the port.
        Port = "port",
    }
}

crate::choice! {
    /// M5: C of a window.
    pub enum Capacity {
        /// The rate of the port.
        Egress = "egress",
        /// The rate of the hosts.
        Host = "host",
    }
}

crate::choice! {
    /// M6: what a queue that decreases during T is.
    pub enum Decrease {
        /// One that is shorter at the end than at the beginning.
        End = "end",
        /// The same, and it was never longer in between.
        Throughout = "throughout",
    }
}

crate::choice! {
    /// M6: what starts T.
    pub enum TimerStart {
        /// Each end of a pause that leaves the port Undetermined.
        EachResume = "each-resume",
        /// The first one; T goes on through further pauses.
        FirstResume = "first-resume",
    }
}

crate::choice! {
    /// M8: how queue pairs between the same hosts share a window.
    pub enum Sharing {
        /// Each gets all of it.
        Whole = "whole",
        /// Those that wait at the port get equal parts.
        Split = "split",
    }
}

crate::choice! {
    /// M13: which queue pair of two hosts is notified.
    pub enum Notify {
        /// The one whose packet came last: the table keeps its number.
        Last = "last",
        /// Each, with an interval of its own.
        Each = "each",
    }
}

crate::choice! {
    /// M14: when the expiry of T is noticed.
    pub enum ExpiryCheck {
        /// When a packet leaves: a paused port keeps its state.
        Dequeue = "dequeue",
        /// When a packet enters, too.
        AnyPacket = "any-packet",
    }
}

crate::choice! {
    /// What becomes of the port's own ECN marks.
    pub enum Marks {
        /// There are none: notifications come from the switch.
        Off = "off",
        /// Determined ports mark.
        Determined = "determined",
        /// All do.
        Always = "always",
    }
}

/// The queue from which on a port may be congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The one from which the port marks: K, or Kmin.
    Marking,
    /// Bytes.
    Bytes(Bytes),
}

impl Setting for Threshold {
    const KIND: &'static str = "a size such as \"100KB\", or \"kmin\"";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if text == "kmin" => Ok(Self::Marking),
            _ => {
                Bytes::read(raw).map(Self::Bytes).map_err(|_| format!("found {raw}, expected {}", Self::KIND))
            }
        }
    }
    fn write(&self) -> Raw {
        match self {
            Self::Marking => Raw::Text("kmin".to_owned()),
            Self::Bytes(bytes) => bytes.write(),
        }
    }
}

crate::parameters! {
    /// Parameters of Mercury.
    pub struct Parameters {
        /// Thr: a port with a longer queue may be congested. "kmin" is where it would begin to mark; a port that never
        /// marks has its rate x base_rtt.
        threshold: Threshold = "\"kmin\"", |_| Threshold::Marking, "any size, or \"kmin\"", |_| true, "ours: the paper prints none; DCQCN's Kmin, so that both react to the same queue";
        /// T: time after which the state of an Undetermined port is looked at again.
        state_timer: Time = "5/6 base RTT", |path| path.base_rtt.mul_f64(5.0 / 6.0), "above 0", |t| *t > Time::ZERO, "the paper: 10us, at a base RTT of 12us";
        /// baseRTT of windows.
        base_rtt: Time = "base RTT", |path| path.base_rtt, "above 0", |t| *t > Time::ZERO, "the paper: one for all flows, known beforehand";
        /// A flow is notified by a port at most once in this time (M1); 0 by each packet.
        cnp_interval: Time = "base RTT", |path| path.base_rtt, "any time", |_| true, "ours: a sender reacts once per round trip; the paper prints none";
        /// What sends notifications (M2).
        cnp_trigger: Trigger = "\"enqueue\"", |_| Trigger::Enqueue, "\"enqueue\" or \"periodic\"", |_| true, "the paper: a flow that passes through";
        /// Period of the timer that sends notifications (M2).
        period: Time = "base RTT", |path| path.base_rtt, "above 0", |t| *t > Time::ZERO, "ours";
        /// The state of a port while it is paused (M3).
        during_pause: DuringPause = "\"undetermined\"", |_| DuringPause::Undetermined, "\"undetermined\" or \"unchanged\"", |_| true, "the paper's text; \"unchanged\" is its algorithm 1";
        /// What counts as received during a pause (M4).
        received: Received = "\"priority\"", |_| Received::Priority, "\"priority\" or \"port\"", |_| true, "ours: PFC pauses a priority";
        /// Bytes by which what came during a pause may exceed C x Tp in an Undetermined port. 0 is the paper's
        /// comparison, which turns on one packet where senders use exactly the link.
        tolerance: Bytes = "2 full packets", |path| Bytes::new(2 * u64::from(path.wire_mss)), "any size", |_| true, "ours: F1 + F2 = C in the paper's figure 3, and each may have a packet more in the pause";
        /// C of a window (M5).
        capacity: Capacity = "\"egress\"", |_| Capacity::Egress, "\"egress\" or \"host\"", |_| true, "the paper: the link bandwidth";
        /// What a queue that decreases during T is (M6).
        decrease: Decrease = "\"end\"", |_| Decrease::End, "\"end\" or \"throughout\"", |_| true, "ours";
        /// What starts T (M6).
        timer_start: TimerStart = "\"each-resume\"", |_| TimerStart::EachResume, "\"each-resume\" or \"first-resume\"", |_| true, "ours";
        /// Least window (M7); 0 is the paper's. Below 1 MSS nothing changes: a sender sends one packet at a time.
        min_window: Bytes = "1 MSS", |path| Bytes::new(path.mss.into()), "any size", |_| true, "ours";
        /// How queue pairs between the same hosts share a window (M8).
        window_sharing: Sharing = "\"whole\"", |_| Sharing::Whole, "\"whole\" or \"split\"", |_| true, "the paper: Win of source and destination";
        /// Registers of a port's flow table, in which hosts that collide are one flow (M12); 0 for an exact table.
        table_entries: u64 = "0", |_| 0, "0 to 65536", |n| *n <= 1 << 16, "ours; the paper has registers and prints no number";
        /// Which queue pair of two hosts is notified (M13).
        notify: Notify = "\"last\"", |_| Notify::Last, "\"last\" or \"each\"", |_| true, "ours: a notification needs a queue pair, and the paper's table has none";
        /// When the expiry of T is noticed (M14).
        expiry_check: ExpiryCheck = "\"dequeue\"", |_| ExpiryCheck::Dequeue, "\"dequeue\" or \"any-packet\"", |_| true, "the paper's algorithm 1";
        /// What becomes of the port's ECN marks: "determined" leaves them to Determined ports, for laws that need them.
        marks: Marks = "\"off\"", |_| Marks::Off, "\"off\", \"determined\" or \"always\"", |_| true, "the paper: the switch is congestion and notification point";
    }
}
