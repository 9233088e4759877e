//! `switch.agent`: what it names, what it changes at senders, and what is in vain.

use super::*;
use incast_cc::registry::AGENTS;

/// Every in-switch algorithm can be named, with and without parameters, in `[switch]` and in a scheme.
#[test]
fn agents_are_named_like_laws() {
    let agent = |value: &str| GOOD.replacen("pfc = false", &format!("pfc = false\nagent = {value}"), 1);
    for none in ["false", "\"none\"", "{ kind = \"none\" }"] {
        let scenario = parse(&agent(none)).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.runs().iter().all(|run| run.resolved.switch.agent.is_none()));
        assert!(scenario.effective_toml().contains("agent = \"none\""));
    }
    let to = |value: &str| format!("pfc = false\nagent = {value}");
    for (value, expected) in [
        ("true", "switch.agent: found true, allowed is false, \"none\""),
        ("7", "switch.agent: found 7, allowed is false, \"none\""),
        ("\"nnoe\"", "switch.agent: found \"nnoe\", allowed is \"none\""),
        ("\"nnoe\"", "(did you mean \"none\"?)"),
        ("{ kind = \"nnoe\" }", "switch.agent.kind: found \"nnoe\", allowed is \"none\""),
        ("{ kind = 7 }", "switch.agent.kind: found 7, allowed is a text in quotes"),
        ("{ threshold = \"1KB\" }", "switch.agent: the key `kind` is missing"),
        ("{ kind = \"none\", threshold = \"1KB\" }", "switch.agent.threshold: unknown key: \"none\" takes none"),
    ] {
        refused("pfc = false", &to(value), expected);
    }
    for info in AGENTS {
        let name = info.name;
        let with = |value: &str| parse(&agent(value)).unwrap_or_else(|error| panic!("{error}"));
        for value in [format!("{name:?}"), format!("{{ kind = {name:?} }}")] {
            let scenario = with(&value);
            let runs = scenario.runs();
            assert!(runs.iter().all(|run| run.config(1).expect("valid").switch.agent.info().is_some()));
            // Every parameter is spelled out for every scheme, and what was printed reads back as the same.
            let text = scenario.effective_toml();
            for row in info.parameters.iter().filter(|row| row.unset.is_none()) {
                assert!(text.matches(&format!("\n{} = ", row.name)).count() >= 3, "{} not in\n{text}", row.name);
            }
            let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let values = |scenario: &Scenario| -> Vec<_> {
                scenario.runs().iter().map(|run| run.resolved.switch.agent.values()).collect()
            };
            assert_eq!(values(&again), values(&scenario));
        }
        let unknown = format!("switch.agent.nothing: unknown key for the agent {name}");
        refused("pfc = false", &to(&format!("{{ kind = {name:?}, nothing = 1 }}")), &unknown);
        if let Some(row) = info.parameters.first() {
            let key = format!("switch.agent.{}", row.name);
            // No parameter takes this.
            let table = format!("{{ kind = {name:?}, {} = \"?\" }}", row.name);
            refused("pfc = false", &to(&table), &format!("{key}: "));
            let sets = [("switch.agent", format!("{name:?}")), (&*key, "\"?\"".to_owned())];
            let sets: Vec<_> = sets.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let error = parse_with(GOOD, &sets).expect_err("not a value").to_string();
            assert!(error.starts_with(&format!("--set {key}=\"?\": {key}: ")), "{error}");
        }
        // Of one scheme, on an axis of the grid.
        let axis = format!("\"scheme.cubic.switch.agent\" = [false, {name:?}]\n[[zip]]");
        let scenario = parse(&GOOD.replacen("[[zip]]", &axis, 1)).unwrap_or_else(|error| panic!("{error}"));
        let with_agent = |run: &&Run| !run.resolved.switch.agent.is_none();
        let runs = scenario.runs();
        assert_eq!(runs.iter().filter(with_agent).count(), runs.len() / 6);
        assert!(runs.iter().filter(with_agent).all(|run| run.scheme == "cubic"));
    }
}

