//! What traffic puts on each link when it is spread evenly over equal-cost paths, and what a fabric can carry.

use incast_sim::topology::{PortEnd, Ports, Rule, Topology};
use std::collections::VecDeque;

/// Ports that are walked in a few seconds.
const LARGEST: f64 = 1e9;

/// Ports that are walked in 0.1 s or less: what may be spent on every run.
const QUICK: f64 = 1e7;

/// Fewest destinations from which a mean is estimated.
const FEWEST: usize = 8;

/// A fabric seen as a fluid network.
#[derive(Debug)]
pub struct Fluid<'a> {
    topology: &'a Topology,
    ports: Ports,
    /// See [`Topology::tree_levels`].
    is_tree: bool,
    /// Each host's switch and cable.
    access: Vec<Option<(u32, usize)>>,
}

/// Traffic: each source's rate, shared among destinations in proportion to their weights, itself left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Bits per second that each host sends.
    pub sources: Vec<f64>,
    /// Weight of each host as a destination.
    pub destinations: Vec<f64>,
}

impl Demand {
    /// For each host: rate per unit of destination weight.
    fn unit_rates(&self) -> Vec<f64> {
        let total: f64 = self.destinations.iter().sum();
        self.sources
            .iter()
            .zip(&self.destinations)
            .map(|(rate, own)| if total - own > 0.0 { rate / (total - own) } else { 0.0 })
            .collect()
    }
}

impl<'a> Fluid<'a> {
    /// Looks at a fabric.
    pub fn new(topology: &'a Topology) -> Self {
        let mut access = vec![None; topology.hosts as usize];
        for (index, cable) in topology.cables.iter().enumerate() {
            for (host, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if host < topology.hosts {
                    access[host as usize] = Some((other, index));
                }
            }
        }
        let ports = topology.ports();
        let is_tree = topology.tree_levels(&ports).is_some();
        Self { topology, ports, is_tree, access }
    }

    /// Rate of a host's link in bits per second.
    pub fn host_rate(&self, host: u32) -> f64 {
        self.access[host as usize].map_or(0.0, |(_, cable)| self.topology.cables[cable].link.rate.as_f64())
    }

    /// Ports of all switches.
    fn switch_ports(&self) -> f64 {
        (self.topology.hosts..self.topology.nodes()).map(|switch| self.ports.of(switch).len() as f64).sum()
    }

    /// Edge switches times the ports that are walked for each: the cost of [`Fluid::walked_loads`].
    fn cost(&self) -> f64 {
        let mut edges = vec![false; self.topology.names.len()];
        self.access.iter().flatten().for_each(|(switch, _)| edges[*switch as usize] = true);
        edges.iter().filter(|edge| **edge).count() as f64 * self.switch_ports()
    }

    /// The fabric is no regular tree, and so large that only host links can be looked at in a few seconds.
    pub fn is_too_large(&self) -> bool {
        !self.is_tree && self.cost() > LARGEST
    }

    /// Bits per second on each cable: towards its end `b`, and towards its end `a`. In a fabric that is too large,
    /// the links between switches stay empty.
    pub fn loads(&self, demand: &Demand) -> Vec<[f64; 2]> {
        let cost = self.cost();
        if self.is_tree && cost > QUICK { self.climb(demand) } else { self.spread(demand, cost <= LARGEST) }
    }

    /// As [`Fluid::loads`], which may differ in the last bits, at a cost of seconds in large fabrics. For what decides
    /// when flows start.
    pub fn walked_loads(&self, demand: &Demand) -> Vec<[f64; 2]> {
        if self.cost() > LARGEST { self.loads(demand) } else { self.spread(demand, true) }
    }

    /// Adds the rate of what a node sends on a cable.
    fn add(&self, loads: &mut [[f64; 2]], cable: usize, from: u32, rate: f64) {
        loads[cable][usize::from(self.topology.cables[cable].a != from)] += rate;
    }

