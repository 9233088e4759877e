//! `incast show`: a bundled file, so that it can be adapted.

use crate::{End, arguments, bundled, output};

/// Prints it as it is.
pub fn show(arguments: &arguments::Show) -> End {
    match bundled::find(&arguments.name) {
        Ok((_, content)) => {
            output::data(&String::from_utf8_lossy(content));
            End::Done
        }
        Err(fault) => {
            output::error(&fault);
            End::BadInput
        }
    }
}
