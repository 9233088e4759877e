//! Whole scenarios.

mod agents;
mod bad_input;
mod by_traffic;
mod credits;
mod deflection;
mod measure;
mod mixed;
mod receiver_driven;
mod renamed;
mod short;
mod simulated;
mod switch;
mod switches;

use super::*;
use incast_sim::config::{Buffer, Ecn, ReorderingWindow, Size};
use std::collections::BTreeSet;
const GOOD: &str = r#"name = "marimo-table1"
describe = "FCT under load with incast"
duration = "20ms"
warmup = "5ms"
drain = "500ms"
seeds = [1, 2, 3]

[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 8
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "400Gbps", delay = "1us" }

[switch]
buffer = { total = "4MB", alpha = 1.0 }
ecn = { kind = "step", at = "0.2bdp" }
pfc = false

[host]
mtu = "4096B"
clock = { offset = "0ns", drift_ppm = 0, noise = "0ns" }

[[workload]]
class = "background"
kind = "poisson"
sizes = "websearch"
load = 0.4

[[workload]]
class = "incast"
kind = "incast"
fan_in = 31
size = "128KB"
every = "1ms"
jitter = "10us"

[[workload]]
kind = "rpc"
request = { fixed = "64B" }
response = { lognormal = { mean = "2KB", sigma = 1.5 }, max = "1MB" }
clients = "h0..h3"
servers = ["h8", "h9"]
think = "10us"

[[scheme]]
law = "dctcp"

[[scheme]]
name = "DCTCP / RED"
law = "dctcp"
gain = 0.1
priority = 2
switch.ecn = { kind = "red", min = "400KB", max = "1600KB", p = 0.2 }
by_class.incast = { priority = 1 }

[[scheme]]
law = "cubic"

[grid]
"workload.background.load" = [0.2, 0.4]

[[zip]]
"host.rto_min" = ["1ms", "2ms"]
"host.ack_every" = [1, 2]

[[event]]
at = "2ms"
link_down = "leaf0-spine1"

[measure]
ports = { every = "1us", which = ["leaf0->h0", "leaf1->spine*"] }
rates = { every = "10us" }

[[paper.claim]]
metric = "fct_us.p99"
scheme = "dctcp"
value = 640
"#;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    parse_with(text, &[])
}

fn parse_with(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<(String, String)> = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Scenario::parse(Source { path: "scenarios/x.toml".into(), text: text.into() }, &sets)
}

/// The line, the message, and whether it names what is expected.
fn refused(from: &str, to: &str, expected: &str) -> ScenarioError {
    assert!(GOOD.contains(from), "{from}");
    // A load that the grid replaces is not looked at.
    let base = if from.starts_with("load") {
        GOOD.replace("\"workload.background.load\" = [0.2, 0.4]", "")
    } else {
        GOOD.into()
    };
    let text = base.replacen(from, to, 1);
    let error = parse(&text).err().unwrap_or_else(|| panic!("accepted: {to}"));
    let message = error.to_string();
    assert!(message.contains(expected), "{message}\nshould contain {expected}");
    let line = base[..base.find(from).unwrap_or(0)].matches('\n').count() + 1;
    let lines = line..=line + to.matches('\n').count();
    assert!(error.line.is_some_and(|line| lines.contains(&line)), "{message}\nshould be in {lines:?}");
    error
}

#[test]
fn senders_that_spray_expect_packets_in_any_order() {
    let host = |balancing: &str| {
        let text = GOOD.replacen("pfc = false", &format!("pfc = false\nload_balancing = \"{balancing}\""), 1);
        let config = parse(&text).unwrap_or_else(|error| panic!("{error}")).runs()[0].config(1);
        let host = config.expect("a config").host;
        (host.reordering, host.reordering_window, host.path_penalty)
    };
    let in_order = (3, ReorderingWindow::Adaptive, true);
    assert_eq!((host("ecmp"), host("source-routed")), (in_order, in_order));
    assert_eq!(host("spray").1, ReorderingWindow::Srtt);
    assert_eq!(host("spray-permutation"), host("spray"));
    assert!(host("spray-permutation").0 > 3);
}