    /// Loads of the host links alone, and for each node that is a switch the rate per unit of weight that its hosts
    /// send and the weight that they receive.
    fn at_hosts(&self, demand: &Demand) -> (Vec<[f64; 2]>, Vec<f64>, Vec<f64>) {
        let mut loads = vec![[0.0; 2]; self.topology.cables.len()];
        let unit = demand.unit_rates();
        let sum: f64 = unit.iter().sum();
        let nodes = self.topology.names.len();
        let (mut sends, mut receives) = (vec![0.0; nodes], vec![0.0; nodes]);
        for (host, access) in self.access.iter().enumerate() {
            if let Some((switch, cable)) = *access {
                if unit[host] > 0.0 {
                    self.add(&mut loads, cable, host as u32, demand.sources[host]);
                }
                self.add(&mut loads, cable, switch, demand.destinations[host] * (sum - unit[host]));
                sends[switch as usize] += unit[host];
                receives[switch as usize] += demand.destinations[host];
            }
        }
        (loads, sends, receives)
    }

    /// Switches that receive, out of those of which [`Fluid::at_hosts`] returns the weights.
    fn receiving(&self, receives: &[f64]) -> Vec<u32> {
        (self.topology.hosts..self.topology.nodes()).filter(|node| receives[*node as usize] > 0.0).collect()
    }

    /// Hosts below a switch of a regular tree.
    fn below(&self, switch: u32) -> (usize, usize) {
        match self.topology.rules[(switch - self.topology.hosts) as usize] {
            Rule::Tree { lo, hi, .. } => (lo as usize, hi as usize),
            _ => (0, 0),
        }
    }

