//! `incast tune`: what it finds, that it goes on where it was, and what it refuses before anything runs.

use crate::common::{command, folder, incast, json, runs, scenario, stderr, succeed, text};
use serde_json::Value;
use std::{fs, path::Path};

const QUESTION: [&str; 4] = ["--for", "background:slowdown.mean", "--over", "switch.ecn.at=3KB,10KB,30KB,100KB"];

/// Arguments of a search of half a second.
fn search<'a>(out: &'a Path, file: &'a str) -> Vec<&'a str> {
    let own = vec!["tune", file, "--quiet", "--scheme", "dctcp", "--budget", "14", "--out", text(out)];
    [own, QUESTION.to_vec()].concat()
}

#[test]
fn what_is_found_is_tested_reported_and_goes_on_where_it_was() {
    let (out, file) = (folder("tune"), scenario("small"));
    let arguments = [search(&out, &file), vec!["--over", "scheme.dctcp.gain=0.03..0.5"]].concat();
    let found = json_of(&succeed(&[&arguments[..], &["--json"]].concat()));
    let scheme = &found["schemes"][0];
    assert_eq!((&found["for"], &scheme["scheme"]), (&"background:slowdown.mean".into(), &"dctcp".into()));
    assert_eq!(scheme["start"], serde_json::json!({"switch.ecn.at": "30KB", "scheme.dctcp.gain": 0.0625}));
    assert!(scheme["run_equivalents"].as_f64().expect("a number") <= 14.0);
    assert_eq!(scheme["keys"].as_array().map(Vec::len), Some(2));
    let results = out.join("small-tune");
    let before = runs(&results).len();
    assert!(before >= 10 && results.join("report.html").is_file() && results.join("summary.json").is_file());
    assert_eq!(json(&results.join("tune.json")), found);
    let page = fs::read_to_string(results.join("report.html")).expect("a report");
    assert!(page.contains("Settings for background slowdown mean") && page.contains("class=\"map\""));
    assert!(!page.contains("<h2>Settings</h2>"), "the seeds of the search favour what it chose");
    // Again: nothing is run, and nothing else is found.
    let again = succeed(&[&arguments[..], &["--json", "--resume"]].concat());
    assert_eq!(json_of(&again), found);
    assert_eq!(runs(&results).len(), before);
    // Results are results: other commands take them.
    succeed(&["report", text(&results)]);
    succeed(&["table", text(&results), "--columns", "background:slowdown.mean"]);
    let refused = incast(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("holds results already; use --resume"), "{}", stderr(&refused));
}

#[test]
fn settings_that_help_are_written_as_a_scenario() {
    // A window of one packet costs round trips, which nobody doubts.
    let (out, file) = (folder("tune-helps"), scenario("small"));
    let own = ["tune", &file, "--quiet", "--budget", "14", "--out", text(&out), "--for", "background:slowdown.mean"];
    let over = ["--over", "scheme.dctcp.initial_window=1500B..24KB", "--set", "scheme.dctcp.initial_window=1500B"];
    let said = succeed(&[&own[..], &over].concat());
    assert!(said.contains("from: scheme.dctcp.initial_window = 1.5KB"), "{said}");
    assert!(said.contains("set: scheme.dctcp.initial_window = "), "{said}");
    assert!(said.contains("on 3 seeds that the search did not see: -"), "{said}");
    assert!(said.contains("against the start elsewhere: load -20%"), "{said}");
    assert!(!said.contains("no scenario written"), "{said}");
    let tuned = out.join("small-tune/tuned.toml");
    let checked = succeed(&["check", text(&tuned)]);
    assert!(checked.contains("name = \"small-tuned\"") && !checked.contains("initial_window = \"1.5KB\""), "{checked}");
    assert!(succeed(&["config", text(&tuned), "--for", "linux"]).contains("dctcp"));
}

#[test]
fn runs_that_are_too_short_are_named_before_and_after_as_run_names_them() {
    let (out, file) = (folder("tune-short"), scenario("small"));
    let set = [
        "--set",
        "duration=5ms",
        "--set",
        "workload.background.sizes={fixed=\"1MB\"}",
        "--set",
        "workload.background.load=0.8",
    ];
    let set = [&set[..], &["--scheme", "dctcp", "--set", "warmup=0us"]].concat();
    let own =
        ["tune", &file, "--budget", "14", "--vary", "0%", "--out", text(&out), "--for", "background:slowdown.mean"];
    let over = ["--over", "scheme.dctcp.gain=0.05,0.1"];
    let output = incast(&[&own[..], &set, &over].concat());
    let before = stderr(&output);
    assert!(before.contains("dctcp: TOO SHORT: a duration of "), "{before}");
    let said = String::from_utf8_lossy(&output.stdout).replace("\n    ", " ");
    assert!(said.contains("! runs too short for a steady state: dctcp") && said.contains(" would do"), "{said}");
    let found = json(&out.join("small-tune/tune.json"));
    assert_eq!(found["schemes"][0]["too_short"], true, "{found}");
    let page = fs::read_to_string(out.join("small-tune/report.html")).expect("a report");
    assert!(page.contains("! runs too short for a steady state: dctcp"), "the report says it");
}

