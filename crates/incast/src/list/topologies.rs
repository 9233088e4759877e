//! The kinds of fabrics, read off the scenario schema.

use super::Entry;
use incast_lab::scenario;
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) fn entries() -> Vec<Entry> {
    let schema = scenario::schema();
    let kinds = schema.pointer("/$defs/Topology/oneOf").and_then(Value::as_array);
    kinds.into_iter().flatten().filter_map(|kind| entry(&schema, kind)).collect()
}

fn entry(schema: &Value, variant: &Value) -> Option<Entry> {
    let name = variant.pointer("/properties/kind/const")?.as_str()?;
    // The keys are in the variant itself or behind its reference.
    let keys = follow(schema, variant);
    let describe = text(variant, "description").or_else(|| text(keys, "description")).unwrap_or_default();
    let mut parameters = Vec::new();
    let mut lines = format!("{name}  {}\n", one_line(describe));
    for (key, value) in properties(variant).chain(properties(keys)) {
        if key == "kind" || parameters.iter().any(|row: &Value| row["name"] == *key) {
            continue;
        }
        let describe = one_line(
            text(value, "description").or_else(|| text(follow(schema, value), "description")).unwrap_or_default(),
        );
        let default = value.get("default").cloned().unwrap_or_default();
        let kind = kind_of(schema, value);
        let shown = if default.is_null() { String::new() } else { format!("; default {default}") };
        let _ = writeln!(lines, "    {key}: {}; {kind}{shown}", describe.trim_end_matches('.'));
        parameters.push(json!({"name": key, "kind": kind, "describe": describe, "default": default}));
    }
    Some(Entry { facts: json!({"name": name, "describe": one_line(describe), "parameters": parameters}), text: lines })
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// What a `$ref` leads to; the value itself without one.
fn follow<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let path = text(value, "$ref").and_then(|reference| reference.strip_prefix('#'));
    path.and_then(|path| schema.pointer(path)).unwrap_or(value)
}

fn kind_of(schema: &Value, value: &Value) -> String {
    if let Some(name) = text(value, "$ref").and_then(|reference| reference.rsplit('/').next()) {
        let keys: Vec<&str> = properties(follow(schema, value)).map(|(key, _)| key.as_str()).collect();
        return if keys.is_empty() { name.to_lowercase() } else { format!("{{ {} }}", keys.join(", ")) };
    }
    text(value, "type").unwrap_or("value").to_owned()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
