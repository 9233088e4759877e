//! NVIDIA's NICs: DCQCN's reaction and notification point, and flow control.
//!
//! Names: the files of MLNX_OFED and DOCA below `/sys/class/net/IF/ecn`, `mlnx_qos` and `cma_roce_tos` of the same; what
//! each number means: NVIDIA's page "DCQCN CC Parameters". No NIC was asked.

use super::{
    Refused, Wanted, Written, number,
    ports::Class,
    switch::{Switch, classes, kinds},
    text, value,
};
use incast_cc::{parameters::Raw, registry::LawParameters};
use incast_sim::config::ClassConfig;
use incast_units::{Bytes, Rate, Time};
use std::fmt::Write as _;

/// What these NICs run.
pub(super) const LAW: &str = "dcqcn";
/// Parts of a second, of a rate and of the byte counter that the NIC counts in.
const MICROSECOND: u64 = 1_000_000;
const MEGABIT: u64 = 1_000_000;
const COUNTED: u64 = 64;
/// Steps of `dce_tcp_g` and `initial_alpha_value`.
const STEPS: f64 = 1024.0;

/// What makes a cut alpha / 2, half of the rate at the most, and the largest rate that of the line.
const OF_THE_PAPER: [(&str, u32); 3] = [("rpg_gd", 11), ("rpg_min_dec_fac", 50), ("rpg_max_rate", 0)];
/// The largest part of the line's rate that a first notification can leave.
const MOST_ON_FIRST: f64 = 0.85;

/// A number of the NIC.
#[derive(Debug)]
pub(super) struct Setting {
    /// Folder and name of its file.
    file: &'static str,
    number: u64,
    /// The law's key, what the scenario has there and what the number stands for.
    pub key: &'static str,
    exact: Raw,
    pub taken: Raw,
}

/// The script for hosts that run a scheme; `given` are the queues of its priorities.
///
/// # Errors
/// What such a NIC cannot be told.
pub fn write(wanted: &Wanted, given: &[Class]) -> Result<Written, Refused> {
    let refuse = |what: String| Err(Refused(vec![what]));
    let class = class(wanted).map_err(|what| Refused(vec![what]))?;
    if text(class, "notification").as_deref() != Some("cnp") {
        return refuse("notification: allowed is \"cnp\"; a NIC that receives marks sends these packets".into());
    }
    let Some(switch) = kinds(wanted).into_iter().next() else { return refuse("there is no switch".into()) };
    let queues = classes(&switch, given).map_err(|what| Refused(vec![what]))?;
    let of = |priority: u8| queues.iter().find(|queue| queue.priority == priority);
    let (Some(data), Some(cnp)) = (of(class.priority), of(class.notification_priority)) else {
        return refuse("--queues: data and notifications need a queue each".into());
    };
    let (Some(dscp), Some(cnp_dscp)) = (data.dscp, cnp.dscp) else {
        return refuse("--queues is missing: which DSCP and queue the priority has, such as 0=3:26".into());
    };
    let settings = settings(class, wanted.path.rate).map_err(|what| Refused(vec![what]))?;
    let mut notes = Vec::new();
    let mut script = format!(
        "#!/bin/sh\n# {}\n# NVIDIA NICs with MLNX_OFED or DOCA; not tried on a device. Until the next start only: \
         mlxconfig has the same numbers as RPG_TIME_RESET_P1 and so on.\n# usage: roce.sh INTERFACE...\nset -eu\n\n\
         [ $# -gt 0 ] || {{ echo \"usage: roce.sh INTERFACE...\" >&2; exit 2; }}\nfor interface in \"$@\"; do\n\
         \x20   ecn=/sys/class/net/$interface/ecn\n\
         \x20   [ -d \"$ecn\" ] || {{ echo \"roce.sh: $interface: there is no $ecn\" >&2; exit 1; }}\n",
        wanted.origin()
    );
    flow_control(&mut script, &switch, &queues);
    let _ = writeln!(script, "    # Data of connections: DSCP {dscp}, ECN-capable.");
    let _ = writeln!(script, "    for device in /sys/class/net/\"$interface\"/device/infiniband/*; do");
    let _ = writeln!(script, "        cma_roce_tos -d \"$(basename \"$device\")\" -t {}", u32::from(dscp) << 2 | 2);
    script += "    done\n";
    for setting in &settings {
        let Setting { file, number, key, exact, taken } = setting;
        let _ = writeln!(script, "    echo {number} >\"$ecn/{file}\"    # {key} = {exact}");
        if exact.to_string() != taken.to_string() {
            notes.push(format!("{key}: {exact} in the scenario, {taken} on the NIC (--as-rounded writes it back)"));
        }
    }
    let clamp = if text(class, "clamp_target").as_deref() == Some("always") { [1, 0] } else { [0, 1] };
    for (file, number) in [("clamp_tgt_rate", clamp[0]), ("clamp_tgt_rate_after_time_inc", clamp[1])] {
        let _ = writeln!(script, "    echo {number} >\"$ecn/roce_rp/{file}\"    # clamp_target");
    }
    for (file, number) in OF_THE_PAPER {
        let _ = writeln!(script, "    echo {number} >\"$ecn/roce_rp/{file}\"    # cuts of alpha / 2, up to line rate");
    }
    let _ = writeln!(script, "    # Notifications.");
    let _ = writeln!(script, "    echo {cnp_dscp} >\"$ecn/roce_np/cnp_dscp\"");
    let _ = writeln!(script, "    echo {} >\"$ecn/roce_np/cnp_802p_prio\"", cnp.tc);
    let _ =
        writeln!(script, "    for part in roce_rp roce_np; do echo 1 >\"$ecn/$part/enable/{}\"; done\ndone", data.tc);
    notes.extend(switch.network_control(&queues).filter(|_| given.is_empty()));
    notes.extend(remarks(wanted, class));
    Ok(Written { files: vec![("roce.sh", script)], notes })
}

