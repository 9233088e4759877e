//! A flow alone in an idle fabric: its path, its completion time, and the base RTT.
//!
//! Every node stores and forwards: a packet is sent on when its last bit has arrived, in order, at once. Wire bytes
//! include all headers, the preamble and the inter-frame gap, since those occupy the link as well.

use crate::topology::{Link, Node, Ports, Rule, Topology, salted_hash};
use incast_units::{Bytes, Rate, Rounding, Time};
use std::cmp::Reverse;

/// A link of a path, at its sending end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The node that sends.
    pub node: Node,
    /// Its port.
    pub port: u16,
    /// The cable at that port, an index into [`Topology::cables`].
    pub cable: u32,
    /// The properties of the cable.
    pub link: Link,
}

/// The packets of a flow, as wire bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Wire bytes of a full packet.
    pub full: u32,
    /// Number of full packets.
    pub count: u64,
    /// Wire bytes of the packet after them, if there is one.
    pub last: Option<u32>,
}

impl Packets {
    /// A single packet.
    pub const fn one(wire_bytes: u32) -> Self {
        Self { full: wire_bytes, count: 1, last: None }
    }
}

/// The path of a flow from host `src` to host `dst`: the NIC of `src` first, then every switch.
///
/// `ports` are those of `topology`, `rules` the rules in force, by switch index, and `salts` gives the salt of a switch
/// by its node number. `None` if there is no route, the rules lead in a cycle, or either end is not a host. The path
/// of a host to itself is empty.
pub fn path(
    topology: &Topology,
    ports: &Ports,
    rules: &[Rule],
    salts: &dyn Fn(Node) -> u32,
    src: Node,
    dst: Node,
    flow_hash: u32,
) -> Option<Vec<Hop>> {
    let mut choose = |rule: &Rule, switch| rule.pick(dst, salted_hash(flow_hash, salts(switch)));
    path_by(topology, ports, rules, &mut choose, src, dst)
}

/// As [`path`], where `choose` returns the port that a switch takes, given its rule and its node number.
pub fn path_by(
    topology: &Topology,
    ports: &Ports,
    rules: &[Rule],
    choose: &mut dyn FnMut(&Rule, Node) -> Option<u16>,
    src: Node,
    dst: Node,
) -> Option<Vec<Hop>> {
    if src.max(dst) >= topology.hosts {
        return None;
    }
    let mut hops = Vec::new();
    let mut node = src;
    while node != dst {
        let port = if node == src {
            0
        } else {
            let switch = node.checked_sub(topology.hosts)?;
            choose(rules.get(switch as usize)?, node)?
        };
        let end = ports.end(node, port)?;
        hops.push(Hop { node, port, cable: end.cable, link: topology.cables.get(end.cable as usize)?.link });
        if hops.len() > topology.rules.len() + 1 {
            return None;
        }
        node = end.peer;
    }
    Some(hops)
}

