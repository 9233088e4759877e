//! `marimoctl status`.

use crate::{
    arguments,
    bpf::{self, LAYOUT, Loaded, PINS, RESTART},
    configuration::describe,
    layout::{Counters, NAME, Settings},
    module,
    routes::{self, Marimo, NAMES},
    set_table::checksum,
    view,
};
use hostctl::{
    failure::{Failure, Outcome, While},
    namespaces,
    routes::{Enabled, count, enabled},
    say,
    view::root,
    watch::is_watched,
};
use incast_cc::window::marimo::core::LoadTable;
use serde::Serialize;
use std::{collections::BTreeMap, fs};

/// Rules, and by what each is kept.
type Rules = BTreeMap<String, String>;

/// All there is to say.
#[derive(Serialize)]
pub struct Status {
    /// What the kernel lacks for the BPF object.
    pub lacking: Option<String>,
    /// The BPF form, where it is loaded.
    pub bpf: Option<Bpf>,
    /// Copies that were unloaded and wait for their last connection.
    pub draining: usize,
    /// Copies that were unloaded and have none, but the kernel keeps them.
    pub held: usize,
    /// Pins that a load which did not end had left.
    pub leftovers: bool,
    /// Why the BPF form is not seen here, although it is registered.
    pub hidden: Option<String>,
    /// The kernel module, where it is loaded.
    pub module: Option<Module>,
    /// Routes of this network namespace that were enabled.
    pub enabled: Enabled,
    /// Whether `marimoctl watch` runs in it.
    pub watched: bool,
    /// Other network namespaces that use Marimo.
    pub elsewhere: Vec<Elsewhere>,
    /// Processes whose network namespace cannot be seen.
    pub unseen_processes: usize,
    /// What settings take from Marimo.
    pub advice: Vec<String>,
}

/// Another network namespace.
#[derive(Serialize)]
pub struct Elsewhere {
    namespace: String,
    /// Marimo is the default of its new connections.
    pub default: bool,
    /// How many of its routes name Marimo.
    routes: usize,
    /// Routes that are to be given back.
    due: Vec<String>,
}

/// The BPF form.
#[derive(Serialize)]
pub struct Bpf {
    /// Open ones.
    pub connections: u64,
    /// Checksum of the table in use.
    pub table: String,
    slot: usize,
    /// The version of what is pinned.
    layout: u32,
    fallback: Option<String>,
    trace_acks: Option<bool>,
    /// None if another version has loaded it, which puts it otherwise.
    config: Option<BTreeMap<&'static str, String>>,
    /// Safety rules that rest on what the kernel offers, and by what each is kept.
    rules: Rules,
    /// What has happened.
    pub counters: Counters,
}

/// The kernel module.
#[derive(Serialize)]
pub struct Module {
    source_version: Option<String>,
    /// Checksum of the table in use.
    pub table: String,
    parameters: BTreeMap<String, String>,
    /// Safety rules that rest on what the kernel offers, and by what each is kept.
    rules: Rules,
    /// What has happened, and the number of open connections.
    pub counters: BTreeMap<String, u64>,
}

/// Asks the kernel.
pub fn gather() -> Outcome<Status> {
    let loaded = Loaded::open();
    let copies = bpf::copies(loaded.as_ref())?;
    let bpf = loaded.as_ref().map(describe_bpf).transpose()?;
    let module = if module::loaded() { Some(describe_module()?) } else { None };
    let mut advice = advice(sysctl);
    let (elsewhere, unseen_processes) = look_elsewhere(&mut advice)?;
    let hidden = if bpf.is_none() { view::hidden()? } else { None };
    Ok(Status {
        lacking: bpf::lacking(),
        // Of one that is not seen it cannot be told which copy is the one that is registered.
        draining: if hidden.is_none() { copies.draining } else { 0 },
        held: if hidden.is_none() { copies.held } else { 0 },
        leftovers: bpf.is_none() && fs::metadata(PINS).is_ok(),
        hidden,
        bpf,
        module,
        enabled: enabled::<Marimo>()?,
        watched: is_watched::<Marimo>(),
        elsewhere,
        unseen_processes,
        advice,
    })
}

/// What a file below `net.ipv4` says in this network namespace.
fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()
}

