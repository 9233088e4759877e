//! From a configuration to domains that are ready to run.

use super::{
    channels,
    config::{ClassConfig, Config, ConfigError, LinkEvent, Ties},
    credits,
    domain::{Domain, Node},
    lossless,
    partition::Partition,
    path::base_paths,
};
use crate::{
    application::{Application, FlowSpec},
    engine::{
        Event, Executor,
        domain::Names,
        queue::{Key, TieBreak},
    },
    fabric::{
        link::{Receiver, Transmitter},
        node::{Peer, class},
    },
    host::Host,
    probe::PacketTrace,
    routing::{Detours, PathCount, RouteView, SwitchOrder, config::LoadBalancing},
    settings::{BaseDelays, Class, Peers, Settings},
    switch::{LINK_DOWN, LINK_UP, NEW_EPOCH, Place, Routes, Switch, config::SwitchConfig},
    topology::{self, Ports, Rule, Topology},
};
use incast_cc::{
    Path,
    law::{Acknowledges, Recovery},
    registry::Scheduler,
    underlay::Reports,
};
use incast_units::{Bytes, Time};
use std::{
    iter, mem,
    panic::resume_unwind,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// Events that a host may have at the time when a flow starts: the start, timers of the law and of loss recovery, and the
/// release of its first packet, each perhaps twice.
const EVENTS_PER_START: u64 = 8;

/// With fewer domains than these half of a window is too little work for several threads to share.
const WORTH_PHASES: usize = 1024;

/// What is computed before the nodes are made.
pub struct Plan {
    /// Who shares a domain.
    pub partition: Partition,
    /// Ports of every node.
    pub ports: Ports,
    /// First entity of each node in its domain.
    pub base: Vec<u32>,
    /// A flow may be led another way than by the rules of the first routing epoch: links fail, or an agent deflects.
    pub reroutes: bool,
    epochs: Epochs,
}

impl Plan {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let partition = Partition::of(&config.topology);
        let ports = config.topology.ports();
        let mut base = vec![0; config.topology.nodes() as usize];
        for nodes in &partition.nodes {
            let mut next = 0;
            for node in nodes {
                base[*node as usize] = next;
                next += ports.of(*node).len() as u32;
            }
            if next >= Key::ENTITIES {
                return Err(ConfigError::value(
                    "the number of ports joined by short links",
                    next,
                    "below 2^20; make the links longer",
                ));
            }
        }
        let epochs = Epochs::of(config, &ports)?;
        let reroutes = !config.link_events.is_empty() || config.switch.agent.reroutes();
        Ok(Self { partition, ports, base, reroutes, epochs })
    }

    /// Resolves what all nodes share.
    pub fn settings(&self, config: &Config) -> Settings {
        // The queue of a priority on virtual channel 0.
        let queue = |priority: u8| priority * config.switch.virtual_channels;
        let class = |(class, path): (&ClassConfig, Path)| {
            let transport = class.law.transport();
            let scheduler = class.scheduler.and_then(|index| config.host.schedulers.get(usize::from(index)));
            Class {
                law: class.law.clone(),
                law_at: class.law_at.clone(),
                // Where only whole flows are acknowledged, the receiver requests missing packets by number. Where
                // packets arrive in any order, RACK-TLP would take late ones as lost.
                recovery: match (transport.acknowledges, class.recovery) {
                    (Acknowledges::Flows, _) => Recovery::SelectiveRepeat,
                    (_, Recovery::RackTlp) if transport.in_any_order => Recovery::SelectiveRepeat,
                    (Acknowledges::Packets, own) => own,
                },
                priority: queue(class.priority),
                ack_priority: queue(class.ack_priority.unwrap_or(class.priority)),
                notification_priority: queue(class.notification_priority),
                arrangement: class.underlay.arrangement(),
                reports: class.underlay.arrangement().is_some_and(|it| it.reports == Reports::Own),
                underlay: class.underlay.clone(),
                shares_stages_of: class.shares_stages_of(config),
                transport,
                scheduler: class.scheduler,
                uses_tokens: scheduler.is_some_and(Scheduler::uses_tokens),
                tags_acks: scheduler.is_some_and(Scheduler::tags_acks),
                ecn_capable: transport.ecn_capable,
                notification_interval: transport.notification_interval,
                marks_at_edge: transport.marks_at_edge,
                updates_gap: transport.updates_gap,
                format: class.format,
                trimmable: class.trimmable,
                path,
            }
        };
        let classes: Vec<Class> = config.classes.iter().zip(base_paths(config.into())).map(class).collect();
        let (pfc, credits) = (lossless::pfc_rules(config.into()), credits::credit_rules(config.into()));
        let is_disturbed =
            pfc.is_some() || credits.is_some() || !config.host.control_first || !config.link_events.is_empty();
        let base_delays = classes
            .iter()
            .any(|class| class.arrangement.is_some())
            .then(|| BaseDelays::new(&config.topology, &self.ports));
        Settings {
            seed: config.seed,
            pfc,
            credits,
            lookahead: self.partition.lookahead,
            undisturbed_until: if is_disturbed { Time::ZERO } else { config.end },
            priorities: config.switch.priorities,
            load_balancing: config.switch.load_balancing,
            host: config.host.clone(),
            clocks: config.clocks.clone(),
            peers: Peers { base_delays, ..peers(config) },
            path_count: (config.switch.load_balancing == LoadBalancing::SprayPermutation)
                .then(|| PathCount::new(&config.topology)),
            wire: config.wire,
            arrivals_first: config.ties == Ties::ArrivalsFirst,
            base_rtt: classes.iter().map(|class| class.path.base_rtt).max().unwrap_or(Time::ZERO),
            classes,
            record: config.probes.events,
            rates: config.probes.rates,
            packets: config.probes.packets.clone(),
        }
    }
}

