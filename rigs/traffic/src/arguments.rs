//! The command line.

use crate::plan::{self, Host};
use crate::queue::Watch;
use crate::sys::Settings;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// What is printed for `--help` and beside a fault.
pub const USAGE: &str = "\
usage: rig-traffic play --plan PLAN.csv --congestion NAME --out FLOWS.csv
           [--receiver-congestion NAME] [--socket-buffer BYTES] [--ecn-check] [--deadline SECONDS]
           [--sample-queue NS:DEVICE --sample-interval-us N --samples QUEUE.csv]
       rig-traffic churn --connections N --seconds S --congestion NAME
           --source-namespace NS --source ADDRESS --destination-namespace NS --destination ADDRESS
           [--bytes MOST] [--socket-buffer BYTES]

play   plays the flows of a plan between the network namespaces of this kernel, compares every byte that arrives
       with what was sent, and writes one row per flow. --ecn-check: a flow without ECN has failed. --sample-queue: what
       the root queueing discipline of a device holds, every N us while flows are under way.
churn  keeps N short connections under way for S seconds, of 1 to MOST bytes (64 KiB by default).
A namespace is a name below /run/netns, or - for the own one. Exit code 0: all went well; 1: a flow
failed, or the machine did; 2: bad input; 4: nothing wrong but flows that were not done at the deadline.
";

/// What is asked for.
pub enum Command {
    /// `--help`.
    Help,
    /// `play`.
    Play {
        /// The plan's file.
        plan: PathBuf,
        /// Where results go.
        out: PathBuf,
        /// Of the connections.
        settings: Settings,
        /// Whether a flow without ECN has failed.
        ecn_check: bool,
        /// When what has not ended has failed.
        deadline_ns: u64,
        /// The queue that is watched, and where its samples go.
        watch: Option<(Watch, PathBuf)>,
    },
    /// `churn`.
    Churn {
        /// What to do.
        churn: crate::churn::Churn,
        /// Of the connections.
        settings: Settings,
    },
}

/// The longest time that may be asked for.
const MOST_SECONDS: u64 = 1_000_000;
/// How long connections of `churn` may take to end: once there are no new ones nothing is in their way any more, but who
/// has lost enough packets in a row sends the next one only 120 s after the last (TCP_RTO_MAX).
const GRACE_SECONDS: u64 = 300;

struct Options(BTreeMap<&'static str, String>);

impl Options {
    fn read(
        arguments: impl Iterator<Item = String>,
        values: &[&'static str],
        flags: &[&'static str],
    ) -> Result<Self, String> {
        let mut found = BTreeMap::new();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let known = |names: &[&'static str]| names.iter().copied().find(|name| *name == argument);
            let (name, value) = if let Some(name) = known(flags) {
                (name, String::new())
            } else if let Some(name) = known(values) {
                (name, arguments.next().ok_or_else(|| format!("{name} needs a value"))?)
            } else {
                return Err(format!(
                    "unknown argument \"{argument}\"; there are {} {}",
                    values.join(" "),
                    flags.join(" ")
                ));
            };
            if found.insert(name, value).is_some() {
                return Err(format!("{name} stands there twice"));
            }
        }
        Ok(Self(found))
    }

    fn text(&mut self, name: &'static str) -> Result<String, String> {
        self.0.remove(name).ok_or_else(|| format!("{name} is missing"))
    }

    fn number(&mut self, name: &'static str, least: u64, most: u64) -> Result<Option<u64>, String> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
            _ => Err(format!("{name} is a whole number from {least} to {most}; found \"{text}\"")),
        }
    }

    fn required_number(&mut self, name: &'static str, least: u64, most: u64) -> Result<u64, String> {
        self.number(name, least, most)?.ok_or_else(|| format!("{name} is missing"))
    }

    fn host(&mut self, namespace: &'static str, address: &'static str) -> Result<Host, String> {
        let inside = self.text(namespace)?;
        let at = self.text(address)?;
        Ok(Host {
            namespace: plan::namespace(&inside).map_err(|fault| format!("{namespace}: {fault}"))?,
            address: FromStr::from_str(&at)
                .map_err(|_| format!("{address} is an IPv4 address; found \"{at}\""))?,
        })
    }

    fn watch(&mut self) -> Result<Option<(Watch, PathBuf)>, String> {
        let interval = self.number("--sample-interval-us", 1, 1_000_000_000)?;
        match (self.0.remove("--sample-queue"), interval, self.0.remove("--samples")) {
            (None, None, None) => Ok(None),
            (Some(queue), Some(interval), Some(samples)) => {
                let (namespace, device) = queue
                    .split_once(':')
                    .ok_or_else(|| format!("--sample-queue is NS:DEVICE; found \"{queue}\""))?;
                let watch = Watch {
                    namespace: plan::namespace(namespace)
                        .map_err(|fault| format!("--sample-queue: {fault}"))?,
                    device: device.to_owned(),
                    interval_ns: interval * 1000,
                };
                Ok(Some((watch, samples.into())))
            }
            _ => Err("--sample-queue, --sample-interval-us and --samples need each other".to_owned()),
        }
    }

    fn settings(&mut self) -> Result<Settings, String> {
        let congestion = self.text("--congestion")?;
        let congestion = plan::congestion(&congestion).map_err(|fault| format!("--{fault}"))?;
        let socket_buffer = self.number("--socket-buffer", 4096, 1 << 29)?;
        let socket_buffer = socket_buffer.map(|bytes| i32::try_from(bytes).expect("below 2^29"));
        let receiver = self.0.remove("--receiver-congestion");
        let receiver = receiver
            .map(|name| plan::congestion(&name).map_err(|fault| format!("--receiver-congestion: {fault}")))
            .transpose()?;
        Ok(Settings { congestion, receiver, socket_buffer })
    }
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// Says what is wrong and what is allowed.
pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let command = arguments.next().ok_or("a command is missing: play or churn")?;
    match command.as_str() {
        "--help" | "-h" | "help" => Ok(Command::Help),
        "play" => {
            let values = [
                "--plan",
                "--congestion",
                "--receiver-congestion",
                "--out",
                "--socket-buffer",
                "--deadline",
                "--sample-queue",
                "--sample-interval-us",
                "--samples",
            ];
            let mut options = Options::read(arguments, &values, &["--ecn-check"])?;
            Ok(Command::Play {
                plan: options.text("--plan")?.into(),
                out: options.text("--out")?.into(),
                settings: options.settings()?,
                ecn_check: options.text("--ecn-check").is_ok(),
                deadline_ns: options.number("--deadline", 1, MOST_SECONDS)?.unwrap_or(600) * 1_000_000_000,
                watch: options.watch()?,
            })
        }
        "churn" => {
            let values = [
                "--connections",
                "--seconds",
                "--congestion",
                "--source-namespace",
                "--source",
                "--destination-namespace",
                "--destination",
                "--bytes",
                "--socket-buffer",
            ];
            let mut options = Options::read(arguments, &values, &[])?;
            Ok(Command::Churn {
                churn: crate::churn::Churn {
                    connections: options.required_number("--connections", 1, 20_000)?,
                    duration_ns: options.required_number("--seconds", 1, MOST_SECONDS)? * 1_000_000_000,
                    most_bytes: options.number("--bytes", 1, 1 << 40)?.unwrap_or(64 << 10),
                    grace_ns: GRACE_SECONDS * 1_000_000_000,
                    source: options.host("--source-namespace", "--source")?,
                    destination: options.host("--destination-namespace", "--destination")?,
                },
                settings: options.settings()?,
            })
        }
        other => Err(format!("unknown command \"{other}\"; there are play and churn")),
    }
}
