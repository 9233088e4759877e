//! What the paper leaves open: parameters, readings and their names (`docs/mercury.md`).

use crate::parameters::{Period, Raw, Setting};
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
    /// M15: what the flow table counts.
    pub enum Counted {
        /// Algorithm 2: what is queued.
        Queued = "queued",
        /// The text: what was received since the port was paused, until its queues are empty.
        Pause = "pause",
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
            _ => Bytes::read(raw).map(Self::Bytes).map_err(|_| format!("found {raw}, expected {}", Self::KIND)),
        }
    }
    fn write(&self) -> Raw {
        match self {
            Self::Marking => Raw::Text("kmin".to_owned()),
            Self::Bytes(bytes) => bytes.write(),
        }
    }
}

crate::parameters!(Parameters {
    threshold: Threshold {
        doc: "Thr: a port with a longer queue may be congested. \"kmin\" is where it would begin to mark; a \
            port that never marks has its rate x base_rtt.",
        default: "\"kmin\"",
        value: |_| Threshold::Marking,
        allowed: "any size, or \"kmin\"",
        source: "ours: the paper prints none; DCQCN's Kmin, so that both react to the same queue"
    },
    state_timer: Period {
        doc: "T: time after which the state of an Undetermined port is looked at again.",
        default: "5/6 base RTT",
        value: |path| Period::of(path.base_rtt.mul_f64(5.0 / 6.0)),
        source: "the paper: 10us, at a base RTT of 12us"
    },
    base_rtt: Time {
        doc: "baseRTT of windows.",
        default: "base RTT",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "the paper: one for all flows, known beforehand"
    },
    cnp_interval: Time {
        doc: "A flow is notified by a port at most once in this time (M1); 0 by each packet.",
        default: "base RTT",
        value: |path| path.base_rtt,
        source: "ours: a sender reacts once per round trip; the paper prints none"
    },
    cnp_delay: Time {
        doc: "Delay of notifications in the switch's control plane. The window is that of the moment at which the \
            packet entered.",
        default: "0ns",
        value: |_| Time::ZERO,
        allowed: "at most 100ms",
        check: |t| *t <= Time::from_ms(100),
        source: "the paper: CNPs may be generated on the control plane; it prints no delay"
    },
    cnp_trigger: Trigger {
        doc: "What sends notifications (M2).",
        default: "\"enqueue\"",
        value: |_| Trigger::Enqueue,
        source: "the paper: a flow that passes through"
    },
    period: Period {
        doc: "Period of the timer that sends notifications (M2).",
        default: "base RTT",
        value: |path| Period::of(path.base_rtt),
        source: "ours"
    },
    during_pause: DuringPause {
        doc: "The state of a port while it is paused (M3).",
        default: "\"undetermined\"",
        value: |_| DuringPause::Undetermined,
        source: "the paper's text; \"unchanged\" is its algorithm 1"
    },
    received: Received {
        doc: "What counts as received during a pause (M4).",
        default: "\"priority\"",
        value: |_| Received::Priority,
        source: "ours: PFC pauses a priority"
    },
    tolerance: Bytes {
        doc: "Bytes by which what came during a pause may exceed C x Tp in an Undetermined port. 0 is the \
            paper's comparison, which turns on one packet where senders use exactly the link.",
        default: "2 full packets",
        value: |path| Bytes::new(2 * u64::from(path.wire_mss)),
        source: "ours: F1 + F2 = C in the paper's figure 3, and each may have a packet more in the pause"
    },
    capacity: Capacity {
        doc: "C of a window (M5).",
        default: "\"egress\"",
        value: |_| Capacity::Egress,
        source: "the paper: the link bandwidth"
    },
    decrease: Decrease {
        doc: "What a queue that decreases during T is (M6).",
        default: "\"end\"",
        value: |_| Decrease::End,
        source: "ours"
    },
    timer_start: TimerStart {
        doc: "What starts T (M6).",
        default: "\"each-resume\"",
        value: |_| TimerStart::EachResume,
        source: "ours"
    },
    min_window: Bytes {
        doc: "Least window (M7), in bytes on the link as all that are granted; 0 is the paper's. Below a full packet \
            nothing changes: a sender sends one packet at a time.",
        default: "a full packet",
        value: |path| Bytes::new(path.wire_mss.into()),
        source: "ours"
    },
    window_sharing: Sharing {
        doc: "How queue pairs between the same hosts share a window (M8).",
        default: "\"whole\"",
        value: |_| Sharing::Whole,
        source: "the paper: Win of source and destination"
    },
    table_entries: u64 {
        doc: "Registers of a port's flow table, in which hosts that collide are one flow (M12); 0 for an \
            exact table.",
        default: "0",
        value: |_| 0,
        allowed: "0 to 65536",
        check: |n| *n <= 1 << 16,
        source: "ours; the paper has registers and prints no number"
    },
    counted: Counted {
        doc: "What the flow table counts (M15): what is queued, or, at a port that was paused, what it received \
            since the last pause began, until its queues are empty.",
        default: "\"queued\"",
        value: |_| Counted::Queued,
        source: "the paper's algorithm 2, lines 1 to 8; its text records what is received \"when the PFC is triggered\""
    },
    notify: Notify {
        doc: "Which queue pair of two hosts is notified (M13).",
        default: "\"last\"",
        value: |_| Notify::Last,
        source: "ours: a notification needs a queue pair, and the paper's table has none"
    },
    expiry_check: ExpiryCheck {
        doc: "When the expiry of T is noticed (M14).",
        default: "\"dequeue\"",
        value: |_| ExpiryCheck::Dequeue,
        source: "the paper's algorithm 1"
    },
    marks: Marks {
        doc: "What becomes of the port's ECN marks: \"determined\" leaves them to Determined ports, for laws \
            that need them.",
        default: "\"off\"",
        value: |_| Marks::Off,
        source: "the paper: the switch is congestion and notification point"
    },
});
