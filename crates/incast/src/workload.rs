//! `incast workload fit`: a workload from sizes or a log of flows.

use crate::{
    End,
    output::{self, local},
};
use clap::{Args, Subcommand};
use incast_lab::{
    atomic,
    text::{bytes, grouped, significant},
    trace::write,
    workload::{
        fit::{Fit, Window},
        flow_log::{self, FlowLog},
        trace::TraceError,
    },
};
use incast_units::{Rate, Time};
use std::{
    io::{BufReader, ErrorKind},
    path::{Path, PathBuf},
};

/// Arguments of `workload`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub what: OfWorkload,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum OfWorkload {
    /// Sizes, load of hosts and burstiness of a log of flows
    Fit(FitArguments),
}

/// Arguments of `workload fit`.
#[derive(Debug, Args)]
pub struct FitArguments {
    /// Sizes one a line, a CSV with a column of bytes, NetFlow as nfdump -o csv or rwcut print it, or sFlow as sflowtool
    /// -l does; `-` is standard input
    #[arg(value_name = "FILE")]
    pub log: PathBuf,
    /// Rate of hosts' links, for their load
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Write the table of sizes to this file [default: stdout]
    #[arg(long, value_name = "SIZES.csv", value_parser = local())]
    pub out: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn workload(arguments: &Arguments) -> End {
    let OfWorkload::Fit(arguments) = &arguments.what;
    if let Some(path) = &arguments.out
        && let Err(message) = output::check_file(path)
    {
        output::error(&format!("output file {}: {message}", path.display()));
        return End::BadInput;
    }
    let same =
        |path: &PathBuf| path.canonicalize().ok().is_some_and(|path| Some(path) == arguments.log.canonicalize().ok());
    if arguments.out.as_ref().is_some_and(same) {
        output::error(&format!("--out {}: is the log itself", arguments.log.display()));
        return End::BadInput;
    }
    if arguments.rate.is_some_and(|rate| rate.bps() == 0) {
        output::error(&"--rate 0bps: allowed is above 0");
        return End::BadInput;
    }
    let log = match read(&arguments.log) {
        Ok(log) => log,
        Err(message) => {
            output::error(&message);
            return End::BadInput;
        }
    };
    let fit = Fit::of(&log, arguments.rate);
    let table = fit.csv(&arguments.log.display().to_string());
    if let Some(path) = &arguments.out
        && let Err(error) = write(path, |out| out.write_all(table.as_bytes()))
    {
        output::error(&format!("{}: {error}", path.display()));
        return End::Failed;
    }
    if arguments.json {
        output::data(&format!("{:#}\n", serde_json::json!(fit)));
        return End::Done;
    }
    for line in describe(&fit, arguments.rate, arguments.out.as_deref()) {
        output::message(&line);
    }
    if arguments.out.is_none() {
        output::data(&table);
    }
    End::Done
}

fn read(path: &Path) -> Result<FlowLog, String> {
    let place = |line: usize| if line == 0 { path.display().to_string() } else { format!("{}:{line}", path.display()) };
    let log = if path == Path::new("-") {
        flow_log::read(std::io::stdin().lock())
    } else {
        let file = atomic::regular(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!(
                "{}: there is no such file, allowed is a log of flows or of sizes, or - for standard input",
                path.display()
            ),
            _ => format!("{}: {error}", path.display()),
        })?;
        flow_log::read(BufReader::new(file))
    };
    log.map_err(|TraceError { line, message }| format!("{}: {message}", place(line)))
}

fn rate_text(bps: f64) -> String {
    match bps {
        1e9.. => format!("{} Gbps", significant(bps / 1e9)),
        1e6.. => format!("{} Mbps", significant(bps / 1e6)),
        _ => format!("{} kbps", significant(bps / 1e3)),
    }
}

/// What the log comes to in words, and the workload that it makes.
fn describe(fit: &Fit, rate: Option<Rate>, out: Option<&Path>) -> Vec<String> {
    let sizes = &fit.sizes;
    let percent = |part: f64| format!("{}%", significant(part * 100.0));
    let mut lines = vec![format!(
        "{} flows of {}: mean {}, p50 {}, p90 {}, p99 {}, largest {}; the largest 1% have {} of the bytes",
        grouped(fit.flows as u64),
        bytes(fit.bytes),
        bytes(sizes.mean as u64),
        bytes(sizes.p50),
        bytes(sizes.p90),
        bytes(sizes.p99),
        bytes(sizes.max),
        percent(sizes.share_of_largest_percent)
    )];
    if let Some(hosts) = &fit.hosts {
        let mean =
            hosts.mean_bps.map_or(String::new(), |bps| format!("; each that sends has {} on average", rate_text(bps)));
        let (sender, receiver) = (&hosts.busiest_sender, &hosts.busiest_receiver);
        lines.push(format!(
            "{} hosts, {} send and {} receive{mean}; {} sends {} of the bytes, {} receives {}",
            hosts.count,
            hosts.senders,
            hosts.receivers,
            sender.0,
            percent(sender.1),
            receiver.0,
            percent(receiver.1)
        ));
    }
    if let Some((span, bursts)) = fit.span_s.zip(fit.bursts.as_ref()) {
        let gaps = bursts
            .gap_variation
            .map_or(String::new(), |it| format!("; gaps vary by {} times their mean (Poisson: 1)", significant(it)));
        lines.push(format!("starts over {} s, to {}{gaps}", significant(span), Time::from_ns(bursts.resolution_ns)));
        for window in &bursts.windows {
            lines.push(format!(
                "  in {}: index of dispersion {} (Poisson: 1), peak {} times the mean",
                Time::from_ns(window.ns),
                significant(window.dispersion),
                significant(window.peak_to_mean)
            ));
        }
        let distinct = |window: Option<&Window>, is_far: fn(f64) -> bool, what: &str| {
            window.filter(|window| is_far(window.dispersion)).map(|window| {
                format!(
                    "{what} than kind = \"poisson\" makes them, in windows of {}: a trace has starts as they are (docs/workloads.md)",
                    Time::from_ns(window.ns)
                )
            })
        };
        lines.extend(distinct(bursts.burstiest(), |index| index > 2.0, "starts are burstier"));
        lines.extend(distinct(bursts.smoothest(), |index| index < 0.5, "starts are more regular"));
    }
    lines.extend(fit.notes.iter().map(|note| format!("note: {note}")));
    let load = match fit.hosts.as_ref().map(|hosts| (hosts.load, hosts.mean_bps)) {
        Some((Some(load), _)) if load > 1.0 => {
            format!("load = {}        # more than a link carries: overload = true", significant(load))
        }
        Some((Some(load), _)) => format!("load = {}        # of each host that sends", significant(load)),
        Some((None, Some(_))) if rate.is_none() => {
            "load = …        # --rate 25Gbps, that of hosts' links, tells it".into()
        }
        _ => "load = …        # the log does not say".into(),
    };
    let file = out.map_or("\"SIZES.csv\"        # --out SIZES.csv writes it".into(), |path| {
        format!("{:?}", path.display().to_string())
    });
    lines.push(format!("[[workload]]\nclass = \"log\"\nkind = \"poisson\"\nsizes = {file}\n{load}"));
    lines
}