/// An agent changes what its senders do unless the scenario says otherwise, and a footnote says so.
#[test]
fn agents_change_defaults_of_laws() {
    let mercury = "law = \"dcqcn\"\nname = \"cubic\"\nswitch.agent = \"mercury\"";
    let scheme = |more: &str| {
        let text = GOOD.replacen("law = \"cubic\"", &format!("{mercury}{more}"), 1);
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let run = scenario.runs().into_iter().find(|run| run.scheme == "cubic").expect("there");
        let window = |class: usize| {
            let values = run.resolved.classes[class].law.values();
            let values = values.into_iter().find(|(key, _)| *key == "in_flight");
            values.map(|(_, raw)| raw.to_string())
        };
        let changed = run.footnotes().iter().filter(|note| note.contains("as switch.agent is")).count();
        // Whoever prints them puts the scheme's name before them.
        assert!(run.footnotes().iter().all(|note| !note.starts_with("cubic:")), "{:?}", run.footnotes());
        (window(0), window(1), changed)
    };
    let text = |text: &str| Some(format!("{text:?}"));
    assert_eq!(scheme(""), (text("bdp"), text("bdp"), 1));
    assert_eq!(scheme("\nin_flight = \"unlimited\""), (text("unlimited"), text("unlimited"), 1));
    let own = scheme("\nby_class.incast = { in_flight = \"rate-bdp\" }");
    assert_eq!(own, (text("bdp"), text("rate-bdp"), 2));
    // CUBIC has no such parameter.
    assert_eq!(scheme("\nby_class.incast = { law = \"cubic\" }").1, None);
    let none = GOOD.replacen("law = \"cubic\"", &mercury.replace("\"mercury\"", "false"), 1);
    let none = parse(&none).expect("valid").effective_toml();
    assert!(none.contains("in_flight = \"unlimited\"") && !none.contains("in_flight = \"bdp\""));
}

