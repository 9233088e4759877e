//! `incast report`.

use crate::{End, arguments, output};
use incast_lab::report;
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Opens a file with what the desktop uses for it.
#[cfg(target_os = "macos")]
const OPEN: &str = "open";
#[cfg(windows)]
const OPEN: &str = "explorer";
#[cfg(not(any(target_os = "macos", windows)))]
const OPEN: &str = "xdg-open";

/// Writes the report of results folders and prints where it is.
pub fn report(arguments: &arguments::Report) -> End {
    let written = match (&arguments.folders[..], &arguments.out) {
        ([folder], None) => report::write(folder),
        (_, None) => {
            output::error(&"--out FILE is missing: a report of several folders has no folder of its own");
            return End::BadInput;
        }
        (folders, Some(out)) => {
            if let Err(why) = output::check_file(out) {
                output::error(&format!("--out {}: {why}", out.display()));
                return End::BadInput;
            }
            match folders {
                [folder] => report::write_to(folder, out),
                folders => report::write_several(folders, out),
            }
        }
    };
    match written {
        Ok(path) => {
            output::data(&format!("report: {}\n", path.display()));
            if arguments.open {
                open(&path);
            }
            End::Done
        }
        Err(error) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
    }
}

/// The report is written whether or not there is a browser: a failure is only said.
fn open(path: &Path) {
    let quiet = || Stdio::null();
    let status = Command::new(OPEN).arg(path).stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => output::message(&format!("warning: {OPEN} ended with {status}; open the file yourself")),
        Err(error) => output::message(&format!("warning: {OPEN} did not start ({error}); open the file yourself")),
    }
}
