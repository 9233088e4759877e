//! Parts of a switch that are there or not: `switch.credits` and `switch.trim`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};
use std::{borrow::Cow, fmt, marker::PhantomData};

/// `false` or `"off"` for none, `true` for the defaults, or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Optional<T>(pub Option<T>);

/// What can be there or not.
pub trait Part: Default + Serialize + for<'de> Deserialize<'de> + JsonSchema {
    /// Name of the schema.
    const SCHEMA: &'static str;
    /// What it is.
    const DESCRIBE: &'static str;
    /// What holds without it.
    const NONE: &'static str;
    /// A table, for messages.
    const EXAMPLE: &'static str;
}

impl<'de, T: Part> Deserialize<'de> for Optional<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Part> Visitor<'de> for Any<T> {
            type Value = Optional<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "false, \"off\", true for the defaults, or a table such as {}", T::EXAMPLE)
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Optional<T>, E> {
                Ok(Optional(flag.then(T::default)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Optional<T>, E> {
                match text {
                    "off" => Ok(Optional(None)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Optional<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|part| Optional(Some(part)))
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<T: Part> Serialize for Optional<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            None => serializer.serialize_bool(false),
            Some(part) => part.serialize(serializer),
        }
    }
}

impl<T: Part> JsonSchema for Optional<T> {
    fn schema_name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = generator.subschema_for::<T>();
        table.insert("description".to_owned(), "These rules.".into());
        json_schema!({
            "description": T::DESCRIBE,
            "anyOf": [
                { "const": false, "description": T::NONE },
                { "const": "off", "description": "The same." },
                { "const": true, "description": "The defaults." },
                table,
            ],
        })
    }
}
