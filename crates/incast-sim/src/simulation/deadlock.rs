//! Ports that wait for each other in a cycle: deadlocks of flow control, found by inspecting the fabric between
//! windows.
//!
//! A paused egress queue waits for the switch that paused it, whose ingress is full of packets that wait in egress
//! queues of that switch. Where these are all paused themselves, and so on, and nothing has moved for long enough,
//! nothing ever will. Inspections are at fixed simulated times, so that results do not depend on threads.

use super::{
    build::Plan,
    domain::{Domain, Node},
    outcome::{Deadlock, WaitingQueue},
};
use crate::{
    engine::executor::Finding,
    flow_control::pfc::Rules,
    settings::Settings,
    topology::{PortEnd, Topology},
};
use incast_units::{Bytes, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Inspections in the time after which a cycle without movement is a deadlock.
const INSPECTIONS: u64 = 10;

/// The least time between inspections: each costs a visit to every node.
const LEAST_EVERY: Time = Time::from_us(1);

/// What a paused queue waits for.
#[derive(Debug)]
struct Wait {
    since: Time,
    /// Egress queues of the next switch, of the same priority or another virtual channel of it.
    on: Vec<WaitingQueue>,
}

/// A pause of a port by a neighbour that has no reason for it, as first found.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since: Time,
    /// Changes if there has been a reason since.
    reasons: u32,
    /// When nothing can end it any more.
    due: Time,
    counted: bool,
}

/// See the module.
pub struct DeadlockDetector<'a> {
    plan: &'a Plan,
    topology: &'a Topology,
    settings: &'a Settings,
    after: Time,
    /// Queues on cycles at the last inspection.
    known: BTreeSet<WaitingQueue>,
    /// Pauses without a reason at the last inspection.
    idle: BTreeMap<WaitingQueue, Idle>,
    /// Cycles found so far.
    pub cycles: u64,
    /// Pauses that had no reason for as long as a deadlock takes.
    pub stranded: u64,
    /// The deadlock that ended the run.
    pub found: Option<Deadlock>,
}

impl<'a> DeadlockDetector<'a> {
    /// Finds deadlocks in which nothing has moved for `after`.
    pub fn new(plan: &'a Plan, topology: &'a Topology, settings: &'a Settings, after: Time) -> Self {
        Self {
            plan,
            topology,
            settings,
            after,
            known: BTreeSet::new(),
            idle: BTreeMap::new(),
            cycles: 0,
            stranded: 0,
            found: None,
        }
    }

    /// Time between two inspections.
    pub fn every(&self) -> Time {
        Time::from_ps(self.after.ps() / INSPECTIONS).max(LEAST_EVERY)
    }

