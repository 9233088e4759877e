//! `incast bench`: every case in a process of its own, so that peak memory is the case's.

mod cases;

use self::cases::{CASES, Case, Measurement};
use crate::{End, arguments, output};
use incast_cc::registry::{AGENTS, LAWS};
use incast_lab::{
    plain::{Line, Plain},
    text::bytes,
};
use serde::{Deserialize, Serialize};
use std::{
    env,
    io::IsTerminal,
    process::{Command, Stdio},
};

/// What a child process prints.
#[derive(Serialize, Deserialize)]
struct Answer {
    measurement: Measurement,
    seeds: u64,
}

/// Measures the cases and prints a table or a list.
pub fn bench(arguments: &arguments::Bench) -> End {
    let known = |name: &String| CASES.iter().any(|case| case.name == name);
    if let Some(name) = arguments.cases.iter().find(|name| !known(name)) {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        output::error(&format!("--case {name}: no such case, allowed is {}", names.join(", ")));
        return End::BadInput;
    }
    let known = |name: &&String| {
        let (law, agent) = name.split_once('+').map_or((name.as_str(), None), |(law, agent)| (law, Some(agent)));
        LAWS.iter().any(|known| known.name == law)
            && agent.is_none_or(|agent| AGENTS.iter().any(|known| known.name == agent))
    };
    if let Some(name) = arguments.laws.iter().find(|name| !known(name)) {
        let laws: Vec<&str> = LAWS.iter().map(|law| law.name).collect();
        let agents: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        output::error(&format!(
            "--law {name}: no such law, allowed is {}; with an in-switch algorithm, such as dcqcn+mercury: {}",
            laws.join(", "),
            agents.join(", ")
        ));
        return End::BadInput;
    }
    let wanted = |case: &&Case| arguments.cases.is_empty() || arguments.cases.iter().any(|name| name == case.name);
    let mut measurements = Vec::new();
    let mut failed = false;
    for case in CASES.iter().filter(wanted) {
        let own: Vec<String> = case.laws.iter().map(|law| (*law).to_owned()).collect();
        for law in if arguments.laws.is_empty() { &own } else { &arguments.laws } {
            // The same seeds for every number of threads, so that rows can be compared.
            let mut seeds = None;
            for threads in &arguments.threads {
                if std::io::stderr().is_terminal() && !arguments.json {
                    output::message(&format!("{} {law} {threads} threads…", case.name));
                }
                match child(case.name, law, threads.get(), seeds) {
                    Ok(answer) => {
                        seeds = Some(answer.seeds);
                        measurements.push(answer.measurement);
                    }
                    Err(message) => {
                        output::error(&format!("{} {law} {threads} threads: {message}", case.name));
                        failed = true;
                    }
                }
            }
        }
    }
    if arguments.json {
        match serde_json::to_string_pretty(&measurements) {
            Ok(text) => output::data(&format!("{text}\n")),
            Err(error) => output::error(&error),
        }
    } else {
        output::data(&table(&measurements));
    }
    if failed { End::Failed } else { End::Done }
}

fn child(case: &str, law: &str, threads: usize, seeds: Option<u64>) -> Result<Answer, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["bench-case", case, law, &threads.to_string()]);
    if let Some(seeds) = seeds {
        command.args(["--seeds", &seeds.to_string()]);
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("its process ended with {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Keeps memory that a repetition gives back for the next one: what the system's clearing of fresh pages costs is
/// set-up, and a single long run pays it once.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: R15: mallopt only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
}

/// Measures one case in this process.
pub fn one(arguments: &arguments::BenchCase) -> End {
    keep_memory();
    let Some(case) = CASES.iter().find(|case| case.name == arguments.case) else {
        output::error(&format!("{}: no such case", arguments.case));
        return End::BadInput;
    };
    let measured = case.measure(&arguments.law, arguments.threads.get(), arguments.seeds);
    let text = match measured {
        Ok((measurement, seeds)) => {
            serde_json::to_string(&Answer { measurement, seeds }).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => {
            output::data(&format!("{text}\n"));
            End::Done
        }
        Err(message) => {
            output::error(&message);
            End::Failed
        }
    }
}

fn table(measurements: &[Measurement]) -> String {
    let header = [
        "case",
        "law",
        "threads",
        "packet-hops",
        "events/hop",
        "CPU s",
        "wall s",
        "ns/packet-hop",
        "peak RSS",
        "digest",
    ];
    let line = |row: &Measurement| {
        Line::Cells(vec![
            row.case.clone(),
            row.law.clone(),
            row.threads.to_string(),
            row.packet_hops.to_string(),
            format!("{:.2}", row.events as f64 / row.packet_hops.max(1) as f64),
            format!("{:.2}", row.cpu_s),
            format!("{:.2}", row.wall_s),
            format!("{:.1}", row.ns_per_packet_hop),
            bytes(row.peak_rss_bytes),
            row.digest.chars().take(12).collect(),
        ])
    };
    Plain { header: header.map(str::to_owned).to_vec(), lines: measurements.iter().map(line).collect() }
        .draw(output::width())
}
