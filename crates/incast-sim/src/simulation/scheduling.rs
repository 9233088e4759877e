//! Whether the queues of switches can be limited and scheduled as configured.

use super::config::ConfigError;
use crate::{
    fabric::{config::Buffer, format::SMALLEST_FRAME, queue::MOST_COUNTED, trim::config::Limit},
    switch::{
        config::{MarkAt, NotEct, SwitchConfig},
        scheduler::config::Dwrr,
    },
};

/// The least quantum: with less, a decision would take many rounds.
const LEAST_QUANTUM: u64 = 64;

/// Refuses weights that do not fit the priorities, and what deficit round robin does not go together with.
///
/// # Errors
/// What is wrong.
pub fn check_scheduler(switch: &SwitchConfig) -> Result<(), ConfigError> {
    let Some(Dwrr { strict, weights, quantum }) = switch.scheduler.dwrr() else { return Ok(()) };
    if strict >= switch.priorities {
        let allowed = format!("below the {} priorities of the switches", switch.priorities);
        return Err(ConfigError::value("switch.scheduler.strict", strict, allowed));
    }
    let expected = usize::from(switch.priorities - strict);
    if weights.len() != expected {
        let allowed = format!("{expected}, one for each priority that is not strict");
        return Err(ConfigError::value("switch.scheduler.weights", format!("{} weights", weights.len()), allowed));
    }
    if weights.contains(&0) {
        return Err(ConfigError::value("switch.scheduler.weights", 0, "1 to 65535"));
    }
    if let Some(quantum) = quantum.filter(|quantum| quantum.get() < LEAST_QUANTUM) {
        let allowed = format!("at least {LEAST_QUANTUM}B, the shortest frame");
        return Err(ConfigError::value("switch.scheduler.quantum", quantum, allowed));
    }
    if switch.virtual_channels > 1 {
        let allowed = "\"strict\" with virtual channels, which take turns themselves";
        return Err(ConfigError::value("switch.scheduler", "deficit round robin", allowed));
    }
    if switch.trim.as_ref().is_some_and(|trim| trim.header_weight.is_some()) {
        let allowed =
            "\"strict\", or switch.trim.header_weight = \"strict\": a weight of headers is a scheduler of its own";
        return Err(ConfigError::value("switch.scheduler", "deficit round robin", allowed));
    }
    Ok(())
}

/// Refuses to drop what cannot be marked where marks come as packets leave.
///
/// # Errors
/// What is wrong.
pub fn check_not_ect(switch: &SwitchConfig) -> Result<(), ConfigError> {
    if switch.not_ect == NotEct::Drop && switch.mark_at == MarkAt::Dequeue {
        return Err(ConfigError::value(
            "switch.not_ect",
            "\"drop\"",
            "\"pass\" with switch.ecn_at = \"dequeue\": what leaves is not dropped",
        ));
    }
    Ok(())
}

/// Refuses limits of queues that nothing passes, and what trimming does not go together with.
///
/// # Errors
/// What is wrong.
pub fn check_trim(switch: &SwitchConfig) -> Result<(), ConfigError> {
    if switch.buffer == (Buffer::PerPortPackets { packets: 0 }) {
        return Err(ConfigError::value("switch.buffer", "0 packets for each port", "at least 1"));
    }
    if let Buffer::PerPortPackets { packets: packets @ MOST_COUNTED.. } = switch.buffer {
        return Err(ConfigError::value("switch.buffer", packets, "below 2^24 packets for each port"));
    }
    let Some(trim) = &switch.trim else { return Ok(()) };
    if switch.priorities < 2 {
        let allowed = "at least 2 where switches trim: 0 is that of headers, data has the others";
        return Err(ConfigError::value("switch.priorities", switch.priorities, allowed));
    }
    let headers = trim.header_queue.map(|limit| ("switch.trim.header_queue", limit));
    for (what, limit) in [("switch.trim.queue", trim.queue)].into_iter().chain(headers) {
        if matches!(limit, Limit::Packets(0) | Limit::Bytes(0)) {
            return Err(ConfigError::value(what, 0, "1 packet or more, or a size"));
        }
        if let Limit::Packets(packets @ MOST_COUNTED..) = limit {
            return Err(ConfigError::value(what, packets, "below 2^24 packets"));
        }
    }
    if let Some(size) =
        trim.size.filter(|size| size.get() < u64::from(SMALLEST_FRAME) || size.get() > u64::from(u16::MAX))
    {
        return Err(ConfigError::value("switch.trim.size", size, "64 B, the least frame, to 65535 B"));
    }
    if trim.header_weight == Some(0) {
        return Err(ConfigError::value("switch.trim.header_weight", 0, "1 packet or more, or \"strict\""));
    }
    if !switch.agent.is_none() {
        return Err(ConfigError::value(
            "switch.trim",
            "on, with an in-switch algorithm",
            "switches that trim have no switch.agent",
        ));
    }
    if switch.pfc.is_some() {
        let allowed = "switches that trim have no switch.pfc: what is paused is not trimmed";
        return Err(ConfigError::value("switch.trim", "on, with priority flow control", allowed));
    }
    Ok(())
}
