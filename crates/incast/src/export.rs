//! `incast export`: a table of all runs in one file.

use crate::{End, arguments, output};
use incast_lab::results::{
    export::{Exported, Format, export as join},
    read::UNVERIFIED,
};

/// Joins a table of the runs in a results folder.
pub fn export(arguments: &arguments::Export) -> End {
    let (folder, table) = (&arguments.folder, &arguments.table);
    let out = arguments.out.clone().unwrap_or_else(|| folder.join(format!("{table}.parquet")));
    let refused = |message: String| {
        output::error(&message);
        End::BadInput
    };
    if arguments.out.is_some()
        && let Err(message) = output::check_file(&out)
    {
        return refused(format!("output file {}: {message}", out.display()));
    }
    let Some(format) = Format::of(&out) else {
        return refused(format!("output file {}: allowed endings are .parquet and .csv", out.display()));
    };
    match join(folder, table, &out, format) {
        Ok(Exported { runs, rows, unverified }) => {
            if unverified {
                output::message(&format!("{}{UNVERIFIED}", folder.display()));
            }
            output::message(&format!("wrote {rows} rows of {runs} runs to {}", out.display()));
            End::Done
        }
        Err(error) if error.path == out => {
            output::error(&error);
            End::Failed
        }
        Err(error) => refused(error.to_string()),
    }
}
