//! Import of peers' files, their results in their format, and the comparison with their own.

use crate::common::{folder, incast, json, stderr, succeed, text};
use std::{fs, path::Path};

const CASES: &str = "../../validation/ns3";

/// The arguments of an import of a case on a star of three hosts.
fn arguments<'a>(case: &'a [String; 3], out: &'a str) -> Vec<&'a str> {
    let [topology, flows, config] = case.each_ref().map(String::as_str);
    vec!["import", "hpcc", "--topology", topology, "--flows", flows, "--config", config, "--out", out]
}

fn case(name: &str) -> [String; 3] {
    [format!("{CASES}/star3.txt"), format!("{CASES}/{name}/flow.txt"), format!("{CASES}/{name}/config.txt")]
}

#[test]
fn an_imported_case_runs_and_writes_what_the_peer_writes() {
    let out = folder("import_runs");
    let (case_files, scenario) = (case("single_star_dcqcn"), out.join("case.toml"));
    let printed = succeed(&arguments(&case_files, text(&scenario)));
    assert_eq!(printed.lines().count(), 3, "{printed}");
    succeed(&["check", text(&scenario)]);
    let results = out.join("results");
    succeed(&["run", "--quiet", "--out", text(&results), text(&scenario)]);
    let ours = fs::read_to_string(results.join("case/dcqcn+seed1/fct.txt")).expect("fct.txt");
    let theirs = fs::read_to_string(format!("{CASES}/single_star_dcqcn/fct.txt")).expect("the peer's");
    assert_eq!(ours, theirs, "to the nanosecond");
}

#[test]
fn what_is_there_stays_unless_forced() {
    let out = folder("import_force");
    let (case_files, scenario) = (case("single_star_hpcc"), out.join("case.toml"));
    fs::write(out.join("case.flows.csv"), "mine").expect("written");
    let refused = incast(&arguments(&case_files, text(&scenario)));
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("case.flows.csv exists already"), "{}", stderr(&refused));
    assert!(!scenario.exists());
    assert_eq!(fs::read_to_string(out.join("case.flows.csv")).expect("a file"), "mine");
    let mut forced = arguments(&case_files, text(&scenario));
    forced.push("--force");
    succeed(&forced);
    assert!(scenario.exists());
}

/// With a buffer of 1 MiB TIMELY's queue has no room: every sender is paused, and let go again.
#[test]
fn pauses_are_written_as_the_peer_writes_them() {
    let out = folder("import_pauses");
    let config = fs::read_to_string(format!("{CASES}/incast16_timely/config.txt")).expect("a file");
    let (small, scenario) = (out.join("config.txt"), out.join("case.toml"));
    let config: Vec<&str> = config.lines().filter(|line| !line.starts_with("BUFFER_SIZE")).collect();
    fs::write(&small, format!("{}\nBUFFER_SIZE 1\n", config.join("\n"))).expect("written");
    let [_, flows, _] = case("incast16_timely");
    succeed(&arguments(&[format!("{CASES}/star17.txt"), flows, text(&small).to_owned()], text(&scenario)));
    let results = out.join("results");
    succeed(&["run", "--quiet", "--out", text(&results), "--set", "measure.traces=true", text(&scenario)]);
    let written = fs::read_to_string(results.join("case/timely+seed1/pfc.txt")).expect("pfc.txt");
    let lines: Vec<Vec<u64>> =
        written.lines().map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect()).collect();
    let told = |what: u64| lines.iter().filter(|line| line[4] == what).count();
    assert!(told(1) >= 16 && told(0) == told(1), "{written}");
    // The senders are the hosts 2 to 17, with one port each.
    assert!(lines.iter().all(|line| (2..=17).contains(&line[1]) && line[2..4] == [0, 1]), "{written}");
    assert!(lines.is_sorted_by_key(|line| line[0]) && lines[0][0] > 2_000_000_000, "{written}");
}

/// Files beside the scenario have its name, whatever it is; the scenario's own `name` has only letters that it may
/// have.
#[test]
fn any_file_name_will_do() {
    let out = folder("import_names");
    let (case_files, scenario) = (case("single_star_hpcc"), out.join("a \"b\".toml"));
    succeed(&arguments(&case_files, text(&scenario)));
    assert!(out.join("a \"b\".topology.txt").exists() && out.join("a \"b\".flows.csv").exists());
    succeed(&["check", text(&scenario)]);
}

#[test]
fn bad_files_are_named_with_their_line() {
    let out = folder("import_bad");
    let bad = |index: usize, content: &[u8]| {
        let mut files = case("single_star_hpcc");
        let path = out.join("bad.txt");
        fs::write(&path, content).expect("written");
        files[index] = text(&path).to_owned();
        let output = incast(&arguments(&files, text(&out.join("case.toml"))));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(output.stdout.is_empty() && !out.join("case.toml").exists());
        stderr(&output)
    };
    assert!(bad(0, b"4 1 3\n0\n0 1 100Gbps\n").contains("bad.txt:3: found 3 words"));
    assert!(bad(0, b"4 1 3\n0\n\0").contains("bad.txt:3: found the character"));
    assert!(bad(1, b"1\n2 1 3 100 -5 2\n").contains("bad.txt:2: size: found `-5`"));
    assert!(bad(1, b"99999999999\n").contains("bad.txt:1: the number of flows"));
    assert!(bad(1, b"1\r\n2 9 3 100 5 2\r\n").contains("bad.txt:2: dst: 9 is no host"));
    assert!(bad(2, b"CC_MODE 10\n").contains("bad.txt:1: CC_MODE: 10, HPCC-PINT, is not supported"));
    assert!(bad(2, b"\xff\xfe").contains("bad.txt:1: not a text file"));
    let missing = incast(&arguments(&["no".into(), "no".into(), "no".into()], text(&out.join("case.toml"))));
    assert_eq!(missing.status.code(), Some(2));
}

