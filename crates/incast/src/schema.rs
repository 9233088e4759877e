//! `incast schema`: the scenario format for editors and for the book.

use crate::{End, arguments, output};
use incast_lab::{metrics, scenario};
use serde_json::Value;

/// Prints the JSON schema, the reference page or the page of metrics.
pub fn schema(arguments: &arguments::Schema) -> End {
    let text = if arguments.reference {
        scenario::reference_markdown()
    } else if arguments.metrics {
        metrics::page::markdown()
    } else {
        pretty(&scenario::schema_for_editors(), 0)
    };
    output::data(&format!("{}\n", text.trim_end()));
    End::Done
}

/// Columns of the schema's text.
const WIDTH: usize = 120;

/// JSON whose lists and objects are on one line where they fit.
fn pretty(value: &Value, indentation: usize) -> String {
    let line = on_one_line(value);
    let deeper = indentation + 2;
    let parts: Vec<String> = match value {
        Value::Array(items) => items.iter().map(|item| pretty(item, deeper)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| format!("\"{key}\": {}", pretty(value, deeper))).collect()
        }
        _ => return line,
    };
    if indentation + line.chars().count() <= WIDTH {
        return line;
    }
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    let (from, to) = (" ".repeat(deeper), " ".repeat(indentation));
    format!("{open}\n{from}{}\n{to}{close}", parts.join(&format!(",\n{from}")))
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| format!("\"{key}\": {}", on_one_line(value));
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
