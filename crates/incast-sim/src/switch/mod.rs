//! A store-and-forward switch: routing, buffer admission, egress queues, marking, agents.
//!
//! A packet's way through it: `ingress`, `enqueue`, `dequeue`; `agent` where one is asked on the way. Two kinds of
//! switch have ingress and egress in one piece: those that only forward (`bare`) and those that also trim (`trim`).
//! Most switches of large runs are of these kinds, and what each step would ask about is known there once for all.
//! The other way would give the same results, and takes over where more has to be asked after all.

mod agent;
mod bare;
mod busy;
mod change;
mod channels;
mod credits;
mod dequeue;
mod enqueue;
mod hold;
mod ingress;
mod pfc;
mod prefetch;
mod sample;
mod trim;

use self::busy::BusyPorts;
use super::routing::{self, Around, Rule};
use crate::{
    config::{Buffer, Ecn, LoadBalancing},
    engine::{
        Event,
        random::{Stream, mix},
    },
    probe::{PacketTrace, PortProbe, Recorder},
    settings::Settings,
};
use crate::{
    fabric::{
        buffer::Memory,
        link::{Receiver, Transmitter},
        node::{NodeContext, class},
        packet::Packet,
        queue::{Origin, Pool, Queue},
        trim::Trimming,
    },
    flow_control::{
        permission::{PauseRecord, Permission},
        pfc::Accounts,
    },
};
use incast_cc::{
    agent::{Notification, PortSetup, Site},
    marking::Marking,
    registry::Agent,
};
use incast_units::{Rate, Time};

/// The egress side of a port: what every packet that leaves needs, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Port {
    link: Transmitter,
    /// Frame bytes waiting, all priorities.
    waiting_bytes: u64,
    /// Priorities with something waiting, one bit each.
    waiting: u8,
    permission: Permission,
    /// A frame of flow control waits for the link; never where departures are lazy.
    notice: bool,
    /// Answers to markers wait for the link; never where departures are lazy.
    answers: bool,
    /// A departure event is pending.
    departure: bool,
    /// Index into the switch's list of marking rules, of which there are no more than ports.
    marking: u16,
}

impl Port {
    /// A packet waits in a queue of this port, number `port`, which has to be one of the `busy` ones where
    /// departures are lazy. Returns the length of all its queues, with the packet in service.
    #[inline(always)]
    fn note_waiting(
        &mut self,
        port: usize,
        packet: &Packet,
        now: Time,
        busy: Option<&mut BusyPorts>,
        counters: &mut Counters,
    ) -> u64 {
        if let Some(busy) = busy {
            busy.insert(port);
        }
        self.waiting |= 1 << packet.priority;
        self.waiting_bytes += u64::from(packet.wire);
        let length = self.waiting_bytes + self.link.in_service_any(now);
        counters.max_queue_bytes = counters.max_queue_bytes.max(length);
        length
    }
}

/// What must be asked for every packet. The functions that all packets pass exist once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Whatever there is: flow control, agents, telemetry, samples. Right for every switch.
    Full,
    /// Nothing: it only forwards, by hashes, with lazy departures.
    Bare,
    /// Trimming, and how load is balanced, but nothing else.
    Trims,
}

/// Ways as parameters of functions.
const FULL: u8 = Way::Full as u8;
const BARE: u8 = Way::Bare as u8;
const TRIMS: u8 = Way::Trims as u8;

/// Counts of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueRecord {
    marks: u64,
    drops: u64,
    trims: u64,
}

/// Sums of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Bytes of control packets made here.
    pub created_bytes: u64,
    /// Bytes of flow control's frames that ended here.
    pub consumed_bytes: u64,
    /// Packets and bytes without room.
    pub dropped: (u64, u64),
    /// Packets whose payload was cut off, and the bytes cut off.
    pub trimmed: (u64, u64),
    /// Headers sent back to their sender.
    pub bounces: u64,
    /// Packets of lossless priorities among those dropped.
    pub lossless_drops: u64,
    /// Packets and bytes without a route, or queued at a link that went down.
    pub lost: (u64, u64),
    /// Marked packets, and those of them that were marked at ports that lead to hosts.
    pub marks: u64,
    /// See there.
    pub marks_edge: u64,
    /// Deflected packets.
    pub deflections: u64,
    /// The longest egress queue, the packet in service included.
    pub max_queue_bytes: u64,
}

