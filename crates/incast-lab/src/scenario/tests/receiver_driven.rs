//! What a scenario warns of under receiver-driven laws.

use super::*;

/// The warnings of a scheme, given from its law on, and of other lines for switches.
fn warnings(switch: &str, scheme: &str) -> Vec<String> {
    let text = format!(
        "name = \"driven\"\nduration = \"1ms\"\n\
         topology = {{ kind = \"single-switch\", hosts = 9, link = {{ rate = \"10Gbps\", delay = \"1us\" }} }}\n\
         [switch]\nbuffer = {{ per_port = \"1MB\" }}\npriorities = 8\necn = {{ kind = \"step\", at = \"9KB\" }}\n{switch}\n\
         [[workload]]\nkind = \"poisson\"\nload = 0.2\nsizes = {{ fixed = \"20KB\" }}\n\
         [[scheme]]\nlaw = {scheme}\n"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}")).warnings
}

#[test]
fn parameters_of_polo_without_effect_are_warned_of() {
    for (given, expected) in [
        // With adjoint_scope = "owner" others still send their first adjoint packet.
        ("epoch = \"each\"", None),
        ("epoch = \"each\"\nd_scope = \"flow\"", Some("epoch has no effect with d_scope = \"flow\"")),
        ("recovery2_scope = \"one\"\nrecovery2 = false", Some("recovery2_scope has no effect with recovery2 = false")),
        // It is also after how long a paused window is overdue.
        ("recovery2_timeout = \"1ms\"\nrecovery2 = false", None),
        ("recovery2_scope = \"one\"\nrecovery2_timeout = \"1ms\"", None),
        ("rto = \"2ms\"\nrecovery3 = false", Some("rto has no effect with recovery3 = false")),
        ("rto = \"2ms\"", None),
    ] {
        let expected: Vec<String> = expected.into_iter().map(|what| format!("scheme polo: {what}")).collect();
        assert_eq!(warnings("", &format!("\"polo\"\n{given}")), expected, "{given}");
    }
}

#[test]
fn fabrics_that_receiver_driven_laws_are_not_made_for_are_warned_of() {
    for by in ["spray", "spray-permutation"] {
        let balancing = format!("load_balancing = \"{by}\"");
        let expected = format!(
            "scheme polo: recovery 1 of polo takes a gap for a loss, and load_balancing = \"{by}\" reorders packets"
        );
        assert_eq!(warnings(&balancing, "\"polo\""), [expected]);
        assert!(warnings(&balancing, "\"polo\"\nrecovery1 = false").is_empty());
    }
    let behind = "scheme polo: control packets of polo have priority 2 and wait behind its data, which has 1";
    assert_eq!(warnings("", "\"polo\"\nack_priority = 2"), [behind]);
    assert!(warnings("", "\"polo\"\nack_priority = 1").is_empty());
    assert!(warnings("", "\"polo\"\nack_priority = 2\npriority = 3").is_empty());
    let untrimmed = |found: Vec<String>| found.iter().any(|warning| warning.contains("switch.trim is off, so ndp"));
    assert!(untrimmed(warnings("", "\"ndp\"")));
    assert!(!untrimmed(warnings("trim = true", "\"ndp\"")));
}

#[test]
fn only_a_bound_can_be_ours() {
    let claim = |bound: &str| {
        let claim = format!("[[paper.claim]]\nmetric = \"fct_us.p99\"\nscheme = \"dctcp\"\nours = true\n{bound}\n");
        parse(&format!("{GOOD}\n{claim}"))
    };
    assert!(claim("at_least = 1").is_ok());
    let error = claim("value = 1").expect_err("no bound").to_string();
    assert!(error.contains("only a bound, `at_most` or `at_least`, or a `range` can be ours"), "{error}");
}
