//! Route data for deflection and virtual channels: which links lead up, how many channels a path takes, and which other
//! ports lead to a host without coming back.
//!
//! **Up and down.** Switches are in a total order: by their distance from the nearest host, then by their number. A
//! link leads up if it leads to the higher switch; a host is below its switch. So the root of a tree is up; in a ring
//! with its switches in a row all links lead up but the one from the last to the first.
//!
//! **Channels.** A packet starts on virtual channel 0 and takes the next one where it goes up after it has come down.
//! *There is no cycle of (link, channel) pairs of which each waits for the next.* On one channel a path goes up and
//! then down. Up links can be numbered by rising order of their ends, and down links after them by falling order, so
//! that numbers rise along each path; and from one channel paths only go on to later ones (W. Dally and C. Seitz, IEEE
//! Trans. Computers 1987; J. Duato, IEEE TPDS 1993, for adaptive routes: every port that a packet may take here,
//! deflected or not, follows the order). In a tree one channel is enough for all usual paths, in a ring two: its lowest
//! switch is the dateline. Literature also proposes a channel for each deflection; that would leave a cycle of the
//! usual paths as it is. A packet is deflected only where the channels that are left take it to its destination by
//! usual paths.
//!
//! **Loop-free alternates** are those of RFC 5286 (inequality 1): a neighbour that is no farther from the destination
//! than the switch itself does not send packets for it back. Distances are those of the longest usual path, which
//! become less with each link.

use crate::topology::{Node, Ports, Rule, Topology};
use std::{collections::VecDeque, sync::Arc};

/// There is no path.
const FAR: u16 = u16::MAX;
/// No port leads there; no switch is there.
const NONE: u32 = u32::MAX;

/// Where a port's link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To a host.
    Host,
    /// To a higher switch.
    Up,
    /// To a lower switch.
    Down,
}

/// The switches of a fabric in their order, and the ports between them: the same in all routing epochs.
#[derive(Debug)]
pub struct SwitchOrder {
    /// By switch index: distance from the nearest host.
    levels: Vec<u32>,
    /// By switch, then port: the switch there, or [`NONE`] for a host.
    peers: Vec<Vec<u32>>,
    /// By switch, then port: the cable.
    cables: Vec<Vec<u32>>,
}

impl SwitchOrder {
    /// That of a topology.
    pub fn new(topology: &Topology, ports: &Ports) -> Self {
        let (hosts, switches) = (topology.hosts, topology.switches());
        let of = |node: u32| ports.of(hosts + node).iter();
        let peer = |peer: u32| peer.checked_sub(hosts).unwrap_or(NONE);
        let peers: Vec<Vec<u32>> = (0..switches).map(|node| of(node).map(|end| peer(end.peer)).collect()).collect();
        let cables = (0..switches).map(|node| of(node).map(|end| end.cable).collect()).collect();
        let mut levels = vec![NONE; switches as usize];
        let edges = (0..switches).filter(|node| peers[*node as usize].contains(&NONE));
        let mut line: VecDeque<u32> = edges.collect();
        line.iter().for_each(|edge| levels[*edge as usize] = 1);
        while let Some(node) = line.pop_front() {
            for next in peers[node as usize].iter().copied().filter(|next| *next != NONE) {
                if levels[next as usize] == NONE {
                    levels[next as usize] = levels[node as usize] + 1;
                    line.push_back(next);
                }
            }
        }
        Self { levels, peers, cables }
    }

    /// Where the link of a port leads.
    fn direction(&self, switch: usize, port: usize) -> Direction {
        match self.peers[switch][port] {
            NONE => Direction::Host,
            peer if (self.levels[peer as usize], peer) > (self.levels[switch], switch as u32) => Direction::Up,
            _ => Direction::Down,
        }
    }
}

