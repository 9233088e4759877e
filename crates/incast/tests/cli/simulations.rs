//! Runs that differ in nothing that their packets depend on are one simulation.

use crate::common::{folder, incast, json, runs, succeed, text};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};

const SCENARIO: &str = r#"
name = "thresholds"
duration = "300us"
seeds = [1, 2]
[topology]
kind = "single-switch"
hosts = 6
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { total = "300KB", alpha = 1.0 }
ecn = { kind = "step", at = "30KB" }
[[workload]]
class = "web"
kind = "poisson"
sizes = { fixed = "60KB" }
load = 0.6
[[scheme]]
law = "dctcp"
[[scheme]]
name = "the same"
law = "dctcp"
[[scheme]]
law = "cubic"
[[scheme]]
name = "own threshold"
law = "dctcp"
switch.ecn = { kind = "step", at = "20KB" }
[grid]
"switch.ecn.at" = ["10KB", "30KB"]
"#;

/// By scheme, threshold and seed.
fn records(results: &Path) -> BTreeMap<(String, String, u64), Value> {
    let key = |record: &Value| {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&record["scheme"]), text(&record["grid"]["switch.ecn.at"]), record["seed"].as_u64().expect("a number"))
    };
    let records = runs(results).into_iter().map(|run| json(&run.join("run.json")));
    records.map(|record| (key(&record), record)).collect()
}

#[test]
fn runs_that_are_one_simulation_are_simulated_once_and_have_results_of_their_own() {
    let out = folder("simulations");
    let (file, results) = (out.join("thresholds.toml"), out.join("thresholds"));
    fs::write(&file, SCENARIO).expect("written");
    // Of each seed two of DCTCP, one of CUBIC, one of the scheme with its own threshold.
    let checked = succeed(&["check", text(&file), "--brief"]);
    assert!(checked.contains("16 runs\n#   8 simulations"), "{checked}");
    let all = ["run", text(&file), "--out", text(&out), "--quiet"];
    let said = succeed(&all);
    let together = records(&results);
    assert_eq!(together.len(), 16);
    let simulated = together.values().filter(|record| record.get("same_as").is_none()).collect::<Vec<_>>();
    assert_eq!(simulated.len(), 8);
    let hops: u64 = simulated.iter().map(|record| record["cost"]["packet_hops"].as_u64().expect("a number")).sum();
    assert!(said.contains(&format!("16 runs, {hops} packet-hops")), "{said}");
    for (key, record) in &together {
        let Some(of) = record.get("same_as").and_then(Value::as_str) else { continue };
        let first = json(&results.join(of).join("run.json"));
        assert_eq!((&first["digest"], &first["seed"]), (&record["digest"], &record["seed"]), "{key:?}");
        assert_eq!((&record["cost"]["cpu_s"], first.get("same_as")), (&0.0.into(), None), "{key:?}");
        assert_eq!(record["rows"][0]["grid"], record["grid"], "{key:?}");
    }
    // Each by itself has the same packets, numbers and tables.
    for (key, record) in &together {
        let alone = folder("simulations-alone");
        let at = format!("scheme={},switch.ecn.at={},seed={}", key.0, key.1, key.2);
        succeed(&["run", text(&file), "--only", &at, "--out", text(&alone), "--quiet"]);
        let by_itself = &records(&alone.join("thresholds"))[key];
        assert_eq!(by_itself.get("same_as"), None);
        for part in ["digest", "grid", "scenario", "changes", "workloads", "classes"] {
            assert_eq!(by_itself[part], record[part], "{key:?} {part}");
        }
        let sums = |record: &Value| record["files"].clone();
        assert_eq!(sums(by_itself), sums(record), "{key:?}");
    }
}

#[test]
fn shards_do_not_divide_what_is_one_simulation() {
    let out = folder("simulations-shards");
    let file = out.join("thresholds.toml");
    fs::write(&file, SCENARIO).expect("written");
    for shard in ["1/3", "2/3", "3/3"] {
        succeed(&["run", text(&file), "--shard", shard, "--out", text(&out), "--quiet"]);
    }
    let shards = (1..=3).map(|shard| records(&out.join(format!("shard-{shard}-of-3/thresholds"))));
    let own = shards.map(|all| all.into_values().filter(|record| record.get("same_as").is_none()).count());
    assert_eq!(own.sum::<usize>(), 8);
    succeed(&["gather", text(&out)]);
    assert_eq!(records(&out.join("thresholds")).len(), 16);
    // What was lost is simulated by itself where its like is there.
    let lost = runs(&out.join("thresholds")).pop().expect("a run");
    fs::remove_dir_all(&lost).expect("removed");
    let resumed = incast(&["run", text(&file), "--resume", "--out", text(&out), "--quiet"]);
    assert!(resumed.status.success() && lost.join("run.json").is_file());
}
