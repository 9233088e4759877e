//! Mercury: the switch finds out which of its ports are congested in spite of pauses, and grants windows to the flows of those.
//!
//! Source: X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters", J. Cloud Computing 2024,
//! algorithms 1 (state-driven detection) and 2 (window-based notification).
//!
//! ```text
//!                        pause (M3)
//!   Determined ───────────────────────────▶ Undetermined ◀──┐ T expires, Q >= Thr and the queue fell during T
//!       ▲   ▲                                │   │     │    │
//!       │   └────────────────────────────────┘   │     └────┘
//!       │     T expires, Q < Thr or it did not   │ pause, then resume: Q >= Thr and rxByte <= C Tp
//!       └────────────────────────────────────────┘
//!         resume: Q < Thr, or rxByte > C Tp: more came during the pause than the port could have sent
//!
//!   a packet enters a Determined port with Q > Thr:  Win = C data_f / Sum x baseRTT, to its sender
//! ```
//!
//! The sender's half is the window's cap on each law (`sender/grant.rs`) and DCQCN's `decrease_guard`. Readings M1 to M14 and
//! deviations are in `docs/mercury.md`. One queue pair is one flow here.

use super::{
    AgentInfo, Effects, FlowAddress, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView,
    Verdict,
    flow_table::{Entry, Table, Told},
    red::Marking,
};
use crate::{
    Cnp, Path,
    feedback::CnpContent,
    parameters::{ParameterError, Raw, Setting},
    sender::Condition,
    switch::Codepoint,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

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
    pub enum Notified {
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
        /// Thr: a port with a longer queue may be congested. "kmin" is where it would begin to mark; a port that never marks has
        /// its rate x base_rtt.
        threshold: Threshold = "\"kmin\"", |_| Threshold::Marking, "any size, or \"kmin\"", |_| true, "ours: the paper prints none; DCQCN's Kmin, so that both react to the same queue";
        /// T: time after which the state of an Undetermined port is looked at again.
        state_timer: Time = "5/6 base RTT", |path| path.base_rtt.mul_f64(5.0 / 6.0), "above 0", |t| *t > Time::ZERO, "the paper: 10us, at a base RTT of 12us";
        /// baseRTT of windows.
        base_rtt: Time = "base RTT", |path| path.base_rtt, "above 0", |t| *t > Time::ZERO, "the paper: one for all flows, known beforehand";
        /// A flow is notified by a port at most once in this time (M1); 0 by each packet.
        cnp_interval: Time = "base RTT", |path| path.base_rtt, "any time", |_| true, "ours: a sender reacts once per round trip; the paper prints none";
        /// What sends notifications (M2).
        trigger: Trigger = "\"enqueue\"", |_| Trigger::Enqueue, "\"enqueue\" or \"periodic\"", |_| true, "the paper: a flow that passes through";
        /// Period of the timer that sends notifications (M2).
        period: Time = "base RTT", |path| path.base_rtt, "above 0", |t| *t > Time::ZERO, "ours";
        /// The state of a port while it is paused (M3).
        during_pause: DuringPause = "\"undetermined\"", |_| DuringPause::Undetermined, "\"undetermined\" or \"unchanged\"", |_| true, "the paper's text; \"unchanged\" is its algorithm 1";
        /// What counts as received during a pause (M4).
        received: Received = "\"priority\"", |_| Received::Priority, "\"priority\" or \"port\"", |_| true, "ours: PFC pauses a priority";
        /// Bytes by which what came during a pause may exceed C x Tp in an Undetermined port. 0 is the paper's comparison, which
        /// turns on one packet where senders use exactly the link.
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
        sharing: Sharing = "\"whole\"", |_| Sharing::Whole, "\"whole\" or \"split\"", |_| true, "the paper: Win of source and destination";
        /// Registers of a port's flow table, in which hosts that collide are one flow (M12); 0 for an exact table.
        table_entries: u64 = "0", |_| 0, "0 to 65536", |n| *n <= 1 << 16, "ours; the paper has registers and prints no number";
        /// Which queue pair of two hosts is notified (M13).
        notified: Notified = "\"last\"", |_| Notified::Last, "\"last\" or \"each\"", |_| true, "ours: a notification needs a queue pair, and the paper's table has none";
        /// When the expiry of T is noticed (M14).
        expiry_check: ExpiryCheck = "\"dequeue\"", |_| ExpiryCheck::Dequeue, "\"dequeue\" or \"any-packet\"", |_| true, "the paper's algorithm 1";
        /// What becomes of the port's ECN marks: "determined" leaves them to Determined ports, for laws that need them.
        marks: Marks = "\"off\"", |_| Marks::Off, "\"off\", \"determined\" or \"always\"", |_| true, "the paper: the switch is congestion and notification point";
    }
}

