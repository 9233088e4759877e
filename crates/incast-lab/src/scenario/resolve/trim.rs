//! `switch.trim`: the default of the header queue, and what trims nothing.

use super::resolved::Resolved;
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::config::{Limit, Trim};
use incast_units::Bytes;

/// Fills in the limit of the header queue, for full packets of so many bytes. Refuses limits that no packet passes.
pub fn resolve(trim: &Trim, full_frame: u32) -> Result<Trim, Problem> {
    if let Some(size) = trim.size.filter(|size| size.get() >= u64::from(full_frame)) {
        let allowed = format!("below a full packet, {full_frame} B");
        return Err(Problem::value(size, allowed).at(&keys!["switch", "trim", "size"]));
    }
    // Control packets and trimmed headers are the shortest frames.
    let header = trim.size.map_or(64, |size| size.get() as u32);
    for (key, limit, least) in [("queue", Some(trim.queue), full_frame), ("header_queue", trim.header_queue, header)] {
        if let Some(Limit::Bytes(bytes)) = limit
            && bytes < u64::from(least)
        {
            let allowed = format!("at least one packet, {least} B");
            return Err(Problem::value(Bytes::new(bytes), allowed).at(&keys!["switch", "trim", key]));
        }
    }
    Ok(Trim { header_queue: Some(trim.header_limit(full_frame.into())), ..trim.clone() })
}

/// What makes trimming less than it seems.
pub fn warnings(scheme: &Resolved) -> Vec<String> {
    if scheme.switch.trim.is_none() {
        return Vec::new();
    }
    let name = &scheme.name;
    let trimmable = || scheme.classes.iter().filter(|class| class.trimmable);
    if trimmable().next().is_none() {
        return vec![format!("scheme {name}: switch.trim only limits queues, as no law of it has its packets trimmed")];
    }
    let highest = trimmable().filter(|class| class.priority == 0);
    let highest = highest.map(|class| {
        format!(
            "scheme {name}: data of the class {} has priority 0, which is that of headers: it is not trimmed",
            class.name
        )
    });
    highest.collect()
}