/// The time from the first bit at the sending NIC to the last bit of the last packet at the receiver, in an idle
/// fabric, if the sender has all packets at the start. Zero without packets or hops; saturates at [`Time::MAX`].
///
/// What the simulator does, with its rounding (see [`Serializer`](incast_units::Serializer)), in time that does not
/// depend on the number of packets. To the picosecond, unless two hops of different rates that are no whole
/// picoseconds a byte take times for a packet that differ by less than 2 ps: there, to 2 ps a hop. That a frame without a
/// time, which rounding can make, arrives a picosecond later is not counted.
///
/// The n-th full packet arrives at a hop at `base + n × pace`, rounded up, with the pace of the slowest hop before. At
/// a hop that is no faster than these, all packets are one busy period, which begins with the first; at one
/// that is faster, each is one of its own.
pub fn completion(hops: &[Link], packets: Packets, rounding: Rounding) -> Time {
    let Packets { full, count, last } = match packets {
        Packets { count: 0, last: None, .. } => return Time::ZERO,
        Packets { count: 0, last: Some(last), .. } => Packets::one(last),
        more => more,
    };
    let (mut base, mut pace) = (Time::ZERO, None::<Pace>);
    // Of the packet after the full ones.
    let mut last_arrival = Time::ZERO;
    for link in hops {
        let here = Pace { rate: link.rate, rounding, full };
        let arrival = |n| pace.map_or(Time::ZERO, |pace| base.saturating_add(pace.span(n, 0)));
        let no_faster = pace.is_none_or(|pace| here.cost() >= pace.cost());
        // The busy period with the last of the full packets: its start, and its number of packets.
        let (start, busy) = if no_faster { (arrival(1), count) } else { (arrival(count), 1) };
        if let Some(bytes) = last {
            let continues = start.saturating_add(here.span(busy, 0)) >= last_arrival;
            let end = if continues {
                start.saturating_add(here.span(busy, bytes))
            } else {
                last_arrival.saturating_add(here.span(0, bytes))
            };
            last_arrival = end.saturating_add(link.delay);
        }
        if no_faster {
            (base, pace) = (start, Some(here));
        } else {
            base = base.saturating_add(here.span(1, 0));
        }
        base = base.saturating_add(link.delay);
    }
    match (last, pace) {
        (Some(_), _) => last_arrival,
        (None, pace) => pace.map_or(Time::ZERO, |pace| base.saturating_add(pace.span(count, 0))),
    }
}

/// How fast a hop sends full packets.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub rate: Rate,
    pub rounding: Rounding,
    /// Wire bytes of a full packet.
    pub full: u32,
}

impl Pace {
    /// The time of `count` full packets in a row and then one of `bytes`, as `Serializer` rounds it.
    pub fn span(self, count: u64, bytes: u32) -> Time {
        let bits = |bytes: u128| bytes.saturating_mul(8_000_000_000_000);
        let rate = u128::from(self.rate.bps().max(1));
        let (count, full, bytes) = (u128::from(count), u128::from(self.full), u128::from(bytes));
        let ps = match self.rounding {
            Rounding::Exact => bits(count * full + bytes).div_ceil(rate),
            Rounding::WholeNanoseconds => {
                let each = |bytes| bits(bytes) / 1000 / rate;
                count.saturating_mul(each(full)).saturating_add(each(bytes)).saturating_mul(1000)
            }
        };
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// What orders hops by the time that they take for a full packet.
    fn cost(self) -> (Time, Reverse<Rate>) {
        match self.rounding {
            Rounding::Exact => (Time::ZERO, Reverse(self.rate)),
            Rounding::WholeNanoseconds => (self.span(1, 0), Reverse(Rate::default())),
        }
    }
}

/// The time from the first bit of a data packet at the sender to the last bit of its acknowledgement back there, with
/// idle links and a receiver that answers at once. `data_wire` and `ack_wire` are wire bytes.
pub fn base_rtt(hops_forward: &[Link], hops_back: &[Link], data_wire: u32, ack_wire: u32) -> Time {
    one_way(hops_forward, data_wire).saturating_add(one_way(hops_back, ack_wire))
}

/// The time from the first bit of a packet at its sender to the last at its receiver, with idle links.
pub fn one_way<'a>(hops: impl IntoIterator<Item = &'a Link>, wire: u32) -> Time {
    hops.into_iter().fold(Time::ZERO, |sum, link| sum.saturating_add(alone(link, wire)))
}

/// One packet over one idle link.
fn alone(link: &Link, wire: u32) -> Time {
    link.rate.time_of(Bytes::new(u64::from(wire))).saturating_add(link.delay)
}

/// Above this many hosts, those of one switch are one group even if their tables differ.
const MAX_SINGLE_HOSTS: u32 = 512;

/// Hosts of one edge switch that are routed alike.
struct Group {
    edge: Node,
    /// One of them, as a destination.
    host: Node,
    /// Round trip over the host's own link: the largest and the second largest of the group.
    own: [Option<Time>; 2],
}

