//! The command line of incast as a library: its programs are `incast` itself and the Python package's script of that name.

mod apply;
mod arguments;
mod bench;
pub mod bundled;
mod calibrate;
mod check;
mod clock_sync;
mod config;
mod diff;
mod export;
mod flows;
mod import;
mod interrupt;
mod list;
mod output;
mod pages;
pub mod plan;
pub mod progress;
mod report;
mod reproduce;
mod run;
mod running;
mod schema;
mod shards;
mod shell;
mod show;
mod table;
mod trace;
mod tune;
mod validate;
pub mod version;
mod workload;

use arguments::{Cli, Command};
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// How a command ended.
enum End {
    /// Done: exit code 0.
    Done,
    /// A run failed, or the machine did: exit code 1; or the command was interrupted: 128 and the number of the signal.
    Failed,
    /// The input is at fault: exit code 2.
    BadInput,
}

/// What `--color` says, wherever it is: help and errors are printed before the line is understood.
fn colour(arguments: &[OsString]) -> ColorChoice {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--").collect();
    let value = words.iter().enumerate().rev().find_map(|(index, word)| match word.strip_prefix("--color")? {
        "" => words.get(index + 1).map(AsRef::as_ref),
        rest => rest.strip_prefix('='),
    });
    value.and_then(|word: &str| word.parse().ok()).unwrap_or(ColorChoice::Auto)
}

/// Does what a command line asks for, the program's name first. Returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parser = Cli::command().color(colour(&arguments));
    let command = match parser.try_get_matches_from(arguments).and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli.command,
        Err(said) => {
            // Help, the version, or what is wrong. What cannot be printed has no reader.
            let _ = said.print();
            return u8::try_from(said.exit_code()).unwrap_or(2);
        }
    };
    let end = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Tune(arguments) => tune::tune(&arguments),
        Command::Config(arguments) => config::config(&arguments),
        Command::Plan(arguments) => shards::plan(&arguments),
        Command::Gather(arguments) => shards::gather(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Table(arguments) => table::table(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Flows(arguments) => flows::flows(&arguments),
        Command::Workload(arguments) => workload::workload(&arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::BenchCase(arguments) => bench::one(&arguments),
        Command::ClockSync(arguments) => clock_sync::clock_sync(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    match end {
        End::Done => 0,
        End::Failed => interrupt::exit_code().unwrap_or(1),
        End::BadInput => 2,
    }
}
