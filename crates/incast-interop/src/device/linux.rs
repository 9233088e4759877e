//! A Linux host: sysctl, routes, links and parameters of modules, a file each.
//!
//! Names: `Documentation/networking/ip-sysctl.rst` of the kernel, ip-route(8), tc-fq(8), dcb-pfc(8); parameters of modules:
//! `net/ipv4/tcp_dctcp.c` and `tcp_cubic.c`.

use super::{Refused, Wanted, Written, marimo, mlnx, number, onramp, rounding::power, value};
use incast_cc::{parameters::Raw, registry::LawParameters};
use incast_sim::{config::ClassConfig, fabric::format::Format, pfc_rules};
use incast_units::{Bytes, Time};
use std::fmt::Write as _;

/// Laws that Linux has, under the same names, and their modules.
const LAWS: [(&str, &str); 4] =
    [("cubic", "tcp_cubic"), ("dctcp", "tcp_dctcp"), ("bbr", "tcp_bbr"), ("marimo", "tcp_marimo")];
/// Ethernet header and frame check sequence, which are not part of an interface's MTU.
const ETHERNET: u32 = 18;
/// What the kernel takes off a device's MTU to find that of RoCE (`iboe_get_mtu`): GRH, UDP, BTH, two extended headers, ICRC.
const ROCE: u32 = 40 + 8 + 12 + 4 + 28 + 4;
/// What routes are given.
const ATTRIBUTES: [&str; 6] = ["congctl", "initcwnd", "initrwnd", "rto_min", "quickack", "features"];
/// What Linux does its own way whatever a scenario says, as `docs/hosts.md` has it.
const OF_THE_KERNEL: [&str; 10] = [
    "initial_window",
    "initial_rtt",
    "whole_packets",
    "cwr",
    "slow_start_limit",
    "min_window",
    "send_quantum",
    "pacing_margin",
    "ack_aggregation",
    "ecn",
];
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
    hystart(class, congestion)?;
    let mut files = vec![("60-incast.conf", sysctl(wanted, class))];
    files.extend(modprobe(wanted, class, congestion, &mut notes).map(|text| ("modprobe-incast.conf", text)));
    if congestion == "marimo" {
        let segments = initial_window(class, wanted.config.host.mtu).map(|(segments, _)| segments);
        files.extend(marimo::write(wanted, class, segments, &mut notes).into_iter().flatten());
    }
    files.push(("routes.sh", routes(wanted, congestion, &attributes, &mut notes)));
    files.push(("links.sh", links(wanted, &mut notes)));
    files.extend(onramp::write(wanted, &mut notes).map_err(Refused)?.map(|text| ("onramp.conf", text)));
    remarks(wanted, class, congestion, &mut notes);
    Ok(Written { files, notes })
}

/// The one law of the scheme, and its name in Linux.
fn law(wanted: &Wanted) -> Result<(&ClassConfig, &'static str), Refused> {
    let config = &wanted.config;
    let mut refused = Vec::new();
    let classes = wanted.classes();
    let Some(first) = classes.first().copied() else {
        return Err(Refused(vec!["the scenario has no workload".into()]));
    };
    let name = first.law.info().name;
    if let Some(other) = classes.iter().find(|class| class.law.info().name != name) {
        refused.push(format!(
            "by_class: {} runs {name} and {} runs {}: --class NAME writes the files for one class; for RoCE use --for mlnx; between several laws of TCP applications choose (TCP_CONGESTION)",
            first.name,
            other.name,
            other.law.info().name
        ));
    }
    let differs = |class: &&&ClassConfig| class.law.info().name == name && class.law.values() != first.law.values();
    if let Some(other) = classes.iter().find(differs) {
        let (one, other) = (&first.name, &other.name);
        refused.push(format!(
            "by_class: {one} and {other} have different parameters; those of Linux are one for the host: --class NAME is for hosts of one class"
        ));
    }
    let known = LAWS.iter().find(|law| law.0 == name);
    if known.is_none() {
        let names: Vec<&str> = LAWS.iter().map(|law| law.0).collect();
        refused.push(format!("law {name}: no Linux kernel runs it; allowed is {}", names.join(", ")));
    }
    if config.switch.credits.is_some() {
        refused.push("switch.credits: Ethernet has no credits".into());
    }
    match known {
        Some(law) if refused.is_empty() => Ok((first, law.0)),
        _ => Err(Refused(refused)),
    }
}

fn flag(class: &ClassConfig, key: &str) -> Option<bool> {
    match value(class, key)? {
        Raw::Flag(flag) => Some(flag),
        _ => None,
    }
}

