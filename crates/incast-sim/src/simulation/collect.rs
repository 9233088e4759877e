//! From finished domains to an outcome.

use super::{
    build::Plan,
    digest::digest,
    domain::{Domain, Node},
    outcome::{Cost, Outcome, Totals},
};
use crate::{
    application::FlowSpec,
    engine::{Executor, Statistics, halt::Halt},
    fabric::link::Transmitter,
    host::{Host, SentFlow},
    packet::{Kind, Packet},
    probe::{ArrivedSample, FlowRecord, find_roots},
    routing::{self, config::LoadBalancing},
    sender::flow,
    settings::Settings,
    topology::{
        Link, Rule, Topology,
        ideal::{self, Packets},
        multipath::Multipath,
        salted_hash,
    },
};
use incast_units::{Rate, Time};

/// Flows between two looks at whether the run is halted: an ideal time may take a millisecond.
const HALT_EVERY: usize = 128;

/// Collects the results of a run, but for the wall time that it took; `None` if it is halted meanwhile.
///
/// # Panics
/// If bytes were lost or made up anywhere: a bug in the simulator, whose results must not be used.
pub fn outcome(
    topology: &Topology,
    plan: &Plan,
    settings: &Settings,
    mut executor: Executor<Domain<'_>>,
    statistics: &Statistics,
    end: Time,
    halt: &Halt<'_>,
) -> Option<Outcome> {
    let bytes_in_flight = in_flight(&mut executor, plan);
    let mut domains = executor.into_domains();
    let mut outcome = Outcome::default();
    {
        let nodes: Vec<&Node<'_>> = domains.iter().flat_map(Domain::nodes).collect();
        check_links(topology, plan, &nodes, &bytes_in_flight);
        outcome.flows = flows(topology, plan, settings, &nodes, statistics.stopped_at.unwrap_or(end), halt)?;
        let unstarted: usize = hosts(&nodes).map(Host::unstarted).sum();
        let is_done = |flow: &FlowRecord| flow.acked.is_some() && flow.delivered.is_some();
        outcome.complete = unstarted == 0 && outcome.flows.iter().all(is_done);
    }
    let last = outcome.flows.iter().filter_map(|flow| flow.acked.max(flow.delivered)).max().unwrap_or(Time::ZERO);
    outcome.ended_at = if outcome.complete { last } else { statistics.stopped_at.unwrap_or(end) };
    let mut arrived = Vec::new();
    for node in domains.iter_mut().flat_map(|domain| domain.nodes_mut()) {
        for trace in node.traces() {
            let (mut records, left_out) = trace.take();
            outcome.packets.append(&mut records);
            outcome.packets_left_out += left_out;
        }
        match node {
            Node::Switch(switch) => {
                outcome.ports.append(&mut switch.take_samples(outcome.ended_at));
                outcome.events.append(&mut switch.recorder.records);
                outcome.causes.append(&mut switch.recorder.causes);
            }
            Node::Host(host) => {
                let (mut assigned, mut of_host) = host.take_samples(outcome.ended_at);
                outcome.rates.append(&mut assigned);
                arrived.append(&mut of_host);
                outcome.events.append(&mut host.recorder.records);
            }
        }
    }
    // Some nodes have seen later times, with nothing left to do there.
    outcome.ports.retain(|sample| sample.time <= outcome.ended_at);
    outcome.rates.retain(|sample| sample.time <= outcome.ended_at);
    outcome.ports.sort_by_key(|sample| (sample.time, sample.node, sample.port, sample.priority));
    measure_rates(&mut outcome, arrived, settings);
    outcome.rates.sort_by_key(|sample| (sample.time, sample.source, sample.sequence));
    outcome.events.sort();
    outcome.causes.sort();
    find_roots(&mut outcome.causes, &plan.ports);
    outcome.packets.retain(|record| record.time <= outcome.ended_at);
    // Stable: what one node recorded at one time stays in its order.
    outcome.packets.sort_by_key(|record| (record.time, record.node, record.port));
    for packet in outcome.packets.iter_mut().map(|record| &mut record.packet) {
        let flow = outcome.flows.binary_search_by_key(&packet.flow(), |flow| (flow.source, flow.sequence));
        if let Ok(index) = flow {
            packet.complete(outcome.flows[index].destination);
        }
    }
    let nodes: Vec<&Node<'_>> = domains.iter().flat_map(Domain::nodes).collect();
    outcome.totals = totals(&nodes, outcome.ended_at, bytes_in_flight.iter().sum());
    outcome.totals.events = statistics.events;
    outcome.busiest_link = busiest_link(&nodes, outcome.ended_at);
    outcome.base_rtt = settings.base_rtt;
    outcome.digest = digest(&outcome);
    outcome.cost = Cost { cpu_s: statistics.cpu.as_secs_f64(), wall_s: 0.0, windows: statistics.windows };
    Some(outcome)
}

