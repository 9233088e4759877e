//! `marimoctl status`.

use crate::{
    arguments,
    bpf::{self, Loaded, PINS, RESTART},
    configuration::describe,
    failure::{Failure, Outcome, While},
    layout::{Counters, NAME},
    module,
    output::say,
    set_table::checksum,
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
    /// The kernel module, where it is loaded.
    pub module: Option<Module>,
    /// What settings of this network namespace take from Marimo.
    pub advice: Vec<String>,
}

/// The BPF form.
#[derive(Serialize)]
pub struct Bpf {
    /// Open ones.
    pub connections: u64,
    /// Checksum of the table in use.
    pub table: String,
    slot: usize,
    fallback: String,
    trace_acks: bool,
    config: BTreeMap<&'static str, String>,
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
    Ok(Status {
        lacking: bpf::lacking(),
        draining: copies.draining,
        held: copies.held,
        leftovers: bpf.is_none() && fs::metadata(PINS).is_ok(),
        bpf,
        module,
        advice: advice(|name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()),
    })
}

fn describe_bpf(loaded: &Loaded) -> Outcome<Bpf> {
    let settings = loaded.settings()?;
    let counters = loaded.counters()?;
    let table = LoadTable::new("loaded", loaded.knots()?.0).during("the table in the kernel is not sound")?;
    Ok(Bpf {
        connections: counters.open(),
        table: format!("{:08x}", checksum(&table)),
        slot: loaded.active()?,
        fallback: settings.fallback(),
        trace_acks: settings.trace_acks != 0,
        config: describe(&settings.config).into_iter().collect(),
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
    crate::load::root()?;
    let status = gather()?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&status).during("cannot write")?);
        return Ok(());
    }
    match &status.bpf {
        None if status.leftovers => {
            say!("{NAME}: not loaded, with leftovers in {PINS} (marimoctl unload)")
        }
        None => match &status.lacking {
            None => say!("{NAME}: not loaded"),
            Some(lacking) => say!("{NAME}: not loaded: {lacking}"),
        },
        Some(bpf) => {
            say!("{NAME}: {} connections, table {} in slot {}", bpf.connections, bpf.table, bpf.slot);
            say!("  without ECN: {}; trace of every ACK: {}", bpf.fallback, if bpf.trace_acks { "on" } else { "off" });
            let list = |pairs: Vec<String>| pairs.join(", ");
            say!("  {}", list(bpf.config.iter().map(|(name, value)| format!("{name} = {value}")).collect()));
            let counters = serde_json::to_value(bpf.counters).during("cannot write")?;
            let Some(counters) = counters.as_object() else {
                return Err(Failure::failed("counters are no object"));
            };
            say!("  {}", list(counters.iter().map(|(name, count)| format!("{name} {count}")).collect()));
            say!("  {}", describe_rules(&bpf.rules, bpf.counters.starts));
        }
    }
    if status.draining > 0 {
        say!("{NAME}: {} unloaded copies wait for their last connection", status.draining);
    }
    if status.held > 0 {
        say!(
            "{NAME}: {} unloaded copies without connections: of a listener, or kept by the kernel for a default that it \
             refused in a network namespace",
            status.held
        );
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
    for line in &status.advice {
        say!("advice: {line}");
    }
    Ok(())
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