/// The largest [`base_rtt`] of all pairs of hosts that can reach each other, over all equal-cost paths, with the
/// topology's own rules. Zero if no two hosts can.
///
/// The hosts of a switch of a regular topology are all routed alike. In a file that may be different: there each host
/// is a group of its own if there are at most 512. Otherwise the first host of each switch represents the routes of the
/// others, with the slowest host links.
///
/// Takes time and memory in proportion to (edge switches)², and to the cables in a regular tree whose links are equal.
pub fn max_base_rtt(topology: &Topology, data_wire: u32, ack_wire: u32) -> Time {
    let ports = topology.ports();
    let groups = groups(topology, data_wire, ack_wire);
    let wires = [data_wire, ack_wire];
    if has_equal_links(topology, &ports) {
        largest_to_first(topology, &ports, &groups, wires)
    } else {
        largest_of_pairs(topology, &ports, &groups, wires)
    }
}

/// The least time of a full packet from one host to another through idle links: of two hosts of one switch, or, where
/// every switch has one host, of those with neighbouring numbers. `data_wire` are wire bytes. Zero for less than two
/// hosts.
pub fn min_one_way(topology: &Topology, data_wire: u32) -> Time {
    let mut fastest = vec![None; topology.switches() as usize];
    let mut least = Time::MAX;
    for host in 0..topology.hosts {
        let Some(edge) = topology.edge_of(host) else { continue };
        let own = alone(&topology.cables[host as usize].link, data_wire);
        let other = &mut fastest[(edge - topology.hosts) as usize];
        if let Some(other) = *other {
            least = least.min(own.saturating_add(other));
        }
        *other = Some(other.map_or(own, |other: Time| other.min(own)));
    }
    if least < Time::MAX {
        return least;
    }
    let ports = topology.ports();
    let pairs = (1..topology.hosts).filter_map(|host| {
        let mut first = |rule: &Rule, _| rule.alternatives(host).next();
        path_by(topology, &ports, &topology.rules, &mut first, host - 1, host)
    });
    pairs.map(|hops| one_way(hops.iter().map(|hop| &hop.link), data_wire)).min().unwrap_or(Time::ZERO)
}

/// Whether this is a regular tree and, level by level, all links have the same rate and delay.
fn has_equal_links(topology: &Topology, ports: &Ports) -> bool {
    let Some(levels) = topology.tree_levels(ports) else { return false };
    // Of the links between hosts and switches, and then of those above each level.
    let mut links = vec![None; levels.len() + 1];
    topology.cables.iter().all(|cable| {
        let lower = cable.a.min(cable.b).checked_sub(topology.hosts);
        let level = lower.map_or(0, |switch| 1 + usize::from(levels[switch as usize]));
        let link = (cable.link.rate, cable.link.delay);
        *links[level].get_or_insert(link) == link
    })
}

/// As [`largest_of_pairs`] where [`has_equal_links`]: two groups are the farther apart the higher the level is where
/// they meet, both ways alike. Of two that meet at the highest level, the first group meets one there.
fn largest_to_first(topology: &Topology, ports: &Ports, groups: &[Group], wires: [u32; 2]) -> Time {
    let Some(first) = groups.first() else { return Time::ZERO };
    let mut walk = Walk::new(topology, ports);
    let rtt = |(index, source): (usize, &Group)| {
        let [data, ack] = walk.slowest(source.edge, first, wires);
        let other = if index == 0 { first.own[1] } else { first.own[0] };
        let own = source.own[0]?.saturating_add(other?);
        Some(own.saturating_add(data).saturating_add(ack)).filter(|rtt| *rtt < Time::MAX)
    };
    groups.iter().enumerate().filter_map(rtt).max().unwrap_or(Time::ZERO)
}

/// See [`max_base_rtt`].
fn largest_of_pairs(topology: &Topology, ports: &Ports, groups: &[Group], wires: [u32; 2]) -> Time {
    let count = groups.len();
    // Across the fabric: data from the first group to the second, and the acknowledgement back.
    let mut across = vec![Time::ZERO; count * count];
    let mut walk = Walk::new(topology, ports);
    for (to, destination) in groups.iter().enumerate() {
        walk.restart();
        for (from, source) in groups.iter().enumerate() {
            let [data, ack] = walk.slowest(source.edge, destination, wires);
            for (pair, time) in [(from * count + to, data), (to * count + from, ack)] {
                across[pair] = across[pair].saturating_add(time);
            }
        }
    }
    let mut largest = Time::ZERO;
    for (from, source) in groups.iter().enumerate() {
        for (to, destination) in groups.iter().enumerate() {
            let other = if from == to { destination.own[1] } else { destination.own[0] };
            let (Some(own), Some(other)) = (source.own[0], other) else { continue };
            let rtt = own.saturating_add(other).saturating_add(across[from * count + to]);
            if rtt < Time::MAX {
                largest = largest.max(rtt);
            }
        }
    }
    largest
}

