//! `incast schema`: the scenario format for editors and for the book.

use crate::{End, arguments, output};
use incast_lab::{metrics, scenario};

/// Prints the JSON schema, the reference page or the page of metrics.
pub fn schema(arguments: &arguments::Schema) -> End {
    let text = if arguments.reference {
        scenario::reference_markdown()
    } else if arguments.metrics {
        metrics::page::markdown()
    } else {
        match serde_json::to_string_pretty(&scenario::schema()) {
            Ok(text) => text,
            Err(error) => {
                output::error(&error);
                return End::Failed;
            }
        }
    };
    output::data(&format!("{}\n", text.trim_end()));
    End::Done
}
