//! The JSON schema of scenarios and the reference page, both from the config structs.

use super::document::Document;
use incast_cc::{
    parameters::ParameterInfo,
    registry::{AGENTS, LAWS, UNDERLAYS},
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The JSON schema of a scenario, with alternatives as the reference page has them.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Document).to_value();
    join_lines(&mut schema);
    schema
}

/// The same for editors: it has an identity, and of alternatives that a `kind` tells apart it says which one was meant, so that a
/// mistake in one is not "not valid under any".
pub fn schema_for_editors() -> Value {
    let mut schema = schema();
    choose_by_kind(&mut schema);
    if let Some(entries) = schema.as_object_mut() {
        entries.insert("$id".to_owned(), "urn:incast:scenario".into());
    }
    schema
}

fn choose_by_kind(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            entries.values_mut().for_each(choose_by_kind);
            let kind_of = |one: &Value| one.pointer("/properties/kind/const").cloned();
            let Some(Value::Array(all)) = entries.get("oneOf") else { return };
            let (by_kind, others): (Vec<Value>, Vec<Value>) =
                all.iter().cloned().partition(|one| kind_of(one).is_some());
            if by_kind.len() < 2 {
                return;
            }
            let kinds: Vec<Value> = by_kind.iter().filter_map(kind_of).collect();
            let of_kind = |(kind, one): (&Value, &Value)| json!({"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": one});
            let mut cases: Vec<Value> = kinds.iter().zip(&by_kind).map(of_kind).collect();
            // One of them may be meant by a table without it.
            let may_lack = |one: &&Value| {
                one.pointer("/required")
                    .is_none_or(|all| !all.as_array().is_some_and(|all| all.contains(&"kind".into())))
            };
            match by_kind.iter().find(may_lack) {
                Some(one) => cases.push(json!({"if": {"not": {"required": ["kind"]}}, "then": one})),
                None => cases.push(json!({"required": ["kind"]})),
            }
            let object = json!({"type": "object", "properties": {"kind": {"enum": kinds}}, "allOf": cases});
            // A kind without keys of its own may be written as its name.
            let is_bare =
                |one: &&Value| one.pointer("/properties").and_then(Value::as_object).is_some_and(|all| all.len() == 1);
            let mut others = others;
            if others.is_empty() {
                others.extend(by_kind.iter().filter(is_bare).filter_map(kind_of).map(|kind| json!({"const": kind})));
            }
            entries.remove("oneOf");
            let chosen = match others.is_empty() {
                true => object,
                false => json!({"if": {"type": "object"}, "then": object, "else": {"oneOf": others}}),
            };
            entries.extend(chosen.as_object().cloned().unwrap_or_default());
        }
        Value::Array(items) => items.iter_mut().for_each(choose_by_kind),
        _ => {}
    }
}

/// Each paragraph of a description on one line: where doc comments are wrapped is of no interest to editors.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            if let Some(Value::String(text)) = entries.get_mut("description") {
                *text = text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n");
            }
            entries.values_mut().for_each(join_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        _ => {}
    }
}

/// The reference page: every table and key with its type, default and meaning; then every law and in-switch algorithm
/// with its parameters.
pub fn reference_markdown() -> String {
    let schema = schema();
    let mut page = String::from("# Scenario reference\n\nGenerated from the config structs; do not edit.\n\n");
    let empty = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&empty);
    section(&mut page, "The file", &schema);
    for (name, definition) in definitions {
        section(&mut page, name, definition);
    }
    page.push_str("# Laws\n\nDefaults are formulas of the host's rate, the fabric's base RTT and the MSS.\n\n");
    for law in LAWS {
        algorithm(&mut page, law.name, law.title, law.source, law.parameters);
    }
    page.push_str(
        "# In-switch algorithms\n\nValues of `switch.agent` and keys beside its `kind`. Defaults are formulas of the same.\n\n",
    );
    for agent in AGENTS {
        algorithm(&mut page, agent.name, agent.title, agent.source, agent.parameters);
        if !agent.sender.is_empty() {
            let pairs = agent.sender.iter().map(|(key, value)| format!("`{key}` = {value}"));
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            let _ = writeln!(page, "Defaults of laws that have these parameters become: {pairs}.\n");
        }
    }
    page.push_str(
        "# Underlays\n\nValues of a scheme's or a class's `underlay` and keys beside its `kind`. Defaults are formulas of the same.\n\n",
    );
    for underlay in UNDERLAYS {
        algorithm(&mut page, underlay.name, underlay.title, underlay.source, underlay.parameters);
    }
    page
}

fn algorithm(page: &mut String, name: &str, title: &str, source: &str, parameters: &[ParameterInfo]) {
    let _ = writeln!(page, "## `{name}`: {title}\n\n{}.\n", source.trim_end_matches('.'));
    if parameters.is_empty() {
        page.push_str("No parameters.\n\n");
        return;
    }
    page.push_str("| key | kind | default | allowed | meaning | source |\n|---|---|---|---|---|---|\n");
    for row in parameters {
        let cells = [row.kind, row.default, row.allowed, row.describe, row.source].map(cell);
        let _ = writeln!(page, "| `{}` | {} |", row.name, cells.join(" | "));
    }
    page.push('\n');
}