/// Parameters, and the rate of hosts.
#[derive(Clone, Debug)]
pub struct Constants {
    parameters: Parameters,
    host_rate: Rate,
}

/// `Rate = C data_f / Sum; Win = Rate x baseRTT` (algorithm 2), C baseRTT being `bdp` bytes. At most what 32 bits hold.
fn window(bdp: u64, data: u64, sum: u64) -> u64 {
    let bytes = u128::from(bdp) * u128::from(data) / u128::from(sum.max(1));
    bytes.min(u32::MAX.into()) as u64
}

/// What detection keeps of one priority of a port.
#[derive(Clone, Debug, Default)]
struct Detection {
    /// When it was paused, and what came since.
    paused_at: Time,
    received: u64,
    /// When T expires, and the queue when it began.
    expires: Time,
    began_with: u64,
    /// The queue was longer since.
    rose: bool,
    /// T began with a resume.
    resumed: bool,
}

impl Detection {
    fn start_timer(&mut self, now: Time, timer: Time, queue: u64) {
        (self.expires, self.began_with, self.rose) = (now.saturating_add(timer), queue, false);
    }

    fn has_decreased(&self, queue: u64, reading: Decrease) -> bool {
        queue < self.began_with && (reading == Decrease::End || !self.rose)
    }
}

/// An egress port: what each packet needs, and apart from it the rest.
#[derive(Clone, Debug)]
struct Port {
    threshold: u64,
    /// Priorities that are paused, and those that are Undetermined, one bit each.
    paused: u8,
    undetermined: u8,
    /// The flow table is kept. It is made from what waits when the queue passes the threshold: before, nobody asks it.
    is_counted: bool,
    detail: Box<Detail>,
}

/// Of an egress port, what matters while packets wait there.
#[derive(Clone, Debug)]
struct Detail {
    /// Bytes of the flow table.
    sum: u64,
    pairs: Table,
    /// Queue pairs, where they are told apart.
    queue_pairs: Option<Table>,
    /// No entry keeps quiet longer than this.
    quiet_until: Time,
    /// C baseRTT of windows, in bytes.
    bdp: u64,
    rate: Rate,
    marking: Marking,
    detections: Vec<Detection>,
}

/// The agent of one switch.
#[derive(Clone, Debug)]
pub struct Mercury {
    ports: Vec<Port>,
    marks: Marks,
    constants: Arc<Constants>,
    /// When the queues are looked at.
    look_at: Time,
    /// The last packet that was notified of may not be in its queue yet: its bytes.
    announced: u64,
}

/// Whose bytes a packet's are (source and destination): acknowledgements and control packets into one host are one flow.
#[inline]
fn pair(packet: &PacketView) -> u64 {
    let source = if packet.is_data { packet.flow.source } else { u32::MAX };
    u64::from(source) << 32 | u64::from(packet.flow.destination)
}

fn queue_pair(flow: &FlowAddress) -> u64 {
    u64::from(flow.source) << 32 | u64::from(flow.sequence)
}

impl Detail {
    /// A packet waits. The entries of its pair, and of its queue pair where those are told apart.
    fn add(&mut self, packet: &PacketView, priority: u8, now: Time) -> (usize, Option<usize>) {
        let bytes = u64::from(packet.bytes);
        self.sum += bytes;
        let index = self.pairs.find_or_make(pair(packet), now);
        self.pairs.at(index).data += bytes;
        if !packet.is_data {
            return (index, None);
        }
        let told = Told { flow: packet.flow, priority };
        self.pairs.tell(index, told);
        let Some(table) = &mut self.queue_pairs else { return (index, None) };
        let own = table.find_or_make(queue_pair(&packet.flow), now);
        table.tell(own, told);
        let entry = table.at(own);
        self.pairs.at(index).members += u32::from(entry.data == 0);
        entry.data += bytes;
        (index, Some(own))
    }

