//! Whole scenarios: good ones, bad ones, and random mutations of a good one.

mod agents;
mod by_traffic;
mod credits;
mod deflection;
mod mixed;
mod receiver_driven;
mod renamed;

use super::*;
use incast_sim::config::{Buffer, Ecn, Size};
use proptest::prelude::*;
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
    let sets: Vec<(String, String)> =
        sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
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
fn senders_that_spray_expect_packets_in_any_order() {
    let host = |balancing: &str| {
        let text = GOOD.replacen("pfc = false", &format!("pfc = false\nload_balancing = \"{balancing}\""), 1);
        let config = parse(&text).unwrap_or_else(|error| panic!("{error}")).runs()[0].config(1);
        let host = config.expect("a config").host;
        (host.reordering, host.path_penalty)
    };
    assert_eq!((host("ecmp"), host("source-routed")), ((3, true), (3, true)));
    assert_eq!(host("spray-permutation"), host("spray"));
    assert!(host("spray-permutation").0 > 3);
}

#[test]
fn deficit_round_robin_has_a_weight_for_each_priority_that_is_not_strict() {
    use incast_sim::switch::scheduler::config::Scheduling;
    let scheduler = |text: &str| {
        let text = format!("pfc = false\npriorities = 4\n{text}");
        let scenario =
            parse(&GOOD.replacen("pfc = false", &text, 1)).unwrap_or_else(|error| panic!("{error}"));
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
        let scenario =
            parse(&GOOD.replacen("pfc = false", text, 1)).unwrap_or_else(|error| panic!("{error}"));
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
    // Without a memory the limits of the queues are all there is.
    let buffer = "buffer = { total = \"4MB\", alpha = 1.0 }\n";
    let without = GOOD.replacen(buffer, "", 1).replacen("pfc = false", "trim = true", 1);
    let config = parse(&without).expect("valid").runs()[0].config(1).expect("a config");
    assert_eq!(config.switch.buffer, Buffer::Unlimited);
    let packets = parse(&GOOD.replacen("total = \"4MB\", alpha = 1.0", "per_port_packets = 57", 1));
    let config = packets.expect("valid").runs()[0].config(1).expect("a config");
    assert_eq!(config.switch.buffer, Buffer::PerPortPackets { packets: 57 });
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
    assert_eq!(
        config.switch.ecn,
        Ecn::Red { min: Size::Bytes(400_000), max: Size::Bytes(1_600_000), p: 0.2 }
    );
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
    let one = parse(&run.replace(
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
        let text =
            text.replace("pfc = false\n", "").replace("law = \"cubic\"", "law = \"dcqcn\"").replace(from, to);
        let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let effective = scenario.effective_toml();
        assert_eq!(parse(&effective).map(|again| again.effective_toml()).ok(), Some(effective.clone()));
        effective
    };
    let all =
        ["ties = \"arrivals-first\"", "ecn_at = \"dequeue\"", "frame = \"43B\"", "variant = \"mellanox\""];
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
fn messages_say_where_what_and_what_else() {
    let error = refused("kind = \"step\"", "kind = \"stpe\"", "");
    assert_eq!(
        error.to_string(),
        "scenarios/x.toml:18: switch.ecn.kind: found \"stpe\", allowed is \"off\", \"step\", \"red\" or \"red-by-rate\" (did you mean \"step\"?)"
    );
    let error = refused("fan_in = 31", "fann_in = 31", "(did you mean \"fan_in\"?)");
    assert_eq!((error.key.as_str(), error.what.as_str()), ("workload.incast.fann_in", "unknown key"));
    refused("gain = 0.1", "gian = 0.1", "scheme.\"DCTCP / RED\".gian: unknown key for the law dctcp");
    refused("law = \"cubic\"", "law = \"cubik\"", "(did you mean \"cubic\"?)");
    refused("sizes = \"websearch\"", "sizes = \"websaerch\"", "(did you mean \"websearch\"?)");
    refused(
        "\"workload.background.load\" =",
        "\"workload.backgruond.load\" =",
        "(did you mean \"background\"?)",
    );
    refused("leaf0-spine1", "leaf0-spin1", "(did you mean \"leaf0-spine1\"?)");
    refused("scheme = \"dctcp\"\nvalue", "scheme = \"dctpc\"\nvalue", "(did you mean \"dctcp\"?)");
    refused("\"fct_us.p99\"", "\"fct_su.p99\"", "(did you mean \"fct_us.p99\"?)");
}

#[test]
fn bad_values_are_refused_where_they_are() {
    for (from, to, expected) in [
        // The eight kinds of bad input that every reader of files meets.
        ("host_link = { rate = \"100Gbps\"", "host_link = { rate = \"0Gbps\"", "topology.host_link.rate"),
        ("load = 0.4", "load = 1.2", "at most 1"),
        ("load = 0.4", "load = nan", "a finite number"),
        ("load = 0.4", "load = -0.1", "above 0"),
        ("load = 0.4", "load = inf", "a finite number"),
        ("fan_in = 31", "fan_in = 32", "1 to 31"),
        ("fan_in = 31", "fan_in = 0", "1 to 31"),
        ("jitter = \"10us\"", "stagger = \"lnk\"", "found \"lnk\", allowed is \"none\", \"link\", or a rate"),
        (
            "jitter = \"10us\"",
            "stagger = \"1Mbps\"",
            "the last sender of a group starts 30.72s after the first",
        ),
        ("sizes = \"websearch\"", "sizes = \"missing.csv\"", "cannot be read"),
        ("size = \"128KB\"", "size = \"-128KB\"", "found \"-128KB\", allowed is a size"),
        ("size = \"128KB\"", "size = \"0B\"", "at least 1B"),
        ("size = \"128KB\"", "size = 128", "found 128, allowed is a size"),
        // The rest.
        ("duration = \"20ms\"", "duration = \"0ms\"", "above 0"),
        ("warmup = \"5ms\"", "warmup = \"20ms\"", "before the duration"),
        ("duration = \"20ms\"", "duration = 20", "a time such as"),
        ("seeds = [1, 2, 3]", "seeds = []", "at least one"),
        ("seeds = [1, 2, 3]", "seeds = [1, 2, 1]", "twice"),
        ("seeds = [1, 2, 3]", "seeds = [1, -2]", "not negative"),
        ("name = \"marimo-table1\"", "name = \"../etc\"", "letters, digits"),
        ("total = \"4MB\", alpha = 1.0", "total = \"4MB\", per_port = \"1MB\"", "exactly one"),
        ("total = \"4MB\"", "total = \"4B\"", "one full packet"),
        ("alpha = 1.0", "alpha = 0.0", "above 0"),
        (
            "pfc = false",
            "pfc = true",
            "found true, allowed is false, \"off\", \"dynamic\", or a table such as { xoff",
        ),
        ("pfc = false", "pfc = \"dynamc\"", "\"dynamic\""),
        ("pfc = false", "pfc = { xon = \"1KB\" }", "xoff"),
        ("pfc = false", "pfc = { xoff = \"1KB\", alpha = 1 }", "unknown key"),
        ("pfc = false", "pfc = { xoff = \"9KB\", xon = \"9KB\" }", "switch.pfc.xon: at leaf0 xon is 9000 B"),
        (
            "pfc = false",
            "pfc = { xoff = \"64KB\", headroom = \"1KB\" }",
            "switch.pfc.headroom: at leaf0 the headroom",
        ),
        ("pfc = false", "pfc = { xoff = \"64KB\", headroom = \"3 rate\" }", "3 rate*delay"),
        ("pfc = false", "pfc = { xoff = \"64KB\", lossless = [8] }", "0 to 7"),
        (
            "pfc = false",
            "pfc = { xoff = \"64KB\", lossless = [] }",
            "switch.pfc.lossless: found empty, allowed is at least one",
        ),
        ("pfc = false", "pfc = { xoff = \"64KB\", refresh = \"1us\" }", "pause_time"),
        (
            "pfc = false",
            "pfc = { xoff = \"64KB\", pause_time = \"1us\", refresh = \"2us\" }",
            "switch.pfc.refresh",
        ),
        ("pfc = false", "pfc = { xoff = \"64KB\", deadlock_after = \"0us\" }", "switch.pfc.deadlock_after"),
        ("pfc = false", "pfc = { xoff = \"64KB\", frame = \"64MB\" }", "1B to 9216B"),
        ("pfc = false", "pfc = { kind = \"dynamic\", alpha = 0 }", "above 0"),
        ("pfc = false", "pfc = { kind = \"dynamic\", xoff = \"1KB\" }", "unknown key"),
        (
            "pfc = false",
            "pfc = { kind = \"dynamic\", reserve = \"1MB\" }",
            "switch.pfc: at leaf0 its memory is 4000000 B",
        ),
        ("pfc = false", "pfc = false\nload_balancing = \"flowlet\"", "later version"),
        ("pfc = false", "pfc = false\npriorities = 9", "1 to 8"),
        ("pfc = false", "scheduler = \"wrr\"", "\"strict\""),
        ("pfc = false", "scheduler = { kind = \"dwrr\" }", "weights"),
        (
            "pfc = false",
            "scheduler = { kind = \"dwrr\", weights = [4, 1] }",
            "switch.scheduler.weights: found 2 weights, allowed is 8, one for each priority that is not strict",
        ),
        (
            "pfc = false",
            "priorities = 2\nscheduler = { kind = \"dwrr\", weights = [4, 0] }",
            "switch.scheduler.weights: found 0, allowed is 1 to 65535",
        ),
        (
            "pfc = false",
            "priorities = 2\nscheduler = { kind = \"strict-over-dwrr\", strict = 2, weights = [] }",
            "switch.scheduler.strict: found 2, allowed is below the 2 priorities",
        ),
        (
            "pfc = false",
            "priorities = 2\nscheduler = { kind = \"dwrr\", weights = [4, 1], quantum = \"63B\" }",
            "switch.scheduler.quantum: found 63B, allowed is at least 64B",
        ),
        (
            "pfc = false",
            "priorities = 2\ntrim = true\nscheduler = { kind = \"dwrr\", weights = [4, 1] }",
            "a weight of headers is a scheduler of its own",
        ),
        (
            "pfc = false",
            "pfc = { xoff = \"64KB\" }\npriorities = 2\nvirtual_channels = 2\nscheduler = { kind = \"dwrr\", weights = [4, 1] }",
            "\"strict\" with virtual channels",
        ),
        ("pfc = false", "trim = \"on\"", "true for the defaults, or a table"),
        ("pfc = false", "trim = { queu = 8 }", "(did you mean \"queue\"?)"),
        ("pfc = false", "trim = { queue = 0 }", "switch.trim.queue: found 0, allowed is 1 packet"),
        ("pfc = false", "trim = { queue = -1 }", "a whole number of packets, or a size"),
        ("pfc = false", "trim = { queue = \"1KB\" }", "at least one packet, 4166 B"),
        ("pfc = false", "trim = { header_queue = \"63B\" }", "switch.trim.header_queue"),
        ("pfc = false", "trim = { header_weight = \"strickt\" }", "or \"strict\""),
        ("pfc = false", "trim = { header_weight = 0 }", "switch.trim.header_weight"),
        ("pfc = false", "trim = { victim = \"head\" }", "\"arriving\""),
        ("pfc = false", "trim = true\npriorities = 1", "at least 2 where switches trim"),
        ("pfc = false", "trim = true\nagent = \"pacc\"", "no switch.agent"),
        ("pfc = false", "trim = true\npfc = { xoff = \"64KB\" }", "no switch.pfc"),
        ("total = \"4MB\", alpha = 1.0", "per_port_packets = 0", "1 packet or more"),
        ("total = \"4MB\", alpha = 1.0", "per_port_packets = 9, reserve = \"1KB\"", "`total` bytes"),
        ("priority = 2", "priority = 8", "0 to 7"),
        ("drift_ppm = 0", "drift_ppm = 300", "0 to 200"),
        ("mtu = \"4096B\"", "mtu = \"63B\"", "64B to 9216B"),
        ("p = 0.2", "p = 1.2", "above 0 and at most 1"),
        ("min = \"400KB\"", "min = \"2MB\"", "at most max"),
        ("kind = \"poisson\"", "kind = \"collective\"", "later version"),
        ("class = \"incast\"", "class = \"background\"", "two classes"),
        ("every = \"1ms\"", "every = \"1ms\"\nload = 0.1", "exactly one"),
        ("every = \"1ms\"", "load = -0.1", "0, or up to 1"),
        ("every = \"1ms\"", "every = \"0ms\"", "above 0"),
        ("every = \"1ms\"", "every = \"1ps\"", "at most 100000000"),
        ("every = \"1ms\"", "every = \"5us\"", "at most 1 on every link"),
        ("clients = \"h0..h3\"", "clients = \"h0..h33\"", "h0 to h31"),
        ("gain = 0.1", "gain = 7", "in (0, 1]"),
        ("name = \"DCTCP / RED\"", "name = \"dctcp\"", "two schemes"),
        ("by_class.incast = ", "by_class.incats = ", "there is no class"),
        ("[0.2, 0.4]", "[0.2, 4.0]", "at most 1"),
        ("[0.2, 0.4]", "[]", "at least one"),
        ("\"host.ack_every\" = [1, 2]", "\"host.ack_every\" = [1, 2, 3]", "as many as host.rto_min"),
        ("\"workload.background.load\" = [0.2, 0.4]", "\"seeds\" = [[1], [2]]", "cannot vary"),
        ("at = \"2ms\"\nlink_down", "at = \"2ms\"\nlink_up = \"leaf0-spine0\"\nlink_down", "exactly one"),
        ("\"leaf0->h0\"", "\"leaf0->h9\"", "matches no port"),
        ("value = 640", "value = 640\nat_most = 700", "exactly one"),
        ("[measure]", "[table]\ncolumns = [{ metric = \"slowdown.p98\" }]\n[measure]", "\"slowdown.p95\"?"),
        (
            "[measure]",
            "[table]\ncolumns = [{ class = \"incats\", metric = \"drops\" }]\n[measure]",
            "table.columns[0].class: there is no class \"incats\"",
        ),
        ("law = \"cubic\"", "law = \"cubic\"\nunderlay = { kind = \"offramp\" }", "offramp"),
        (
            "law = \"cubic\"",
            "law = \"cubic\"\nunderlay = { kind = \"none\", threshold = \"1us\" }",
            "takes none",
        ),
        ("seeds = [1, 2, 3]", "seeds = 1979-05-27", "dates"),
    ] {
        refused(from, to, expected);
    }
    let tree = GOOD.replace("kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link =", "kind = \"fat-tree\"\nk = 3\nlink =");
    let error = parse(&tree).expect_err("three ports");
    assert_eq!((error.line, error.key.as_str()), (Some(10), "topology.k"), "{error}");
}

#[test]
fn bad_files_are_refused() {
    let folder = std::env::temp_dir().join(format!("incast-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
    write("good.csv", b"size_bytes,cdf\n0,0\n1000,1\n");
    write("falling.csv", b"size_bytes,cdf\n0,0\n1000,0.5\n500,1\n");
    write("garbage.csv", b"\x00\xff\xfe\x80");
    write("x.toml", GOOD.as_bytes());
    let load = |sizes: &str| {
        write("y.toml", GOOD.replace("sizes = \"websearch\"", &format!("sizes = {sizes}")).as_bytes());
        Scenario::load(&folder.join("y.toml"), &[])
    };
    assert!(Scenario::load(&folder.join("x.toml"), &[]).is_ok());
    assert!(load("\"good.csv\"").is_ok());
    assert!(load("{ file = \"good.csv\", interpolation = \"step\", max = \"500B\" }").is_ok());
    for (sizes, expected) in [
        ("\"falling.csv\"", "line 4"),
        ("\"garbage.csv\"", "not UTF-8"),
        ("{ file = \"falling.csv\" }", "line 4"),
        ("\"nowhere/good.csv\"", "cannot be read"),
    ] {
        let error = load(sizes).expect_err(sizes);
        assert!(error.to_string().contains(expected) && error.line.is_some(), "{error}");
    }
    write("z.toml", b"name = \"x\"\nduration = \"\xff\"\n");
    let error = Scenario::load(&folder.join("z.toml"), &[]).expect_err("not UTF-8");
    assert_eq!(error.line, Some(2), "{error}");
    assert!(Scenario::load(&folder.join("nothing.toml"), &[]).is_err());
    assert!(Scenario::load(&folder, &[]).is_err());
    std::fs::remove_dir_all(&folder).expect("removed");
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
    assert!(
        scenario.effective_toml().contains("gain = 0.2") && scenario.effective_toml().contains("fan_in = 16")
    );
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
        (
            "pfc = false",
            "pfc = { xoff = \"9KB\", lossless = [3] }",
            "switch.pfc has no effect: none of its packets",
        ),
        (
            "law = \"cubic\"",
            "law = \"cubic\"\nack_priority = 3\nswitch.pfc = { xoff = \"9KB\", lossless = [3] }",
            "the class incast has priority 0, which is not lossless",
        ),
        ("law = \"cubic\"", "law = \"cubic\"\nswitch.ecn = { kind = \"step\", at = \"1KB\" }", "no effect"),
        ("ecn = { kind = \"step\", at = \"0.2bdp\" }", "ecn = \"off\"", "switch.ecn is off"),
        ("mtu = \"4096B\"", "mtu = \"4096B\"\npath_penalty = false", "path_penalty has no effect"),
        ("pfc = false", "trim = true", "switch.trim has no effect, as no law of it has its packets trimmed"),
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
        (
            format!(
                "kind = \"chain\"\nswitches = 3\nhosts_per_switch = 2\nhost_link = {link}\nfabric_link = {link}"
            ),
            6,
        ),
        (
            format!(
                "kind = \"ring\"\nswitches = 4\nhosts_per_switch = 1\nhost_link = {link}\nfabric_link = {link}"
            ),
            4,
        ),
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
        text.split("B, ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok())
            .expect("a number")
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
    let (with, without): (Vec<_>, Vec<_>) =
        (flows(&parse(GOOD).expect("a scenario").runs()[0]), flows(&runs[0]));
    assert_eq!(with, without);
    assert_eq!(runs[0].config(1).expect("flows").flows.len(), without.len());
}

/// A mutation of a text: a slice is removed, doubled, or replaced by something nasty.
fn mutate(text: &str, edits: &[(usize, usize, usize)]) -> String {
    const NASTY: &[&str] = &[
        "",
        "=",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "\n",
        ".",
        "nan",
        "-1",
        "1e400",
        "\"\"",
        "99999999999999999999",
        "0",
        "true",
        "[[",
        "#",
        "'''",
        "\u{0}",
        "é",
        "\"h999\"",
        "\"1us\"",
        "= {",
        "[[scheme]]\n",
        "[[workload]]\n",
        "kind = \"long\"",
        "0.0",
        "\"*->*\"",
        "1",
    ];
    let mut text = text.to_owned();
    for (place, length, nasty) in edits {
        let boundary = |mut index: usize| {
            while !text.is_char_boundary(index) {
                index -= 1;
            }
            index
        };
        let from = boundary(place % (text.len() + 1));
        let to = boundary((from + length).min(text.len())).max(from);
        let replacement = NASTY[nasty % NASTY.len()];
        text.replace_range(from..to, replacement);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mutations_never_panic_and_every_message_has_a_line(
        edits in proptest::collection::vec((0usize..4000, 0usize..12, 0usize..64), 1..4)
    ) {
        let text = mutate(GOOD, &edits);
        if let Err(error) = parse(&text) {
            prop_assert!(error.line.is_some_and(|line| line >= 1 && line <= text.matches('\n').count() + 1), "{error}");
            prop_assert_eq!(error.file.as_path(), Path::new("scenarios/x.toml"));
            prop_assert!(!error.what.is_empty());
        }
    }

    #[test]
    fn arguments_never_panic(key in "[a-z.\"\\[\\]=]{0,20}|workload\\.(incast|background)\\.[a-z_]{1,8}", value in ".{0,12}") {
        let _ = parse_with(GOOD, &[(&key, &value)]);
    }
}

const SHORT: &str = "\n[short]\nduration = \"2ms\"\nwarmup = \"1ms\"\nseeds = [7]\ngrid = { \"workload.background.load\" = [0.4] }\n";

fn parse_short(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<(String, String)> =
        sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Scenario::parse_form(Source { path: "x.toml".into(), text: text.into() }, &sets, Form::Short)
}

#[test]
fn a_short_form_replaces_what_it_names() {
    let claim = "\n[[paper.claim]]\nmetric = \"fct_us.p50\"\nscheme = \"cubic\"\nvalue = 1\ngrid = { \"workload.background.load\" = 0.2 }\n";
    let text = format!("{GOOD}{claim}{SHORT}");
    let full = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((full.form, full.duration, full.seeds.len()), (Form::Full, Time::from_ms(20), 3));
    assert_eq!((full.runs().len(), full.claims.len()), (2 * 2 * 3 * 3, 2));
    // The full form's identity does not depend on what the short one is.
    assert_eq!(full.effective_toml(), parse(&format!("{GOOD}{claim}")).expect("valid").effective_toml());

    let short = parse_short(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((short.form, short.duration, short.warmup), (Form::Short, Time::from_ms(2), Time::from_ms(1)));
    assert_eq!((short.seeds.as_slice(), short.drain), (&[7_u64][..], Time::from_ms(500)));
    // One load instead of two; the claim about the other is left out.
    assert_eq!((short.runs().len(), short.claims.len()), (2 * 3, 1));
    assert!(short.runs().iter().all(|run| run.form == Form::Short));
    assert!(!short.effective_toml().contains("[short]"));

    let set = parse_short(&text, &[("duration", "\"3ms\"")]).expect("valid");
    assert_eq!((set.duration, set.warmup), (Time::from_ms(3), Time::from_ms(1)));
    let set = parse_short(&text, &[("short.duration", "\"4ms\"")]).expect("valid");
    assert_eq!(set.duration, Time::from_ms(4));
}

#[test]
fn faults_of_a_short_form_are_found() {
    let none = parse_short(GOOD, &[]).expect("valid");
    assert_eq!(none.form, Form::Full);
    assert!(none.warnings.iter().any(|warning| warning.contains("no [short]")), "{:?}", none.warnings);

    let wrong = format!("{GOOD}\n[short]\nduratoin = \"1ms\"\n");
    let message = parse(&wrong).expect_err("a typo").to_string();
    assert!(message.contains("duratoin") && message.contains("\"duration\""), "{message}");
    // Its own line, not that of what it replaces.
    let wrong = format!("{GOOD}\n[short]\nduration = \"1ms\"\n");
    let line = wrong.lines().count();
    let error = parse_short(&wrong, &[]).expect_err("the warm-up is longer");
    assert!(error.to_string().contains("warmup"), "{error}");
    let wrong = format!("{GOOD}\n[short]\nseeds = []\n");
    assert_eq!(parse_short(&wrong, &[]).expect_err("no seeds").line, Some(line));
}

#[test]
fn ratios_are_to_schemes_that_there_are() {
    let to = |list: &str| GOOD.replacen("value = 640", &format!("value = 1.5\nratio_to = {list}"), 1);
    for good in ["\"cubic\"", "[\"cubic\"]", "[\"cubic\", \"dctcp\"]"] {
        let scenario = parse(&to(good)).unwrap_or_else(|error| panic!("{error}"));
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.claims, scenario.claims);
    }
    let line = to("1").lines().position(|line| line.starts_with("ratio_to")).map(|line| line + 1);
    for (bad, expected) in [
        ("[]", "at least one"),
        ("[\"cubic\", \"cubik\"]", "ratio_to[1]: there is no scheme \"cubik\""),
        ("\"cubik\"", "did you mean"),
        ("3", "the name of a scheme, or a list of names"),
        ("[\"cubic\", 3]", "ratio_to[1]: found 3, allowed is a text"),
    ] {
        let error = parse(&to(bad)).err().unwrap_or_else(|| panic!("accepted: {bad}"));
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
}
