//! Thresholds of marks that are published or shipped (`switch.profile`).

use super::Entry;
use incast_lab::{
    scenario::{Marks, Published, SwitchProfile},
    text::{grouped, significant},
};
use serde_json::json;
use std::fmt::Write;

pub(super) fn entries() -> Vec<Entry> {
    SwitchProfile::ALL.into_iter().map(entry).collect()
}

fn entry(profile: SwitchProfile) -> Entry {
    let (name, Published { marks, is_scaled, source }) = (profile.name(), profile.published());
    let mut text = format!("{name}  {source}\n");
    for Marks { gbps, min, max, p } in &marks {
        let at = match gbps[..] {
            [] => "at any rate".to_owned(),
            [first, ..] if is_scaled => format!("at {first} Gbit/s, in proportion to the rate"),
            _ => format!("at {} Gbit/s", gbps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let _ = match min == max {
            true => writeln!(text, "    all above {} B, {at}", grouped(*min)),
            false => {
                writeln!(text, "    {} B to {} B, {} %, {at}", grouped(*min), grouped(*max), significant(p * 100.0))
            }
        };
    }
    let marks = marks
        .iter()
        .map(|Marks { gbps, min, max, p }| json!({"gbps": gbps, "min_bytes": min, "max_bytes": max, "p": p}));
    let marks: Vec<_> = marks.collect();
    Entry { facts: json!({"name": name, "source": source, "marks": marks, "is_scaled": is_scaled}), text }
}
