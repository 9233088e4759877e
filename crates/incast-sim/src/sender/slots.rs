//! The flows that a host sends, by slot. Slots are reused.

use super::Sender;
use crate::{
    engine::{queue::Key, vectors::push_first},
    packet::Packet,
};

/// Flows that a host can have open at once: events name their slots.
const MOST_FLOWS: usize = Key::PAYLOADS as usize;

/// See the module.
#[derive(Debug, Default)]
pub struct Senders {
    slots: Vec<Option<Sender>>,
    free: Vec<u32>,
}

impl Senders {
    /// The flow in a slot.
    #[inline(always)]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Sender> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// The flow in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Sender> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The flow to which a packet of its receiver is addressed; `None` if it is for an earlier flow of the slot.
    #[inline(always)]
    pub fn addressed(&mut self, packet: &Packet) -> Option<&mut Sender> {
        self.get_mut(packet.slot).filter(|sender| sender.flow.sequence == packet.sequence)
    }

    /// Address of a slot, to prefetch it.
    #[inline]
    pub fn address(&self, slot: u32) -> Option<*const Option<Sender>> {
        self.slots.get(slot as usize).map(std::ptr::from_ref)
    }

    /// Puts a flow into a free slot.
    pub fn insert(&mut self, mut sender: Sender) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                assert!(self.slots.len() < MOST_FLOWS, "more than {MOST_FLOWS} flows open at one host");
                push_first(&mut self.slots, None);
                self.slots.len() as u32 - 1
            }
        };
        sender.slot = slot;
        self.slots[slot as usize] = Some(sender);
        slot
    }

    /// Takes a flow out of its slot.
    pub fn remove(&mut self, slot: u32) -> Option<Sender> {
        let sender = self.slots[slot as usize].take()?;
        self.free.push(slot);
        Some(sender)
    }

    /// All flows.
    pub fn iter(&self) -> impl Iterator<Item = &Sender> {
        self.slots.iter().flatten()
    }

    /// All flows.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sender> {
        self.slots.iter_mut().flatten()
    }
}
