//! `[[switch.override]]`.

use super::*;
use incast_sim::config::{Headroom, MarkAt, NotEct, SwitchConfig, Threshold};

/// A fabric of leaves 0 to 3 (nodes 32 to 35) and two spines (36 and 37), with more keys of `[switch]`.
fn with(switch: &str) -> String {
    GOOD.replacen("pfc = false\n", switch, 1)
}

fn config(switch: &str) -> SwitchConfig {
    let scenario = parse(&with(switch)).unwrap_or_else(|error| panic!("{error}"));
    let config = scenario.runs()[0].config(1).expect("a config").switch;
    // What is printed as effective is read back as the same.
    let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.effective_toml(), scenario.effective_toml());
    assert_eq!(again.runs()[0].config(1).expect("a config").switch.overrides, config.overrides);
    config
}

#[test]
fn switches_differ_by_name_or_tier_and_later_tables_count() {
    let all = config(
        "[[switch.override]]\nat = \"fabric\"\nbuffer = { total = \"2MB\" }\nnot_ect = \"drop\"\n\
         [[switch.override]]\nat = \"spine1\"\nbuffer = { alpha = 0.5 }\necn_at = \"enqueue\"\n\
         ecn = { kind = \"red\", min = \"100KB\", max = \"400KB\", p = 0.1 }\n",
    );
    assert_eq!(all.overrides.keys().copied().collect::<Vec<_>>(), [36, 37]);
    assert_eq!(all.at(35).buffer, Buffer::Shared { total: 4_000_000, alpha: (1, 1), reserve: 0 });
    assert_eq!(all.at(36).buffer, Buffer::Shared { total: 2_000_000, alpha: (1, 1), reserve: 0 });
    assert_eq!(all.at(37).buffer, Buffer::Shared { total: 2_000_000, alpha: (1, 2), reserve: 0 });
    assert_eq!([35, 36, 37].map(|node| all.at(node).not_ect), [NotEct::Pass, NotEct::Drop, NotEct::Drop]);
    assert_eq!(all.at(36).ecn, all.ecn);
    assert_eq!(all.at(37).ecn, Ecn::Red { min: Size::Bytes(100_000), max: Size::Bytes(400_000), p: 0.1 });
    assert_eq!(all.kinds(32..38).iter().map(|(_, nodes)| nodes.len()).collect::<Vec<_>>(), [4, 1, 1]);
    let edge = config("override = [{ at = \"edge\", ecn = \"off\" }]\n");
    assert_eq!(edge.overrides.keys().copied().collect::<Vec<_>>(), [32, 33, 34, 35]);
    assert_eq!(edge.at(32).ecn, Ecn::Off);
    // Another kind of buffer takes nothing from the one before.
    let other = config("override = [{ at = \"leaf*\", buffer = { per_port = \"100KB\" }, ecn_at = \"dequeue\" }]\n");
    assert_eq!(other.at(33).buffer, Buffer::PerPort { bytes: 100_000 });
    assert_eq!((other.at(33).mark_at, other.mark_at), (MarkAt::Dequeue, MarkAt::Enqueue));
}

#[test]
fn thresholds_of_pauses_differ_and_flow_control_does_not() {
    let fixed = config(
        "pfc = { xoff = \"320KB\", headroom = \"50KB\", lossless = [0], strict = false }\n\
         override = [{ at = \"spine*\", pfc = { xoff = \"100KB\", headroom = \"30KB\" } }]\n",
    );
    let of = |node| fixed.at(node).pfc.clone().expect("flow control");
    assert_eq!(of(36).threshold, Threshold::Static { xoff: Size::Bytes(100_000), xon: None });
    assert_eq!((of(36).headroom, of(32).headroom), (Headroom::Bytes(30_000), Headroom::Bytes(50_000)));
    assert_eq!((of(36).priorities, of(36).strict), (1, false));
    let dynamic = config(
        "pfc = { kind = \"dynamic\", alpha = 0.125, lossless = [0], strict = false }\n\
         override = [{ at = \"edge\", pfc = { alpha = 0.0625 } }]\n",
    );
    assert!(matches!(
        dynamic.at(32).pfc.as_ref().map(|pfc| pfc.threshold),
        Some(Threshold::Dynamic { alpha: incast_sim::config::Alpha::Fixed(alpha), reserve: 4096, .. }) if alpha == 0.0625
    ));
}