fn groups(topology: &Topology, data_wire: u32, ack_wire: u32) -> Vec<Group> {
    let tables = topology.rules.iter().any(|rule| matches!(rule, Rule::Table(_)));
    let apart = tables && topology.hosts <= MAX_SINGLE_HOSTS;
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = vec![None; topology.switches() as usize];
    for host in 0..topology.hosts {
        let Some(edge) = topology.edge_of(host) else { continue };
        let link = &topology.cables[host as usize].link;
        let own = alone(link, data_wire).saturating_add(alone(link, ack_wire));
        let place = &mut group_of[(edge - topology.hosts) as usize];
        match *place {
            Some(index) if !apart => {
                let [first, second] = &mut groups[index as usize].own;
                if Some(own) > *first {
                    *second = first.replace(own);
                } else {
                    *second = (*second).max(Some(own));
                }
            }
            _ => {
                *place = Some(groups.len() as u32);
                groups.push(Group { edge, host, own: [Some(own), None] });
            }
        }
    }
    groups
}

/// Finds the slowest equal-cost paths to one destination.
struct Walk<'a> {
    topology: &'a Topology,
    ports: &'a Ports,
    state: Vec<State>,
    touched: Vec<u32>,
    stack: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unknown,
    Open,
    /// The slowest time from the switch to the edge switch of the destination, for data and for acknowledgements.
    Known([Time; 2]),
}

const NO_PATH: State = State::Known([Time::MAX; 2]);

impl<'a> Walk<'a> {
    fn new(topology: &'a Topology, ports: &'a Ports) -> Self {
        let state = vec![State::Unknown; topology.switches() as usize];
        Self { topology, ports, state, touched: Vec::new(), stack: Vec::new() }
    }

    /// Starts with another destination.
    fn restart(&mut self) {
        for switch in self.touched.drain(..) {
            self.state[switch as usize] = State::Unknown;
        }
    }

    /// The slowest times from a switch to the edge switch of the destination; [`Time::MAX`] if there is no path.
    fn slowest(&mut self, from: Node, destination: &Group, wires: [u32; 2]) -> [Time; 2] {
        let start = from - self.topology.hosts;
        self.stack.push(start);
        while let Some(&switch) = self.stack.last() {
            let state = self.state[switch as usize];
            let next = match state {
                State::Known(_) => None,
                _ => self.step(switch, destination, wires),
            };
            match next {
                Some(peer) => {
                    self.mark(switch, State::Open);
                    self.stack.push(peer);
                }
                None => {
                    self.stack.pop();
                }
            }
        }
        match self.state[start as usize] {
            State::Known(times) => times,
            _ => [Time::MAX; 2],
        }
    }

    /// Computes the times of a switch, or returns a neighbour that must be computed before.
    fn step(&mut self, switch: u32, destination: &Group, wires: [u32; 2]) -> Option<u32> {
        let hosts = self.topology.hosts;
        if hosts + switch == destination.edge {
            self.mark(switch, State::Known([Time::ZERO; 2]));
            return None;
        }
        let rule = &self.topology.rules[switch as usize];
        // The alternatives of regular fabrics are all alike.
        let alike = !matches!(rule, Rule::Table(_));
        let mut slowest: Option<[Time; 2]> = None;
        for port in rule.alternatives(destination.host).take(if alike { 1 } else { usize::MAX }) {
            let Some(end) = self.ports.end(hosts + switch, port) else { continue };
            let Some(peer) = end.peer.checked_sub(hosts) else { continue };
            match self.state[peer as usize] {
                State::Unknown => return Some(peer),
                // In a cycle, or without a route.
                State::Open | NO_PATH => {}
                State::Known(after) => {
                    let link = &self.topology.cables[end.cable as usize].link;
                    let sums = [0, 1].map(|i| after[i].saturating_add(alone(link, wires[i])));
                    slowest = Some(slowest.map_or(sums, |known| [0, 1].map(|i| sums[i].max(known[i]))));
                }
            }
        }
        self.mark(switch, slowest.map_or(NO_PATH, State::Known));
        None
    }

