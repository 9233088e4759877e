//! How a switch is put together.

use super::{
    Counters, Switch, agent::AgentHost, aqm::Aqm, channels::VirtualChannels, config::SwitchConfig, egress::Egress,
    features, hold::Hold, scheduler::Scheduler,
};
use crate::{
    fabric::{
        buffer::SharedBuffer,
        link::{Receiver, Transmitter},
        trim::Trimming,
    },
    flow_control::FlowControl,
    probe::{PortProbe, Recorder},
    routing::{RouteView, Router},
    settings::Settings,
    topology::Rule,
};
use incast_cc::{agent::PortSetup, marking::Marking};
use incast_units::Time;

/// The routes of a switch, by routing epoch in order.
#[derive(Debug)]
pub struct Routes {
    /// At least one.
    pub rules: Vec<Rule>,
    /// As many where virtual channels or the agent need them, else none.
    pub views: Vec<RouteView>,
}

/// What belongs to one switch alone.
#[derive(Debug)]
pub struct Place {
    /// Its node.
    pub node: u32,
    /// The first entity of this node in its domain.
    pub base: u32,
    /// It shares its domain with no other node.
    pub is_alone: bool,
    /// By port.
    pub links: Vec<(Transmitter, Receiver)>,
    /// By port: there is a host at the other end.
    pub leads_to_host: Vec<bool>,
    /// Its routes.
    pub routes: Routes,
    /// The period of port samples, and the sampled ports.
    pub probe: Option<(Time, Vec<u16>)>,
}

impl<'a> Switch<'a> {
    /// The switch at a place.
    pub fn new(settings: &'a Settings, switch: &SwitchConfig, place: Place) -> Self {
        let Place { node, base, is_alone, links, leads_to_host, routes, probe } = place;
        let Routes { rules, views } = routes;
        let agent_info = switch.agent.info();
        let mut aqm = Aqm::new(switch, leads_to_host, settings.seed, node);
        let mut setups = Vec::with_capacity(links.len());
        let (mut outputs, mut inputs) = (Vec::with_capacity(links.len()), Vec::with_capacity(links.len()));
        for (link, input) in links {
            let marking = switch.ecn.marking(link.rate(), settings.base_rtt);
            setups.push(PortSetup { rate: link.rate(), marking });
            // An agent that marks does so instead of the port.
            let agent_marks = agent_info.is_some_and(|info| info.marks);
            outputs.push((link, aqm.add(if agent_marks { Marking::Off } else { marking })));
            inputs.push(input);
        }
        let ports = outputs.len();
        let links = outputs.iter().map(|(link, _)| link);
        let pfc = settings.pfc.as_ref().zip(switch.pfc.as_ref()).map(|(rules, own)| rules.of(own));
        let flow_control = FlowControl::of_switch(pfc.as_ref(), settings.credits.as_ref(), switch.buffer, links);
        let lossless = settings.pfc.as_ref().map_or(0, |rules| rules.count());
        let lossless = settings.credits.as_ref().map_or(lossless, |rules| rules.count());
        let priorities = usize::from(switch.priorities);
        // Lossless queues have buffer of their own in place of the queues' reserve.
        let mut buffer = SharedBuffer::new(switch.buffer, (ports * priorities) as u64 - ports as u64 * lossless);
        buffer.set_aside(flow_control.own());
        let recorder = Recorder::new(settings.record, settings.packets.as_ref(), node);
        let may_be_lazy = is_alone
            && agent_info.is_none_or(|info| info.by_port)
            && recorder.trace.is_none()
            && settings.credits.is_none();
        let always_lazy = may_be_lazy && settings.pfc.is_none() && !settings.arrivals_first;
        let scheduler = Scheduler::new(
            &switch.scheduler,
            switch.trim.as_ref().and_then(|trim| trim.header_weight),
            switch.virtual_channels,
            settings.full_frame(),
            ports,
        );
        let is_sampled = probe.is_some();
        let egress = Egress::new(outputs, priorities, scheduler, switch.telemetry, is_sampled, may_be_lazy);
        let channels = views.first().filter(|_| switch.virtual_channels > 1);
        let channels = channels.map(|view| Box::new(VirtualChannels::new(switch.virtual_channels, view)));
        Self {
            settings,
            node,
            base,
            kind: features::Kind::of(settings, switch, always_lazy, is_sampled),
            may_be_lazy,
            inputs,
            router: Router::new(rules, switch.load_balancing, settings.seed, node),
            buffer,
            flow_control,
            aqm,
            trimming: switch
                .trim
                .as_ref()
                .map(|rules| Box::new(Trimming::new(rules, settings.full_frame(), settings.seed, node))),
            egress,
            agent: AgentHost::new(switch, settings.seed, node, &setups),
            hold: switch.agent.reroutes().then(|| Box::new(Hold::new(views, switch))),
            channels,
            counters: Counters::default(),
            recorder,
            probe: probe.map(|(every, ports)| Box::new(PortProbe::new(every, ports))),
        }
    }
}
