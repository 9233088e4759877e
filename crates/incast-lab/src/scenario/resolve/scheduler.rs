//! What `switch.scheduler` comes to.

use incast_sim::Fabric;
use incast_units::Bytes;

/// One line; nothing for strict priorities.
pub fn describe(fabric: Fabric<'_>) -> Vec<String> {
    let Some(dwrr) = fabric.switch.scheduler.dwrr() else { return Vec::new() };
    let frames = fabric.classes.iter().map(|class| u64::from(class.format.data(fabric.host.mtu)));
    let quantum = dwrr.quantum.map(Bytes::get).or(frames.max()).unwrap_or(0);
    let queue = |(index, weight): (usize, &u16)| {
        format!("priority {} {} B", usize::from(dwrr.strict) + index, quantum * u64::from(*weight))
    };
    let quanta: Vec<String> = dwrr.weights.iter().enumerate().map(queue).collect();
    let strict = match dwrr.strict {
        0 => String::new(),
        strict => format!("priorities below {strict} strict; "),
    };
    vec![format!("scheduler: {strict}deficit round robin with quanta of {}", quanta.join(", "))]
}
