//! The bundled scenarios.

use super::Entry;
use crate::bundled::{self, Head};
use serde_json::json;

pub(super) fn entries() -> Vec<Entry> {
    let scenarios = bundled::files().iter().filter(|(path, _)| path.ends_with(".toml"));
    scenarios
        .map(|(path, content)| {
            let Head { name, describe, source, short } = Head::of(&String::from_utf8_lossy(content));
            let path = format!("scenarios/{path}");
            let form = if short { " (has a short form)" } else { "" };
            Entry {
                text: format!("{path}  {name}{form}\n    {describe}\n    source: {source}\n"),
                facts: json!({"path": path, "name": name, "describe": describe, "source": source, "short": short}),
            }
        })
        .collect()
}
