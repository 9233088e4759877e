//! Flow control of links: priority flow control (IEEE 802.1Qbb) and credits (InfiniBand).
//!
//! [`FlowControl`] is that of one switch. It keeps the state and returns what is to be done; the switch does it.

pub(crate) mod config;
mod credit_control;
pub mod credits;
mod frame;
pub mod limits;
pub mod pause;
pub mod permission;
pub mod pfc;

pub use self::{
    credit_control::CreditControl,
    frame::{Applied, Due, Frame},
    pfc::PauseControl,
};
use crate::fabric::{
    buffer::{Charge, Level},
    queue::Ingress,
};
use incast_units::Time;

/// Flow control of one switch.
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

    /// Whether a port has a frame to send.
    pub fn due(&self, port: usize, now: Time) -> Due {
        match self {
            Self::None => Due::No,
            Self::Pfc(pfc) => pfc.due(port, now),
            Self::Credits(credits) => credits.due(port),
        }
    }

    /// The frame that a port of switch `node` sends now.
    pub fn take_frame(&mut self, port: usize, node: u32, now: Time) -> Option<Frame> {
        match self {
            Self::None => None,
            Self::Pfc(pfc) => pfc.take_frame(port, node, now),
            Self::Credits(credits) => credits.take_frame(port, node),
        }
    }

    /// The link of a port went down or came up.
    pub fn reset(&mut self, port: usize, up: bool) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.reset(port),
            Self::Credits(credits) => credits.reset(port, up),
        }
    }

    /// Whether it is priority flow control and no neighbour is paused.
    #[inline]
    pub fn pauses_nobody(&self) -> bool {
        matches!(self, Self::Pfc(pfc) if pfc.is_quiet())
    }

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
