//! `incast list`: what there is to write into a scenario.

mod scenarios;
mod schemes;
mod topologies;
mod workloads;

use crate::{End, arguments::List, arguments::Listed, output};
use serde_json::Value;

/// One entry: its facts for machines, and its text for people.
struct Entry {
    facts: Value,
    text: String,
}

/// Prints a list.
pub fn list(arguments: &List) -> End {
    let entries = match arguments.what {
        Listed::Schemes => schemes::entries(),
        Listed::Workloads => workloads::entries(),
        Listed::Topologies => topologies::entries(),
        Listed::Scenarios => scenarios::entries(),
    };
    let text = if arguments.json {
        let facts: Vec<Value> = entries.into_iter().map(|entry| entry.facts).collect();
        format!("{:#}\n", Value::from(facts))
    } else {
        entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>().join("\n")
    };
    output::data(&text);
    End::Done
}
