//! One simulation of a scenario.

use super::{
    Form, SizeRow,
    document::profile,
    effective,
    resolve::{Point, agent, credits, nominal::Nominal, pfc, requirements, resolved::Resolved, scheduler, switches},
};
use crate::{
    scenario::{
        resolve::{clocks, scheme::FOR_LOSSLESS},
        tree::error::{Fault, ScenarioError},
    },
    workload::{Expected, Generate, rpc::Several},
};
use incast_cc::{
    feedback::CnpContent, law::Acknowledges, marking::Marking, registry::LawParameters, underlay::Reports,
};
use incast_sim::{
    Config, Demand, Fabric, MemoryEstimate, base_rtt,
    config::{ClassConfig, HostClock, NotEct, Probes, SwitchConfig},
    estimate_memory,
    topology::Topology,
};
use incast_units::{Rate, Time};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

/// A flow among others takes at most so many times as long as alone, and waits for so many round trips more: of
/// estimates.
const SLOW: f64 = 3.0;
const WAITING_RTTS: f64 = 15.0;
/// Packet-hops of a run are at most so many times what is expected without losses, where hardly any packets are lost.
const MORE_HOPS: f64 = 1.3;

/// Cost that a packet-hop is expected to have on one core, in nanoseconds, in fabrics of up to `SMALL` hosts and from
/// `LARGE` hosts on, which do not fit into caches; in between it grows evenly. See `incast bench`.
const NS_SMALL: f64 = 60.0;
const NS_LARGE: f64 = 120.0;
const SMALL: f64 = 1_024.0;
const LARGE: f64 = 8_192.0;

/// What a flow costs besides its packets, in nanoseconds: its state is made, and is in no cache.
const NS_FLOW: f64 = 2_000.0;

/// Acknowledgements of each data packet, however many packets one may be for: receivers do not wait long for others. This
/// is halfway between all and none, so that it is never wrong by more than a half.
const LEAST_ACKS: f64 = 0.55;

/// One scheme at one grid point with one seed.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Paths and values of the grid's axes.
    pub grid: Vec<(String, toml::Value)>,
    /// Name of the run's folder: safe in file systems and unique within the scenario.
    pub folder: String,
    /// Names of the classes, by the index that flows name.
    pub classes: Vec<String>,
    /// Flows that start earlier are not counted.
    pub counted_from: Time,
    /// Nor are those that start from here on.
    pub counted_until: Time,
    /// The simulation ends here at the latest.
    pub end: Time,
    /// The form of the scenario that it belongs to.
    pub form: Form,
    pub(super) point: Arc<Point>,
    pub(super) resolved: Arc<Resolved>,
}

impl Run {
    /// The grid point in JSON.
    pub fn point(&self) -> serde_json::Map<String, serde_json::Value> {
        self.grid.iter().map(|(path, value)| (path.clone(), serde_json::to_value(value).unwrap_or_default())).collect()
    }

    /// How the clock of each host deviates; empty if all are perfect.
    ///
    /// # Errors
    /// Clocks that cannot be synchronised by their probes.
    pub fn clocks(&self) -> Result<Vec<HostClock>, String> {
        clocks::draw(&self.resolved.merged.1.clock, self.seed, &self.point.topology)
    }

    /// Everything that the simulator needs, with `threads` threads: the fabric and the flows are made here.
    ///
    /// # Errors
    /// Clocks that cannot be synchronised by their probes. Whatever else can be wrong with a scenario is
    /// found when it is loaded.
    pub fn config(&self, threads: usize) -> Result<Config, ScenarioError> {
        let point = &*self.point;
        let mut flows = Vec::new();
        for generator in &point.traffic.generators {
            generator.flows(self.seed, &mut flows);
        }
        let applications = (0..point.topology.hosts).map(|host| {
            let mut own: Vec<_> = point
                .traffic
                .generators
                .iter()
                .filter_map(|generator| generator.application(self.seed, host))
                .collect();
            if own.len() > 1 { Some(Box::new(Several(own)) as Box<_>) } else { own.pop() }
        });
        let mut applications: Vec<_> = applications.collect();
        while applications.last().is_some_and(Option::is_none) {
            applications.pop();
        }
        let clocks = self.clocks().map_err(|what| self.fault(what))?;
        let (link_events, probes) = (point.events.clone(), point.probes.clone());
        Ok(Config { clocks, flows, applications, link_events, probes, threads, ..self.without_flows() })
    }