/// Other network namespaces that use Marimo, and what their settings take from it. They begin with the kernel's settings,
/// not with those of the host.
fn look_elsewhere(told: &mut Vec<String>) -> Outcome<(Vec<Elsewhere>, usize)> {
    let others = namespaces::others()?;
    let mut elsewhere = Vec::new();
    for other in others.seen {
        let look = || {
            let default = routes::default().is_ok_and(|name| NAMES.contains(&name.as_str()));
            let due = enabled::<Marimo>().map(|enabled| enabled.due).unwrap_or_default();
            (default, count::<Marimo>().unwrap_or(0), due, advice(sysctl))
        };
        // It may have ended meanwhile.
        let Ok((default, routes, due, advice)) = other.within(look) else { continue };
        if default || routes > 0 || !due.is_empty() {
            told.extend(advice.into_iter().map(|line| format!("network namespace of {}: {line}", other.name)));
            elsewhere.push(Elsewhere { namespace: other.name, default, routes, due });
        }
    }
    Ok((elsewhere, others.hidden))
}

fn describe_bpf(loaded: &Loaded) -> Outcome<Bpf> {
    let settings = loaded.settings()?;
    let counters = loaded.counters()?;
    let table = LoadTable::new("loaded", loaded.knots()?.0).during("the table in the kernel is not sound")?;
    Ok(Bpf {
        connections: counters.open(),
        table: format!("{:08x}", checksum(&table)),
        slot: loaded.active()?,
        layout: loaded.layout,
        fallback: settings.as_ref().map(Settings::fallback),
        trace_acks: settings.as_ref().map(|settings| settings.trace_acks != 0),
        config: settings.map(|settings| describe(&settings.config).into_iter().collect()),
        rules: bpf::rules().map(|(rule, by)| (rule.into(), by.into())).into(),
        counters,
    })
}

fn describe_module() -> Outcome<Module> {
    Ok(Module {
        source_version: module::source_version(),
        table: format!("{:08x}", checksum(&module::table()?)),
        parameters: module::parameters().into_iter().collect(),
        rules: module::rules().into_iter().collect(),
        counters: module::counters()?.into_iter().collect(),
    })
}

/// Prints what is loaded.
pub fn status(arguments: &arguments::Status) -> Outcome {
    root()?;
    let status = gather()?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&status).during("cannot write")?);
    } else {
        describe_status(&status);
    }
    status.hidden.map_or(Ok(()), |hidden| Err(Failure::failed(hidden)))
}

fn describe_status(status: &Status) {
    match &status.bpf {
        None if status.hidden.is_some() => say!("{NAME}: registered, but not seen from here"),
        None if status.leftovers => {
            say!("{NAME}: not loaded, with leftovers in {PINS} (marimoctl unload)")
        }
        None => match &status.lacking {
            None => say!("{NAME}: not loaded"),
            Some(lacking) => say!("{NAME}: not loaded: {lacking}"),
        },
        Some(bpf) => {
            say!("{NAME}: {} connections, table {} in slot {}", bpf.connections, bpf.table, bpf.slot);
            if bpf.layout != LAYOUT {
                say!(
                    "  loaded by another version of marimoctl: its layout is {}, that of this one {LAYOUT}",
                    bpf.layout
                );
            }
            let list = |pairs: Vec<String>| pairs.join(", ");
            match (&bpf.config, &bpf.fallback) {
                (Some(config), Some(fallback)) => {
                    let trace = if bpf.trace_acks == Some(true) { "on" } else { "off" };
                    say!("  without ECN: {fallback}; trace of every ACK: {trace}");
                    say!("  {}", list(config.iter().map(|(name, value)| format!("{name} = {value}")).collect()));
                }
                _ => say!("  its settings are not known to this version"),
            }
            say!("  {}", list(bpf.counters.iter().map(|(name, count)| format!("{name} {count}")).collect()));
            say!("  {}", describe_rules(&bpf.rules, bpf.counters.get("starts")));
        }
    }
    if status.draining > 0 {
        say!("{NAME}: {} unloaded copies wait for their last connection", status.draining);
    }
    if status.held > 0 {
        let defaults = status.elsewhere.iter().filter(|namespace| namespace.default).count();
        let why = match defaults {
            0 => "of a listener, or kept by the kernel for a default that it refused in a network namespace".to_owned(),
            _ => format!("held by {defaults} network namespaces whose default it is, or as with none of these"),
        };
        say!("{NAME}: {} unloaded copies without connections: {why}", status.held);
    }
    match &status.module {
        None => say!("{}: not loaded", module::NAME),
        Some(of) => {
            say!("{}: source {}, table {}", module::NAME, of.source_version.as_deref().unwrap_or("?"), of.table);
            let pairs: Vec<_> = of.counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
            say!("  {}", pairs.join(", "));
            let starts = of.counters.get("starts").copied().unwrap_or_default();
            say!("  {}", describe_rules(&of.rules, starts));
        }
    }
    describe_routes(&status.enabled, status.watched);
    for Elsewhere { namespace, default, routes, due } in &status.elsewhere {
        let default = if *default { "the default of new connections, " } else { "" };
        say!("network namespace of {namespace}: {default}{routes} routes (marimoctl rollback takes both back)");
        for route in due {
            say!("  route {route}: to be given back what it had");
        }
    }
    if status.unseen_processes > 0 {
        say!("the network namespaces of {} processes cannot be seen from here", status.unseen_processes);
    }
    for line in &status.advice {
        say!("advice: {line}");
    }
}

