//! The router of one switch: its rule of the current routing epoch, and how it balances load.

use crate::{
    engine::random::{Stream, mix},
    packet::Packet,
    routing::config::LoadBalancing,
    topology::{RoutingTable, Rule, salted_hash},
};

/// Purposes of the random streams.
const SPRAY_STREAM: u32 = 0x5350_5259;
const SALT_STREAM: u32 = 0x5341_4c54;

/// The salt with which a switch mixes flow hashes.
pub fn salt(seed: u64, node: u32) -> u32 {
    mix(seed ^ mix(u64::from(SALT_STREAM) << 32 | u64::from(node))) as u32
}

/// See the module.
#[derive(Debug)]
pub struct Router {
    rule: Rule,
    load_balancing: LoadBalancing,
    salt: u32,
    spray: Stream,
    /// Rules of later routing epochs, last first.
    later: Vec<Rule>,
}

impl Router {
    /// Of switch `node`, with the rules of all routing epochs in order.
    pub fn new(mut rules: Vec<Rule>, load_balancing: LoadBalancing, seed: u64, node: u32) -> Self {
        rules.reverse();
        Self {
            rule: rules.pop().unwrap_or_else(|| Rule::Table(RoutingTable::default())),
            later: rules,
            load_balancing,
            salt: salt(seed, node),
            spray: Stream::new(seed, SPRAY_STREAM, u64::from(node)),
        }
    }

    /// The next hop of a packet, and the hash with which it goes on; `None` if no port leads to its destination.
    #[inline(always)]
    pub fn route(&mut self, packet: &Packet) -> Option<(u16, u32)> {
        // No `match`: it compiles to an indirect jump, which takes more instructions.
        if matches!(self.load_balancing, LoadBalancing::SourceRouted | LoadBalancing::SprayPermutation) {
            return self.rule.pick_pinned(packet);
        }
        if self.load_balancing == LoadBalancing::Ecmp {
            return Some((self.by_hash(packet)?, packet.ecmp_hash));
        }
        Some((self.rule.pick(packet.destination, self.spray.next_u32())?, packet.ecmp_hash))
    }

    /// The next hop of a packet with ECMP.
    #[inline(always)]
    pub fn by_hash(&self, packet: &Packet) -> Option<u16> {
        self.of_flow(packet.destination, packet.ecmp_hash)
    }

    /// The next hop with ECMP of a flow with this hash.
    #[inline(always)]
    pub fn of_flow(&self, destination: u32, hash: u32) -> Option<u16> {
        self.rule.pick(destination, salted_hash(hash, self.salt))
    }

    /// The next hop of a packet if it is known before the packet arrives.
    #[inline]
    pub fn expected(&self, packet: &Packet) -> Option<u16> {
        match self.load_balancing {
            LoadBalancing::Ecmp => self.by_hash(packet),
            LoadBalancing::SourceRouted | LoadBalancing::SprayPermutation => self.rule.peek_pinned(packet),
            LoadBalancing::Spray => None,
        }
    }

    /// The equal-cost ports to a host, ascending.
    pub fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16> {
        self.rule.alternatives(destination)
    }

    /// The next routing epoch begins. False if there is none.
    pub fn next_epoch(&mut self) -> bool {
        let next = self.later.pop();
        let has_next = next.is_some();
        if let Some(rule) = next {
            self.rule = rule;
        }
        has_next
    }
}
