//! A flow: its properties that are fixed from the start.

use crate::{application::FlowSpec, engine::random::mix, routing::Pinned, settings::Settings};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// As it was opened.
    pub spec: FlowSpec,
    /// Flow number at its host.
    pub sequence: u32,
    /// Number of its packets.
    pub packets: u32,
    /// Class index.
    pub class: u8,
    last_payload: u16,
    /// Hash for the choice among equal-cost ports.
    pub ecmp_hash: u32,
}

/// Purpose of the random stream from which each flow draws one number.
const FLOW_STREAM: u64 = 0x464c_4f57;

impl Flow {
    /// A flow that a host starts.
    pub fn new(settings: &Settings, spec: FlowSpec, sequence: u32) -> Self {
        let mtu = u64::from(settings.host.mtu);
        let packets = spec.bytes.div_ceil(mtu) as u32;
        Self {
            spec,
            sequence,
            packets,
            class: spec.class as u8,
            last_payload: (spec.bytes - u64::from(packets - 1) * mtu) as u16,
            ecmp_hash: ecmp_hash(settings.seed, &spec, sequence),
        }
    }

    /// The random number of the flow, for its law.
    pub fn random(&self, seed: u64) -> u32 {
        mix(seed ^ mix(FLOW_STREAM << 32 | u64::from(self.spec.source)) ^ u64::from(self.sequence)) as u32
    }

    /// Payload bytes of a packet.
    #[inline]
    pub fn payload(&self, packet: u32, mtu: u32) -> u32 {
        if packet + 1 == self.packets { u32::from(self.last_payload) } else { mtu }
    }

    /// Payload bytes of the last packet.
    pub fn last_payload(&self) -> u32 {
        u32::from(self.last_payload)
    }

    /// Position in bytes of the start of a packet; for one past the last, the flow's size.
    #[inline]
    pub fn position(&self, packet: u32, mtu: u32) -> u64 {
        if packet >= self.packets { self.spec.bytes } else { u64::from(packet) * u64::from(mtu) }
    }
}

/// The hash by which a flow's packets choose equal-cost ports, or the paths that it is pinned to.
pub fn ecmp_hash(seed: u64, flow: &FlowSpec, sequence: u32) -> u32 {
    let ends = u64::from(flow.source) << 32 | u64::from(flow.destination);
    flow.pinned.map_or_else(|| mix(mix(seed ^ u64::from(sequence)) ^ ends) as u32, Pinned::hash)
}