fn describe_routes(enabled: &Enabled, is_watched: bool) {
    let watched = if is_watched { "" } else { ", which nobody watches (marimoctl watch)" };
    if enabled.routes > 0 {
        say!("routes enabled: {}{watched}", enabled.routes);
    }
    for route in &enabled.drifted {
        say!("route {route}: enabled, and has come back without{watched}");
    }
    for route in &enabled.due {
        say!("route {route}: to be given back what it had");
    }
}

/// What settings take from Marimo, by what `sysctl` says of a name below `net.ipv4`.
fn advice(sysctl: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let number = |name: &str| sysctl(name).and_then(|text| text.trim().parse::<u32>().ok());
    let mut advice = Vec::new();
    if number("tcp_ecn_fallback").is_some_and(|on| on != 0) {
        advice.push(
            "net.ipv4.tcp_ecn_fallback = 1: a connection whose first SYN is lost goes on without ECN, for life; \
             0 where no path drops SYNs that ask for ECN"
                .into(),
        );
    }
    if number("tcp_ecn") == Some(0) && number("tcp_syncookies").is_some_and(|on| on != 0) {
        advice.push(
            "net.ipv4.tcp_ecn = 0: a listener that answers with a SYN cookie forgets ECN, and its peers receive no \
             mark; 1 or 2 there"
                .into(),
        );
    }
    if number("tcp_slow_start_after_idle") == Some(0) {
        advice.push("net.ipv4.tcp_slow_start_after_idle = 0: no window shrinks while idle".into());
    }
    advice
}

/// The rules in one line. That windows shrink while connections are idle rests on an operation that a kernel may move, so
/// it says whether the kernel has told of a start by it.
fn describe_rules(rules: &Rules, starts: u64) -> String {
    let told = |rule: &str| match (rule, starts) {
        (RESTART, 0) => ", not told yet",
        (RESTART, _) => ", told",
        _ => "",
    };
    let one = |(rule, by): (&String, &String)| format!("{rule} ({by}{})", told(rule));
    format!("safety rules: {}", rules.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_by_what_they_are_kept() {
        let rules = [(RESTART, "cwnd_event"), ("undo", "undo_cwnd")];
        let rules = rules.map(|(rule, by)| (rule.into(), by.into())).into();
        let text = describe_rules(&rules, 0);
        assert_eq!(text, "safety rules: restart_after_idle (cwnd_event, not told yet), undo (undo_cwnd)");
        assert!(describe_rules(&rules, 1).contains("(cwnd_event, told)"));
    }

    #[test]
    fn advice_follows_the_settings() {
        let of = |ecn: &str, fallback: &str, idle: &str, cookies: &str| {
            let all = [
                ("tcp_ecn", ecn.to_owned()),
                ("tcp_ecn_fallback", fallback.to_owned()),
                ("tcp_slow_start_after_idle", idle.to_owned()),
                ("tcp_syncookies", cookies.to_owned()),
            ];
            let lines = advice(|name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()));
            lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("2\n", "0\n", "1\n", "1\n"), Vec::<String>::new());
        assert_eq!(of("0\n", "0\n", "1\n", "0\n"), Vec::<String>::new());
        let all = ["net.ipv4.tcp_ecn_fallback", "net.ipv4.tcp_ecn", "net.ipv4.tcp_slow_start_after_idle"];
        assert_eq!(of("0\n", "1\n", "0\n", "1\n"), all);
        assert_eq!(advice(|_| None), Vec::<String>::new());
    }
}