fn section(page: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(page, "## {name}\n");
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let _ = writeln!(page, "{}\n", paragraph(text));
    }
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(alternatives) = alternatives {
        for alternative in alternatives {
            let kind = alternative
                .pointer("/properties/kind/const")
                .or_else(|| alternative.get("const"))
                .and_then(Value::as_str);
            let text = alternative.get("description").and_then(Value::as_str).unwrap_or_default();
            match (kind, alternative.get("$ref").and_then(Value::as_str)) {
                (Some(kind), Some(other)) => {
                    let _ = writeln!(page, "- `{kind}`: {} Keys: {}.", paragraph(text), link(other));
                }
                (Some(kind), None) => match alternative.get("$comment").and_then(Value::as_str) {
                    Some(keys) => {
                        let _ = writeln!(page, "- `{kind}`: {} {keys}", paragraph(text));
                    }
                    None => {
                        let _ = writeln!(page, "- `{kind}`: {}", paragraph(text));
                        keys(page, alternative);
                    }
                },
                (None, _) => {
                    let _ = writeln!(page, "- {}: {}", type_of(alternative), paragraph(text));
                }
            }
        }
        page.push('\n');
    }
    keys(page, schema);
}

fn keys(page: &mut String, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if properties.keys().all(|key| key == "kind") {
        return;
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |keys| keys.iter().filter_map(Value::as_str).collect());
    page.push_str("\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for (key, property) in properties.iter().filter(|(key, _)| *key != "kind") {
        let default = match property.get("default") {
            Some(Value::Null) | None if required.contains(&key.as_str()) => "required".into(),
            Some(Value::Null) | None => String::new(),
            Some(Value::Object(_)) => "see there".into(),
            Some(value) => format!("`{value}`"),
        };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(page, "| `{key}` | {} | {} | {} |", cell(&type_of(property)), cell(&default), cell(text));
    }
    page.push('\n');
}

/// What a value can be.
fn type_of(schema: &Value) -> String {
    if let Some(other) = schema.get("$ref").and_then(Value::as_str) {
        return link(other);
    }
    if let Some(alternatives) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        let kinds =
            alternatives.iter().filter(|one| one.get("type").and_then(Value::as_str) != Some("null")).map(type_of);
        return kinds.collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("list of {}", schema.get("items").map_or_else(|| "values".into(), type_of))
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}

fn link(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    format!("[{name}](#{})", name.to_lowercase())
}

fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    paragraph(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description() {
        fn walk(value: &Value, path: &str) {
            if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                for (key, property) in properties {
                    let has_description =
                        property.get("description").is_some() || property.get("$ref").is_some() || key == "kind";
                    assert!(has_description, "{path}.{key} has no description: {property}");
                }
            }
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| walk(value, &format!("{path}.{key}"))),
                Value::Array(items) => items.iter().for_each(|value| walk(value, path)),
                _ => {}
            }
        }
        walk(&schema(), "");
    }

    #[test]
    fn short_forms_are_in_the_schema() {
        let schema = schema().to_string();
        for value in ["{\"const\":\"off\"", "{\"const\":false", "{\"const\":\"none\""] {
            assert!(schema.contains(value), "{value}");
        }
    }

    #[test]
    fn the_page_names_every_kind_and_law() {
        let page = reference_markdown();
        for name in ["leaf-spine", "clos3", "all-to-all", "load_of", "per_port", "ratio_to", "`dctcp`", "gain"] {
            assert!(page.contains(name), "{name}");
        }
    }

    #[test]
    fn editors_are_told_which_kind_was_meant() {
        let schema = schema_for_editors();
        let topology = &schema["$defs"]["Topology"];
        assert!(topology.get("oneOf").is_none() && topology["properties"]["kind"]["enum"].as_array().is_some());
        let cases = topology["allOf"].as_array().expect("cases");
        let of = |kind: &str| cases.iter().find(|case| case["if"]["properties"]["kind"]["const"] == *kind);
        assert!(of("leaf-spine").expect("a kind")["then"]["properties"].get("spines").is_some());
        // Without a kind, PFC has fixed thresholds; its other kinds have names.
        let pfc = &schema["$defs"]["Pfc"];
        let cases = pfc["then"]["allOf"].as_array().expect("cases");
        let without = cases.iter().find(|case| case["if"].get("not").is_some()).expect("a table without a kind");
        assert_eq!(without["then"]["properties"]["kind"]["const"], "static");
        let names = schema["$defs"]["PaceCredit"]["else"]["oneOf"].to_string();
        assert!(names.contains("half-packet") && !names.contains("burst"), "{names}");
    }
}