/// Segments of the initial window, and its bytes in the scenario.
fn initial_window(class: &ClassConfig, mtu: u32) -> Option<(u64, u64)> {
    let Raw::Text(text) = value(class, "initial_window")? else { return None };
    let bytes = text.parse::<Bytes>().ok()?.get();
    Some((segments(bytes, mtu), bytes))
}

/// Whole segments of an initial window, at least one.
pub(super) fn segments(bytes: u64, mtu: u32) -> u64 {
    (bytes / u64::from(mtu.max(1))).max(1)
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

/// A least timeout as the sysctl has it.
pub(super) fn microseconds(rto_min: Time) -> u64 {
    rto_min.ps().div_ceil(1_000_000).max(1)
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
        let _ = writeln!(text, "net.ipv4.tcp_rto_min_us = {}", microseconds(host.rto_min));
    }
    if is_held(wanted) {
        text += "# On-Ramp's senders compare what their receivers' stamps say: of one clock, not of one for each connection.\n";
        text += "net.ipv4.tcp_timestamps = 2\n";
        text +=
            "# fq sends when On-Ramp says. At devices links.sh makes it fq nopacing, without connections' own paces.\n";
    } else {
        text += "# Paces that connections have are kept by fq.\n";
    }
    text += "net.core.default_qdisc = fq\n";
    text
}

fn routes(wanted: &Wanted, congestion: &str, attributes: &[(String, String)], notes: &mut Vec<String>) -> String {
    let module = LAWS.iter().find(|law| law.0 == congestion).map_or("", |law| law.1);
    let mut text = format!("#!/bin/sh\n# {}\n", wanted.origin());
    text += "# Gives routes what the scheme needs; new connections over them have it. Prints the way back.\n\
             # usage: routes.sh [PREFIX...]    without PREFIX: the default route of IPv4\n\
             set -eu\n\n";
    if congestion == "marimo" {
        text += "# The kernel module or the BPF form is loaded first (docs/deploy.md), with modprobe-incast.conf or marimo.conf if these\n\
                 # are among the files; without them hosts have these parameters by default, but for what the notes name.\n";
        notes.push("marimo: install it first (docs/deploy.md), and begin with one route (docs/rollout.md)".into());
    } else {
        let _ = writeln!(text, "modprobe -q {module} || true    # or it is part of the kernel");
    }
    text += "\n[ $# -gt 0 ] || set -- default\nfor prefix in \"$@\"; do\n\
             \x20   case $prefix in *:*) family=-6 ;; *) family=-4 ;; esac\n\
             \x20   before=$(ip \"$family\" route show exact \"$prefix\" | sed -e 's/ linkdown//g' -e 's/ lock / /g')\n\
             \x20   case $before in\n\
             \x20   '') echo \"routes.sh: there is no route to $prefix\" >&2; exit 1 ;;\n\
             \x20   *nhid*|*nexthop*) echo \"routes.sh: $prefix has next hops apart: set it where they are made\" >&2; exit 1 ;;\n\
             \x20   *'\n'*) echo \"routes.sh: there are several routes to $prefix\" >&2; exit 1 ;;\n\
             \x20   esac\n\
             \x20   # What the route has, without what a scheme sets.\n";
    let sed: String = ATTRIBUTES.iter().fold(String::new(), |all, name| all + &format!(" -e 's/ {name} [^ ]*//'"));
    let _ = writeln!(text, "    route=$(echo \"$before\" | sed{sed})");
    for (attribute, reason) in attributes {
        let _ = writeln!(text, "    route=\"$route {attribute}\"    # {reason}");
    }
    text += "    # shellcheck disable=SC2086\n\
             \x20   ip \"$family\" route change $route\n\
             \x20   echo \"the way back: ip $family route change $before\"\n";
    if congestion == "marimo" {
        text += "    marimoctl enable \"$prefix\"\n";
    }
    text += "done\n";
    text
}

/// A parameter of the kernel's module: its name, the kernel's default and the number for this law; the law's key, its value,
/// and the value that the number stands for.
#[derive(Debug)]
pub(super) struct Parameter {
    name: &'static str,
    default: i64,
    /// The value of the law that the kernel's default is for.
    usual: f64,
    number: i64,
    pub key: &'static str,
    pub exact: f64,
    pub taken: f64,
}

impl Parameter {
    /// The kernel has another value than the scenario.
    pub fn is_rounded(&self) -> bool {
        let is_usual = self.number == self.default && self.exact.to_bits() == self.usual.to_bits();
        !is_usual && self.exact.to_bits() != self.taken.to_bits()
    }
}

