//! A Linux host: sysctl, routes and links, as three files.
//!
//! Names: `Documentation/networking/ip-sysctl.rst` of the kernel, ip-route(8), tc-fq(8), dcb-pfc(8); parameters of modules:
//! `net/ipv4/tcp_dctcp.c` and `tcp_cubic.c`.

use super::{Refused, Wanted, Written, rounding::power};
use incast_cc::parameters::Raw;
use incast_sim::{config::ClassConfig, fabric::format::Format, pfc_rules};
use incast_units::Bytes;
use std::fmt::Write as _;

/// Laws that Linux has, under the name that it has them, and the module.
const LAWS: [(&str, &str, &str); 4] = [
    ("cubic", "cubic", "tcp_cubic"),
    ("dctcp", "dctcp", "tcp_dctcp"),
    ("bbr", "bbr", "tcp_bbr"),
    ("marimo", "marimo", "tcp_marimo"),
];
/// Ethernet header and frame check sequence, which are not part of an interface's MTU.
const ETHERNET: u32 = 18;
/// A SYN's window is not scaled (RFC 7323, section 2.2).
const UNSCALED: u64 = 65_535;
/// `TCP_INIT_CWND` of the kernel.
const INITIAL_WINDOW: u64 = 10;
/// The unit of `dctcp_alpha_on_init`, `beta` and `bic_scale`.
const UNIT: f64 = 1024.0;

/// The files for hosts that run a scheme.
///
/// # Errors
/// What a Linux host cannot be told.
pub fn write(wanted: &Wanted) -> Result<Written, Refused> {
    let (class, congestion) = law(wanted)?;
    let mut notes = Vec::new();
    let attributes = attributes(wanted, class, congestion, &mut notes);
    let sysctl = sysctl(wanted, class);
    let routes = routes(wanted, class, congestion, &attributes, &mut notes)?;
    let links = links(wanted);
    remarks(wanted, class, &mut notes);
    Ok(Written { files: vec![("60-incast.conf", sysctl), ("routes.sh", routes), ("links.sh", links)], notes })
}

/// The one law of the scheme, and its name in Linux.
fn law(wanted: &Wanted) -> Result<(&ClassConfig, &'static str), Refused> {
    let config = &wanted.config;
    let mut refused = Vec::new();
    let Some(first) = config.classes.first() else {
        return Err(Refused(vec!["the scenario has no workload".into()]));
    };
    let name = first.law.info().name;
    if let Some(other) = config.classes.iter().find(|class| class.law.info().name != name) {
        refused.push(format!(
            "by_class: {} runs {name} and {} runs {}; which connection is which only applications know (TCP_CONGESTION)",
            first.name,
            other.name,
            other.law.info().name
        ));
    }
    let known = LAWS.iter().find(|law| law.0 == name);
    if known.is_none() {
        let names: Vec<&str> = LAWS.iter().map(|law| law.0).collect();
        refused.push(format!("law {name}: no Linux kernel runs it; allowed is {}", names.join(", ")));
    }
    if first.underlay.info().is_some() {
        refused.push("underlay: On-Ramp on hosts is set by onrampctl (docs/onramp.md)".into());
    }
    if config.switch.credits.is_some() {
        refused.push("switch.credits: Ethernet has no credits".into());
    }
    match known {
        Some(law) if refused.is_empty() => Ok((first, law.1)),
        _ => Err(Refused(refused)),
    }
}

/// The value of a parameter of the law.
fn value(class: &ClassConfig, key: &str) -> Option<Raw> {
    class.law.values().into_iter().find(|(name, _)| *name == key).map(|(_, raw)| raw)
}

fn number(class: &ClassConfig, key: &str) -> Option<f64> {
    match value(class, key)? {
        Raw::Float(number) => Some(number),
        Raw::Integer(number) => Some(number as f64),
        _ => None,
    }
}

fn flag(class: &ClassConfig, key: &str) -> Option<bool> {
    match value(class, key)? {
        Raw::Flag(flag) => Some(flag),
        _ => None,
    }
}

/// Segments of the initial window, and its bytes in the scenario.
pub(super) fn initial_window(class: &ClassConfig, mtu: u32) -> Option<(u64, u64)> {
    let Raw::Text(text) = value(class, "initial_window")? else { return None };
    let bytes = text.parse::<Bytes>().ok()?.get();
    Some(((bytes / u64::from(mtu.max(1))).max(1), bytes))
}

