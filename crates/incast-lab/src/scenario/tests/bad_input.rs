//! What is refused, with its place; random mutations of a good scenario.

use super::*;
use proptest::prelude::*;

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
    refused("\"workload.background.load\" =", "\"workload.backgruond.load\" =", "(did you mean \"background\"?)");
    let step = "ecn = { kind = \"step\", at = \"0.2bdp\"";
    refused(step, &format!("{step}, thresh = \"5KB\""), "switch.ecn.thresh: unknown key, allowed is `at`");
    refused("fan_in = 31", "fan_in = 31\nmtu = 1500", "an MTU of a link is not there");
    refused("fan_in = 31", "fan_in = 31\nnics = 2", "several NICs of a host are not there");
    refused("fan_in = 31", "fan_in = 31\nhost_pause = \"h0\"", "a host that pauses for ever is not there");
    refused("leaf0-spine1", "leaf0-spin1", "(did you mean \"leaf0-spine1\"?)");
    refused("scheme = \"dctcp\"\nvalue", "scheme = \"dctpc\"\nvalue", "(did you mean \"dctcp\"?)");
    refused("\"fct_us.p99\"", "\"fct_su.p99\"", "(did you mean \"fct_us.p99\"?)");
}

#[test]
fn what_never_has_a_value_is_refused() {
    let class = "\"fct_us.p99\"\nclass = ";
    refused("\"fct_us.p99\"", &format!("{class}\"background\"").replace("fct_us", "rct_us"), "has no requests");
    refused("\"fct_us.p99\"", "\"drops\"\nclass = \"incast\"", "is of the whole fabric");
    let homa = ("law = \"cubic\"", "law = \"homa\"\npriority = 0");
    assert!(faults(&[homa, ("pfc = false", "pfc = false\npriorities = 3")])[0].ends_with("homa.law"));
}

#[test]
fn a_law_is_looked_up_although_the_fabric_is_wrong() {
    let keys = faults(&[("law = \"cubic\"", "law = \"cubik\""), ("leaves = ", "leaves = 0 #")]);
    assert!(keys.iter().any(|key| key.ends_with(".law")) && keys.iter().any(|key| key.contains("leaves")), "{keys:?}");
}