    /// Switches, hosts and classes alone: what [`Self::config`] has without what happens in the run, which takes longer
    /// to make.
    pub fn without_flows(&self) -> Config {
        Config {
            topology: (*self.point.topology).clone(),
            switch: self.resolved.switch.clone(),
            host: self.resolved.host.clone(),
            clocks: Vec::new(),
            classes: self.resolved.classes.clone(),
            flows: Vec::new(),
            applications: Vec::new(),
            link_events: Vec::new(),
            probes: Probes::default(),
            seed: self.seed,
            end: self.end,
            threads: 1,
            ties: self.resolved.ties,
            wire: self.resolved.wire,
        }
    }

    fn fault(&self, what: String) -> ScenarioError {
        let file = PathBuf::from(format!("scenario {}", self.scenario));
        let (line, column, argument, allowed, nearest) = (None, None, None, None, None);
        let key = "host.clock.sync".to_owned();
        Fault { file, line, column, argument, key, what, allowed, nearest }.into()
    }

    /// Flows of some sizes that have rows of their own.
    pub fn sizes(&self) -> &[SizeRow] {
        &self.point.sizes
    }

    /// What is added to all times in `fct.txt` and `pfc.txt`, if the scenario asks for these files.
    pub fn fct_txt_origin(&self) -> Option<Time> {
        self.point.document.measure.fct_txt.as_ref().map(|wanted| wanted.origin)
    }

    /// The fabric.
    pub fn topology(&self) -> &Topology {
        &self.point.topology
    }

    /// Payload bytes of a full packet.
    pub fn mtu(&self) -> u32 {
        self.resolved.host.mtu
    }

    /// Drops, marks, pauses and the like are recorded one by one (`measure.traces`).
    pub fn records_events(&self) -> bool {
        self.point.probes.events
    }

    /// What the generators are expected to send before the run ends: of a flow that stands for an endless one, no more
    /// than its host's link carries.
    fn expected(&self) -> impl Iterator<Item = (&dyn Generate, Expected)> {
        let topology = self.topology();
        let host_links = topology.cables.iter().take(topology.hosts as usize);
        let fastest = host_links.map(|cable| cable.link.rate).max().unwrap_or_default();
        self.point.traffic.generators.iter().map(move |generator| {
            let expected = generator.expected();
            let span = self.end.saturating_sub(Time::from_ps(generator.starts().0));
            let most = expected.sources * fastest.bytes_in(span).get() as f64;
            (&**generator, Expected { bytes: expected.bytes.min(most), ..expected })
        })
    }

    /// Flows and their packets, with acknowledgements, that are to be expected.
    fn expected_flows_and_packets(&self) -> (f64, f64) {
        let mtu = f64::from(self.resolved.host.mtu);
        let resolved = &self.resolved;
        let any = |has: fn(&ClassConfig) -> bool| f64::from(u8::from(resolved.classes.iter().any(has)));
        // A receiver may answer each packet with a pull, with credit or with a report of the underlay besides the
        // acknowledgement, and an agent of a switch with a notification.
        let answers =
            any(|class| class.scheduler.is_some() && class.law.transport().acknowledges != Acknowledges::Flows)
                + any(|class| class.underlay.arrangement().is_some_and(|stage| stage.reports == Reports::Own))
                + f64::from(u8::from(resolved.switch.agent.info().is_some_and(|agent| !agent.by_port)));
        // Of each flow: SYN and SYN-ACK, what a sender and its receiver half tell each other, and a congestion notification.
        let handshake = if resolved.host.handshake { 2.0 } else { 0.0 };
        let messages = handshake
            + 5.0 * any(|class| class.law.capabilities().signals)
            + any(|class| class.law.capabilities().cnp != CnpContent::Nothing);
        let mut sum = (0.0, 0.0);
        for (generator, expected) in self.expected() {
            // What the last packets of flows lack to full ones.
            let lacks = |bytes: u64| (bytes as f64 / mtu).ceil() - bytes as f64 / mtu;
            let lacking: f64 = generator.sizes().iter().map(|(_, size)| size.flows * lacks(size.bytes)).sum();
            let data = expected.bytes / mtu + lacking;
            sum.0 += expected.flows;
            let acks = data * (1.0 / f64::from(resolved.host.ack_every)).max(LEAST_ACKS);
            sum.1 += data + acks.max(expected.flows);
            sum.1 += answers * data + messages * expected.flows;
        }
        sum
    }