const HTSIM: &str = "../../validation/htsim";

#[test]
fn a_connection_matrix_becomes_a_scenario_that_runs() {
    let out = folder("import_htsim");
    let (matrix, scenario) = (format!("{HTSIM}/perm_128n_128c_2MB.cm"), out.join("case.toml"));
    let arguments =
        |law| ["import", "htsim", "--matrix", &matrix, "--law", law, "--out", text(&scenario)].map(str::to_owned);
    let run = |arguments: [String; 8]| incast(&arguments.each_ref().map(String::as_str));
    let unknown = run(arguments("dctpc"));
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("did you mean dctcp?"), "{}", stderr(&unknown));
    let done = run(arguments("dctcp"));
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(String::from_utf8_lossy(&done.stdout).lines().count(), 2, "flows and scenario");
    succeed(&["check", text(&scenario)]);
    let results = out.join("results");
    succeed(&["run", "--quiet", "--out", text(&results), text(&scenario)]);
    let summary = json(&results.join("case/summary.json"));
    let row = summary["rows"].as_array().and_then(|rows| rows.first()).expect("a row");
    assert_eq!((row["flows"].as_u64(), row["completed"].as_u64()), (Some(128), Some(128)), "{row}");

    // The law is NDP unless another is named. Parallel links are a key.
    let (bundles, topology) = (out.join("bundles.toml"), out.join("f.topo"));
    let small = out.join("small.cm");
    fs::write(&small, "Nodes 8\nConnections 1\n7->0 start 5 size 9\n").expect("written");
    fs::write(
        &topology,
        "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
         Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nBundle 2\nDownlink_Latency_ns 1000\n",
    )
    .expect("written");
    let [small, topology, bundles] = [&small, &topology, &bundles].map(|path| text(path));
    succeed(&["import", "htsim", "--matrix", small, "--topology", topology, "--law", "swift", "--out", bundles]);
    assert!(fs::read_to_string(bundles).is_ok_and(|scenario| scenario.contains("fabric_links = 2")));
    succeed(&["run", "--quiet", "--out", text(&results), bundles]);
    fs::write(topology, "Nodes 9\n").expect("written");
    let refused = incast(&[
        "import",
        "htsim",
        "--matrix",
        small,
        "--topology",
        topology,
        "--law",
        "swift",
        "--out",
        bundles,
        "--force",
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("f.topo:1: Nodes: found 9, but the matrix has 8"), "{}", stderr(&refused));
}

/// What is met stays met: flows alone on both fabrics, and every law's incast of two, to the nanosecond.
#[test]
fn the_reference_cases_are_reproduced() {
    let out = folder("validate");
    let cases = [
        "single_star_dcqcn",
        "single_star_timely",
        "single_star_dctcp",
        "single_star_hpcc",
        "single_fat_dcqcn",
        "single_fat_timely",
        "single_fat_dctcp",
        "single_fat_hpcc",
        "incast2_dcqcn",
        "incast2_timely",
        "incast2_dctcp",
        "incast2_hpcc",
        "incast16_timely",
        "incast16_dctcp",
    ];
    let mut arguments = vec!["validate", "--json", "--from", CASES, "--out", text(&out)];
    arguments.extend(cases);
    let printed = succeed(&arguments);
    let path = out.join("all.json");
    fs::write(&path, printed).expect("written");
    let all = json(&path);
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), cases.len());
    for one in all {
        assert_eq!((one["met"].as_bool(), one["worst_flow_ns"].as_u64()), (Some(true), Some(0)), "{one}");
        assert_eq!(one["drops"].as_u64(), Some(0));
    }
    assert!(Path::new(&out).join("incast2_hpcc/incast2_hpcc.toml").exists(), "the imported scenario can be run");
}

/// The peer's flows are those of ours, and all of ours end; how near they are is what the table is for.
#[test]
fn a_case_of_htsim_is_compared() {
    let out = folder("validate_htsim");
    let arguments = ["validate", "--seeds", "2", "--from", HTSIM, "--out", text(&out), "swift128_2MB"];
    let printed = succeed(&arguments);
    assert!(printed.contains("| `swift128_2MB` | 128 |") && printed.contains("0 of 0 aims met"), "{printed}");
    let path = out.join("all.json");
    fs::write(&path, succeed(&[&arguments[..], &["--json"]].concat())).expect("written");
    let one = &json(&path)[0];
    assert_eq!((one["completed"].as_u64(), one["seeds"].as_u64()), (Some(256), Some(2)), "{one}");
    assert!(one["met"].is_null() && one["theirs"]["drops"].as_f64() == Some(59.0), "{one}");
    assert!(out.join("swift128_2MB/swift128_2MB.toml").exists() && out.join("swift128_2MB/fct.csv").exists());
}

#[test]
fn unknown_cases_are_refused() {
    let output = incast(&["validate", "single_star_pint"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("single_star_hpcc"), "{}", stderr(&output));
    for case in [&["single_star_hpcc"][..], &["swift128_2MB"], &[]] {
        let output = incast(&[&["validate", "--from", "no/such/folder"], case].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}