/// The lines and keys of all faults after some replacements in the good scenario.
fn faults(changes: &[(&str, &str)]) -> Vec<String> {
    let mut text = GOOD.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let error = parse(&text).expect_err("refused");
    assert_eq!(error.to_string().lines().count(), error.faults().count());
    error.faults().map(|fault| fault.key.clone()).collect()
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let keys = faults(&[
        ("duration = \"20ms\"", "duratoin = \"20ms\""),
        ("kind = \"step\"", "kind = \"stpe\""),
        ("fan_in = 31", "fan_in = \"many\""),
        ("seeds = [1, 2, 3]", "seeds = [1, -2]"),
        ("metric = \"fct_us.p99\"", "metrik = \"fct_us.p99\""),
    ]);
    for key in ["duratoin", "switch.ecn.kind", "workload.incast.fan_in", "seeds[1]", "paper.claim[0].metrik"] {
        assert!(keys.contains(&key.to_owned()), "{key}: {keys:?}");
    }
    // Keys that are missing as they are misspelt are not reported twice.
    assert_eq!(keys.len(), 5, "{keys:?}");
    // What cannot be read has no kind, and its kind is no second mistake.
    assert_eq!(faults(&[("kind = \"step\"", "kind = 5")]), ["switch.ecn.kind"]);
    assert_eq!(
        faults(&[
            ("fan_in = 31", "fan_in = 0"),
            ("gain = 0.1", "gian = 0.1"),
            ("warmup = \"5ms\"", "warmup = \"20ms\"")
        ]),
        ["warmup", "workload.incast.fan_in"],
        "schemes are looked at once the traffic is known"
    );
    assert_eq!(
        faults(&[
            ("gain = 0.1", "gian = 0.1"),
            ("law = \"cubic\"", "law = \"cubik\""),
            ("leaf0-spine1", "leaf0-spin1")
        ])
        .len(),
        3
    );
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
        ("jitter = \"10us\"", "stagger = \"1Mbps\"", "the last sender of a group starts 30.72s after the first"),
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
        ("pfc = false", "pfc = true", "found true, allowed is false, \"off\", \"dynamic\", or a table such as { xoff"),
        ("pfc = false", "pfc = \"dynamc\"", "\"dynamic\""),
        ("pfc = false", "pfc = { xon = \"1KB\" }", "xoff"),
        ("pfc = false", "pfc = { xoff = \"1KB\", alpha = 1 }", "unknown key"),
        ("pfc = false", "pfc = { xoff = \"9KB\", xon = \"9KB\" }", "switch.pfc.xon: at leaf0 xon is 9000 B"),
        ("pfc = false", "pfc = { xoff = \"64KB\", headroom = \"1KB\" }", "switch.pfc.headroom: at leaf0 the headroom"),
        ("pfc = false", "pfc = { xoff = \"64KB\", headroom = \"3 rate\" }", "3 rate*delay"),
        ("pfc = false", "pfc = { xoff = \"64KB\", lossless = [8] }", "0 to 7"),
        (
            "pfc = false",
            "pfc = { xoff = \"64KB\", lossless = [] }",
            "switch.pfc.lossless: found empty, allowed is at least one",
        ),
        ("pfc = false", "pfc = { xoff = \"64KB\", refresh = \"1us\" }", "pause_time"),
        ("pfc = false", "pfc = { xoff = \"64KB\", pause_time = \"1us\", refresh = \"2us\" }", "switch.pfc.refresh"),
        ("pfc = false", "pfc = { xoff = \"64KB\", deadlock_after = \"0us\" }", "switch.pfc.deadlock_after"),
        ("pfc = false", "pfc = { xoff = \"64KB\", frame = \"64MB\" }", "1B to 9216B"),
        ("pfc = false", "pfc = { kind = \"dynamic\", alpha = 0 }", "above 0"),
        ("pfc = false", "pfc = { kind = \"dynamic\", xoff = \"1KB\" }", "unknown key"),
        (
            "pfc = false",
            "pfc = { kind = \"dynamic\", reserve = \"1MB\" }",
            "switch.pfc: at leaf0 its buffer is 4000000 B",
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
        (
            "pfc = false",
            "trim = { size = \"5KB\" }",
            "switch.trim.size: found 5KB, allowed is below a full packet, 4166 B",
        ),
        ("pfc = false", "trim = { size = \"32B\" }", "switch.trim.size"),
        ("pfc = false", "trim = { header_queue = \"100B\", size = \"128B\" }", "at least one packet, 128 B"),
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
        ("law = \"cubic\"", "law = \"cubic\"\nunderlay = { kind = \"none\", threshold = \"1us\" }", "takes none"),
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

    /// What is not refused here the simulator does not refuse either.
    #[test]
    fn what_passes_can_be_run(choices in prop::collection::vec(0usize..6, 4)) {
        const LAWS: [&str; 6] = ["homa", "phost", "ndp", "polo", "dasr", "timely"];
        let text = GOOD.replace("law = \"cubic\"", &format!("law = {:?}\npriority = {}", LAWS[choices[0]], choices[1]));
        let text = text.replace("[switch]", &format!("[switch]\npriorities = {}\nvirtual_channels = {}", choices[2] + 1, choices[3].max(1)));
        let text = text.replace("[0.2, 0.4]", "[0.01]");
        if let Ok(scenario) = parse(&text) {
            let run = scenario.runs().into_iter().next_back().expect("a run");
            let config = run.config(1).expect("a configuration");
            let ended = incast_sim::simulate_observed(config, &mut |_| true, &|| true);
            prop_assert!(matches!(ended, Err(incast_sim::SimulationError::Halted)), "{:?}", ended.map(|_| ()));
        }
    }

    #[test]
    fn arguments_never_panic(key in "[a-z.\"\\[\\]=]{0,20}|workload\\.(incast|background)\\.[a-z_]{1,8}", value in ".{0,12}") {
        let _ = parse_with(GOOD, &[(&key, &value)]);
    }
}

#[test]
fn a_trace_by_another_key_is_told_the_key() {
    let at = GOOD.find("[[workload]]\nkind = \"rpc\"").expect("a workload");
    let text = format!("{}[[workload]]\nkind = \"trace\"\nfile = \"flows.csv\"\n\n{}", &GOOD[..at], &GOOD[at..]);
    let error = parse(&text).expect_err("refused");
    assert_eq!((error.faults().count(), &*error.key), (1, "workload.trace.file"), "{error}");
    assert!(error.to_string().ends_with("(did you mean \"path\"?)"), "{error}");
}