/// Completes the samples of senders with what had arrived at receivers by then.
fn measure_rates(outcome: &mut Outcome, mut arrived: Vec<ArrivedSample>, settings: &Settings) {
    let Some((every, _)) = settings.rates else { return };
    arrived.sort_unstable_by_key(|sample| (sample.source, sample.sequence, sample.time));
    outcome.rates.sort_unstable_by_key(|sample| (sample.source, sample.sequence, sample.time));
    let (mut flow, mut before) = (None, 0);
    for sample in &mut outcome.rates {
        let key = (sample.source, sample.sequence);
        if flow != Some(key) {
            (flow, before) = (Some(key), 0);
        }
        let of_receiver = arrived
            .binary_search_by_key(&(key.0, key.1, sample.time), |other| (other.source, other.sequence, other.time));
        let bytes = match of_receiver {
            Ok(index) => arrived[index].bytes,
            // Nothing has arrived, or everything has.
            Err(_) => outcome
                .flows
                .binary_search_by_key(&key, |flow| (flow.source, flow.sequence))
                .ok()
                .map(|index| &outcome.flows[index])
                .filter(|flow| flow.delivered.is_some_and(|delivered| delivered <= sample.time))
                .map_or(before, |flow| flow.bytes),
        };
        sample.measured_bps = (bytes.saturating_sub(before) as f64 * 8.0 / every.as_secs_f64()) as u64;
        before = bytes;
    }
}

fn hosts<'n, 'a: 'n>(nodes: &'n [&'n Node<'a>]) -> impl Iterator<Item = &'n Host<'a>> {
    nodes.iter().filter_map(|node| match node {
        Node::Host(host) => Some(host),
        Node::Switch(_) => None,
    })
}

/// Frame bytes in flight to each port, with the ports of all nodes numbered consecutively.
fn in_flight(executor: &mut Executor<Domain<'_>>, plan: &Plan) -> Vec<u64> {
    let mut bytes = vec![0; plan.ports.total()];
    let first = first_ports(plan);
    for (domain, entity, packet) in executor.pending() {
        let nodes = &plan.partition.nodes[domain as usize];
        let index = nodes.partition_point(|node| plan.base[*node as usize] <= entity) - 1;
        let node = nodes[index] as usize;
        bytes[first[node] + (entity - plan.base[node]) as usize] += u64::from(packet.wire);
    }
    bytes
}

/// The number of each node's first port, with the ports of all nodes numbered consecutively.
fn first_ports(plan: &Plan) -> Vec<usize> {
    let mut next = 0;
    (0..plan.base.len())
        .map(|node| {
            let first = next;
            next += plan.ports.of(node as u32).len();
            first
        })
        .collect()
}

