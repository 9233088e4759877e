//! `[[scheme]]`.

use super::{
    host::Host,
    named::Underlay,
    parameters::{Parameter, Parameters, Written},
    switch::Switch,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use std::{borrow::Cow, fmt};

/// A congestion control and what it changes.
///
/// The parameters of the law are further keys of the table.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// Name of the law.
    pub law: String,
    /// Name of the row; the law's where none is given.
    pub name: Option<String>,
    /// Priority of data packets; 0 is the highest.
    pub priority: Option<u8>,
    /// Priority of acknowledgements; that of the data where none is given.
    pub ack_priority: Option<u8>,
    /// Priority of congestion notifications, of receivers and of switches. Default: 0, the highest.
    pub notification_priority: Option<u8>,
    /// Laws and priorities of single classes.
    pub by_class: Vec<(String, Refinement)>,
    /// Stage between flow and NIC.
    pub underlay: Underlay,
    /// Keys of `[switch]` that differ, checked by themselves; merged before use.
    pub switch: Option<Switch>,
    /// Keys of `[host]` that differ.
    pub host: Option<Host>,
    /// The law's parameters.
    pub parameters: Parameters,
}

impl Scheme {
    /// The name in tables.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.law)
    }
}

/// What a class does differently.
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    /// Its law; the scheme's where none is given.
    pub law: Option<String>,
    /// Its priority.
    pub priority: Option<u8>,
    /// The priority of its acknowledgements.
    pub ack_priority: Option<u8>,
    /// Priority of congestion notifications, of receivers and of switches. Default: 0, the highest.
    pub notification_priority: Option<u8>,
    /// Its underlay.
    pub underlay: Option<Underlay>,
    /// Parameters of its law.
    pub parameters: Parameters,
}

/// Keys of a scheme that are not parameters.
pub const SCHEME_KEYS: &[&str] =
    &["law", "name", "priority", "ack_priority", "notification_priority", "by_class", "underlay", "switch", "host"];

/// Keys of `by_class` that are not parameters.
pub const REFINEMENT_KEYS: &[&str] = &["law", "priority", "ack_priority", "notification_priority", "underlay"];

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Scheme;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with the key `law`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scheme, A::Error> {
                let mut law = None;
                let mut scheme = Scheme {
                    law: String::new(),
                    name: None,
                    priority: None,
                    ack_priority: None,
                    notification_priority: None,
                    by_class: Vec::new(),
                    underlay: Underlay::default(),
                    switch: None,
                    host: None,
                    parameters: Vec::new(),
                };
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "law" => law = Some(map.next_value()?),
                        "name" => scheme.name = Some(map.next_value()?),
                        "priority" => scheme.priority = Some(map.next_value()?),
                        "ack_priority" => scheme.ack_priority = Some(map.next_value()?),
                        "notification_priority" => scheme.notification_priority = Some(map.next_value()?),
                        "by_class" => scheme.by_class = map.next_value::<ByClass>()?.0,
                        "underlay" => scheme.underlay = map.next_value()?,
                        "switch" => scheme.switch = Some(map.next_value()?),
                        "host" => scheme.host = Some(map.next_value()?),
                        _ => scheme.parameters.push((key, map.next_value::<Parameter>()?.0)),
                    }
                }
                scheme.law = law.ok_or_else(|| A::Error::missing_field("law"))?;
                Ok(scheme)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

struct ByClass(Vec<(String, Refinement)>);

