//! `switch.agent`.

use super::scheme::{Parameter, Parameters, Written};
use incast_cc::{parameters::ParameterInfo, switch::AGENTS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, fmt};

/// In-switch algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// One of [`AGENTS`] by its name, or [`NONE`].
    pub kind: &'static str,
    /// Given parameters, in their order.
    pub parameters: Parameters,
}

/// The name of no agent.
pub const NONE: &str = "none";

impl Default for Agent {
    fn default() -> Self {
        Self { kind: NONE, parameters: Vec::new() }
    }
}

/// Names that `kind` can have.
const KINDS: &[&str] = &{
    let mut names = [NONE; AGENTS.len() + 1];
    let mut index = 0;
    while index < AGENTS.len() {
        names[index + 1] = AGENTS[index].name;
        index += 1;
    }
    names
};

/// A name that exists.
struct Kind(&'static str);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&String::deserialize(deserializer)?)
    }
}

impl Kind {
    fn of<E: Error>(name: &str) -> Result<Self, E> {
        let known = KINDS.iter().find(|kind| **kind == name);
        known.map(|kind| Self(kind)).ok_or_else(|| E::unknown_variant(name, KINDS))
    }
}

impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Agent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<String> = KINDS.iter().map(|kind| format!("{kind:?}")).collect();
                write!(f, "false, {}, or a table with `kind` and parameters", names.join(", "))
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Agent, E> {
                if flag { Err(E::invalid_value(Unexpected::Bool(flag), &self)) } else { Ok(Agent::default()) }
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Agent, E> {
                Kind::of(name).map(|kind| Agent { kind: kind.0, parameters: Vec::new() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Agent, A::Error> {
                let mut kind = None;
                let mut parameters = Parameters::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "kind" => kind = Some(map.next_value::<Kind>()?.0),
                        _ => parameters.push((key, map.next_value::<Parameter>()?.0)),
                    }
                }
                let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
                Ok(Agent { kind, parameters })
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.parameters.is_empty() {
            return serializer.serialize_str(self.kind);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind)?;
        for (key, raw) in &self.parameters {
            map.serialize_entry(key, &Written(raw))?;
        }
        map.end()
    }
}

impl JsonSchema for Agent {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = KINDS.iter().map(|kind| json!(kind)).chain([json!(false)]);
        let mut alternatives = vec![json!({
            "enum": names.collect::<Vec<_>>(),
            "description": "Its name; its parameters have their defaults. `false` is `\"none\"`.",
        })];
        for kind in KINDS {
            let agent = AGENTS.iter().find(|agent| agent.name == *kind);
            let mut properties = Map::from_iter([("kind".to_owned(), json!({ "const": kind }))]);
            let parameters = agent.map_or(&[][..], |agent| agent.parameters);
            properties.extend(parameters.iter().map(|row| (row.name.to_owned(), property(row))));
            let mut table = json!({
                "type": "object",
                "description": format!("{}.", agent.map_or("None", |agent| agent.title).trim_end_matches('.')),
                "required": ["kind"],
                "additionalProperties": false,
                "properties": properties,
            });
            if !parameters.is_empty() {
                table["$comment"] = COMMENT.into();
            }
            alternatives.push(table);
        }
        json_schema!({ "description": "In-switch algorithm.", "oneOf": alternatives })
    }
}

/// What the reference page says instead of repeating parameters.
const COMMENT: &str = "Keys: its parameters, below under In-switch algorithms.";

fn property(row: &ParameterInfo) -> Value {
    let describe = row.describe.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({
        "type": ["number", "string", "boolean"],
        "description": format!(
            "{}. {}; allowed {}. Default: {}.",
            describe.trim_end_matches('.'), row.kind, row.allowed, row.default
        ),
    })
}
