//! What can be typed.

use crate::{clock_sync, output::local, workload};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use incast_interop::device::ports::Class;
use incast_lab::{
    results::{compact::parse_column, record::TABLES},
    run::shards::Shard,
    scenario::{Column, Indifference},
    tune::{Over, Within},
};
use incast_units::{Rate, Time};
use std::{num::NonZeroUsize, path::PathBuf};

/// Simulate datacenter networks packet by packet and compare their congestion controls.
#[derive(Debug, Parser)]
#[command(name = "incast", version = crate::version::text(), arg_required_else_help = true)]
pub struct Cli {
    /// Colours in help and errors: never with NO_COLOR or where no terminal reads, if auto
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: clap::ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and compare their schemes
    Run(Run),
    /// Parse and validate scenarios; print the effective values, the runs and the expected cost
    Check(Check),
    /// Search for the values of a few keys that are best in one number
    Tune(Tune),
    /// Write what switches or hosts must be told so that they do what was simulated
    Config(Config),
    /// Divide the runs of scenarios into shards of about equal cost, for several machines: run --shard does one
    Plan(Plan),
    /// Join what `run --shard` did into the results of one machine, if every run is there
    Gather(Gather),
    /// Run the bundled scenarios of published tables and figures and judge their claims
    Reproduce(Reproduce),
    /// Write one self-contained HTML file about the results of a scenario
    Report(Report),
    /// Print chosen numbers of a scenario's results, one line for each scheme; or write such tables into pages
    Table(Table),
    /// Join a table of all runs of a scenario into one file, with columns for scheme, seed and grid point
    Export(Export),
    /// Two results beside each other: before and after a setting, a law or a version
    Diff(Diff),
    /// List schemes, workloads, topologies or bundled scenarios
    List(List),
    /// Print the file of a bundled scenario, so that it can be adapted
    Show(Show),
    /// Record the life of one flow or port: Perfetto trace, pcapng, and a few lines
    Trace(Trace),
    /// List the flows of a scenario's workloads as CSV, without simulating them
    Flows(Flows),
    /// Make a workload's description of sizes or of a log of flows
    Workload(workload::Arguments),
    /// Fit a law's table to measurements
    Calibrate(Calibrate),
    /// Make a scenario of another simulator's input files, or of a switch's; logs of flows: `incast workload fit`
    Import(Import),
    /// Re-run peers' reference cases and print ours against theirs
    Validate(Validate),
    /// Measure what the engine costs on the canonical cases
    Bench(Bench),
    /// Measure one case in this process
    #[command(hide = true)]
    BenchCase(BenchCase),
    /// Synchronise the clocks of modelled hosts by probes: Huygens and two-way averaging
    ClockSync(Box<clock_sync::Arguments>),
    /// Print the JSON schema of scenarios, or their reference page
    Schema(Schema),
    /// Print what a shell completes command lines with
    Completions(Completions),
    /// Write manual pages, one for each command
    Man(Man),
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder: one of those in `manpath`, with man1 behind it
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Which runs of which scenarios.
#[derive(Debug, Args)]
pub struct Selection {
    /// Scenario files, or names of bundled ones, such as marimo/table1
    #[arg(required = true, value_name = "SCENARIO.toml")]
    pub scenarios: Vec<PathBuf>,
    /// Change a value: scheme.dctcp.gain=0.1, workload.incast.fan_in=16
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Only some of the runs: scheme=dctcp,load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// Run N seeds: the scenario's first ones, continued upwards
    #[arg(long, value_name = "N", value_parser = positive)]
    pub seeds: Option<NonZeroUsize>,
    /// The short form: with the changes of the scenario's table `short`
    #[arg(long)]
    pub short: bool,
}

/// A whole number that is not zero.
fn positive(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|_| "expected a whole number, allowed is 1 or more".to_owned())?;
    NonZeroUsize::new(number).ok_or_else(|| "allowed is 1 or more".to_owned())
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as scheme.dctcp.gain=0.1".to_owned()),
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// What to run.
    #[command(flatten)]
    pub selection: Selection,
    /// How.
    #[command(flatten)]
    pub running: Running,
    /// Print what summary.json holds instead of tables
    #[arg(long)]
    pub json: bool,
    /// Only the runs of shard I of N, into a folder of its own in --out, where finished ones are kept; `gather` joins
    /// them
    #[arg(long, value_name = "I/N", conflicts_with_all = ["json", "wide", "resume"])]
    pub shard: Option<Shard>,
}

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub struct Tune {
    /// Scenario file, or the name of a bundled one
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// The number that is to be good, as CLASS:METRIC or METRIC of all flows: background:slowdown.p99
    #[arg(long = "for", value_name = "NUMBER", value_parser = parse_column)]
    pub objective: Column,
    /// A key and its values: scheme.dctcp.gain=0.02..0.5, switch.ecn.at=30KB,65KB,200KB; up to five of them
    #[arg(long, value_name = "KEY=FROM..TO|LIST", required = true)]
    pub over: Vec<Over>,
    /// A number that may get worse by so much: incast:fct_us.p99=+10%
    #[arg(long, value_name = "NUMBER=+PERCENT")]
    pub within: Vec<Within>,
    /// The scheme, each on its own if there are several [default: those of the keys, or all]
    #[arg(long = "scheme", value_name = "NAME")]
    pub schemes: Vec<String>,
    /// Full runs that each scheme may cost
    #[arg(long, value_name = "N", default_value = "60")]
    pub budget: u32,
    /// Vary load, buffer and round trip by so much at the end; 0% for not at all
    #[arg(long, value_name = "PERCENT", default_value = "20%")]
    pub vary: Indifference,
    /// Change a value; the search starts from there: scheme.dctcp.gain=0.1
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Which grid point: load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// The short form: with the changes of the scenario's table `short`
    #[arg(long)]
    pub short: bool,
    /// How.
    #[command(flatten)]
    pub running: Running,
    /// Be shard I of N, which search together: the same command on each of N machines that see --out, at one time. Each does its part
    /// of all runs in a folder of its own there, and all end with the same advice
    #[arg(long, value_name = "I/N", conflicts_with = "force")]
    pub shard: Option<Shard>,
    /// Print what tune.json holds instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct Config {
    /// Scenario file, or the name of a bundled one
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// For what
    #[arg(long = "for", value_name = "TARGET", value_enum)]
    pub target: Target,
    /// The scheme [default: the first]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// For hosts of this class alone, where classes have hosts and laws of their own
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// A switch of the scenario, where there are several kinds of them: leaf0
    #[arg(long, value_name = "NAME")]
    pub switch: Option<String>,
    /// The device's ports: its config_db.json, or each as NAME@RATE: Ethernet0@25Gbps
    #[arg(long, value_name = "FILE|NAME@RATE", num_args = 1..)]
    pub ports: Vec<String>,
    /// Queue and DSCP of each priority that the scheme uses: 1=3:26 0=6:48 [default: priority p has queue 7 - p and DSCP
    /// 8 times that; a single priority has all packets]
    #[arg(long, value_name = "PRIORITY=QUEUE:DSCP", num_args = 1..)]
    pub queues: Vec<Class>,
    /// With --for sonic: only thresholds of marks (WRED_PROFILE, and which QUEUE has which); buffers, schedulers and maps of
    /// DSCPs stay as the switch has them
    #[arg(long)]
    pub marks_only: bool,
    /// Change a value: scheme.dctcp.gain=0.1, switch.buffer.total=16MB
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Which grid point: load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// Folder for the files [default: stdout]
    #[arg(long, value_name = "DIR", value_parser = local())]
    pub out: Option<PathBuf>,
    /// Write also the scenario with the values that devices take
    #[arg(long, value_name = "SCENARIO.toml", value_parser = local())]
    pub as_rounded: Option<PathBuf>,
    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,
}

