//! `[measure]`: rows for flows of some sizes, and what verdicts count.

use super::*;

/// Two workloads, of 20 KB and of 64 KB, and lines of `[measure]`.
fn measured(lines: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"sizes\"\nduration = \"1ms\"\n\
         topology = {{ kind = \"single-switch\", hosts = 9, link = {{ rate = \"10Gbps\", delay = \"1us\" }} }}\n\
         [switch]\nbuffer = {{ per_port = \"1MB\" }}\n\
         [[workload]]\nclass = \"web\"\nkind = \"poisson\"\nload = 0.2\nsizes = {{ fixed = \"20KB\" }}\n\
         [[workload]]\nclass = \"incast\"\nkind = \"incast\"\nfan_in = 4\nsize = \"64KB\"\nevery = \"100us\"\n\
         [measure]\n{lines}\n\
         [[scheme]]\nlaw = \"cubic\"\n"
    );
    parse(&text).map_err(|error| error.to_string())
}

fn names(lines: &str) -> Vec<String> {
    let scenario = measured(lines).unwrap_or_else(|error| panic!("{error}"));
    let run = scenario.runs().into_iter().next().expect("a run");
    run.sizes().iter().map(|row| format!("{} of {}", row.name, run.classes[usize::from(row.class)])).collect()
}

#[test]
fn no_row_has_flows_of_two_classes() {
    // Of the range's class, of the only one that has such flows, of each that has.
    let small = |more: &str| format!("sizes = [{{ name = \"small\", {more}upto = \"100KB\" }}]");
    assert_eq!(names(&small("class = \"incast\", ")), ["small of incast"]);
    assert_eq!(names(&small("")), ["web small of web", "incast small of incast"]);
    assert_eq!(names("sizes = [{ name = \"large\", over = \"50KB\" }]"), ["large of incast"]);
    let error = measured(&small("class = \"incats\", ")).expect_err("no such class");
    assert!(error.contains("there is no class \"incats\"") && error.contains("incast"), "{error}");
    let twice = "sizes = [{ name = \"web small\", over = \"50KB\" }, { name = \"small\", upto = \"100KB\" }]";
    let error = measured(twice).expect_err("one name for two rows");
    assert!(error.contains("would be named \"web small\""), "{error}");
}

#[test]
fn what_does_not_count_is_a_part_and_the_baseline_a_scheme() {
    let part = |text: &str| measured(&format!("indifferent = \"{text}\"")).map(|scenario| scenario.indifferent.part());
    assert_eq!((part("0%"), part("7%"), part("2.5 %")), (Ok(0.0), Ok(0.07), Ok(0.025)));
    for wrong in ["2", "-1%", "100%", "x%", "NaN%"] {
        let error = part(wrong).expect_err(wrong);
        assert!(error.contains("expected \"0%\" to below \"100%\""), "{wrong}: {error}");
    }
    let effective = measured("indifferent = \"7%\"").expect("a scenario").effective_toml();
    assert!(effective.contains("indifferent = \"7%\""), "{effective}");
    assert_eq!(measured("baseline = \"cubic\"").expect("a scenario").baseline.as_deref(), Some("cubic"));
    let error = measured("baseline = \"cubik\"").expect_err("no such scheme");
    assert!(error.contains("there is no scheme \"cubik\"") && error.contains("cubic"), "{error}");
}
