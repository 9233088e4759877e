//! `incast diff`: two results folders beside each other.

use crate::{End, arguments, output};
use incast_lab::results::{
    difference::{columns, difference},
    read::{self, UNVERIFIED},
};
use std::path::Path;

/// Says what a change has changed.
pub fn diff(arguments: &arguments::Diff) -> End {
    let read = |folder: &Path| {
        let results = read::read(folder).map_err(|error| output::error(&error)).ok()?;
        if results.unverified {
            output::message(&format!("{}{UNVERIFIED}", folder.display()));
        }
        Some(results)
    };
    let (Some(before), Some(after)) = (read(&arguments.before), read(&arguments.after)) else { return End::BadInput };
    if let Some(column) = arguments.columns.iter().find(|column| {
        ![&before, &after].into_iter().all(|results| results.rows.iter().any(|row| row.class == column.class))
    }) {
        output::error(&format!("--columns: found class {:?}, which not both have", column.class));
        return End::BadInput;
    }
    let columns = columns(&arguments.columns, &after);
    let found = difference(&before, &after, &columns, arguments.indifferent);
    if arguments.json {
        output::data(&format!("{}\n", found.to_json()));
    } else {
        output::data(&found.text(output::width()));
    }
    End::Done
}