/// What each route is given, with its reason.
fn attributes(
    wanted: &Wanted,
    class: &ClassConfig,
    congestion: &str,
    notes: &mut Vec<String>,
) -> Vec<(String, String)> {
    let host = &wanted.config.host;
    let mut all = Vec::new();
    if congestion != "marimo" {
        all.push((format!("congctl {congestion}"), "the law, at both ends".to_owned()));
    }
    if let Some((segments, bytes)) = initial_window(class, host.mtu) {
        if segments != INITIAL_WINDOW {
            all.push((format!("initcwnd {segments}"), format!("{bytes} B in segments of {} B", host.mtu)));
            all.push((format!("initrwnd {segments}"), "what a peer may send to this host at first".to_owned()));
        }
        if segments * u64::from(host.mtu) != bytes {
            notes.push(format!("initial_window: {bytes} B in the scenario, {segments} segments on the host"));
        }
        if bytes > UNSCALED {
            notes.push(format!(
                "initial_window: {bytes} B, and a host that answers a SYN has at most {UNSCALED} B before its peer's first acknowledgement, as a SYN's window is not scaled"
            ));
        }
    }
    if let Some(milliseconds) = whole_milliseconds(wanted) {
        all.push((format!("rto_min {milliseconds}ms"), format!("host.rto_min = {}", host.rto_min)));
    }
    if host.ack_every == 1 {
        all.push(("quickack 1".into(), "host.ack_every = 1: an acknowledgement for each packet".into()));
    }
    if congestion == "cubic" && flag(class, "ecn") == Some(true) {
        all.push(("features ecn".into(), "ecn = true".into()));
    }
    all
}

fn whole_milliseconds(wanted: &Wanted) -> Option<u64> {
    let picoseconds = wanted.config.host.rto_min.ps();
    let milliseconds = picoseconds / 1_000_000_000;
    (milliseconds > 0 && milliseconds * 1_000_000_000 == picoseconds).then_some(milliseconds)
}

fn sysctl(wanted: &Wanted, class: &ClassConfig) -> String {
    let mut text = format!("# {}\n# Into /etc/sysctl.d, then: sysctl --system\n\n", wanted.origin());
    let host = &wanted.config.host;
    if class.law.transport().ecn_capable {
        text += "# A host that marks are asked of must answer them; a SYN that is lost must not end ECN, as nothing does so in the\n\
                 # simulation.\n";
        text += "net.ipv4.tcp_ecn_fallback = 0\n";
    }
    if whole_milliseconds(wanted).is_none() {
        let _ =
            writeln!(text, "# host.rto_min = {}: routes take whole milliseconds (kernels from 6.11 on).", host.rto_min);
        let _ = writeln!(text, "net.ipv4.tcp_rto_min_us = {}", host.rto_min.ps().div_ceil(1_000_000).max(1));
    }
    text += "# Paces that connections have are kept by fq.\n";
    text += "net.core.default_qdisc = fq\n";
    text
}

fn routes(
    wanted: &Wanted,
    class: &ClassConfig,
    congestion: &str,
    attributes: &[(String, String)],
    notes: &mut Vec<String>,
) -> Result<String, Refused> {
    let module = LAWS.iter().find(|law| law.1 == congestion).map_or("", |law| law.2);
    let mut text = format!("#!/bin/sh\n# {}\n", wanted.origin());
    text += "# Gives routes what the scheme needs; new connections over them have it.\n\
             # usage: routes.sh [PREFIX...]    without PREFIX: the default route\n\
             set -eu\n\n";
    if congestion == "marimo" {
        text += "# The kernel module or the BPF object is loaded first: docs/deploy.md. Its numbers and its table are those of\n\
                 # /sys/module/tcp_marimo/parameters or of /etc/marimo/marimo.conf.\n";
        notes.push("marimo: install it first (docs/deploy.md), and begin with one route (docs/rollout.md)".into());
    } else {
        let _ = writeln!(text, "modprobe -q {module} || true    # or it is part of the kernel");
    }
    for (name, number, reason) in module_parameters(class, congestion, notes)? {
        let _ = writeln!(text, "echo {number} >/sys/module/{module}/parameters/{name}    # {reason}");
    }
    text += "\n[ $# -gt 0 ] || set -- default\nfor prefix in \"$@\"; do\n";
    text += "    # What the route has, without what is set here.\n";
    let own: Vec<&str> = attributes.iter().filter_map(|(text, _)| text.split(' ').next()).collect();
    let sed: String = own.iter().fold(String::new(), |all, name| all + &format!(" -e 's/ {name} \\(lock \\)*[^ ]*//'"));
    let _ = writeln!(text, "    route=$(ip route show exact \"$prefix\" | head -n 1 | sed -e 's/ linkdown//'{sed})");
    text += "    [ -n \"$route\" ] || { echo \"routes.sh: there is no route to $prefix\" >&2; exit 1; }\n";
    for (attribute, reason) in attributes {
        let _ = writeln!(text, "    route=\"$route {attribute}\"    # {reason}");
    }
    text += "    # shellcheck disable=SC2086\n    ip route change $route\n";
    if congestion == "marimo" {
        text += "    marimoctl enable \"$prefix\"\n";
    }
    text += "done\n";
    Ok(text)
}