    /// As [`Fluid::spread`], for regular trees: what leaves a switch upwards and downwards is in proportion to the
    /// weight outside of it and below, so that one pass up and one down are enough.
    fn climb(&self, demand: &Demand) -> Vec<[f64; 2]> {
        let (hosts, nodes) = (self.topology.hosts, self.topology.nodes());
        // Rates here are those per unit of weight. What comes to a switch from below, and what it sends on each port
        // upwards of that.
        let (mut loads, mut rising, _) = self.at_hosts(demand);
        let mut raised = vec![0.0; rising.len()];
        let mut before = vec![0.0];
        before.extend(demand.destinations.iter().scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }));
        let weight = |switch| {
            let (lo, hi) = self.below(switch);
            before[hi] - before[lo]
        };
        for switch in hosts..nodes {
            let is_up = |end: &&PortEnd| end.peer > switch;
            let ends = self.ports.of(switch);
            let share = rising[switch as usize] / ends.iter().filter(is_up).count() as f64;
            raised[switch as usize] = share;
            for end in ends.iter().filter(is_up) {
                self.add(&mut loads, end.cable as usize, switch, share * (before[hosts as usize] - weight(switch)));
                rising[end.peer as usize] += share;
            }
        }
        let mut falling = vec![0.0; rising.len()];
        for switch in (hosts..nodes).rev() {
            let is_down = |end: &PortEnd| (hosts..switch).contains(&end.peer);
            let ends: Vec<PortEnd> = self.ports.of(switch).iter().copied().filter(is_down).collect();
            for group in ends.chunk_by(|one, next| self.below(one.peer) == self.below(next.peer)) {
                let own: f64 = group.iter().map(|end| raised[end.peer as usize]).sum();
                let through = falling[switch as usize] + rising[switch as usize] - own;
                let share = through / group.len() as f64;
                for end in group {
                    self.add(&mut loads, end.cable as usize, switch, share * weight(end.peer));
                    falling[end.peer as usize] += share;
                }
            }
        }
        loads
    }

    /// Walks from every edge switch as a destination, if `across` the fabric; host links only otherwise.
    fn spread(&self, demand: &Demand, across: bool) -> Vec<[f64; 2]> {
        let topology = self.topology;
        let (hosts, nodes) = (topology.hosts as usize, topology.names.len());
        let (mut loads, sends, receives) = self.at_hosts(demand);
        let edges = if across { self.receiving(&receives) } else { Vec::new() };
        let mut distance = vec![u32::MAX; nodes];
        let mut flowing = vec![0.0; nodes];
        for edge in edges {
            let order = self.breadth_first(edge, &mut distance);
            for node in &order {
                flowing[*node as usize] = sends[*node as usize] * receives[edge as usize];
            }
            for node in order.iter().skip(1).rev() {
                let rate = flowing[*node as usize];
                if rate == 0.0 {
                    continue;
                }
                let nearer = |end: &&PortEnd| {
                    end.peer as usize >= hosts && distance[end.peer as usize] + 1 == distance[*node as usize]
                };
                let ends = self.ports.of(*node);
                let share = rate / ends.iter().filter(nearer).count() as f64;
                for end in ends.iter().filter(nearer) {
                    self.add(&mut loads, end.cable as usize, *node, share);
                    flowing[end.peer as usize] += share;
                }
            }
        }
        loads
    }

    /// Switches by their distance from `root`, nearest first. Hosts carry nothing through.
    fn breadth_first(&self, root: u32, distance: &mut [u32]) -> Vec<u32> {
        distance.fill(u32::MAX);
        distance[root as usize] = 0;
        let mut order = vec![root];
        let mut next = 0;
        while let Some(node) = order.get(next).copied() {
            next += 1;
            for end in self.ports.of(node) {
                if end.peer >= self.topology.hosts && distance[end.peer as usize] == u32::MAX {
                    distance[end.peer as usize] = distance[node as usize] + 1;
                    order.push(end.peer);
                }
            }
        }
        order
    }

    /// The most loaded direction of a cable, as (load over rate, cable).
    pub fn busiest(&self, loads: &[[f64; 2]]) -> Option<(f64, usize)> {
        loads
            .iter()
            .enumerate()
            .map(|(cable, [up, down])| (up.max(*down) / self.topology.cables[cable].link.rate.as_f64(), cable))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Links that traffic crosses on average.
    ///
    /// In large fabrics an estimate from about 10^7 port visits: n destination switches at an even stride, and at
    /// each place of the stride in turn. Where switches are between a and b links away on average, its standard error
    /// is below (b - a) / (2 √n): zero for uniform traffic in regular trees, whose switches are all alike.
    pub fn mean_hops(&self, demand: &Demand) -> f64 {
        let total: f64 = demand.sources.iter().sum();
        let (loads, sends, receives) = self.at_hosts(demand);
        let edges = self.receiving(&receives);
        let count = ((QUICK / self.switch_ports()) as usize).max(FEWEST).min(edges.len().max(1));
        let mut distance = vec![u32::MAX; receives.len()];
        let (mut looked_at, mut crossed) = (0.0, 0.0);
        // At an even stride, and at each place of it in turn: no pod is looked at in one place only.
        let step = |place: usize| edges.len() * place / count;
        for place in (0..count).filter(|_| !edges.is_empty()) {
            let stride = step(place + 1) - step(place);
            let edge = &edges[step(place) + place % stride];
            let order = self.breadth_first(*edge, &mut distance);
            let hops = |node: &u32| sends[*node as usize] * f64::from(distance[*node as usize]);
            crossed += receives[*edge as usize] * order.iter().map(hops).sum::<f64>();
            looked_at += receives[*edge as usize];
        }
        let scale = if looked_at > 0.0 { receives.iter().sum::<f64>() / looked_at } else { 0.0 };
        let at_hosts: f64 = loads.iter().flatten().sum();
        if total > 0.0 { (at_hosts + crossed * scale) / total } else { 0.0 }
    }

    /// Bits per second that cross from one half of the hosts, by number, to the other: the larger direction.
    pub fn crossing(&self, demand: &Demand) -> f64 {
        let half = demand.sources.len() / 2;
        let unit = demand.unit_rates();
        let across = |from: &[f64], to: &[f64]| from.iter().sum::<f64>() * to.iter().sum::<f64>();
        across(&unit[..half], &demand.destinations[half..]).max(across(&unit[half..], &demand.destinations[..half]))
    }

    /// Bits per second that the fabric carries from the first half of the hosts to the second: a maximum flow
    /// (Dinic 1970), host links included.
    pub fn bisection(&self) -> f64 {
        let nodes = self.topology.names.len();
        let half = self.topology.hosts / 2;
        let (source, sink) = (nodes, nodes + 1);
        let mut network = Network::new(nodes + 2);
        for cable in &self.topology.cables {
            network.join(cable.a as usize, cable.b as usize, cable.link.rate.bps(), cable.link.rate.bps());
        }
        for host in 0..self.topology.hosts {
            if host < half {
                network.join(source, host as usize, u64::MAX / 4, 0);
            } else {
                network.join(host as usize, sink, u64::MAX / 4, 0);
            }
        }
        network.maximum(source, sink) as f64
    }
}

