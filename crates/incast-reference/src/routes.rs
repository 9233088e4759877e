//! Routes by breadth-first search from every host, and the longest round trip by following all of them.

use incast_sim::{config::LinkEvent, topology::Topology};

/// Equal-cost ports of every node to every host, ascending.
#[derive(Debug)]
pub struct Routes {
    /// By node, then host.
    ports: Vec<Vec<Vec<u32>>>,
}

/// Neighbour and cable of each port of each node.
fn neighbours(topology: &Topology) -> Vec<Vec<(u32, usize)>> {
    let mut of = vec![Vec::new(); topology.nodes() as usize];
    for (index, cable) in topology.cables.iter().enumerate() {
        of[cable.a as usize].push((cable.b, index));
        of[cable.b as usize].push((cable.a, index));
    }
    of
}

impl Routes {
    /// Shortest paths over the cables that are up. Hosts carry no transit traffic.
    fn new(topology: &Topology, down: &[bool]) -> Self {
        let neighbours = neighbours(topology);
        let mut ports = vec![vec![Vec::new(); topology.hosts as usize]; topology.nodes() as usize];
        for host in 0..topology.hosts {
            let mut distance = vec![None; topology.nodes() as usize];
            distance[host as usize] = Some(0);
            let mut at = vec![host];
            let mut hops = 0;
            while !at.is_empty() {
                hops += 1;
                let mut further = Vec::new();
                for node in at {
                    for (peer, cable) in &neighbours[node as usize] {
                        if !down[*cable] && *peer >= topology.hosts && distance[*peer as usize].is_none() {
                            distance[*peer as usize] = Some(hops);
                            further.push(*peer);
                        }
                    }
                }
                at = further;
            }
            for node in topology.hosts..topology.nodes() {
                let Some(here) = distance[node as usize] else { continue };
                for (port, (peer, cable)) in neighbours[node as usize].iter().enumerate() {
                    if !down[*cable] && distance[*peer as usize] == Some(here - 1) {
                        ports[node as usize][host as usize].push(port as u32);
                    }
                }
            }
        }
        Self { ports }
    }

    /// Routes from the start and after each change of the cables, with the time from which they hold.
    pub fn of_all_epochs(topology: &Topology, events: &[LinkEvent]) -> Vec<(u64, Self)> {
        let mut down = vec![false; topology.cables.len()];
        let mut epochs = vec![(0, Self::new(topology, &down))];
        let mut events = events.to_vec();
        events.sort_by_key(|event| event.at);
        for event in events {
            down[event.cable] = !event.up;
            epochs.push((event.at.ps(), Self::new(topology, &down)));
        }
        epochs
    }

    /// The port that a packet takes, if there is a way.
    pub fn pick(&self, node: u32, host: u32, ecmp_hash: u32) -> Option<u32> {
        let ports = &self.ports[node as usize][host as usize];
        ports.get(((u64::from(ecmp_hash) * ports.len() as u64) >> 32) as usize).copied()
    }
}

/// One packet over one idle link.
fn hop(topology: &Topology, cable: usize, bytes: u32) -> u64 {
    let link = &topology.cables[cable].link;
    (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(link.rate.bps())) as u64 + link.delay.ps()
}

/// How much longer a packet takes from one host to another, by the first of the equal-cost ports everywhere, than
/// between the two hosts of one switch that are nearest to each other (without such hosts: than between any two with
/// neighbouring numbers).
pub fn longer(topology: &Topology, bytes: u32, from: u32, to: u32) -> u64 {
    let neighbours = neighbours(topology);
    let routes = Routes::new(topology, &vec![false; topology.cables.len()]);
    let way = |from: u32, to: u32| {
        let (mut node, cable) = neighbours[from as usize][0];
        let mut time = hop(topology, cable, bytes);
        while node != to {
            let port = *routes.ports[node as usize][to as usize].first()?;
            let (peer, cable) = neighbours[node as usize][port as usize];
            time += hop(topology, cable, bytes);
            node = peer;
        }
        Some(time)
    };
    let edge = |host: u32| neighbours[host as usize][0].0;
    let pairs = || (0..topology.hosts).flat_map(|a| (0..topology.hosts).map(move |b| (a, b)));
    let joined = pairs().filter(|(a, b)| a != b && edge(*a) == edge(*b)).filter_map(|(a, b)| way(a, b)).min();
    let least = joined.or_else(|| (1..topology.hosts).filter_map(|host| way(host - 1, host)).min());
    way(from, to).unwrap_or(0).saturating_sub(least.unwrap_or(0))
}

/// The longest round trip of a data packet and its answer over any equal-cost paths of any two hosts, in an empty
/// fabric; both sizes with preamble and gap.
pub fn base_rtt(topology: &Topology, data: u32, answer: u32) -> u64 {
    let neighbours = neighbours(topology);
    let routes = Routes::new(topology, &vec![false; topology.cables.len()]);
    let hop = |cable, bytes| hop(topology, cable, bytes);
    fn longest(
        node: u32,
        host: u32,
        routes: &Routes,
        neighbours: &[Vec<(u32, usize)>],
        cost: &dyn Fn(usize) -> u64,
    ) -> Option<u64> {
        if node == host {
            return Some(0);
        }
        let ways = routes.ports[node as usize][host as usize].iter().filter_map(|port| {
            let (peer, cable) = neighbours[node as usize][*port as usize];
            Some(longest(peer, host, routes, neighbours, cost)? + cost(cable))
        });
        ways.max()
    }
    let way = |from: u32, to: u32, bytes: u32| {
        let (edge, cable) = neighbours[from as usize][0];
        let cost = |cable| hop(cable, bytes);
        longest(edge, to, &routes, &neighbours, &cost).map(|rest| rest + hop(cable, bytes))
    };
    let pairs = (0..topology.hosts).flat_map(|a| (0..topology.hosts).map(move |b| (a, b)));
    let times = pairs.filter(|(a, b)| a != b).filter_map(|(a, b)| Some(way(a, b, data)? + way(b, a, answer)?));
    times.max().unwrap_or(0)
}
