//! Situations from other projects' public bug reports, each with its right value. The files beside this one are small
//! scenarios after those reports; what is right, and why, stands at each test.

use incast_lab::scenario::{Run, Scenario};
use incast_sim::{Outcome, simulate};
use std::path::PathBuf;

fn scenario(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/public_reports").join(name);
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// Every run of a scenario, with the name of its scheme.
fn outcomes(name: &str, sets: &[(&str, &str)]) -> Vec<(String, Run, Outcome)> {
    let run = |run: Run| {
        let outcome = simulate(run.config(1).expect("runs")).expect("ends");
        (run.scheme.clone(), run, outcome)
    };
    scenario(name, sets).runs().into_iter().map(run).collect()
}

/// The worst slowdown of a run in which every flow ended.
fn slowdown(outcome: &Outcome) -> f64 {
    let slow = |flow: &incast_sim::outcome::FlowRecord| {
        let taken = flow.delivered.expect("delivered") - flow.start;
        taken.as_secs_f64() / flow.ideal.expect("a way").as_secs_f64()
    };
    outcome.flows.iter().map(slow).fold(0.0, f64::max)
}

/// Gbit/s of a flow from `from` of the run on.
fn goodput(outcome: &Outcome, flow: usize) -> f64 {
    outcome.flows[flow].delivered_bytes as f64 * 8e-9 / outcome.ended_at.as_secs_f64()
}

/// RFC 8511 and RFC 9438: one reduction to 0.7 for each window with marks (msquic 3216, Linux tcp_fastretrans_alert).
#[test]
fn cubic_reduces_once_for_a_window_of_marks() {
    for (scheme, run, outcome) in outcomes("cubic-ecn-marks.toml", &[]) {
        let total = goodput(&outcome, 0) + goodput(&outcome, 1);
        assert!(total > 96.0, "{scheme}: {total} Gbit/s");
        if scheme != "cubic" {
            continue;
        }
        let mss = u64::from(run.mtu());
        let windows = outcome.rates.iter().filter(|sample| sample.sequence == 0 && sample.source == 0);
        let windows: Vec<u64> = windows.map(|sample| sample.window_bytes).collect();
        for falls in windows.windows(8) {
            let (most, least) = (falls.iter().max().expect("8"), falls.iter().min().expect("8"));
            assert!(*least >= most.saturating_sub(2 * mss) * 7 / 10, "two reductions in 40 us: {falls:?}");
        }
    }
}

/// What the receiver holds on purpose is no congestion (quic-go 1330, hysteria 973): only the first packet waits.
#[test]
fn a_held_acknowledgement_is_no_congestion() {
    for hold in ["2ms", "40ms"] {
        for (scheme, _, outcome) in outcomes("swift-held-acks.toml", &[("host.ack_delay", hold)]) {
            let taken = outcome.flows[0].delivered.expect("delivered").as_secs_f64();
            let holds = if hold == "2ms" { 2e-3 } else { 40e-3 };
            assert!(taken < 2.0 * holds + 1e-3, "{scheme} {hold}: {taken} s");
        }
    }
}

// ---- A lone flow fills an idle link --------------------------------------------------------------------------

/// The share of an idle link that a law aims at, where it is not all of it.
const TARGETS: &[(&str, f64)] = &[("hpcc", 0.95)];

/// The slowdown of a lone flow over one switch.
fn alone(law: &str, gbps: u64, mtu: u64, delay: &str, ns: u64) -> f64 {
    let bdp = gbps * 4 * ns / 8;
    let bytes = (20 * bdp).clamp(200 * mtu, 4_000 * mtu);
    let text = format!(
        "name = \"alone\"\nduration = \"1ms\"\ndrain = \"100s\"\nhost = {{ mtu = \"{mtu}B\" }}\n\
         scheme = [{{ law = \"{law}\" }}]\nswitch = {{ buffer = {{ per_port = \"1GB\" }}, ecn = {{ kind = \"step\", at = \"{mark}B\" }} }}\n\
         topology = {{ kind = \"single-switch\", hosts = 2, link = {{ rate = \"{gbps}Gbps\", delay = \"{delay}\" }} }}\n\
         workload = [{{ kind = \"incast\", fan_in = 1, size = \"{bytes}B\", every = \"1ms\", receiver = \"h1\", overload = true }}]\n",
        mark = (bdp / 2).max(4 * mtu),
    );
    let file = std::env::temp_dir().join(format!("incast-alone-{}-{law}.toml", std::process::id()));
    std::fs::write(&file, text).expect("a file");
    let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{law}: {error}"));
    std::fs::remove_file(file).expect("a file");
    let run = scenario.runs().remove(0);
    slowdown(&simulate(run.config(1).expect("runs")).expect("ends"))
}

#[test]
fn a_lone_flow_fills_an_idle_link_under_every_law() {
    let mut slow = Vec::new();
    for law in incast_cc::registry::LAWS {
        let name = law.name;
        let target = TARGETS.iter().find(|(law, _)| *law == name).map_or(1.0, |(_, target)| *target);
        for gbps in [1, 10, 100, 400] {
            for mtu in [256, 1_460, 9_000] {
                for (delay, ns) in [("100ns", 100), ("1us", 1_000), ("20us", 20_000), ("1ms", 1_000_000)] {
                    let slowdown = alone(name, gbps, mtu, delay, ns);
                    if slowdown * target > 1.02 {
                        slow.push(format!("{name} at {gbps} Gbit/s, {mtu} B, {delay}: {slowdown:.3}"));
                    }
                }
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