/// The class whose law the NIC is told.
fn class(wanted: &Wanted) -> Result<&ClassConfig, String> {
    let own = wanted.classes();
    if let Some(other) = own.iter().find(|class| class.law.info().name != LAW) {
        let name = other.law.info().name;
        return Err(format!(
            "class {} runs {name}; these NICs are told of {LAW} alone: --class NAME is for hosts of one class",
            other.name
        ));
    }
    let Some(class) = own.first().copied() else { return Err("the scenario has no workload".into()) };
    if let Some(other) = own.iter().find(|other| other.law.values() != class.law.values()) {
        return Err(format!(
            "by_class: {} has parameters of its own; a NIC has one set: --class NAME is for hosts of one class",
            other.name
        ));
    }
    let differs = |(_, law): &&(Rate, LawParameters)| law.values() != class.law.values();
    if let Some((rate, _)) = class.law_at.iter().find(differs) {
        return Err(format!(
            "hosts of {rate} have other numbers than those of {}, as defaults follow the rate: profile = \"nvidia\" has the same at all, or give them",
            wanted.path.rate
        ));
    }
    Ok(class)
}

/// Queues for the priorities of a scheme as vendors' pages have them: data in 3 with DSCP 26, and what is sent before it in 6 and
/// below, what is sent after it in 2 and below, with the class selectors of these. None where there are more priorities.
pub fn usual_queues(wanted: &Wanted) -> Vec<Class> {
    let priorities = kinds(wanted).into_iter().next().map(|switch| switch.priorities).unwrap_or_default();
    let data = wanted.classes().first().map(|class| class.priority);
    let Some(at) = priorities.iter().position(|priority| Some(*priority) == data) else { return Vec::new() };
    if at > 3 || priorities.len() - at > 3 {
        return Vec::new();
    }
    let queue = |(index, priority): (usize, &u8)| {
        let tc = if index < at { 6 - index } else { 3 - (index - at) } as u8;
        Class { priority: *priority, tc, dscp: Some(if index == at { 26 } else { 8 * tc }) }
    };
    priorities.iter().enumerate().map(queue).collect()
}

/// Which priorities are lossless, and which DSCP is of which.
fn flow_control(script: &mut String, switch: &Switch, queues: &[Class]) {
    let bits: Vec<&str> = (0..8u8)
        .map(|tc| if queues.iter().any(|queue| queue.tc == tc && switch.is_lossless(queue)) { "1" } else { "0" })
        .collect();
    let _ = writeln!(script, "    mlnx_qos -i \"$interface\" --trust dscp --pfc {}", bits.join(","));
    for queue in queues {
        // A priority has the eight values that begin with it, unless a NIC is told otherwise.
        if let Some(dscp) = queue.dscp.filter(|dscp| dscp / 8 != queue.tc) {
            let _ = writeln!(script, "    mlnx_qos -i \"$interface\" --dscp2prio set,{dscp},{}", queue.tc);
        }
    }
}

