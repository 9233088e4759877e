//! `incast clock-sync`: how well the clocks of modelled hosts agree, method by method.

use crate::{End, output};
use clap::{Args, ValueEnum};
use incast_lab::{
    clocks::{self, AsymmetricLink, Named, NoiseShape, SyncError, SyncSettings, Synchronisation},
    plain::{Line, Plain},
};
use incast_units::{Time, UnitError};
use std::fmt::Write;

/// Its arguments; what is not given has the default of `SyncSettings`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Hosts [default: 32]
    #[arg(long, value_name = "N")]
    pub hosts: Option<usize>,
    /// Peers that each host draws and probes [default: 10, or all others if they are fewer]
    #[arg(long, value_name = "N")]
    pub peers: Option<usize>,
    /// Size of the error of each timestamp [default: 1us]
    #[arg(long, value_name = "TIME")]
    pub noise: Option<Time>,
    /// How it is distributed: standard deviation, bound or mean is --noise
    #[arg(long, value_enum, default_value = "normal")]
    pub noise_shape: Shape,
    /// Clocks start within plus and minus this [default: 1ms]
    #[arg(long, value_name = "TIME")]
    pub offset: Option<Time>,
    /// Clocks run fast or slow by up to this many ppm [default: 10]
    #[arg(long, value_name = "PPM")]
    pub drift_ppm: Option<f64>,
    /// Windows of probes, each of which gives an estimate [default: 5]
    #[arg(long, value_name = "N")]
    pub windows: Option<u32>,
    /// Length of a window [default: 2s]
    #[arg(long, value_name = "TIME")]
    pub window: Option<Time>,
    /// Distance of coded pairs, on each path and direction [default: 250us]
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Time>,
    /// Distance of the two packets of a coded pair [default: 10us]
    #[arg(long, value_name = "TIME")]
    pub gap: Option<Time>,
    /// Pairs whose gap changes by this or more are rejected [default: 2 × noise + 50ns]
    #[arg(long, value_name = "TIME")]
    pub guard: Option<Time>,
    /// Share of each cloud of accepted probes that makes its edge; 0 is a hard margin [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    pub soft: Option<f64>,
    /// Mean propagation delay of a path [default: 5us]
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Time>,
    /// Share of probes that find a queue [default: 0.3]
    #[arg(long, value_name = "SHARE")]
    pub busy: Option<f64>,
    /// Mean queueing delay of those [default: 10us]
    #[arg(long, value_name = "TIME")]
    pub queueing: Option<Time>,
    /// Add one-way delay from host A to host B, and not back: 3-7=2us
    #[arg(long, value_name = "A-B=TIME", value_parser = link)]
    pub asymmetric: Option<AsymmetricLink>,
    /// Standard deviations at which a link is named asymmetric [default: 6]
    #[arg(long, value_name = "N")]
    pub threshold: Option<f64>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// How timestamp noise is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Normal, with standard deviation --noise
    Normal,
    /// Uniform within plus and minus --noise
    Uniform,
    /// Sent too early and received too late, by an exponential time of mean --noise
    Exponential,
}

fn link(text: &str) -> Result<AsymmetricLink, String> {
    let host = |text: &str| text.strip_prefix('h').unwrap_or(text).parse::<usize>().ok();
    let link = text.split_once('=').and_then(|(link, time)| {
        let (from, to) = link.split_once('-')?;
        Some((host(from)?, host(to)?, time))
    });
    let (from, to, time) = link.ok_or("expected two hosts and a time, such as 3-7=2us")?;
    Ok(AsymmetricLink { from, to, extra: time.parse().map_err(|error: UnitError| error.to_string())? })
}

/// Synchronises and prints a table or JSON.
pub fn clock_sync(arguments: &Arguments) -> End {
    let settings = settings(arguments);
    let found = match clocks::synchronise(&settings) {
        Ok(found) => found,
        Err(error @ (SyncError::Setting { .. } | SyncError::Unconnected { .. })) => {
            output::error(&format!("--{error}"));
            return End::BadInput;
        }
        Err(error) => {
            output::error(&error);
            return End::Failed;
        }
    };
    if arguments.json {
        match serde_json::to_string_pretty(&found) {
            Ok(text) => output::data(&format!("{text}\n")),
            Err(error) => {
                output::error(&error);
                return End::Failed;
            }
        }
    } else {
        output::data(&format!("{}\n{}", table(&found), describe(&settings, &found)));
    }
    End::Done
}

fn settings(arguments: &Arguments) -> SyncSettings {
    let default = SyncSettings::default();
    let hosts = arguments.hosts.unwrap_or(default.hosts);
    SyncSettings {
        hosts,
        peers: arguments.peers.unwrap_or(default.peers.min(hosts.saturating_sub(1))),
        offset: arguments.offset.unwrap_or(default.offset),
        drift_ppm: arguments.drift_ppm.unwrap_or(default.drift_ppm),
        noise: arguments.noise.unwrap_or(default.noise),
        noise_shape: match arguments.noise_shape {
            Shape::Normal => NoiseShape::Normal,
            Shape::Uniform => NoiseShape::Uniform,
            Shape::Exponential => NoiseShape::Exponential,
        },
        delay: arguments.delay.unwrap_or(default.delay),
        busy: arguments.busy.unwrap_or(default.busy),
        queueing: arguments.queueing.unwrap_or(default.queueing),
        gap: arguments.gap.unwrap_or(default.gap),
        guard: arguments.guard,
        interval: arguments.interval.unwrap_or(default.interval),
        window: arguments.window.unwrap_or(default.window),
        windows: arguments.windows.unwrap_or(default.windows),
        soft: arguments.soft.unwrap_or(default.soft),
        threshold: arguments.threshold.unwrap_or(default.threshold),
        asymmetric: arguments.asymmetric,
        seed: arguments.seed,
    }
}

fn table(found: &Synchronisation) -> String {
    let header = ["method", "window", "mean ns", "p99 ns", "max ns", "next: mean ns", "next: p99 ns", "next: max ns"];
    let lines = found.rows.iter().map(|row| {
        let window = row.window.map_or("all".to_owned(), |window| window.to_string());
        let errors = [row.mean_ns, row.p99_ns, row.max_ns, row.next_mean_ns, row.next_p99_ns, row.next_max_ns];
        let errors = errors.iter().map(|error| format!("{error:.1}"));
        Line::Cells([row.method.name().to_owned(), window].into_iter().chain(errors).collect())
    });
    Plain { header: header.map(str::to_owned).to_vec(), lines: lines.collect() }.draw(output::width())
}

fn describe(settings: &SyncSettings, found: &Synchronisation) -> String {
    let mut text = format!(
        "errors of {} clocks against host 0's when a window of {} ends, and, \"next\", a window later; {} links, seed {}\n",
        found.hosts - 1,
        settings.window,
        found.links,
        settings.seed
    );
    let _ = writeln!(
        text,
        "coded pairs: {:.1}% changed their gap by less than the guard of {}",
        100.0 * found.accepted,
        settings.guard()
    );
    if found.asymmetric.is_empty() {
        let _ = writeln!(text, "asymmetric links: none found");
    }
    for named in &found.asymmetric {
        let Named { from, to, windows, extra_ns, deviations } = named;
        let _ = writeln!(
            text,
            "asymmetric link: {from}-{to} takes {extra_ns:.0} ns longer than {to}-{from} ({deviations:.1} deviations; named in {} of {} windows)",
            windows.len(),
            settings.windows
        );
    }
    text
}
