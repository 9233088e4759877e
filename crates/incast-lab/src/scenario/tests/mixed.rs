//! Receiver-driven laws: what other laws do beside them.

use super::*;
use incast_cc::parameters::Raw;
use incast_sim::config::ClassConfig;

/// The first scheme under one law, with more of it, over switches with so many priorities.
fn under(law: &str, priorities: u8, more: &str) -> Scenario {
    let text = GOOD
        .replacen("pfc = false", &format!("pfc = false\npriorities = {priorities}"), 1)
        .replacen("law = \"dctcp\"\n", &format!("law = \"{law}\"\nname = \"mixed\"\n{more}\n"), 1)
        .replacen("scheme = \"dctcp\"", "scheme = \"mixed\"", 1);
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// What came later and does nothing is left out of what a scenario comes to, but not where a class would inherit it.
#[test]
fn a_parameter_that_does_nothing_is_kept_where_another_would_be_inherited() {
    let plain = under("dasr", 3, "").effective_toml();
    assert_eq!(under("dasr", 3, "epoch_bits = 0").effective_toml(), plain);
    let text = under("dasr", 3, "epoch_bits = 4\nby_class.incast = { epoch_bits = 0 }").effective_toml();
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.effective_toml(), text);
    let bits =
        |class: &ClassConfig| class.law.values().into_iter().find(|(key, _)| *key == "epoch_bits").map(|(_, raw)| raw);
    let of = |name: &str| again.runs()[0].resolved.classes.iter().find(|class| class.name == name).and_then(bits);
    assert_eq!([of("background"), of("incast")], [4, 0].map(|bits| Some(Raw::Integer(bits))));
}

/// Receivers tell shares: who is to be counted together has the same receivers.
#[test]
fn classes_that_differ_in_what_receivers_do_not_see_share_them() {
    let scheduler = |scenario: &Scenario, name: &str| {
        let class = |class: &&ClassConfig| class.name == name;
        scenario.runs()[0].resolved.classes.iter().find(class).and_then(|class| class.scheduler)
    };
    let apart = "receivers count the senders of background and incast apart";
    let warned = |scenario: &Scenario| scenario.warnings.iter().any(|warning| warning.contains(apart));
    for own in ["weight = 4", "fallback = \"off\"", "water_filling = true", "gain = 0.5"] {
        let scenario = under("dasr", 3, &format!("by_class.incast = {{ {own} }}"));
        let both = ["background", "incast"].map(|name| scheduler(&scenario, name));
        assert_eq!((both, warned(&scenario)), ([Some(0); 2], false), "{own}");
    }
    let scenario = under("dasr", 3, "by_class.incast = { count = \"flows\" }");
    assert_ne!(scheduler(&scenario, "background"), scheduler(&scenario, "incast"));
    assert!(warned(&scenario), "{:?}", scenario.warnings);
}

#[test]
fn a_sender_driven_class_has_the_priority_of_receiver_driven_data() {
    let priority = |scenario: &Scenario, name: &str| {
        let class = |class: &&ClassConfig| class.name == name;
        scenario.runs()[0].resolved.classes.iter().find(class).map(|class| class.priority)
    };
    let footnote = |scenario: &Scenario| scenario.runs()[0].resolved.footnotes.join("; ");
    for (law, priorities, data) in [("ndp", 3, 1), ("polo", 3, 1), ("phost", 3, 2)] {
        let mixed = under(law, priorities, "by_class.incast = { law = \"dctcp\" }");
        assert_eq!(priority(&mixed, "incast"), Some(data), "{law}");
        assert_eq!(priority(&mixed, "background"), Some(data), "{law}");
        let note = format!("by_class.incast.priority = {data}, that of data under {law}");
        assert!(footnote(&mixed).contains(&note), "{}", footnote(&mixed));
        // What is given holds, and nothing is said of it.
        let given = under(law, priorities, "by_class.incast = { law = \"dctcp\", priority = 0 }");
        assert_eq!(priority(&given, "incast"), Some(0), "{law}");
        assert!(!footnote(&given).contains("that of data under"), "{}", footnote(&given));
    }
    // The other way round.
    let mixed = under("dctcp", 3, "by_class.incast = { law = \"ndp\" }");
    assert_eq!([priority(&mixed, "incast"), priority(&mixed, "background")], [Some(1); 2]);
    // Sender-driven classes alone keep theirs.
    let alone = under("dctcp", 3, "by_class.incast = { law = \"cubic\" }");
    assert_eq!([priority(&alone, "incast"), priority(&alone, "background")], [Some(0); 2]);
    assert!(!footnote(&alone).contains("that of data under"), "{}", footnote(&alone));
}