    /// A packet does not wait any longer.
    fn remove(&mut self, packet: &PacketView) {
        let bytes = u64::from(packet.bytes);
        let index = self.pairs.find(pair(packet));
        debug_assert!(index.is_some() && bytes <= self.sum, "{packet:?} leaves and had not come");
        let Some(index) = index else { return };
        self.sum = self.sum.saturating_sub(bytes);
        let entry = self.pairs.at(index);
        debug_assert!(bytes <= entry.data, "{bytes} of {} bytes of a flow leave", entry.data);
        entry.data = entry.data.saturating_sub(bytes);
        if let (Some(table), true) = (&mut self.queue_pairs, packet.is_data)
            && let Some(own) = table.find(queue_pair(&packet.flow))
        {
            let own = table.at(own);
            own.data = own.data.saturating_sub(bytes);
            let is_gone = own.data == 0;
            let entry = self.pairs.at(index);
            entry.members = entry.members.saturating_sub(is_gone.into());
        }
    }

    /// Forgets the flow table.
    fn clear(&mut self) {
        self.sum = 0;
        self.pairs.clear();
        if let Some(table) = &mut self.queue_pairs {
            table.clear();
        }
    }

    /// What a pair is granted.
    fn grant(&self, pair: &Entry, parameters: &Parameters) -> u64 {
        let whole = window(self.bdp, pair.data, self.sum);
        let own = match parameters.sharing {
            Sharing::Whole => whole,
            Sharing::Split => whole / u64::from(pair.members.max(1)),
        };
        own.max(parameters.min_window.get())
    }
}

impl Port {
    /// Makes the flow table of what waits.
    #[cold]
    fn count(&mut self, index: u16, now: Time, switch: &impl SwitchView) {
        self.is_counted = true;
        for priority in 0..switch.priorities() {
            for packet in switch.waiting(index, priority) {
                self.detail.add(&packet, priority, now);
            }
        }
    }

    /// A packet leaves a port with a flow table, which goes when little waits and no entry has to keep quiet.
    #[inline(never)]
    fn remove(&mut self, packet: &PacketView, now: Time) {
        self.detail.remove(packet);
        // To be made again it takes three quarters of the threshold: that many packets pay for it.
        if self.detail.sum <= self.threshold / 4 && self.detail.quiet_until <= now {
            self.is_counted = false;
            self.detail.clear();
        }
    }

    /// T has expired: does a priority go on being Undetermined?
    #[cold]
    fn expire(&mut self, view: &PortView, parameters: &Parameters) {
        let detection = &mut self.detail.detections[usize::from(view.priority)];
        if view.now < detection.expires {
            return;
        }
        let stays = view.queue_bytes >= self.threshold
            && detection.has_decreased(view.queue_bytes, parameters.decrease);
        if stays {
            detection.start_timer(view.now, parameters.state_timer, view.queue_bytes);
        } else {
            self.undetermined &= !(1 << view.priority);
            detection.resumed = false;
        }
    }

    /// A packet enters a port some priority of which is paused or Undetermined.
    #[cold]
    fn watch(&mut self, view: &PortView, bytes: u32, parameters: &Parameters) {
        let bit = 1u8 << view.priority;
        for (priority, detection) in self.detail.detections.iter_mut().enumerate() {
            let own = priority == usize::from(view.priority);
            if self.paused & 1 << priority != 0 && (own || parameters.received == Received::Port) {
                detection.received += u64::from(bytes);
            }
            if own && view.queue_bytes + u64::from(bytes) > detection.began_with {
                detection.rose = true;
            }
        }
        if self.undetermined & bit != 0 && parameters.expiry_check == ExpiryCheck::AnyPacket {
            self.expire(view, parameters);
        }
    }
}

impl Mercury {
    /// A packet enters a port with a flow table, and may have its sender notified.
    #[inline(never)]
    fn add(&mut self, view: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        let port = &mut self.ports[usize::from(view.port)];
        let entries = port.detail.add(packet, view.priority, view.now);
        if view.queue_bytes <= port.threshold {
            return;
        }
        if self.constants.parameters.trigger == Trigger::Periodic {
            self.plan_look(view.now);
        } else if packet.is_data && port.undetermined & 1 << view.priority == 0 {
            self.notify(view, packet, entries, verdict);
        }
    }

    /// A port is congested: notifies the sender of the packet, unless it was lately.
    fn notify(
        &mut self,
        view: &PortView,
        packet: &PacketView,
        (pair, queue_pair): (usize, Option<usize>),
        verdict: &mut Verdict,
    ) {
        let parameters = &self.constants.parameters;
        let detail = &mut *self.ports[usize::from(view.port)].detail;
        let of_interval = match (&mut detail.queue_pairs, queue_pair) {
            (Some(table), Some(own)) if parameters.notified == Notified::Each => table.at(own),
            _ => detail.pairs.at(pair),
        };
        if view.now < of_interval.quiet_until {
            return;
        }
        let quiet_until = view.now.saturating_add(parameters.cnp_interval);
        of_interval.quiet_until = quiet_until;
        detail.quiet_until = detail.quiet_until.max(quiet_until);
        let window = detail.grant(detail.pairs.entry(pair), parameters);
        verdict.notify = Some(Cnp::granting(window));
        self.announced = u64::from(packet.bytes);
    }