/// What senders know of their receivers.
fn peers(config: &Config) -> Peers {
    let mut peers = Peers::default();
    if config.topology.host_rates().len() > 1 {
        let cables = config.topology.cables.iter().take(config.topology.hosts as usize);
        peers.rates = cables.map(|cable| cable.link.rate).collect();
    }
    let wants = |flow: &&FlowSpec| {
        let is_one_of_several = flow.request < FlowSpec::OWN_REQUEST;
        is_one_of_several && config.classes[usize::from(flow.class)].law.transport().incast_degree
    };
    for flow in config.flows.iter().filter(wants) {
        *peers.degrees.entry((flow.request, flow.destination)).or_default() += 1;
    }
    peers
}

/// Routing rules of each epoch: one set for each time at which links change.
struct Epochs {
    starts: Vec<Time>,
    /// By epoch, the first being that before any change; by switch.
    rules: Vec<Vec<Rule>>,
    /// By epoch, where virtual channels or an agent need them.
    detours: Vec<Arc<Detours>>,
    order: SwitchOrder,
}

impl Epochs {
    fn of(config: &Config, ports: &Ports) -> Result<Self, ConfigError> {
        let (topology, events) = (&config.topology, &config.link_events);
        let order = SwitchOrder::new(topology, ports);
        let detours_at = |at: Time, rules: &[Rule], down: &[bool]| {
            channels::detours(config, &order, at, rules, &|cable| down[cable])
        };
        let mut starts: Vec<Time> = events.iter().map(|event| event.at).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut rules = vec![topology.rules.clone()];
        let mut down = vec![false; topology.cables.len()];
        let mut detours: Vec<_> = detours_at(Time::ZERO, &topology.rules, &down)?.into_iter().collect();
        for start in &starts {
            for event in events.iter().filter(|event| event.at == *start) {
                down[event.cable] = !event.up;
            }
            rules.push(if down.contains(&true) {
                let tables = topology::tables(topology, &|cable| down[cable])
                    .map_err(|error| ConfigError::Routes { at: *start, error })?;
                tables.into_iter().map(Rule::Table).collect()
            } else {
                topology.rules.clone()
            });
            detours.extend(detours_at(*start, &rules[rules.len() - 1], &down)?);
        }
        Ok(Self { starts, rules, detours, order })
    }
}

/// Domains with the names of their entities, and when their nodes begin: node, time and class of event.
type Made<'a> = (Vec<(Domain<'a>, Names)>, Vec<(u32, Time, u8)>);
/// The flows and the application of a host, until it is made.
type Given = Mutex<(Vec<FlowSpec>, Option<Box<dyn Application>>)>;

/// What nodes are made of.
struct Maker<'m, 'a> {
    plan: &'m Plan,
    settings: &'a Settings,
    topology: &'m Topology,
    switch: &'m SwitchConfig,
    /// Ports whose queues are sampled, and how often.
    sampled: Option<&'m (Time, Vec<(u32, u16)>)>,
    /// By host.
    given: Vec<Given>,
}