#[test]
fn schemes_grids_and_arguments_have_their_order() {
    // What a scheme has in [switch]'s place is what its switches that differ start from.
    let text = with("override = [{ at = \"spine*\", buffer = { alpha = 0.5 } }]\n");
    let text = text.replace(
        "law = \"cubic\"\n",
        "law = \"cubic\"\nswitch.buffer = { total = \"8MB\" }\n\
                                            [[scheme]]\nname = \"alike\"\nlaw = \"dctcp\"\nswitch.override = []\n",
    );
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let runs = scenario.runs();
    let of = |scheme: &str| {
        let run = runs.iter().find(|run| run.scheme == scheme).expect("a run");
        (run.config(1).expect("a config").switch, run.describe_switches())
    };
    assert_eq!(of("cubic").0.at(36).buffer, Buffer::Shared { total: 8_000_000, alpha: (1, 2), reserve: 0 });
    assert_eq!(of("cubic").1, ["\"spine*\" (2 switches, spine0 to spine1): buffer.alpha"]);
    assert!(of("alike").0.overrides.is_empty() && of("alike").1.is_empty());
    // A path names a table by its number.
    let set =
        parse_with(&text, &[("switch.override.0.buffer.alpha", "0.25")]).unwrap_or_else(|error| panic!("{error}"));
    let config = set.runs()[0].config(1).expect("a config").switch;
    assert_eq!(config.at(37).buffer, Buffer::Shared { total: 4_000_000, alpha: (1, 4), reserve: 0 });
}

#[test]
fn what_cannot_differ_is_refused_where_it_stands() {
    for (switch, expected) in [
        ("override = [{ at = \"spline*\", ecn = \"off\" }]\n", "\"spline*\", which matches no switch"),
        ("override = [{ at = \"spine*\" }]\n", "nothing is given besides `at`"),
        ("override = [{ at = \"spine*\", priorities = 2 }]\n", "`switch.priorities` is the same at all switches"),
        ("override = [{ at = \"spine*\", agent = \"mercury\" }]\n", "`switch.agent` is the same at all switches"),
        ("override = [{ at = \"spine*\", pfc = { xoff = \"1KB\" } }]\n", "switch.override[0].pfc: switch.pfc is off"),
        (
            "override = [{ at = \"spine*\", buffer = { total = \"1KB\" } }]\n",
            "switch.override[0].buffer.total: found 1000 B",
        ),
        (
            "override = [{ at = \"spine0\", ecn = \"off\" }, { at = \"*\", ecn = { kind = \"step\", at = \"9KB\" } }]\n",
            "switch.override[0]: has no effect",
        ),
        (
            "pfc = { kind = \"dynamic\", alpha = 0.1, lossless = [0], strict = false }\n\
             override = [{ at = \"edge\", pfc = { xon = \"9KB\" } }]\n",
            "switch.override[0].pfc.xon: switch.pfc has dynamic thresholds",
        ),
        (
            "credits = { buffer = \"64KB\" }\noverride = [{ at = \"leaf0\", buffer = { total = \"20KB\" } }]\n",
            "B at leaf0, of all ports",
        ),
        (
            "override = [{ at = \"edge\", ecn_at = \"dequeue\", not_ect = \"drop\" }]\n",
            "switch.override[0].not_ect: found \"drop\"",
        ),
    ] {
        let error = parse(&with(switch)).err().unwrap_or_else(|| panic!("accepted: {switch}")).to_string();
        assert!(error.contains(expected), "{error}\nshould contain {expected}");
    }
}