    /// Marks a packet that enters, in place of its port.
    #[inline(never)]
    fn mark(&self, view: &PortView, verdict: &mut Verdict) {
        let port = &self.ports[usize::from(view.port)];
        let marks = self.marks == Marks::Always || port.undetermined & 1 << view.priority == 0;
        if marks && port.detail.marking.mark(view.queue_bytes, || view.uniform()) {
            verdict.mark = Codepoint::CongestionExperienced;
        }
    }

    /// What waits at a port is what its table has; a packet that was notified of may be on its way between the two.
    fn agrees(&self, index: u16, switch: &impl SwitchView) -> bool {
        let port = &self.ports[usize::from(index)];
        let waits: u64 = (0..switch.priorities()).map(|priority| switch.queue_bytes(index, priority)).sum();
        let Detail { sum, pairs, .. } = &*port.detail;
        // To add up a large table each time would take too long.
        let adds_up = pairs.capacity() > 256 || pairs.total() == *sum;
        !port.is_counted || adds_up && (*sum == waits || *sum == waits + self.announced)
    }

    /// Sees to it that a queue above the threshold is looked at, at a multiple of the period.
    fn plan_look(&mut self, now: Time) {
        let period = self.constants.parameters.period;
        if self.look_at == Time::MAX {
            let next = now.ps() / period.ps() + 1;
            self.look_at = Time::from_ps(next.saturating_mul(period.ps()));
        }
    }
}