impl<'a> Maker<'_, 'a> {
    /// Both ends of a node's links.
    fn ends(&self, node: u32) -> Vec<(Transmitter, Receiver)> {
        let Self { plan, settings, .. } = self;
        let ports = plan.ports.of(node).iter().enumerate();
        let both = ports.map(|(port, end)| {
            let link = &self.topology.cables[end.cable as usize].link;
            let peer = Peer {
                domain: plan.partition.domain_of[end.peer as usize],
                entity: plan.base[end.peer as usize] + u32::from(end.peer_port),
            };
            let name = name(node, port as u32);
            let mut transmitter = Transmitter::new(link, settings.wire, peer, settings.seed, name);
            if let Some(filter) = settings.packets.as_ref().filter(|it| it.has_port(node, port as u16)) {
                transmitter.watch(PacketTrace::new(filter, node), port as u16);
            }
            (transmitter, Receiver::default())
        });
        both.collect()
    }

    fn node(&self, node: u32) -> Option<Node<'a>> {
        let Self { plan, settings, topology, .. } = *self;
        let base = plan.base[node as usize];
        if node < topology.hosts {
            let mut given = self.given[node as usize].lock().unwrap_or_else(PoisonError::into_inner);
            let (flows, application) = mem::take(&mut *given);
            let (link, input) = self.ends(node).into_iter().next()?;
            return Some(Node::Host(Host::new(settings, node, base, link, input, flows, application)));
        }
        let (epochs, partition) = (&plan.epochs, &plan.partition);
        let is_alone = partition.nodes[partition.domain_of[node as usize] as usize].len() == 1;
        let number = node - topology.hosts;
        let rules = epochs.rules.iter().map(|rules| rules[number as usize].clone()).collect();
        let probe = self.sampled.and_then(|(every, ports)| {
            let mut here: Vec<u16> = ports.iter().filter(|port| port.0 == node).map(|port| port.1).collect();
            here.sort_unstable();
            here.dedup();
            (!here.is_empty()).then_some((*every, here))
        });
        let leads_to_host = plan.ports.of(node).iter().map(|end| end.peer < topology.hosts).collect();
        let of = |detours| RouteView::new(detours, &epochs.order, topology.hosts, number);
        let routes = Routes { rules, views: epochs.detours.iter().map(of).collect() };
        let place = Place { node, base, is_alone, links: self.ends(node), leads_to_host, routes, probe };
        Some(Node::Switch(Switch::new(settings, &self.switch.at(node), place)))
    }

    fn domain(&self, numbers: &[u32], starts: &mut Vec<(u32, Time, u8)>) -> (Domain<'a>, Names) {
        let mut nodes = Vec::with_capacity(numbers.len());
        for (number, mut node) in numbers.iter().filter_map(|number| Some((*number, self.node(*number)?))) {
            let (first, class) = match &mut node {
                Node::Host(host) => (host.first_start(), class::FLOW_START),
                Node::Switch(switch) => (switch.first_timer(), class::AGENT),
            };
            starts.extend(first.map(|start| (number, start, class)));
            nodes.push(node);
        }
        domain(nodes, numbers, self.plan)
    }

    /// The domains of a part of the partition.
    fn part(&self, part: &[Vec<u32>]) -> Made<'a> {
        let mut starts = Vec::new();
        let domains = part.iter().map(|numbers| self.domain(numbers, &mut starts)).collect();
        (domains, starts)
    }

    /// All domains, made by so many threads, a part of them by each.
    fn parts(&self, threads: usize) -> Vec<Made<'a>> {
        let nodes = &self.plan.partition.nodes;
        let parts = nodes.chunks(nodes.len().div_ceil(threads).max(1));
        thread::scope(|scope| {
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || self.part(part))).collect();
            parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }
}

