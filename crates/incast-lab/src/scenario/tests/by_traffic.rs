//! Parameters that follow from the sizes of the flows.

use super::*;

/// A scenario with one class of messages under Homa.
fn homa(sizes: &str, scheme: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"homa\"\nduration = \"1ms\"\n\
         topology = {{ kind = \"single-switch\", hosts = 9, link = {{ rate = \"10Gbps\", delay = \"1us\" }} }}\n\
         switch = {{ buffer = {{ per_port = \"1MB\" }}, priorities = 8 }}\n\
         [[workload]]\nkind = \"poisson\"\nclass = \"one\"\nload = 0.2\nsizes = {sizes}\n\
         [[workload]]\nkind = \"incast\"\nclass = \"other\"\nfan_in = 4\nsize = \"10MB\"\nload = 0.2\n\
         [[scheme]]\nlaw = \"homa\"\n{scheme}\n"
    );
    parse(&text).map_err(|error| error.to_string())
}

/// What `incast check` prints of the scheme, as `key = value`.
fn printed(sizes: &str, scheme: &str, key: &str) -> String {
    let scenario = homa(sizes, scheme).unwrap_or_else(|error| panic!("{error}"));
    let text = scenario.effective_toml();
    // What is printed reads back as the same.
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.effective_toml(), text);
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).expect("it is printed");
    line.to_owned()
}

#[test]
fn the_priorities_of_homa_follow_from_the_sizes() {
    // RTTbytes are three packets of 4,096 B. The other class is of another law, and does not count.
    let alone = "by_class = { other = { law = \"credit\" } }\nunscheduled = \"10KB\"";
    for (sizes, levels) in [("\"homa_w1\"", 7), ("\"homa_w2\"", 6), ("\"homa_w4\"", 1), ("{ fixed = \"20KB\" }", 5)] {
        let expected = format!("unscheduled_priorities = {levels}");
        assert_eq!(printed(sizes, alone, "unscheduled_priorities"), expected, "{sizes}");
        assert_eq!(printed(sizes, alone, "overcommitment"), format!("overcommitment = {}", 8 - levels));
    }
    // Under the same law it counts, and has nearly all of the bytes.
    assert_eq!(printed("\"homa_w1\"", "", "unscheduled_priorities"), "unscheduled_priorities = 1");
    // What is given stays.
    let given = "cutoffs = \"1KB,2KB\"";
    assert_eq!(printed("\"homa_w1\"", given, "cutoffs"), "cutoffs = \"1KB,2KB\"");
    assert_eq!(printed("\"homa_w1\"", given, "unscheduled_priorities"), "unscheduled_priorities = 3");
    assert_eq!(printed("{ fixed = \"100B\" }", "unscheduled_priorities = 3", "cutoffs").matches(',').count(), 1);
    let error = homa("\"homa_w1\"", "cutoffs = \"2KB,1KB\"").expect_err("refused");
    assert!(error.contains("scheme.homa.cutoffs: found \"2KB,1KB\", allowed are sizes that do not fall"), "{error}");
}

#[test]
fn homa_needs_its_priorities() {
    let good = homa("\"homa_w3\"", "");
    assert!(good.is_ok(), "{good:?}");
    let error = homa("\"homa_w3\"", "switch.priorities = 2").expect_err("refused");
    assert!(error.contains("allowed is switch.priorities = 8 or more"), "{error}");
}

#[test]
fn what_does_nothing_under_a_law_that_assigns_priorities_is_warned_of() {
    for law in ["homa", "phost"] {
        let text = format!(
            "name = \"priorities\"\nduration = \"1ms\"\n\
             topology = {{ kind = \"single-switch\", hosts = 9, link = {{ rate = \"10Gbps\", delay = \"1us\" }} }}\n\
             switch = {{ buffer = {{ per_port = \"1MB\" }}, priorities = 8 }}\n\
             host = {{ recovery = \"go-back-n\", ack_every = 2, ack_delay = \"5us\" }}\n\
             [[workload]]\nkind = \"incast\"\nclass = \"one\"\nfan_in = 4\nsize = \"10MB\"\nload = 0.2\n\
             [[scheme]]\nlaw = \"{law}\"\npriority = 3\n\
             [[scheme]]\nlaw = \"cubic\"\npriority = 3\n"
        );
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        for key in [
            "priority is not that of data",
            "host.recovery has no effect",
            "host.ack_every has no effect",
            "host.ack_delay has no effect",
        ] {
            let of = |scheme: &str| {
                let start = format!("scheme {scheme}: {key}");
                scenario.warnings.iter().any(|warning| warning.starts_with(&start))
            };
            assert!(of(law) && !of("cubic"), "{key}: {:?}", scenario.warnings);
        }
    }
}