#[test]
fn marks_that_cannot_come_are_named_at_their_switches() {
    let text = with("override = [{ at = \"spine*\", buffer = { total = \"100KB\" } }]\n");
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let warned = |what: &str| scenario.warnings.iter().any(|warning| warning.contains(what));
    assert!(warned("B at spine0's ports of 400Gbps, and no queue gets there"), "{:?}", scenario.warnings);
    assert!(!warned("leaf"), "{:?}", scenario.warnings);
    // What the table of all switches says counts only where a switch has it.
    let warnings = |switch: &str| {
        let text = with(switch).replacen("ecn = { kind = \"step\", at = \"0.2bdp\" }", "ecn = \"off\"", 1);
        parse(&text).unwrap_or_else(|error| panic!("{error}")).warnings.join("\n")
    };
    let marks = "ecn = { kind = \"step\", at = \"9KB\" }";
    assert!(warnings("not_ect = \"drop\"\n").contains("switch.not_ect has no effect"));
    let some = warnings(&format!("not_ect = \"drop\"\noverride = [{{ at = \"spine*\", {marks} }}]\n"));
    assert!(!some.contains("switch.not_ect has no effect") && !some.contains("switch.ecn is off"), "{some}");
}

#[test]
fn a_chip_gives_its_buffer_and_has_as_many_ports_as_it_has() {
    let chips = config("chip = \"tomahawk5\"\noverride = [{ at = \"spine0\", chip = \"tomahawk\" }]\n");
    // What is given as the buffer counts.
    assert_eq!(chips.at(35).buffer, Buffer::Shared { total: 4_000_000, alpha: (1, 1), reserve: 0 });
    assert_eq!(chips.at(36).buffer, Buffer::Shared { total: 15_982_720, alpha: (1, 1), reserve: 0 });
    let alone = |keys: &str| parse(&GOOD.replacen("buffer = { total = \"4MB\", alpha = 1.0 }", keys, 1));
    let scenario = alone("chip = \"spectrum-4\"\nbuffer = { alpha = 2.0 }").unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.effective_toml().contains("total = \"158229.504KB\""), "{}", scenario.effective_toml());
    let config = scenario.runs()[0].config(1).expect("a config").switch;
    assert_eq!(config.buffer, Buffer::Shared { total: 158_229_504, alpha: (2, 1), reserve: 0 });
    for (keys, expected) in [
        ("chip = \"tomahawk9\"", "found \"tomahawk9\", allowed is \"trident2\""),
        ("", "or a `chip` such as"),
        ("chip = \"tomahawk4\"\nbuffer = { per_port = \"1MB\", alpha = 1.0 }", "only a buffer of `total` bytes"),
    ] {
        let error = alone(keys).expect_err(keys).to_string();
        assert!(error.contains(expected), "{keys}: {error}");
    }
    let dead =
        "override = [{ at = \"spine*\", buffer = { total = \"1MB\" } }, { at = \"spine*\", chip = \"tomahawk5\" }]\n";
    assert!(parse(&with(dead)).expect_err("dead").to_string().contains("has no effect"));
    let fast = GOOD
        .replacen("buffer = { total = \"4MB\", alpha = 1.0 }", "chip = \"trident2\"", 1)
        .replace("\"100Gbps\"", "\"400Gbps\"");
    let error = parse(&fast).expect_err("too fast").to_string();
    assert!(error.contains("trident2 of 1.28Tbps, and the ports of leaf0 have"), "{error}");
}

#[test]
fn headroom_is_that_of_a_chip() {
    let dynamic = |headroom: &str| {
        with(&format!(
            "pfc = {{ kind = \"dynamic\", alpha = 1.0, lossless = [0], headroom = \"{headroom}\", strict = false }}\n"
        ))
    };
    let scenario = parse(&dynamic("tomahawk4")).unwrap_or_else(|error| panic!("{error}"));
    let lines = scenario.runs()[0].describe_pfc().join("\n");
    assert!(lines.contains("headroom 240538 B"), "{lines}");
    let error = parse(&dynamic("tomahawk4").replace("\"100Gbps\"", "\"25Gbps\"")).expect_err("no row").to_string();
    assert!(
        error.contains("no headroom is shipped for ports of 25Gbps, allowed is 100Gbps, 400Gbps, or a size"),
        "{error}"
    );
    assert!(parse(&dynamic("spectrum-4").replace("\"100Gbps\"", "\"25Gbps\"")).is_ok());
    assert!(parse(&dynamic("tomahawk9")).is_err());
}
