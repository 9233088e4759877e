//! `incast`: which congestion control should this network run, and with which settings?

mod arguments;
mod bench;
mod bundled;
mod calibrate;
mod check;
mod clock_sync;
mod export;
mod flows;
mod import;
mod interrupt;
mod list;
mod output;
mod plan;
mod progress;
mod report;
mod reproduce;
mod run;
mod schema;
mod show;
mod table;
mod trace;
mod validate;
mod version;

use arguments::{Cli, Command};
use clap::Parser;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// It requests large pages, without which a large fabric waits for address translation (docs/performance.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How a command ended.
enum End {
    /// Done: exit code 0.
    Done,
    /// A run failed, or the machine did: exit code 1.
    Failed,
    /// The input is at fault: exit code 2.
    BadInput,
}

fn main() -> ExitCode {
    let end = match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Table(arguments) => table::table(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Flows(arguments) => flows::flows(&arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::BenchCase(arguments) => bench::one(&arguments),
        Command::ClockSync(arguments) => clock_sync::clock_sync(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
    };
    ExitCode::from(match end {
        End::Done => 0,
        End::Failed => 1,
        End::BadInput => 2,
    })
}