#[test]
fn more_is_better_for_rates_and_flows_that_finish_are_a_help() {
    let (out, file) = (folder("tune-rates"), scenario("small"));
    let own = |name: &str| -> Vec<String> {
        let folder = out.join(name);
        let all = ["tune", &file, "--quiet", "--json", "--vary", "0%", "--scheme", "dctcp", "--budget", "14", "--out"];
        all.into_iter().chain([text(&folder)]).map(str::to_owned).collect()
    };
    let found = |name: &str, more: &[&str]| -> Value {
        let own = own(name);
        let all: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let found: Value = serde_json::from_str(&succeed(&all)).expect("JSON");
        found["schemes"][0].clone()
    };
    let window = ["--over", "scheme.dctcp.initial_window=1500B,24KB", "--set", "scheme.dctcp.initial_window=1500B"];
    let rate = ["--for", "background:goodput_gbps", "--within", "background:slowdown.p99=+50%"];
    let rate = found("rate", &[&rate[..], &window].concat());
    let tried = rate["tried"].as_array().expect("a list");
    let of = |window: &str| tried.iter().find(|it| it["settings"]["scheme.dctcp.initial_window"] == window);
    assert!(of("24KB").expect("tried")["difference"].as_f64().expect("a number") > 0.0, "{rate}");
    assert_eq!(of("1500B").expect("tried")["difference"], 0.0);
    assert_eq!((&rate["is_relative"], &rate["limits"][0]["is_kept"]), (&true.into(), &true.into()), "{rate}");
    // With so short a time to end in, the start does not finish a flow on one of the seeds.
    let late = ["--for", "background:slowdown.mean", "--set", "drain=40us"];
    let late = found("late", &[&late[..], &window].concat());
    assert_eq!((&late["helps"], &late["difference"]), (&true.into(), &Value::Null), "{late}");
    assert_eq!(late["known_seeds"], serde_json::json!([2, 3]), "{late}");
}

#[test]
fn conditions_that_are_not_run_say_why_and_a_second_search_leaves_no_advice_of_the_first() {
    let (out, file) = (folder("tune-again"), scenario("small"));
    let own = ["tune", &file, "--quiet", "--budget", "14", "--out", text(&out), "--for", "background:slowdown.mean"];
    let set = ["--set", "scheme.dctcp.initial_window=1500B", "--set", "seeds=[4,9]"];
    let over = ["--over", "\"scheme\".dctcp.initial_window=1500B,24KB", "--over", "workload.background.load=0.3,0.2"];
    let load = ["--over", "workload.incast.every=100us,200us", "--vary", "90%"];
    let said = succeed(&[&own[..], &set, &over, &load].concat());
    assert!(said.contains("load -90% not run, as it is tuned; load +90% not run"), "{said}");
    assert!(said.replace("\n    ", " ").contains("buffer -90% "), "{said}");
    let tuned = out.join("small-tune/tuned.toml");
    let checked = succeed(&["check", text(&tuned)]);
    assert!(checked.contains("seeds = [4, 9]"), "{checked}");
    let said = stderr(&incast(&["check", text(&tuned)]));
    assert!(!said.contains("notification_priority"), "{said}");
    let again = ["--over", "switch.buffer.total=1MB,2MB", "--force", "--vary", "0%"];
    let said = succeed(&[&own[..], &set, &again].concat());
    assert!(said.contains("nothing found that helps") && !tuned.exists(), "{said}");
    assert!(said.contains("no scenario written for dctcp, cubic: today's values stay"), "{said}");
}

#[test]
fn a_start_whose_run_fails_is_refused_with_the_reason() {
    let (out, file) = (folder("tune-fails"), scenario("small"));
    let own = ["tune", &file, "--quiet", "--scheme", "dctcp", "--out", text(&out), "--run-timeout", "1ns"];
    let output = incast(&[&own[..], &QUESTION].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("dctcp: the run from which the search starts: "), "{}", stderr(&output));
    assert_eq!(
        fs::read_dir(out.join("small-tune"))
            .expect("a folder")
            .filter_map(Result::ok)
            .filter(|it| it.path().is_dir())
            .count(),
        1
    );
}

