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
    let defaults = Trim {
        queue: Limit::Packets(8),
        header_queue: Some(Limit::Bytes(2 * 8 * 4_166)),
        victim: Victim::Either,
        header_weight: Some(10),
        return_to_sender: true,
    };
    assert_eq!([trim("trim = false"), trim("trim = \"off\""), trim("")], [None, None, None]);
    assert_eq!([trim("trim = true"), trim("trim = {}")], [Some(defaults.clone()), Some(defaults)]);
    let given = "trim = { queue = \"64KB\", victim = \"tail\", header_weight = \"strict\", return_to_sender = false }";
    let expected = Trim {
        queue: Limit::Bytes(64_000),
        header_queue: Some(Limit::Bytes(128_000)),
        victim: Victim::Tail,
        header_weight: None,
        return_to_sender: false,
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