#[test]
fn a_scenario_expands_into_runs() {
    let scenario = parse(GOOD).unwrap_or_else(|error| panic!("{error}"));
    let runs = scenario.runs();
    assert_eq!(runs.len(), 2 * 2 * 3 * 3);
    assert_eq!(runs.iter().map(|run| run.folder.to_lowercase()).collect::<BTreeSet<_>>().len(), runs.len());
    // Zipped axes change slowest, then the grid, then schemes, then seeds.
    assert_eq!(runs[0].grid[0], ("host.rto_min".into(), toml::Value::String("1ms".into())));
    assert_eq!(runs[9].grid[2], ("workload.background.load".into(), toml::Value::Float(0.4)));
    assert_eq!((runs[3].scheme.as_str(), runs[3].seed), ("DCTCP / RED", 1));
    assert_eq!(runs[0].classes, ["background", "incast", "rpc", "rpc-request"]);
    let config = runs[3].config(2).expect("a config");
    assert_eq!(config.switch.buffer, Buffer::Shared { total: 4_000_000, alpha: (1, 1), reserve: 0 });
    assert_eq!(config.switch.ecn, Ecn::Red { min: Size::Bytes(400_000), max: Size::Bytes(1_600_000), p: 0.2 });
    assert_eq!(config.classes.iter().map(|class| class.priority).collect::<Vec<_>>(), [2, 1, 2, 2]);
    assert_eq!(config.applications.iter().filter(|application| application.is_some()).count(), 6);
    assert_eq!(config.end, Time::from_ms(520));
    assert_eq!(config.probes.ports.as_ref().map(|(_, ports)| ports.len()), Some(3));
    assert!(config.flows.iter().all(|flow| flow.source != flow.destination && flow.bytes > 0));
    assert_eq!(runs[3].footnotes().len(), 3, "{:?}", runs[3].footnotes());
    assert!(runs[3].footnotes().iter().all(|note| !note.starts_with(&runs[3].scheme)));
    assert!(runs[0].footnotes().is_empty());
    assert!(runs[0].expected_packet_hops() > 1e4 && runs[0].estimated_memory() > 1 << 20);
    assert!(runs[0].describe_workloads()[0].contains("1711250"), "{:?}", runs[0].describe_workloads());
    assert_eq!(scenario.warnings, Vec::<String>::new());
}

#[test]
fn all_schemes_see_the_same_flows() {
    let runs = parse(GOOD).expect("valid").runs();
    let flows = |index: usize| runs[index].config(1).expect("a config").flows;
    assert_eq!(flows(0), flows(3));
    assert_eq!(flows(0), flows(6));
    assert_ne!(flows(0), flows(1));
    // More traffic of one class does not disturb another.
    let incast = |index| flows(index).into_iter().filter(|flow| flow.class == 1).collect::<Vec<_>>();
    assert_eq!(incast(0), incast(9));
}

#[test]
fn the_effective_scenario_says_everything_and_reads_back() {
    let scenario = parse(GOOD).expect("valid");
    let text = scenario.effective_toml();
    for expected in [
        "gain = 0.0625",
        "gain = 0.1",
        "rto_min = \"1ms\"",
        "priorities = 8",
        "load_of = \"host\"",
        "kind = \"leaf-spine\"",
    ] {
        assert!(text.contains(expected), "{expected} not in\n{text}");
    }
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.effective_toml(), text);
    let run = toml::to_string(&scenario.runs()[4].effective()).expect("TOML");
    let one =
        parse(&run.replace(
            "[[paper.claim]]\nmetric = \"fct_us.p99\"\nclass = \"all\"\nscheme = \"dctcp\"\nvalue = 640.0\n",
            "",
        ))
        .unwrap_or_else(|error| panic!("{error}\n{run}"));
    assert_eq!(one.runs().len(), 1);
}

/// The profile of the whole reaches switches and laws, and what is given wins.
#[test]
fn a_profile_of_the_whole_is_one() {
    let profiled = |from: &str, to: &str| {
        let text = GOOD.replace("duration = \"20ms\"", "profile = \"hpcc-lineage\"\nduration = \"20ms\"");
        let text = text.replace("pfc = false\n", "").replace("law = \"cubic\"", "law = \"dcqcn\"").replace(from, to);
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let effective = scenario.effective_toml();
        assert_eq!(parse(&effective).map(|again| again.effective_toml()).ok(), Some(effective.clone()));
        effective
    };
    let all = ["ties = \"arrivals-first\"", "ecn_at = \"dequeue\"", "frame = \"43B\"", "variant = \"mellanox\""];
    let text = profiled("", "");
    for expected in all {
        assert!(text.contains(expected), "{expected} not in\n{text}");
    }
    let text = profiled("[host]", "ties = \"seeded\"\necn_at = \"enqueue\"\npfc = false\n\n[host]");
    assert!(all[..3].iter().all(|other| !text.contains(other)) && text.contains(all[3]), "{text}");
    let text = profiled("law = \"dcqcn\"", "law = \"dcqcn\"\nprofile = \"scaled\"");
    assert!(text.contains(all[0]) && !text.contains(all[3]), "{text}");
    assert!(!parse(GOOD).expect("valid").effective_toml().contains(all[0]));
}

