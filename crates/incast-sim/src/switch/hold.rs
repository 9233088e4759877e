//! Packets that an agent holds, and its messages to other switches: answers to markers on their way back, and congestion
//! isolation messages.
//!
//! A held packet takes buffer like a queued one, is counted by flow control like one, and counts as waiting at the port
//! that it will probably take. Places are beside the queues.

use super::config::SwitchConfig;
use crate::{
    fabric::queue::{Ingress, Pool, Queue},
    flow_control::pause::NO_QUEUE,
    packet::{Packet, Telemetry},
    routing::RouteView,
};
use incast_cc::agent::Codepoint;
use std::collections::VecDeque;

/// Bytes of a message: the shortest frame.
const MESSAGE: u16 = 64;

/// Where packets are held.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    queue: Queue,
    /// The port at which they count as waiting.
    port: u16,
    /// The port of the marker that they wait for.
    after: u16,
}

/// What is held in one switch.
#[derive(Debug)]
pub(super) struct Hold {
    /// What the switch knows of the fabric.
    view: RouteView,
    /// The same of later routing epochs, last first.
    later: Vec<RouteView>,
    needs_channels: bool,
    pool: Pool,
    places: Vec<Place>,
    /// Frame bytes held, by port.
    bytes: Vec<u64>,
    /// Messages that wait for the link, by port.
    messages: Vec<VecDeque<Packet>>,
}

/// A packet that is released.
#[derive(Debug)]
pub(super) struct Released {
    pub packet: Packet,
    pub ingress: Ingress,
    pub telemetry: Option<Telemetry>,
}

/// The packets of a place, which is empty from now on.
#[derive(Debug)]
pub(super) struct Group {
    queue: Queue,
    /// The port at which they count as waiting.
    pub port: usize,
}

impl Hold {
    /// `views` of each routing epoch, at least one.
    pub fn new(mut views: Vec<RouteView>, switch: &SwitchConfig) -> Self {
        views.reverse();
        let first = views.pop().expect("the builder gives one for each routing epoch");
        let ports = first.directions().len();
        Self {
            view: first,
            later: views,
            needs_channels: switch.pfc.is_some() || switch.virtual_channels > 1,
            pool: Pool::default(),
            places: Vec::new(),
            bytes: vec![0; ports],
            messages: vec![VecDeque::new(); ports],
        }
    }

    /// What the switch knows of the fabric.
    pub fn view(&self) -> &RouteView {
        &self.view
    }

    /// Deflection must leave channels for the rest of the route.
    pub fn needs_channels(&self) -> bool {
        self.needs_channels
    }

    /// Frame bytes held for a port.
    pub fn bytes(&self, port: usize) -> u64 {
        self.bytes[port]
    }

    fn place(&mut self, place: u16) -> &mut Place {
        let place = usize::from(place);
        if self.places.len() <= place {
            self.places.resize(place + 1, Place::default());
        }
        &mut self.places[place]
    }

    /// Bytes held in a place.
    pub fn bytes_in(&mut self, place: u16) -> u64 {
        self.place(place).queue.bytes()
    }

    /// Holds a packet in a place, for a port.
    pub fn push(&mut self, place: u16, port: u16, packet: &Packet, telemetry: Option<&Telemetry>, ingress: Ingress) {
        self.bytes[usize::from(port)] += u64::from(packet.wire);
        self.place(place).port = port;
        let queue = &mut self.places[usize::from(place)].queue;
        self.pool.push(queue, packet, Codepoint::None, telemetry);
        self.pool.set_ingress(queue, ingress);
    }

    /// What is held in a place waits for a marker that leaves by a port.
    pub fn wait_for(&mut self, place: u16, port: u16) {
        self.place(place).after = port;
    }

    /// Empties a place.
    pub fn release(&mut self, place: u16) -> Group {
        let Place { queue, port, .. } = std::mem::take(self.place(place));
        Group { queue, port: usize::from(port) }
    }

    /// The next packet of a group.
    pub fn pop(&mut self, group: &mut Group) -> Option<Released> {
        let removed = self.pool.remove(&mut group.queue)?;
        let packet = *self.pool.removed(removed);
        self.bytes[group.port] -= u64::from(packet.wire);
        Some(Released { packet, ingress: self.pool.ingress(removed), telemetry: self.pool.telemetry(&packet) })
    }

    /// A message to the switch at a port, or beyond it, waits for the link.
    pub fn push_message(&mut self, port: usize, mut packet: Packet) {
        (packet.wire, packet.priority) = (MESSAGE, NO_QUEUE);
        self.messages[port].push_back(packet);
    }

    /// The message that has waited longest at a port, and whether more wait there.
    pub fn pop_message(&mut self, port: usize) -> (Option<Packet>, bool) {
        let next = self.messages[port].pop_front();
        (next, !self.messages[port].is_empty())
    }

    /// The link of a port is down.
    pub fn forget_messages(&mut self, port: usize) {
        self.messages[port].clear();
    }

    /// The next routing epoch begins.
    pub fn next_epoch(&mut self) {
        if let Some(view) = self.later.pop() {
            self.view = view;
        }
    }

    /// The ingress of each held packet, and the port of the marker that it waits for.
    pub fn held(&self) -> impl Iterator<Item = (Ingress, u16)> {
        self.places.iter().flat_map(|place| self.pool.packets(&place.queue).map(|(_, ingress)| (ingress, place.after)))
    }
}
