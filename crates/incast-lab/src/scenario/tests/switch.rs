//! `[switch]`: thresholds, schedulers and trimming.

use super::*;

#[test]
fn thresholds_by_rate_cover_every_port() {
    let step = "{ kind = \"step\", at = \"0.2bdp\" }";
    let by_rate = |rates: &str| format!("{{ kind = \"red-by-rate\", rates = [{rates}] }}");
    let slow = "{ rate = \"100Gbps\", min = \"400KB\", max = \"1600KB\", p = 0.2 }";
    let fast = "{ rate = \"400Gbps\", min = \"1600KB\", max = \"6400KB\", p = 0.2 }";
    let good = parse(&GOOD.replacen(step, &by_rate(&format!("{slow}, {fast}")), 1)).expect("valid");
    let Ecn::RedByRate { rates } = good.runs()[0].config(1).expect("a config").switch.ecn else {
        panic!("another kind")
    };
    assert_eq!(rates.iter().map(|red| red.max).collect::<Vec<_>>(), [1_600_000, 6_400_000].map(Size::Bytes));
    assert!(good.effective_toml().contains("red-by-rate"));
    refused(step, &by_rate(slow), "ports of 400Gbps, but no thresholds");
    refused(step, &by_rate(&format!("{slow}, {fast}, {fast}")), "the rate 400Gbps is given twice");
    refused(step, &by_rate(&format!("{slow}, {}", fast.replace("1600KB", "64MB"))), "at most max, 6.4MB");
}

#[test]
fn deficit_round_robin_has_a_weight_for_each_priority_that_is_not_strict() {
    use incast_sim::config::Scheduling;
    let scheduler = |text: &str| {
        let text = format!("pfc = false\npriorities = 4\n{text}");
        let scenario = parse(&GOOD.replacen("pfc = false", &text, 1)).unwrap_or_else(|error| panic!("{error}"));
        // What is printed as effective is read back as the same.
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
        let of = |scenario: &Scenario| scenario.runs()[0].config(1).expect("a config").switch.scheduler;
        assert_eq!(of(&scenario), of(&again), "{text}");
        (of(&scenario), scenario.runs()[0].describe_pfc())
    };
    for strict in ["", "scheduler = \"strict\"", "scheduler = { kind = \"strict\" }"] {
        assert_eq!(scheduler(strict), (Scheduling::Strict, Vec::new()));
    }
    let (all, lines) = scheduler("scheduler = { kind = \"dwrr\", weights = [4, 2, 1, 1] }");
    assert_eq!(all, Scheduling::Dwrr { weights: vec![4, 2, 1, 1], quantum: None });
    let line = "scheduler: deficit round robin with quanta of \
                priority 0 16664 B, priority 1 8332 B, priority 2 4166 B, priority 3 4166 B";
    assert_eq!(lines, [line]);
    let given = "scheduler = { kind = \"strict-over-dwrr\", weights = [3, 2, 1], quantum = \"1KB\" }";
    let quantum = Some(incast_units::Bytes::new(1000));
    let expected = Scheduling::StrictOverDwrr { strict: 1, weights: vec![3, 2, 1], quantum };
    assert_eq!(scheduler(given).0, expected);
}

#[test]
fn trimming_has_the_defaults_of_ndp() {
    use incast_sim::config::{Limit, Trim, Victim};
    let trim = |text: &str| {
        let scenario = parse(&GOOD.replacen("pfc = false", text, 1)).unwrap_or_else(|error| panic!("{error}"));
        // What is printed as effective is read back as the same.
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
        let of = |scenario: &Scenario| scenario.runs()[0].config(1).expect("a config").switch.trim;
        assert_eq!(of(&scenario), of(&again), "{text}");
        of(&scenario)
    };
    let defaults = Trim { header_queue: Some(Limit::Bytes(2 * 8 * 4_166)), ..Trim::default() };
    assert_eq!([trim("trim = false"), trim("trim = \"off\""), trim("")], [None, None, None]);
    assert_eq!([trim("trim = true"), trim("trim = {}")], [Some(defaults.clone()), Some(defaults)]);
    let given = "trim = { queue = \"64KB\", victim = \"tail\", header_weight = \"strict\", return_to_sender = false, size = \"128B\" }";
    let expected = Trim {
        queue: Limit::Bytes(64_000),
        header_queue: Some(Limit::Bytes(128_000)),
        victim: Victim::Tail,
        header_weight: None,
        return_to_sender: false,
        size: Some(incast_units::Bytes::new(128)),
    };
    assert_eq!(trim(given), Some(expected));
    // Without a buffer the limits of the queues are all there is.
    let buffer = "buffer = { total = \"4MB\", alpha = 1.0 }\n";
    let without = GOOD.replacen(buffer, "", 1).replacen("pfc = false", "trim = true", 1);
    let config = parse(&without).expect("valid").runs()[0].config(1).expect("a config");
    assert_eq!(config.switch.buffer, Buffer::Unlimited);
    let packets = parse(&GOOD.replacen("total = \"4MB\", alpha = 1.0", "per_port_packets = 57", 1));
    let config = packets.expect("valid").runs()[0].config(1).expect("a config");
    assert_eq!(config.switch.buffer, Buffer::PerPortPackets { packets: 57 });
}