    /// Inspects all nodes at a time.
    pub fn inspect(&mut self, now: Time, domains: &[&Domain<'_>]) -> Finding {
        let soon = self.count_stranded(now, domains);
        let waits = self.waits(domains);
        if waits.is_empty() {
            self.known.clear();
            return soon.map_or(Finding::Calm, Finding::Busy);
        }
        self.count(&waits);
        let limit = now.saturating_sub(self.after);
        let stuck = stuck(&waits, |wait| wait.since <= limit);
        let Some(first) = stuck.iter().next() else {
            let later = waits.values().filter(|wait| wait.since > limit).map(|wait| wait.since);
            let later = later.min().map(|since| since.saturating_add(self.after));
            return Finding::Busy(later.into_iter().chain(soon).min().unwrap_or(Time::MAX));
        };
        let cycle = cycle(&waits, &stuck, *first);
        let since = cycle.iter().map(|queue| waits[queue].since).max().unwrap_or(now);
        self.found = Some(Deadlock { at: now, since, cycle });
        Finding::Stop
    }

    /// Counts ports that a neighbour has kept paused for long without a reason: it holds none of their packets, or
    /// its resume was lost. Nothing will end such a pause. A resume on its way is not lost yet. Returns the time of the
    /// next candidate.
    fn count_stranded(&mut self, now: Time, domains: &[&Domain<'_>]) -> Option<Time> {
        let mut idle = BTreeMap::new();
        for (queue, since) in paused(domains) {
            let Some(end) = self.plan.ports.end(queue.node, queue.port) else { continue };
            let Some(reasons) = self.without_reason(domains, queue, end) else { continue };
            let before = self.idle.get(&queue).copied();
            let before = before.filter(|idle| (idle.since, idle.reasons) == (since, reasons));
            // The nodes may be a window ahead of this inspection.
            let seen = now.saturating_add(self.settings.lookahead);
            let due = || seen.saturating_add(self.after).saturating_add(self.way_of_a_resume(end));
            let mut pause = before.unwrap_or_else(|| Idle { since, reasons, due: due(), counted: false });
            if !pause.counted && pause.due <= now {
                self.stranded += 1;
                pause.counted = true;
            }
            idle.insert(queue, pause);
        }
        self.idle = idle;
        self.idle.values().filter(|pause| !pause.counted).map(|pause| pause.due).min()
    }

    /// Whether the other end of a port keeps it from sending without reason: see [`Switch::without_reason`](crate::switch::Switch::without_reason).
    fn without_reason(&self, domains: &[&Domain<'_>], queue: WaitingQueue, end: PortEnd) -> Option<u32> {
        let Some(Node::Switch(neighbour)) = self.node(domains, end.peer) else { return Some(0) };
        let credits = match self.node(domains, queue.node) {
            Some(Node::Switch(switch)) => switch.credits(queue.port),
            Some(Node::Host(host)) => host.credits(),
            None => None,
        };
        neighbour.without_reason(end.peer_port, queue.priority, credits)
    }

    /// Time, at most, until a pause without reason ends, unless the frame that ends it is lost: what is on the cable
    /// arrives; the frame in service and the flow control frames of all priorities are sent; the last of them propagates
    /// and takes effect.
    fn way_of_a_resume(&self, end: PortEnd) -> Time {
        let link = &self.topology.cables[end.cable as usize].link;
        let (frame, gap, control, delay) = match (&self.settings.pfc, &self.settings.credits) {
            (Some(Rules { frame, gap, pfc, .. }), _) => (*frame, *gap, pfc.frame, pfc.response_delay),
            (None, Some(rules)) => (rules.frame, rules.gap, rules.credits.frame, Time::ZERO),
            (None, None) => return Time::ZERO,
        };
        let bytes = frame + gap + 8 * (u64::from(control) + gap);
        link.rate.time_of(Bytes::new(bytes)).saturating_add(link.delay.saturating_mul(2)).saturating_add(delay)
    }

    /// All paused queues that hold packets, unless their resume is on its way.
    fn waits(&self, domains: &[&Domain<'_>]) -> BTreeMap<WaitingQueue, Wait> {
        let mut paused: Vec<(WaitingQueue, Time)> = Vec::new();
        for node in domains.iter().flat_map(|domain| domain.nodes()) {
            if let Node::Switch(switch) = node {
                let node = switch.node();
                paused.extend(
                    switch
                        .paused_queues()
                        .map(|(port, priority, since)| (WaitingQueue { node, port, priority }, since)),
                );
            }
        }
        // What each ingress of the switches concerned waits for.
        let mut holdings: BTreeMap<u32, BTreeSet<(u16, u8, u16, u8)>> = BTreeMap::new();
        let mut waits = BTreeMap::new();
        for (queue, since) in paused {
            let Some(end) = self.plan.ports.end(queue.node, queue.port) else { continue };
            if self.without_reason(domains, queue, end).is_some() {
                continue;
            }
            let of = holdings.entry(end.peer).or_insert_with(|| match self.node(domains, end.peer) {
                Some(Node::Switch(switch)) => switch.holdings(),
                Some(Node::Host(_)) | None => BTreeSet::new(),
            });
            let from = (end.peer_port, queue.priority, 0, 0);
            let to = (end.peer_port, queue.priority, u16::MAX, u8::MAX);
            let on = of.range(from..=to).map(|(_, _, port, priority)| WaitingQueue {
                node: end.peer,
                port: *port,
                priority: *priority,
            });
            waits.insert(queue, Wait { since, on: on.collect() });
        }
        waits
    }

    fn node<'d, 'n>(&self, domains: &[&'d Domain<'n>], node: u32) -> Option<&'d Node<'n>> {
        let domain = self.plan.partition.domain_of[node as usize] as usize;
        let place = self.plan.partition.nodes[domain].iter().position(|other| *other == node)?;
        domains[domain].nodes().get(place)
    }

    /// Counts cycles that were not there at the last inspection.
    fn count(&mut self, waits: &BTreeMap<WaitingQueue, Wait>) {
        // A queue that waits for no paused queue, or for which none waits, is on no cycle.
        let mut left: BTreeSet<WaitingQueue> = waits.keys().copied().collect();
        loop {
            let waited_for: BTreeSet<WaitingQueue> =
                left.iter().flat_map(|queue| waits[queue].on.iter().copied()).collect();
            let before = left.len();
            let keep = |queue: &WaitingQueue, left: &BTreeSet<WaitingQueue>| {
                waited_for.contains(queue) && waits[queue].on.iter().any(|next| left.contains(next))
            };
            left = left.iter().copied().filter(|queue| keep(queue, &left)).collect();
            if left.len() == before {
                break;
            }
        }
        // A connected group counts once.
        let mut rest = left.clone();
        while let Some(first) = rest.pop_first() {
            let (mut group, mut open) = (BTreeSet::from([first]), vec![first]);
            while let Some(queue) = open.pop() {
                let next = waits[&queue].on.iter().copied();
                let before = rest.iter().copied().filter(|other| waits[other].on.contains(&queue));
                for other in next.filter(|other| rest.contains(other)).chain(before).collect::<Vec<_>>() {
                    if rest.remove(&other) {
                        group.insert(other);
                        open.push(other);
                    }
                }
            }
            self.cycles += u64::from(group.is_disjoint(&self.known));
        }
        self.known = left;
    }
}

/// Paused priorities of all ports, with the time since when.
fn paused(domains: &[&Domain<'_>]) -> Vec<(WaitingQueue, Time)> {
    let mut all = Vec::new();
    for node in domains.iter().flat_map(|domain| domain.nodes()) {
        match node {
            Node::Switch(switch) => {
                all.extend(switch.paused().map(|(port, priority, since)| (queue(switch.node(), port, priority), since)))
            }
            Node::Host(host) => {
                all.extend(host.paused().map(|(priority, since)| (queue(host.node(), 0, priority), since)));
            }
        }
    }
    all
}

fn queue(node: u32, port: u16, priority: u8) -> WaitingQueue {
    WaitingQueue { node, port, priority }
}

/// The queues, among those that may be stuck, that wait for nothing but each other.
fn stuck(waits: &BTreeMap<WaitingQueue, Wait>, may_be: impl Fn(&Wait) -> bool) -> BTreeSet<WaitingQueue> {
    let mut stuck: BTreeSet<WaitingQueue> =
        waits.iter().filter(|(_, wait)| may_be(wait) && !wait.on.is_empty()).map(|(queue, _)| *queue).collect();
    loop {
        let free: Vec<WaitingQueue> =
            stuck.iter().filter(|queue| !waits[queue].on.iter().all(|next| stuck.contains(next))).copied().collect();
        if free.is_empty() {
            return stuck;
        }
        free.iter().for_each(|queue| {
            stuck.remove(queue);
        });
    }
}

/// A cycle among stuck queues, starting with the smallest queue on it.
fn cycle(
    waits: &BTreeMap<WaitingQueue, Wait>,
    stuck: &BTreeSet<WaitingQueue>,
    first: WaitingQueue,
) -> Vec<WaitingQueue> {
    let mut path = vec![first];
    loop {
        let next = path.last().and_then(|last| waits[last].on.iter().find(|next| stuck.contains(next)));
        let Some(next) = next.copied() else { return path };
        if let Some(start) = path.iter().position(|queue| *queue == next) {
            let mut cycle = path.split_off(start);
            let least = (0..cycle.len()).min_by_key(|index| cycle[*index]).unwrap_or(0);
            cycle.rotate_left(least);
            return cycle;
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(node: u32) -> WaitingQueue {
        WaitingQueue { node, port: 0, priority: 0 }
    }

    fn waits(edges: &[(u32, &[u32])]) -> BTreeMap<WaitingQueue, Wait> {
        let wait = |on: &[u32]| Wait { since: Time::ZERO, on: on.iter().map(|node| queue(*node)).collect() };
        edges.iter().map(|(node, on)| (queue(*node), wait(on))).collect()
    }

    #[test]
    fn what_waits_for_one_that_may_go_is_not_stuck() {
        // 7 waits for the cycle of 1, 2, 3; 4 and 5 are a cycle of which 5 also waits for 9, which is not paused.
        let waits = waits(&[(1, &[2]), (2, &[3]), (3, &[1]), (4, &[5]), (5, &[4, 9]), (7, &[3]), (8, &[])]);
        let stuck = stuck(&waits, |_| true);
        assert_eq!(stuck.iter().map(|queue| queue.node).collect::<Vec<_>>(), [1, 2, 3, 7]);
        for first in [1, 2, 3, 7] {
            let cycle = cycle(&waits, &stuck, queue(first));
            assert_eq!(cycle.iter().map(|queue| queue.node).collect::<Vec<_>>(), [1, 2, 3]);
        }
    }
}
