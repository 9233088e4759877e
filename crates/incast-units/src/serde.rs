//! Units in scenario files and their JSON schema: a text with a number and a unit.

use crate::{Bytes, Rate, Time};

/// Implements `Deserialize`, `Serialize` and `JsonSchema` for a type that is written as a text, by its `FromStr` and
/// `Display`: the name in the schema, what a message says was expected, and a pattern for editors.
///
/// The calling crate needs `serde` and `schemars`.
#[macro_export]
macro_rules! written_as_text {
    ($type:ty, $name:literal, $expected:expr $(, $pattern:literal)?) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl ::serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|_| E::invalid_value(::serde::de::Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "description": $expected $(, "pattern": $pattern)? })
            }
        }
    };
}

written_as_text!(
    Time,
    "Duration",
    "a time such as \"30us\" (units ps, ns, us, ms, s)",
    r"^\s*[0-9_]*\.?[0-9_]*\s*(ps|ns|us|µs|ms|s)\s*$"
);
written_as_text!(
    Bytes,
    "Size",
    "a size such as \"64KB\" (units B, KB, MB, GB, KiB, MiB, GiB)",
    r"^\s*[0-9_]*\.?[0-9_]*\s*(B|KB|kB|MB|GB|KiB|MiB|GiB)\s*$"
);
written_as_text!(
    Rate,
    "Speed",
    "a rate such as \"100Gbps\" (units bps, Kbps, Mbps, Gbps, Tbps; also 100G, 100Gbit/s, 100Gb/s)",
    r"^\s*[0-9_]*\.?[0-9_]*\s*(bps|bit/s|b/s|[KkMGT](bps|bit/s|b/s)?)\s*$"
);