#[test]
fn a_key_without_effect_is_named_and_combinations_that_cannot_be_are_counted() {
    let (out, file) = (folder("tune-nothing"), scenario("small"));
    let own = vec!["tune", &file, "--scheme", "cubic", "--budget", "12", "--vary", "0%", "--out", text(&out)];
    let over = vec!["--over", "switch.ecn.at=20KB,30KB", "--over", "scheme.cubic.beta=0.5,0.7,7"];
    let output = incast(&[own, vec!["--for", "background:slowdown.p50"], over].concat());
    let (said, messages) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("6 settings, of which 2 cannot be simulated; the first: "), "{messages}");
    let unwrapped = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let refused = "2 of 6 settings cannot be simulated and were left out; the first: ";
    assert!(unwrapped.contains(refused) && unwrapped.contains("beta"), "{said}");
    assert!(said.contains("switch.ecn.at: changes nothing"), "{said}");
    // What does nothing stays as it was.
    for line in said.lines().filter(|line| line.contains("best in the search: ") || line.contains("set: ")) {
        assert!(line.contains("switch.ecn.at = 30KB"), "{said}");
    }
    let found = json(&out.join("small-tune/tune.json"));
    assert_eq!(found["schemes"][0]["best"]["switch.ecn.at"], "30KB", "{found}");
    assert!(said.contains("nothing found that helps") || said.contains("set: "), "{said}");
}

