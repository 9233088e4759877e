//! Algorithms by name, beside laws: `switch.agent` and `underlay`. The name stands alone, or in a table with
//! parameters.

use super::parameters::{Parameter, Parameters, Written};
use incast_cc::{
    parameters::ParameterInfo,
    registry::{AGENTS, UNDERLAYS},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, fmt, marker::PhantomData};

/// What can be named.
pub trait Catalogue {
    /// Name of the schema.
    const SCHEMA: &'static str;
    /// What it is a catalogue of.
    const DESCRIBE: &'static str;
    /// The text of the reference page in place of repeated parameters.
    const COMMENT: &'static str;
    /// Names that `kind` can have.
    const KINDS: &'static [&'static str];
    /// Names, titles and parameters.
    fn entries() -> Vec<(&'static str, &'static str, &'static [ParameterInfo])>;
}

/// In-switch algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agents;

impl Catalogue for Agents {
    const SCHEMA: &'static str = "Agent";
    const DESCRIBE: &'static str = "In-switch algorithm.";
    const COMMENT: &'static str = "Keys: its parameters, below under In-switch algorithms.";
    const KINDS: &'static [&'static str] = &{
        let mut names = [NONE; AGENTS.len() + 1];
        let mut index = 0;
        while index < AGENTS.len() {
            names[index + 1] = AGENTS[index].name;
            index += 1;
        }
        names
    };
    fn entries() -> Vec<(&'static str, &'static str, &'static [ParameterInfo])> {
        AGENTS.iter().map(|agent| (agent.name, agent.title, agent.parameters)).collect()
    }
}

/// What stands between flows and NICs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Underlays;

impl Catalogue for Underlays {
    const SCHEMA: &'static str = "Underlay";
    const DESCRIBE: &'static str = "Stage between flow and NIC.";
    const COMMENT: &'static str = "Keys: its parameters, below under Underlays.";
    const KINDS: &'static [&'static str] = &{
        let mut names = [NONE; UNDERLAYS.len() + 1];
        let mut index = 0;
        while index < UNDERLAYS.len() {
            names[index + 1] = UNDERLAYS[index].name;
            index += 1;
        }
        names
    };
    fn entries() -> Vec<(&'static str, &'static str, &'static [ParameterInfo])> {
        UNDERLAYS.iter().map(|underlay| (underlay.name, underlay.title, underlay.parameters)).collect()
    }
}

/// One of a catalogue, or [`NONE`].
#[derive(Clone, Debug, PartialEq)]
pub struct Named<C> {
    /// Its name.
    pub kind: &'static str,
    /// Given parameters, in their order.
    pub parameters: Parameters,
    catalogue: PhantomData<C>,
}

/// `switch.agent`.
pub type Agent = Named<Agents>;

/// `underlay`.
pub type Underlay = Named<Underlays>;

/// The name of none.
pub const NONE: &str = "none";

impl<C> Default for Named<C> {
    fn default() -> Self {
        Self::of(NONE, Vec::new())
    }
}

impl<C> Named<C> {
    fn of(kind: &'static str, parameters: Parameters) -> Self {
        Self { kind, parameters, catalogue: PhantomData }
    }

    /// One with the defaults of its parameters.
    pub fn plain(kind: &'static str) -> Self {
        Self::of(kind, Vec::new())
    }

    /// There is none.
    pub fn is_none(&self) -> bool {
        self.kind == NONE
    }
}

impl<C: Catalogue> Named<C> {
    fn known<E: Error>(name: &str) -> Result<&'static str, E> {
        let known = C::KINDS.iter().find(|kind| **kind == name);
        known.copied().ok_or_else(|| E::unknown_variant(name, C::KINDS))
    }
}

/// A name that exists: a type of its own, so that a fault is one of the key `kind`.
struct Kind<C>(&'static str, PhantomData<C>);

impl<'de, C: Catalogue> Deserialize<'de> for Kind<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Named::<C>::known(&String::deserialize(deserializer)?).map(|kind| Self(kind, PhantomData))
    }
}

impl<'de, C: Catalogue> Deserialize<'de> for Named<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<C>(PhantomData<C>);
        impl<'de, C: Catalogue> Visitor<'de> for Any<C> {
            type Value = Named<C>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<String> = C::KINDS.iter().map(|kind| format!("{kind:?}")).collect();
                write!(f, "false, {}, or a table with `kind` and parameters", names.join(", "))
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Named<C>, E> {
                if flag { Err(E::invalid_value(Unexpected::Bool(flag), &self)) } else { Ok(Named::default()) }
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Named<C>, E> {
                Named::<C>::known(name).map(|kind| Named::of(kind, Vec::new()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<C>, A::Error> {
                let mut kind = None;
                let mut parameters = Parameters::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "kind" => kind = Some(map.next_value::<Kind<C>>()?.0),
                        _ => parameters.push((key, map.next_value::<Parameter>()?.0)),
                    }
                }
                let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
                Ok(Named::of(kind, parameters))
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<C> Serialize for Named<C> {
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

impl<C: Catalogue> JsonSchema for Named<C> {
    fn schema_name() -> Cow<'static, str> {
        C::SCHEMA.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = C::KINDS.iter().map(|kind| json!(kind)).chain([json!(false)]);
        let mut alternatives = vec![json!({
            "enum": names.collect::<Vec<_>>(),
            "description": "Its name; its parameters have their defaults. `false` is `\"none\"`.",
        })];
        let entries = [(NONE, "None", &[][..])].into_iter().chain(C::entries());
        for (kind, title, parameters) in entries {
            let mut properties = Map::from_iter([("kind".to_owned(), json!({ "const": kind }))]);
            properties.extend(parameters.iter().map(|row| (row.name.to_owned(), property(row))));
            let mut table = json!({
                "type": "object",
                "description": format!("{}.", title.trim_end_matches('.')),
                "required": ["kind"],
                "additionalProperties": false,
                "properties": properties,
            });
            if !parameters.is_empty() {
                table["$comment"] = C::COMMENT.into();
            }
            alternatives.push(table);
        }
        json_schema!({ "description": C::DESCRIBE, "oneOf": alternatives })
    }
}

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
