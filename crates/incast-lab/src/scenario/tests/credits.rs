//! `switch.credits`: its defaults, and what is refused.

use super::*;
use incast_sim::config::Credits;
use incast_units::Bytes;

#[test]
fn credits_have_defaults_by_formula() {
    let credits = |text: &str| {
        let scenario = parse(&GOOD.replacen("pfc = false", text, 1)).unwrap_or_else(|error| panic!("{error}"));
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
        let of = |scenario: &Scenario| scenario.runs()[0].config(1).expect("a config").switch.credits;
        assert_eq!(of(&scenario), of(&again), "{text}");
        of(&scenario)
    };
    assert_eq!([credits("credits = false"), credits("credits = \"off\""), credits("")], [None, None, None]);
    let defaults = Some(Credits::default());
    assert_eq!([credits("credits = true"), credits("credits = {}")], [defaults.clone(), defaults]);
    let given =
        "credits = { buffer = \"64KB\", update = \"0B\", frame = \"8B\", refresh = \"5us\", deadlock_after = \"1ms\" }";
    let expected = Credits {
        buffer: Some(Bytes::new(64_000)),
        update: Some(Bytes::ZERO),
        frame: 8,
        refresh: Some(Time::from_us(5)),
        deadlock_after: Some(Time::from_ms(1)),
    };
    assert_eq!(credits(given), Some(expected));
    // Without a buffer the lanes' own are all there is.
    let buffer = "buffer = { total = \"4MB\", alpha = 1.0 }\n";
    let without = GOOD.replacen(buffer, "", 1).replacen("pfc = false", "credits = true", 1);
    let scenario = parse(&without).expect("valid");
    let run = &scenario.runs()[0];
    assert_eq!(run.config(1).expect("a config").switch.buffer, Buffer::Unlimited);
    let lines = run.describe_pfc();
    assert!(lines.iter().any(|line| line.contains("keep the link busy")) && !run.has_pfc(), "{lines:?}");
}

#[test]
fn bad_credits_are_refused() {
    for (from, to, expected) in [
        ("pfc = false", "credits = \"on\"", "true for the defaults, or a table"),
        ("pfc = false", "credits = { bufer = \"64KB\" }", "(did you mean \"buffer\"?)"),
        (
            "pfc = false",
            "credits = { buffer = \"1KB\" }",
            "switch.credits.buffer: found 1000 B, allowed is 4224 B, one packet of 4166 B in blocks of 64",
        ),
        ("pfc = false", "credits = { buffer = \"1MB\" }", "allowed is its buffer, 4000000 B"),
        ("pfc = false", "credits = { update = \"9KB\", buffer = \"8KB\" }", "switch.credits.update"),
        ("pfc = false", "credits = { frame = \"64MB\" }", "1B to 9216B"),
        ("pfc = false", "credits = { refresh = \"0us\" }", "switch.credits.refresh"),
        ("pfc = false", "credits = true\npfc = { xoff = \"64KB\" }", "no switch.pfc"),
        ("pfc = false", "credits = true\ntrim = true", "no switch.trim"),
    ] {
        refused(from, to, expected);
    }
}