#[test]
fn what_cannot_be_tuned_is_refused_and_nothing_is_written() {
    let (out, file) = (folder("tune-refused"), scenario("small"));
    let over = "switch.ecn.at=10KB,30KB";
    for (arguments, expected) in [
        (vec!["--for", "background:slowdown.p99"], "--over <KEY=FROM..TO|LIST>"),
        (vec!["--over", over], "--for <NUMBER>"),
        (vec!["--for", "slowdown.p9", "--over", over], "did you mean"),
        (vec!["--for", "slowdown.p50", "--over", over], "flows of several workloads together"),
        (vec!["--for", "web:slowdown.p99", "--over", over], "no such class; there is background, incast, all"),
        (vec!["--for", "flows", "--over", over], "neither more nor less of it is better"),
        (vec!["--for", "background:rct_us.p50", "--over", over], "its flows belong to no requests"),
        (vec!["--for", "background:long_flow_gbps", "--over", over], "one of a workload of kind long"),
        (vec!["--for", "background:slowdown.p99", "--over", over, "--vary", "0.5%"], "from 1% to below 100%"),
        (
            vec!["--for", "background:slowdown.p99", "--over", over, "--within", "background:slowdown.p99=+10%"],
            "is the number of --for",
        ),
        (
            [
                vec!["--for", "background:slowdown.p99", "--over", over],
                vec!["--within", "incast:slowdown.p99=+10%", "--within", "incast:slowdown.p99=+20%"],
            ]
            .concat(),
            "--within incast:slowdown.p99: is given twice",
        ),
        (
            vec!["--for", "background:slowdown.p99", "--over", "switch.ecn.att=1KB..3KB"],
            "no such value to start from; switch.ecn.att: unknown key, allowed is `at` (did you mean \"at\"?)",
        ),
        (
            vec!["--for", "background:slowdown.p99", "--over", "host.frames.overhead=1B..3B"],
            "no such value to start from; ",
        ),
        (
            vec!["--for", "background:slowdown.p99", "--over", "switch.ecn.at=0.05,1"],
            "none of its values but the start can be simulated, 2 are refused; the first: switch.ecn.at: found 0.05",
        ),
        (vec!["--for", "background:slowdown.p99", "--over", "switch.ecn.at=1KB"], "nothing to choose from"),
        (
            vec!["--for", "background:slowdown.p99", "--over", "scheme.dctpc.gain=0.1,0.2"],
            "no such scheme; there is dctcp, cubic",
        ),
        (
            vec!["--for", "background:slowdown.p99", "--over", over, "--over", "switch.\"ecn\".at=1KB,2KB"],
            "given twice",
        ),
        (
            vec!["--for", "background:slowdown.p99", "--over", over, "--budget", "5"],
            "fewer than 12 runs search nothing",
        ),
        (vec!["--for", "background:slowdown.p99", "--over", over, "--within", "slowdown.p99"], "+PERCENT"),
        (
            vec!["--for", "background:slowdown.p99", "--over", "scheme.dctcp.gain=0.1,0.2", "--scheme", "cubic"],
            "a key of dctcp does nothing for cubic",
        ),
        (
            vec![
                "--for",
                "incast:slowdown.p99",
                "--over",
                over,
                "--set",
                "workload.incast.every=1s",
                "--set",
                "warmup=100us",
            ],
            "no flow of the class starts in the time that is counted",
        ),
        (
            vec![
                "--for",
                "background:slowdown.p99",
                "--over",
                over,
                "--set",
                "grid={\"switch.buffer.alpha\"=[1.0,2.0]}",
            ],
            "--only names the point that is tuned",
        ),
    ] {
        let all = [vec!["tune", &file, "--out", text(&out)], arguments].concat();
        let output = incast(&all);
        assert_eq!(output.status.code(), Some(2), "{all:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{all:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && fs::read_dir(&out).is_ok_and(|mut all| all.next().is_none()), "{all:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_says_what_it_has_and_goes_on() {
    let (out, file) = (folder("tune-interrupted"), scenario("small"));
    let longer = ["--over", "scheme.dctcp.gain=0.03..0.5", "--set", "duration=20ms", "--jobs", "1", "--vary", "0%"];
    let arguments = [search(&out, &file), longer.to_vec()].concat();
    let child = command(&arguments).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let results = out.join("small-tune");
    let start = std::time::Instant::now();
    while !results.is_dir() || runs(&results).len() < 3 {
        assert!(start.elapsed().as_secs() < 120, "no run finishes");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("so far: ") && said.contains("the same command with --resume goes on"), "{said}");
    let resumed = succeed(&[&arguments[..], &["--resume"]].concat());
    let other = folder("tune-whole");
    let whole = succeed(&[search(&other, &file), longer.to_vec()].concat());
    let lines =
        |text: &str| text.lines().filter(|line| !line.contains("small-tune")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&resumed), lines(&whole));
}

/// Three shards search as one program does, whichever of them was killed meanwhile, and do no run twice but the start.
#[cfg(unix)]
#[test]
fn shards_search_together_and_one_that_was_killed_goes_on() {
    use std::{collections::BTreeMap, os::unix::fs::MetadataExt as _};
    let (out, file) = (folder("tune-shards"), scenario("small"));
    let longer = ["--over", "scheme.dctcp.gain=0.03..0.5", "--set", "duration=5ms", "--jobs", "1", "--json"];
    let whole = folder("tune-shards-whole");
    let expected = json_of(&succeed(&[search(&whole, &file), longer.to_vec()].concat()));
    let arguments = [search(&out, &file), longer.to_vec()].concat();
    let start = |shard: &str| {
        let own = [&arguments[..], &["--shard", shard]].concat();
        command(&own).stdout(std::process::Stdio::piped()).spawn().expect("it starts")
    };
    let (first, second, mut killed) = (start("1/3"), start("2/3"), start("3/3"));
    let results = |number: usize| out.join(format!("shard-{number}-of-3/small-tune"));
    let began = std::time::Instant::now();
    while !results(3).is_dir() || runs(&results(3)).len() < 4 {
        assert!(began.elapsed().as_secs() < 120, "no run finishes");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    killed.kill().expect("it runs, or has ended");
    killed.wait().expect("it was started");
    for child in [first, second, start("3/3")] {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        assert_eq!(json_of(&String::from_utf8_lossy(&output.stdout)), expected);
    }
    // One file in three folders is one run; the start was run by each, and what was lost with the killed one is done again.
    let mut done: BTreeMap<std::ffi::OsString, Vec<u64>> = BTreeMap::new();
    for run in (1..=3).flat_map(|number| runs(&results(number))) {
        let inode = fs::metadata(run.join("run.json")).expect("a run").ino();
        let inodes = done.entry(run.file_name().expect("a name").to_owned()).or_default();
        inodes.extend((!inodes.contains(&inode)).then_some(inode));
    }
    assert_eq!(done.len(), runs(&whole.join("small-tune")).len());
    assert_eq!(done.values().filter(|inodes| inodes.len() > 1).count(), 1, "{done:?}");
    let another = arguments.iter().map(|argument| if *argument == "14" { "20" } else { *argument });
    let other = incast(&another.chain(["--shard", "1/3"]).collect::<Vec<_>>());
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("has budget 14, and this shard 20"), "{}", stderr(&other));
    // From where a key that is searched starts is no part of the scenario's hash.
    let other = incast(&[&arguments[..], &["--set", "scheme.dctcp.gain=0.1", "--shard", "1/3"]].concat());
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("has values \""), "{}", stderr(&other));
}

/// Searches of two scenarios have one folder.
#[test]
fn shards_of_another_scenario_are_beside_these() {
    let (out, file) = (folder("tune-shards-two"), scenario("small"));
    for name in ["small", "other"] {
        let name = format!("name={name}");
        succeed(&[search(&out, &file), vec!["--vary", "0%", "--shard", "1/1", "--set", &name]].concat());
    }
    assert!(out.join("shard-1-of-1/other-tune/tune.json").is_file());
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
