//! `onrampctl status`.

use crate::{
    arguments,
    bpf::{self, Loaded},
    configuration,
    layout::{Address, Counters, Path},
    stamps::OnRamp,
};
use hostctl::{
    failure::{Outcome, While},
    routes::{self, Enabled},
    say, view, watch,
};
use serde::Serialize;
use std::{collections::BTreeMap, fs};

/// All there is to say of this network namespace.
#[derive(Serialize)]
pub struct Status {
    /// What the kernel lacks.
    pub lacking: Option<String>,
    /// Devices that programs are attached to; `None` if On-Ramp is not loaded.
    pub devices: Option<Vec<String>>,
    /// Who keeps packets.
    pub form: Option<String>,
    /// The configuration in use.
    pub config: BTreeMap<&'static str, String>,
    /// Destinations that packets are held for.
    pub holds: Vec<String>,
    /// Addresses that packets went to.
    pub paths: usize,
    /// Of those, addresses whose delays are counted by clocks that were compared.
    pub paths_known: usize,
    /// What was counted.
    pub counters: Counters,
    /// Routes that were enabled.
    pub enabled: Enabled,
    /// Whether `onrampctl watch` runs.
    pub watched: bool,
    /// What makes it less than it could be.
    pub advice: Vec<String>,
}

/// Asks the kernel.
pub fn gather() -> Outcome<Status> {
    let loaded = Loaded::open()?;
    let mut status = Status {
        lacking: bpf::lacking(),
        devices: None,
        form: None,
        config: BTreeMap::new(),
        holds: Vec::new(),
        paths: 0,
        paths_known: 0,
        counters: Counters::default(),
        // A kernel without such stamps has no such routes.
        enabled: if bpf::lacking().is_none() { routes::enabled::<OnRamp>()? } else { Enabled::default() },
        watched: watch::is_watched::<OnRamp>(),
        advice: Vec::new(),
    };
    if let Some(loaded) = loaded {
        let devices = loaded.devices();
        for device in &devices {
            match device.lacking(loaded.form()) {
                Ok(lacking) => status.advice.extend(lacking),
                Err(failure) => status.advice.push(failure.to_string()),
            }
        }
        status.devices = Some(devices.into_iter().map(|device| device.name).collect());
        status.form = clap::ValueEnum::to_possible_value(&loaded.form()).map(|form| form.get_name().to_owned());
        status.config = configuration::describe(&loaded.config()?).into_iter().collect();
        status.holds = loaded.prefixes()?.iter().map(|prefix| prefix.describe()).collect();
        status.paths = loaded.map("paths").map(|map| libbpf_rs::MapCore::keys(&map).count())?;
        status.counters = loaded.counters()?;
        status.advice.extend(advice(&status.counters));
        // After an upgrade what is loaded is of another version.
        match loaded.paths() {
            Ok(paths) => {
                status.paths_known = paths.iter().filter(|(_, path)| path.is_known()).count();
                status.advice.extend(clocks(&paths));
            }
            Err(failure) => status.advice.push(failure.to_string()),
        }
    }
    Ok(status)
}

/// What the stamps of this host lack for its peers.
pub fn stamps() -> Option<String> {
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").ok()?.trim() {
        "0" => Some("net.ipv4.tcp_timestamps = 0: no packet of this host is stamped, and none is held; 2".into()),
        "1" => Some(
            "net.ipv4.tcp_timestamps = 1: the stamps of each connection begin elsewhere, so that a sender to this host takes the \
             first packet of each for one without a queue; 2"
                .into(),
        ),
        _ => None,
    }
}

/// Of which paths clocks were compared in vain.
pub fn clocks<'a>(paths: impl IntoIterator<Item = &'a (Address, Path)>) -> Option<String> {
    let mut why = paths.into_iter().filter_map(|(address, path)| Some((address, path.why_relative()?)));
    let (address, first) = why.next()?;
    let others = why.count();
    let others = if others == 0 { String::new() } else { format!(", and {others} more") };
    Some(format!("{}{others}: {first}: delays are counted from the least one", address.ip()))
}

/// What counters say.
fn advice(counters: &Counters) -> Vec<String> {
    let of = |wanted: &str| counters.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| count);
    let mut advice: Vec<String> = stamps().into_iter().collect();
    if of("not_kept") > 0 {
        advice.push(format!(
            "{} packets were answered before they were to leave: something took them past fq, and nothing was held for 10 s each time",
            of("not_kept")
        ));
    }
    if of("zeroed") > 0 {
        advice.push(format!(
            "{} connections had stamps of their own, and took their first packet for one without a queue: \
             net.ipv4.tcp_timestamps = 2 at the receivers; if it is 2 there, a clock was set",
            of("zeroed")
        ));
    }
    if of("full") > 0 {
        advice.push(format!("{} packets passed as there was no room for their address", of("full")));
    }
    advice
}

/// Prints what is loaded.
pub fn status(arguments: &arguments::Status) -> Outcome {
    view::root()?;
    let status = gather()?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&status).during("cannot write")?);
        return Ok(());
    }
    let list = |pairs: Vec<String>| pairs.join(", ");
    match (&status.devices, &status.lacking) {
        (None, None) => say!("On-Ramp: not loaded in this network namespace"),
        (None, Some(lacking)) => say!("On-Ramp: not loaded: {lacking}"),
        (Some(devices), _) => {
            let form = status.form.as_deref().unwrap_or_default();
            say!("On-Ramp: attached to {} (form {form})", list(devices.clone()));
            say!("  {}", list(status.config.iter().map(|(name, value)| format!("{name} = {value}")).collect()));
            let holds =
                if status.holds.is_empty() { "nothing (onrampctl enable)".into() } else { list(status.holds.clone()) };
            say!("  packets are held to {holds}: {} addresses", status.paths);
            say!("  {}", list(status.counters.iter().map(|(name, count)| format!("{name} {count}")).collect()));
        }
    }
    let watched = if status.watched { "" } else { ", which nobody watches (onrampctl watch)" };
    if status.enabled.routes > 0 {
        say!("routes enabled: {}{watched}", status.enabled.routes);
    }
    for route in &status.enabled.drifted {
        say!("route {route}: enabled, and has come back without{watched}");
    }
    for route in &status.enabled.due {
        say!("route {route}: to be given back what it had");
    }
    status.advice.iter().for_each(|line| say!("advice: {line}"));
    Ok(())
}
