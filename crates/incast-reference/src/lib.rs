//! A second simulator, as simple as can be, written from the documented rules: what the fast one is compared with.
//!
//! One global list of events, one event for everything that happens, queues of packets that are summed up whenever
//! somebody asks how long they are, loss recovery in maps, timers that are cancelled and set anew. It shares with
//! the fast simulator the configuration, the topologies (but not their routes), the laws, the random streams and the
//! hashes. Agents, telemetry, probes, and underlays with reports of their own or shared by flows are left
//! out.

mod agenda;
mod dwrr;
mod frames;
mod host;
mod link;
mod pause;
mod rack;
mod recovery;
mod routes;
mod sender;
mod switch;

use agenda::{Agenda, What};
use host::Host;
use incast_cc::underlay::{Reports, Scope};
use incast_sim::{
    Config, Outcome,
    config::{ClassConfig, HostConfig, LoadBalancing, SwitchConfig, Threshold, Ties, Wire},
    fabric::format::Format,
    outcome::{EventRecord, Totals},
};
use link::Link;
use routes::Routes;
pub use routes::base_rtt;
use switch::Switch;

/// Picoseconds.
pub type Ps = u64;

/// What the two simulators must agree on.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    /// By source and sequence.
    pub flows: Vec<Flow>,
    /// All that is summed, but the number of events, which is a matter of the engine.
    pub totals: Totals,
    /// Drops, losses, marks, timeouts and pause edges, in order.
    pub events: Vec<EventRecord>,
    /// Everything was delivered and acknowledged.
    pub complete: bool,
}

/// One flow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Source and sequence.
    pub name: (u32, u32),
    /// Receiving host.
    pub destination: u32,
    /// When it started.
    pub start: Ps,
    /// When the last byte arrived.
    pub delivered: Option<Ps>,
    /// When the sender knew.
    pub acked: Option<Ps>,
    /// Payload bytes that arrived.
    pub delivered_bytes: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Marked packets.
    pub marked: u32,
    /// Packets that came after a later one.
    pub reordered: u32,
}

impl Summary {
    /// Of the fast simulator.
    pub fn of(outcome: &Outcome) -> Self {
        let flows = outcome.flows.iter().map(|flow| Flow {
            name: (flow.source, flow.sequence),
            destination: flow.destination,
            start: flow.start.ps(),
            delivered: flow.delivered.map(|time| time.ps()),
            acked: flow.acked.map(|time| time.ps()),
            delivered_bytes: flow.delivered_bytes,
            retransmitted_bytes: flow.retransmitted_bytes,
            timeouts: flow.timeouts,
            marked: flow.marked_packets,
            reordered: flow.reordered_packets,
        });
        Self {
            flows: flows.collect(),
            totals: Totals { events: 0, paused: incast_units::Time::ZERO, ..outcome.totals },
            events: outcome.events.clone(),
            complete: outcome.complete,
        }
    }
}

impl Summary {
    /// Where this one, of the fast simulator, differs from a naive one.
    pub fn difference(&self, naive: &Self) -> Option<String> {
        first_difference("events", &self.events, &naive.events)
            .or_else(|| first_difference("flows", &self.flows, &naive.flows))
            .or_else(|| first_difference("totals", &[self.totals], &[naive.totals]))
            .or_else(|| first_difference("completion", &[self.complete], &[naive.complete]))
    }
}

/// Where two lists first differ.
fn first_difference<T: PartialEq + std::fmt::Debug>(what: &str, fast: &[T], naive: &[T]) -> Option<String> {
    let longest = fast.len().max(naive.len());
    let at = (0..longest).find(|index| fast.get(*index) != naive.get(*index))?;
    Some(format!("{what} differ at {at}:\n fast: {:?}\nnaive: {:?}", fast.get(at), naive.get(at)))
}

