//! What will be needed soon is asked for now.

use super::Switch;
use crate::{config::LoadBalancing, engine::prefetch::prefetch, fabric::packet::Packet};

impl Switch<'_> {
    /// This switch will be needed soon: asks for its busy ports, and when those are `near`, for what waits there.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        if !near {
            self.pool.prefetch_free();
        }
        for port in self.busy.iter() {
            let out = &self.ports[port];
            if near {
                self.pool
                    .prefetch_head(&self.queues[self.index(port, out.waiting.trailing_zeros() as u8 & 7)]);
            } else {
                prefetch(std::ptr::from_ref(out), 1);
                prefetch(self.queues.as_ptr().wrapping_add(port), 1);
            }
        }
        if near {
            self.pool.prefetch_places();
        }
    }

    /// A packet will arrive at `port` soon: asks for that and for its egress port.
    #[inline]
    pub fn prefetch_packet(&self, port: usize, packet: &Packet) {
        prefetch(self.inputs.as_ptr().wrapping_add(port), 1);
        if let Some(port) = self.expected_port(packet) {
            prefetch(self.ports.as_ptr().wrapping_add(usize::from(port)), 1);
            prefetch(self.queues.as_ptr().wrapping_add(self.index(usize::from(port), packet.priority)), 1);
        }
    }

    /// The neighbour to which a packet will be sent.
    #[inline]
    pub fn next_domain(&self, packet: &Packet) -> Option<u32> {
        self.expected_port(packet).map(|port| self.ports[usize::from(port)].link.peer().domain)
    }

    /// Where a packet goes if nobody sprays or deflects it.
    #[inline]
    fn expected_port(&self, packet: &Packet) -> Option<u16> {
        match self.settings.switch.load_balancing {
            LoadBalancing::Ecmp => self.port_by_hash(packet),
            LoadBalancing::Pinned | LoadBalancing::Permuted => self.rule.peek_pinned(packet),
            LoadBalancing::Spray => None,
        }
    }
}