/// Parameters of the kernel's module that differ from its defaults: name, number, reason.
fn module_parameters(
    class: &ClassConfig,
    congestion: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'static str, i64, String)>, Refused> {
    let mut all: Vec<(&'static str, i64, String)> = Vec::new();
    let mut add = |name, default: i64, number: i64, key: &str, exact: f64, taken: f64| {
        if (exact - taken).abs() > 2e-3 * exact.abs() {
            notes.push(format!("{key}: {exact} in the scenario, {taken} on the host ({name} = {number})"));
        }
        if number != default {
            all.push((name, number, format!("{key} = {exact}")));
        }
    };
    match congestion {
        "dctcp" => {
            if let Some(gain) = number(class, "gain") {
                // g = 2^-n, n at most 10 (`dctcp_shift_g_range`).
                let apart = |shift: &i32| (gain * power(*shift)).max(1.0 / (gain * power(*shift)));
                let shift = (0..=10).min_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap_or(4);
                add("dctcp_shift_g", 4, shift.into(), "gain", gain, power(-shift));
            }
            if let Some(alpha) = number(class, "initial_alpha") {
                let scaled = (alpha * UNIT).round();
                add("dctcp_alpha_on_init", 1024, scaled as i64, "initial_alpha", alpha, scaled / UNIT);
            }
        }
        "cubic" => {
            if let Some(beta) = number(class, "beta") {
                let scaled = (beta * UNIT).round();
                add("beta", 717, scaled as i64, "beta", beta, scaled / UNIT);
            }
            if let Some(steepness) = number(class, "steepness") {
                let scaled = (steepness * UNIT / 10.0).round();
                add("bic_scale", 41, scaled as i64, "steepness", steepness, scaled * 10.0 / UNIT);
            }
            for (key, name) in [("fast_convergence", "fast_convergence"), ("hystart", "hystart")] {
                if let Some(on) = flag(class, key) {
                    let on = i64::from(on);
                    add(name, 1, on, key, on as f64, on as f64);
                }
            }
            let text = |key| match value(class, key) {
                Some(Raw::Text(text)) => text,
                _ => String::new(),
            };
            let bounds = (text("hystart_min_threshold"), text("hystart_max_threshold"));
            if flag(class, "hystart") == Some(true) && bounds != ("4ms".into(), "16ms".into()) {
                let (least, most) = bounds;
                let what = format!("hystart_min_threshold, hystart_max_threshold: {least} and {most}");
                return Err(Refused(vec![format!("{what}; Linux has 4ms and 16ms, which cannot be changed")]));
            }
        }
        _ => {}
    }
    Ok(all)
}

fn links(wanted: &Wanted) -> String {
    let config = &wanted.config;
    let mut text = format!("#!/bin/sh\n# {}\n", wanted.origin());
    text += "# usage: links.sh DEVICE...\nset -eu\n\nfor device in \"$@\"; do\n";
    let format = config.classes.first().map(|class| class.format);
    let frame = format.map_or(config.host.mtu, |format: Format| format.data(config.host.mtu));
    let mtu = frame.saturating_sub(ETHERNET);
    let _ = writeln!(text, "    # host.mtu = {} B of payload, with IPv4, TCP and its time stamps.", config.host.mtu);
    let _ = writeln!(text, "    ip link set dev \"$device\" mtu {mtu}");
    text += "    # fq for each queue of the device.\n\
             \x20   if [ \"$(ls -d \"/sys/class/net/$device/queues/tx-\"* | wc -l)\" -gt 1 ]; then\n\
             \x20       tc qdisc replace dev \"$device\" root handle 1: mq\n\
             \x20       for queue in $(tc qdisc show dev \"$device\" | sed -n 's/.* parent \\(1:[0-9a-f]*\\) .*/\\1/p'); do\n\
             \x20           tc qdisc replace dev \"$device\" parent \"$queue\" fq\n\
             \x20       done\n\
             \x20   else\n\
             \x20       tc qdisc replace dev \"$device\" root fq\n\
             \x20   fi\n";
    if pfc_rules(config.into()).is_some() {
        text += "    # Switches pause single priorities, of which the switch's configuration says which; not the whole link.\n\
                 \x20   ethtool -A \"$device\" rx off tx off\n";
    }
    text += "done\n";
    text
}

/// What is not in the files.
fn remarks(wanted: &Wanted, class: &ClassConfig, notes: &mut Vec<String>) {
    let config = &wanted.config;
    let host = &config.host;
    let mut others = Vec::new();
    let mut differs = |key: &str, is: bool| {
        if is {
            others.push(key.to_owned());
        }
    };
    differs("handshake", !host.handshake);
    differs("timer_tick", host.timer_tick == incast_units::Time::ZERO);
    differs("echo", class.law.info().name == "dctcp" && host.echo == incast_sim::config::Echo::Counts);
    differs("quick_acks", host.ack_every > 1 && host.quick_acks == 0);
    differs("pace_credit", !matches!(host.pace_credit, incast_sim::config::PaceCredit::HalfPacket));
    if !others.is_empty() {
        notes.push(format!(
            "the scenario's hosts are not Linux's in host.{}: docs/hosts.md (A Linux host) says what Linux does, scenarios/hosts have it",
            others.join(", host.")
        ));
    }
    let used = incast_sim::used_priorities(config.into());
    if used.count_ones() > 1 {
        notes.push("the scheme has several priorities: which DSCP a connection has is up to its application (IP_TOS) or to nftables".into());
    }
    if pfc_rules(config.into()).is_some() {
        notes
            .push("PFC: dcb pfc set dev DEVICE prio-pfc all:off QUEUE:on with the queue that --for sonic names".into());
    }
    notes.push("both ends need these files; switches need theirs: --for sonic".into());
}