/// The numbers of a class, or which of them no NIC has.
pub(super) fn settings(class: &ClassConfig, line: Rate) -> Result<Vec<Setting>, String> {
    let mut all = Vec::new();
    let mut add = |file, key, (most, allowed): (u64, &str), number: u64, taken: Raw| {
        let exact = value(class, key).unwrap_or_else(|| taken.clone());
        if number > most {
            return Err(format!("{key}: {exact}, allowed on a NIC is {allowed}"));
        }
        all.push(Setting { file, number, key, exact, taken });
        Ok(())
    };
    if let Some(gain) = number(class, "gain") {
        let kept = (STEPS * (1.0 - gain)).round().clamp(0.0, STEPS - 1.0);
        add("roce_rp/dce_tcp_g", "gain", (1_023, "at most 1"), kept as u64, Raw::Float(1.0 - kept / STEPS))?;
    }
    if let Some(alpha) = number(class, "initial_alpha") {
        let steps = (STEPS * alpha).round().clamp(0.0, STEPS - 1.0);
        add(
            "roce_rp/initial_alpha_value",
            "initial_alpha",
            (1_023, "at most 1"),
            steps as u64,
            Raw::Float(steps / STEPS),
        )?;
    }
    for (file, key, least) in [
        ("roce_rp/dce_tcp_rtt", "alpha_timer", 1),
        ("roce_rp/rpg_time_reset", "increase_timer", 1),
        ("roce_rp/rate_reduce_monitor_period", "decrease_timer", 1),
        ("roce_np/min_time_between_cnps", "cnp_interval", 0),
    ] {
        if let Some(time) = text(class, key).and_then(|text| text.parse::<Time>().ok()) {
            let number = nearest(time.ps(), MICROSECOND, least);
            add(file, key, (131_071, "at most 131071us"), number, Raw::Text(Time::from_us(number).to_string()))?;
        }
    }
    if let Some(bytes) = text(class, "byte_counter").and_then(|text| text.parse::<Bytes>().ok()) {
        let least = u64::from(bytes.get() > 0);
        let number = nearest(bytes.get(), COUNTED, least);
        add(
            "roce_rp/rpg_byte_reset",
            "byte_counter",
            (32_767, "at most 2097088B, or 0B for none; profile = \"nvidia\" has what NICs have"),
            number,
            Raw::Text(Bytes::new(number * COUNTED).to_string()),
        )?;
    }
    if let Some(Raw::Integer(steps)) = value(class, "fast_recovery") {
        let number = u64::try_from(steps).unwrap_or(u64::MAX);
        add("roce_rp/rpg_threshold", "fast_recovery", (31, "at most 31"), number, Raw::Integer(steps))?;
    }
    if let Some(part) = number(class, "rate_on_first_cnp") {
        let (number, taken) = if part < 1.0 {
            let number = nearest((part * line.as_f64()) as u64, MEGABIT, 1);
            (number, number as f64 * MEGABIT as f64 / line.as_f64())
        } else {
            (0, 1.0)
        };
        let most = (MOST_ON_FIRST * line.as_f64()) as u64 / MEGABIT;
        let allowed = (most, "at most 0.85 of the line's rate, or 1 for no such cut");
        add("roce_rp/rate_to_set_on_first_cnp", "rate_on_first_cnp", allowed, number, Raw::Float(taken))?;
    }
    for (file, key) in [
        ("roce_rp/rpg_ai_rate", "additive_increase"),
        ("roce_rp/rpg_hai_rate", "hyper_increase"),
        ("roce_rp/rpg_min_rate", "min_rate"),
    ] {
        if let Some(rate) = text(class, key).and_then(|text| text.parse::<Rate>().ok()) {
            let number = nearest(rate.bps(), MEGABIT, 1);
            add(file, key, (u64::MAX, ""), number, Raw::Text(Rate::from_bps(number * MEGABIT).to_string()))?;
        }
    }
    Ok(all)
}

/// Whole units, at least so many.
fn nearest(amount: u64, unit: u64, least: u64) -> u64 {
    (amount.saturating_add(unit / 2) / unit).max(least)
}

/// What the script does not show.
fn remarks(wanted: &Wanted, class: &ClassConfig) -> Vec<String> {
    const TOLD: [&str; 16] = [
        "gain",
        "initial_alpha",
        "alpha_timer",
        "increase_timer",
        "decrease_timer",
        "cnp_interval",
        "byte_counter",
        "fast_recovery",
        "additive_increase",
        "hyper_increase",
        "min_rate",
        "clamp_target",
        "notification",
        "rate_on_first_cnp",
        "profile",
        "variant",
    ];
    let mut notes = Vec::new();
    if text(class, "variant").as_deref() != Some("mellanox") {
        notes.push(
            "variant = \"paper\" was simulated, which cuts at each notification; a NIC cuts at the ticks of a timer: simulate variant = \"mellanox\""
                .into(),
        );
    }
    let profile = text(class, "profile").map(|profile| ("profile".to_owned(), Raw::Text(profile)));
    let usual = LawParameters::resolve(LAW, &wanted.path, &profile.into_iter().collect::<Vec<_>>());
    let usual = usual.and_then(Result::ok).map(|law| law.values()).unwrap_or_default();
    let differs = |(key, raw): &(&str, Raw)| !TOLD.contains(key) && !usual.contains(&(*key, raw.clone()));
    let without: Vec<String> =
        class.law.values().into_iter().filter(differs).map(|(key, raw)| format!("{key} = {raw}")).collect();
    if !without.is_empty() {
        notes.push(format!(
            "these NICs have no setting for {}: what is applied is not what was simulated",
            without.join(", ")
        ));
    }
    if class.notification_priority == class.priority {
        notes.push(
            "notifications (CNPs) share the queue of data, as was simulated: `priority` and `notification_priority` of the scheme keep them apart"
                .into(),
        );
    }
    notes.push("simulated: selective or go-back-N recovery as the scenario has it, no window of the NIC's own; ROCE_ACCL (mlxreg) is left as it is".into());
    notes.push("rpg_byte_reset is taken for units of 64 B; pages of the vendor differ (docs/dcqcn.md)".into());
    notes.push("switches need theirs: --for sonic, eos or nxos, with the same --queues".into());
    notes
}
