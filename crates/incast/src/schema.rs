//! `incast schema`: the scenario format for editors and for the book.

use crate::{End, arguments, output};
use incast_lab::scenario;

/// Prints the JSON schema, or the reference page.
pub fn schema(arguments: &arguments::Schema) -> End {
    let text = if arguments.reference {
        scenario::reference_markdown()
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