/// What can be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// A switch that runs SONiC: tables of CONFIG_DB, to be merged by `config load`
    Sonic,
    /// A switch that runs Arista EOS: ECN, flow control and the order of queues; not tried on a device
    Eos,
    /// A switch that runs Cisco NX-OS: the same
    Nxos,
    /// A Linux host: sysctl, routes, links
    Linux,
    /// A host with NVIDIA NICs: DCQCN and flow control; not tried on a device
    Mlnx,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// What to run.
    #[command(flatten)]
    pub selection: Selection,
    /// Shards
    #[arg(long, value_name = "N", value_parser = positive)]
    pub shards: NonZeroUsize,
    /// Folder of the results, in which plan.json is written; every shard needs it, or a copy
    #[arg(long, value_name = "DIR", default_value = "results", value_parser = local())]
    pub out: PathBuf,
    /// Write also what submits the shards: slurm.sh, a job array, or kubernetes.yaml, an Indexed Job
    #[arg(long = "for", value_name = "ENGINE", value_enum)]
    pub engine: Option<Engine>,
    /// Runs at once in each shard, for --for
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1", requires = "engine")]
    pub jobs: NonZeroUsize,
    /// Threads of each simulation, for --for
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1", requires = "engine")]
    pub threads: NonZeroUsize,
}

