//! `incast flows`: what it lists is what a run has.

use crate::common::{folder, incast, scenario, stderr, succeed, text};
use incast_lab::{
    run::{Plan, only::Only},
    scenario::Scenario,
    trace::{Request, trace},
};
use std::{collections::BTreeMap, fs, path::Path, sync::atomic::AtomicBool};

/// Rows as maps of columns.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), header.len(), "{line}");
        header.iter().zip(cells).map(|(key, cell)| ((*key).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}

/// Workloads with what is hard to number: flows that start together at one source, and some that are not counted.
const MIXED: &str = "name = \"mixed\"\nduration = \"2ms\"\nwarmup = \"200us\"\ndrain = \"100ms\"\nseeds = [1, 2]\n\
    [topology]\nkind = \"single-switch\"\nhosts = 6\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
    [switch]\nbuffer = { per_port = \"1MB\" }\necn = { kind = \"step\", at = \"20KB\" }\n\
    [[workload]]\nclass = \"background\"\nkind = \"poisson\"\nsizes = { fixed = \"20KB\" }\nload = 0.3\n\
    [[workload]]\nclass = \"incast\"\nkind = \"incast\"\nfan_in = 5\nsize = \"30KB\"\nevery = \"500us\"\n\
    [[workload]]\nclass = \"shuffle\"\nkind = \"all-to-all\"\nsize = \"2KB\"\n\
    [[scheme]]\nlaw = \"dctcp\"\n\
    [[scheme]]\nname = \"beside CUBIC\"\nlaw = \"marimo\"\nby_class.incast = { law = \"cubic\" }\n";

/// What a log of these flows comes to is what they were drawn from.
#[test]
fn a_workload_is_fitted_to_a_log() {
    let folder = folder("fitted");
    let (log, sizes) = (folder.join("log.csv"), folder.join("sizes.csv"));
    let file = folder.join("poisson.toml");
    let poisson = "name = \"poisson\"\nduration = \"20ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 8\n\
        link = { rate = \"10Gbps\", delay = \"1us\" }\n[switch]\nbuffer = { per_port = \"1MB\" }\n\
        [[workload]]\nclass = \"web\"\nkind = \"poisson\"\nsizes = { file = \"websearch\", max = \"100KB\" }\nload = 0.5\n\
        [[scheme]]\nlaw = \"cubic\"\n";
    fs::write(&file, poisson).expect("written");
    succeed(&["flows", text(&file), "--out", text(&log)]);
    let fit = ["workload", "fit", text(&log), "--rate", "10Gbps"];
    let told: serde_json::Value = serde_json::from_str(&succeed(&[&fit[..], &["--json"]].concat())).expect("JSON");
    let number = |pointer: &str| told.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
    assert!((number("/hosts/load") - 0.5).abs() < 0.03, "{told}");
    assert!((number("/bursts/gap_variation") - 1.0).abs() < 0.1, "{}", told["bursts"]);
    assert!(number("/sizes/max") == 100_000.0 && number("/hosts/count") == 8.0, "{told}");
    let output = incast(&[&fit[..], &["--out", text(&sizes)]].concat());
    assert!(stderr(&output).contains("load = 0."), "{}", stderr(&output));
    let again = succeed(&["workload", "fit", text(&log)]);
    assert_eq!(fs::read_to_string(&sizes).expect("the table"), again);
    let fitted = poisson.replace("{ file = \"websearch\", max = \"100KB\" }", "\"sizes.csv\"");
    fs::write(&file, fitted).expect("written");
    let checked = succeed(&["check", text(&file), "--brief"]);
    assert!(checked.contains("0.5"), "{checked}");
    let refused = incast(&["workload", "fit", text(&sizes)]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("sizes.csv:2: found"), "{}", stderr(&refused));
    let nothing = incast(&["workload", "fit", text(&folder.join("none.csv"))]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("none.csv: there is no such file, allowed is a log"), "{}", stderr(&nothing));
}

#[test]
fn the_listed_flows_are_those_of_a_run() {
    let folder = folder("flows-of-a-run");
    let file = folder.join("mixed.toml");
    fs::write(&file, MIXED).expect("written");
    for (seed, scheme) in [(1, "dctcp"), (2, "beside CUBIC"), (77, "dctcp")] {
        let seed_text = seed.to_string();
        let listed = succeed(&[
            "flows",
            text(&file),
            "--seed",
            &seed_text,
            "--scheme",
            scheme,
            "--only",
            "scheme=dctcp,beside CUBIC",
        ]);
        let listed = rows(&listed);
        let mut loaded = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        loaded.seeds = vec![seed];
        let plan = Plan::new(loaded, None, &Only::default().with("scheme", scheme));
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let traced = trace(&plan.runs[0], &Request::default(), &AtomicBool::new(false), &mut |_| ());
        let traced = traced.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(listed.len(), traced.outcome.flows.len());
        assert!(listed.len() > 50, "{}", listed.len());
        for (number, (row, record)) in listed.iter().zip(&traced.outcome.flows).enumerate() {
            let expected = [
                ("flow", number.to_string()),
                ("source", record.source.to_string()),
                ("sequence", record.sequence.to_string()),
                ("class", traced.classes[usize::from(record.class)].clone()),
                ("src", traced.labels.node(record.source).to_owned()),
                ("dst", traced.labels.node(record.destination).to_owned()),
                ("size_bytes", record.bytes.to_string()),
                ("start_ps", record.start.ps().to_string()),
                ("counted", (record.start.ps() >= 200_000_000).to_string()),
            ];
            for (key, value) in expected {
                assert_eq!(row[key], value, "{key} of row {number}, seed {seed}");
            }
            let request = (record.request != incast_sim::FlowSpec::NO_REQUEST).then_some(record.request);
            assert_eq!(row["request"], request.map_or_else(String::new, |request| request.to_string()));
            let law = match (scheme, row["class"].as_str()) {
                ("dctcp", _) => "dctcp",
                (_, "incast") => "cubic",
                _ => "marimo",
            };
            assert_eq!(row["law"], law);
        }
        let uncounted = listed.iter().filter(|row| row["counted"] == "false").count();
        assert!((1..listed.len()).contains(&uncounted), "{uncounted} of {}", listed.len());
    }
}

#[test]
fn a_list_can_drive_another_scenario() {
    let folder = folder("flows-as-a-trace");
    let (first, list) = (folder.join("mixed.toml"), folder.join("flows.csv"));
    fs::write(&first, MIXED).expect("written");
    let output = incast(&["flows", text(&first), "--seed", "1", "--scheme", "dctcp", "--out", text(&list)]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    assert!(stderr(&output).contains("flows to "), "{}", stderr(&output));
    let start = MIXED.find("[[workload]]").expect("workloads");
    let end = MIXED.find("[[scheme]]").expect("schemes");
    let traced = format!(
        "{}[[workload]]\nclass = \"background\"\nkind = \"trace\"\npath = \"flows.csv\"\n{}",
        &MIXED[..start],
        &MIXED[end..]
    );
    let second = folder.join("traced.toml");
    fs::write(&second, traced.replace("by_class.incast = { law = \"cubic\" }\n", "")).expect("written");
    let again = rows(&succeed(&["flows", text(&second), "--seed", "5", "--scheme", "dctcp"]));
    let listed = rows(&fs::read_to_string(&list).expect("written"));
    assert_eq!(again.len(), listed.len());
    for (again, listed) in again.iter().zip(&listed) {
        for key in ["flow", "source", "sequence", "class", "src", "dst", "size_bytes", "start_ps"] {
            assert_eq!(again[key], listed[key]);
        }
    }
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let folder = folder("flows-refused");
    let (file, rpc, out) = (folder.join("mixed.toml"), folder.join("rpc.toml"), folder.join("out.csv"));
    fs::write(&file, MIXED).expect("written");
    let start = MIXED.find("[[workload]]").expect("workloads");
    let end = MIXED.find("[[scheme]]").expect("schemes");
    let workload = "[[workload]]\nclass = \"calls\"\nkind = \"rpc\"\nclients = [\"h0\"]\nservers = [\"h1\"]\n\
                    request = { fixed = \"1KB\" }\nresponse = { fixed = \"10KB\" }\n";
    let scheme = "[[scheme]]\nlaw = \"dctcp\"\n";
    assert!(MIXED[end..].starts_with(scheme));
    fs::write(&rpc, format!("{}{workload}{scheme}", &MIXED[..start])).expect("written");
    let (nowhere, none) = (folder.join("missing").join("flows.csv"), folder.join("none.toml"));
    let wrong: [(&[&str], &str); 6] = [
        (&[text(&file), "--scheme", "dctpc"], "did you mean"),
        (&[text(&file), "--only", "load=0.4"], "no such key"),
        (&[text(&file), "--out", text(&folder)], "is a folder"),
        (&[text(&file), "--out", text(&nowhere)], "there is no folder"),
        (&[text(&rpc), "--seed", "1", "--out", text(&out)], "\"rpc\" opens its flows during the run"),
        (&[text(&none)], "none.toml"),
    ];
    for (arguments, message) in wrong {
        let output = incast(&[&["flows"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message) && output.stdout.is_empty(), "{arguments:?}: {said}");
    }
    assert!(!Path::new(&out).exists());
    let several = incast(&["flows", &scenario("trace")]);
    assert!(several.status.success());
    assert!(stderr(&several).contains("listing the first: scheme dctcp, seed 1"), "{}", stderr(&several));
}
