//! What all nodes of a simulation share, resolved once.

mod classes;
pub mod host;

use self::host::{HostClock, HostConfig};
use crate::{
    application::FlowSpec,
    fabric::{config::Wire, node::class},
    flow_control::{credits, pfc::Rules},
    probe::PacketFilter,
    recovery::TimerLimits,
    routing::{PathCount, config::LoadBalancing},
    topology::{Ports, Rule, Topology, ideal},
};
pub use classes::Class;
use incast_cc::{Path, registry::Scheduler};
use incast_units::{Rate, Time};
use std::collections::BTreeMap;

/// Read-only during a run.
#[derive(Debug)]
pub struct Settings {
    /// Seed of every random stream.
    pub seed: u64,
    /// Queues of each port of a switch: see `SwitchConfig::priorities`.
    pub priorities: u8,
    /// Choice among equal-cost ports.
    pub load_balancing: LoadBalancing,
    /// Priority flow control, resolved.
    pub pfc: Option<Rules>,
    /// Credit-based flow control, resolved.
    pub credits: Option<credits::Rules>,
    /// All hosts.
    pub host: HostConfig,
    /// Number of paths between two hosts, where senders choose the paths of their packets.
    pub path_count: Option<PathCount>,
    /// What senders know of their peers.
    pub peers: Peers,
    /// Clocks of hosts, by host; hosts beyond the end have perfect clocks.
    pub clocks: Vec<HostClock>,
    /// All links.
    pub wire: Wire,
    /// Flow classes.
    pub classes: Vec<Class>,
    /// Packets that arrive as a transmission ends are handled before the link takes its next packet.
    pub arrivals_first: bool,
    /// The fabric's largest base RTT.
    pub base_rtt: Time,
    /// The least time from one domain to another: a message can be posted so long before its arrival.
    pub lookahead: Time,
    /// Until then a control packet at a NIC waits only for the link and for control packets before it: nothing pauses
    /// the NIC, no link fails, and control packets go before data. The end of the run, or zero.
    pub undisturbed_until: Time,
    /// Record events.
    pub record: bool,
    /// Period of flow samples, and the least size of a sampled flow.
    pub rates: Option<(Time, u64)>,
    /// Record the steps of these packets.
    pub packets: Option<PacketFilter>,
}

impl Settings {
    /// Bytes of the largest data frame.
    pub fn full_frame(&self) -> u64 {
        let frames = self.classes.iter().map(|class| u64::from(class.format.data(self.host.mtu)));
        frames.max().unwrap_or(u64::from(self.host.mtu))
    }

    /// The event class of departures.
    pub fn departure(&self) -> u8 {
        if self.arrivals_first { class::LATE_DEPARTURE } else { class::DEPARTURE }
    }

    /// At `now`, before the event of that time: transmissions that end before the returned time have ended.
    #[inline]
    pub fn ended_before(&self, now: Time) -> Time {
        if self.arrivals_first { now } else { now + Time::from_ps(1) }
    }

    /// Constants of the retransmission timers.
    #[inline]
    pub fn timer_limits(&self) -> TimerLimits {
        let coalesced = if self.host.ack_every > 1 { self.host.ack_delay } else { Time::ZERO };
        let max_ack_delay = self.host.max_ack_delay.unwrap_or(coalesced);
        TimerLimits { rto_min: self.host.rto_min, base_rtt: self.base_rtt, max_ack_delay }
    }

    /// Whether a flow, by its source and number, may be sampled: where the packets of one flow are recorded, only that is.
    pub fn samples_rates_of(&self, flow: (u32, u32)) -> bool {
        let only = self.packets.as_ref().and_then(|packets| packets.flow);
        self.rates.is_some() && only.is_none_or(|only| only == flow)
    }

    /// The schedulers of a host whose link has this rate, with the constants of their laws at that rate.
    pub fn schedulers(&self, rate: Rate) -> impl Iterator<Item = Scheduler> + '_ {
        self.host.schedulers.iter().enumerate().map(move |(index, common)| {
            let own = |class: &&Class| class.scheduler.is_some_and(|own| usize::from(own) == index);
            let mut scheduler = common.clone();
            for class in self.classes.iter().filter(own) {
                let Some((_, law)) = class.law_at.iter().find(|(other, _)| *other == rate) else { continue };
                let receiver = law.receiver(&Path { rate, ..class.path });
                if !receiver.is_none() {
                    scheduler = receiver;
                }
            }
            scheduler
        })
    }

    /// Payload that a host sends of a flow of a class without permission of the receiver.
    pub fn unscheduled(&self, class: u8, source: u32) -> u64 {
        let class = &self.classes[usize::from(class)];
        let rate = self.peers.rates.get(source as usize).copied().unwrap_or(class.path.rate);
        class.start(rate, Time::ZERO, 0).unscheduled()
    }
}

/// What the senders of receiver-driven flows know of the receivers.
#[derive(Debug, Default)]
pub struct Peers {
    /// Rate of each host's link; empty where all are the same.
    pub rates: Vec<Rate>,
    /// Number of flows of a request to one host, by both; empty where no law needs it.
    pub degrees: BTreeMap<(u64, u32), u32>,
    /// Delays of paths; `None` where there is no underlay.
    pub base_delays: Option<BaseDelays>,
}

/// One-way delays of full packets through the empty fabric, as probes of the clocks find them.
#[derive(Debug)]
pub struct BaseDelays {
    topology: Topology,
    ports: Ports,
}

impl BaseDelays {
    /// Those of a fabric, of which it keeps no names.
    pub fn new(topology: &Topology, ports: &Ports) -> Self {
        let Topology { kind, hosts, cables, rules, .. } = topology;
        let (cables, rules) = (cables.clone(), rules.clone());
        let topology = Topology { kind, hosts: *hosts, names: Vec::new(), cables, rules };
        Self { topology, ports: ports.clone() }
    }

    /// How much longer the first path of the rules between two hosts is than the shortest of the fabric.
    pub fn longer(&self, path: &Path, source: u32, destination: u32) -> Time {
        let mut first = |rule: &Rule, _| rule.alternatives(destination).next();
        let rules = &self.topology.rules;
        let Some(hops) = ideal::path_by(&self.topology, &self.ports, rules, &mut first, source, destination) else {
            return Time::ZERO;
        };
        ideal::one_way(hops.iter().map(|hop| &hop.link), path.wire_mss).saturating_sub(path.least_delay)
    }
}

impl Peers {
    /// Rate of the receiver's link, and the flow's incast degree; 0 if it is not known. Links have the sender's `rate`
    /// unless they differ.
    pub fn of(&self, flow: &FlowSpec, rate: Rate) -> (Rate, u32) {
        let receiver = self.rates.get(flow.destination as usize).copied().unwrap_or(rate);
        let degree = self.degrees.get(&(flow.request, flow.destination)).copied().unwrap_or(0);
        (receiver, degree)
    }
}