#[test]
fn what_an_agent_does_in_vain_is_a_warning() {
    const PFC: &str = "pfc = { xoff = \"64KB\" }";
    let warnings = |law: &str, agent: &str, ecn: bool, pfc: bool| -> Vec<String> {
        let scheme = format!("law = {law:?}\nname = \"cubic\"\nswitch.agent = {agent}");
        let ecn = if ecn { scheme } else { format!("{scheme}\nswitch.ecn = false") };
        let text = GOOD.replacen("law = \"cubic\"", &ecn, 1);
        let text = if pfc { text.replacen("pfc = false", PFC, 1) } else { text };
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let all = scenario.warnings.into_iter();
        all.filter_map(|warning| warning.strip_prefix("scheme cubic: ").map(str::to_owned)).collect()
    };
    let thresholds = |kind: &str| format!("switch.agent {kind:?} uses the thresholds of switch.ecn, which is off");
    let pauses = |kind: &str| {
        format!(
            "without switch.pfc or switch.credits nothing is paused, and what switch.agent {kind:?} does about pauses has no effect"
        )
    };
    let unread = "uses no notifications of switch.agent \"mercury\"";
    let (mercury, tcd) = ("\"mercury\"", "\"tcd\"");
    for (law, agent, ecn, pfc, expected) in [
        ("dcqcn", mercury, true, true, vec![]),
        ("dcqcn", tcd, true, true, vec![]),
        ("timely", mercury, true, true, vec![]),
        ("dcqcn", "\"pacc\"", true, false, vec![]),
        ("dcqcn", mercury, true, false, vec![pauses("mercury")]),
        ("dcqcn", tcd, true, false, vec![pauses("tcd")]),
        ("dcqcn", tcd, false, true, vec![thresholds("tcd")]),
        ("dcqcn", mercury, false, true, vec![thresholds("mercury")]),
        // With a threshold of its own it needs none of the ports', which then have no effect.
        ("dcqcn", "{ kind = \"mercury\", threshold = \"9KB\" }", false, true, vec![]),
        ("swift", mercury, true, true, vec![format!("swift {unread}, so its flows do not react to it")]),
        ("dctcp", mercury, true, true, vec![format!("dctcp {unread}, so its flows do not react to it")]),
        ("dctcp", "{ kind = \"mercury\", marks = \"always\" }", true, true, vec![format!("dctcp {unread}")]),
        (
            "dctcp-rate",
            mercury,
            true,
            true,
            vec!["dctcp-rate uses ECN, but with switch.agent \"mercury\" no packet is marked".to_owned()],
        ),
        ("dctcp-rate", "{ kind = \"mercury\", marks = \"determined\" }", true, true, vec![]),
        ("ibcc", "\"ibcc\"", true, true, vec![]),
        ("ibcc", "\"ibcc\"", true, false, vec![pauses("ibcc")]),
        ("ibcc", "{ kind = \"ibcc\", victim_mask = true }", true, false, vec![]),
        (
            "ibcc",
            "{ kind = \"ibcc\", victim_mask = true, has_credits = \"throughout\" }",
            true,
            false,
            vec!["switch.agent.has_credits has no effect with victim_mask = true".to_owned()],
        ),
        (
            "timely",
            "\"ibcc\"",
            true,
            true,
            vec!["timely does not use ECN, so its flows do not react to switch.agent \"ibcc\"".to_owned()],
        ),
        ("dcqcn", "\"pacc\"", true, false, vec![]),
        (
            "timely",
            "\"pacc\"",
            true,
            true,
            vec!["timely uses no notifications of switch.agent \"pacc\", so its flows do not react to it".to_owned()],
        ),
        (
            "dctcp-rate",
            tcd,
            true,
            true,
            vec![format!(
                "dctcp-rate learns of marks from acknowledgements, which carry CE but not UE: it does nothing about the UE of switch.agent {tcd}"
            )],
        ),
        (
            "timely",
            tcd,
            true,
            true,
            vec!["timely does not use ECN, so its flows do not react to switch.agent \"tcd\"".to_owned()],
        ),
        (
            "dasr",
            tcd,
            true,
            true,
            vec![format!(
                "dasr takes UE for a mark of the port to its receiver: it does nothing about the UE of switch.agent {tcd}"
            )],
        ),
        (
            "dcqcn",
            "{ kind = \"mercury\", period = \"9us\" }",
            true,
            true,
            vec!["switch.agent.period has no effect with cnp_trigger = \"enqueue\"".to_owned()],
        ),
    ] {
        assert_eq!(warnings(law, agent, ecn, pfc), expected, "{law} {agent} {ecn} {pfc}");
    }
    let own =
        "switch.ecn = { kind = \"step\", at = \"9KB\" }\nswitch.agent = { kind = \"mercury\", threshold = \"9KB\" }";
    let text = GOOD.replacen("pfc = false", PFC, 1);
    let text = text.replacen("law = \"cubic\"", &format!("law = \"dcqcn\"\n{own}"), 1);
    let found = parse(&text).expect("valid").warnings;
    assert_eq!(found, ["scheme dcqcn: switch.ecn has no effect, as only its agent marks"]);
}