/// What runs shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// A job array
    Slurm,
    /// An Indexed Job
    Kubernetes,
}

/// Arguments of `gather`.
#[derive(Debug, Args)]
pub struct Gather {
    /// Folders that `plan` and `run --shard` had as --out
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Folder of the results; each scenario gets a folder of its name in it [default: the first DIR]
    #[arg(long, value_name = "DIR", value_parser = local())]
    pub out: Option<PathBuf>,
    /// Where the scenario is now, if not where the plan found it
    #[arg(long = "scenario", value_name = "SCENARIO.toml")]
    pub scenarios: Vec<PathBuf>,
    /// Print every number in one table, however wide, and all published numbers
    #[arg(long)]
    pub wide: bool,
}

/// How to run, and what to do with results that are there already.
#[derive(Debug, Args)]
pub struct Running {
    /// Folder of the results; each scenario gets a folder of its name in it
    #[arg(long, value_name = "DIR", default_value = "results", value_parser = local())]
    pub out: PathBuf,
    /// Runs at once [default: cores / threads]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub jobs: Option<NonZeroUsize>,
    /// Threads of each simulation; results do not depend on it
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1")]
    pub threads: NonZeroUsize,
    /// A run that takes longer than this time, such as 10s, has failed; the others go on
    #[arg(long, value_name = "TIME")]
    pub run_timeout: Option<Time>,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Keep the finished runs of an earlier, interrupted command
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Overwrite the results that --out holds
    #[arg(long)]
    pub force: bool,
    /// Print every number in one table, however wide, and all published numbers
    #[arg(long)]
    pub wide: bool,
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").args(["names", "all", "list"]))]
pub struct Reproduce {
    /// Scenarios such as marimo/table1, or systems such as marimo: all that is published of them
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Everything
    #[arg(long)]
    pub all: bool,
    /// List what there is, which is also what happens without a name
    #[arg(long)]
    pub list: bool,
    /// Take the scenarios from the folders of systems in DIR instead of the bundled ones
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Change a value in every scenario: scheme.dctcp.gain=0.1
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Run N seeds: each scenario's first ones, continued upwards
    #[arg(long, value_name = "N", value_parser = positive)]
    pub seeds: Option<NonZeroUsize>,
    /// The short form of each scenario that has one
    #[arg(long)]
    pub short: bool,
    /// How.
    #[command(flatten)]
    pub running: Running,
    /// Print the rows of all summaries and the claims as JSON instead of tables; with --list, the list
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Folders of results, which `run` prints as "results"; several need --out
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    /// Where the report goes; default: report.html in the folder
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub out: Option<PathBuf>,
    /// Open it in a browser
    #[arg(long)]
    pub open: bool,
}

/// Arguments of `table`.
#[derive(Debug, Args)]
pub struct Table {
    /// Folder of a scenario's results, which `run` prints as "results"
    #[arg(value_name = "DIR", required_unless_present = "check", conflicts_with = "check")]
    pub folder: Option<PathBuf>,
    /// What it shows.
    #[command(flatten)]
    pub style: TableStyle,
    /// As Markdown
    #[arg(long, conflicts_with = "update")]
    pub markdown: bool,
    /// Rewrite the tables of these results in Markdown pages, each between <!-- incast table NAME [options] --> and
    /// <!-- end of table -->; and check the claims about them, each as <!-- claim NAME { … } --> with what a
    /// [[paper.claim]] has
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["columns", "by_number", "only"])]
    pub update: Vec<PathBuf>,
    /// Say which tables of bundled scenarios in Markdown pages, and which claims about them, are stale: results, or the
    /// scenario, have changed
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["columns", "by_number", "only", "markdown", "update"])]
    pub check: Vec<PathBuf>,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Folder of results before the change
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// Folder of results after it
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Numbers, each as CLASS:METRIC or METRIC of all flows: small:slowdown.p99 [default: those that the verdict of AFTER is about]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_column)]
    pub columns: Vec<Column>,
    /// Changes below this part do not count
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    pub indifferent: Indifference,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Folder of a scenario's results, which `run` prints as "results"
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Which table
    #[arg(long, value_name = "NAME", default_value = "flows", value_parser = TABLES)]
    pub table: String,
    /// The file to write, Parquet or CSV by its ending [default: DIR/TABLE.parquet]
    #[arg(long, short, value_name = "FILE", value_parser = local())]
    pub out: Option<PathBuf>,
}

