//! Mercury: the switch detects which of its ports are congested, also under pauses, and grants windows to the flows
//! there.
//!
//! Source: X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters", J. Cloud Computing
//! 2024, algorithms 1 (state-driven detection) and 2 (window-based notification).
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
//! The sender's half is the window's cap on each law (`granted_window.rs`) and DCQCN's `decrease_guard`. Readings M1 to
//! M15 and deviations are in `docs/mercury.md`. One queue pair is one flow here.

mod detection;
mod readings;
mod windows;

use super::flow_table::PacketCounts;
use crate::{
    Cnp, Path,
    feedback::CnpContent,
    parameters::{Condition, ParameterError, Raw},
};
use crate::{
    agent::{
        AgentInfo, Codepoint, Effects, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
    },
    marking::Marking,
};
use detection::Detection;
use incast_units::{Rate, Time};
use readings::{Capacity, Counted, ExpiryCheck, Marks, Notify, Parameters, Sharing, Threshold, Trigger};
use std::{collections::VecDeque, sync::Arc};
use windows::Windows;

/// Parameters and the rate of hosts.
#[derive(Clone, Debug)]
pub struct Constants {
    parameters: Parameters,
    host_rate: Rate,
}

/// An egress port. Fields that not every packet reads are in [`Detail`].
#[derive(Clone, Debug)]
struct Port {
    threshold: u64,
    /// Priorities that are paused, and those that are Undetermined, one bit each.
    paused: u8,
    undetermined: u8,
    /// The flow table exists. It is built from the queued packets when the queue passes the threshold: it is not
    /// read before.
    is_counted: bool,
    /// The flow table counts what has come since the last pause began, not what is queued (M15).
    since_pause: bool,
    detail: Box<Detail>,
}

/// State of an egress port that is used only while packets are queued there.
#[derive(Clone, Debug)]
struct Detail {
    windows: Windows,
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
    /// The next time at which the queues are inspected.
    look_at: Time,
    /// When the first of `delayed` leaves.
    send_at: Time,
    /// Notifications that the control plane has not yet sent, with the time at which each leaves, in order.
    delayed: VecDeque<(Time, Notification)>,
    /// Bytes of the last packet that caused a notification, while it may not be in its queue yet.
    announced: u64,
}

impl Port {
    /// Builds the flow table from the queued packets.
    #[cold]
    fn count(&mut self, index: u16, now: Time, switch: &impl SwitchView) {
        self.is_counted = true;
        for priority in 0..switch.priorities() {
            for packet in switch.waiting(index, priority) {
                self.detail.windows.add(&packet, priority, now);
            }
        }
    }

    /// A packet leaves a port with a flow table. The table is dropped when the queue is short and no entry has an
    /// interval running.
    #[inline(never)]
    fn remove(&mut self, packet: &PacketView, now: Time) {
        if self.since_pause {
            return;
        }
        let windows = &mut self.detail.windows;
        windows.remove(packet);
        // It is built again only after three quarters of the threshold have arrived, which bounds the cost per
        // packet.
        if windows.sum <= self.threshold / 4 && windows.quiet_until <= now {
            self.is_counted = false;
            windows.clear();
        }
    }

    /// T may have expired: decides whether each priority stays Undetermined.
    #[cold]
    fn expire(&mut self, view: &PortView, parameters: &Parameters) {
        let detection = &mut self.detail.detections[usize::from(view.priority)];
        if !detection.stays(view, self.threshold, parameters) {
            self.undetermined &= !(1 << view.priority);
        }
    }

    /// A packet enters a port with a paused or Undetermined priority.
    #[cold]
    fn watch(&mut self, view: &PortView, bytes: u32, parameters: &Parameters) {
        let bit = 1u8 << view.priority;
        for (priority, detection) in self.detail.detections.iter_mut().enumerate() {
            let (own, is_paused) = (priority == usize::from(view.priority), self.paused & 1 << priority != 0);
            detection.watch(view, bytes, own, is_paused, parameters);
        }
        if self.undetermined & bit != 0 && parameters.expiry_check == ExpiryCheck::AnyPacket {
            self.expire(view, parameters);
        }
    }
}