    fn mark(&mut self, switch: u32, state: State) {
        if self.state[switch as usize] == State::Unknown {
            self.touched.push(switch);
        }
        self.state[switch as usize] = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Chain, Clos3, FatTree, LeafSpine, Ring, SingleSwitch, file::parse, tests::link};
    use incast_units::Serializer;
    use proptest::prelude::*;

    fn of_rate(gbps: u64, delay_ns: u64) -> Link {
        Link { rate: Rate::from_gbps(gbps), delay: Time::from_ns(delay_ns), loss: 0.0 }
    }

    #[test]
    fn one_packet_is_stored_and_forwarded() {
        // 1,000 B take 80 ns at 100 Gbps and 200 ns at 40 Gbps.
        let hops = [of_rate(100, 1000), of_rate(40, 500)];
        assert_eq!(completion(&hops, Packets::one(1000), Rounding::Exact), Time::from_ns(80 + 1000 + 200 + 500));
        assert_eq!(
            completion(&hops, Packets { full: 0, count: 0, last: Some(1000) }, Rounding::Exact),
            Time::from_ns(1780)
        );
        assert_eq!(completion(&hops, Packets { full: 1000, count: 0, last: None }, Rounding::Exact), Time::ZERO);
        assert_eq!(completion(&[], Packets::one(1000), Rounding::Exact), Time::ZERO);
        assert_eq!(base_rtt(&hops, &hops, 1000, 100), Time::from_ns(1780 + 8 + 20 + 1500));
    }

    #[test]
    fn the_slowest_link_sets_the_pace() {
        let hops = [of_rate(100, 1000), of_rate(40, 1000), of_rate(100, 1000)];
        let ten = Packets { full: 1000, count: 10, last: None };
        assert_eq!(completion(&hops, ten, Rounding::Exact), Time::from_ns(3000 + 80 + 10 * 200 + 80));
        let and_a_half = Packets { last: Some(500), ..ten };
        assert_eq!(completion(&hops, and_a_half, Rounding::Exact), Time::from_ns(3000 + 80 + 10 * 200 + 100 + 40));
    }

    #[test]
    fn a_fractional_rate_does_not_drift() {
        let hops = [of_rate(56, 0)];
        let packets = Packets { full: 4160, count: 7_000, last: None };
        assert_eq!(completion(&hops, packets, Rounding::Exact).ps(), 1000 * 7 * 4160 * 8_000 / 56);
    }

    #[test]
    fn enormous_flows_saturate() {
        let packets = Packets { full: u32::MAX, count: u64::MAX, last: Some(u32::MAX) };
        assert_eq!(completion(&[of_rate(100, 1); 3], packets, Rounding::Exact), Time::MAX);
    }

    #[test]
    fn a_flow_that_stands_for_an_endless_one_takes_no_time_to_compute() {
        let packets = Packets { full: 1048, count: 1_000_000_000_000, last: Some(64) };
        let hops = [of_rate(100, 1000), of_rate(56, 1000), of_rate(400, 1000)];
        // At the last hop the last packet finds the one before it.
        let each = [83, 149, 20];
        assert_eq!(
            completion(&hops, packets, Rounding::WholeNanoseconds),
            Time::from_ns(3000 + each[0] + 1_000_000_000_000 * each[1] + each[2] + 64 * 8 / 400)
        );
        assert_eq!(
            completion(&hops[1..2], packets, Rounding::Exact).ps(),
            1_000_000 + (1_048_000_000_000_064u128 * 8000).div_ceil(56) as u64
        );
    }

