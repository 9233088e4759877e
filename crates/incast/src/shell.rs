//! `incast completions` and `incast man`: what a shell and `man` know of the command line.

use crate::{
    End,
    arguments::{self, Cli},
    output,
};
use clap::CommandFactory;
use std::fs;

/// Prints the completions of a shell.
pub fn completions(arguments: &arguments::Completions) -> End {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "incast", &mut script);
    output::data(&String::from_utf8_lossy(&script));
    End::Done
}

/// Writes the manual pages.
pub fn man(arguments: &arguments::Man) -> End {
    let out = &arguments.out;
    match fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out)) {
        Ok(()) => End::Done,
        Err(error) => {
            output::error(&format!("--out {}: {error}", out.display()));
            End::BadInput
        }
    }
}