/// Where in its flow a packet stands, or what it says about it.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Payload.
    Data { position: u32, packets: u32, payload: u32, last: bool },
    /// Acknowledgement; negative if the receiver refuses what is out of order.
    Ack {
        position: u32,
        expected: u32,
        /// SACK blocks, first packets and ends.
        blocks: Vec<(u32, u32)>,
        packets: u32,
        marked: u32,
        delay_ns: u64,
        negative: bool,
        /// The packet had arrived before.
        duplicate: bool,
        hops: u8,
        /// From the arrival of the data until this leaves.
        endpoint_ns: u64,
        /// Part of that for which it was held on purpose; without it once it has left.
        held_ns: u64,
    },
    /// Congestion notification of the receiver.
    Notification,
    /// Credit up to a position.
    Credit { position: u64 },
    /// The far end of a link must pause some priorities, and may go on with others.
    Pause { about: u8, paused: u8 },
}

/// What an answer says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The receiver refuses what is out of order.
    pub negative: bool,
    /// What it names beyond a gap: the packet that caused it, and what its SACK blocks have.
    pub blocks: Vec<u32>,
    /// The packet that caused it, and when that was sent.
    pub position: u32,
    pub stamp: Ps,
    /// All below have arrived.
    pub expected: u32,
    /// The packet had arrived before.
    pub duplicate: bool,
}

/// What an acknowledgement changed: packets that are news.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Arrived.
    pub arrived: Vec<u32>,
    /// Presumed lost, in the order in which they will be sent again.
    pub lost: Vec<u32>,
    /// A probe has repaired its loss.
    pub repaired: Option<u32>,
    /// Recovery begins.
    pub starts: bool,
}

/// A packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Host that sent it.
    pub from: u32,
    /// Host it goes to.
    pub to: u32,
    /// Number of the flow at the host that sends its data.
    pub sequence: u32,
    /// Class of the flow.
    pub class: u16,
    /// Priority.
    pub priority: u8,
    /// Frame bytes.
    pub wire: u32,
    /// Hash for equal-cost ports.
    pub ecmp_hash: u32,
    /// When the data left its host; echoed by answers.
    pub stamp: Ps,
    /// When its present link began to send it.
    pub started: Ps,
    /// Links on which it was sent.
    pub links: u32,
    /// It may be marked.
    pub ecn_capable: bool,
    /// It is.
    pub marked: bool,
    /// The port by which it entered the switch that it is in.
    pub ingress: usize,
    /// What is in it.
    pub content: Content,
}

impl Packet {
    /// The host that sends the flow's data: answers travel against it.
    pub fn flow_source(&self) -> u32 {
        match self.content {
            Content::Data { .. } => self.from,
            Content::Pause { .. } => EventRecord::NO_FLOW,
            _ => self.to,
        }
    }
}

