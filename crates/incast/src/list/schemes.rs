//! The laws, the in-switch algorithms and the underlays with their parameters.

use super::{Entry, wrap};
use incast_cc::{
    Path,
    parameters::{ParameterInfo, Raw},
    registry::{AGENTS, LAWS, UNDERLAYS},
};
use incast_units::{Rate, Time};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The path on which defaults are shown as values: 100 Gbps, 8 us, packets of 4,096 bytes.
const EXAMPLE: Path = Path::new(Rate::from_gbps(100), Time::from_us(8), 4096, 4096 + 90);

pub(super) fn entries() -> Vec<Entry> {
    let laws = LAWS.iter().map(|law| {
        let mut facts = facts(law.name, law.title, law.source, law.parameters);
        facts.insert("key".into(), "law".into());
        facts.insert("ecn_capable".into(), law.ecn_capable.into());
        Entry { facts: facts.into(), text: text("", law.name, law.title, law.source, law.parameters) }
    });
    let agents = AGENTS.iter().map(|agent| {
        let mut facts = facts(agent.name, agent.title, agent.source, agent.parameters);
        let pairs = agent.sender.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
        facts.insert("key".into(), "switch.agent".into());
        facts.insert("law_defaults".into(), pairs.collect::<Map<_, _>>().into());
        let mut text = text("switch.agent ", agent.name, agent.title, agent.source, agent.parameters);
        if !agent.sender.is_empty() {
            let pairs: Vec<String> = agent.sender.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            text += &wrap(4, &format!("changes defaults of laws that have them: {}", pairs.join(", ")));
        }
        Entry { facts: facts.into(), text }
    });
    let underlays = UNDERLAYS.iter().map(|underlay| {
        let mut facts = facts(underlay.name, underlay.title, underlay.source, underlay.parameters);
        facts.insert("key".into(), "underlay".into());
        let text = text("underlay ", underlay.name, underlay.title, underlay.source, underlay.parameters);
        Entry { facts: facts.into(), text }
    });
    laws.chain(agents).chain(underlays).collect()
}

/// As text; `key` is the key under which the name belongs.
fn text(key: &str, name: &str, title: &str, source: &str, parameters: &[ParameterInfo]) -> String {
    let mut text = format!("{key}{name}  {title}\n{}", wrap(4, &format!("source: {source}")));
    for row in parameters {
        let value = (row.default_on)(&EXAMPLE).to_string();
        let value = if value.trim_matches('"') == row.default { String::new() } else { format!(" ({value})") };
        let _ = writeln!(text, "    {} = {}{value}", row.name, row.default);
        text += &wrap(8, &format!("{}.", row.describe.trim().trim_end_matches('.')));
        let facts = format!("{}; allowed {}; source: {}", row.kind, row.allowed, row.source);
        text += &wrap(8, &facts);
    }
    text
}

/// For machines.
fn facts(name: &str, title: &str, source: &str, parameters: &[ParameterInfo]) -> Map<String, Value> {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "kind": row.kind,
                "describe": row.describe.trim(),
                "default": row.default,
                "default_at_100gbps_8us": plain((row.default_on)(&EXAMPLE)),
                "allowed": row.allowed,
                "source": row.source,
            })
        })
        .collect();
    let facts: [(&str, Value); 4] =
        [("name", name.into()), ("title", title.into()), ("source", source.into()), ("parameters", parameters.into())];
    facts.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}

fn plain(raw: Raw) -> Value {
    match raw {
        Raw::Text(text) => text.into(),
        Raw::Integer(number) => number.into(),
        Raw::Float(number) => number.into(),
        Raw::Flag(flag) => flag.into(),
        Raw::File { path, .. } => path.into(),
    }
}
