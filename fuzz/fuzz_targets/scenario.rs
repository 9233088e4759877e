//! The reader of scenarios never panics, and every message names the file and a line of it.
#![no_main]

use incast_lab::scenario::{Scenario, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A folder that does not exist: the input must not make the fuzzer read files of the machine.
    let source = Source { path: "/nonexistent/fuzz.toml".into(), text: text.to_owned() };
    if let Err(error) = Scenario::parse(source, &[]) {
        let line = error.line.expect("a message without --set has a line");
        assert!((1..=text.matches('\n').count() + 1).contains(&line));
        assert!(error.file.ends_with("fuzz.toml") && !error.to_string().is_empty());
    }
});
