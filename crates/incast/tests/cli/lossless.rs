//! Priority flow control from the command line.

use crate::common::{folder, incast, json, scenario, stderr, succeed, text};
use std::fs;

#[test]
fn a_deadlock_fails_its_run_with_the_cycle_named_and_the_others_are_kept() {
    let out = folder("deadlock").join("results");
    let output = incast(&["run", "--quiet", "--out", text(&out), &scenario("ring")]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("halts+seed1: deadlock of PFC: nothing has moved since"), "{message}");
    let cycle = ["s0->s1", "s1->s2", "s2->s3", "s3->s4", "s4->s0"];
    let places: Vec<_> = cycle.iter().map(|port| message.find(port)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{message}");
    assert!(out.join("ring/drops+seed1/flows.parquet").exists());
    // What happened until then can be looked at, and is in no summary.
    assert!(out.join("ring/halts+seed1/flows.parquet").exists());
    let record = json(&out.join("ring/halts+seed1/run.json"));
    assert_eq!((&record["status"], &record["complete"]), (&"failed".into(), &false.into()));
    assert!(record["error"].as_str().is_some_and(|error| error.starts_with("deadlock of PFC")), "{record}");
    assert!(record["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| row["pfc_cycles"] == 1)), "{record}");
    let summary = fs::read_to_string(out.join("ring/summary.json")).expect("a summary");
    assert!(summary.contains("\"drops\"") && !summary.contains("\"halts\""), "{summary}");
}

#[test]
fn check_names_laws_of_lossless_fabrics_on_a_lossy_one() {
    let file = folder("lossy").join("lossy.toml");
    let small = fs::read_to_string(scenario("small")).expect("a scenario");
    let of = |switch: &str| {
        let pfc = small.replace("[switch]\n", &format!("[switch]\n{switch}\n"));
        fs::write(&file, pfc.replace("law = \"cubic\"", "law = \"dcqcn\"")).expect("written");
        succeed(&["check", "--brief", text(&file)])
    };
    let lossy = of("pfc = \"off\"");
    assert!(lossy.contains("# laws made for a lossless fabric, on a lossy one\n#   dcqcn: dcqcn does not"), "{lossy}");
    assert!(!lossy.contains("dctcp does not"), "{lossy}");
    let lossless = of("pfc = \"dynamic\"");
    assert!(!lossless.contains("made for a lossless fabric"), "{lossless}");
}

#[test]
fn check_prints_what_flow_control_comes_to() {
    let printed = succeed(&["check", &scenario("ring")]);
    // 2 us of cable at 100 Gbit/s, two frames of 4,166 with 20, one of 64 with 20, and the one above the threshold.
    let headroom = 25_000 + 2 * (4_166 + 20) + 84 + 4_166;
    for line in [
        format!("halts: ports of 100Gbps with cables of 1us: headroom {headroom} B"),
        "kind = \"static\"".into(),
        "headroom = \"computed\"".into(),
        "response_delay = \"0ps\"".into(),
    ] {
        assert!(printed.contains(&line), "{line}\n{printed}");
    }
    assert!(!printed.contains("drops: ports of"), "{printed}");
}

#[test]
fn too_little_headroom_is_refused_with_what_is_needed() {
    let out = folder("little_headroom").join("results");
    let set = "switch.pfc={xoff=\"80KB\",headroom=\"3 rate*delay\",response_delay=\"1us\"}";
    let output = incast(&["run", "--out", text(&out), &scenario("ring"), "--set", set]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in ["switch.pfc.headroom", "is 37500 B", "and 50122 B can still arrive"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!out.exists());
}

/// Pause frames can be lost on bad cables: then a promise is broken, which is not passed over.
#[test]
fn a_strict_run_that_drops_lossless_packets_fails() {
    let folder = folder("broken_promise");
    let (file, out) = (folder.join("lossy.toml"), folder.join("results"));
    let lossy = r#"
name = "lossy"
duration = "1ms"
drain = "20ms"
[topology]
kind = "single-switch"
hosts = 9
link = { rate = "100Gbps", delay = "1us", loss = 0.02 }
[switch]
buffer = { total = "4MB" }
pfc = { xoff = "20KB", pause_time = "20us" }
[[workload]]
kind = "incast"
fan_in = 8
size = "500KB"
every = "1ms"
[[scheme]]
law = "constant-window"
window = "1MB"
"#;
    fs::write(&file, lossy).expect("written");
    let output = incast(&["run", "--quiet", "--out", text(&out), text(&file)]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("packets of lossless priorities were dropped"), "{message}");
    let record = json(&out.join("lossy/constant-window+seed1/run.json"));
    let rows = record["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["lossless_drops"].as_u64() > Some(0)), "{record}");
    fs::write(&file, lossy.replace("pause_time", "strict = false, pause_time")).expect("written");
    succeed(&["run", "--quiet", "--force", "--out", text(&out), text(&file)]);
}
