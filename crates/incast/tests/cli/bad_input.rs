//! Bad input ends with exit code 2, one clear message on stderr, nothing on stdout, and nothing written.

use crate::common::{folder, incast, scenario, stderr, succeed, text};
use std::fs;

/// Runs into a fresh folder and insists that it is refused; the message.
fn refused(test: &str, arguments: &[&str]) -> String {
    let out = folder(test).join("results");
    let mut all = vec!["run", "--quiet", "--out", text(&out)];
    all.extend(arguments);
    let output = incast(&all);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!out.exists(), "something was written");
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one() {
    let message = refused("unknown_key", &[&scenario("unknown_key")]);
    assert!(message.contains("unknown_key.toml:4"), "{message}");
    assert!(message.contains("wramup") && message.contains("\"warmup\""), "{message}");
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
    let message = refused("wrong_value", &[&scenario("wrong_value")]);
    assert!(message.contains("wrong_value.toml:15"), "{message}");
    assert!(message.contains("stpe") && message.contains("step") && message.contains("red"), "{message}");
}

#[test]
fn all_mistakes_are_named_at_once() {
    let out = folder("several_mistakes");
    let text_of = fs::read_to_string(scenario("small")).expect("a scenario");
    let text_of = text_of.replace("warmup = ", "wramup = ").replace("fan_in = 3", "fan_in = \"x\"");
    let file = out.join("wrong.toml");
    fs::write(&file, text_of.replace("kind = \"step\"", "kind = \"stpe\"")).expect("written");
    let output = incast(&["check", text(&file)]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.starts_with("error: ")), "{message}");
    for (line, word) in lines.iter().zip(["wramup", "stpe", "fan_in"]) {
        assert!(line.contains(word), "{message}");
    }
}

#[test]
fn files_that_are_missing_or_not_text() {
    assert!(refused("missing", &["no/such/file.toml"]).contains("no/such/file.toml"));
    assert!(refused("binary", &[&scenario("binary")]).contains("binary.toml"));
    refused("a_folder", &["."]);
}

#[test]
fn settings_that_lead_nowhere() {
    let small = scenario("small");
    let message = refused("set_typo", &[&small, "--set", "scheme.dctcp.gian=0.1"]);
    assert!(message.contains("gian") && message.contains("\"gain\""), "{message}");
    assert!(refused("set_scheme", &[&small, "--set", "scheme.dctpc.gain=0.1"]).contains("dctcp"));
    refused("set_range", &[&small, "--set", "scheme.dctcp.gain=7"]);
    refused("set_form", &[&small, "--set", "scheme.dctcp.gain"]);
    refused("set_load", &[&small, "--set", "workload.background.load=1.5"]);
    refused("set_rate", &[&small, "--set", "topology.link.rate=0Gbps"]);
    refused("set_fan_in", &[&small, "--set", "workload.incast.fan_in=16"]);
}

#[test]
fn agents_that_do_not_exist_or_take_no_such_parameter() {
    let small = scenario("small");
    let set = |value: &str| refused("set_agent", &[&small, "--set", &format!("switch.agent={value}")]);
    let message = set("mercurry");
    assert!(message.contains("did you mean \"mercury\"") && message.contains("\"none\""), "{message}");
    let message = set("{ kind = \"mercury\", treshold = \"9KB\" }");
    assert!(message.contains("switch.agent.treshold") && message.contains("did you mean \"threshold\""), "{message}");
    let message = set("{ kind = \"mercury\", cnp_trigger = \"dequeue\" }");
    assert!(message.contains("switch.agent.cnp_trigger") && message.contains("\"periodic\""), "{message}");
    assert!(set("{ threshold = \"9KB\" }").contains("`kind` is missing"));
    assert!(set("true").contains("false, \"none\""));
}

#[test]
fn selections_that_select_nothing() {
    let small = scenario("small");
    let message = refused("only_scheme", &[&small, "--only", "scheme=dctpc"]);
    assert!(message.contains("did you mean \"dctcp\""), "{message}");
    assert!(refused("only_key", &[&small, "--only", "shceme=dctcp"]).contains("did you mean \"scheme\""));
    refused("only_form", &[&small, "--only", "dctcp"]);
    for (test, option) in [("no_seeds", "--seeds"), ("no_jobs", "--jobs"), ("no_threads", "--threads")] {
        let said = refused(test, &[&small, option, "0"]);
        assert!(said.contains("allowed is 1 or more") && !said.contains("non-zero"), "{said}");
        assert!(refused(test, &[&small, option, "x"]).contains("expected a whole number, allowed is 1 or more"));
    }
    refused("resume_and_force", &[&small, "--resume", "--force"]);
}

#[test]
fn two_scenarios_of_one_name() {
    let small = scenario("small");
    assert!(refused("one_name", &[&small, &small]).contains("same name"));
}

#[test]
fn commands_and_cases_that_do_not_exist() {
    for arguments in
        [&["rnu"][..], &[], &["list", "shcemes"], &["bench", "--case", "nope"], &["bench", "--law", "nope"]]
    {
        let output = incast(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(incast(&["check", "no/such/file.toml"]).status.code(), Some(2));
}

#[test]
fn a_folder_with_results_is_not_overwritten() {
    let out = folder("occupied");
    let small = scenario("small");
    let run = |more: &[&str]| {
        let mut all = vec!["run", "--quiet", "--seeds", "1", "--only", "scheme=dctcp", "--out", text(&out), &small];
        all.extend(more);
        incast(&all)
    };
    assert!(run(&[]).status.success());
    let summary = out.join("small/summary.json");
    let before = fs::read(&summary).expect("a summary");
    let foreign = out.join("small/notes.txt");
    fs::write(&foreign, "mine").expect("a file of the user");

    let again = run(&[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("--resume") && stderr(&again).contains("--force"), "{}", stderr(&again));
    let other = run(&["--resume", "--set", "workload.background.load=0.2"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("another scenario"), "{}", stderr(&other));
    assert_eq!(fs::read(&summary).expect("a summary"), before);

    assert!(run(&["--force", "--set", "workload.background.load=0.2"]).status.success());
    assert_ne!(fs::read(&summary).expect("a summary"), before);
    assert_eq!(fs::read_to_string(&foreign).expect("still there"), "mine");
}

#[test]
fn what_is_not_writable_is_said() {
    let file = folder("not_a_folder").join("file");
    fs::write(&file, "").expect("a file");
    let below = file.join("folder");
    let impossible = if cfg!(target_os = "linux") { &["/proc/incast", "/dev/null"][..] } else { &[] };
    for out in [text(&file), text(&below)].iter().chain(impossible) {
        let output = incast(&["run", "--out", out, &scenario("small")]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{out}: {message}");
        assert!(output.stdout.is_empty());
        // One line, and no progress: nothing ran.
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        assert!(message.contains("cannot hold results") && message.contains("choose another --out"), "{message}");
    }
    assert!(fs::read(&file).expect("still a file").is_empty());
    // The same input is fine elsewhere.
    succeed(&["check", &scenario("small")]);
}
