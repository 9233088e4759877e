//! Marimo's parameters on a Linux host: `marimo.conf`, which `marimoctl` reads for the BPF form, and options of the kernel module
//! (`deploy/linux/marimoctl/README.md`, `deploy/linux/tcp_marimo/README.md`).

use super::{Wanted, number, rounding::exponent, text, value};
use incast_cc::{parameters::Raw, registry::LawParameters};
use incast_sim::config::ClassConfig;
use std::fmt::Write as _;

/// Loads, shares and counts, by the names of the scenario, with what hosts have without a line.
const NUMBERS: [(&str, f64); 10] = [
    ("increase_below", 0.9),
    ("decrease_above", 1.0),
    ("target", 0.95),
    ("max_decrease", 0.5),
    ("loss_load", 1.2),
    ("loss_decrease", 0.5),
    ("increase", 1.0),
    ("min_epoch", 2.0),
    ("settle", 0.0),
    ("max_increase", 1.0),
];
/// The last two of them with `rule = "settling"`, where hosts know no BDP to take a share of.
const SETTLING: [(&str, f64); 2] = [("settle", 1.0), ("max_increase", 4.0)];
/// What the module takes in thousandths; the other numbers are whole.
const THOUSANDTHS: [&str; 6] =
    ["increase_below", "decrease_above", "target", "max_decrease", "loss_load", "loss_decrease"];

/// Packets to which idle connections go back, without a line.
const INITIAL_WINDOW: u64 = 10;
/// The least window of a host.
const FLOOR: u64 = 2;

/// The two files, of a class whose initial window has so many segments; none if its parameters are those that hosts have by default.
pub fn write(
    wanted: &Wanted,
    class: &ClassConfig,
    segments: Option<u64>,
    notes: &mut Vec<String>,
) -> Option<[(&'static str, String); 2]> {
    let (mut lines, mut options) = (Vec::new(), Vec::new());
    let is_settling = text(class, "rule").as_deref() == Some("settling");
    let usual_words = [
        ("rule", "paper"),
        ("decrease_from", if is_settling { "epoch" } else { "memory" }),
        ("slow_start", if is_settling { "first-mark" } else { "epoch" }),
    ];
    for (key, usual) in usual_words {
        let word = text(class, key).unwrap_or_default();
        if word != usual {
            lines.push(format!("{key} = {word}"));
            options.push(format!("{key}={word}"));
        }
    }
    if value(class, "forget") == Some(Raw::Flag(false)) {
        lines.push("forget = false".into());
        options.push("forget=0".into());
    }
    for (key, usual) in NUMBERS {
        let usual = SETTLING.iter().find(|(name, _)| is_settling && *name == key).map_or(usual, |(_, usual)| *usual);
        let Some(exact) = number(class, key).filter(|exact| *exact != usual) else { continue };
        lines.push(format!("{key} = {exact}"));
        let unit = if THOUSANDTHS.contains(&key) { 1_000.0 } else { 1.0 };
        // What the module does not refuse: some growth, and no share that is all of it.
        let (least, most) = match key {
            "max_decrease" | "loss_decrease" => (0.0, 999.0),
            "settle" | "loss_load" => (0.0, f64::MAX),
            _ => (1.0, f64::MAX),
        };
        let taken = (exact * unit).round().clamp(least, most);
        options.push(format!("{key}={taken}"));
        if taken != exact * unit {
            notes.push(format!(
                "{key}: {exact} in the scenario, {} in the module; marimo.conf has it exactly",
                taken / unit
            ));
        }
    }
    if let Some(beta) = number(class, "beta").filter(|beta| *beta != 0.5) {
        let shift = -exponent(beta).0;
        lines.push(format!("beta_shift = {shift}"));
        options.push(format!("beta_shift={shift}"));
    }
    let window = segments.map(|segments| segments.max(FLOOR)).filter(|segments| *segments != INITIAL_WINDOW);
    if let Some(segments) = window {
        lines.push(format!("initial_window = {segments}"));
        options.push(format!("initial_window={segments}"));
    }
    notes.push(format!(
        "windows of hosts are {FLOOR} packets at least; simulated ones go down to one, with fractional below"
    ));
    let idle = text(class, "idle_after");
    let usual = LawParameters::resolve("marimo", &wanted.path, &[]).and_then(Result::ok);
    let usual = usual.and_then(|law| law.values().into_iter().find(|(key, _)| *key == "idle_after"));
    if let (Some(idle), Some((_, Raw::Text(usual)))) = (idle, usual)
        && idle != usual
    {
        notes.push(format!("hosts have no setting for idle_after = {idle}"));
    }
    match value(class, "table") {
        Some(Raw::Text(name)) if name == "calibrated" => {}
        Some(table) => notes.push(format!(
            "table: load {table} with marimoctl load --config marimo.conf --table FILE; the module loads with the calibrated one, which has to cross its thresholds, and then takes it from marimoctl set-table FILE"
        )),
        None => {}
    }
    if lines.is_empty() {
        return None;
    }
    let mut conf = format!(
        "# {}\n# The BPF form: as /etc/marimo/marimo.conf in place of the package's, or for marimoctl load --config.\n\n",
        wanted.origin()
    );
    lines.iter().for_each(|line| conf += &format!("{line}\n"));
    let mut module =
        format!("# {}\n# The module: into /etc/modprobe.d, before tcp_marimo is loaded.\n", wanted.origin());
    let _ = writeln!(module, "options tcp_marimo {}", options.join(" "));
    Some([("marimo.conf", conf), ("modprobe-incast.conf", module)])
}