impl<'de> Deserialize<'de> for ByClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = ByClass;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table from class to law, priority and parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByClass, A::Error> {
                let mut classes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    classes.push(entry);
                }
                Ok(ByClass(classes))
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl<'de> Deserialize<'de> for Refinement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Refinement;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with law, priority, underlay or parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Refinement, A::Error> {
                let mut refinement = Refinement::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "law" => refinement.law = Some(map.next_value()?),
                        "priority" => refinement.priority = Some(map.next_value()?),
                        "ack_priority" => refinement.ack_priority = Some(map.next_value()?),
                        "notification_priority" => refinement.notification_priority = Some(map.next_value()?),
                        "underlay" => refinement.underlay = Some(map.next_value()?),
                        _ => refinement.parameters.push((key, map.next_value::<Parameter>()?.0)),
                    }
                }
                Ok(refinement)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("law", &self.law)?;
        map.serialize_entry("name", self.name())?;
        if let Some(priority) = self.priority {
            map.serialize_entry("priority", &priority)?;
        }
        if let Some(priority) = self.ack_priority {
            map.serialize_entry("ack_priority", &priority)?;
        }
        if let Some(priority) = self.notification_priority {
            map.serialize_entry("notification_priority", &priority)?;
        }
        if !self.underlay.is_none() {
            map.serialize_entry("underlay", &self.underlay)?;
        }
        for (key, raw) in &self.parameters {
            map.serialize_entry(key, &Written(raw))?;
        }
        map.end()
    }
}

impl Serialize for Refinement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(law) = &self.law {
            map.serialize_entry("law", law)?;
        }
        if let Some(priority) = self.priority {
            map.serialize_entry("priority", &priority)?;
        }
        if let Some(priority) = self.ack_priority {
            map.serialize_entry("ack_priority", &priority)?;
        }
        if let Some(priority) = self.notification_priority {
            map.serialize_entry("notification_priority", &priority)?;
        }
        if let Some(underlay) = &self.underlay {
            map.serialize_entry("underlay", underlay)?;
        }
        for (key, raw) in &self.parameters {
            map.serialize_entry(key, &Written(raw))?;
        }
        map.end()
    }
}

impl JsonSchema for Scheme {
    fn schema_name() -> Cow<'static, str> {
        "Scheme".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let laws: Vec<&str> = incast_cc::registry::LAWS.iter().map(|law| law.name).collect();
        let switch = generator.subschema_for::<Switch>();
        let host = generator.subschema_for::<Host>();
        let refinement = generator.subschema_for::<Refinement>();
        let underlay = generator.subschema_for::<Underlay>();
        json_schema!({
            "type": "object",
            "description": "A congestion control and what it changes. The parameters of its law are further keys.",
            "required": ["law"],
            "properties": {
                "law": { "enum": laws, "description": "The law." },
                "name": { "type": "string", "description": "Name of the row, unique. Default: the law's." },
                "priority": { "type": "integer", "minimum": 0, "maximum": 7,
                    "description": "Priority of data packets; 0 is the highest.", "default": 0 },
                "ack_priority": { "type": "integer", "minimum": 0, "maximum": 7,
                    "description": "Priority of acknowledgements. Default: that of the data." },
                "notification_priority": { "type": "integer", "minimum": 0, "maximum": 7,
                    "description": "Priority of receivers' congestion notifications.", "default": 0 },
                "by_class": { "type": "object", "additionalProperties": refinement,
                    "description": "Law, priority and underlay of single classes." },
                "underlay": underlay,
                "switch": switch,
                "host": host,
            },
            "additionalProperties": { "type": ["number", "string", "boolean"] },
        })
    }
}

impl JsonSchema for Refinement {
    fn schema_name() -> Cow<'static, str> {
        "Refinement".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let laws: Vec<&str> = incast_cc::registry::LAWS.iter().map(|law| law.name).collect();
        let underlay = generator.subschema_for::<Underlay>();
        json_schema!({
            "type": "object",
            "description": "What a class does differently. Parameters of its law are further keys.",
            "properties": {
                "law": { "enum": laws, "description": "The law. Default: the scheme's." },
                "priority": { "type": "integer", "minimum": 0, "maximum": 7, "description": "Priority of data packets." },
                "ack_priority": { "type": "integer", "minimum": 0, "maximum": 7, "description": "Priority of acknowledgements." },
                "notification_priority": { "type": "integer", "minimum": 0, "maximum": 7,
                    "description": "Priority of receivers' congestion notifications." },
                "underlay": underlay,
            },
            "additionalProperties": { "type": ["number", "string", "boolean"] },
        })
    }
}