#[test]
fn hosts_can_be_those_of_linux() {
    let text = GOOD.replace("[[zip]]\n\"host.rto_min\" = [\"1ms\", \"2ms\"]\n\"host.ack_every\" = [1, 2]\n", "");
    let all = parse_with(&text, &[("host.profile", "linux"), ("scheme.dctcp.initial_window", "20KB")]).expect("good");
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    let config = |scenario: &Scenario, law: &str| {
        let runs = scenario.runs();
        runs.iter().find(|run| run.scheme == law).expect("a scheme").config(1).expect("a config")
    };
    let dctcp = config(&all, "dctcp");
    assert_eq!(
        (dctcp.host.rto_min, dctcp.host.ack_every, dctcp.host.ack_delay),
        (Time::from_ms(200), 2, Time::from_ms(40))
    );
    assert!(dctcp.host.handshake && dctcp.host.prr);
    let values = dctcp.classes[0].law.values();
    let value = |key: &str| values.iter().find(|(name, _)| *name == key).map(|(_, raw)| raw.to_string());
    assert_eq!(value("initial_window").as_deref(), Some("\"20KB\""));
    assert_eq!((value("cwr").as_deref(), value("slow_start_limit").as_deref()), (Some("true"), Some("\"none\"")));
    // Of one scheme, whose own values count, and which `check` compares with the others.
    let own = [("scheme.dctcp.host", "{ profile = \"linux\", rto_min = \"5ms\" }")];
    let one = parse_with(&text, &own).expect("good");
    assert_eq!(config(&one, "dctcp").host.ack_delay, Time::from_ms(4));
    assert_eq!(config(&one, "cubic").host.rto_min, Time::from_ms(1));
    // What a scheme gives counts before what profiles fill in, of the scenario, too.
    let mixed = [("host.profile", "linux"), ("scheme.dctcp.host", "{ rto_min = \"5ms\" }")];
    assert_eq!(config(&parse_with(&text, &mixed).expect("good"), "dctcp").host.ack_delay, Time::from_ms(4));
    let lineage = text.replace("duration = \"20ms\"", "profile = \"hpcc-lineage\"\nduration = \"20ms\"");
    let lineage = parse_with(&lineage, &[("scheme.dctcp.host", "{ profile = \"linux\" }")]).expect("good");
    assert_eq!(config(&lineage, "dctcp").host.rto_min, Time::from_ms(200));
    assert_eq!(config(&lineage, "cubic").host.rto_min, Time::from_ms(100));
    let void = [("host.profile", "linux"), ("host.ack_every", "1"), ("host.ack_delay", "3ms")];
    let warnings = parse_with(&text, &void).expect("good").warnings;
    assert!(
        warnings.iter().all(|warning| warning.contains("host.ack_delay has no effect")) && !warnings.is_empty(),
        "{warnings:?}"
    );
    let foreign = parse_with(&text, &[("host.profile", "linux"), ("scheme.cubic.law", "homa")]);
    let foreign = foreign.map(|scenario| scenario.warnings.join("; ")).unwrap_or_else(|error| error.to_string());
    assert!(foreign.contains("which has no homa"), "{foreign}");
    let unlike = |law: &str| one.runs().iter().find(|run| run.scheme == law).and_then(Run::unlike_linux);
    assert_eq!(unlike("dctcp"), None);
    assert_eq!(unlike("cubic").map(|(rto_min, keys)| (rto_min, keys[0])), Some((Time::from_ms(1), "rto_min")));
    let taken_back = [("host.profile", "linux"), ("scheme.cubic.host", "{ profile = \"standard\" }")];
    let error = parse_with(&text, &taken_back).expect_err("refused").to_string();
    assert!(error.contains("a scheme cannot take back"), "{error}");
    let again = parse(&all.effective_toml()).expect("read back");
    assert_eq!(again.effective_toml(), all.effective_toml());
}