    /// Link traversals of data and acknowledgements that are to be expected, retransmissions left out. An estimate
    /// for progress and cost: sources and destinations count as uniform.
    pub fn expected_packet_hops(&self) -> f64 {
        self.expected_flows_and_packets().1 * self.point.traffic.mean_hops
    }

    /// Seconds of CPU that they are expected to take.
    pub fn expected_cpu_s(&self) -> f64 {
        let part = ((f64::from(self.hosts()) - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
        let packets = self.expected_packet_hops() * (NS_SMALL + (NS_LARGE - NS_SMALL) * part);
        (packets + self.expected_flows() * NS_FLOW) * 1e-9
    }

    /// The same traversals at the most, roughly, as arrivals are random and what is lost is sent again.
    pub fn estimated_packet_hops(&self) -> f64 {
        self.expected_packet_hops() * MORE_HOPS
    }

    /// Flows that are to be expected.
    pub fn expected_flows(&self) -> f64 {
        self.expected_flows_and_packets().0
    }

    /// Memory that the run will need at most on so many threads, roughly.
    pub fn memory(&self, threads: usize) -> MemoryEstimate {
        let path = self.resolved.path;
        // Of each generator: the first start, the time of all starts, and the time of a flow alone, in picoseconds.
        let times = |generator: &dyn Generate, expected: &Expected| {
            let (first, last) = generator.starts();
            let mean = expected.bytes / expected.flows.max(1.0);
            let alone = mean * 8e12 / path.rate.as_f64() + path.base_rtt.ps() as f64;
            (first as f64, last.saturating_sub(first) as f64, alone)
        };
        let used = self.expected().map(|(generator, expected)| {
            let (_, span, alone) = times(generator, &expected);
            expected.bytes * 8e12 / (f64::from(self.hosts()) * path.rate.as_f64() * (span + alone)).max(1.0)
        });
        let used = used.sum::<f64>().min(1.0);
        let (mut flows, mut bytes, mut alive, mut flow_time, mut until) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
        for (generator, expected) in self.expected() {
            let (first, span, alone) = times(generator, &expected);
            // As in a processor that is shared (M/G/1-PS).
            let slow = (1.0 / (1.0 - used)).min(SLOW);
            let life = slow * alone + WAITING_RTTS * path.base_rtt.ps() as f64;
            let under_way = if expected.open > 0.0 { expected.open } else { expected.flows * (life / (span + life)) };
            let lasts = (span + life).min((self.end.ps() as f64 - first).max(0.0));
            flows += expected.flows;
            bytes += expected.bytes;
            alive += under_way;
            flow_time += under_way * lasts;
            until = until.max(first + lasts);
        }
        let probes = &self.point.probes;
        let has_requests = self.point.traffic.generators.iter().any(|generator| generator.request_class().is_some());
        let tables = [true, has_requests, probes.ports.is_some(), probes.rates.is_some(), probes.events];
        // Only priorities that are used have samples; receivers give them to their messages.
        let priorities = self
            .resolved
            .classes
            .iter()
            .flat_map(|class| [Some(class.priority), class.ack_priority, Some(class.notification_priority)]);
        let priorities: BTreeSet<u8> = priorities.flatten().chain([0]).collect();
        let scheduled = self.resolved.classes.iter().any(|class| class.scheduler.is_some());
        estimate_memory(&Demand {
            topology: &self.point.topology,
            path,
            flows,
            alive,
            packets: bytes / flows.max(1.0) / f64::from(self.resolved.host.mtu) + 0.5,
            used,
            tables: tables.into_iter().filter(|is| *is).count(),
            telemetry: self.resolved.classes.iter().any(|class| class.law.info().telemetry()),
            priorities: if scheduled { self.resolved.switch.priorities } else { priorities.len() as u8 },
            threads,
            probes,
            flow_time,
            until,
        })
    }

    /// Bytes of memory that the run will need at most on one thread, roughly.
    pub fn estimated_memory(&self) -> u64 {
        self.memory(1).total()
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.point.topology.hosts
    }

    /// What this scheme changes against the scenario, one line each, for the table's footer.
    pub fn footnotes(&self) -> Vec<String> {
        self.resolved.footnotes.clone()
    }

    /// Laws whose constants were published with other thresholds of marks than the switches have, a sentence each.
    pub fn unlike_published(&self) -> Vec<String> {
        requirements::unlike_published(self.topology(), &self.resolved)
    }

    /// Of which keys of `[host]` the hosts of laws that Linux has differ from Linux as installed, and their least timeout;
    /// nothing with other laws, or with `host.profile = "linux"`.
    pub fn unlike_linux(&self) -> Option<(Time, Vec<&'static str>)> {
        let Resolved { classes, merged: (_, written), .. } = &*self.resolved;
        let is_linux =
            |class: &ClassConfig| !LawParameters::linux(class.law.info().name, &self.resolved.path).is_empty();
        if !written.profile.is_standard() || !classes.iter().any(is_linux) {
            return None;
        }
        let keys = profile::unlike_linux(written);
        (!keys.is_empty()).then_some((written.rto_min, keys))
    }

    /// One of the same scheme at the same grid point.
    pub fn differs_in_seed_only(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.point, &other.point) && Arc::ptr_eq(&self.resolved, &other.resolved)
    }

    /// What its packets depend on beside the seed, as text: runs of one scenario with equal texts and seeds are one simulation. Thresholds of marks are no part of it
    /// where no packet can be marked, nor what the scheme has its values in place of.
    pub fn simulated(&self) -> String {
        let mut table = self.effective();
        table.remove("seeds");
        let mut own = match table.remove("scheme") {
            Some(toml::Value::Array(mut schemes)) if schemes.len() == 1 => schemes.remove(0),
            _ => toml::Value::Boolean(false),
        };
        if let toml::Value::Table(own) = &mut own {
            own.remove("name");
            for common in ["switch", "host"] {
                table.extend(own.remove(common).map(|values| (common.to_owned(), values)));
            }
        }
        table.insert("scheme".into(), own);
        let drops = self.resolved.any_switch(self.topology(), |switch| switch.not_ect == NotEct::Drop);
        if !agent::uses_thresholds(&self.resolved) && !drops {
            let forget = |switch: &mut toml::Value| {
                for key in ["profile", "ecn", "ecn_at"] {
                    switch.as_table_mut().map(|switch| switch.remove(key));
                }
            };
            if let Some(switch) = table.get_mut("switch") {
                forget(switch);
                let overrides = switch.get_mut("override").and_then(toml::Value::as_array_mut);
                overrides.into_iter().flatten().for_each(forget);
            }
        }
        table.to_string()
    }

    /// One line for each workload: the mean size that `load` refers to, arrivals, flows to be expected.
    pub fn describe_workloads(&self) -> Vec<String> {
        self.point.traffic.generators.iter().map(|generator| generator.describe()).collect()
    }

    /// The nominal load of the most loaded link, if a workload has one.
    pub fn nominal(&self) -> Option<&Nominal> {
        self.resolved.nominal.as_ref()
    }

    /// It ends before it can be in a steady state.
    pub fn is_too_short(&self) -> bool {
        let settles = self.nominal().and_then(|nominal| nominal.settles);
        settles.is_some_and(|settles| settles > self.counted_until)
    }

    /// What flow control comes to, one line for each kind of switch port; nothing where there is none.
    pub fn describe_pfc(&self) -> Vec<String> {
        let Resolved { switch, host, classes, wire, .. } = &*self.resolved;
        let fabric = Fabric { topology: &self.point.topology, switch, host, classes, wire: *wire };
        [pfc::describe(fabric), credits::describe(fabric), scheduler::describe(fabric)].concat()
    }

    /// The switches that differ, one line for each table that says so.
    pub fn describe_switches(&self) -> Vec<String> {
        switches::describe(&self.resolved.merged.0, &self.point.topology)
    }

    /// Switches pause each other by priority.
    pub fn has_pfc(&self) -> bool {
        self.resolved.switch.pfc.is_some()
    }

    /// Laws whose papers have a lossless fabric, on one that is not: their rates do not answer losses.
    pub fn without_lossless_fabric(&self) -> Vec<String> {
        let is_lossless = |switch: &SwitchConfig| switch.pfc.is_some() || switch.credits.is_some();
        if self.resolved.any_switch(self.topology(), is_lossless) {
            return Vec::new();
        }
        let has = |law: &&str| self.resolved.classes.iter().any(|class| class.law.info().name == *law);
        let own: Vec<&str> = FOR_LOSSLESS.into_iter().filter(has).collect();
        let line = |law| format!("{law} does not slow down at a loss, and switches drop, as there is no switch.pfc");
        own.into_iter().map(line).collect()
    }

    /// Period in which rates are sampled, if they are.
    pub fn rates_sampled_every(&self) -> Option<Time> {
        self.point.document.measure.rates.as_ref().map(|rates| rates.every)
    }

    /// The network as the scheme's law is given it: its defaults are computed from these numbers.
    pub fn path(&self) -> incast_cc::Path {
        self.resolved.path
    }

    /// Base RTT and bandwidth-delay product, and from how many bytes on ports of each rate mark.
    pub fn describe_network(&self) -> Vec<String> {
        let resolved = &self.resolved;
        let (switch, host, classes, wire) = (&resolved.switch, &resolved.host, &resolved.classes, resolved.wire);
        let rtt = base_rtt(Fabric { topology: self.topology(), switch, host, classes, wire });
        let bdp = |rate: Rate| rate.bytes_in(rtt).get();
        let rate = resolved.path.rate;
        let mut lines = vec![format!(
            "base RTT {:.2} us between the hosts furthest apart; 1bdp is {} B at {rate}",
            rtt.ps() as f64 / 1e6,
            bdp(rate)
        )];
        let (topology, ports) = (self.topology(), self.topology().ports());
        for (kind, nodes) in switch.kinds(topology.hosts..topology.nodes()) {
            let cables = nodes.iter().flat_map(|node| ports.of(*node)).map(|end| &topology.cables[end.cable as usize]);
            let rates: BTreeSet<u64> = cables.map(|cable| cable.link.rate.bps()).collect();
            let like = match topology.names.get(nodes[0] as usize) {
                Some(name) if !switch.overrides.is_empty() => format!(" of switches like {name}"),
                _ => String::new(),
            };
            for rate in rates.into_iter().map(Rate::from_bps) {
                match kind.ecn.marking(rate, rtt) {
                    Marking::Off => {}
                    Marking::Step { at } => lines.push(format!("marks above {at} B at ports of {rate}{like}")),
                    Marking::Red { min, max, p } => {
                        lines.push(format!("marks from {min} B to {max} B, with up to {p}, at ports of {rate}{like}"));
                    }
                }
            }
        }
        lines
    }

    /// The scenario as this run has it: its grid point, its scheme, its seed, every default spelled out.
    pub fn effective(&self) -> toml::Table {
        let mut table = effective::table(&self.point);
        table.remove("grid");
        table.remove("zip");
        table.insert("name".into(), self.scenario.clone().into());
        table.insert("seeds".into(), toml::Value::Array(vec![toml::Value::Integer(self.seed as i64)]));
        if let Some(toml::Value::Array(schemes)) = table.get_mut("scheme") {
            schemes.retain(|scheme| scheme.get("name").and_then(toml::Value::as_str) == Some(&self.scheme));
        }
        table
    }

    /// The same as a scenario that can be run beside the first: with a name and seeds of its own, and without the
    /// defaults that have no effect.
    pub fn on_its_own(&self, name: String, seeds: &[u64]) -> toml::Table {
        let mut table = self.effective();
        table.insert("name".into(), name.into());
        let seeds = seeds.iter().map(|seed| toml::Value::Integer(*seed as i64)).collect();
        table.insert("seeds".into(), toml::Value::Array(seeds));
        if self.resolved.has_notifications() {
            return table;
        }
        let schemes = table.get_mut("scheme").and_then(toml::Value::as_array_mut);
        for scheme in schemes.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
            scheme.remove("notification_priority");
            let by_class = scheme.get_mut("by_class").and_then(toml::Value::as_table_mut);
            for refined in by_class.into_iter().flat_map(|classes| classes.iter_mut()) {
                refined.1.as_table_mut().and_then(|refined| refined.remove("notification_priority"));
            }
        }
        table
    }
}
