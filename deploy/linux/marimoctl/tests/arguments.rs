//! What can be refused without privileges: exit code 2, with what was found, where, and what is allowed.

use std::{fs, path::PathBuf, process::Command};

fn refused(arguments: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_marimoctl")).args(arguments).output().expect("built by cargo");
    let said = String::from_utf8(done.stderr).expect("text");
    assert_eq!(done.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(done.stdout.is_empty());
    said
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the folder of this test");
    path
}

#[test]
fn a_configuration_names_its_line() {
    let path = file("host.conf", "rule = settling\n\ntarget = 99 # too much\n");
    let path = path.to_str().expect("text");
    let said = refused(&["load", "--config", path]);
    assert!(said.starts_with(&format!("marimoctl load: {path} line 3: target: found \"99\", allowed is ")), "{said}");
    let said = refused(&["load", "--set", "min_window=1"]);
    assert!(said.contains("--set: min_window: found \"1\", allowed is a whole number from 2 to 65535"), "{said}");
    let said = refused(&["load", "--set", "min_window"]);
    assert!(said.contains("allowed is name = value"), "{said}");
    let said = refused(&["load", "--config", "no/such.conf"]);
    assert!(said.contains("cannot read no/such.conf"), "{said}");
}

#[test]
fn a_table_names_its_line() {
    let good = include_str!("../../../core/marimo-f.table");
    for (text, what) in [
        (good.replace("marimo-f 1", "marimo-f 2"), "found \"marimo-f 2\""),
        (good.replace("checksum ", "checksum f"), "found \"checksum f"),
        (good.replace("checksum ", "checksum 0000"), "found \"checksum 0000"),
        (good.replace("40336\n", "600000\n"), "allowed is at most 524288"),
        (good.lines().take(20).collect::<Vec<_>>().join("\n"), "and the end, allowed are 65"),
        (String::new(), "found nothing"),
    ] {
        let path = file("bad.table", &text);
        let path = path.to_str().expect("text");
        for said in [refused(&["set-table", path]), refused(&["load", "--table", path])] {
            assert!(said.contains(&format!("{path} line ")) && said.contains(what), "{said}");
        }
    }
}

#[test]
fn what_is_enabled_is_named() {
    let said = refused(&["enable"]);
    assert!(said.contains("<ROUTE>..."), "{said}");
    assert!(refused(&["set-table"]).contains("required"));
    assert!(refused(&["set-table", "f.table", "--previous"]).contains("cannot be used with"));
}

#[test]
fn a_table_must_fit_the_configuration() {
    let said = refused(&["load", "--set", "decrease_above=7"]);
    assert!(said.contains("allowed is from below increase_below, 0.9, to above decrease_above, 7"), "{said}");
}

#[test]
fn a_fallback_is_another_congestion_control() {
    for name in ["bpf_marimo", "", "sixteen-letters-"] {
        let said = refused(&["load", "--fallback", name]);
        assert!(said.contains(&format!("--fallback: found {name:?}, allowed is")), "{said}");
    }
}

#[test]
fn the_module_has_recorded_nothing_before() {
    let said = refused(&["top", "--form", "module", "--recorded"]);
    assert!(said.contains("--recorded: found with tcp_marimo, allowed is bpf_marimo"), "{said}");
}

#[test]
fn an_unknown_argument_is_refused() {
    assert!(refused(&["reload"]).contains("reload"));
    assert!(refused(&["top", "--seconds", "soon"]).contains("soon"));
}