/// An option has no effect only where nothing refers to it.
#[test]
fn options_that_do_nothing_are_warned_of() {
    let mercury = "switch.agent = \"mercury\"\nswitch.pfc = { xoff = \"64KB\" }";
    let pacc = "switch.agent = \"pacc\"";
    let warnings = |scheme: &str, replaced: (&str, &str)| {
        let text = GOOD.replacen("law = \"cubic\"", &format!("law = \"dcqcn\"\n{scheme}"), 1);
        assert!(text.contains(replaced.0));
        parse(&text.replacen(replaced.0, replaced.1, 1)).unwrap_or_else(|error| panic!("{error}")).warnings
    };
    let none = ("", "");
    let echo = "notification = \"ecn-echo\"\ncnp_interval = \"9us\"";
    let cnp = "cnp_interval has no effect with notification = \"ecn-echo\"";
    let [until, quiet] =
        ["grant_until", "grant_timeout"].map(|key| format!("{key} has no effect, as no switch grants windows"));
    let grants = "grant_until = \"first-increase\"\ngrant_timeout = \"9us\"";
    let ecn_at = "switch.ecn_at = \"dequeue\"";
    let marks = "switch.ecn_at has no effect, as its agent decides about marks itself";
    for (scheme, expected) in [
        (echo.to_owned(), vec![cnp]),
        (format!("{echo}\ndecrease_guard = \"9us\""), vec![cnp]),
        (format!("{echo}\ndecrease_guard = \"cnp-interval\""), vec![]),
        // There the agent sets the guard.
        (format!("{echo}\n{mercury}"), vec![]),
        (grants.to_owned(), vec![&*until, &*quiet]),
        (format!("{grants}\n{pacc}"), vec![&*until, &*quiet]),
        (format!("{grants}\n{mercury}"), vec!["grant_timeout has no effect with grant_until = \"first-increase\""]),
        (ecn_at.to_owned(), vec![]),
        (format!("{ecn_at}\n{mercury}"), vec![marks]),
        (format!("{ecn_at}\n{pacc}"), vec![marks]),
    ] {
        let expected: Vec<_> = expected.iter().map(|warning| format!("scheme dcqcn: {warning}")).collect();
        assert_eq!(warnings(&scheme, none), expected, "{scheme}");
    }
    // For all schemes at once: those without an agent go by it, and what a profile says nobody gave.
    let all = ["switch.ecn_at has no effect: the agent of each scheme decides about marks itself"];
    let ports = ("pfc = false", "pfc = false\necn_at = \"dequeue\"");
    let every = ("pfc = false", "pfc = false\necn_at = \"dequeue\"\nagent = \"pacc\"");
    let about = |warnings: Vec<String>| -> Vec<String> {
        warnings.into_iter().filter(|warning| warning.contains("ecn_at")).collect()
    };
    assert!(warnings(pacc, ports).is_empty());
    assert_eq!(about(warnings("", every)), all);
    let profiled = ("duration = \"20ms\"", "profile = \"hpcc-lineage\"\nduration = \"20ms\"");
    assert!(about(warnings(pacc, profiled)).is_empty());
}

#[test]
fn underlays_are_named_like_agents() {
    let from = "law = \"cubic\"";
    let to = |value: &str| format!("{from}\nunderlay = {value}");
    for (value, expected) in [
        ("{ kind = \"onrmp\" }", "underlay.kind: found \"onrmp\", allowed is \"none\" or \"onramp\""),
        ("\"onrmp\"", "(did you mean \"onramp\"?)"),
        ("{ kind = \"onramp\", treshold = \"1us\" }", "threshold"),
        ("{ kind = \"onramp\", threshold = \"2s\" }", "at most 1s"),
    ] {
        refused(from, &to(value), expected);
    }
    // What follows from the timeout is given, as the timeout differs along the grid.
    let text = GOOD.replacen(from, &to("{ kind = \"onramp\", threshold = \"30us\", max_hold = \"1ms\" }"), 1);
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
    let underlays = |scenario: &Scenario| -> Vec<_> {
        let runs = scenario.runs();
        runs.iter().flat_map(|run| run.resolved.classes.iter().map(|class| class.underlay.values())).collect()
    };
    assert_eq!(underlays(&scenario), underlays(&again));
    assert!(underlays(&scenario).iter().any(|values| !values.is_empty()));
    assert!(underlays(&scenario).iter().any(Vec::is_empty), "other schemes have none");
}
