//! A flow alone in an idle fabric that may use several paths at once: a time that it cannot beat.
//!
//! Whatever the paths are, all packets pass the sender's link, the receiver's link, and the links of every cut between
//! the two. A packet reaches a cut no earlier than over the fastest path before it, the links of the cut carry no more
//! than the sum of their rates, and the last packet has the fastest path behind it still before it. The largest of
//! these times, over the two host links and a minimum cut, is the time: exact where host links are the slowest, as in
//! most fabrics, and elsewhere too short by a few packets' times at most.

use super::{
    Link, Node, Ports, Rule, Topology,
    ideal::{Pace, Packets},
};
use incast_units::{Rounding, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

/// A link that packets may take, between nodes of a [`Multipath`].
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    link: Link,
}

/// What a flow may use: all links that lead from its source to its destination.
#[derive(Clone, Debug)]
pub struct Multipath {
    edges: Vec<Edge>,
    /// Edges that leave each node; the source is the first node.
    leaving: Vec<Vec<usize>>,
    destination: usize,
}

impl Multipath {
    /// All equal-cost paths by these rules; `None` if there is none.
    pub fn by_rules(topology: &Topology, ports: &Ports, rules: &[Rule], src: Node, dst: Node) -> Option<Self> {
        Self::new(topology, ports, src, dst, &|switch| {
            let rule = rules.get((switch - topology.hosts) as usize);
            rule.map_or_else(Vec::new, |rule| rule.alternatives(dst).collect())
        })
    }

    /// All paths that there are, whatever the rules; `None` if there is none.
    pub fn any(topology: &Topology, ports: &Ports, src: Node, dst: Node) -> Option<Self> {
        Self::new(topology, ports, src, dst, &|switch| (0..ports.of(switch).len() as u16).collect())
    }

    /// The links of one path, where all paths are like it.
    pub fn alike(links: &[Link]) -> Self {
        let edge = |(from, link): (usize, &Link)| Edge { from, to: from + 1, link: *link };
        let leaving = (0..=links.len()).map(|node| if node < links.len() { vec![node] } else { Vec::new() });
        Self {
            edges: links.iter().enumerate().map(edge).collect(),
            leaving: leaving.collect(),
            destination: links.len(),
        }
    }

    fn new(
        topology: &Topology,
        ports: &Ports,
        src: Node,
        dst: Node,
        onward: &dyn Fn(Node) -> Vec<u16>,
    ) -> Option<Self> {
        let mut known = BTreeMap::from([(src, 0)]);
        let mut found = Self { edges: Vec::new(), leaving: vec![Vec::new()], destination: usize::MAX };
        let mut queue = VecDeque::from([src]);
        while let Some(node) = queue.pop_front() {
            let from = known[&node];
            for port in if node == src { vec![0] } else { onward(node) } {
                let Some(end) = ports.end(node, port) else { continue };
                // Other hosts pass nothing on.
                if end.peer < topology.hosts && end.peer != dst {
                    continue;
                }
                let next = known.len();
                let to = *known.entry(end.peer).or_insert(next);
                if to == next {
                    found.leaving.push(Vec::new());
                    if end.peer == dst {
                        found.destination = to;
                    } else {
                        queue.push_back(end.peer);
                    }
                }
                found.leaving[from].push(found.edges.len());
                found.edges.push(Edge { from, to, link: topology.cables.get(end.cable as usize)?.link });
            }
        }
        (found.destination != usize::MAX).then_some(found)
    }

    /// The time from the first bit at the sending NIC to the last bit at the receiver that no use of these links beats,
    /// if the sender has all packets at the start.
    pub fn completion(&self, packets: Packets, rounding: Rounding) -> Time {
        let Packets { full, count, last } = packets;
        if count == 0 {
            return last.map_or(Time::ZERO, |last| self.earliest(last, rounding)[self.destination]);
        }
        let into = |edge: &&Edge| edge.to == self.destination;
        let (Some(nic), Some(receiver)) = (self.edges.first(), self.edges.iter().find(into)) else {
            return Time::ZERO;
        };
        let pass = |edge: &Edge, last| Pace { rate: edge.link.rate, rounding, full }.span(count, last);
        let mut earliest = self.earliest(full, rounding);
        // The sender's link: the last of the full packets, and the one after it, have the rest of the way before them.
        let behind = |whole: Time, wire| whole.saturating_sub(alone(&nic.link, wire, rounding));
        let mut time = pass(nic, 0).saturating_add(behind(earliest[self.destination], full));
        if let Some(last) = last {
            let sent = pass(nic, last);
            let alone = self.earliest(last, rounding);
            let arrival = |node: usize| sent.saturating_add(behind(alone[node], last));
            time = time.max(arrival(self.destination));
            // On a way of its own it may overtake.
            for (node, earliest) in earliest.iter_mut().enumerate().skip(1) {
                *earliest = arrival(node).min(*earliest);
            }
        }
        // The receiver's link.
        let end = earliest[receiver.from].saturating_add(pass(receiver, last.unwrap_or(0)));
        time = time.max(end.saturating_add(receiver.link.delay));
        let slowest = nic.link.rate.min(receiver.link.rate);
        if self.edges.iter().any(|edge| edge.link.rate < slowest) {
            let cut = self.minimum_cut(slowest.bps());
            time = time.max(self.time_over(&cut, packets, rounding, &earliest));
        }
        time
    }

