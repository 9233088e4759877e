//! Parameters of algorithms, which stand in a table beside other keys.

use incast_cc::parameters::Raw;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use std::fmt;

/// Given parameters of an algorithm, in their order.
pub type Parameters = Vec<(String, Raw)>;

/// A parameter's value, of whatever kind.
pub(super) struct Parameter(pub Raw);

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Parameter;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a parameter: a number, a text, true or false")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Parameter, E> {
                Ok(Parameter(Raw::Text(text.to_owned())))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Parameter, E> {
                Ok(Parameter(Raw::Integer(number)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Parameter, E> {
                Ok(Parameter(Raw::Float(number)))
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Parameter, E> {
                Ok(Parameter(Raw::Flag(flag)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Serialisable view of a parameter.
pub(super) struct Written<'a>(pub &'a Raw);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Raw::Text(text) => serializer.serialize_str(text),
            Raw::Integer(number) => serializer.serialize_i64(*number),
            Raw::Float(number) => serializer.serialize_f64(*number),
            Raw::Flag(flag) => serializer.serialize_bool(*flag),
            Raw::File { path, .. } => serializer.serialize_str(path),
        }
    }
}
