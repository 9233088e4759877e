//! Reads config structs from a [`Node`], so that every message has the path of its keys.
//!
//! A table with a `kind` is an enum: `kind` names the variant and the other keys are its content. Where there is a
//! variant `static`, a table without a kind is that.

use super::{
    error::{Problem, list},
    node::{Entry, Node, Value},
};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

/// Reads a `T`.
///
/// # Errors
/// What is wrong, with the path from `node`.
pub fn read<'a, T: serde::Deserialize<'a>>(node: &'a Node) -> Result<T, Problem> {
    T::deserialize(node)
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self.value {
            Value::Table(entries) => visitor.visit_map(Entries { entries, skip: "", value: None }),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Flag(flag) => visitor.visit_bool(*flag),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match &self.value {
            Value::Text(kind) => visitor.visit_enum(Kind { kind, entries: &[], named: false }),
            Value::Flag(false) if variants.contains(&"off") => {
                visitor.visit_enum(Kind { kind: "off", entries: &[], named: false })
            }
            Value::Table(entries) => match self.get("kind").map(|kind| &kind.value) {
                Some(Value::Text(kind)) => visitor.visit_enum(Kind { kind, entries, named: true }),
                Some(other) => Err(Problem::value(other, list(variants, true)).under("kind")),
                None if variants.contains(&"static") => {
                    visitor.visit_enum(Kind { kind: "static", entries, named: true })
                }
                None => Err(Problem::missing_field("kind")),
            },
            // The one kind that may be left out, and that a word alone does not give.
            other if variants.contains(&"static") => {
                let allowed =
                    "false, \"off\", \"dynamic\", or a table such as { xoff = \"80KB\" } or { kind = \"dynamic\" }";
                Err(Problem::value(other, allowed))
            }
            other => Err(Problem::value(other, list(variants, true))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Entries<'de> {
    entries: &'de [Entry],
    skip: &'static str,
    value: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        while let Some((entry, rest)) = self.entries.split_first() {
            self.entries = rest;
            if entry.key == self.skip {
                continue;
            }
            self.value = Some(entry);
            let key: StrDeserializer<'_, Problem> = entry.key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some).map_err(|problem| problem.under(entry.key.as_str()));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        match self.value.take() {
            Some(entry) => seed.deserialize(&entry.node).map_err(|problem| problem.under(entry.key.as_str())),
            None => Err(Problem::new("a value was read before its key")),
        }
    }
}

struct Items<'de> {
    items: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        self.next += 1;
        seed.deserialize(item).map(Some).map_err(|problem| problem.under(self.next - 1))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Kind<'de> {
    kind: &'de str,
    entries: &'de [Entry],
    named: bool,
}

impl<'de> EnumAccess<'de> for Kind<'de> {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Problem> {
        let kind: StrDeserializer<'_, Problem> = self.kind.into_deserializer();
        match seed.deserialize(kind) {
            Ok(variant) => Ok((variant, self)),
            Err(problem) if self.named => Err(problem.under("kind")),
            Err(problem) => Err(problem),
        }
    }
}

impl<'de> Kind<'de> {
    fn content(&self) -> Entries<'de> {
        Entries { entries: self.entries, skip: "kind", value: None }
    }
}

impl<'de> VariantAccess<'de> for Kind<'de> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        match self.entries.iter().find(|entry| entry.key != "kind") {
            Some(entry) => {
                Err(Problem::new(format!("unknown key: {:?} takes none", self.kind)).under(entry.key.as_str()))
            }
            None => Ok(()),
        }
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Problem> {
        seed.deserialize(serde::de::value::MapAccessDeserializer::new(self.content()))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        Err(Problem::invalid_type(Unexpected::Map, &visitor))
    }
    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_map(self.content())
    }
}