/// The routes of a switch, by routing epoch in order.
#[derive(Debug)]
pub struct Routes {
    /// At least one.
    pub rules: Vec<Rule>,
    /// As many where virtual channels or the agent need them, else none.
    pub around: Vec<Around>,
}

/// A switch.
#[derive(Debug)]
pub struct Switch<'a> {
    settings: &'a Settings,
    ports: Vec<Port>,
    /// Ingress, by port.
    inputs: Vec<Receiver>,
    /// By priority, then port.
    queues: Vec<Queue>,
    /// Frame bytes sent, indexed like the queues; only where probes want it.
    sent_by_priority: Vec<u64>,
    priorities: usize,
    /// The different marking rules of the ports: one for each rate.
    markings: Vec<Marking>,
    /// By priority, then port.
    records: Vec<QueueRecord>,
    /// By port.
    pauses: Vec<PauseRecord>,
    pool: Pool,
    memory: Memory,
    rule: Rule,
    /// Rules of later routing epochs, last first.
    later_rules: Vec<Rule>,
    salt: u32,
    agent: Agent,
    /// There is no agent to ask: apart from it, which may be large.
    plain: bool,
    /// The agent treats each port by itself: see [`incast_cc::agent::AgentInfo::by_port`].
    by_port: bool,
    /// By port.
    leads_to_host: Vec<bool>,
    /// How the packet at hand came in.
    origin: Origin,
    /// Priority flow control.
    pfc: Option<Box<pfc::Control>>,
    /// Credit-based flow control.
    credits: Option<Box<credits::Control>>,
    /// There is flow control: packets are counted by the port by which they came in.
    by_ingress: bool,
    /// Virtual channels.
    channels: Option<Box<channels::Channels>>,
    /// What is held for an agent that does so.
    holding: Option<Box<hold::Holding>>,
    /// Queues or memory are limited in packets.
    limited: bool,
    /// Packets that may wait at each port, if there is a limit.
    most: Option<u32>,
    /// Packet trimming.
    trimming: Option<Box<Trimming>>,
    /// Pending event of the agent's timer.
    agent_event: Time,
    /// By port, the state of the random stream of what the agent is asked about; empty without an agent.
    lots: Vec<u64>,
    /// What the agent wants sent; empty but while it is asked.
    notifications: Vec<Notification>,
    spray: Stream,
    /// By port, where marking draws lots.
    red: Vec<Stream>,
    /// Departures are caught up with instead of being events; see [`Switch::drain`].
    lazy: bool,
    /// They are whenever flow control does not need to know of them at once.
    may_be_lazy: bool,
    /// The shortest one that is right for this switch, for arrivals one after the other and for departures.
    way: Way,
    /// Ports with something waiting, where departures are lazy.
    busy: BusyPorts,
    node: u32,
    /// First entity of this node in its domain.
    base: u32,
    /// Sums.
    pub counters: Counters,
    /// Recorded events.
    pub recorder: Recorder,
    probe: Option<Box<PortProbe>>,
}

/// Purposes of the random streams.
const SPRAY_STREAM: u32 = 0x5350_5259;
const RED_STREAM: u32 = 0x5245_4400;
const SALT_STREAM: u32 = 0x5341_4c54;
const LOTS_STREAM: u32 = 0x4c4f_5453;

/// The salt with which a switch mixes flow hashes.
pub fn salt(seed: u64, node: u32) -> u32 {
    mix(seed ^ mix(u64::from(SALT_STREAM) << 32 | u64::from(node))) as u32
}

fn marking(ecn: &Ecn, rate: Rate, base_rtt: Time) -> Marking {
    match ecn {
        Ecn::Off => Marking::Off,
        Ecn::Step { at } => Marking::Step { at: at.bytes(rate, base_rtt) },
        Ecn::Red { min, max, p } => {
            Marking::Red { min: min.bytes(rate, base_rtt), max: max.bytes(rate, base_rtt), p: *p }
        }
        Ecn::RedByRate { rates } => rates.iter().find(|red| red.rate == rate).map_or(Marking::Off, |red| {
            Marking::Red { min: red.min.bytes(rate, base_rtt), max: red.max.bytes(rate, base_rtt), p: red.p }
        }),
    }
}

