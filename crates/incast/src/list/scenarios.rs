//! The bundled scenarios. They are part of the binary, so that it works from any directory.

use super::Entry;
use serde_json::json;

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

pub(super) fn entries() -> Vec<Entry> {
    BUNDLED
        .iter()
        .map(|(path, text)| {
            let value = |key| top_level(text, key).unwrap_or_default();
            let (name, describe, source) = (value("name"), value("describe"), value("source"));
            Entry {
                facts: json!({"path": path, "name": name, "describe": describe, "source": source}),
                text: format!("{path}  {name}\n    {describe}\n    source: {source}\n"),
            }
        })
        .collect()
}

/// A string at the head of a scenario, before its first table.
fn top_level(text: &str, key: &str) -> Option<String> {
    let head = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    let table: toml::Table = head.map(|line| format!("{line}\n")).collect::<String>().parse().ok()?;
    table.get(key)?.as_str().map(str::to_owned)
}
