//! `incast config`: refusals, and that all files are there or none. rigs/sonic/run.sh has what devices say of the text.

use crate::common::{folder, incast, program, stderr, succeed, text};
use std::fs;

const FABRIC: &str = "name = \"ours\"\nduration = \"1ms\"\n\
    [topology]\nkind = \"single-switch\"\nhosts = 3\nlink = { rate = \"25Gbps\", delay = \"1us\" }\n\
    [switch]\nbuffer = { total = \"16MB\", alpha = 0.5 }\necn = { kind = \"step\", at = \"60KB\" }\n\
    [host]\nmtu = \"1448B\"\nrto_min = \"700us\"\n\
    [[workload]]\nkind = \"permutation\"\nsize = \"20KB\"\n\
    [[scheme]]\nlaw = \"dctcp\"\ninitial_window = \"14480B\"\n[[scheme]]\nlaw = \"hpcc\"\n[[scheme]]\nlaw = \"cubic\"\nbeta = 0.6\n";

const PORTS: [&str; 4] = ["--ports", "Ethernet0@25Gbps", "Ethernet1@25Gbps", "Ethernet2@25Gbps"];

#[test]
fn what_cannot_be_expressed_is_refused_and_nothing_is_written() {
    let out = folder("config-refused");
    let file = out.join("ours.toml");
    fs::write(&file, FABRIC).expect("written");
    let host = out.join("host");
    for (arguments, expected) in [
        (vec!["--for", "linux", "--scheme", "hpcc"], "law hpcc: no Linux kernel runs it"),
        (vec!["--for", "sonic", "--scheme", "hpcc", PORTS[0], PORTS[1]], "hpcc needs telemetry"),
        (vec!["--for", "sonic"], "--ports is missing: the device's config_db.json"),
        (vec!["--for", "sonic", PORTS[0], PORTS[1]], "1 ports of 25Gbps, and s0 has 3"),
        (vec!["--for", "sonic", PORTS[0], PORTS[1], PORTS[1]], "Ethernet0 is given twice"),
        (
            vec!["--for", "sonic", "--ports", "Ethernet0@10Gbps", "Ethernet1@10Gbps", "Ethernet4@100Gbps"],
            "--ports: 0 ports of 25Gbps, and s0 has 3 of them; given: 2 of 10Gbps, 1 of 100Gbps",
        ),
        (
            vec!["--for", "sonic", "--ports", "eth-1/1@25Gbps", PORTS[1], PORTS[2]],
            "\"eth-1/1\" is no port of SONiC, whose names are Ethernet0, Ethernet4 and so on",
        ),
        (vec!["--for", "sonic", "--class", "all"], "--class is about hosts"),
        (vec!["--for", "sonic", PORTS[0], "no-such.json"], "no-such.json: "),
        (vec!["--for", "sonic", "--switch", "s1", PORTS[0], PORTS[1]], "no such switch, allowed is s0\n"),
        (vec!["--for", "sonic", "--queues", "0=9:1", PORTS[0], PORTS[1]], "allowed is PRIORITY=QUEUE:DSCP"),
        (vec!["--for", "linux", "--switch", "s0"], "--switch, --ports and --queues are about switches"),
        (vec!["--for", "linux", "--set", "switch.buffer.total=1B"], "switch.buffer.total"),
        (vec!["--for", "sonik"], "a similar value exists: 'sonic'"),
    ] {
        let all = [vec!["config", text(&file), "--out", text(&host)], arguments].concat();
        let output = incast(&all);
        assert_eq!(output.status.code(), Some(2), "{all:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{all:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !host.exists(), "{all:?}");
    }
    let of_rate = FABRIC.replace("total = \"16MB\", alpha = 0.5", "per_port = \"1MB\"");
    fs::write(&file, of_rate).expect("written");
    let output = incast(&[&["config", text(&file), "--for", "sonic"][..], &PORTS].concat());
    assert!(stderr(&output).contains("devices share a buffer among their ports"), "{}", stderr(&output));
}

#[test]
fn marks_alone_leave_the_rest_of_a_switch() {
    let file = folder("config-marks").join("ours.toml");
    fs::write(&file, FABRIC).expect("written");
    let told = succeed(&[&["config", text(&file), "--for", "sonic", "--marks-only"][..], &PORTS].concat());
    let tables: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let names: Vec<&String> = tables.as_object().expect("tables").keys().collect();
    assert_eq!(names, ["QUEUE", "WRED_PROFILE"]);
    assert_eq!(tables["QUEUE"]["Ethernet1|0"], serde_json::json!({ "wred_profile": "incast_25g" }));
    let said = stderr(&incast(&[&["config", text(&file), "--for", "sonic", "--marks-only"][..], &PORTS].concat()));
    for note in
        ["WRED_PROFILE of ports of 25Gbps: 60000 B", "in queues 0 of these ports", "some devices then do not mark"]
    {
        assert!(said.contains(note), "{note}: {said}");
    }
    let whole = succeed(&[&["config", text(&file), "--for", "sonic"][..], &PORTS].concat());
    let whole: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
    assert_eq!(whole["WRED_PROFILE"], tables["WRED_PROFILE"]);
    for (more, expected) in [
        (&["--for", "linux", "--marks-only"][..], "--marks-only is about SONiC"),
        (&["--for", "sonic", "--marks-only", "--set", "switch.ecn=off"][..], "no port of this switch marks"),
    ] {
        let ports = if more[1] == "sonic" { &PORTS[..] } else { &[] };
        let output = incast(&[&["config", text(&file)][..], more, ports].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

/// What was not asked for is not changed on a host, and what it rounds is told even where it comes to the kernel's default.
#[test]
fn hosts_keep_their_mtu_and_say_what_they_round() {
    let out = folder("config-mtu");
    let file = out.join("ours.toml");
    fs::write(&file, FABRIC.replace("mtu = \"1448B\"\n", "")).expect("written");
    let linux = ["config", text(&file), "--for", "linux"];
    let output = incast(&linux);
    assert!(!String::from_utf8_lossy(&output.stdout).contains(" mtu "), "{}", stderr(&output));
    assert!(stderr(&output).contains("note: host.mtu is not given, and 4096 B of payload"), "{}", stderr(&output));
    let output = incast(&[&linux[..], &["--set", "host.mtu=1448B"]].concat());
    assert!(String::from_utf8_lossy(&output.stdout).contains(" mtu 1500\n"), "{}", stderr(&output));
    let rounded = out.join("rounded.toml");
    // Nor because another scheme has one, or the scenario was written as it is applied.
    let other = FABRIC.replace("mtu = \"1448B\"\n", "").replace("beta = 0.6", "host = { mtu = \"8948B\" }");
    fs::write(&file, other).expect("written");
    let output = incast(&[&linux[..], &["--scheme", "dctcp", "--as-rounded", text(&rounded)]].concat());
    assert!(!String::from_utf8_lossy(&output.stdout).contains(" mtu "), "{}", stderr(&output));
    let again = succeed(&["config", text(&rounded), "--for", "linux"]);
    assert!(!again.contains(" mtu "), "{again}");
    assert!(succeed(&[&linux[..], &["--scheme", "cubic"]].concat()).contains(" mtu 9000\n"));
    for (gain, taken) in [("0.08", "0.0625"), ("0.0626", "0.0625"), ("0.1", "0.125"), ("0.0625", "")] {
        let set = format!("scheme.dctcp.gain={gain}");
        let output = incast(&[&linux[..], &["--set", &set, "--as-rounded", text(&rounded), "--force"]].concat());
        let note = format!("note: gain: {gain} in the scenario, {taken} on the host");
        assert_eq!(stderr(&output).contains(&note), !taken.is_empty(), "{gain}: {}", stderr(&output));
        let applied = fs::read_to_string(&rounded).expect("a scenario");
        let taken = if taken.is_empty() { gain } else { taken };
        assert!(applied.contains(&format!("gain = {taken}\n")), "{gain}: {applied}");
    }
}

/// `marimoctl` reads the same file: `what_incast_config_writes_is_read` in its configuration.
#[test]
fn parameters_of_marimo_are_for_marimoctl_and_the_module() {
    let out = folder("config-marimo");
    let (file, host) = (out.join("ours.toml"), out.join("host"));
    let own = "[[scheme]]\nname = \"own\"\nlaw = \"marimo\"\nrule = \"settling\"\nmax_decrease = 0.4\nmax_increase = 3.5\nbeta = 0.25\n\
               target = 0.9305\nforget = false\n[[scheme]]\nname = \"usual\"\nlaw = \"marimo\"\n";
    fs::write(&file, format!("{FABRIC}{own}")).expect("written");
    let linux = ["config", text(&file), "--for", "linux", "--scheme"];
    let said = stderr(&incast(&[&linux[..], &["own", "--out", text(&host)]].concat()));
    let written = |name: &str| fs::read_to_string(host.join(name)).expect("a file");
    assert_eq!(written("marimo.conf"), include_str!("golden/marimo.conf"));
    let options = written("modprobe-incast.conf");
    let expected =
        "\noptions tcp_marimo rule=settling forget=0 target=931 max_decrease=400 max_increase=4 beta_shift=2\n";
    assert!(options.ends_with(expected), "{options}");
    assert!(
        said.contains("note: target: 0.9305 in the scenario, 0.931 in the module; marimo.conf has it exactly"),
        "{said}"
    );
    assert!(said.contains("max_increase: 3.5 in the scenario, 4 in the module"), "{said}");
    let usual = succeed(&[&linux[..], &["usual"]].concat());
    assert!(usual.contains("marimoctl enable") && !usual.contains("# ==== marimo.conf"), "{usual}");
}

/// `onrampctl` reads the same file in a test of its own.
#[test]
fn on_ramp_is_for_onrampctl() {
    let out = folder("config-onramp");
    let file = out.join("ours.toml");
    let held = |underlay: &str| {
        let scheme =
            format!("[[scheme]]\nname = \"held\"\nlaw = \"cubic\"\nunderlay = {{ kind = \"onramp\"{underlay} }}\n");
        fs::write(&file, format!("{FABRIC}{scheme}")).expect("written");
    };
    let (host, rounded) = (out.join("host"), out.join("rounded.toml"));
    let linux = [
        "config",
        text(&file),
        "--for",
        "linux",
        "--scheme",
        "held",
        "--out",
        text(&host),
        "--as-rounded",
        text(&rounded),
    ];
    held(", threshold = \"40us\"");
    let said = stderr(&incast(&linux));
    assert!(
        said.contains("note: underlay: hosts have scope = \"destination\", reports = \"acks\"; simulate that"),
        "{said}"
    );
    assert!(!said.contains("underlay.spread") && !said.contains("its floor"), "{said}");
    let sysctl = fs::read_to_string(host.join("60-incast.conf")).expect("settings");
    assert!(sysctl.contains("\nnet.ipv4.tcp_timestamps = 2\n") && sysctl.contains("fq nopacing"), "{sysctl}");
    let written = fs::read_to_string(host.join("onramp.conf")).expect("a file");
    assert_eq!(written, include_str!("golden/onramp.conf"));
    let links = fs::read_to_string(host.join("links.sh")).expect("a script");
    assert!(links.contains("root fq nopacing\n"), "{links}");
    let applied = fs::read_to_string(&rounded).expect("a scenario");
    assert!(applied.contains("scope = \"destination\""), "{applied}");

    held("");
    let usual = succeed(&["config", text(&file), "--for", "linux", "--scheme", "held"]);
    assert!(usual.contains("\nthreshold = path\n"), "{usual}");
    let said = stderr(&incast(&["config", text(&file), "--for", "linux", "--scheme", "held"]));
    assert!(said.contains("a host's threshold = path is never below its floor, 50us"), "{said}");

    held(", threshold = \"40us\", spread = \"1us\"");
    let said = stderr(&incast(&[&linux[..], &["--force"]].concat()));
    assert!(said.contains("underlay.spread: 1us in the scenario, 7403.136ns on the host"), "{said}");
    let applied = fs::read_to_string(&rounded).expect("a scenario");
    assert!(applied.contains("spread = \"7403.136ns\""), "{applied}");
    let said = stderr(&incast(&["config", text(&rounded), "--for", "linux", "--scheme", "held"]));
    assert!(!said.contains("underlay.spread"), "{said}");
    held(", release = \"clocked\", max_hold = \"1s\"");
    let refused = incast(&["config", text(&file), "--for", "linux", "--scheme", "held"]);
    assert_eq!(refused.status.code(), Some(2));
    for expected in [
        "underlay.release: found clocked, a host has burst or paced",
        "underlay.max_hold: found 1s, a host holds for at most 100ms",
    ] {
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}

#[test]
fn files_are_kept_and_rounding_is_told() {
    let out = folder("config-files");
    let file = out.join("ours.toml");
    fs::write(&file, FABRIC.replace("alpha = 0.5", "alpha = 0.4")).expect("written");
    let (host, rounded) = (out.join("host"), out.join("rounded.toml"));
    let linux = ["config", text(&file), "--for", "linux", "--out", text(&host)];
    succeed(&linux);
    assert_eq!(incast(&linux).status.code(), Some(2), "files that are there are kept");
    succeed(&[&linux[..], &["--force"]].concat());
    let routes = fs::read_to_string(host.join("routes.sh")).expect("a script");
    assert!(routes.contains("congctl dctcp") && routes.contains("quickack 1"), "{routes}");
    // Routes take whole milliseconds, and ten segments are the kernel's own default.
    assert!(!routes.contains("$route rto_min") && !routes.contains("$route initcwnd"), "{routes}");
    let sysctl = fs::read_to_string(host.join("60-incast.conf")).expect("settings");
    assert!(sysctl.contains("net.ipv4.tcp_rto_min_us = 700\n"), "{sysctl}");
    let cubic = succeed(&["config", text(&file), "--for", "linux", "--scheme", "cubic"]);
    assert!(cubic.contains("options tcp_cubic beta=614\n") && !cubic.contains("bic_scale"), "{cubic}");

    let output =
        incast(&[&["config", text(&file), "--for", "sonic", "--as-rounded", text(&rounded)][..], &PORTS].concat());
    let said = stderr(&output);
    assert!(said.contains("note: switch.buffer.alpha: 0.4 in the scenario, 0.5 on the device"), "{said}");
    let tables: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(tables["WRED_PROFILE"]["incast_25g"]["green_max_threshold"], "60000");
    assert_eq!(tables["BUFFER_PROFILE"]["incast_lossy"]["dynamic_th"], "-1");
    assert_eq!(tables["QUEUE"].as_object().map(serde_json::Map::len), Some(3));
    let again = succeed(&[&["config", text(&rounded), "--for", "sonic"][..], &PORTS].concat());
    assert_eq!(again.as_bytes(), output.stdout);
}

/// What a device is told comes back as the switch that it was written for: written again it is the same text.
#[test]
fn a_device_comes_back_as_a_switch() {
    let out = folder("config-back");
    let rigs = "../../rigs/sonic";
    let fixed = ["--set", "switch.pfc={xoff=\"320KB\",lossless=[1]}"];
    let spine: Vec<String> = [0, 8, 16, 24].iter().map(|port| format!("Ethernet{port}@400Gbps")).collect();
    let spine: Vec<&str> =
        ["--switch", "spine0", "--ports"].into_iter().chain(spine.iter().map(String::as_str)).collect();
    let leaf: Vec<String> = (0..8).map(|port| format!("Ethernet{port}@25Gbps")).collect();
    let leaf: Vec<&str> = ["--switch", "leaf0", "--ports", "Ethernet48@100Gbps", "Ethernet52@100Gbps"]
        .into_iter()
        .chain(leaf.iter().map(String::as_str))
        .collect();
    for (name, more, device) in [
        ("roce", &["--queues", "1=3:26", "0=6:48"][..], &spine),
        ("roce", &fixed, &spine),
        ("tcp", &["--scheme", "dctcp", "--set", "switch.buffer.alpha=0.5", "--set", "switch.ecn.p=0.12"], &leaf),
    ] {
        let scenario = fs::read_to_string(format!("{rigs}/{name}.toml")).expect("a scenario");
        let file = out.join("there.toml");
        fs::write(&file, &scenario).expect("written");
        let told = succeed(&[&["config", text(&file), "--for", "sonic"][..], more, device].concat());
        let database = out.join("config_db.json");
        // The device's own ports say how fast they are.
        let mut tables: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&told).expect("JSON");
        let ports = device.iter().filter_map(|port| port.strip_suffix("Gbps")?.split_once('@'));
        let ports = ports.map(|(port, gbps)| (port.to_owned(), serde_json::json!({ "speed": format!("{gbps}000") })));
        tables.insert("PORT".into(), serde_json::Value::Object(ports.collect()));
        fs::write(&database, serde_json::to_string(&tables).expect("JSON")).expect("written");
        let back: toml::Table = succeed(&["import", "sonic", text(&database)]).parse().expect("a table");
        let mut again: toml::Table = scenario.parse().expect("a scenario");
        again.extend(back);
        fs::write(&file, again.to_string()).expect("written");
        // What was set is in the table now; the queues of the device and the scheme are not.
        let kept: Vec<&str> = match more {
            ["--queues", ..] => more.to_vec(),
            ["--scheme", scheme, ..] => vec!["--scheme", scheme],
            _ => Vec::new(),
        };
        let once_more = succeed(&[&["config", text(&file), "--for", "sonic"][..], &kept, device].concat());
        assert_eq!(once_more, told, "{name} {more:?}");
    }
    let database = out.join("config_db.json");
    fs::write(&database, "{\n\"QUEUE\": {\"Ethernet0|banana\": {}}}").expect("written");
    let output = incast(&["import", "sonic", text(&database)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("\"banana\" is no queue"), "{}", stderr(&output));
}

/// Commands that no test machine runs: the text is kept, so that a change of it is seen. That of EOS was compared with what
/// Arista's AVD renders for the same settings.
#[test]
fn commands_of_devices_that_are_not_here_are_as_they_were() {
    let spine: Vec<String> = (1..=4).map(|port| format!("Ethernet{port}/1@400Gbps")).collect();
    let ports = ["--switch", "spine0", "--ports"].into_iter().chain(spine.iter().map(String::as_str));
    let ports: Vec<&str> = ports.collect();
    let queues = ["--queues", "1=3:26", "0=6:48"];
    let nic = ["--set", "scheme.dcqcn.profile=nvidia"];
    for (target, more, kept) in [
        ("eos", &ports[..], include_str!("golden/roce.eos")),
        ("nxos", &ports[..], include_str!("golden/roce.nxos")),
        ("mlnx", &nic[..], include_str!("golden/roce.sh")),
    ] {
        let all = [&["config", "../../rigs/sonic/roce.toml", "--for", target][..], more, &queues].concat();
        assert_eq!(succeed(&all), kept, "{target}");
    }
}

#[test]
fn what_is_rounded_for_a_device_is_written_back_and_stays() {
    let out = folder("config-rounded");
    let roce = fs::read_to_string("../../rigs/sonic/roce.toml").expect("a scenario");
    let (file, rounded) = (out.join("there.toml"), out.join("rounded.toml"));
    // Numbers that devices do not have: parts of a kilobyte, of a per cent, of a microsecond, of a Mbit/s, and weights.
    let odd =
        roce.replace("min = \"400KB\", max = \"1600KB\", p = 0.2", "min = \"400400B\", max = \"1600600B\", p = 0.123");
    let odd = odd.replace(
        "priorities = 2\nscheduler = { kind = \"strict-over-dwrr\", strict = 1, weights = [4] }",
        "priorities = 4\nscheduler = { kind = \"dwrr\", weights = [2, 7, 5, 7] }",
    );
    let odd = odd.replace(
        "law = \"dcqcn\"",
        "law = \"dcqcn\"\nprofile = \"nvidia\"\nrate_on_first_cnp = 0.12345678\ngain = 0.01\nincrease_timer = \"100400ns\"\nadditive_increase = \"5.4Mbps\"",
    );
    fs::write(&file, odd).expect("written");
    let leaf: Vec<String> = (1..=8).map(|port| format!("Ethernet{port}@100Gbps")).collect();
    let leaf = leaf.iter().map(String::as_str).chain(["Ethernet49@400Gbps", "Ethernet50@400Gbps"]);
    let leaf: Vec<&str> = ["--switch", "leaf0", "--ports"].into_iter().chain(leaf).collect();
    for (target, more, expected) in [
        (
            "nxos",
            &leaf[..],
            ["1600600 B in the scenario, 1601000 B on the device", "400 kbytes maximum-threshold 1601 kbytes"],
        ),
        ("eos", &leaf[..], ["0.123 in the scenario, 0.12 on the device", "minimum-threshold 400400 bytes"]),
        (
            "mlnx",
            &[][..],
            [
                "additive_increase: \"5.4Mbps\" in the scenario, \"5Mbps\" on the NIC",
                "echo 100 >\"$ecn/roce_rp/rpg_time_reset\"",
            ],
        ),
    ] {
        let of = |file: &std::path::Path| {
            [&["config", text(file), "--for", target, "--queues", "1=3:26", "0=6:48"][..], more]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let first: Vec<String> =
            [of(&file), vec!["--as-rounded".into(), text(&rounded).into(), "--force".into()]].concat();
        let output = incast(&first.iter().map(String::as_str).collect::<Vec<_>>());
        let (said, told) = (stderr(&output), String::from_utf8_lossy(&output.stdout).into_owned());
        assert!(said.contains(expected[0]) && told.contains(expected[1]), "{target}: {said}\n{told}");
        let twice = out.join("twice.toml");
        let again: Vec<String> =
            [of(&rounded), vec!["--as-rounded".into(), text(&twice).into(), "--force".into()]].concat();
        let again = incast(&again.iter().map(String::as_str).collect::<Vec<_>>());
        let said = stderr(&again);
        assert!(!said.contains("on the device") && !said.contains("on the NIC"), "{target}: {said}");
        let read = |file: &std::path::Path| fs::read_to_string(file).expect("a scenario");
        assert_eq!(read(&twice), read(&rounded), "{target}: rounded again it stays what it is");
        // But for what a line says of the scenario and for its name, it is the same text.
        let bare = |text: &str| {
            let text = text.replace("roce-applied", "roce");
            text.lines().map(|line| line.split("    #").next().unwrap_or(line).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(bare(&String::from_utf8_lossy(&again.stdout)), bare(&told), "{target}");
    }
    let _ = fs::remove_file(&rounded);
    for (more, expected) in [
        (
            vec!["--for", "mlnx", "--queues", "1=3:26", "0=6:48", "--set", "scheme.dcqcn.byte_counter=10MB"],
            "at most 2097088B, or 0B for none",
        ),
        (
            vec!["--for", "mlnx", "--queues", "1=3:26", "0=6:48", "--set", "scheme.dcqcn.notification=ecn-echo"],
            "allowed is \"cnp\"",
        ),
        (
            vec!["--for", "mlnx", "--queues", "1=3:26", "0=6:48", "--set", "scheme.dcqcn.rate_on_first_cnp=0.9"],
            "at most 0.85 of the line's rate",
        ),
        (vec!["--for", "mlnx", "--queues", "1=3:26"], "each priority that the scheme uses is given once"),
        (vec!["--for", "mlnx", "--switch", "leaf0"], "--switch and --ports are about switches"),
        (vec!["--for", "eos", "--switch", "leaf0", "--ports", "Ethernet1@100Gbps"], "1 ports of 100Gbps"),
        (vec!["--for", "nxos", "--switch", "leaf0"], "--ports is missing"),
    ] {
        let all = [vec!["config", text(&file), "--as-rounded", text(&rounded)], more].concat();
        let output = incast(&all);
        assert_eq!(output.status.code(), Some(2), "{all:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected) && !rounded.exists(), "{all:?}: {}", stderr(&output));
    }
    fs::write(&file, FABRIC).expect("written");
    let output = incast(&[&["config", text(&file), "--for", "eos"][..], &PORTS].concat());
    assert!(stderr(&output).contains("--queues is missing"), "{}", stderr(&output));
}

/// What is written to be run is run beside the scenario: under a name of its own, with its seeds and no more warnings.
#[test]
fn what_a_device_takes_is_a_scenario_beside_the_first() {
    let out = folder("config-applied");
    let (file, rounded) = (out.join("fabric.toml"), out.join("applied.toml"));
    fs::write(&file, format!("seeds = [4, 2, 3]\n{FABRIC}")).expect("written");
    let write = |file: &std::path::Path| {
        let all = ["config", text(file), "--for", "linux", "--as-rounded", text(&rounded), "--force"];
        stderr(&incast(&all))
    };
    let said = write(&file);
    assert!(
        said.contains("3 runs fit; configuring the first: scheme dctcp (choose with --scheme and --only)"),
        "{said}"
    );
    for _ in 0..2 {
        let applied = fs::read_to_string(&rounded).expect("a scenario");
        assert!(applied.contains("name = \"ours-applied\""), "{applied}");
        let output = incast(&["check", text(&rounded)]);
        let checked = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert!(checked.contains("seeds = [4, 2, 3]"), "{checked}");
        assert!(!checked.contains("notification_priority, as"), "{checked}");
        write(&rounded);
    }
}

#[test]
fn what_is_not_there_is_named_as_it_was_typed() {
    let out = folder("config-typed");
    let file = out.join("fabric.toml");
    fs::write(&file, FABRIC).expect("written");
    let refused = |more: &[&str]| {
        let output = incast(&[&["config", text(&file)], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let said = refused(&["--for", "linux", "--scheme", "dctpc"]);
    assert!(said.starts_with("error: --scheme dctpc: ") && said.contains("did you mean \"dctcp\""), "{said}");
    let said = refused(&[&["--for", "sonic", "--switch", "s99"][..], &PORTS].concat());
    assert!(said.contains("--switch s99: there is no such switch, allowed is s0\n"), "{said}");
    let said = refused(&[&["--for", "sonic", "--switch", "S"][..], &PORTS].concat());
    assert!(said.contains("allowed is s0 (did you mean \"s0\"?)"), "{said}");
}

const NIC: &str = "[[workload]]\nclass = \"tcp\"\nkind = \"permutation\"\nsize = \"20KB\"\n\
    [[scheme]]\nname = \"it's DCQCN\"\nlaw = \"dcqcn\"\nprofile = \"nvidia\"\n\
    [[scheme]]\nname = \"scaled\"\nlaw = \"dcqcn\"\nbyte_counter = \"10MB\"\n\
    [[scheme]]\nname = \"both\"\nlaw = \"dcqcn\"\nprofile = \"nvidia\"\nby_class.tcp = { law = \"cubic\" }\n";

#[test]
fn hosts_of_one_class_have_its_law() {
    let out = folder("config-class");
    let file = out.join("both.toml");
    fs::write(&file, format!("{FABRIC}{NIC}").replacen("kind = \"perm", "class = \"roce\"\nkind = \"perm", 1))
        .expect("written");
    let of = |target: &str, more: &[&str]| {
        let all = [&["config", text(&file), "--scheme", "both", "--for", target][..], more].concat();
        let output = incast(&all);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    for (target, more, expected) in [
        ("linux", &[][..], "--class NAME writes the files for one class; for RoCE use --for mlnx"),
        (
            "mlnx",
            &[],
            "class tcp runs cubic; these NICs are told of dcqcn alone: --class NAME is for hosts of one class",
        ),
        (
            "linux",
            &["--class", "tpc"],
            "--class tpc: there is no such class, allowed is roce or tcp (did you mean \"tcp\"?)",
        ),
        ("linux", &["--class", "roce"], "law dcqcn: no Linux kernel runs it"),
    ] {
        let (code, said) = of(target, more);
        assert!(code == Some(2) && said.contains(expected), "{target} {more:?}: {said}");
    }
    let (code, said) = of("linux", &["--class", "tcp"]);
    assert!(code == Some(0) && said.contains("congctl cubic"), "{said}");
    // Of 1,448 B: RoCE needs 96 B more, TCP 52.
    assert!(said.contains("mtu 1544") && said.contains("RoCE's path MTU is 1024 B with it"), "{said}");
    let rounded = out.join("rounded.toml");
    let (code, said) = of("mlnx", &["--class", "roce", "--queues", "0=3:26", "--as-rounded", text(&rounded)]);
    assert!(code == Some(0) && said.contains("notifications (CNPs) share the queue of data"), "{said}");
    assert!(rounded.exists());
}

/// Every command is one line that a shell takes, and does what it says.
#[test]
fn a_run_ends_with_commands_that_are_commands() {
    let out = folder("config-apply");
    let file = out.join("it's ours.toml");
    fs::write(&file, format!("{FABRIC}{NIC}[grid]\n\"switch.ecn.at\" = [\"60KB\", \"90KB\"]\n")).expect("written");
    let results = out.join("results");
    let run = [
        "run",
        text(&file),
        "--out",
        text(&results),
        "--set",
        "switch.buffer.total = 17MB",
        "--set",
        "host.rto_min=1ms",
    ];
    let said = succeed(&run);
    let commands: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("apply: incast ")).collect();
    assert_eq!(commands.len(), 4, "{said}");
    for command in &commands {
        assert!(command.contains(" --only switch.ecn.at=60KB") && command.contains("rto_min=1ms"), "{command}");
        let line = format!("\"$0\" {command}");
        let shell = std::process::Command::new("sh").args(["-c", &line, text(&program())]).output();
        let output = shell.expect("a shell");
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        assert!(!stderr(&output).contains("runs fit"), "{command}: {}", stderr(&output));
    }
    for expected in [
        "apply: --only must choose one of 2 grid points; these commands have the first\n",
        "--for mlnx --queues 0=3:26 --scheme 'it'\\''s DCQCN' --only",
        "apply: and 1 more\n",
        "--for sonic|eos|nxos --scheme NAME --switch NAME --ports …\n",
        "apply: no host that incast config knows takes hpcc, scaled\n",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let one = succeed(&[&run[..], &["--force", "--only", "scheme=cubic,at=90KB,seed=1"]].concat());
    let commands: Vec<&str> = one.lines().filter(|line| line.starts_with("apply: ")).collect();
    assert_eq!(commands.len(), 1, "{one}");
    assert!(commands[0].ends_with(" --for linux --scheme cubic --only switch.ecn.at=90KB"), "{one}");
}

#[test]
fn what_network_control_has_is_told() {
    let out = folder("config-control");
    let roce = "../../rigs/sonic/roce.toml";
    let spine: Vec<String> = [0, 8, 16, 24].iter().map(|port| format!("Ethernet{port}@400Gbps")).collect();
    let ports: Vec<&str> =
        ["--switch", "spine0", "--ports"].into_iter().chain(spine.iter().map(String::as_str)).collect();
    let host = out.join("there");
    for target in ["sonic", "eos", "nxos"] {
        let all = [&["config", roce, "--for", target, "--out", text(&host), "--force"][..], &ports].concat();
        let note = "DSCP 48 is of a lossless queue, and DSCP 48 and 56 are network control's (CS6, CS7): give --queues";
        let said = stderr(&incast(&all));
        assert!(said.contains(note), "{target}: {said}");
        let said = stderr(&incast(&[&all[..], &["--queues", "1=3:26", "0=6:48"]].concat()));
        assert!(!said.contains("network control"), "{target}: {said}");
    }
}