/// A leaf-spine with hosts at 100 and 400 Gbit/s, and keys of `[switch]` in place of its marks, then of its last scheme.
fn profiled(switch: &str, scheme: &str) -> String {
    let text = GOOD.replacen("ecn = { kind = \"step\", at = \"0.2bdp\" }\n", &format!("{switch}\n"), 1);
    format!("{text}\n[[scheme]]\nname = \"another\"\nlaw = \"dctcp\"\n{scheme}\n")
}

#[test]
fn a_profile_is_its_thresholds() {
    use incast_sim::config::{RedAtRate, Size};
    use incast_units::Rate;
    let of = |text: &str, index: usize| {
        let scenario = parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        // What is printed is read as the same.
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(again.effective_toml(), scenario.effective_toml());
        let ecn = |scenario: &Scenario| {
            let runs = scenario.runs();
            runs.iter().map(|run| run.config(1).expect("a config").switch.ecn).collect::<Vec<_>>()
        };
        assert_eq!(ecn(&again), ecn(&scenario));
        let mut runs = scenario.runs();
        let at = if index == 0 { 0 } else { runs.len() - 1 };
        runs.swap_remove(at).config(1).expect("a config").switch
    };
    let bytes = |min, max, p| Ecn::Red { min: Size::Bytes(min), max: Size::Bytes(max), p };
    let sonic = profiled("profile = \"sonic\"", "");
    assert_eq!(
        [of(&sonic, 0).ecn, of(&sonic, 1).ecn],
        [bytes(1_048_576, 2_097_152, 0.05), bytes(1_048_576, 2_097_152, 0.05)]
    );
    let Ecn::RedByRate { rates } = of(&profiled("profile = \"cerebras\"", ""), 0).ecn else { panic!("by rate") };
    let at = |gbps, min, max| RedAtRate {
        rate: Rate::from_gbps(gbps),
        min: Size::Bytes(min),
        max: Size::Bytes(max),
        p: 0.01,
    };
    assert_eq!(rates, [at(100, 222_000, 2_000_000), at(400, 890_000, 8_000_000), at(800, 890_000, 8_000_000)]);
    // A scheme's own, by a profile or not.
    let own = profiled("profile = \"sonic\"", "switch.profile = \"onyx\"");
    assert_eq!([of(&own, 0).ecn, of(&own, 1).ecn], [bytes(1_048_576, 2_097_152, 0.05), bytes(150_000, 1_500_000, 1.0)]);
    let own = profiled("profile = \"sonic\"", "switch.ecn = { kind = \"step\", at = \"30KB\" }");
    assert_eq!(of(&own, 1).ecn, Ecn::Step { at: Size::Bytes(30_000) });
    // Of some switches.
    let switches =
        "profile = \"sonic\"\noverride = [{ at = \"spine0\", profile = \"onyx\" }, { at = \"spine1\", ecn = \"off\" }]";
    let grid = profiled(switches, "").replacen(
        "[grid]\n",
        "[grid]\n\"switch.override.0.profile\" = [\"onyx\", \"sonic\"]\n",
        1,
    );
    assert_eq!(of(&grid, 1).at(36).ecn, bytes(1_048_576, 2_097_152, 0.05));
    let some = of(&profiled(switches, ""), 0);
    assert_eq!(
        [35, 36, 37].map(|node| some.at(node).ecn.clone()),
        [bytes(1_048_576, 2_097_152, 0.05), bytes(150_000, 1_500_000, 1.0), Ecn::Off]
    );
    // Along a grid.
    let grid = profiled("profile = \"sonic\"", "").replacen(
        "[grid]\n",
        "[grid]\n\"switch.profile\" = [\"sonic\", \"onyx\"]\n",
        1,
    );
    assert_eq!(of(&grid, 1).ecn, bytes(150_000, 1_500_000, 1.0));
}

#[test]
fn a_profile_is_refused_beside_thresholds_and_at_other_rates() {
    for (switch, scheme, expected) in [
        (
            "profile = \"azure-local\"",
            "",
            "switch.profile: \"azure-local\" has thresholds for ports of 25Gbps, and there are ports of 100Gbps",
        ),
        ("profile = \"sonic-lossy\"", "", "there are ports of 400Gbps; ecn = … gives some of one's own"),
        (
            "profile = \"sonic\"\necn = { kind = \"step\", at = \"30KB\" }",
            "",
            "\"sonic\" sets ecn, which is given beside it",
        ),
        ("profile = \"tomahawk\"", "", "switch.profile"),
        ("", "switch = { profile = \"dctcp-paper\" }", "\"dctcp-paper\" has thresholds for ports of 1Gbps, 10Gbps"),
        (
            "override = [{ at = \"leaf0\", profile = \"dcqcn-paper\" }]",
            "",
            "\"dcqcn-paper\" has thresholds for ports of 40Gbps",
        ),
    ] {
        let error = parse(&profiled(switch, scheme)).expect_err(switch).to_string();
        assert!(error.contains(expected), "{switch}: {error}");
    }
}