/// The routes of one epoch.
#[derive(Debug)]
pub struct Detours {
    /// By host: hosts that are reached alike have one number.
    group_of: Vec<u32>,
    switches: usize,
    /// By group, then switch: links of the longest usual path to the host's switch.
    distance: Vec<u16>,
    /// By group, then switch: channel changes on the usual paths from there, for a packet that comes up, and one that
    /// comes down.
    turns: Vec<[u8; 2]>,
    /// By switch to be reached, then switch: the port. Empty where it is not needed.
    towards: Vec<u16>,
    /// Channels that usual paths take.
    channels: u8,
    /// Cables that are down, ascending.
    down: Vec<u32>,
}

impl Detours {
    /// Those of `rules`, without the cables for which `down` is true. `between_switches`: switches must be able to
    /// reach each other.
    pub fn new(
        topology: &Topology,
        order: &SwitchOrder,
        rules: &[Rule],
        down: &dyn Fn(usize) -> bool,
        between_switches: bool,
    ) -> Self {
        let switches = rules.len();
        let mut group_of = Vec::with_capacity(topology.hosts as usize);
        let mut hosts: Vec<Node> = Vec::new();
        let mut before = None;
        for host in 0..topology.hosts {
            let edge = topology.edge_of(host);
            // The routes of a file may differ by host.
            if topology.kind == "file" || before != Some(edge) || down(host as usize) {
                hosts.push(host);
            }
            before = (!down(host as usize)).then_some(edge);
            group_of.push(hosts.len() as u32 - 1);
        }
        let mut detours = Self {
            group_of,
            switches,
            distance: vec![FAR; hosts.len() * switches],
            turns: vec![[0; 2]; hosts.len() * switches],
            towards: Vec::new(),
            channels: 1,
            down: (0..topology.cables.len()).filter(|cable| down(*cable)).map(|cable| cable as u32).collect(),
        };
        for (group, host) in hosts.iter().enumerate() {
            if let Some(edge) = topology.edge_of(*host) {
                detours.measure(group * switches, (edge - topology.hosts) as usize, *host, order, rules);
            }
        }
        let is_edge = |place: usize| order.peers[place % switches].contains(&NONE);
        let from_hosts = (0..detours.turns.len()).filter(|place| is_edge(*place) && detours.distance[*place] != FAR);
        let most = from_hosts.map(|place| detours.turns[place][0]).max();
        detours.channels = most.unwrap_or(0).saturating_add(1);
        if between_switches {
            detours.towards = towards(order, down);
        }
        detours
    }

    /// Distances and turns of the paths to one host, from near switches to far ones. A switch on a loop, or with a path
    /// into one, stays far.
    fn measure(&mut self, base: usize, edge: usize, host: Node, order: &SwitchOrder, rules: &[Rule]) {
        let next = |switch: usize| {
            rules[switch].alternatives(host).filter_map(move |port| {
                let peer = order.peers[switch].get(usize::from(port)).copied().filter(|peer| *peer != NONE)?;
                Some((peer as usize, order.direction(switch, usize::from(port))))
            })
        };
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); rules.len()];
        let mut open = vec![0u32; rules.len()];
        for switch in (0..rules.len()).filter(|switch| *switch != edge) {
            for (peer, _) in next(switch) {
                before[peer].push(switch as u32);
                open[switch] += 1;
            }
        }
        self.distance[base + edge] = 0;
        let mut line = vec![edge];
        while let Some(near) = line.pop() {
            for far in before[near].iter().map(|far| *far as usize) {
                open[far] -= 1;
                if open[far] > 0 {
                    continue;
                }
                let (mut distance, mut turns) = (0, [0u8; 2]);
                for (peer, direction) in next(far) {
                    let [up, down] = self.turns[base + peer];
                    distance = distance.max(self.distance[base + peer].saturating_add(1));
                    let rest = if direction == Direction::Up { [up, up.saturating_add(1)] } else { [down; 2] };
                    turns = [turns[0].max(rest[0]), turns[1].max(rest[1])];
                }
                (self.distance[base + far], self.turns[base + far]) = (distance, turns);
                line.push(far);
            }
        }
    }

    /// Virtual channels that the usual paths take.
    pub fn channels(&self) -> u8 {
        self.channels
    }

    fn place(&self, host: Node, switch: u32) -> Option<usize> {
        self.group_of.get(host as usize).map(|group| *group as usize * self.switches + switch as usize)
    }
}