#[test]
fn arguments_replace_values_and_are_named_in_messages() {
    let sets = [
        ("scheme.dctcp.gain", "0.2"),
        ("workload.incast.fan_in", "16"),
        ("switch.buffer", "{ per_port = \"86KB\" }"),
        ("duration", "40ms"),
        ("grid.\"workload.background.load\"", "[0.1]"),
    ];
    let scenario = parse_with(GOOD, &sets).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.duration, Time::from_ms(40));
    assert!(scenario.effective_toml().contains("gain = 0.2") && scenario.effective_toml().contains("fan_in = 16"));
    assert_eq!(scenario.runs().len(), 18);
    for (key, value, expected) in [
        ("switch.ecn.kind", "stpe", "--set switch.ecn.kind=stpe: switch.ecn.kind: found \"stpe\""),
        ("scheme.dctpc.gain", "0.1", "there is no scheme \"dctpc\""),
        ("scheme.dctcp.gian", "0.1", "(did you mean \"gain\"?)"),
        ("workload.incast.fan_in", "99", "--set workload.incast.fan_in=99: workload.incast.fan_in: found 99"),
        ("nmae", "x", "(did you mean \"name\"?)"),
        ("a..b", "x", "joined by dots"),
        ("duration.x", "1", "no key"),
        ("duration", "nan", "finite"),
    ] {
        let error = parse_with(GOOD, &[(key, value)]).expect_err(key);
        assert!(error.to_string().contains(expected), "{error}\nshould contain {expected}");
        assert_eq!(error.argument.as_deref(), Some(format!("{key}={value}").as_str()), "{error}");
    }
    let scenario = parse_with(GOOD, &[("workload.background.load", "0.3")]).expect("valid");
    assert!(scenario.warnings.iter().any(|warning| warning.contains("no effect")), "{:?}", scenario.warnings);
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for (from, to, expected) in [
        ("jitter = \"10us\"", "jitter = \"2ms\"", "groups overlap"),
        (
            "jitter = \"10us\"",
            "stagger = \"20Gbps\"",
            "starts 1.536ms after the first, and the next group 1ms after it",
        ),
        ("pfc = false", "pfc = { xoff = \"9KB\", lossless = [3] }", "switch.pfc has no effect: none of its packets"),
        (
            "law = \"cubic\"",
            "law = \"cubic\"\nack_priority = 3\nswitch.pfc = { xoff = \"9KB\", lossless = [3] }",
            "the class incast has priority 0, which is not lossless",
        ),
        ("law = \"cubic\"", "law = \"cubic\"\nswitch.ecn = { kind = \"step\", at = \"1KB\" }", "no effect"),
        ("ecn = { kind = \"step\", at = \"0.2bdp\" }", "ecn = \"off\"", "switch.ecn is off"),
        ("mtu = \"4096B\"", "mtu = \"4096B\"\npath_penalty = false", "path_penalty has no effect"),
        ("pfc = false", "trim = true", "switch.trim only limits queues, as no law of it has its packets trimmed"),
        ("at = \"2ms\"", "at = \"2s\"", "not before the run's end"),
        ("mtu = \"4096B\"", "mtu = \"4096B\"\nack_delay = \"5us\"", "ack_delay has no effect"),
        ("mtu = \"4096B\"", "mtu = \"4096B\"\nquick_acks = 16", "quick_acks has no effect"),
        ("mtu = \"4096B\"", "mtu = \"4096B\"\necho = \"flag\"", "echo has no effect"),
        (
            "law = \"cubic\"",
            "law = \"homa\"\nname = \"cubic\"\nhost.handshake = true",
            "host.handshake has no effect, as connections of receiver-driven laws",
        ),
        (
            "law = \"cubic\"",
            "law = \"hpcc\"\nname = \"cubic\"\nint_multiplier = 2",
            "int_multiplier has no effect with int = \"exact\"",
        ),
        (
            "law = \"cubic\"",
            "law = \"cubic\"\nby_class.incast = { law = \"timely\", window = \"9KB\" }",
            "window has no effect with in_flight = \"unlimited\"",
        ),
        ("law = \"cubic\"", "law = \"cubic\"\nnotification_priority = 1", "send no notifications"),
        (
            "law = \"cubic\"",
            "law = \"hpcc\"\nname = \"cubic\"\nswitch.load_balancing = \"spray\"",
            "scheme cubic: hpcc goes back N for each packet out of order, and load_balancing = \"spray\"",
        ),
        (
            "rates = { every = \"10us\" }",
            "traces = false\n[[paper.claim]]\nmetric = \"assigned_gbps.min\"\nscheme = \"dctcp\"\nvalue = 4",
            "assigned_gbps.min of dctcp needs [measure] rates",
        ),
    ] {
        let scenario = parse(&GOOD.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            scenario.warnings.iter().any(|warning| warning.contains(expected)),
            "{:?} lacks {expected}",
            scenario.warnings
        );
    }
}

