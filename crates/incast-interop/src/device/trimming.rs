//! Packet trimming as SONiC has it: a packet that its queue does not admit is cut to a size and sent from another queue.
//!
//! Source: sonic-net/SONiC, `doc/packet_trimming`; fields by `sonic-trimming.yang` and `sonic-buffer-profile.yang`.

use super::{
    Wanted,
    database::MOST_BYTES,
    ports::Class,
    switch::{Ports, Switch},
};
use incast_sim::{
    config::{Buffer, Limit, Victim},
    fabric::trim::HEADERS,
};

/// Bytes that NVIDIA's switches leave of a packet, and the steps (Cumulus Linux 5.19, "Packet Trimming").
const SPECTRUM: (std::ops::RangeInclusive<u64>, u64) = (256..=1024, 4);

/// What tables say of trimming, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// What is left of a packet.
    pub size: u64,
    /// What a queue of data holds.
    pub queue: u64,
    /// What the queue of headers holds.
    pub headers: u64,
    /// The buffer that holds all queues of the device.
    pub total: u64,
}

/// Bytes of a full packet, the largest of all classes.
pub fn full_packet(wanted: &Wanted) -> u64 {
    let frames = wanted.config.classes.iter().map(|class| class.format.data(wanted.config.host.mtu));
    frames.max().unwrap_or(0).into()
}

/// A limit of a queue in bytes.
pub fn bytes(limit: Limit, full_packet: u64) -> u64 {
    match limit {
        Limit::Packets(packets) => u64::from(packets) * full_packet,
        Limit::Bytes(bytes) => bytes,
    }
}

/// What tables say, where switches trim; what they cannot say is added to `refused`. `device` has the ports by rate.
pub fn trimmed<P>(
    wanted: &Wanted,
    switch: &Switch,
    classes: &[Class],
    device: &[(&Ports, Vec<P>)],
    refused: &mut Vec<String>,
) -> Option<Trimmed> {
    let trim = switch.own.trim.as_ref()?;
    let allowed = [
        (trim.victim == Victim::Arriving, "victim", "\"arriving\": devices cut the packet that arrives"),
        (trim.header_weight.is_none(), "header_weight", "\"strict\": the queue of headers goes first"),
        (!trim.return_to_sender, "return_to_sender", "false: a header without room is dropped"),
        (trim.size.is_some(), "size", "a size such as \"256B\": devices do not know where headers end"),
    ];
    refused.extend(
        allowed
            .into_iter()
            .filter(|(is_so, ..)| !is_so)
            .map(|(_, key, allowed)| format!("switch.trim.{key}: allowed is {allowed}")),
    );
    if !classes.iter().any(|class| class.priority == HEADERS && class.dscp.is_some()) {
        refused.push("--queues: priority 0, that of trimmed packets, needs a queue and a DSCP, such as 0=6:48".into());
    }
    for class in classes.iter().filter(|class| class.priority != HEADERS) {
        let of = || wanted.config.classes.iter().filter(|it| it.priority == class.priority);
        if of().any(|it| it.trimmable) && of().any(|it| !it.trimmable) {
            refused.push(format!(
                "priority {}: some of its packets may be trimmed and others not; a queue of the device trims all",
                class.priority
            ));
        }
    }
    let full = full_packet(wanted);
    let (queue, headers) = (bytes(trim.queue, full), bytes(trim.header_limit(full), full));
    // The packet in service is not in a limit.
    let ports = device.iter().map(|(_, ports)| ports.len() as u64).sum::<u64>();
    let limits = classes.iter().map(|class| if class.priority == HEADERS { headers } else { queue });
    let of_port = limits.map(|limit| limit.saturating_add(full)).fold(0u64, u64::saturating_add);
    for (key, limit) in [("queue", queue), ("header_queue", headers)] {
        if limit > MOST_BYTES {
            refused.push(format!("switch.trim.{key}: {limit} B, allowed is at most {MOST_BYTES} B"));
        }
    }
    let all = ports.saturating_mul(of_port);
    let total = match switch.own.buffer {
        Buffer::Unlimited => all,
        // A queue of a device has one threshold: `alpha` must not be the one that decides.
        Buffer::Shared { total, alpha: (numerator, denominator), .. } => {
            let least = u128::from(total.saturating_sub(all)) * u128::from(numerator) / u128::from(denominator);
            if least < u128::from(queue.max(headers)) {
                refused.push(format!(
                    "switch.buffer: allowed is none, or so much that alpha never decides beside switch.trim.queue: the \
                     queues of {ports} ports hold {all} B, and alpha times what is left of {total} B is {least} B, less \
                     than a queue's {} B",
                    queue.max(headers)
                ));
            }
            total
        }
        Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } => {
            refused
                .push("switch.buffer: allowed is none, or a `total`: devices share a buffer among their ports".into());
            0
        }
    };
    Some(Trimmed { size: trim.size.map_or(0, |size| size.get()), queue, headers, total })
}

/// Whether packets of a class's queue may be trimmed.
pub fn is_trimmable(wanted: &Wanted, class: &Class) -> bool {
    class.priority != HEADERS
        && wanted
            .config
            .classes
            .iter()
            .any(|it| it.trimmable && (it.priority == class.priority || it.law.capabilities().priorities))
}

/// What a device's chip may refuse.
pub fn note(size: u64) -> Option<String> {
    let (allowed, step) = SPECTRUM;
    (!allowed.contains(&size) || !size.is_multiple_of(step)).then(|| {
        format!(
            "SWITCH_TRIMMING: {size} B; NVIDIA's switches take {} to {} B in steps of {step}, SAI's default is 128 B",
            allowed.start(),
            allowed.end()
        )
    })
}