/// For each pair of switches, a port on a shortest path.
fn towards(order: &SwitchOrder, down: &dyn Fn(usize) -> bool) -> Vec<u16> {
    let switches = order.peers.len();
    let mut towards = vec![u16::MAX; switches * switches];
    for target in 0..switches {
        let mut line = VecDeque::from([target]);
        let mut seen = vec![false; switches];
        seen[target] = true;
        while let Some(near) = line.pop_front() {
            for (port, far) in order.peers[near].iter().enumerate().filter(|(_, far)| **far != NONE) {
                let (far, cable) = (*far as usize, order.cables[near][port]);
                if !seen[far] && !down(cable as usize) {
                    seen[far] = true;
                    let back = order.cables[far].iter().position(|other| *other == cable);
                    towards[target * switches + far] = back.map_or(u16::MAX, |port| port as u16);
                    line.push_back(far);
                }
            }
        }
    }
    towards
}

/// The routes of an epoch, as one switch needs them.
#[derive(Clone, Debug)]
pub struct RouteView {
    /// Of all switches, read only. The reference count changes when an epoch begins, not for each packet.
    detours: Arc<Detours>,
    hosts: u32,
    /// Index of the switch.
    switch: u32,
    /// By port: the switch there, or [`NONE`].
    peers: Box<[u32]>,
    directions: Box<[Direction]>,
    /// Ports whose cables are down.
    down: Vec<u16>,
}

impl RouteView {
    /// That of a switch, by index, of a fabric with so many hosts.
    pub fn new(detours: &Arc<Detours>, order: &SwitchOrder, hosts: u32, switch: u32) -> Self {
        let peers = &order.peers[switch as usize];
        let directions = (0..peers.len()).map(|port| order.direction(switch as usize, port));
        let cables = order.cables[switch as usize].iter().enumerate();
        let down = cables.filter(|(_, cable)| detours.down.binary_search(cable).is_ok());
        Self {
            detours: Arc::clone(detours),
            hosts,
            switch,
            peers: peers.as_slice().into(),
            directions: directions.collect(),
            down: down.map(|(port, _)| port as u16).collect(),
        }
    }

    /// Where the links of its ports lead.
    pub fn directions(&self) -> &[Direction] {
        &self.directions
    }

    /// There is a host at the other end of a port.
    pub fn leads_to_host(&self, port: u16) -> bool {
        self.directions.get(usize::from(port)) == Some(&Direction::Host)
    }

