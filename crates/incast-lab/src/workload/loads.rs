//! What traffic puts on each link when it is spread evenly over equal-cost paths, and what a fabric can carry.

use incast_sim::topology::{Ports, Topology};
use std::collections::VecDeque;

/// Ports that are walked in a few seconds.
const LARGEST: f64 = 1e9;

/// A fabric seen as a fluid network.
#[derive(Debug)]
pub struct Fluid<'a> {
    topology: &'a Topology,
    ports: Ports,
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
        Self { topology, ports: topology.ports(), access }
    }

    /// Rate of a host's link in bits per second.
    pub fn host_rate(&self, host: u32) -> f64 {
        self.access[host as usize].map_or(0.0, |(_, cable)| self.topology.cables[cable].link.rate.as_f64())
    }

    /// Edge switches times the ports that are walked for each: the cost of [`Fluid::loads`].
    fn cost(&self) -> f64 {
        let switches = self.topology.hosts..self.topology.nodes();
        let mut edges = vec![false; self.topology.names.len()];
        self.access.iter().flatten().for_each(|(switch, _)| edges[*switch as usize] = true);
        let ports: f64 = switches.map(|switch| self.ports.of(switch).len() as f64).sum();
        edges.iter().filter(|edge| **edge).count() as f64 * ports
    }

    /// The fabric is so large that only host links can be looked at in a few seconds.
    pub fn is_too_large(&self) -> bool {
        self.cost() > LARGEST
    }

    /// Bits per second on each cable: towards its end `b`, and towards its end `a`. In a fabric that is too large,
    /// the links between switches stay empty.
    pub fn loads(&self, demand: &Demand) -> Vec<[f64; 2]> {
        self.spread(demand, if self.is_too_large() { usize::MAX } else { 1 })
    }

    /// Looks at the first of every `stride` edge switches as a destination, for all of them.
    fn spread(&self, demand: &Demand, stride: usize) -> Vec<[f64; 2]> {
        let topology = self.topology;
        let hosts = topology.hosts as usize;
        let mut loads = vec![[0.0; 2]; topology.cables.len()];
        let unit = demand.unit_rates();
        let sum: f64 = unit.iter().sum();
        let mut add = |cable: usize, from: u32, rate: f64| {
            loads[cable][usize::from(topology.cables[cable].a != from)] += rate;
        };
        // Per switch: rate per unit of weight that its hosts send, and the weight that they receive.
        let nodes = topology.names.len();
        let (mut sends, mut receives) = (vec![0.0; nodes], vec![0.0; nodes]);
        for (host, access) in self.access.iter().enumerate() {
            if let Some((switch, cable)) = *access {
                if unit[host] > 0.0 {
                    add(cable, host as u32, demand.sources[host]);
                }
                add(cable, switch, demand.destinations[host] * (sum - unit[host]));
                sends[switch as usize] += unit[host];
                receives[switch as usize] += demand.destinations[host];
            }
        }
        let edges: Vec<u32> =
            (hosts..nodes).filter(|node| receives[*node] > 0.0).map(|node| node as u32).collect();
        let mut distance = vec![u32::MAX; nodes];
        let mut flowing = vec![0.0; nodes];
        let looked_at = if stride == usize::MAX { 0 } else { edges.len() };
        for edge in edges.into_iter().take(looked_at).step_by(stride) {
            let order = self.breadth_first(edge, &mut distance);
            for node in &order {
                flowing[*node as usize] = sends[*node as usize] * receives[edge as usize] * stride as f64;
            }
            for node in order.iter().skip(1).rev() {
                let rate = flowing[*node as usize];
                if rate == 0.0 {
                    continue;
                }
                let nearer = |end: &&incast_sim::topology::PortEnd| {
                    end.peer as usize >= hosts && distance[end.peer as usize] + 1 == distance[*node as usize]
                };
                let ends = self.ports.of(*node);
                let share = rate / ends.iter().filter(nearer).count() as f64;
                for end in ends.iter().filter(nearer) {
                    add(end.cable as usize, *node, share);
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
            .map(|(cable, [up, down])| {
                (up.max(*down) / self.topology.cables[cable].link.rate.as_f64(), cable)
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Links that traffic crosses on average.
    pub fn mean_hops(&self, demand: &Demand) -> f64 {
        let total: f64 = demand.sources.iter().sum();
        let stride = (self.cost() / LARGEST).ceil().max(1.0) as usize;
        let crossed: f64 = self.spread(demand, stride).iter().flatten().sum();
        if total > 0.0 { crossed / total } else { 0.0 }
    }

    /// Bits per second that cross from one half of the hosts, by number, to the other: the larger direction.
    pub fn crossing(&self, demand: &Demand) -> f64 {
        let half = demand.sources.len() / 2;
        let unit = demand.unit_rates();
        let across = |from: &[f64], to: &[f64]| from.iter().sum::<f64>() * to.iter().sum::<f64>();
        across(&unit[..half], &demand.destinations[half..])
            .max(across(&unit[half..], &demand.destinations[..half]))
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
                Some(arc)
                    if self.arcs[arc].1 > 0 && level[self.arcs[arc].0] == level[node].saturating_add(1) =>
                {
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
    use incast_sim::topology::{Dumbbell, FatTree, LeafSpine, Link, SingleSwitch};
    use incast_units::{Rate, Time};

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
        let two = Dumbbell { left: 3, right: 3, host_link: link(100), bottleneck: link(40) }
            .build()
            .expect("built");
        assert_eq!(Fluid::new(&two).bisection(), 40e9);
    }
}