#[test]
fn every_topology_kind_is_built() {
    let link = "{ rate = \"10Gbps\", delay = \"1us\", loss = 0.001 }";
    let start = GOOD.find("[topology]").expect("there");
    let end = GOOD.find("[switch]").expect("there");
    for (kind, hosts) in [
        (format!("kind = \"single-switch\"\nhosts = 4\nlink = {link}"), 4),
        (format!("kind = \"dumbbell\"\nleft = 3\nright = 2\nhost_link = {link}\nbottleneck = {link}"), 5),
        (
            format!(
                "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_link = {link}\nfabric_link = {link}"
            ),
            4,
        ),
        (format!("kind = \"fat-tree\"\nk = 4\nlink = {link}"), 16),
        (
            format!(
                "kind = \"clos3\"\npods = 5\ntors_per_pod = 4\naggs_per_pod = 4\ncores = 16\nhosts_per_tor = 16\nhost_link = {link}\ntor_agg_link = {link}\nagg_core_link = {link}"
            ),
            320,
        ),
        (format!("kind = \"chain\"\nswitches = 3\nhosts_per_switch = 2\nhost_link = {link}\nfabric_link = {link}"), 6),
        (format!("kind = \"ring\"\nswitches = 4\nhosts_per_switch = 1\nhost_link = {link}\nfabric_link = {link}"), 4),
    ] {
        let text = format!(
            "{}[topology]\n{kind}\n[switch]\nbuffer = {{ per_port = \"1MB\" }}\n[[workload]]\nkind = \"all-to-all\"\nsize = \"1KB\"\n[[scheme]]\nlaw = \"cubic\"\n",
            &GOOD[..start]
        );
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.runs()[0].config(1).expect("a config").topology.hosts, hosts);
        assert!(parse(&scenario.effective_toml()).is_ok(), "{}", scenario.effective_toml());
    }
    assert!(end > start);
}

#[test]
fn loads_refer_to_what_they_name() {
    // 4 leaves of 8 × 100G over 2 × 400G: a fabric link carries load × 8/2 × 24/31 / 4.
    let flows = |load_of: &str| {
        let text = GOOD.replacen("load = 0.4", &format!("load = 0.4\nload_of = \"{load_of}\""), 1);
        let text = text.replacen("\"workload.background.load\" = [0.2, 0.4]", "", 1).replacen(
            "every = \"1ms\"",
            "load = 0.02",
            1,
        );
        let runs = parse(&text).unwrap_or_else(|error| panic!("{load_of}: {error}")).runs();
        runs[0].describe_workloads()[0].clone()
    };
    let per_second = |text: String| {
        text.split("B, ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok()).expect("a number")
    };
    let host = per_second(flows("host"));
    assert!((host - 32.0 * 0.4 * 100e9 / 8.0 / 1_711_250.0).abs() < 1.0, "{host}");
    assert!((per_second(flows("bottleneck")) / host - 1.0).abs() < 1e-3);
    // Of what 16 hosts send, 16/31 crosses; each direction carries 1.6 Tbps.
    let bisection = 1600e9 / (1600e9 * 16.0 / 31.0);
    assert!((per_second(flows("bisection")) / host - bisection).abs() < 1e-3);
}

#[test]
fn a_grid_can_leave_the_incast_out() {
    let text = GOOD.replacen("every = \"1ms\"", "load = 0", 1);
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(!scenario.warnings.iter().any(|warning| warning.contains("incast")), "{:?}", scenario.warnings);
    let runs = scenario.runs();
    assert!(runs[0].describe_workloads().contains(&"incast: no groups".to_owned()));
    // The class stays, and so do the flows of the others.
    let flows = |run: &Run| {
        let config = run.config(1).expect("flows");
        config.flows.into_iter().filter(|flow| run.classes[usize::from(flow.class)] != "incast").collect()
    };
    let (with, without): (Vec<_>, Vec<_>) = (flows(&parse(GOOD).expect("a scenario").runs()[0]), flows(&runs[0]));
    assert_eq!(with, without);
    assert_eq!(runs[0].config(1).expect("flows").flows.len(), without.len());
}

#[test]
fn groups_of_hosts_send_to_each_other() {
    let of = |kind: &str, from: &str| {
        let text = format!(
            "[[workload]]\nclass = \"group\"\nkind = \"{kind}\"\nsize = \"1MB\"\nfrom = {from}\n\n[[workload]]\nkind"
        );
        let scenario = parse(&GOOD.replacen("[[workload]]\nkind", &text, 1))?;
        let run = &scenario.runs()[0];
        let flows = run.config(1).expect("flows").flows;
        let own = flows.iter().filter(|flow| run.classes[usize::from(flow.class)] == "group");
        Ok::<_, ScenarioError>(own.map(|flow| (flow.source, flow.destination)).collect::<Vec<_>>())
    };
    let group = [2, 3, 4, 17];
    for (kind, flows) in [("all-to-all", 12), ("permutation", 4)] {
        let found = of(kind, "[\"h2..h4\", \"h17\"]").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.len(), flows, "{kind}");
        assert!(found.iter().all(|(from, to)| from != to && group.contains(from) && group.contains(to)), "{found:?}");
        let error = of(kind, "\"h5\"").expect_err("nobody to send to");
        assert!(error.to_string().contains("h5 alone, allowed is at least two hosts"), "{error}");
    }
}