    /// Ports to neighbours that do not send packets to `destination` back here, ascending; the usual ports are among
    /// them.
    pub fn loop_free_alternates(&self, destination: Node) -> impl Iterator<Item = u16> + '_ {
        let distance = move |switch: u32| match self.detours.place(destination, switch) {
            Some(place) if switch != NONE => self.detours.distance[place],
            _ => FAR,
        };
        let own = distance(self.switch);
        let peers = self.peers.iter().enumerate();
        peers
            .filter(move |(_, peer)| **peer != NONE && distance(**peer) != FAR && distance(**peer) <= own)
            .map(|(port, _)| port as u16)
            .filter(move |port| !self.down.contains(port))
    }

    /// Channels that a packet changes from here on if it came in by one port, leaves by another one, and then takes
    /// usual paths to `destination`; `None` if these do not lead there.
    pub fn needs(&self, ingress: u16, port: u16, destination: Node) -> Option<u8> {
        let direction = |port: u16| self.directions.get(usize::from(port)).copied();
        let (from, out) = (direction(ingress), direction(port)?);
        let peer = self.peers[usize::from(port)];
        if out == Direction::Host {
            return Some(0);
        }
        let place = self.detours.place(destination, peer).filter(|place| self.detours.distance[*place] != FAR)?;
        let [up, down] = self.detours.turns[place];
        // What came in by a port that leads up has come down.
        let turn = u8::from(from == Some(Direction::Up) && out == Direction::Up);
        Some(turn.saturating_add(if out == Direction::Up { up } else { down }))
    }

    /// The port on a shortest path to a switch, by its node number.
    pub fn towards(&self, node: Node) -> Option<u16> {
        let target = node.checked_sub(self.hosts)? as usize;
        let place = target * self.detours.switches + self.switch as usize;
        self.detours.towards.get(place).copied().filter(|port| *port != u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Chain, Clos3, FatTree, LeafSpine, Ring, TopologyError, file::parse, tests::link};
    use std::collections::{BTreeMap, BTreeSet};

    fn detours(topology: &Topology) -> (SwitchOrder, Arc<Detours>) {
        let order = SwitchOrder::new(topology, &topology.ports());
        let detours = Detours::new(topology, &order, &topology.rules, &|_| false, true);
        (order, Arc::new(detours))
    }

    fn ring(switches: u32) -> Result<Topology, TopologyError> {
        Ring { switches, hosts_per_switch: 2, host_link: link(), fabric_link: link() }.build()
    }

    fn leaves() -> Result<Topology, TopologyError> {
        LeafSpine { leaves: 3, spines: 4, hosts_per_leaf: 2, host_link: link(), fabric_link: link(), fabric_links: 1 }
            .build()
    }

    /// Three paths between x and y: one link, two, and three.
    const THREE_PATHS: &str = "host x\nhost y\nswitch a\nswitch b\nswitch c\nswitch d\nswitch e\n\
        link x a 1Gbps 1us\nlink y b 1Gbps 1us\nlink a b 1Gbps 1us\nlink a c 1Gbps 1us\nlink c b 1Gbps 1us\n\
        link a d 1Gbps 1us\nlink d e 1Gbps 1us\nlink e b 1Gbps 1us\n";

    fn topologies() -> Vec<Topology> {
        let chain = Chain { switches: 5, hosts_per_switch: 1, host_link: link(), fabric_link: link() }.build();
        let tree = FatTree { k: 4, link: link() }.build();
        let pairs = LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 2,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 2,
        };
        let built = [chain, tree, leaves(), pairs.build(), ring(4), ring(5), ring(7), parse(THREE_PATHS)];
        built.into_iter().map(|topology| topology.expect("a good topology")).collect()
    }

    fn channels(topology: Result<Topology, TopologyError>) -> u8 {
        detours(&topology.expect("a good topology")).1.channels()
    }

    #[test]
    fn trees_take_one_channel_and_rings_two() {
        let (host_link, fabric_link) = (link(), link());
        assert_eq!(channels(leaves()), 1);
        assert_eq!(channels(FatTree { k: 4, link: link() }.build()), 1);
        let clos = Clos3 {
            pods: 2,
            tors_per_pod: 2,
            aggs_per_pod: 2,
            cores: 4,
            hosts_per_tor: 2,
            host_link,
            tor_agg_link: fabric_link,
            agg_core_link: fabric_link,
            tor_agg_links: 1,
            agg_core_links: 1,
        };
        assert_eq!(channels(clos.build()), 1);
        assert_eq!(channels(Chain { switches: 5, hosts_per_switch: 1, host_link, fabric_link }.build()), 1);
        for switches in 3..9 {
            // In a triangle every path is one link.
            assert_eq!(channels(ring(switches)), if switches == 3 { 1 } else { 2 });
        }
    }

    /// The last usual path between any two hosts, on every fabric: it takes no more channels than predicted.
    #[test]
    fn paths_take_no_more_channels_than_predicted() {
        for topology in topologies() {
            let (order, detours) = detours(&topology);
            let of = |switch: u32| RouteView::new(&detours, &order, topology.hosts, switch);
            for source in 0..topology.hosts {
                for destination in (0..topology.hosts).filter(|other| *other != source) {
                    let edge = |host: u32| topology.edge_of(host).expect("a host") - topology.hosts;
                    let ports = topology.ports();
                    let mut ingress = ports.of(source)[0].peer_port;
                    let (mut switch, mut channel) = (edge(source), 0);
                    let mut least = u8::MAX;
                    while switch != edge(destination) {
                        let here = of(switch);
                        let port = topology.rules[switch as usize].alternatives(destination).last().expect("a path");
                        let needs = here.needs(ingress, port, destination).expect("a path");
                        assert!(channel + needs < detours.channels() && channel + needs <= least);
                        least = channel + needs;
                        assert!(here.loop_free_alternates(destination).any(|other| other == port));
                        let turns = here.directions[usize::from(ingress)] == Direction::Up
                            && here.directions[usize::from(port)] == Direction::Up;
                        channel += u8::from(turns);
                        let end = ports.of(topology.hosts + switch)[usize::from(port)];
                        (switch, ingress) = (end.peer - topology.hosts, end.peer_port);
                    }
                    assert_eq!(least.min(channel), channel);
                }
            }
        }
    }

    /// A loop-free alternate never leads back, whichever usual paths follow it.
    #[test]
    fn alternates_do_not_come_back() {
        let mut longer = 0;
        for topology in topologies() {
            let (order, detours) = detours(&topology);
            for switch in 0..topology.switches() {
                for destination in 0..topology.hosts {
                    let here = RouteView::new(&detours, &order, topology.hosts, switch);
                    for port in here.loop_free_alternates(destination) {
                        let usual = topology.rules[switch as usize].alternatives(destination).any(|own| own == port);
                        longer += u32::from(!usual);
                        let mut line = vec![order.peers[switch as usize][usize::from(port)]];
                        while let Some(next) = line.pop() {
                            assert_ne!(next, switch, "{} to {destination} by {port}", topology.kind);
                            let ports = topology.rules[next as usize].alternatives(destination);
                            let peers = ports.map(|port| order.peers[next as usize][usize::from(port)]);
                            line.extend(peers.filter(|peer| *peer != NONE));
                        }
                    }
                }
            }
        }
        assert!(longer > 20, "{longer}");
    }

    /// A virtual channel of a link between switches, by where the link ends: switch, port, channel.
    type Buffer = (u32, u16, u8);

    /// For each buffer those that its packets may go to next: usual paths, and deflections without limit to ports of
    /// equal cost and to loop-free alternates. `turns`: packets change channels.
    fn waits(topology: &Topology, channels: u8, turns: bool) -> BTreeMap<Buffer, BTreeSet<Buffer>> {
        let (order, detours) = detours(topology);
        let (ports, hosts) = (topology.ports(), topology.hosts);
        let mut waits: BTreeMap<Buffer, BTreeSet<Buffer>> = BTreeMap::new();
        for destination in 0..hosts {
            let enters = |host: u32| (ports.of(host)[0].peer - hosts, ports.of(host)[0].peer_port, 0);
            let mut line: Vec<Buffer> = (0..hosts).filter(|host| *host != destination).map(enters).collect();
            let mut seen = BTreeSet::new();
            while let Some(buffer @ (switch, ingress, channel)) = line.pop() {
                if !seen.insert(buffer) {
                    continue;
                }
                let here = RouteView::new(&detours, &order, hosts, switch);
                let usual: Vec<u16> = topology.rules[switch as usize].alternatives(destination).collect();
                let longer = here.loop_free_alternates(destination).filter(|port| !usual.contains(port));
                for port in usual.iter().copied().chain(longer).filter(|port| !here.leads_to_host(*port)) {
                    let needs = here.needs(ingress, port, destination).expect("a path");
                    let suffice = !turns || channel + needs < channels;
                    assert!(suffice || !usual.contains(&port), "{}: {buffer:?} by {port}", topology.kind);
                    if !suffice || port == ingress && !usual.contains(&port) {
                        continue;
                    }
                    let goes_up = |port: u16| here.directions[usize::from(port)] == Direction::Up;
                    let next = channel + u8::from(turns && goes_up(ingress) && goes_up(port));
                    let end = ports.of(hosts + switch)[usize::from(port)];
                    let next = (end.peer - hosts, end.peer_port, next);
                    if !here.leads_to_host(ingress) {
                        waits.entry(buffer).or_default().insert(next);
                    }
                    line.push(next);
                }
            }
        }
        waits
    }

    /// Some of them wait for each other in a cycle.
    fn has_cycle(mut waits: BTreeMap<Buffer, BTreeSet<Buffer>>) -> bool {
        loop {
            let before = waits.len();
            let left: BTreeSet<Buffer> = waits.keys().copied().collect();
            waits.retain(|_, next| next.iter().any(|next| left.contains(next)));
            if waits.len() == before {
                return before > 0;
            }
        }
    }

    /// All that deflection may do, on every fabric, with just the channels that usual paths take and with more.
    #[test]
    fn channels_of_links_do_not_wait_in_cycles() {
        let mut cycles = 0;
        for topology in topologies() {
            let enough = detours(&topology).1.channels();
            for channels in enough..enough + 3 {
                let waits = waits(&topology, channels, true);
                assert!(!waits.is_empty() && !has_cycle(waits), "{} {channels}", topology.kind);
            }
            cycles += u32::from(has_cycle(waits(&topology, 1, false)));
        }
        // The rings, at least, have some where packets stay on one channel.
        assert!(cycles >= 3, "{cycles}");
    }

    #[test]
    fn switches_reach_each_other_around_what_is_down() {
        let ring = Ring { switches: 5, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        let topology = ring.build().expect("a good topology");
        let order = SwitchOrder::new(&topology, &topology.ports());
        let cable = topology.find_cable("s1-s2").expect("a cable");
        let detours = Detours::new(&topology, &order, &topology.rules, &|other| other == cable, true);
        let detours = Arc::new(detours);
        let (mut at, mut hops) = (1, 0);
        while at != 2 {
            let port = RouteView::new(&detours, &order, 5, at).towards(5 + 2).expect("a path");
            at = order.peers[at as usize][usize::from(port)];
            hops += 1;
        }
        assert_eq!(hops, 4);
        // A cable that is down is no alternate either.
        let lead_over = |detours: &Arc<Detours>| {
            let here = RouteView::new(detours, &order, 5, 1);
            (0..5).any(|host| here.loop_free_alternates(host).any(|port| order.peers[1][usize::from(port)] == 2))
        };
        let all = Detours::new(&topology, &order, &topology.rules, &|_| false, true);
        assert_eq!((lead_over(&Arc::new(all)), lead_over(&detours)), (true, false));
        assert_eq!(RouteView::new(&detours, &order, 5, 2).towards(5 + 2), None);
    }

    #[test]
    fn a_route_that_comes_down_and_goes_up_again_takes_a_channel_more() {
        // x and y hang at a and d; the only path between leads over b, which is above both, c, which is below b, and e.
        let text = "host x\nhost y\nhost z\nswitch a\nswitch b\nswitch c\nswitch e\nswitch d\nlink x a 1Gbps 1us\n\
            link y d 1Gbps 1us\nlink z c 1Gbps 1us\nlink a b 1Gbps 1us\nlink b c 1Gbps 1us\nlink c e 1Gbps 1us\n\
            link e d 1Gbps 1us\n";
        assert_eq!(channels(parse(text)), 2);
    }
}
