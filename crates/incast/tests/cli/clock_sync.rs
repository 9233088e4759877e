//! `incast clock-sync`.

use crate::common::{incast, stderr, succeed};
use serde_json::Value;

/// Small enough to be quick.
const SMALL: [&str; 9] = ["clock-sync", "--hosts", "10", "--peers", "4", "--windows", "2", "--interval", "4ms"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn the_table_has_methods_and_no_asymmetric_link() {
    let text = succeed(&small(&["--noise", "200ns"]));
    for expected in ["huygens ", "huygens-tree", "two-way-average", "two-way-minimum", "guard of 450ns"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(text.contains("asymmetric links: none found"), "{text}");
    assert!(!text.contains("huygens-repaired"), "{text}");
    assert_eq!(text, succeed(&small(&["--noise", "200ns"])));
}

#[test]
fn an_asymmetric_link_is_named() {
    let text = succeed(&small(&["--noise", "100ns", "--asymmetric", "h7-h2=2us"]));
    assert!(text.contains("asymmetric link: 7-2 takes"), "{text}");
    assert!(text.contains("named in 2 of 2 windows") && text.contains("huygens-repaired"), "{text}");
    let json: Value =
        serde_json::from_str(&succeed(&small(&["--noise", "100ns", "--asymmetric", "7-2=2us", "--json"])))
            .expect("JSON");
    let named = &json["asymmetric"][0];
    assert_eq!((named["from"].as_u64(), named["to"].as_u64()), (Some(7), Some(2)));
    assert!((named["extra_ns"].as_f64().expect("a number") - 2_000.0).abs() < 200.0, "{named}");
    let rows = json["rows"].as_array().expect("rows");
    // Five methods with two windows and all of them.
    assert_eq!(rows.len(), 15);
    assert!(rows.iter().all(|row| row["max_ns"].as_f64() >= row["mean_ns"].as_f64()), "{rows:?}");
}

#[test]
fn bad_settings_are_refused() {
    for (arguments, reason) in [
        (&["--hosts", "1"][..], "--hosts: found 1"),
        (&["--hosts", "8", "--peers", "9"], "--peers: found 9, allowed is 1 to 7"),
        (&["--busy", "1.5"], "--busy: found 1.5, allowed is 0 to 1"),
        (&["--drift-ppm", "NaN"], "--drift-ppm: found NaN"),
        (&["--interval", "5us"], "--interval: found 5us"),
        (&["--window", "1ms"], "--interval: found 250us"),
        (&["--hosts", "4", "--asymmetric", "1-9=2us"], "--asymmetric: found 1-9"),
        (&["--asymmetric", "1=2us"], "such as 3-7=2us"),
        (&["--asymmetric", "1-2=2"], "is not a time"),
        (&["--noise", "fast"], "is not a time"),
    ] {
        let output = incast(&[&["clock-sync"][..], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(reason) && output.stdout.is_empty(), "{arguments:?}: {message}");
    }
}

#[test]
fn a_guard_that_accepts_nothing_fails() {
    let output = incast(&small(&["--guard", "1ps"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("window 1: too few coded pairs of host"), "{}", stderr(&output));
}
