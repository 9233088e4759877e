//! `[grid]` and `[[zip]]`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use std::{borrow::Cow, fmt};

/// Paths of keys with their values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Axes(pub Vec<(String, Vec<toml::Value>)>);

impl Axes {
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Axes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table from paths such as \"workload.background.load\" to lists of values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Axes, A::Error> {
                let mut axes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    axes.push(entry);
                }
                Ok(Axes(axes))
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for Axes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (path, values) in &self.0 {
            map.serialize_entry(path, values)?;
        }
        map.end()
    }
}

impl JsonSchema for Axes {
    fn schema_name() -> Cow<'static, str> {
        "Axes".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Paths such as \"workload.background.load\" or \"scheme.dctcp.gain\", each with a list of values.",
            "additionalProperties": { "type": "array", "minItems": 1 },
        })
    }
}