/// Makes the nodes, on so many threads, and the engine that runs them. Returns the topology, for the results.
pub fn executor<'a>(
    config: Config,
    plan: &Plan,
    settings: &'a Settings,
    threads: usize,
) -> (Topology, Executor<Domain<'a>>) {
    let Config { topology, mut switch, classes, flows, applications, link_events, probes, ties, .. } = config;
    switch.telemetry |= classes.iter().any(|class| class.law.info().telemetry());
    let (partition, sampled) = (&plan.partition, probes.ports.as_ref());
    let flow_count = flows.len() as u64;
    let given = given(topology.hosts, flows, applications);
    let maker = Maker { plan, settings, topology: &topology, switch: &switch, sampled, given };
    let ties = match ties {
        Ties::Seeded => TieBreak::Seeded(settings.seed),
        Ties::PortOrder | Ties::ArrivalsFirst => TieBreak::Fixed,
    };
    let longest = longest(&topology, settings);
    let make_executor = |domains: &mut dyn Iterator<Item = (Domain<'a>, Names)>| {
        Executor::new(domains, partition.lookahead, longest, ties, switch.telemetry)
    };
    let mut starts = Vec::new();
    let mut executor = if threads <= 1 {
        make_executor(&mut partition.nodes.iter().map(|numbers| maker.domain(numbers, &mut starts)))
    } else {
        // Each part is given back as soon as the engine has its domains, and the engine is told how many come.
        let mut domains = maker.parts(threads).into_iter().flat_map(|(part, begin)| {
            starts.extend(begin);
            part
        });
        let next = || domains.next().unwrap_or_else(|| unreachable!("the parts have all domains"));
        make_executor(&mut iter::repeat_with(next).take(partition.nodes.len()))
    };
    executor.expect(EVENTS_PER_START * flow_count);
    if let Some(first) = partition.colours
        && (threads <= 1 || partition.nodes.len() >= WORTH_PHASES)
    {
        executor.in_two_phases(first);
    }
    schedule(&mut executor, plan, &topology, &starts, &link_events);
    (topology, executor)
}

/// Flows and applications by the hosts at which they are.
fn given(hosts: u32, flows: Vec<FlowSpec>, applications: Vec<Option<Box<dyn Application>>>) -> Vec<Given> {
    let mut flows_of: Vec<Vec<FlowSpec>> = vec![Vec::new(); hosts as usize];
    for flow in flows {
        flows_of[flow.source as usize].push(flow);
    }
    let mut applications = applications.into_iter();
    flows_of.into_iter().map(|flows| Mutex::new((flows, applications.next().flatten()))).collect()
}

/// Schedules when nodes begin, and when links change.
fn schedule(
    executor: &mut Executor<Domain<'_>>,
    plan: &Plan,
    topology: &Topology,
    starts: &[(u32, Time, u8)],
    link_events: &[LinkEvent],
) {
    let mut schedule = |node: u32, port: u32, time: Time, class: u8, payload: u32| {
        let (domain, entity) = (plan.partition.domain_of[node as usize], plan.base[node as usize] + port);
        executor.schedule(domain as usize, time, Event { class, entity, payload });
    };
    for (node, start, class) in starts {
        schedule(*node, 0, *start, *class, 0);
    }
    for event in link_events {
        let cable = &topology.cables[event.cable];
        for node in [cable.a, cable.b] {
            if let Some(port) = plan.ports.at(node, event.cable) {
                let payload = if event.up { LINK_UP } else { LINK_DOWN };
                schedule(node, u32::from(port), event.at, class::LINK, payload);
            }
        }
    }
    for start in &plan.epochs.starts {
        (topology.hosts..topology.nodes()).for_each(|node| schedule(node, 0, *start, class::LINK, NEW_EPOCH));
    }
}

/// The name of a port, unique in the simulation.
fn name(node: u32, port: u32) -> u64 {
    u64::from(node) << 20 | u64::from(port)
}

fn domain<'a>(mut nodes: Vec<Node<'a>>, numbers: &[u32], plan: &Plan) -> (Domain<'a>, Names) {
    if let ([number], 1) = (numbers, nodes.len()) {
        return (Domain::Single(nodes.remove(0)), Names::Base(name(*number, 0)));
    }
    let mut places = Vec::new();
    let mut names = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        for port in 0..plan.ports.of(*number).len() as u32 {
            places.push((index as u32, port));
            names.push(name(*number, port));
        }
    }
    (Domain::Cluster { nodes, places }, Names::Table(names))
}

/// The longest time from the start of a transmission to its arrival.
fn longest(topology: &Topology, settings: &Settings) -> Time {
    let header = settings.classes.iter().map(|class| class.format.header).max().unwrap_or(0);
    let largest = Bytes::new(u64::from(settings.host.mtu + header + settings.wire.gap));
    let times = topology.cables.iter().map(|cable| cable.link.rate.time_of(largest).saturating_add(cable.link.delay));
    times.max().unwrap_or(Time::ZERO)
}