    /// Completion packet by packet and hop by hop. A link is busy until a packet starts if the one before it ends no
    /// earlier than this one arrives.
    fn recursion(hops: &[Link], packets: Packets, rounding: Rounding) -> Time {
        struct Stage {
            serializer: Serializer,
            delay: Time,
            free: Time,
            used: bool,
        }
        let stage = |link: &Link| Stage {
            serializer: Serializer::new(link.rate, rounding),
            delay: link.delay,
            free: Time::ZERO,
            used: false,
        };
        let mut stages: Vec<Stage> = hops.iter().map(stage).collect();
        let mut send = |bytes: u32| {
            stages.iter_mut().fold(Time::ZERO, |arrival, stage| {
                let continues = stage.used && stage.free >= arrival;
                stage.free = stage.serializer.end(arrival.max(stage.free), bytes, continues);
                stage.used = true;
                stage.free + stage.delay
            })
        };
        let mut end = Time::ZERO;
        for _ in 0..packets.count {
            end = send(packets.full);
        }
        packets.last.map_or(end, send)
    }

    /// Rates whose bytes take whole picoseconds, and others, from 1 Mbps to 100 Tbps.
    fn rates() -> impl Strategy<Value = Rate> {
        let common = [1u64, 10, 25, 40, 50, 56, 100, 200, 400, 800].map(Rate::from_gbps).to_vec();
        let uncommon = [7_777_777_777, 46_000_000_001, 100_000_000_000_000, 31_000_000_000_000].map(Rate::from_bps);
        prop_oneof![
            proptest::sample::select(common),
            proptest::sample::select(uncommon.to_vec()),
            (1_000_000u64..1_000_000_000_000).prop_map(Rate::from_bps),
        ]
    }

