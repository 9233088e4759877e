//! Scenarios: every text is refused with a line of it, or gives runs that can be described.
#![no_main]

use incast_lab::scenario::{Form, Scenario, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for form in [Form::Full, Form::Short] {
        // A folder that does not exist: relative paths in the input name no files.
        let source = Source { path: "/nonexistent/fuzz.toml".into(), text: text.to_owned() };
        match Scenario::parse_form(source, &[], form) {
            Err(error) => {
                let line = error.line.expect("a message without --set has a line");
                assert!((1..=text.matches('\n').count() + 1).contains(&line));
                assert!(error.file.ends_with("fuzz.toml") && !error.to_string().is_empty());
            }
            Ok(scenario) => {
                assert!(!scenario.effective_toml().is_empty());
                for run in scenario.runs().iter().take(8) {
                    assert!(!run.effective().is_empty());
                    assert!(run.expected_flows() >= 0.0 && run.expected_packet_hops() >= 0.0);
                    assert!(run.estimated_memory() > 0);
                    let _ = (run.describe_workloads(), run.describe_pfc(), run.footnotes());
                }
            }
        }
    }
});