/// Conservation: on each link all bytes sent have arrived, were lost or are in flight; in each node all bytes received
/// were sent, wait or were dropped.
fn check_links(topology: &Topology, plan: &Plan, nodes: &[&Node<'_>], bytes_in_flight: &[u64]) {
    let mut sent = vec![0; plan.ports.total()];
    let mut arrived = vec![0; plan.ports.total()];
    let first = first_ports(plan);
    for node in nodes {
        let (number, conserves, links): (u32, bool, Vec<_>) = match node {
            Node::Switch(switch) => (switch.node(), switch.conserves(), switch.links().collect()),
            Node::Host(host) => (host.node(), host.conserves(), vec![host.link()]),
        };
        assert!(conserves, "conservation of bytes is broken in {}", topology.names[number as usize]);
        for (port, (transmitter, receiver)) in links.into_iter().enumerate() {
            let place = first[number as usize] + port;
            sent[place] = transmitter.sent_bytes() - transmitter.lost().1;
            arrived[place] = receiver.bytes() + receiver.lost().1;
        }
    }
    for node in 0..plan.base.len() {
        for (port, end) in plan.ports.of(node as u32).iter().enumerate() {
            let peer = first[end.peer as usize] + usize::from(end.peer_port);
            assert_eq!(
                sent[first[node] + port],
                arrived[peer] + bytes_in_flight[peer],
                "conservation of bytes is broken from {} to {}",
                topology.names[node],
                topology.names[end.peer as usize]
            );
        }
    }
}

/// Joins the records of senders and receivers.
fn flows(
    topology: &Topology,
    plan: &Plan,
    settings: &Settings,
    nodes: &[&Node<'_>],
    ended_at: Time,
    halt: &Halt<'_>,
) -> Option<Vec<FlowRecord>> {
    let mut received: Vec<_> = hosts(nodes).flat_map(|host| host.received().iter().copied()).collect();
    received.sort_unstable_by_key(|arrived| (arrived.source, arrived.sequence));
    let mut records = Vec::new();
    let paths = Paths::of(topology, plan);
    for host in hosts(nodes) {
        let mut sent = host.sent(ended_at);
        sent.sort_unstable_by_key(|sent| sent.sequence);
        for sent in sent {
            let mut record = FlowRecord {
                source: host.node(),
                sequence: sent.sequence,
                destination: sent.spec.destination,
                class: sent.spec.class,
                request: sent.spec.request,
                bytes: sent.spec.bytes,
                start: sent.spec.start,
                acked: sent.acked,
                ideal: ideal_time(topology, plan, settings, &sent, &paths),
                retransmitted_bytes: sent.retransmitted_bytes,
                timeouts: sent.timeouts,
                held: sent.held,
                ..FlowRecord::default()
            };
            let key = (record.source, record.sequence);
            if let Ok(index) = received.binary_search_by_key(&key, |arrived| (arrived.source, arrived.sequence)) {
                let arrived = &received[index];
                record.delivered = (arrived.delivered != Time::MAX).then_some(arrived.delivered);
                record.delivered_bytes = arrived.bytes;
                record.marked_packets = arrived.marked;
                record.reordered_packets = arrived.reordered;
                record.deflections = arrived.deflections;
            }
            assert!(
                record.delivered.is_none() || record.delivered_bytes == record.bytes,
                "a flow was delivered in part"
            );
            records.push(record);
            if records.len().is_multiple_of(HALT_EVERY) && halt() {
                return None;
            }
        }
    }
    // Hosts come by domain, which is not their order where short links join some of them.
    records.sort_unstable_by_key(|record| (record.source, record.sequence));
    Some(records)
}

/// How paths between hosts may differ.
struct Paths {
    /// In their links, too, not only in their switches.
    differ: bool,
    /// The slowest link between switches, if there are any.
    slowest: Option<Rate>,
    /// A flow may be led another way, while packets of it are still on the one before.
    may_change: bool,
}

impl Paths {
    fn of(topology: &Topology, plan: &Plan) -> Self {
        let inner = topology.cables.iter().filter(|cable| cable.a.min(cable.b) >= topology.hosts);
        let mut kinds = inner.clone().map(|cable| (cable.link.rate, cable.link.delay));
        Self {
            differ: kinds.next().is_some_and(|first| kinds.any(|other| other != first)),
            slowest: inner.map(|cable| cable.link.rate).min(),
            may_change: plan.reroutes,
        }
    }
}

/// Duration of a flow alone: on its path, or with all the paths that its packets may take.
fn ideal_time(topology: &Topology, plan: &Plan, settings: &Settings, sent: &SentFlow, paths: &Paths) -> Option<Time> {
    let FlowSpec { source, destination, bytes, class, .. } = sent.spec;
    let (ports, rules) = (&plan.ports, &topology.rules);
    let format = settings.classes[usize::from(class)].format;
    let mtu = u64::from(settings.host.mtu);
    let rest = (bytes % mtu) as u32;
    let packets = Packets {
        full: format.data(settings.host.mtu) + settings.wire.gap,
        count: bytes / mtu,
        last: (rest > 0).then(|| format.data(rest) + settings.wire.gap),
    };
    let is_sprayed = settings.load_balancing.sprays();
    let host_link = |host| ports.end(host, 0).map(|end| topology.cables[end.cable as usize].link.rate);
    let is_slower = paths.slowest.is_some_and(|slowest| Some(slowest) < host_link(source).min(host_link(destination)));
    if paths.may_change && (paths.differ || is_slower) {
        let all = Multipath::any(topology, ports, source, destination)?;
        return Some(all.completion(packets, settings.wire.rounding));
    }
    if is_sprayed && (paths.differ || is_slower) {
        let all = Multipath::by_rules(topology, ports, rules, source, destination)?;
        return Some(all.completion(packets, settings.wire.rounding));
    }
    let mut packet = Packet::new(Kind::Data, source, destination, sent.sequence, 0);
    packet.ecmp_hash = flow::ecmp_hash(settings.seed, &sent.spec, sent.sequence);
    let mut choose = |rule: &Rule, node| match settings.load_balancing {
        LoadBalancing::Ecmp | LoadBalancing::Spray => {
            rule.pick(destination, salted_hash(packet.ecmp_hash, routing::router::salt(settings.seed, node)))
        }
        LoadBalancing::SourceRouted | LoadBalancing::SprayPermutation => {
            let (port, hash) = rule.pick_pinned(&packet)?;
            packet.ecmp_hash = hash;
            Some(port)
        }
    };
    let hops = ideal::path_by(topology, ports, rules, &mut choose, source, destination)?;
    let links: Vec<Link> = hops.iter().map(|hop| hop.link).collect();
    Some(if is_sprayed {
        Multipath::alike(&links).completion(packets, settings.wire.rounding)
    } else {
        ideal::completion(&links, packets, settings.wire.rounding)
    })
}

fn busiest_link(nodes: &[&Node<'_>], ended_at: Time) -> f64 {
    let seconds = ended_at.as_secs_f64();
    let part = |link: &Transmitter| link.sent_bytes() as f64 * 8.0 / (link.rate().as_f64() * seconds);
    let of_node = |node: &&Node<'_>| match node {
        Node::Switch(switch) => switch.links().map(|(link, _)| part(link)).fold(0.0, f64::max),
        Node::Host(host) => part(host.link().0),
    };
    if ended_at == Time::ZERO { 0.0 } else { nodes.iter().map(of_node).fold(0.0, f64::max) }
}

fn totals(nodes: &[&Node<'_>], ended_at: Time, bytes_in_flight: u64) -> Totals {
    let mut totals = Totals { left_bytes: bytes_in_flight, ..Totals::default() };
    for node in nodes {
        match node {
            Node::Switch(switch) => {
                let counters = &switch.counters;
                totals.packet_hops += counters.arrived;
                totals.created_bytes += counters.created_bytes;
                totals.consumed_bytes += counters.consumed_bytes;
                totals.lossless_drops += counters.lossless_drops;
                totals.drops += counters.dropped.0;
                totals.dropped_bytes += counters.dropped.1;
                totals.trims += counters.trimmed.0;
                totals.trimmed_bytes += counters.trimmed.1;
                totals.bounces += counters.bounces;
                totals.lost += counters.lost.0;
                totals.lost_bytes += counters.lost.1;
                totals.deflections += counters.deflections;
                totals.max_queue_bytes = totals.max_queue_bytes.max(counters.max_queue_bytes);
                totals.left_bytes += switch.waiting_bytes();
                totals.marks_edge += counters.marks_edge;
                totals.marks_fabric += counters.marks - counters.marks_edge;
                let (pauses, paused) = switch.pauses(ended_at);
                totals.pauses += pauses;
                totals.paused += paused;
                for (transmitter, receiver) in switch.links() {
                    totals.lost += transmitter.lost().0 + receiver.lost().0;
                    totals.lost_bytes += transmitter.lost().1 + receiver.lost().1;
                }
            }
            Node::Host(host) => {
                let (transmitter, receiver) = host.link();
                totals.packet_hops += host.arrived;
                totals.injected_packets += host.injected;
                let (pauses, paused) = host.pauses(ended_at);
                totals.pauses += pauses;
                totals.paused += paused;
                totals.injected_bytes += transmitter.sent_bytes();
                totals.received_bytes += receiver.bytes();
                totals.lost += transmitter.lost().0 + receiver.lost().0 + host.lost().0;
                totals.lost_bytes += transmitter.lost().1 + receiver.lost().1;
            }
        }
    }
    totals
}