    /// Whether the times of a packet at two hops of different rates differ by less than 2 ps.
    fn close(hops: &[Link], full: u32) -> bool {
        let each = |link: &Link| f64::from(full) * 8e12 / link.rate.as_f64();
        hops.iter().any(|a| hops.iter().any(|b| a.rate != b.rate && (each(a) - each(b)).abs() < 2.0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_closed_form_equals_the_recursion(
            hops in proptest::collection::vec((rates(), 0u64..5000), 1..9),
            full in 1u32..10_000,
            count in 0u64..60,
            last in proptest::option::of(1u32..10_000),
            whole_ns: bool,
        ) {
            let hops: Vec<Link> =
                hops.into_iter().map(|(rate, delay)| Link { rate, ..of_rate(1, delay) }).collect();
            let packets = Packets { full, count, last };
            let rounding = if whole_ns { Rounding::WholeNanoseconds } else { Rounding::Exact };
            let (closed, step_by_step) = (completion(&hops, packets, rounding), recursion(&hops, packets, rounding));
            if !whole_ns && close(&hops, full) {
                prop_assert!(closed.ps().abs_diff(step_by_step.ps()) <= 2 * hops.len() as u64);
            } else {
                prop_assert_eq!(closed, step_by_step);
            }
        }

        /// A rate that does not divide is close to one that does.
        #[test]
        fn it_is_within_a_picosecond_a_hop(
            rates in proptest::collection::vec(1_000_000u64..1_000_000_000_000, 1..6),
            full in 1u32..10_000,
            count in 1u64..60,
        ) {
            let hops: Vec<Link> = rates.iter().map(|&bps| Link { rate: Rate::from_bps(bps), ..of_rate(1, 0) }).collect();
            let exact = completion(&hops, Packets { full, count, last: None }, Rounding::Exact).ps();
            // The sum over all hops plus (count - 1) of the slowest, in picoseconds; exact up to the last bits of f64.
            let each = |bps: u64| f64::from(full) * 8e12 / bps as f64;
            let slowest = rates.iter().map(|&bps| each(bps)).fold(0.0, f64::max);
            let expected = rates.iter().map(|&bps| each(bps)).sum::<f64>() + (count - 1) as f64 * slowest;
            let slack = 1.0 + rates.len() as f64 * (count + 1) as f64 + expected * 1e-12;
            prop_assert!(exact as f64 >= expected - expected * 1e-12 - 1.0);
            prop_assert!(exact as f64 <= expected + slack);
        }
    }

    /// The largest base RTT by walking from every host to every other with many hashes.
    fn by_walking(topology: &Topology, data: u32, ack: u32) -> Time {
        let ports = topology.ports();
        let mut largest = Time::ZERO;
        for src in 0..topology.hosts {
            for dst in (0..topology.hosts).filter(|dst| *dst != src) {
                let slowest = |from, to, wire| {
                    let walks = (0..64u32)
                        .filter_map(|flow| path(topology, &ports, &topology.rules, &|node| node, from, to, flow));
                    walks.map(|hops| hops.iter().map(|hop| alone(&hop.link, wire).ps()).sum::<u64>()).max()
                };
                if let (Some(there), Some(back)) = (slowest(src, dst, data), slowest(dst, src, ack)) {
                    largest = largest.max(Time::from_ps(there + back));
                }
            }
        }
        largest
    }

    fn all_pairs(topology: &Topology, data: u32, ack: u32) -> Time {
        largest_of_pairs(topology, &topology.ports(), &groups(topology, data, ack), [data, ack])
    }

    /// Regular trees of one to three levels, with another link at each.
    fn trees() -> impl Strategy<Value = Topology> {
        let links = [of_rate(100, 1000), of_rate(56, 2000), of_rate(400, 300)];
        let [host_link, tor_agg_link, agg_core_link] = links;
        prop_oneof![
            (1u32..9).prop_map(move |hosts| SingleSwitch { hosts, link: host_link }.build()),
            (1u32..5, 1u32..4, 1u32..4, 1u32..3).prop_map(move |(leaves, spines, hosts_per_leaf, fabric_links)| {
                LeafSpine { leaves, spines, hosts_per_leaf, host_link, fabric_link: tor_agg_link, fabric_links }.build()
            }),
            (1u32..4, 1u32..4, 1u32..4, 1u32..5, 1u32..4, 1u32..3, 1u32..3).prop_map(
                move |(pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, tor_agg_links, agg_core_links)| {
                    Clos3 {
                        pods,
                        tors_per_pod,
                        aggs_per_pod,
                        cores,
                        hosts_per_tor,
                        host_link,
                        tor_agg_link,
                        agg_core_link,
                        tor_agg_links,
                        agg_core_links,
                    }
                    .build()
                }
            ),
        ]
        .prop_map(|built| built.expect("a small tree"))
    }

    #[test]
    fn the_largest_rtt_is_that_of_the_worst_pair() {
        let other = of_rate(400, 300);
        let slow = of_rate(56, 2000);
        let topologies = [
            SingleSwitch { hosts: 4, link: slow }.build(),
            SingleSwitch { hosts: 1, link: slow }.build(),
            LeafSpine {
                leaves: 3,
                spines: 2,
                hosts_per_leaf: 2,
                host_link: link(),
                fabric_link: other,
                fabric_links: 1,
            }
            .build(),
            FatTree { k: 4, link: slow }.build(),
            Chain { switches: 5, hosts_per_switch: 1, host_link: other, fabric_link: slow }.build(),
            Ring { switches: 6, hosts_per_switch: 2, host_link: other, fabric_link: link() }.build(),
            Clos3 {
                pods: 2,
                tors_per_pod: 2,
                aggs_per_pod: 2,
                cores: 3,
                hosts_per_tor: 2,
                host_link: link(),
                tor_agg_link: other,
                agg_core_link: slow,
                tor_agg_links: 1,
                agg_core_links: 1,
            }
            .build(),
        ];
        for topology in topologies {
            let topology = topology.unwrap();
            assert_eq!(max_base_rtt(&topology, 4178, 84), by_walking(&topology, 4178, 84), "{}", topology.kind);
        }
    }

    #[test]
    fn one_host_or_two_islands_have_no_rtt() {
        let topology = SingleSwitch { hosts: 1, link: link() }.build().unwrap();
        assert_eq!(max_base_rtt(&topology, 1500, 64), Time::ZERO);
        let text = "host a\nhost b\nswitch s\nswitch t\nlink a s 1Gbps 1us\nlink b t 1Gbps 1us\n";
        let topology = parse(text).unwrap();
        assert_eq!(max_base_rtt(&topology, 1500, 64), Time::ZERO);
        assert_eq!(path(&topology, &topology.ports(), &topology.rules, &|node| node, 0, 1, 0), None);
    }

    #[test]
    fn paths_start_at_the_nic_and_end_at_the_host() {
        let topology = FatTree { k: 4, link: link() }.build().unwrap();
        let ports = topology.ports();
        let hops = path(&topology, &ports, &topology.rules, &|node| node, 0, 15, 99).unwrap();
        assert_eq!(hops.len(), 6);
        assert_eq!((hops[0].node, hops[0].port, hops[0].cable), (0, 0, 0));
        assert_eq!(hops[5].node, topology.edge_of(15).unwrap());
        assert_eq!(hops[5].cable, 15);
        let none = |src, dst| path(&topology, &ports, &topology.rules, &|node| node, src, dst, 99);
        assert_eq!(none(0, 16), None);
        assert_eq!(none(16, 0), None);
        assert_eq!(none(3, 3), Some(Vec::new()));
    }

    #[test]
    fn cycles_end() {
        let chain = Chain { switches: 2, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        let mut topology = chain.build().unwrap();
        // Switch 0 sends what is for host 1 to the right, and switch 1 sends it back.
        topology.rules[1] = Rule::Line { lo: 0, hi: 0, host_base: 0, left: Some(1), right: Some(1) };
        assert_eq!(path(&topology, &topology.ports(), &topology.rules, &|node| node, 0, 1, 0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_largest_rtt_of_a_tree_is_that_of_the_worst_pair(topology in trees(), wires in (64u32..9000, 64u32..200)) {
            prop_assert!(has_equal_links(&topology, &topology.ports()));
            let largest = max_base_rtt(&topology, wires.0, wires.1);
            prop_assert_eq!(largest, all_pairs(&topology, wires.0, wires.1));
            prop_assert_eq!(largest, by_walking(&topology, wires.0, wires.1));
        }

        /// One slower link, a missing cable, cables in another order, or a rule of another switch.
        #[test]
        fn where_a_tree_is_not_regular_all_pairs_are_looked_at(
            mut topology in trees(),
            change in 0..4,
            a: proptest::sample::Index,
            b: proptest::sample::Index,
        ) {
            let hosts = topology.hosts as usize;
            let cable = a.index(topology.cables.len());
            let fabric = hosts..topology.cables.len();
            match change {
                0 => topology.cables[cable].link.delay += Time::from_us(9),
                1 if !fabric.is_empty() => drop(topology.cables.remove(hosts + a.index(fabric.len()))),
                2 if !fabric.is_empty() => {
                    topology.cables[hosts..].swap(a.index(fabric.len()), b.index(fabric.len()));
                }
                _ => {
                    let other = topology.rules[b.index(topology.rules.len())].clone();
                    let switch = a.index(topology.rules.len());
                    topology.rules[switch] = other;
                }
            }
            prop_assert_eq!(max_base_rtt(&topology, 4178, 84), all_pairs(&topology, 4178, 84));
        }

        #[test]
        fn the_largest_rtt_of_a_file_is_that_of_the_worst_pair(
            edges in proptest::collection::vec((0u32..5, 1u64..200), 1..6),
            links in proptest::collection::vec((0u32..5, 0u32..5, 1u64..200), 0..9),
        ) {
            let mut text: String = (0..5).map(|switch| format!("switch s{switch}\n")).collect();
            for (host, (edge, us)) in edges.iter().enumerate() {
                text += &format!("host h{host}\nlink s{edge} h{host} 10Gbps {us}us\n");
            }
            for (a, b, us) in links.into_iter().filter(|(a, b, _)| a != b) {
                text += &format!("link s{a} s{b} 56Gbps {us}us\n");
            }
            let topology = parse(&text).unwrap();
            prop_assert_eq!(max_base_rtt(&topology, 1518, 84), by_walking(&topology, 1518, 84));
        }
    }
}