impl Mercury {
    /// A packet enters a port with a flow table: its sender may be notified.
    #[inline(never)]
    fn add(&mut self, view: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        let port = &mut self.ports[usize::from(view.port)];
        let entries = port.detail.windows.add(packet, view.priority, view.now);
        if view.queue_bytes <= port.threshold {
            return;
        }
        if self.constants.parameters.cnp_trigger == Trigger::Periodic {
            self.plan_look(view.now);
        } else if packet.is_data && port.undetermined & 1 << view.priority == 0 {
            self.notify(view, packet, entries, verdict);
        }
    }

    /// A port is congested: notifies the sender of the packet, at most once per interval.
    fn notify(
        &mut self,
        view: &PortView,
        packet: &PacketView,
        (pair, queue_pair): (usize, Option<usize>),
        verdict: &mut Verdict,
    ) {
        let parameters = &self.constants.parameters;
        let windows = &mut self.ports[usize::from(view.port)].detail.windows;
        let of_interval = match (&mut windows.queue_pairs, queue_pair) {
            (Some(table), Some(own)) if parameters.notify == Notify::Each => table.at(own),
            _ => windows.pairs.at(pair),
        };
        if view.now < of_interval.quiet_until {
            return;
        }
        let quiet_until = view.now.saturating_add(parameters.cnp_interval);
        of_interval.quiet_until = quiet_until;
        windows.quiet_until = windows.quiet_until.max(quiet_until);
        let window = windows.grant(windows.pairs.entry(pair), parameters);
        let cnp = Cnp::granting(window);
        if parameters.cnp_delay == Time::ZERO {
            verdict.notify = Some(cnp);
            self.announced = u64::from(packet.bytes);
        } else {
            let at = view.now.saturating_add(parameters.cnp_delay);
            self.send_at = self.send_at.min(at);
            self.delayed.push_back((at, Notification { flow: packet.flow, cnp }));
        }
    }