/// Those that a law has.
pub(super) fn parameters(class: &ClassConfig) -> Vec<Parameter> {
    let mut all = Vec::new();
    let mut scaled = |key, name, (usual, default), unit: f64| {
        if let Some(exact) = number(class, key) {
            let number = (exact * unit).round();
            all.push(Parameter { name, default, usual, number: number as i64, key, exact, taken: number / unit });
        }
    };
    match class.law.info().name {
        "dctcp" => {
            scaled("initial_alpha", "dctcp_alpha_on_init", (1.0, 1024), UNIT);
            if let Some(exact) = number(class, "gain") {
                // g = 2^-n, n at most 10 (`dctcp_shift_g_range`).
                let apart = |shift: &i32| (exact * power(*shift)).max(1.0 / (exact * power(*shift)));
                let shift = (0..=10).min_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap_or(4);
                let (number, taken) = (shift.into(), power(-shift));
                let (name, usual) = ("dctcp_shift_g", power(-4));
                all.push(Parameter { name, default: 4, usual, number, key: "gain", exact, taken });
            }
        }
        "cubic" => {
            scaled("beta", "beta", (0.7, 717), UNIT);
            scaled("steepness", "bic_scale", (0.4, 41), UNIT / 10.0);
            for key in ["fast_convergence", "hystart"] {
                if let Some(on) = flag(class, key) {
                    let exact = f64::from(u8::from(on));
                    all.push(Parameter {
                        name: key,
                        default: 1,
                        usual: 1.0,
                        number: on.into(),
                        key,
                        exact,
                        taken: exact,
                    });
                }
            }
        }
        _ => {}
    }
    all
}

/// Parameters that differ from the kernel's own, as modprobe.d(5) takes them: some are read only when the module is loaded.
fn modprobe(wanted: &Wanted, class: &ClassConfig, congestion: &str, notes: &mut Vec<String>) -> Option<String> {
    let module = LAWS.iter().find(|law| law.0 == congestion)?.1;
    let all = parameters(class);
    for Parameter { key, exact, taken, name, number, .. } in all.iter().filter(|parameter| parameter.is_rounded()) {
        notes.push(format!("{key}: {exact} in the scenario, {taken} on the host ({name} = {number})"));
    }
    let changed: Vec<Parameter> = all.into_iter().filter(|parameter| parameter.number != parameter.default).collect();
    let mut text = format!("# {}\n# Into /etc/modprobe.d, before {module} is loaded.\n", wanted.origin());
    for Parameter { name, number, key, exact, .. } in &changed {
        let _ = writeln!(text, "# {key} = {exact}");
        let _ = writeln!(text, "options {module} {name}={number}");
    }
    if changed.is_empty() {
        return None;
    }
    notes.push(format!("where {module} is part of the kernel, its options are the kernel's: {module}.NAME=NUMBER"));
    Some(text)
}

/// Refuses bounds of HyStart that Linux has not.
fn hystart(class: &ClassConfig, congestion: &str) -> Result<(), Refused> {
    let text = |key| match value(class, key) {
        Some(Raw::Text(text)) => text,
        _ => String::new(),
    };
    let (least, most) = (text("hystart_min_threshold"), text("hystart_max_threshold"));
    let is_known = (least.as_str(), most.as_str()) == ("4ms", "16ms");
    if congestion == "cubic" && flag(class, "hystart") == Some(true) && !is_known {
        let what = format!("hystart_min_threshold, hystart_max_threshold: {least} and {most}");
        return Err(Refused(vec![format!("{what}; Linux has 4ms and 16ms, which cannot be changed")]));
    }
    Ok(())
}

/// Whether On-Ramp holds packets.
fn is_held(wanted: &Wanted) -> bool {
    wanted.classes().iter().any(|class| !class.underlay.is_none())
}

