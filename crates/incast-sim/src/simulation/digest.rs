//! A digest of complete results, by which runs are compared.

use super::outcome::Outcome;
use sha2::{Digest, Sha256};

/// SHA-256 over every result in its defined order. The number of events is left out: it counts the engine's work,
/// not what happened.
pub fn digest(outcome: &Outcome) -> String {
    let mut hash = Sha256::new();
    let mut put = |numbers: &[u64]| numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
    let time = |time: Option<incast_units::Time>| time.map_or(u64::MAX, incast_units::Time::ps);
    for flow in &outcome.flows {
        put(&[
            u64::from(flow.source),
            u64::from(flow.sequence),
            u64::from(flow.destination),
            u64::from(flow.class),
            flow.request,
            flow.bytes,
            flow.start.ps(),
            time(flow.delivered),
            time(flow.acked),
            time(flow.ideal),
            flow.delivered_bytes,
            flow.retransmitted_bytes,
            u64::from(flow.timeouts),
            u64::from(flow.marked_packets),
            u64::from(flow.reordered_packets),
            u64::from(flow.deflections),
            flow.held.ps(),
        ]);
    }
    let totals = &outcome.totals;
    put(&[
        totals.packet_hops,
        totals.injected_packets,
        totals.injected_bytes,
        totals.received_bytes,
        totals.created_bytes,
        totals.left_bytes,
        totals.dropped_bytes,
        totals.drops,
        totals.trimmed_bytes,
        totals.trims,
        totals.lost,
        totals.lost_bytes,
        totals.marks_edge,
        totals.marks_fabric,
        totals.pauses,
        totals.paused.ps(),
        totals.deflections,
        totals.max_queue_bytes,
        outcome.ended_at.ps(),
        u64::from(outcome.complete),
    ]);
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