    /// Sends the notifications whose delay in the control plane is over.
    fn send_delayed(&mut self, now: Time, send: &mut dyn FnMut(Notification)) {
        self.send_at = Time::MAX;
        while let Some((at, notification)) = self.delayed.front() {
            if *at > now {
                self.send_at = *at;
                break;
            }
            send(*notification);
            self.delayed.pop_front();
        }
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

    /// Whether the table counts exactly what is queued at the port. The packet of the last notification may be in
    /// one and not yet in the other.
    fn agrees(&self, index: u16, switch: &impl SwitchView) -> bool {
        let port = &self.ports[usize::from(index)];
        let waits: u64 = (0..switch.priorities()).map(|priority| switch.queue_bytes(index, priority)).sum();
        let Windows { sum, pairs, .. } = &port.detail.windows;
        // The sum over a large table is too slow for each packet.
        let adds_up = pairs.capacity() > 256 || pairs.total() == *sum;
        !port.is_counted || port.since_pause || adds_up && (*sum == waits || *sum == waits + self.announced)
    }

    /// Schedules the next inspection of the queues, at a multiple of the period, if one is above the threshold.
    fn plan_look(&mut self, now: Time) {
        let period = self.constants.parameters.period.time();
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
        Condition::new("cnp_interval", "cnp_trigger", &["enqueue"]),
        Condition::new("period", "cnp_trigger", &["periodic"]),
        Condition::new("counted", "cnp_trigger", &["enqueue"]),
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
            ..Effects::default()
        }
    }
    fn install(constants: &Arc<Constants>, site: &Site<'_>) -> Self {
        let parameters = &constants.parameters;
        let keeps_targets = parameters.cnp_trigger == Trigger::Periodic;
        let tells_apart = parameters.window_sharing == Sharing::Split || parameters.notify == Notify::Each;
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
            since_pause: false,
            detail: Box::new(Detail {
                windows: Windows {
                    sum: 0,
                    pairs: match registers {
                        0 => PacketCounts::exact(keeps_targets),
                        _ => PacketCounts::merging(registers, keeps_targets),
                    },
                    queue_pairs: tells_apart.then(|| PacketCounts::exact(keeps_targets)),
                    quiet_until: Time::ZERO,
                    bdp: match parameters.capacity {
                        Capacity::Egress => setup.rate,
                        Capacity::Host => constants.host_rate,
                    }
                    .bytes_in(parameters.base_rtt)
                    .get(),
                },
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
            send_at: Time::MAX,
            delayed: VecDeque::new(),
            announced: 0,
        }
    }

    #[inline]
    fn on_enqueue(&mut self, view: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
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

    /// A port that is neither paused nor Undetermined needs no call until its queue passes the threshold, when its
    /// flow table is built.
    #[inline]
    fn skips_up_to(&self, port: u16) -> Option<u64> {
        let port = &self.ports[usize::from(port)];
        let watches = port.is_counted || port.paused | port.undetermined != 0 || self.marks != Marks::Off;
        (!watches).then_some(port.threshold)
    }

    #[inline]
    fn on_dequeue(&mut self, view: &PortView, packet: &PacketView, switch: &impl SwitchView, _verdict: &mut Verdict) {
        let port = &mut self.ports[usize::from(view.port)];
        if port.is_counted {
            port.remove(packet, view.now);
        }
        if port.since_pause
            && port.paused == 0
            && (0..switch.priorities()).all(|priority| switch.queue_bytes(view.port, priority) == 0)
        {
            port.since_pause = false;
            port.detail.windows.restart();
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
        let port = &mut self.ports[usize::from(view.port)];
        let bit = 1u8 << view.priority;
        port.paused |= bit;
        if self.constants.parameters.counted == Counted::Pause {
            port.is_counted = true;
            port.since_pause = true;
            port.detail.windows.restart();
        }
        let detection = &mut port.detail.detections[usize::from(view.priority)];
        if detection.pause(view, port.undetermined & bit != 0, &self.constants.parameters) {
            port.undetermined |= bit;
        }
    }

    fn on_resume(&mut self, view: &PortView) {
        let port = &mut self.ports[usize::from(view.port)];
        let bit = 1u8 << view.priority;
        port.paused &= !bit;
        let rate = port.detail.rate;
        let detection = &mut port.detail.detections[usize::from(view.priority)];
        if detection.resume(view, port.threshold, rate, &self.constants.parameters) {
            port.undetermined |= bit;
        } else {
            port.undetermined &= !bit;
        }
    }

    fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
        if self.send_at <= now {
            self.send_delayed(now, send);
        }
        if now < self.look_at {
            return;
        }
        let parameters = &self.constants.parameters;
        let send_at = now.saturating_add(parameters.cnp_delay);
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
            let windows = &port.detail.windows;
            let table = match &windows.queue_pairs {
                Some(table) if parameters.notify == Notify::Each => table,
                _ => &windows.pairs,
            };
            for target in table.waiting().filter_map(|waiting| table.target(waiting)) {
                let key = u64::from(target.flow.source) << 32 | u64::from(target.flow.destination);
                if let (true, Some(pair)) = (congested & 1 << target.priority != 0, windows.pairs.find(key)) {
                    let cnp = Cnp::granting(windows.grant(windows.pairs.entry(pair), parameters));
                    let notification = Notification { flow: target.flow, cnp };
                    if parameters.cnp_delay == Time::ZERO {
                        send(notification);
                    } else {
                        self.send_at = self.send_at.min(send_at);
                        self.delayed.push_back((send_at, notification));
                    }
                }
            }
        }
        if is_long {
            self.plan_look(now);
        }
    }

    fn next_timer(&self) -> Time {
        self.look_at.min(self.send_at)
    }
}

#[cfg(test)]
mod tests;
