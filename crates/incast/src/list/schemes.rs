//! The laws with their parameters.

use super::{Entry, wrap};
use incast_cc::{Path, parameters::Raw, sender::LAWS};
use incast_units::{Rate, Time};
use serde_json::{Value, json};
use std::fmt::Write;

/// The path on which defaults are shown as values: 100 Gbps, 8 us, packets of 4,096 bytes.
const EXAMPLE: Path =
    Path { rate: Rate::from_gbps(100), base_rtt: Time::from_us(8), mss: 4096, wire_mss: 4096 + 90 };

pub(super) fn entries() -> Vec<Entry> {
    LAWS.iter()
        .map(|law| {
            let mut text =
                format!("{}  {}\n{}", law.name, law.title, wrap(4, &format!("source: {}", law.source)));
            for row in law.parameters {
                let value = (row.default_on)(&EXAMPLE).to_string();
                let value = if value.trim_matches('"') == row.default {
                    String::new()
                } else {
                    format!(" ({value})")
                };
                let _ = writeln!(text, "    {} = {}{value}", row.name, row.default);
                text += &wrap(8, &format!("{}.", row.describe.trim().trim_end_matches('.')));
                let facts = format!("{}; allowed {}; source: {}", row.kind, row.allowed, row.source);
                text += &wrap(8, &facts);
            }
            let parameters: Vec<Value> = law
                .parameters
                .iter()
                .map(|row| {
                    json!({
                        "name": row.name,
                        "kind": row.kind,
                        "describe": row.describe.trim(),
                        "default": row.default,
                        "default_at_100gbps_8us": plain((row.default_on)(&EXAMPLE)),
                        "allowed": row.allowed,
                        "source": row.source,
                    })
                })
                .collect();
            let facts = json!({
                "name": law.name,
                "title": law.title,
                "source": law.source,
                "ecn_capable": law.ecn_capable,
                "parameters": parameters,
            });
            Entry { facts, text }
        })
        .collect()
}

fn plain(raw: Raw) -> Value {
    match raw {
        Raw::Text(text) => text.into(),
        Raw::Integer(number) => number.into(),
        Raw::Float(number) => number.into(),
        Raw::Flag(flag) => flag.into(),
        Raw::File { path, .. } => path.into(),
    }
}