/// What a table shows.
#[derive(Clone, Debug, Args)]
pub struct TableStyle {
    /// Numbers, each as CLASS:METRIC or METRIC of all flows: small:slowdown.p99,drops [default: those of the scenario's
    /// own table]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_column)]
    pub columns: Vec<Column>,
    /// A table for each number, with a column for each grid point, in place of one for each grid point
    #[arg(long)]
    pub by_number: bool,
    /// The scenario's claims: what was published, what was measured, and the status
    #[arg(long, conflicts_with_all = ["columns", "by_number"])]
    pub claims: bool,
    /// Only some of the rows: scheme=dctcp,load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// What to check.
    #[command(flatten)]
    pub selection: Selection,
    /// Cost, load and hosts only: neither the runs nor the effective values
    #[arg(long, conflicts_with = "json")]
    pub brief: bool,
    /// As JSON, a list of one object for each scenario
    #[arg(long)]
    pub json: bool,
    /// End with 2 where there is a warning, or a run is too short
    #[arg(long)]
    pub strict: bool,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Congestion controls with their parameters
    Schemes,
    /// Bundled flow-size distributions
    Workloads,
    /// Kinds of fabrics with their keys
    Topologies,
    /// Bundled scenarios
    Scenarios,
    /// Numbers of `summary.json` with unit and meaning
    Metrics,
    /// Thresholds of marks that are published or shipped: values of `switch.profile`
    Profiles,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// What to list
    #[arg(value_enum)]
    pub what: Listed,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// A scenario, such as marimo/table1, or a file beside one
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Arguments of `trace`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).multiple(true).args(["flow", "port"])))]
pub struct Trace {
    /// Scenario file, or the name of a bundled one
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// A flow: its row in flows.parquet, or SOURCE:SEQUENCE
    #[arg(long, value_name = "N|SOURCE:SEQUENCE")]
    pub flow: Option<String>,
    /// A port, such as s0->h0, or a host for both directions of its link; with --flow, that flow there
    #[arg(long, value_name = "PORT")]
    pub port: Option<String>,
    /// Write a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write a capture for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcapng: Option<PathBuf>,
    /// Bytes of each frame in the capture [default: the headers; payloads are zero]
    #[arg(long, value_name = "BYTES", requires = "pcapng", value_parser = clap::value_parser!(u32).range(64..))]
    pub snaplen: Option<u32>,
    /// Record from this time on
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub from: Time,
    /// Record before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<Time>,
    /// Change a value: scheme.dctcp.gain=0.1, workload.incast.fan_in=16
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Which of the runs: scheme=dctcp,load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// Which seed, the scenario's or any other
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `flows`.
#[derive(Debug, Args)]
pub struct Flows {
    /// Scenario file, or the name of a bundled one
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Whose laws and priorities the classes have; all schemes have the same flows [default: the first]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Change a value: workload.incast.fan_in=16
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub sets: Vec<(String, String)>,
    /// Which of the runs: load=0.4
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub only: Vec<String>,
    /// Which seed, the scenario's or any other
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Of the short form, where the scenario has one
    #[arg(long)]
    pub short: bool,
    /// Write them to this file [default: stdout]
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub out: Option<PathBuf>,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// What to calibrate.
    #[command(subcommand)]
    pub what: Calibrated,
}

/// What can be calibrated.
#[derive(Debug, Subcommand)]
pub enum Calibrated {
    /// Marimo's map from the share of marked packets to the load of the bottleneck
    Marimo(CalibrateMarimo),
}

/// Arguments of `calibrate marimo`.
#[derive(Debug, Args)]
pub struct CalibrateMarimo {
    /// Write the table to this file; it keeps its content if the new table is rejected [default: stdout]
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub out: Option<PathBuf>,
    /// Only check this table and print it
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub check: Option<PathBuf>,
    /// Fit these samples (CSV: share,load,bytes) instead of simulating
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "delay", "mtu", "burst", "rtts", "write_samples"])]
    pub samples: Option<PathBuf>,
    /// Write the samples as CSV
    #[arg(long, value_name = "FILE")]
    pub write_samples: Option<PathBuf>,
    /// Rate of the bottleneck [default: 100Gbps]
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Delay of each of the three links of the path [default: 1.5us]
    #[arg(long)]
    pub delay: Option<Time>,
    /// Payload bytes of a packet [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=9000))]
    pub mtu: Option<u32>,
    /// Packets of a burst [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub burst: Option<u32>,
    /// Round trips observed at each point [default: 250]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rtts: Option<u32>,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Simulations at once [default: cores]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub jobs: Option<NonZeroUsize>,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Whose files.
    #[command(subcommand)]
    pub from: Imported,
}