impl SwitchAgent for Mercury {
    type Parameters = Arc<Constants>;
    const INFO: AgentInfo = AgentInfo {
        name: "mercury",
        title: "Mercury",
        source: "He et al., J. Cloud Computing 2024",
        parameters: Parameters::TABLE,
        marks: true,
        sender: &[("in_flight", "bdp"), ("decrease_guard", "cnp-interval")],
        by_port: true,
    };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("cnp_interval", "trigger", &["enqueue"]),
        Condition::new("period", "trigger", &["periodic"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let parameters = Parameters::resolve(path, given)?;
        Ok(Arc::new(Constants { parameters, host_rate: path.rate }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn effects(constants: &Arc<Constants>) -> Effects {
        let Parameters { threshold, marks, .. } = constants.parameters;
        Effects {
            reads_thresholds: threshold == Threshold::Marking || marks != Marks::Off,
            reads_pauses: true,
            marks: marks != Marks::Off,
            undetermined: false,
            notifies: CnpContent::Windows,
        }
    }
    fn install(constants: &Arc<Constants>, site: &Site<'_>) -> Self {
        let parameters = &constants.parameters;
        let keeps_told = parameters.trigger == Trigger::Periodic;
        let tells_apart = parameters.sharing == Sharing::Split || parameters.notified == Notified::Each;
        let registers = parameters.table_entries as usize;
        let ports = site.ports.iter().map(|setup| Port {
            threshold: match (parameters.threshold, setup.marking) {
                (Threshold::Bytes(bytes), _) => bytes.get(),
                (Threshold::Marking, Marking::Step { at }) => at,
                (Threshold::Marking, Marking::Red { min, .. }) => min,
                (Threshold::Marking, Marking::Off) => setup.rate.bytes_in(parameters.base_rtt).get(),
            },
            paused: 0,
            undetermined: 0,
            is_counted: false,
            detail: Box::new(Detail {
                sum: 0,
                pairs: match registers {
                    0 => Table::exact(keeps_told),
                    _ => Table::merging(registers, keeps_told),
                },
                queue_pairs: tells_apart.then(|| Table::exact(keeps_told)),
                quiet_until: Time::ZERO,
                bdp: match parameters.capacity {
                    Capacity::Egress => setup.rate,
                    Capacity::Host => constants.host_rate,
                }
                .bytes_in(parameters.base_rtt)
                .get(),
                rate: setup.rate,
                marking: setup.marking,
                detections: vec![Detection::default(); usize::from(site.priorities)],
            }),
        });
        Self {
            ports: ports.collect(),
            marks: parameters.marks,
            constants: Arc::clone(constants),
            look_at: Time::MAX,
            announced: 0,
        }
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        view: &PortView,
        packet: &PacketView,
        switch: &impl SwitchView,
        verdict: &mut Verdict,
    ) {
        debug_assert!(self.agrees(view.port, switch), "{:?}", self.ports[usize::from(view.port)]);
        let port = &mut self.ports[usize::from(view.port)];
        if (port.paused | port.undetermined) != 0 {
            port.watch(view, packet.bytes, &self.constants.parameters);
        }
        if !port.is_counted && view.queue_bytes > port.threshold {
            port.count(view.port, view.now, switch);
        }
        let is_counted = port.is_counted;
        if self.marks != Marks::Off && packet.ecn_capable {
            self.mark(view, verdict);
        }
        if is_counted {
            self.add(view, packet, verdict);
        }
    }

    /// A port that is neither paused nor Undetermined, and has no flow table, gets one when its queue passes the threshold.
    #[inline]
    fn indifferent_up_to(&self, port: u16) -> Option<u64> {
        let port = &self.ports[usize::from(port)];
        let watches = port.is_counted || port.paused | port.undetermined != 0 || self.marks != Marks::Off;
        (!watches).then_some(port.threshold)
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        view: &PortView,
        packet: &PacketView,
        _switch: &impl SwitchView,
        _verdict: &mut Verdict,
    ) {
        let port = &mut self.ports[usize::from(view.port)];
        if port.is_counted {
            port.remove(packet, view.now);
        }
        if port.undetermined & 1 << view.priority != 0 {
            port.expire(view, &self.constants.parameters);
        }
    }

    fn on_drop(&mut self, view: &PortView, packet: &PacketView) {
        let port = &mut self.ports[usize::from(view.port)];
        if port.is_counted {
            port.remove(packet, view.now);
        }
    }

    fn on_pause(&mut self, view: &PortView) {
        let parameters = &self.constants.parameters;
        let port = &mut self.ports[usize::from(view.port)];
        let bit = 1u8 << view.priority;
        let detection = &mut port.detail.detections[usize::from(view.priority)];
        (detection.paused_at, detection.received) = (view.now, 0);
        port.paused |= bit;
        if parameters.during_pause == DuringPause::Undetermined && port.undetermined & bit == 0 {
            port.undetermined |= bit;
            detection.start_timer(view.now, parameters.state_timer, view.queue_bytes);
        }
    }

    fn on_resume(&mut self, view: &PortView) {
        let parameters = &self.constants.parameters;
        let port = &mut self.ports[usize::from(view.port)];
        let bit = 1u8 << view.priority;
        let detection = &mut port.detail.detections[usize::from(view.priority)];
        port.paused &= !bit;
        let sendable = port.detail.rate.bytes_in(view.now.saturating_sub(detection.paused_at)).get();
        let drains = detection.received <= sendable.saturating_add(parameters.tolerance.get());
        if view.queue_bytes < port.threshold || !drains {
            port.undetermined &= !bit;
            detection.resumed = false;
            return;
        }
        port.undetermined |= bit;
        if parameters.timer_start == TimerStart::EachResume || !detection.resumed {
            detection.resumed = true;
            detection.start_timer(view.now, parameters.state_timer, view.queue_bytes);
        }
    }

    fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
        let parameters = &self.constants.parameters;
        self.look_at = Time::MAX;
        let mut is_long = false;
        for (index, port) in self.ports.iter_mut().enumerate() {
            let long = (0..switch.priorities())
                .filter(|priority| switch.queue_bytes(index as u16, *priority) > port.threshold)
                .fold(0u8, |mask, priority| mask | 1 << priority);
            is_long |= long != 0;
            let congested = long & !port.undetermined;
            if congested == 0 {
                continue;
            }
            if !port.is_counted {
                port.count(index as u16, now, switch);
            }
            let detail = &*port.detail;
            let table = match &detail.queue_pairs {
                Some(table) if parameters.notified == Notified::Each => table,
                _ => &detail.pairs,
            };
            for told in table.waiting().filter_map(|waiting| table.told(waiting)) {
                let key = u64::from(told.flow.source) << 32 | u64::from(told.flow.destination);
                if let (true, Some(pair)) = (congested & 1 << told.priority != 0, detail.pairs.find(key)) {
                    let cnp = Cnp::granting(detail.grant(detail.pairs.entry(pair), parameters));
                    send(Notification { flow: told.flow, cnp });
                }
            }
        }
        if is_long {
            self.plan_look(now);
        }
    }

    fn next_timer(&self) -> Time {
        self.look_at
    }
}

#[cfg(test)]
mod tests;
