//! Flow control of links: priority flow control (IEEE 802.1Qbb) and credits (InfiniBand).
//!
//! [`FlowControl`] is that of one node: a switch, or a host, whose NIC is its only port. It keeps the state and returns
//! what is to be done as an [`Effect`]; the node does it.

pub(crate) mod config;
mod credit_control;
pub mod credits;
mod frame;
pub mod limits;
pub mod pause;
pub mod permission;
pub mod pfc;

pub use self::frame::{Due, Effect, Frame};
use self::{credit_control::CreditControl, pfc::PauseControl};
use crate::{
    fabric::{
        buffer::{Charge, Level},
        config::Buffer,
        link::Transmitter,
        queue::Ingress,
    },
    packet::Packet,
};
use incast_units::{Rate, Time};

/// Flow control of one node.
#[derive(Debug)]
pub enum FlowControl {
    /// None: packets without room are dropped.
    None,
    /// Priority flow control.
    Pfc(Box<PauseControl>),
    /// Credits.
    Credits(Box<CreditControl>),
}

impl FlowControl {
    /// That of a switch with this buffer: by PFC, or by credits, or none.
    pub fn of_switch<'l>(
        pfc: Option<&pfc::Rules>,
        credits: Option<&credits::Rules>,
        buffer: Buffer,
        links: impl Iterator<Item = &'l Transmitter>,
    ) -> Self {
        if let Some(rules) = pfc {
            let links: Vec<(Rate, Time)> = links.map(|link| (link.rate(), link.delay())).collect();
            return Self::Pfc(Box::new(PauseControl::new(rules, &links, buffer)));
        }
        Self::by_credits(credits, links)
    }

    /// That of a NIC: what arrives leaves its buffer at once, so that it never pauses the switch.
    pub fn of_nic(pfc: Option<&pfc::Rules>, credits: Option<&credits::Rules>, link: &Transmitter) -> Self {
        if let Some(rules) = pfc {
            return Self::Pfc(Box::new(PauseControl::of_nic(rules)));
        }
        Self::by_credits(credits, std::iter::once(link))
    }

    fn by_credits<'l>(rules: Option<&credits::Rules>, links: impl Iterator<Item = &'l Transmitter>) -> Self {
        let Some(rules) = rules else { return Self::None };
        let links = links.map(|link| (link.rate(), link.delay(), link.is_lossy()));
        Self::Credits(Box::new(CreditControl::new(rules, links)))
    }

    // ---- What a port sends ------------------------------------------------------------------------------------

    /// Links have credits.
    #[inline]
    pub fn uses_credits(&self) -> bool {
        matches!(self, Self::Credits(_))
    }

    /// The other end of a port's link has room for a packet of `wire` bytes.
    #[inline]
    pub fn may_send(&self, port: usize, lane: u8, wire: u16) -> bool {
        match self {
            Self::Credits(credits) => credits.may_send(port, lane, wire),
            Self::None | Self::Pfc(_) => true,
        }
    }

    /// A packet leaves by a port.
    #[inline]
    pub fn on_departure(&mut self, port: usize, lane: u8, wire: u16, now: Time) -> Effect {
        match self {
            Self::Credits(credits) => Effect::reminder(credits.spend(port, lane, wire), now),
            Self::None | Self::Pfc(_) => Effect::default(),
        }
    }

    /// The next packet of a lane, of `wire` bytes, is to leave. Returns whether it has to wait for credits; the lane then
    /// counts as blocked.
    #[inline]
    pub fn block(&mut self, port: usize, lane: u8, wire: u16, now: Time) -> bool {
        match self {
            Self::Credits(credits) => credits.block(port, lane, wire, now),
            Self::None | Self::Pfc(_) => false,
        }
    }

    // ---- What a port receives ---------------------------------------------------------------------------------

    /// A packet arrived at a port, dropped or not. False if there are no credits.
    #[inline]
    pub fn receive(&mut self, port: usize, packet: &Packet) -> bool {
        match self {
            Self::Credits(credits) => {
                credits.receive(port, packet);
                true
            }
            Self::None | Self::Pfc(_) => false,
        }
    }

    /// A packet arrived at a port and leaves its buffer at once.
    pub fn pass(&mut self, port: usize, packet: &Packet) {
        if let Self::Credits(credits) = self {
            credits.receive(port, packet);
            credits.must_update(Ingress { port: port as u16, priority: packet.priority });
        }
    }

    /// A frame of flow control arrived at a port.
    pub fn on_frame(&mut self, port: usize, packet: &Packet, now: Time) -> Effect {
        match self {
            Self::None => Effect::default(),
            Self::Pfc(pfc) => pfc.receive(port, packet, now),
            Self::Credits(credits) => credits.on_update(port, packet),
        }
    }

    /// An event of flow control has come, which an [`Effect`] asked for.
    pub fn on_event(&mut self, port: usize, payload: u32, link_is_up: bool, now: Time) -> Effect {
        match self {
            Self::None => Effect::default(),
            Self::Pfc(pfc) => pfc.on_event(port, payload, now),
            Self::Credits(credits) => credits.remind(port, link_is_up, now),
        }
    }

    /// The link of a port went down or came up: both ends forget the state of flow control. Packets that came by it and
    /// are still here keep their buffer.
    pub fn reset(&mut self, port: usize, up: bool, now: Time) -> Effect {
        match self {
            Self::None => Effect::default(),
            Self::Pfc(pfc) => pfc.reset(port, up, now),
            Self::Credits(credits) => credits.reset(port, up, now),
        }
    }

    // ---- What a node holds ------------------------------------------------------------------------------------

    /// Packets of this ingress are counted here: they are lossless.
    #[inline]
    pub fn counts(&self, ingress: Ingress) -> bool {
        match self {
            Self::None => false,
            Self::Pfc(pfc) => !ingress.is_local() && pfc.is_lossless(ingress.priority),
            Self::Credits(_) => !ingress.is_local(),
        }
    }

    /// Buffer that belongs to single ingresses.
    pub fn own(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Pfc(pfc) => pfc.own(),
            Self::Credits(credits) => credits.own(),
        }
    }

    /// Whether a packet that is counted here would pause its ingress; see [`PauseControl::reaches`].
    #[inline]
    pub fn reaches(&self, ingress: Ingress, bytes: u64, level: Level) -> bool {
        match self {
            Self::Pfc(pfc) => pfc.reaches(ingress, bytes, level),
            Self::None | Self::Credits(_) => false,
        }
    }

    /// A packet that is counted here enters the buffer. Returns its charge, or `None` if it has no room.
    #[inline]
    pub fn enter(&mut self, ingress: Ingress, bytes: u64, level: Level) -> Option<Charge> {
        match self {
            Self::None => None,
            Self::Pfc(pfc) => pfc.enter(ingress, bytes, level),
            Self::Credits(credits) => credits.enter(ingress, bytes),
        }
    }

    /// A packet that is counted here leaves the buffer.
    #[inline]
    pub fn leave(&mut self, ingress: Ingress, bytes: u64) -> Charge {
        match self {
            Self::None => Charge { bytes, from_pool: 0 },
            Self::Pfc(pfc) => pfc.leave(ingress, bytes),
            Self::Credits(credits) => credits.leave(ingress, bytes),
        }
    }

    /// A packet entered: whether its neighbour must be sent a pause.
    pub fn must_pause(&mut self, ingress: Ingress, level: Level) -> bool {
        match self {
            Self::Pfc(pfc) => pfc.request_pause(ingress, level),
            Self::None | Self::Credits(_) => false,
        }
    }

    /// A packet left: whether its neighbour must be sent a resume or credits.
    pub fn must_resume(&mut self, ingress: Ingress, level: Level, link_is_up: bool) -> bool {
        match self {
            Self::None => false,
            Self::Pfc(pfc) => pfc.request_resume(ingress, level),
            Self::Credits(credits) => link_is_up && credits.must_update(ingress),
        }
    }

    // ---- What a port advertises -------------------------------------------------------------------------------

    /// Whether a port has a frame to send.
    pub fn due(&self, port: usize, now: Time) -> Due {
        match self {
            Self::None => Due::No,
            Self::Pfc(pfc) => pfc.due(port, now),
            Self::Credits(credits) => credits.due(port),
        }
    }

    /// The frame that a port of `node` sends now.
    pub fn take_frame(&mut self, port: usize, node: u32, now: Time) -> Option<Frame> {
        match self {
            Self::None => None,
            Self::Pfc(pfc) => pfc.take_frame(port, node, now),
            Self::Credits(credits) => credits.take_frame(port, node),
        }
    }

    /// Whether it is priority flow control and no neighbour is paused.
    #[inline]
    pub fn pauses_nobody(&self) -> bool {
        matches!(self, Self::Pfc(pfc) if pfc.is_quiet())
    }

    // ---- For inspection ---------------------------------------------------------------------------------------

    /// Priorities of ports that may not send: port, priority, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        let (pfc, credits) = match self {
            Self::None => (None, None),
            Self::Pfc(pfc) => (Some(pfc), None),
            Self::Credits(credits) => (None, Some(credits)),
        };
        let paused = pfc.into_iter().flat_map(|pfc| pfc.paused());
        paused.chain(credits.into_iter().flat_map(|credits| credits.blocked()))
    }

    /// `None` if a neighbour that is kept from sending is so because packets of its ingress are queued here. Else, a
    /// frame that ends this is due, on its way or lost; the number changes whenever there is a new reason. `other` is the
    /// neighbour's end of the link, where there are credits.
    pub fn without_reason(&self, ingress: Ingress, other: Option<&credits::End>) -> Option<u32> {
        match (self, other) {
            (Self::Pfc(pfc), _) => pfc.without_reason(ingress),
            (Self::Credits(credits), Some(other)) => credits.without_reason(ingress, other),
            _ => Some(0),
        }
    }

    /// The end of the link at a port, where there are credits.
    pub fn credits(&self, port: u16) -> Option<&credits::End> {
        if let Self::Credits(credits) = self { Some(credits.end(port)) } else { None }
    }
}