/// Whose files can be imported.
#[derive(Debug, Subcommand)]
pub enum Imported {
    /// The ns-3 simulator of HPCC and what descends from it
    Hpcc(ImportHpcc),
    /// csg-htsim's connection matrices and fat-trees
    Htsim(ImportHtsim),
    /// SONiC's config_db.json: the [switch] table of a scenario
    Sonic(ImportSonic),
}

/// Arguments of `import sonic`.
#[derive(Debug, Args)]
pub struct ImportSonic {
    /// The configuration of a switch
    #[arg(value_name = "CONFIG_DB.json")]
    pub config: PathBuf,
}

/// Arguments of `import hpcc`.
#[derive(Debug, Args)]
pub struct ImportHpcc {
    /// The file TOPOLOGY_FILE names
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,
    /// The file FLOW_FILE names
    #[arg(long, value_name = "FILE")]
    pub flows: PathBuf,
    /// The configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Path of each flow, as source routes (CSV: src,dst,data_path,ack_path)
    #[arg(long, value_name = "FILE")]
    pub paths: Option<PathBuf>,
    /// What to write.
    #[command(flatten)]
    pub to: ImportTo,
}

/// Arguments of `import htsim`.
#[derive(Debug, Args)]
pub struct ImportHtsim {
    /// The connection matrix
    #[arg(long, value_name = "FILE")]
    pub matrix: PathBuf,
    /// The topology of a fat-tree [default: the smallest of three tiers, with links of 100 Gbps and 1 us]
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// The law of the scheme
    #[arg(long, value_name = "LAW", default_value = "ndp")]
    pub law: String,
    /// What to write.
    #[command(flatten)]
    pub to: ImportTo,
}

/// What an import writes.
#[derive(Debug, Args)]
pub struct ImportTo {
    /// The scenario to write; its flows, and its topology where that is a file, are written beside it
    #[arg(long, short, value_name = "SCENARIO.toml", value_parser = local())]
    pub out: PathBuf,
    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Only these cases [default: all]
    #[arg(value_name = "CASE")]
    pub cases: Vec<String>,
    /// Folder of the reference cases, of which all that it has are run [default: validation/ns3 and validation/htsim]
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Folder of the imported scenarios and of the results
    #[arg(long, value_name = "DIR", default_value = "results/validation", value_parser = local())]
    pub out: PathBuf,
    /// Seeds of the cases in which switches draw
    #[arg(long, value_name = "N", value_parser = positive, default_value = "20")]
    pub seeds: NonZeroUsize,
    /// Runs of a case at once [default: cores]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub jobs: Option<NonZeroUsize>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// Only these cases
    #[arg(long = "case", value_name = "CASE", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// With these laws instead of each case's own, and in-switch algorithms: dcqcn+mercury
    #[arg(long = "law", value_name = "LAW", value_delimiter = ',')]
    pub laws: Vec<String>,
    /// With these numbers of threads
    #[arg(long, value_name = "N", value_parser = positive, value_delimiter = ',', default_value = "1,2")]
    pub threads: Vec<NonZeroUsize>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench-case`.
#[derive(Debug, Args)]
pub struct BenchCase {
    /// The case
    pub case: String,
    /// The law
    pub law: String,
    /// Threads of each simulation
    #[arg(value_parser = positive)]
    pub threads: NonZeroUsize,
    /// Seeds of a pass
    #[arg(long)]
    pub seeds: Option<u64>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The reference page, as Markdown
    #[arg(long)]
    pub reference: bool,
    /// The page of metrics, as Markdown
    #[arg(long, conflicts_with = "reference")]
    pub metrics: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