#[test]
fn loads_count_headers() {
    // 100 Gbps, and web search in packets of 1,000 bytes: headers and gap are 9% more.
    let at = |load: &str, more: &str| {
        let text = GOOD.replacen("load = 0.4", &format!("load = {load}\n{more}"), 1).replace("4096B", "1000B");
        parse(&text.replacen("\"workload.background.load\" = [0.2, 0.4]", "", 1))
    };
    let nominal = |scenario: &Scenario| scenario.runs()[0].nominal().expect("a load").clone();
    let error = at("0.95", "").expect_err("refused").to_string();
    assert!(error.contains("headers included, allowed is at most 1 on every link"), "{error}");
    let wanted = nominal(&at("0.95", "overload = true").expect("wanted"));
    assert!(wanted.load > 1.0 && wanted.settles.is_none(), "{wanted:?}");
    let below = nominal(&at("0.4", "").expect("a scenario"));
    // Background and incast, 31 times 128 KB to one of 32 hosts each millisecond.
    let payload = 0.4 + 31.0 * 128e3 * 8.0 / 1e-3 / 32.0 / 100e9;
    assert!((below.load / payload - 1.088).abs() < 0.01, "{below:?}");
    assert_eq!(below.without.len(), 2, "a closed loop has two classes without a load: {below:?}");
    assert_eq!(below.settles, Some(Time::from_ms(5)), "the warm-up is enough: {below:?}");
}

#[test]
fn an_overload_is_said_once_and_of_the_workload_with_the_largest_share() {
    let text = |first: &str, second: &str| {
        format!(
            r#"
            name = "dc"
            duration = "10ms"
            topology = {{ kind = "leaf-spine", leaves = 4, hosts_per_leaf = 8, spines = 2, host_link = {{ rate = "25Gbps", delay = "1us" }}, fabric_link = {{ rate = "25Gbps", delay = "1us" }} }}
            workload = [{first}, {second}]
            switch.buffer = {{ total = "4MB" }}
            scheme = [{{ law = "hpcc" }}, {{ law = "dctcp" }}, {{ law = "swift" }}]
            "#
        )
    };
    let web = "{ kind = \"poisson\", class = \"web\", sizes = \"websearch\", load = 0.6 }";
    let incast = |every: &str| {
        format!("{{ kind = \"incast\", fan_in = 8, size = \"64KB\", every = \"{every}\", receiver = \"h0\" }}")
    };
    for (first, second) in [(web, &*incast("100ms")), (&*incast("100ms"), web)] {
        let error = parse(&text(first, second)).expect_err("refused");
        assert_eq!((error.faults().count(), &*error.key), (1, "workload.web.load"), "{error}");
        for part in ["web 1.9", "incast 0.00", "load_of = \"bottleneck\"", "overload = true"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
    // The receiver's own link, by the incast alone: nothing of the fabric's busiest link.
    let error = parse(&text(&web.replace("0.6", "0.1"), &incast("20us"))).expect_err("refused");
    assert_eq!((error.faults().count(), &*error.key), (1, "workload.incast.every"), "{error}");
    assert!(!error.to_string().contains("load_of"), "{error}");
}