/// A flow network; arc `i` and arc `i ^ 1` are the two directions of a pair.
struct Network {
    arcs: Vec<(usize, u64)>,
    of: Vec<Vec<usize>>,
}

impl Network {
    fn new(nodes: usize) -> Self {
        Self { arcs: Vec::new(), of: vec![Vec::new(); nodes] }
    }

    fn join(&mut self, a: usize, b: usize, forth: u64, back: u64) {
        self.of[a].push(self.arcs.len());
        self.arcs.push((b, forth));
        self.of[b].push(self.arcs.len());
        self.arcs.push((a, back));
    }

    fn maximum(&mut self, source: usize, sink: usize) -> u128 {
        let mut total = 0u128;
        loop {
            let mut level = vec![u32::MAX; self.of.len()];
            level[source] = 0;
            let mut queue = VecDeque::from([source]);
            while let Some(node) = queue.pop_front() {
                for arc in &self.of[node] {
                    let (to, room) = self.arcs[*arc];
                    if room > 0 && level[to] == u32::MAX {
                        level[to] = level[node] + 1;
                        queue.push_back(to);
                    }
                }
            }
            if level[sink] == u32::MAX {
                return total;
            }
            total += self.block(source, sink, &level);
        }
    }

    /// A blocking flow along rising levels, without recursion: paths in a ring can be long.
    fn block(&mut self, source: usize, sink: usize, level: &[u32]) -> u128 {
        let mut next = vec![0usize; self.of.len()];
        let mut total = 0u128;
        let mut path: Vec<usize> = Vec::new();
        loop {
            let node = path.last().map_or(source, |arc| self.arcs[*arc].0);
            if node == sink {
                let room = path.iter().map(|arc| self.arcs[*arc].1).min().unwrap_or(0);
                for arc in &path {
                    self.arcs[*arc].1 -= room;
                    self.arcs[*arc ^ 1].1 += room;
                }
                total += u128::from(room);
                path.clear();
                continue;
            }
            match self.of[node].get(next[node]).copied() {
                Some(arc) if self.arcs[arc].1 > 0 && level[self.arcs[arc].0] == level[node].saturating_add(1) => {
                    path.push(arc)
                }
                Some(_) => next[node] += 1,
                None => match path.pop() {
                    Some(arc) => next[self.arcs[arc ^ 1].0] += 1,
                    None => return total,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::topology::{Chain, Clos3, Dumbbell, FatTree, LeafSpine, Link, SingleSwitch};
    use incast_units::{Rate, Time};
    use proptest::prelude::*;

    fn link(gbps: u64) -> Link {
        Link { rate: Rate::from_gbps(gbps), delay: Time::from_us(1), loss: 0.0 }
    }
    fn uniform(fluid: &Fluid<'_>, hosts: u32) -> Demand {
        Demand {
            sources: (0..hosts).map(|host| fluid.host_rate(host)).collect(),
            destinations: vec![1.0; hosts as usize],
        }
    }

    #[test]
    fn uniform_traffic_on_a_leaf_spine() {
        // 2:1 oversubscribed: 16 hosts of 10G over 8 spines of 10G. 3/4 of the traffic (48 of 63) leaves its leaf.
        let topology = LeafSpine {
            leaves: 4,
            spines: 8,
            hosts_per_leaf: 16,
            host_link: link(10),
            fabric_link: link(10),
            fabric_links: 1,
        }
        .build()
        .expect("built");
        let fluid = Fluid::new(&topology);
        let demand = uniform(&fluid, 64);
        let loads = fluid.loads(&demand);
        let (busiest, cable) = fluid.busiest(&loads).expect("links");
        assert!((busiest - 16.0 / 8.0 * 48.0 / 63.0).abs() < 1e-9, "{busiest}");
        assert!(cable >= 64);
        assert!((loads[0][0] - 10e9).abs() < 1.0 && (loads[0][1] - 10e9).abs() < 1.0);
        assert!((fluid.mean_hops(&demand) - (2.0 + 2.0 * 48.0 / 63.0)).abs() < 1e-9);
        // Two leaves with eight uplinks each on either side.
        assert_eq!(fluid.bisection(), 160e9);
        assert!((fluid.crossing(&demand) - 320e9 * 32.0 / 63.0).abs() < 1.0);
    }

    #[test]
    fn bisections() {
        let tree = FatTree { k: 4, link: link(100) }.build().expect("built");
        assert_eq!(Fluid::new(&tree).bisection(), 800e9);
        let one = SingleSwitch { hosts: 9, link: link(100) }.build().expect("built");
        assert_eq!(Fluid::new(&one).bisection(), 400e9);
        let two = Dumbbell { left: 3, right: 3, host_link: link(100), bottleneck: link(40) }.build().expect("built");
        assert_eq!(Fluid::new(&two).bisection(), 40e9);
    }

    #[test]
    fn a_sample_of_a_regular_tree_is_exact() {
        let topology = FatTree { k: 32, link: link(100) }.build().expect("built");
        let fluid = Fluid::new(&topology);
        assert!(fluid.cost() > QUICK);
        // Of 8,191 others, 15 have the same switch, and 240 the same pod.
        let expected = (15.0 * 2.0 + 240.0 * 4.0 + 7936.0 * 6.0) / 8191.0;
        assert!((fluid.mean_hops(&uniform(&fluid, 8192)) - expected).abs() < 1e-9);
    }

    #[test]
    fn a_sample_of_a_chain_is_within_its_standard_error() {
        let switches = 4000;
        let topology =
            Chain { switches, hosts_per_switch: 1, host_link: link(10), fabric_link: link(10) }.build().expect("built");
        let fluid = Fluid::new(&topology);
        let samples = QUICK / fluid.switch_ports();
        assert!(samples < 1000.0);
        // The switch in the middle is n / 4 links away on average, that at an end n / 2.
        let n = f64::from(switches);
        let error = (fluid.mean_hops(&uniform(&fluid, switches)) - (2.0 + (n + 1.0) / 3.0)).abs();
        assert!(error < n / 4.0 / (2.0 * samples.sqrt()), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Oversubscribed or not, with some sources and destinations idle.
        #[test]
        fn one_pass_over_a_tree_equals_the_walk(
            counts in (1u32..5, 1u32..5, 1u32..4, 1u32..7, 1u32..5),
            (fabric_links, core_links) in (1u32..4, 1u32..4),
            two_tiers: bool,
            weights in proptest::collection::vec((0u32..4, 0u32..4), 64),
        ) {
            let (pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor) = counts;
            let [host_link, fabric_link, agg_core_link] = [10, 40, 25].map(link);
            let topology = if two_tiers {
                let (leaves, spines, hosts_per_leaf) = (pods, cores, hosts_per_tor);
                LeafSpine { leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links }.build()
            } else {
                let tor_agg_link = fabric_link;
                let (tor_agg_links, agg_core_links) = (fabric_links, core_links);
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
            };
            let topology = topology.expect("built");
            let fluid = Fluid::new(&topology);
            prop_assert!(fluid.is_tree);
            let of = |host: u32| weights[host as usize % weights.len()];
            let demand = Demand {
                sources: (0..topology.hosts).map(|host| f64::from(of(host).0) * 1e9).collect(),
                destinations: (0..topology.hosts).map(|host| f64::from(of(host).1) / 3.0).collect(),
            };
            let (walked, passed) = (fluid.spread(&demand, true), fluid.climb(&demand));
            for (walked, passed) in walked.iter().flatten().zip(passed.iter().flatten()) {
                prop_assert!((walked - passed).abs() <= 1e-11 * 64e9, "{walked} {passed}");
            }
            let total: f64 = demand.sources.iter().sum();
            let crossed: f64 = walked.iter().flatten().sum();
            prop_assert!((fluid.mean_hops(&demand) * total - crossed).abs() <= 1e-9 * crossed);
        }
    }
}