/// A node.
// Few of them exist.
#[allow(clippy::large_enum_variant)]
enum Node<'a> {
    Host(Host<'a>),
    Switch(Switch<'a>),
}

/// Laws whose senders and receivers it has: those of windows, of rates, and of credit.
const LAWS: [&str; 11] = [
    "dctcp",
    "cubic",
    "bbr",
    "bbr3",
    "swift",
    "timely",
    "dcqcn",
    "dctcp-rate",
    "constant-window",
    "constant-rate",
    "credit",
];

/// Whether it has all that a configuration needs. What it does not have must be as in plain hosts and switches, so that
/// something new is not covered until it is named here.
pub fn covers(config: &Config) -> bool {
    let HostConfig {
        mtu,
        rto_min,
        ack_every,
        ack_delay,
        max_ack_delay,
        reordering,
        reordering_window,
        pace_credit,
        lost_retransmission,
        ref schedulers,
        ..
    } = config.host;
    let own = HostConfig {
        rto_min,
        ack_every,
        ack_delay,
        max_ack_delay,
        reordering,
        reordering_window,
        pace_credit,
        lost_retransmission,
        schedulers: schedulers.clone(),
        ..HostConfig::plain(mtu)
    };
    let switch = &config.switch;
    let plain = SwitchConfig::plain();
    let own_switch = SwitchConfig {
        virtual_channels: plain.virtual_channels,
        agent: plain.agent,
        telemetry: plain.telemetry,
        credits: plain.credits,
        ..switch.clone()
    };
    let class = |class: &ClassConfig| {
        let info = class.law.info();
        let stage = class.underlay.arrangement();
        LAWS.contains(&info.name)
            && class.law_at.is_empty()
            && class.notification_priority == 0
            && class.format == Format::of(info.framing)
            && stage.is_none_or(|stage| stage.scope == Scope::Flow && stage.reports == Reports::Acknowledgements)
            && (schedulers.is_empty() || class.scheduler == Some(0))
    };
    format!("{own:?}") == format!("{:?}", config.host)
        && format!("{own_switch:?}") == format!("{switch:?}")
        && matches!(switch.load_balancing, LoadBalancing::Ecmp | LoadBalancing::Spray)
        && (switch.trim.is_none() || switch.pfc.is_none())
        && switch
            .pfc
            .as_ref()
            .is_none_or(|pfc| matches!(pfc.threshold, Threshold::Static { .. }) && pfc.expiry.is_none())
        && switch.overrides.values().all(|own| !matches!(own.pfc, Some((Threshold::Dynamic { .. }, _))))
        && config.wire == Wire::default()
        && config.clocks.is_empty()
        && config.flows.iter().all(|flow| flow.pinned.is_none())
        && schedulers.len() <= 1
        && config.classes.iter().all(class)
}

/// Runs a configuration that it [covers].
pub fn simulate(mut config: Config) -> Summary {
    let mut applications = std::mem::take(&mut config.applications).into_iter();
    let config = &config;
    let topology = &config.topology;
    let mut agenda = Agenda::new(config.seed, config.ties);
    let mut epochs = Routes::of_all_epochs(topology, &config.link_events);
    let mut nodes: Vec<Node<'_>> = (0..topology.nodes())
        .map(|node| {
            let links = Link::all_of(topology, node, config.seed, config.ties == Ties::ArrivalsFirst);
            if node < topology.hosts {
                Node::Host(Host::new(config, node, links, applications.next().flatten(), &mut agenda))
            } else {
                Node::Switch(Switch::new(config, node, links))
            }
        })
        .collect();
    for event in &config.link_events {
        for (node, port) in link::ends(topology, event.cable) {
            agenda.add(event.at.ps(), node, port, What::Link { up: event.up });
        }
    }
    let mut routes = epochs.remove(0).1;
    while let Some((now, node, port, what)) = agenda.next_before(config.end.ps()) {
        while epochs.first().is_some_and(|epoch| epoch.0 <= now) {
            routes = epochs.remove(0).1;
        }
        match &mut nodes[node as usize] {
            Node::Host(host) => host.handle(now, what, &mut agenda),
            Node::Switch(switch) => switch.handle(now, port, what, &routes, &mut agenda),
        }
    }
    collect(config, &nodes, &agenda)
}

fn collect(config: &Config, nodes: &[Node<'_>], agenda: &Agenda) -> Summary {
    let mut totals = Totals::default();
    let mut events = Vec::new();
    let mut flows = Vec::new();
    let mut complete = true;
    for node in nodes {
        match node {
            Node::Host(host) => {
                host.add_to(&mut totals);
                events.extend(host.events.iter().copied());
                complete &= host.upcoming.is_empty();
                flows.extend(host.sent());
            }
            Node::Switch(switch) => {
                switch.add_to(&mut totals);
                events.extend(switch.events.iter().copied());
            }
        }
    }
    for flow in &mut flows {
        if let Node::Host(host) = &nodes[flow.destination as usize] {
            host.add_arrivals(flow);
        }
        complete &= flow.acked.is_some() && flow.delivered.is_some();
    }
    flows.sort_by_key(|flow| flow.name);
    events.sort();
    totals.left_bytes += agenda.bytes_on_the_way();
    debug_assert_eq!(config.topology.nodes() as usize, nodes.len());
    Summary { flows, totals, events, complete }
}
