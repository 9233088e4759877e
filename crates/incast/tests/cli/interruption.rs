//! Whatever ends the process, finished runs stay whole and are not computed again.

use crate::common::{command, folder, incast, json, program, runs, scenario, stderr, succeed, text};
#[cfg(target_os = "linux")]
use crate::failing_writes::library;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

const SEEDS: &str = "12";

fn arguments<'a>(out: &'a Path, scenario: &'a str) -> Vec<&'a str> {
    vec!["run", "--quiet", "--jobs", "1", "--seeds", SEEDS, "--out", text(out), scenario]
}

/// Waits until some runs are finished, but not all.
fn wait_for_runs(results: &Path, count: usize) {
    let start = Instant::now();
    while runs(results).len() < count {
        assert!(start.elapsed() < Duration::from_secs(120), "no run finishes");
        thread::sleep(Duration::from_millis(1));
    }
}

fn modified(runs: &[PathBuf]) -> BTreeMap<PathBuf, SystemTime> {
    let time = |run: &PathBuf| fs::metadata(run.join("run.json")).and_then(|file| file.modified()).expect("a time");
    runs.iter().map(|run| (run.clone(), time(run))).collect()
}

/// A summary without what differs from run to run.
fn results_only(path: &Path) -> Value {
    let mut rows = json(path)["rows"].take();
    for row in rows.as_array_mut().expect("a list") {
        for key in ["cpu_s", "ns_per_packet_hop"] {
            row[key] = Value::Null;
            if let Some(intervals) = row.get_mut("ci95") {
                intervals[key] = Value::Null;
            }
        }
    }
    rows
}

#[test]
fn kill_and_resume() {
    let long = scenario("long");
    let whole = folder("uninterrupted");
    succeed(&arguments(&whole, &long));

    let out = folder("killed");
    let results = out.join("long");
    let mut child = command(&arguments(&out, &long)).stdout(Stdio::null()).spawn().expect("the binary starts");
    wait_for_runs(&results, 2);
    child.kill().expect("SIGKILL");
    child.wait().expect("it ends");
    let finished = runs(&results);
    assert!(finished.len() < runs(&whole.join("long")).len(), "it was done before it was killed");
    assert!(!results.join("summary.json").exists());
    // A half-written run, as a kill in the middle of writing leaves it.
    let partial = results.join("something.partial");
    fs::create_dir_all(&partial).expect("a folder");
    fs::write(partial.join("flows.parquet"), "PAR1").expect("a file");
    let before = modified(&finished);

    let refused = incast(&arguments(&out, &long));
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let mut resume = arguments(&out, &long);
    resume.push("--resume");
    succeed(&resume);
    assert_eq!(modified(&finished), before, "finished runs were computed again");
    assert!(!partial.exists());
    assert_eq!(results_only(&results.join("summary.json")), results_only(&whole.join("long/summary.json")));

    // Nothing is left to do, and more seeds are added to the same results.
    let all = modified(&runs(&results));
    succeed(&resume);
    assert_eq!(modified(&runs(&results)), all);
}

fn signal(name: &str, child: &Child) {
    // The shell's own: a minimal system has no program of that name.
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

#[test]
fn interrupt_keeps_what_is_finished() {
    let long = scenario("long");
    let out = folder("interrupted");
    let results = out.join("long");
    let child = command(&arguments(&out, &long))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    wait_for_runs(&results, 1);
    signal("INT", &child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
    let left = fs::read_dir(&results).expect("results").map(|entry| entry.expect("an entry").path());
    assert!(left.into_iter().all(|path| path.extension().is_none_or(|ending| ending != "partial")));
    // The summary is about what is finished.
    assert!(!json(&results.join("summary.json"))["rows"].as_array().expect("a list").is_empty());
}

#[test]
fn a_signal_while_flows_are_made_keeps_what_is_finished() {
    let out = folder("generation");
    let results = out.join("generation");
    let path = scenario("generation");
    let arguments = ["run", "--quiet", "--jobs", "1", "--out", text(&out), &path];
    let child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    wait_for_runs(&results, 1);
    thread::sleep(Duration::from_millis(100));
    signal("TERM", &child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
    assert_eq!(runs(&results).len(), 1);
}

/// The summary of many runs with many flows takes long; here it never ends, as a pipe without a writer is in the place of a
/// table.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_while_runs_are_summarised_ends_the_process() {
    let out = folder("summary");
    let small = scenario("small");
    let mut arguments = vec!["run", "--quiet", "--out", text(&out), &small];
    succeed(&arguments);
    arguments.push("--resume");
    // After the calls that open the folder, those for summary.json.
    let mut child = command(&arguments)
        .env("LD_PRELOAD", library(&out))
        .envs([("FAIL_BELOW", text(&out)), ("FAIL_AT", "4"), ("FAIL_AS", "hang")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("a state").is_none(), "it did not hang");
    signal("TERM", &child);
    let sent = Instant::now();
    while child.try_wait().expect("a state").is_none() {
        if sent.elapsed() > Duration::from_secs(20) {
            child.kill().expect("SIGKILL");
            panic!("a signal does not end the summary");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
}

#[test]
fn a_run_that_takes_longer_than_its_limit_fails_and_the_others_go_on() {
    let out = folder("late");
    let results = out.join("generation");
    let path = scenario("generation");
    let output = incast(&["run", "--quiet", "--jobs", "1", "--run-timeout", "2s", "--out", text(&out), &path]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("longer than the 2 s of --run-timeout"), "{}", stderr(&output));
    assert!(!json(&results.join("summary.json"))["rows"].as_array().expect("a list").is_empty());
    let failed = runs(&results).into_iter().filter(|run| json(&run.join("run.json"))["status"] == "failed");
    assert_eq!(failed.count(), 1);
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    // A limit on file sizes stands for the full disk: writes fail in the middle of a file.
    let out = folder("full");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program())
        .args(["run", "--quiet", "--out", text(&out), &scenario("small")])
        .output()
        .expect("sh runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(out.join("small")).expect("a folder").count(), 0);
    succeed(&["run", "--quiet", "--out", text(&out), &scenario("small")]);
}