    /// The least time at which a packet can have reached each node, from the first bit at the sending NIC to the last
    /// one there (Dijkstra); [`Time::MAX`] where it cannot.
    fn earliest(&self, wire: u32, rounding: Rounding) -> Vec<Time> {
        let mut times = vec![Time::MAX; self.leaving.len()];
        times[0] = Time::ZERO;
        let mut queue = BinaryHeap::from([Reverse((Time::ZERO, 0))]);
        while let Some(Reverse((time, node))) = queue.pop() {
            if time > times[node] {
                continue;
            }
            for edge in self.leaving[node].iter().map(|edge| &self.edges[*edge]) {
                let there = time.saturating_add(across(&edge.link, wire, rounding));
                if there < times[edge.to] {
                    times[edge.to] = there;
                    queue.push(Reverse((there, edge.to)));
                }
            }
        }
        times
    }

    /// The least times that a packet takes from each node on.
    fn rest(&self, wire: u32, rounding: Rounding) -> Vec<Time> {
        let mut times = vec![Time::MAX; self.leaving.len()];
        times[self.destination] = Time::ZERO;
        // Bellman and Ford: paths are short, and edges are in the order of their distance from the source.
        loop {
            let mut changed = false;
            for edge in self.edges.iter().rev() {
                let time = across(&edge.link, wire, rounding).saturating_add(times[edge.to]);
                if time < times[edge.from] {
                    (times[edge.from], changed) = (time, true);
                }
            }
            if !changed {
                return times;
            }
        }
    }

    /// The edges of a minimum cut, the one nearest to the destination (Edmonds and Karp). A flow of `most` bit/s is as
    /// good as any larger one: the cut is then wherever its augmenting paths have led, and holds all the same.
    fn minimum_cut(&self, most: u64) -> Vec<Edge> {
        let mut used = vec![0u64; self.edges.len()];
        let mut entering = vec![Vec::new(); self.leaving.len()];
        self.edges.iter().enumerate().for_each(|(index, edge)| entering[edge.to].push(index));
        let mut flow = 0;
        // Towards the destination by edges with room, and back by edges that are in use.
        let steps = |used: &[u64], node: usize| -> Vec<(usize, usize, bool, u64)> {
            let forward = self.leaving[node].iter().map(|&index| {
                let edge = &self.edges[index];
                (index, edge.to, true, edge.link.rate.bps() - used[index])
            });
            let back = entering[node].iter().map(|&index| (index, self.edges[index].from, false, used[index]));
            forward.chain(back).filter(|step| step.3 > 0).collect()
        };
        while flow < most {
            let mut came_by = vec![None; self.leaving.len()];
            let mut queue = VecDeque::from([0]);
            while let Some(node) = queue.pop_front() {
                for step in steps(&used, node) {
                    if step.1 != 0 && came_by[step.1].is_none() {
                        came_by[step.1] = Some((node, step));
                        queue.push_back(step.1);
                    }
                }
            }
            let mut path = Vec::new();
            let mut node = self.destination;
            while let Some((from, step)) = came_by[node].filter(|_| node != 0) {
                path.push(step);
                node = from;
            }
            let Some(more) = path.iter().map(|step| step.3).min() else { break };
            for (index, _, forward, _) in path {
                used[index] = if forward { used[index] + more } else { used[index] - more };
            }
            flow += more;
        }
        // Where the destination can still be reached from.
        let mut near = vec![false; self.leaving.len()];
        near[self.destination] = true;
        let mut queue = VecDeque::from([self.destination]);
        while let Some(node) = queue.pop_front() {
            let room = |index: &usize| self.edges[*index].link.rate.bps() > used[*index];
            let forward = entering[node].iter().filter(|index| room(index)).map(|&index| self.edges[index].from);
            let back = self.leaving[node].iter().filter(|&&index| used[index] > 0).map(|&index| self.edges[index].to);
            for next in forward.chain(back) {
                if !near[next] {
                    near[next] = true;
                    queue.push_back(next);
                }
            }
        }
        self.edges.iter().filter(|edge| !near[edge.from] && near[edge.to]).copied().collect()
    }