impl<'a> Switch<'a> {
    /// A switch with its links, and which of them lead to hosts. Ports to sample are given with their period. `alone`
    /// says that it shares its domain with no other node.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        settings: &'a Settings,
        node: u32,
        base: u32,
        links: Vec<(Transmitter, Receiver)>,
        leads_to_host: Vec<bool>,
        routes: Routes,
        probe: Option<(Time, Vec<u16>)>,
        alone: bool,
    ) -> Self {
        let priorities = usize::from(settings.switch.priorities);
        let queues = links.len() * priorities;
        let agent_info = settings.switch.agent.info();
        let mut setup = Vec::with_capacity(links.len());
        let mut markings: Vec<Marking> = Vec::new();
        let (mut ports, mut inputs) = (Vec::with_capacity(links.len()), Vec::with_capacity(links.len()));
        for (link, input) in links {
            let thresholds = marking(&settings.switch.ecn, link.rate(), settings.base_rtt);
            setup.push(PortSetup { rate: link.rate(), marking: thresholds });
            let marking = if agent_info.is_some_and(|info| info.marks) { Marking::Off } else { thresholds };
            let known = markings.iter().position(|other| *other == marking).unwrap_or_else(|| {
                markings.push(marking);
                markings.len() - 1
            });
            inputs.push(input);
            ports.push(Port {
                link,
                waiting_bytes: 0,
                waiting: 0,
                permission: Permission::default(),
                notice: false,
                answers: false,
                departure: false,
                marking: known as u16,
            });
        }
        let red = if matches!(settings.switch.ecn, Ecn::Red { .. } | Ecn::RedByRate { .. }) {
            let stream =
                |port: usize| Stream::new(settings.seed, RED_STREAM, u64::from(node) << 20 | port as u64);
            (0..ports.len()).map(stream).collect()
        } else {
            Vec::new()
        };
        let Routes { rules, around } = routes;
        let mut later_rules = rules;
        later_rules.reverse();
        let rule = later_rules.pop().unwrap_or_else(|| Rule::Table(routing::Table::default()));
        let recorder = Recorder::new(settings.record, settings.packets.as_ref(), node);
        let buffer = settings.switch.buffer;
        let lossless = settings.pfc.as_ref().map_or(0, |rules| rules.count());
        let lossless = settings.credits.as_ref().map_or(lossless, |rules| rules.count());
        let mut memory = Memory::new(buffer, queues as u64 - ports.len() as u64 * lossless);
        let pfc = settings.pfc.as_ref().map(|rules| {
            let links: Vec<(Rate, Time)> =
                ports.iter().map(|port| (port.link.rate(), port.link.delay())).collect();
            let accounts = Accounts::new(rules, &links, buffer, &mut memory);
            Box::new(pfc::Control::new(rules, accounts, links.len()))
        });
        let credits = settings.credits.as_ref().map(|rules| {
            let links = ports.iter().map(|port| (port.link.rate(), port.link.delay(), port.link.is_lossy()));
            let control = credits::Control::new(rules, links);
            memory.set_aside(control.own());
            Box::new(control)
        });
        let most = match buffer {
            Buffer::PerPortPackets { packets } => Some(packets),
            _ => None,
        };
        let trim = settings.switch.trim.as_ref();
        let trimming = trim.map(|rules| Box::new(Trimming::new(rules, settings.seed, node, ports.len())));
        let limited = most.is_some() || trim.is_some();
        let lazy = alone
            && agent_info.is_none_or(|info| info.by_port)
            && recorder.trace.is_none()
            && settings.credits.is_none();
        let agent = settings.switch.agent.install(&Site { ports: &setup, priorities: priorities as u8 });
        let channels = around.first().filter(|_| settings.switch.virtual_channels > 1);
        let channels = channels
            .map(|around| Box::new(channels::Channels::new(settings.switch.virtual_channels, around)));
        let holding = settings.switch.agent.holds().then(|| Box::new(hold::Holding::new(around, settings)));
        // Its packets meet nothing but routes, memory, marks and trimming. Neither of the two short ways asks for
        // permission to send: that is why flow control is left out.
        let only_forwards = lazy
            && channels.is_none()
            && agent_info.is_none()
            && settings.pfc.is_none()
            && probe.is_none()
            && !settings.switch.telemetry
            && !settings.arrivals_first;
        let hashes = settings.switch.load_balancing == LoadBalancing::Ecmp;
        let way = match (only_forwards, limited) {
            (true, true) => Way::Trims,
            (true, false) if hashes => Way::Bare,
            _ => Way::Full,
        };
        let own_lots = |port: usize| {
            mix(mix(settings.seed ^ u64::from(LOTS_STREAM)) ^ u64::from(node) << 16 ^ port as u64)
        };
        let lots = if agent.is_none() { Vec::new() } else { (0..ports.len()).map(own_lots).collect() };
        Self {
            settings,
            records: vec![QueueRecord::default(); queues],
            pauses: vec![PauseRecord::default(); ports.len()],
            busy: BusyPorts::none_of(ports.len()),
            ports,
            inputs,
            markings,
            queues: vec![Queue::default(); queues],
            sent_by_priority: if probe.is_some() { vec![0; queues] } else { Vec::new() },
            priorities,
            pool: Pool::default(),
            memory,
            rule,
            later_rules,
            salt: salt(settings.seed, node),
            plain: agent.is_none(),
            by_port: agent_info.is_some_and(|info| info.by_port),
            agent,
            leads_to_host,
            origin: Origin::HERE,
            by_ingress: pfc.is_some() || credits.is_some(),
            pfc,
            credits,
            channels,
            holding,
            limited,
            most,
            trimming,
            agent_event: Time::MAX,
            lots,
            notifications: Vec::new(),
            spray: Stream::new(settings.seed, SPRAY_STREAM, u64::from(node)),
            red,
            lazy,
            may_be_lazy: lazy,
            way,
            node,
            base,
            counters: Counters::default(),
            recorder,
            probe: probe.map(|(every, ports)| Box::new(PortProbe::new(every, ports))),
        }
    }

    #[inline]
    fn index(&self, port: usize, priority: u8) -> usize {
        usize::from(priority) * self.ports.len() + port
    }

    /// An event of this switch has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        let port = (event.entity - self.base) as usize;
        match event.class {
            class::DEPARTURE | class::LATE_DEPARTURE => self.on_departure(port, event.payload, context),
            class::AGENT => self.on_agent_timer(context),
            class::PAUSE => self.on_pause_event(port, event.payload, context),
            class::LINK => self.on_link(port, event.payload, context),
            _ => {}
        }
    }

    /// What was recorded of packets.
    pub fn traces(&mut self) -> Vec<&mut PacketTrace> {
        let links = self.ports.iter_mut().filter_map(|port| port.link.trace());
        links.chain(self.recorder.trace.as_deref_mut()).collect()
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Frame bytes that wait in it.
    pub fn waiting_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.waiting_bytes).sum()
    }

    /// Transmitter and receiver of each port.
    pub fn links(&self) -> impl Iterator<Item = (&Transmitter, &Receiver)> {
        self.ports.iter().map(|port| &port.link).zip(&self.inputs)
    }

    /// Pause edges and paused time of all ports, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        self.pauses.iter().fold((0, Time::ZERO), |(edges, paused), record| {
            (edges + record.edges(), paused + record.paused(now))
        })
    }

    /// Every byte that came in has gone out, or waits, or was dropped.
    pub fn conserves(&self) -> bool {
        let received: u64 = self.inputs.iter().map(Receiver::bytes).sum();
        let sent: u64 = self.ports.iter().map(|port| port.link.sent_bytes()).sum();
        let counters = &self.counters;
        self.memory.used() == self.waiting_bytes()
            && self.credits_add_up()
            && received + counters.created_bytes
                == sent
                    + self.waiting_bytes()
                    + counters.consumed_bytes
                    + counters.dropped.1
                    + counters.trimmed.1
                    + counters.lost.1
    }
}

/// Payloads of link events.
pub const LINK_DOWN: u32 = 0;
/// See [`LINK_DOWN`].
pub const LINK_UP: u32 = 1;
/// A new routing table, of the whole fabric.
pub const NEW_EPOCH: u32 = 2;