fn links(wanted: &Wanted, notes: &mut Vec<String>) -> String {
    let config = &wanted.config;
    let mut text = format!("#!/bin/sh\n# {}\n", wanted.origin());
    text += "# usage: links.sh DEVICE...\nset -eu\n\n\
             [ $# -gt 0 ] || { echo \"usage: links.sh DEVICE...\" >&2; exit 2; }\nfor device in \"$@\"; do\n";
    let format = wanted.classes().first().map(|class| class.format);
    let frame = format.map_or(config.host.mtu, |format: Format| format.data(config.host.mtu));
    let mut mtu = frame.saturating_sub(ETHERNET);
    let has_roce = config.classes.iter().any(|class| class.law.info().name == mlnx::LAW);
    if wanted.gives_mtu {
        let mut with = "IPv4, TCP and its time stamps";
        if has_roce && config.host.mtu + ROCE > mtu {
            with = "what the kernel takes off for RoCE";
            let more = config.host.mtu + ROCE - mtu;
            mtu += more;
            notes.push(format!("the MTU is RoCE's: segments of TCP may have {more} B more than in the scenario"));
        }
        let active = [256, 512, 1024, 2048, 4096].into_iter().rfind(|active| *active <= config.host.mtu);
        if has_roce && active != Some(config.host.mtu) {
            notes.push(format!(
                "host.mtu = {} B: RoCE's path MTU is {} B with it, one of 256, 512, 1024, 2048 and 4096",
                config.host.mtu,
                active.unwrap_or_default()
            ));
        }
        let _ = writeln!(text, "    # host.mtu = {} B of payload, with {with}.", config.host.mtu);
        let _ = writeln!(text, "    ip link set dev \"$device\" mtu {mtu}");
    } else {
        notes.push(format!(
            "host.mtu is not given, and {} B of payload (an MTU of {mtu}) were simulated; links keep their MTU: for one of 1500 simulate host.mtu = \"1448B\"",
            config.host.mtu
        ));
    }
    // What it keeps for a socket's own pacing On-Ramp would take for a queue of the network.
    let fq = if is_held(wanted) { "fq nopacing" } else { "fq" };
    text += "    # fq for each queue of the device.\n";
    text += "    if [ \"$(ls -d \"/sys/class/net/$device/queues/tx-\"* | wc -l)\" -gt 1 ]; then\n\
             \x20       tc qdisc replace dev \"$device\" root handle 1: mq\n\
             \x20       for queue in $(tc qdisc show dev \"$device\" | sed -n 's/.* parent \\(1:[0-9a-f]*\\) .*/\\1/p'); do\n";
    let _ =
        writeln!(text, "            tc qdisc replace dev \"$device\" parent \"$queue\" {fq}\n        done\n    else");
    let _ = writeln!(text, "        tc qdisc replace dev \"$device\" root {fq}\n    fi");
    if pfc_rules(config.into()).is_some() {
        text += "    # Switches pause single priorities, of which the switch's configuration says which; not the whole link.\n\
                 \x20   ethtool -A \"$device\" rx off tx off || echo \"links.sh: $device: no pauses of the whole link to turn off\" >&2\n";
    }
    text += "done\n";
    text
}

/// What is not in the files.
fn remarks(wanted: &Wanted, class: &ClassConfig, congestion: &str, notes: &mut Vec<String>) {
    if congestion != "marimo" {
        let told: Vec<&str> = parameters(class).into_iter().map(|parameter| parameter.key).collect();
        let usual = LawParameters::resolve(class.law.info().name, &wanted.path, &[]).and_then(Result::ok);
        let usual = usual.map(|law| law.values()).unwrap_or_default();
        let values = class.law.values().into_iter().filter(|value| !usual.contains(value));
        let without = values.filter(|(key, _)| !told.contains(key) && !OF_THE_KERNEL.contains(key));
        let without: Vec<String> = without.map(|(key, raw)| format!("{key} = {raw}")).collect();
        if !without.is_empty() {
            notes.push(format!(
                "Linux has no setting for {}: what is applied is not what was simulated",
                without.join(", ")
            ));
        }
    }
    if wanted.config.host.ack_every > 2 {
        notes.push(format!(
            "host.ack_every = {}: Linux acknowledges every second segment",
            wanted.config.host.ack_every
        ));
    }
    let config = &wanted.config;
    let host = &config.host;
    let mut others = Vec::new();
    let mut differs = |key: &str, is: bool| {
        if is {
            others.push(key.to_owned());
        }
    };
    differs("handshake", !host.handshake);
    differs("timer_tick", host.timer_tick == Time::ZERO);
    differs("echo", class.law.info().name == "dctcp" && host.echo == incast_sim::config::Echo::Counts);
    differs("quick_acks", host.ack_every > 1 && host.quick_acks == 0);
    differs("pace_credit", !matches!(host.pace_credit, incast_sim::config::PaceCredit::HalfPacket));
    if !others.is_empty() {
        notes.push(format!(
            "the scenario's hosts are not Linux's in host.{}: host.profile = \"linux\" simulates what Linux does",
            others.join(", host.")
        ));
    }
    let used = incast_sim::used_priorities(config.into());
    if used.count_ones() > 1 {
        notes.push("the scheme has several priorities: which DSCP a connection has is up to its application (IP_TOS) or to nftables (ip dscp set NAME in a chain of output), as --queues of the switches has it".into());
    }
    if pfc_rules(config.into()).is_some() {
        notes
            .push("PFC: dcb pfc set dev DEVICE prio-pfc all:off QUEUE:on with the queue that --for sonic names".into());
    }
    notes.push("both ends need these files; switches need theirs: --for sonic, eos or nxos".into());
}
