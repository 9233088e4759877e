//! `rig-traffic`: the traffic of the rigs that run real kernels.
//!
//! One process plays every flow of a plan between network namespaces of one kernel. It knows both ends of each
//! connection, so that a flow is nothing but its bytes: no header, and every byte that arrives is compared.

// Not used: that it is read makes cargo compile this crate again in another tree (.cargo/config.toml).
const _: Option<&str> = option_env!("INCAST_TREE");

mod arguments;
mod churn;
mod engine;
mod payload;
mod plan;
mod play;
mod queue;
mod sys;

use arguments::{Cli, Command};
use clap::Parser;
use std::path::Path;
use std::process::ExitCode;

/// How a command ended, other than well.
enum Fault {
    /// A flow failed, or the machine did while flows were under way: exit code 1. What there is of results is written.
    Failed(String),
    /// The input is at fault, or what it asks for cannot begin on this machine: exit code 2. Nothing is written.
    BadInput(String),
    /// Nothing is wrong but that flows were not done at the deadline: exit code 4. The results are complete.
    Unfinished(String),
}

fn main() -> ExitCode {
    let (code, says) = match run(Cli::parse().command) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Fault::Failed(says)) => (1, says),
        Err(Fault::BadInput(says)) => (2, says),
        Err(Fault::Unfinished(says)) => (4, says),
    };
    eprintln!("rig-traffic: {says}");
    ExitCode::from(code)
}

fn run(command: Command) -> Result<(), Fault> {
    match command {
        Command::Play(arguments) => {
            let (name, watch) = (arguments.plan.display(), arguments.watch());
            let text = std::fs::read_to_string(&arguments.plan)
                .map_err(|error| Fault::BadInput(format!("{name}: {error}")))?;
            let flows = plan::read(&text).map_err(|fault| Fault::BadInput(format!("{name}: {fault}")))?;
            let played = play::play(
                &flows,
                arguments.settings(),
                arguments.ecn_check,
                arguments.deadline_ns(),
                watch.as_ref().map(|(watch, _)| watch),
            )
            .map_err(|error| Fault::BadInput(error.to_string()))?;
            let keep = |path: &Path, text: &str| {
                write(path, text).map_err(|error| Fault::Failed(format!("{}: {error}", path.display())))
            };
            if let Some((_, samples)) = &watch {
                keep(samples, &queue::csv(&played.samples))?;
            }
            keep(&arguments.out, &play::csv(&played.records))?;
            let bytes: u64 = played.records.iter().map(|record| record.received).sum();
            let failed: Vec<_> =
                played.records.iter().filter_map(|record| Some((record.id, record.failure.as_ref()?))).collect();
            println!(
                "rig-traffic: {} flows, {bytes} bytes, {} failed, origin {} ns",
                played.records.len(),
                failed.len(),
                played.origin
            );
            for (id, failure) in failed.iter().take(8) {
                eprintln!("rig-traffic: flow {id}: {failure}");
            }
            if let Some(why) = played.broke {
                return Err(Fault::Failed(format!("the play broke: {why}")));
            }
            let all = played.records.len();
            match failed.len() {
                0 => Ok(()),
                count if count == played.unfinished => {
                    Err(Fault::Unfinished(format!("{count} of {all} flows were not done at the deadline")))
                }
                count => Err(Fault::Failed(format!("{count} of {all} flows failed"))),
            }
        }
        Command::Churn(arguments) => {
            let churned = churn::churn(&arguments.churn(), arguments.connection.settings())
                .map_err(|error| Fault::BadInput(error.to_string()))?;
            println!(
                "rig-traffic: {} connections, {} bytes, {} retransmissions, {} marked, {} failed",
                churned.complete, churned.bytes, churned.retransmissions, churned.marked, churned.failed
            );
            for failure in &churned.failures {
                eprintln!("rig-traffic: {failure}");
            }
            if let Some(why) = churned.broke {
                return Err(Fault::Failed(format!("the churn broke: {why}")));
            }
            if churned.failed > 0 || churned.complete == 0 {
                return Err(Fault::Failed(format!("{} connections failed", churned.failed)));
            }
            Ok(())
        }
    }
}

/// Writes a file as a whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, path)
}
