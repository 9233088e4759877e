//! `load_balancing = "iofd"`, its agent, and virtual channels.

use super::*;
use incast_sim::config::LoadBalancing;

fn with(switch: &str) -> Result<Scenario, ScenarioError> {
    parse(&GOOD.replacen("pfc = false", &format!("pfc = false\n{switch}"), 1))
}

#[test]
fn the_choice_of_ports_stands_for_the_agent() {
    for (switch, above) in [
        ("load_balancing = \"iofd\"", None),
        ("agent = \"iofd\"", None),
        ("load_balancing = \"iofd\"\nagent = { kind = \"iofd\", deflect_above = \"3us\" }", Some("3us")),
    ] {
        let scenario = with(switch).unwrap_or_else(|error| panic!("{error}"));
        for run in scenario.runs() {
            let resolved = run.config(1).expect("valid").switch;
            assert_eq!(resolved.agent.info().map(|info| info.name), Some("iofd"));
            assert_eq!(resolved.load_balancing, LoadBalancing::Ecmp);
            let value = resolved.agent.values()[0].1.to_string();
            assert!(above.is_none_or(|above| value == format!("{above:?}")), "{value}");
            assert_eq!(run.config(1).expect("valid").host.reordering, 3);
        }
        // What is printed reads back as the same.
        let text = scenario.effective_toml();
        assert!(text.contains("kind = \"iofd\"") && text.contains("max_deflections = 4"), "{text}");
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn one_agent_and_one_choice_of_ports() {
    let refused = |switch: &str, expected: &str| {
        let to = format!("pfc = false\n{switch}");
        refused("pfc = false", &to, expected);
    };
    refused(
        "load_balancing = \"iofd\"\nagent = \"mercury\"",
        "switch.load_balancing: found \"iofd\" with agent \"mercury\", allowed is \"ecmp\" with that agent",
    );
    for other in ["spray", "spray-permutation", "source-routed"] {
        let switch = format!("load_balancing = {other:?}\nagent = \"iofd\"");
        refused(&switch, &format!("found {other:?} with agent \"iofd\", allowed is \"ecmp\" or \"iofd\""));
    }
    refused("load_balancing = \"iofd\"\ntrim = true", "no switch.agent");
    refused("load_balancing = \"idof\"", "allowed is \"ecmp\", \"iofd\", \"spray\"");
    let refused = super::refused(
        "buffer = { total = \"4MB\", alpha = 1.0 }",
        "load_balancing = \"iofd\"\nbuffer = { per_port_packets = 9 }",
        "switch.buffer: found a number of packets for each port, allowed is a buffer in bytes",
    );
    assert!(refused.line.is_some());
    refused_agent(
        "deflect_below = \"1ms\"",
        "switch.agent.deflect_below: found 1ms, allowed is at most `deflect_above`",
    );
}

fn refused_agent(given: &str, expected: &str) {
    refused("pfc = false", &format!("pfc = false\nagent = {{ kind = \"iofd\", {given} }}"), expected);
}

#[test]
fn channels_are_queues_of_priorities() {
    let refused = |to: &str, expected: &str| refused("pfc = false", to, expected);
    refused("pfc = false\nvirtual_channels = 9", "switch.virtual_channels: found 9, allowed is 1 to 8");
    refused("pfc = false\nvirtual_channels = 0", "1 to 8");
    refused("pfc = { xoff = \"64KB\", lossless = [4] }\nvirtual_channels = 2", "0 to 3");
    refused("pfc = false\nvirtual_channels = 2\ntrim = true", "what is trimmed is not paused");
    // A class of this scenario has priority 2.
    let error = with("virtual_channels = 4").expect_err("refused").to_string();
    assert!(error.contains("0 to 1: switches have 2 priorities"), "{error}");
    assert!(with("virtual_channels = 2").is_ok());
    let warns = |switch: &str| {
        let warnings = with(switch).unwrap_or_else(|error| panic!("{error}")).warnings;
        warnings.iter().filter(|warning| warning.contains("virtual_channels have no effect")).count()
    };
    assert_eq!((warns("virtual_channels = 1"), warns("virtual_channels = 2") > 0), (0, true));
}

/// A ring needs two channels for deflection with flow control, which the scenario is told where it is written.
#[test]
fn a_ring_needs_two_channels() {
    let ring = |switch: &str| {
        let text = format!(
            "name = \"ring\"\ndescribe = \"d\"\nduration = \"1ms\"\nseeds = [1]\n[topology]\nkind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ total = \"32MB\", alpha = 1.0 }}\n{switch}\n[[workload]]\nclass = \"every\"\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.1\n\
             [[scheme]]\nlaw = \"cubic\"\n"
        );
        parse(&text)
    };
    let iofd = "load_balancing = \"iofd\"";
    let error = ring(&format!("pfc = {{ xoff = \"64KB\" }}\n{iofd}")).expect_err("refused");
    assert!(error.to_string().contains("switch.virtual_channels: found 1, allowed is 2 or more"), "{error}");
    let good = ring(&format!("pfc = {{ xoff = \"64KB\" }}\nvirtual_channels = 2\n{iofd}"));
    let good = good.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(good.runs()[0].config(1).expect("valid").switch.virtual_channels, 2);
    // Of five switches in a ring no two paths are equally long.
    let no_effect = |scenario: &Scenario| scenario.warnings.iter().any(|it| it.contains("iofd has no effect"));
    assert!(no_effect(&good) && !no_effect(&with(iofd).unwrap_or_else(|error| panic!("{error}"))));
    let longer =
        "pfc = { xoff = \"64KB\" }\nvirtual_channels = 2\nagent = { kind = \"iofd\", loop_free_alternates = true }";
    assert!(!no_effect(&ring(longer).unwrap_or_else(|error| panic!("{error}"))));
}
