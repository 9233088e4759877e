//! Data on stdout, messages on stderr, and what is on disk.

use crate::common::{command, folder, incast, json, runs, scenario, stderr, succeed, text};
use serde_json::Value;
use std::{fs, path::Path, process::Stdio};

#[test]
fn json_is_what_the_summary_holds() {
    let out = folder("json");
    let printed = succeed(&["run", "--json", "--out", text(&out), &scenario("small")]);
    assert_eq!(printed, fs::read_to_string(out.join("small/summary.json")).expect("a summary"));
    let summary: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(summary["schema"], 5);
    let rows = summary["rows"].as_array().expect("a list");
    // 2 schemes, each with 2 seeds and their pool, each with 2 classes and all.
    assert_eq!(rows.len(), 2 * 3 * 3);
    let keys = [
        "scheme",
        "class",
        "seed",
        "grid",
        "flows",
        "completed",
        "fct_us",
        "slowdown",
        "by_size",
        "rct_us",
        "goodput_gbps",
        "long_flow_gbps",
        "drops",
        "trims",
        "marks",
        "retransmitted_bytes",
        "timeouts",
        "marked_packets",
        "reordered_packets",
        "deflections",
        "pfc_pauses",
        "pfc_paused_us",
        "pfc_cycles",
        "pfc_stranded",
        "lossless_drops",
        "max_queue_bytes",
        "jain",
        "convergence_us",
        "packet_hops",
        "cpu_s",
        "ns_per_packet_hop",
    ];
    for row in rows {
        assert!(keys.iter().all(|key| row.get(key).is_some()), "{row}");
        assert!(row["completed"].as_u64() <= row["flows"].as_u64());
        assert_eq!(row.get("ci95").is_some(), row["seed"] == "all");
    }
    let pooled = rows.iter().find(|row| row["seed"] == "all" && row["class"] == "all").expect("pooled");
    let single: u64 = rows
        .iter()
        .filter(|row| row["scheme"] == pooled["scheme"] && row["class"] == "all" && row["seed"] != "all")
        .filter_map(|row| row["flows"].as_u64())
        .sum();
    assert_eq!(pooled["flows"].as_u64(), Some(single));
    assert!(pooled["slowdown"]["mean"].as_f64().expect("all flows finished") >= 1.0);
    let csv = fs::read_to_string(out.join("small/summary.csv")).expect("a CSV");
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn a_table_of_all_runs_says_what_its_rows_are_of() {
    let out = folder("export");
    let results = out.join("small");
    let points = "\n[grid]\n\"workload.background.load\" = [0.2, 0.3]\n";
    let source = out.join("points.toml");
    fs::write(&source, fs::read_to_string(scenario("small")).expect("a scenario") + points).expect("written");
    succeed(&["run", "--quiet", "--out", text(&out), text(&source)]);
    let file = out.join("flows.csv");
    let output = incast(&["export", text(&results), "--out", text(&file)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = fs::read_to_string(&file).expect("written");
    let mut lines = table.lines();
    let header = lines.next().expect("a header");
    assert!(header.starts_with("scheme,seed,grid.workload.background.load,source,sequence,class,"), "{header}");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let is_of = |row: &&Vec<&str>| row[..3] == ["cubic", "2", "0.3"];
    assert!(rows.iter().filter(is_of).count() > 10 && rows.len() > 80, "{}", rows.len());
    succeed(&["export", text(&results), "--table", "requests"]);
    assert!(fs::read(results.join("requests.parquet")).expect("a file").starts_with(b"PAR1"));
    for arguments in [&["--table", "ports"][..], &["--out", "flows.txt"], &["--out", "/nowhere/flows.csv"]] {
        let refused = incast(&[&["export", text(&results)], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", stderr(&refused));
    }
    assert_eq!(incast(&["export", text(&out)]).status.code(), Some(2), "no folder of a scenario");
}

#[cfg(unix)]
#[test]
fn a_table_of_more_runs_than_files_that_may_be_open_is_written() {
    let out = folder("export-many");
    let many = ["--seeds", "30", "--set", "duration=30us", "--set", "warmup=0s", "--quiet", "--out", text(&out)];
    succeed(&[&["run", &scenario("small")], &many[..]].concat());
    for name in ["flows.csv", "flows.parquet"] {
        let file = out.join(name);
        let arguments = ["export", text(&out.join("small")), "--out", text(&file)].map(str::to_owned);
        let program = command(&[]).get_program().to_owned();
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "ulimit -n 30; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        let output = limited.output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(file.metadata().is_ok_and(|file| file.len() > 1000));
    }
}

#[test]
fn the_version_names_the_build() {
    let version = succeed(&["--version"]);
    assert!(version.starts_with("incast 0.") && version.contains(" (commit "), "{version}");
    let [commit, profile, target] = version
        .trim_end()
        .trim_end_matches(')')
        .split_once("(commit ")
        .map(|(_, build)| build.split(", ").collect::<Vec<_>>())
        .and_then(|parts| parts.try_into().ok())
        .expect("three parts");
    assert!(commit == "unknown" || commit.trim_end_matches(" with changes").len() == 12, "{version}");
    assert!(["debug", "release"].contains(&profile) && target.contains('-'), "{version}");
}

#[test]
fn every_run_has_a_folder() {
    let out = folder("folders");
    succeed(&["run", "--quiet", "--out", text(&out), &scenario("small"), "--set", "measure.traces=true"]);
    let runs = runs(&out.join("small"));
    assert_eq!(runs.len(), 4);
    for run in runs {
        let record = json(&run.join("run.json"));
        assert_eq!(record["status"], "done");
        for key in ["version", "scenario", "seed", "digest", "host"] {
            assert!(!record[key].is_null(), "{key}");
        }
        for key in ["packet_hops", "events", "cpu_s", "wall_s", "ns_per_packet_hop", "peak_rss_bytes"] {
            assert!(record["cost"][key].is_number(), "{key}");
        }
        let mut files: Vec<String> = fs::read_dir(&run)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(files, ["events.parquet", "flows.parquet", "requests.parquet", "run.json"]);
        assert!(fs::read(run.join("flows.parquet")).expect("a file").starts_with(b"PAR1"));
    }
}

#[test]
fn the_table_names_every_scheme_and_class() {
    let out = folder("table");
    let table = succeed(&["run", "--quiet", "--out", text(&out), &scenario("small")]);
    for word in ["dctcp", "cubic", "background", "incast", "all", "ns per packet-hop", "±"] {
        assert!(table.contains(word), "{word}\n{table}");
    }
}

#[test]
fn a_scenario_can_come_from_standard_input() {
    let file = scenario("small");
    let from_input = |arguments: &[&str]| {
        let input = fs::File::open(&file).expect("a scenario");
        command(arguments).stdin(input).output().expect("the binary starts")
    };
    let (out, beside) = (folder("standard_input"), folder("standard_input_beside"));
    let output = from_input(&["run", "-", "--out", text(&out), "--seeds", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // Such a short run needs no line about its progress.
    assert!(!stderr(&output).contains(" runs"), "{}", stderr(&output));
    succeed(&["run", &file, "--quiet", "--out", text(&beside), "--seeds", "1"]);
    let digests = |out: &Path| -> Vec<Value> {
        runs(&out.join("small")).iter().map(|run| json(&run.join("run.json"))["digest"].clone()).collect()
    };
    assert!(!digests(&out).is_empty());
    assert_eq!(digests(&out), digests(&beside));
    let output = from_input(&["run", "-", "--out", text(&out), "--force", "--set", "topologie=1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = from_input(&["run", "-", "-", "--out", text(&out), "--force"]);
    assert_eq!(output.status.code(), Some(2), "there is only one: {}", stderr(&output));
    let output = from_input(&["plan", "-", "--shards", "2", "--out", text(&out.join("plan"))]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("give a file"), "{}", stderr(&output));
}

#[test]
fn results_do_not_depend_on_jobs_and_threads() {
    let digests = |name: &str, more: &[&str]| -> Vec<String> {
        let out = folder(name);
        let small = scenario("small");
        let mut all = vec!["run", "--quiet", "--out", text(&out), &small];
        all.extend(more);
        succeed(&all);
        let digest = |run: &std::path::PathBuf| json(&run.join("run.json"))["digest"].as_str().map(str::to_owned);
        runs(&out.join("small")).iter().map(|run| digest(run).expect("a digest")).collect()
    };
    let serial = digests("serial", &["--jobs", "1"]);
    assert_eq!(serial.len(), 4);
    assert_eq!(serial, digests("jobs", &["--jobs", "4"]));
    assert_eq!(serial, digests("threads", &["--jobs", "1", "--threads", "2"]));
}

/// `--brief` says less, `--json` the same to programs, `--strict` makes warnings faults.
#[test]
fn a_check_says_as_much_as_is_asked_for() {
    let file = scenario("small");
    let whole = succeed(&["check", &file]);
    assert!(whole.starts_with("# expected cost of small, "), "{whole}");
    let brief = succeed(&["check", "--brief", &file]);
    // How much memory there is changes from one to the other.
    let steady = |text: &str| -> Vec<String> {
        text.trim_end().lines().filter(|line| !line.ends_with(" are available")).map(str::to_owned).collect()
    };
    assert!(steady(&whole).starts_with(&steady(&brief)) && !brief.contains("name = "), "{brief}");
    let json: serde_json::Value = serde_json::from_str(&succeed(&["check", "--json", &file])).expect("JSON");
    let (all, effective) = (&json[0], whole.parse::<toml::Table>().expect("TOML"));
    assert_eq!(all["effective"], serde_json::to_value(effective).expect("JSON"));
    let runs = all["runs"].as_array().expect("runs");
    assert!(whole.contains(&format!("{} runs", runs.len())));
    let sum: f64 = runs.iter().filter_map(|run| run["packet_hops"].as_f64()).sum();
    assert!((sum / all["packet_hops"].as_f64().expect("a number") - 1.0).abs() < 1e-9);
    let strict = |set: &[&str]| incast(&[&["check", "--brief", "--strict", &file][..], set].concat()).status.code();
    assert_eq!(strict(&["--set", "switch.ecn=off"]), Some(2), "a warning");
    let batch = r#"workload=[{ class = "all", kind = "permutation", size = "20KB" }]"#;
    let output = incast(&["check", "--strict", &file, "--set", batch, "--set", "measure={}"]);
    assert_eq!(output.status.code(), Some(i32::from(!output.stderr.is_empty()) * 2), "{}", stderr(&output));
}

#[test]
fn check_shows_what_would_run() {
    let text = succeed(&["check", &scenario("small"), "--set", "workload.incast.fan_in=2", "--seeds", "3"]);
    for word in ["fan_in = 2", "# 6 runs", "packet-hops", "expected cost"] {
        assert!(text.contains(word), "{word}\n{text}");
    }
}

/// What clocks were drawn, or given by name, is in `run.json`; perfect ones are not.
#[test]
fn clocks_are_in_the_record() {
    let out = folder("clocks");
    let clocks = |set: &[&str]| {
        succeed(
            &[&["run", &scenario("small"), "--force", "--quiet", "--seeds", "1", "--out", text(&out)], set].concat(),
        );
        let record = json(&runs(&out.join("small"))[0].join("run.json"));
        record["clocks"]
            .as_array()
            .map(|clocks| clocks.iter().map(|clock| clock["offset_ps"].as_i64()).collect::<Vec<_>>())
    };
    assert_eq!(clocks(&[]), None);
    let known = clocks(&["--set", r#"host.clock.offset={ h1 = "-2us" }"#]).expect("clocks");
    assert_eq!((known[0], known[1]), (Some(0), Some(-2_000_000)));
    let drawn = clocks(&["--set", r#"host.clock.offset="1us""#]).expect("clocks");
    assert!(
        drawn.iter().all(|offset| offset.is_some_and(|offset| offset != 0 && offset.abs() <= 1_000_000)),
        "{drawn:?}"
    );
    let wrong = incast(&["check", &scenario("small"), "--set", r#"host.clock.offset={ h999 = "1us" }"#]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("host.clock.offset.h999"), "{}", stderr(&wrong));
}

/// An agent's parameters are completed by `check` and in `run.json`, and its scheme has rates of its class.
#[test]
fn an_agent_is_run_and_recorded() {
    let out = folder("agent");
    let small = scenario("small");
    let sets = [
        "switch.pfc={xoff=\"100KB\"}",
        "scheme.cubic.law=dcqcn",
        "scheme.dcqcn.switch.agent={kind=\"mercury\",threshold=\"31KB\"}",
        "scheme.dcqcn.switch.agent.cnp_interval=12us",
        "measure.rates={every=\"10us\",flows=\"all\"}",
    ];
    let mut arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    arguments.push(&small);
    let checked = succeed(&[&["check"][..], &arguments].concat());
    for line in ["kind = \"mercury\"", "threshold = \"31KB\"", "cnp_interval = \"12us\"", "cnp_trigger = \"enqueue\""] {
        assert!(checked.contains(&format!("\n{line}\n")), "{line}\n{checked}");
    }
    assert!(checked.contains("dcqcn has in_flight = \"bdp\" and decrease_guard = "), "{checked}");
    succeed(&[&["run", "--quiet", "--seeds", "1", "--out", text(&out)][..], &arguments].concat());
    let record = json(&out.join("small/dcqcn+seed1/run.json"));
    let agent = &record["scenario"]["scheme"][0]["switch"]["agent"];
    assert_eq!((&agent["threshold"], &agent["marks"]), (&"31KB".into(), &"off".into()), "{record}");
    let rows = json(&out.join("small/summary.json"));
    let row =
        rows["rows"].as_array().expect("rows").iter().find(|row| row["scheme"] == "dcqcn" && row["class"] == "incast");
    let rates = &row.expect("a row")["assigned_gbps"];
    let (least, mean) = (rates["min"].as_f64().expect("sampled"), rates["mean"].as_f64().expect("sampled"));
    assert!(0.0 < least && least <= mean && mean <= 30.0, "{rates}");
}

#[test]
fn lists_are_complete_and_parse() {
    for (what, known) in
        [("schemes", "dctcp"), ("workloads", "websearch"), ("topologies", "leaf-spine"), ("metrics", "jain")]
    {
        assert!(succeed(&["list", what]).contains(known), "{what}");
        let list: Value = serde_json::from_str(&succeed(&["list", what, "--json"])).expect("JSON");
        let entries = list.as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["name"] == known).expect("listed");
        if what == "schemes" || what == "topologies" {
            let parameters = entry["parameters"].as_array().expect("parameters");
            assert!(!parameters.is_empty() && parameters.iter().all(|row| row["describe"].is_string()), "{entry}");
        }
    }
    // In-switch algorithms stand behind the laws.
    let list: Value = serde_json::from_str(&succeed(&["list", "schemes", "--json"])).expect("JSON");
    let keys: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|entry| entry["key"].as_str()).collect();
    assert!(keys.contains(&"law") && keys.contains(&"switch.agent") && keys.is_sorted(), "{keys:?}");
    assert!(succeed(&["list", "schemes"]).contains("\nswitch.agent mercury  Mercury\n"));
    serde_json::from_str::<Value>(&succeed(&["list", "scenarios", "--json"])).expect("JSON");
    serde_json::from_str::<Value>(&succeed(&["schema"])).expect("JSON");
    assert!(succeed(&["schema", "--reference"]).contains("topology"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for arguments in [&["list", "schemes", "--json"][..], &["list", "workloads"], &["schema"]] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_short_run_is_quiet() {
    let out = folder("quiet");
    let small = scenario("small");
    let quiet = incast(&["run", "--quiet", "--out", text(&out), &small]);
    assert!(!stderr(&quiet).contains("runs"), "{}", stderr(&quiet));
    let loud = incast(&["run", "--force", "--out", text(&out), &small]);
    assert!(!stderr(&loud).contains("runs"), "{}", stderr(&loud));
}

#[test]
fn seeds_are_added_where_a_claim_is_inconclusive() {
    let out = folder("budget");
    let count = |name: &str| {
        let of = |path: &std::path::PathBuf| path.to_string_lossy().contains(name);
        runs(&out.join("budget")).iter().filter(|path| of(path)).count()
    };
    let file = scenario("budget");
    assert!(succeed(&["run", "--seeds", "2", "--out", text(&out), &file]).contains("inconclusive"));
    assert_eq!((count("load-0.1"), count("load-0.5")), (4, 4), "--seeds is exact");
    let table = succeed(&["run", "--resume", "--out", text(&out), &file]);
    let added = count("load-0.5+dctcp");
    assert!((3..=7).contains(&added) && count("load-0.5+cubic") == added, "{added}");
    assert_eq!(count("load-0.1"), 4, "nothing is open there");
    assert!(added == 7 || !table.contains("inconclusive"), "{table}");
    assert!(succeed(&["check", &file]).contains("# 8 runs; up to 7 seeds where claims are inconclusive"));
    let budget = incast(&["check", &file, "--set", "seed_budget=1"]);
    assert_eq!(budget.status.code(), Some(2));
}

#[test]
fn bundled_scenarios_have_names_everywhere() {
    let folder = folder("bundled_names");
    let shown = succeed(&["show", "first-light"]);
    assert!(shown.starts_with("name = \"first-light\""), "{shown}");
    let adapted = folder.join("mine.toml");
    fs::write(&adapted, shown).expect("a file");
    let of_file = succeed(&["check", text(&adapted), "--short"]);
    // How much memory is available changes from one to the next.
    let without =
        |said: &str| said.lines().filter(|line| !line.ends_with("are available")).map(str::to_owned).collect();
    let lines: [Vec<String>; 2] = [without(&succeed(&["check", "first-light", "--short"])), without(&of_file)];
    assert_eq!(lines[0], lines[1]);
    assert!(of_file.contains("# nominal load of the most loaded link, headers included\n#   0.4"), "{of_file}");
    // With a file beside it.
    assert!(succeed(&["check", "mercury/fig04", "--short"]).contains("name = "));
    assert!(!succeed(&["show", "mercury/fig04.topology"]).is_empty());
    assert!(succeed(&["flows", "scenarios/hosts/incast.toml"]).starts_with("flow,"));
    for command in ["check", "show", "flows"] {
        let output = incast(&[command, "first-ligth"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let message = stderr(&output);
        assert!(message.contains("first-ligth: there is no such file, nor a bundled scenario"), "{message}");
        assert!(message.contains("did you mean \"first-light\"?"), "{message}");
    }
    let listed = succeed(&["reproduce", "--list"]);
    assert!(listed.contains(" runs, about ") && listed.contains("; --short: "), "{listed}");
}

#[test]
fn a_comparison_fits_the_width_that_is_asked_for() {
    let out = folder("widths").join("results");
    let run = |columns: &str, more: &[&str]| {
        let mut command =
            command(&[&["run", "first-light", "--short", "--force", "--quiet", "--out", text(&out)], more].concat());
        let output = command.env("COLUMNS", columns).output().expect("the binary starts");
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    for columns in ["80", "100", "140"] {
        let text = run(columns, &["--set", "duration=\"1ms\"", "--set", "warmup=\"0ms\""]);
        let most = columns.parse().expect("a number");
        for line in text.lines().filter(|line| !line.starts_with("results: ") && !line.starts_with("report: ")) {
            assert!(line.chars().count() <= most, "{line}");
        }
        assert!(text.contains("\nFCT p99 us\n") && text.contains("verdict: too few seeds (1;"), "{text}");
    }
    let wide = run("80", &["--wide", "--set", "duration=\"1ms\"", "--set", "warmup=\"0ms\""]);
    assert!(wide.lines().any(|line| line.chars().count() > 100), "{wide}");
}

#[test]
fn shells_and_man_know_every_command() {
    let help = succeed(&["--help"]);
    let commands = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    assert!(commands.len() > 20 && commands.contains(&"tune"), "{commands:?}");
    let out = folder("man");
    assert!(succeed(&["man", "--out", text(&out)]).is_empty());
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(&["completions", shell]);
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
    }
    for command in commands.iter().filter(|command| **command != "help") {
        let page = fs::read_to_string(out.join(format!("incast-{command}.1"))).expect("a page");
        assert!(page.contains(".SH DESCRIPTION") || page.contains(".SH NAME"), "{command}");
    }
    let refused = incast(&["man", "--out", "/proc/none"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--out /proc/none: "), "{}", stderr(&refused));
}
