//! `incast diff`: two results folders beside each other.

use crate::common::{folder, incast, scenario, stderr, succeed, text};
use std::{fs, path::PathBuf};

/// The scenario `small` with three seeds and another setting, in a folder of its own.
fn results(test: &str, name: &str, options: &[&str]) -> PathBuf {
    let out = folder(test).join(name);
    fs::create_dir_all(&out).expect("made");
    let file = scenario("small");
    let run = ["run", "--quiet", "--seeds", "3", "--out", text(&out), &file];
    succeed(&[&run[..], options].concat());
    out.join("small")
}

#[test]
fn a_setting_is_named_and_what_it_changes_is_told_apart() {
    let base = results("diff_setting", "base", &[]);
    let again = results("diff_setting_again", "again", &[]);
    let said = succeed(&["diff", text(&base), text(&again)]);
    assert!(said.starts_with("all 6 runs have the same digest: they are the same packet by packet"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    // The same packets, of which others are counted.
    let counted = results("diff_setting_counted", "counted", &["--set", "warmup=200us"]);
    let said = succeed(&["diff", text(&base), text(&counted), "--columns", "fct_us.mean"]);
    assert!(said.starts_with("all 6 runs have the same digest") && said.contains("FCT mean us, dctcp"), "{said}");

    let slow = results("diff_setting_slow", "slow", &["--set", "topology.link.delay=20us"]);
    let said = succeed(&["diff", text(&base), text(&slow), "--columns", "fct_us.p50"]);
    assert!(said.contains("  topology.link.delay: ") && said.contains(" → 20us"), "{said}");
    // Another topology has other ideal times, and loads: it is not paired.
    assert!(said.contains("other flows, not paired; 3 seeds"), "{said}");
    let unwrapped = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let means = "values are means over seeds of each seed's number; table and report pool the seeds";
    assert!(unwrapped.contains(means), "{said}");
    let json = succeed(&["diff", text(&base), text(&slow), "--columns", "fct_us.p50", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["numbers_are"], "means over seeds of each seed's number");
    let numbers = json["numbers"].as_array().expect("numbers");
    assert_eq!((numbers.len(), json["runs"].as_u64(), json["same_digest"].as_u64()), (2, Some(6), Some(0)));
    for number in numbers {
        assert!(number["after"].as_f64() > number["before"].as_f64(), "{number}");
        assert_eq!(number["metric"], "fct_us.p50");
    }
}

#[test]
fn schemes_of_one_folder_are_named_and_mistakes_are() {
    let base = results("diff_mistakes", "base", &[]);
    let one = results("diff_mistakes_one", "one", &["--only", "scheme=cubic"]);
    let other = results("diff_mistakes_other", "other", &["--only", "scheme=dctcp"]);
    let said = succeed(&["diff", text(&base), text(&one)]);
    assert!(said.contains("only before: dctcp"), "{said}");
    let said = succeed(&["diff", text(&one), text(&other)]);
    assert!(said.contains("cubic → dctcp: "), "a law against another: {said}");
    for (arguments, wrong) in [
        (["diff", text(&base), "nosuch", "--json"], "nosuch"),
        (["diff", text(&base), text(&one), "--columns=nosuch:fct_us.p50"], "which not both have"),
        (["diff", text(&base), text(&one), "--indifferent=300%"], "expected \"0%\" to below \"100%\""),
    ] {
        let output = incast(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(wrong), "{}", stderr(&output));
    }
}
