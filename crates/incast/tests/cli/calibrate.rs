//! `incast calibrate marimo`, and tables of f that a scenario names.

use crate::common::{folder, incast, scenario, stderr, succeed, text};
use std::{fs, path::Path};

const BUNDLED: &str = "../../deploy/core/marimo-f.table";

/// Insists on exit code 2 and nothing on stdout; the message.
fn refused(arguments: &[&str]) -> String {
    let output = incast(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn the_bundled_table_is_what_its_command_makes() {
    let bundled = fs::read_to_string(BUNDLED).expect("the bundled table");
    let command =
        bundled.lines().find_map(|line| line.strip_prefix("# made by: incast ")).expect("the command that made it");
    let arguments: Vec<&str> = command.split(' ').collect();
    assert_eq!(succeed(&arguments), bundled, "run `incast {command} > deploy/core/marimo-f.table`");
    assert!(succeed(&["calibrate", "marimo", "--check", BUNDLED]).contains("share  load"));
}

#[test]
fn a_rejected_fit_keeps_the_old_table() {
    let folder = folder("calibrate_rejected");
    let (table, samples) = (folder.join("f.table"), folder.join("samples.csv"));
    let fit = |lines: &str| {
        fs::write(&samples, format!("share,load,bytes\n{lines}")).expect("written");
        ["calibrate", "marimo", "--samples", text(&samples), "--out", text(&table)]
    };
    succeed(&fit("0,0.5,1000\n0.5,0.95,1000\n1,1.3,1000\n"));
    let first = fs::read(&table).expect("a table");
    for (lines, reason) in [
        ("0,0.95,1000\n1,1.3,1000\n", "never grow"),
        ("0,0.5,1000\n1,0.8,1000\n", "never shrink"),
        ("", "no samples"),
        ("0,0.5,1000\n2,0.8,1000\n", "samples.csv:3: found \"2\""),
    ] {
        let message = refused(&fit(lines));
        assert!(message.contains(reason), "{message}");
        assert_eq!(fs::read(&table).expect("still there"), first);
    }
    assert_eq!(fs::read_dir(&folder).expect("listed").count(), 2, "nothing half-written is left");
}

#[test]
fn broken_tables_are_refused_by_check_run_and_calibrate() {
    let folder = folder("calibrate_broken");
    let bundled = fs::read_to_string(BUNDLED).expect("the bundled table");
    let lines: Vec<&str> = bundled.lines().collect();
    let first = lines.iter().position(|line| *line == "marimo-f 1").expect("the head") + 1;
    let with = |index: usize, line: &str| {
        let mut lines = lines.clone();
        lines[index] = line;
        lines.join("\n")
    };
    let small = fs::read_to_string(scenario("small")).expect("a scenario");
    let replaced = small.replace("law = \"dctcp\"", "law = \"marimo\"\ntable = \"f.table\"");
    assert_ne!(replaced, small, "the scenario has a scheme to replace");
    let path = folder.join("scenario.toml");
    fs::write(&path, replaced).expect("written");
    let table = folder.join("f.table");
    fs::write(&table, &bundled).expect("written");
    succeed(&["check", text(&path)]);
    for (broken, line, reason) in [
        (lines[..lines.len() - 4].join("\n"), lines.len() - 4, "and the end"),
        (with(first + 9, "1"), first + 10, "must not fall"),
        (with(first + 64, "999999"), first + 65, "at most 524288"),
        (with(first + 64, "x"), first + 65, "found \"x\""),
        (with(lines.len() - 1, "checksum 00000000"), lines.len(), "checksum"),
    ] {
        fs::write(&table, broken).expect("written");
        let message = refused(&["check", text(&path)]);
        assert!(message.contains("table: \"f.table\"") && message.contains("scenario.toml:"), "{message}");
        assert!(message.contains(&format!("line {line}")) && message.contains(reason), "{message}");
        let out = folder.join("results");
        refused(&["run", text(&path), "--out", text(&out), "--quiet"]);
        assert!(!out.exists(), "something was written");
        let message = refused(&["calibrate", "marimo", "--check", text(&table)]);
        assert!(message.contains(&format!("f.table:{line}: ")) && message.contains(reason), "{message}");
    }
    fs::remove_file(&table).expect("removed");
    assert!(refused(&["check", text(&path)]).contains("cannot be read"));
    assert!(refused(&["calibrate", "marimo", "--check", text(Path::new("no/such.table"))]).contains("no/such.table"));
    let typo = refused(&["check", text(&path), "--set", "scheme.marimo.table=calibratd"]);
    assert!(typo.contains("did you mean \"calibrated\""), "{typo}");
}