    /// The least time of a flow whose packets all cross these edges.
    fn time_over(&self, cut: &[Edge], packets: Packets, rounding: Rounding, earliest: &[Time]) -> Time {
        let Packets { full, count, last } = packets;
        let picoseconds = |edge: &Edge, wire| alone_exactly(&edge.link, wire, rounding);
        // Full packets a picosecond.
        let speed: f64 = cut.iter().map(|edge| 1.0 / picoseconds(edge, full)).sum();
        let part = |wire| cut.iter().map(|edge| picoseconds(edge, wire) / picoseconds(edge, full)).fold(1.0, f64::min);
        let first = cut.iter().map(|edge| earliest[edge.from]).min().unwrap_or(Time::ZERO);
        let after = |wire| {
            let rest = self.rest(wire, rounding);
            let behind = cut.iter().map(|edge| edge.link.delay.saturating_add(rest[edge.to]));
            behind.min().unwrap_or(Time::ZERO)
        };
        // What is less than a picosecond and an error of rounding is left out.
        let whole = |count: f64| Time::from_ps((count / speed * (1.0 - 1e-12)).max(0.0) as u64);
        let of_full = whole(count as f64).saturating_add(after(full));
        // Which of the packets crosses last is not known.
        let of_all = last.map(|last| whole(count as f64 + part(last)).saturating_add(after(last.min(full))));
        first.saturating_add(of_all.map_or(of_full, |of_all| of_all.max(of_full)))
    }
}

/// The time of one packet on a link.
fn alone(link: &Link, wire: u32, rounding: Rounding) -> Time {
    Pace { rate: link.rate, rounding, full: wire }.span(1, 0)
}

/// The same until it has arrived.
fn across(link: &Link, wire: u32, rounding: Rounding) -> Time {
    alone(link, wire, rounding).saturating_add(link.delay)
}

/// The same on the link, in picoseconds, not rounded up.
fn alone_exactly(link: &Link, wire: u32, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Exact => f64::from(wire) * 8e12 / link.rate.as_f64(),
        Rounding::WholeNanoseconds => alone(link, wire, rounding).ps() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{FatTree, LeafSpine, ideal};
    use incast_units::Rate;
    use proptest::prelude::*;

    fn link(gbps: u64) -> Link {
        Link { rate: Rate::from_gbps(gbps), delay: Time::from_us(1), loss: 0.0 }
    }

    fn leaf_spine(host: u64, fabric: u64, spines: u32) -> Topology {
        let (host_link, fabric_link) = (link(host), link(fabric));
        LeafSpine { leaves: 2, spines, hosts_per_leaf: 2, host_link, fabric_link, fabric_links: 1 }
            .build()
            .expect("a topology")
    }

    fn between(topology: &Topology, src: Node, dst: Node) -> Multipath {
        Multipath::by_rules(topology, &topology.ports(), &topology.rules, src, dst).expect("paths")
    }

    #[test]
    fn several_slow_paths_carry_their_sum() {
        let packets = Packets { full: 1000, count: 1000, last: None };
        let time = |spines| between(&leaf_spine(200, 100, spines), 0, 2).completion(packets, Rounding::Exact);
        // 40 ns a packet at 200 Gbps, 80 ns at 100.
        let links = Time::from_us(4);
        assert_eq!(time(1), links + Time::from_ns(40 + 1000 * 80 + 80 + 40) - Time::from_ps(1));
        // Two paths, and four, carry what the host sends.
        for spines in [2, 4] {
            assert_eq!(time(spines), links + Time::from_ns(1000 * 40 + 80 + 80 + 40), "{spines}");
        }
        // Three of 50 Gbps do not: 160 / 3 ns a packet.
        let slow = between(&leaf_spine(200, 50, 3), 0, 2).completion(packets, Rounding::Exact);
        assert_eq!(slow.ps() / 1000, (links + Time::from_ns(40 + 53_333 + 160 + 40)).ps() / 1000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Where all links are alike, many paths are no better than one.
        #[test]
        fn alike_paths_are_as_one(
            full in 64u32..9000,
            count in 0u64..40,
            last in proptest::option::of(64u32..9000),
            gbps in 1u64..800,
            whole_ns: bool,
        ) {
            let last = last.filter(|last| *last < full);
            let packets = Packets { full, count, last };
            // Of few packets, the last one may overtake the others.
            prop_assume!(last.is_none() || count == 0 || count > 5);
            let rounding = if whole_ns { Rounding::WholeNanoseconds } else { Rounding::Exact };
            let topology = FatTree { k: 4, link: link(gbps) }.build().expect("a topology");
            let alone = ideal::completion(&[link(gbps); 6], packets, rounding);
            let many = between(&topology, 0, 15).completion(packets, rounding);
            // Where times are rounded up, packets on their own are up to a picosecond a hop later.
            prop_assert!(many <= alone && alone <= many + Time::from_ps(6), "{many} {alone}");
        }

        /// Never more than on the best single path.
        #[test]
        fn it_is_a_bound(
            rates in proptest::collection::vec(1u64..400, 3),
            spines in 1u32..4,
            full in 64u32..9000,
            count in 0u64..40,
            last in proptest::option::of(64u32..9000),
        ) {
            let packets = Packets { full, count, last: last.filter(|last| *last < full) };
            let topology = leaf_spine(rates[0], rates[1], spines);
            let links = [link(rates[0]), link(rates[1]), link(rates[1]), link(rates[0])];
            let single = ideal::completion(&links, packets, Rounding::Exact);
            prop_assert!(between(&topology, 0, 2).completion(packets, Rounding::Exact) <= single);
            prop_assert!(Multipath::alike(&links).completion(packets, Rounding::Exact) <= single);
        }
    }
}
