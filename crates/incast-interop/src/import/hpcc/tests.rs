use super::*;
use std::path::Path;

const TOPOLOGY: &str = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n0 3 100Gbps 0.001ms 0\n";
const FLOWS: &str = "2\n2 1 3 100 500000 2.000000000\n3 1 3 200 500000 2.001000000\n";
const CONFIG: &str = include_str!("testing/config.txt");

fn text(name: &str, content: &str) -> Result<Text, ImportError> {
    Text::new(Path::new(name), content.as_bytes().to_vec())
}

fn import_all(topology: &str, flows: &str, config: &str, paths: Option<&str>) -> Result<Imported, ImportError> {
    let paths = paths.map(|paths| text("paths.csv", paths)).transpose()?;
    let inputs = Inputs {
        topology: &text("topology.txt", topology)?,
        flows: &text("flow.txt", flows)?,
        config: &text("config.txt", config)?,
        paths: paths.as_ref(),
    };
    import(&inputs, &Names::new(Path::new("out/case.toml")))
}

/// The error of an import with one file changed.
fn refused(file: &str, content: &str) -> ImportError {
    let pick = |name: &str, good: &'static str| if name == file { content.to_owned() } else { good.to_owned() };
    let (topology, flows) = (pick("topology", TOPOLOGY), pick("flows", FLOWS));
    match import_all(&topology, &flows, &pick("config", CONFIG), None) {
        Err(error) => error,
        Ok(_) => panic!("accepted: {content}"),
    }
}

#[test]
fn what_is_imported_says_where_it_comes_from() {
    let imported = import_all(TOPOLOGY, FLOWS, CONFIG, None).expect("imported");
    assert_eq!(
        imported.topology.as_deref(),
        Some(
            "# Imported from topology.txt. hN and sN are its nodes N.\nhost h1\nhost h2\nhost h3\nswitch s0\n\
         link s0 h1 100Gbps 1us\nlink s0 h2 100Gbps 1us\nlink s0 h3 100Gbps 1us\n"
        )
    );
    assert_eq!(
        imported.flows,
        "# Imported from flow.txt. Times are from 2000000000 ns of the peer's clock on.\n\
         start_ps,src,dst,bytes,class\n0,h2,h1,500000,background\n999999000,h3,h1,500000,incast\n"
    );
    for line in [
        "name = \"case\"",
        "duration = \"1ms\"  # the last flow starts before",
        "drain = \"199ms\"  # SIMULATOR_STOP_TIME",
        "mtu = \"1KB\"  # PACKET_PAYLOAD_SIZE",
        "law = \"dcqcn\"  # CC_MODE",
        "increase_timer = \"300us\"  # RP_TIMER",
        "ecn = { kind = \"red-by-rate\", rates = [{ rate = \"100Gbps\", min = \"400KB\", max = \"1.6MB\", p = 0.2 }] }  # KMIN_MAP, KMAX_MAP, PMAX_MAP",
        "fct_txt = { origin = \"2s\" }  # FCT_OUTPUT_FILE: each run writes fct.txt",
    ] {
        assert!(imported.scenario.lines().any(|other| other == line), "{line}\n{}", imported.scenario);
    }
    let [warning] = &imported.warnings[..] else { panic!("{:?}", imported.warnings) };
    assert!(warning.starts_with("config.txt:46: ACK_HIGH_PRIO: 1 lets hosts"), "{warning}");
}

#[test]
fn every_key_of_the_configuration_is_read() {
    for (from, to, expected) in [
        ("CC_MODE 1", "CC_MODE 3", "base_rtt = \"4.16us\""),
        ("CC_MODE 1", "CC_MODE 7", "hyper_steps = 10.0"),
        ("CC_MODE 1", "CC_MODE 8", "law = \"dctcp-rate\""),
        ("HAS_WIN 0", "HAS_WIN 1", "in_flight = \"bdp\""),
        ("HAS_WIN 0", "HAS_WIN 1", "window = \"52KB\""),
        ("CLAMP_TARGET_RATE 0", "CLAMP_TARGET_RATE 1", "clamp_target = \"always\""),
        ("ENABLE_QCN 1", "ENABLE_QCN 0", "ecn = \"off\""),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 500 2 0", "link_down = \"h2-s0\""),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 500 2 0", "at = \"500us\""),
        ("PMAX_MAP 2 100000000000 0.2", "PMAX_MAP 2 100000000000 0", "min = \"1.6MB\", max = \"1.6MB\", p = 1.0"),
    ] {
        assert!(CONFIG.contains(from), "{from}");
        let imported = import_all(TOPOLOGY, FLOWS, &CONFIG.replace(from, to), None).expect(to);
        assert!(imported.scenario.contains(expected), "{to}: {expected}\n{}", imported.scenario);
    }
    let lossy = import_all(TOPOLOGY, FLOWS, &CONFIG.replace("LINK 0.0000", "LINK 0.001"), None);
    assert!(lossy.expect("imported").topology.is_some_and(|text| text.contains("link s0 h1 100Gbps 1us 0.001")));
}

#[test]
fn what_is_not_honoured_is_said() {
    for (from, to, expected) in [
        ("RATE_BOUND 1", "RATE_BOUND 0", "RATE_BOUND"),
        ("L2_ACK_INTERVAL 1", "L2_ACK_INTERVAL 64", "acknowledges every packet"),
        ("GLOBAL_T 1", "GLOBAL_T 0", "GLOBAL_T"),
        ("ENABLE_QCN 1", "ENABLE_QCN 1\nENABLE_QCN 1", "the last one counts"),
        ("ENABLE_TRACE 0", "ENABLE_TRACE 1", "packet trace"),
    ] {
        let imported = import_all(TOPOLOGY, FLOWS, &CONFIG.replace(from, to), None).expect(to);
        let warning = imported.warnings.iter().any(|warning| warning.contains(expected));
        assert!(warning, "{to}: {:?}", imported.warnings);
    }
    let unknown = CONFIG.replace("RATE_BOUND 1", "RATE_BUOND 1\nFANCY_MODE 3");
    let error = import_all(TOPOLOGY, FLOWS, &unknown, None).expect_err("unknown").to_string();
    assert!(error.contains("`RATE_BUOND` (did you mean RATE_BOUND?), `FANCY_MODE`"), "{error}");
    let imported = import_all(
        &format!("{TOPOLOGY}First line: total node #, switch node #, link #\n"),
        &format!("{FLOWS}First line: flow #\n"),
        CONFIG,
        None,
    );
    assert_eq!(imported.expect("the files of the simulator's repository end like that").warnings.len(), 3);
    let imported = import_all(TOPOLOGY, "2\n2 1 3 100 5 2.1\n3 1 0 100 5000000000 2.0\n", CONFIG, None);
    assert_eq!(imported.expect("imported").warnings.len(), 4);
}

#[test]
fn lines_may_end_as_on_windows() {
    let turned = |text: &str| text.replace('\n', "\r\n");
    let imported = import_all(&turned(TOPOLOGY), &turned(FLOWS), &turned(CONFIG), None).expect("imported");
    assert_eq!(imported.flows, import_all(TOPOLOGY, FLOWS, CONFIG, None).expect("imported").flows);
}

#[test]
fn paths_lead_from_end_to_end() {
    let good = "src,dst,sport,data_path,ack_path\n2,1,10000,2-0-1,1-0-2\n3,1,10000,3-0-1,1-0-3\n";
    let imported = import_all(TOPOLOGY, FLOWS, CONFIG, Some(good)).expect("imported");
    assert!(imported.flows.contains("start_ps,src,dst,bytes,class,path,reverse_path\n"));
    assert!(imported.flows.contains(",background,h2 s0 h1,h1 s0 h2\n"), "{}", imported.flows);
    for (from, to, line, expected) in [
        ("ack_path", "ackpath", 1, "no column `ack_path`"),
        ("2-0-1", "2-1", 2, "no link joins"),
        ("2-0-1", "2-0-3", 2, "does not lead from 2 to 1"),
        ("2-0-1", "2--1", 2, "allowed is a whole number"),
        ("2,1,", "3,1,", 2, "src: found `3`, flow 1 has 2"),
        (",1-0-3", "", 3, "found 4 cells"),
        ("3,1,10000,3-0-1,1-0-3\n", "", 0, "the paths of 1 flows, there are 2"),
        ("1-0-3\n", "1-0-3\n3,1,1,3-0-1,1-0-3\n", 4, "this row is one more"),
    ] {
        let error = import_all(TOPOLOGY, FLOWS, CONFIG, Some(&good.replacen(from, to, 1))).expect_err(to);
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(expected), "{error}");
    }
    // Two switches that a path goes to and fro between.
    let topology = "4 2 3\n0 1\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n";
    let flows = "1\n2 3 3 100 500000 2\n";
    let paths = |data: &str| format!("src,dst,data_path,ack_path\n2,3,{data},3-1-0-2\n");
    let straight = import_all(topology, flows, CONFIG, Some(&paths("2-0-1-3"))).expect("imported");
    assert!(straight.flows.contains(",h2 s0 s1 h3,h3 s1 s0 h2\n"), "{}", straight.flows);
    let error = import_all(topology, flows, CONFIG, Some(&paths("2-0-1-0-1-3"))).expect_err("a loop");
    assert_eq!(error.line, 2, "{error}");
    assert!(error.message.contains("no shortest path to h3 leads from s1 to s0"), "{error}");
}

/// What a mode does not use need not be there, and what it uses must.
#[test]
fn keys_are_wanted_where_they_are_used() {
    let without = |mode: &str, key: &str| {
        let config = CONFIG.replace("CC_MODE 1", mode);
        let config: Vec<&str> = config.lines().filter(|line| !line.starts_with(key)).collect();
        import_all(TOPOLOGY, FLOWS, &config.join("\n"), None)
    };
    for (mode, key, wanted) in [
        ("CC_MODE 1", "RATE_HAI", true),
        ("CC_MODE 3", "RATE_HAI", false),
        ("CC_MODE 7", "RATE_HAI", true),
        ("CC_MODE 8", "RATE_HAI", false),
        ("CC_MODE 3", "RATE_AI", true),
        ("CC_MODE 8", "RATE_AI", false),
        ("CC_MODE 8", "KMIN_MAP", true),
        ("CC_MODE 3", "KMIN_MAP", false),
        ("CC_MODE 7", "PMAX_MAP", false),
    ] {
        match without(mode, key) {
            Ok(_) => assert!(!wanted, "{mode} without {key}"),
            Err(error) => {
                assert!(wanted && error.message.contains(&format!("the key {key} is missing")), "{mode}: {error}");
            }
        }
    }
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let cases = [
        ("topology", "", 1, "the file ends here"),
        ("topology", "4 1\n0\n", 1, "found 2 words"),
        ("topology", "4 1 0\n0\n", 1, "links: found `0`"),
        ("topology", "4 0 3\n\n0 1 1Gbps 1us 0\n", 1, "switches: found `0`"),
        ("topology", "4 -1 3\n0\n", 1, "switches: found `-1`"),
        ("topology", "99999999999999999999 1 3\n0\n", 1, "nodes: found"),
        ("topology", "4294967295 1 3\n0\n", 1, "nodes: found"),
        ("topology", "4 1 4000000000\n0\n0 1 1Gbps 1us 0\n", 3, "link 2 of 4000000000"),
        ("topology", "4 2 3\n0\n", 2, "found 1 ids"),
        ("topology", "4 2 3\n0 0\n", 2, "there twice"),
        ("topology", "4 1 3\n7\n", 2, "a switch's id: found `7`"),
        ("topology", "4 1 3\n0\n0 1 100Gbps\n", 3, "found 3 words"),
        ("topology", "4 1 3\n0\n0 1 100Gbps 1us 0 9000\n", 3, "an MTU or other properties of a link are not there"),
        ("topology", "4 1 1 3 1 1 1 1\n0\n", 1, "found 8 words"),
        ("topology", "4 2 3 1 3 A100\n0 1 2 3\n", 1, "found 4 switches of 4 nodes"),
        ("topology", "4 1 3\n0\n0 9 100Gbps 1us 0\n", 3, "a node: found `9`"),
        ("topology", "4 1 3\n0\n1 1 100Gbps 1us 0\n", 3, "to itself"),
        ("topology", "4 1 3\n0\n1 2 100Gbps 1us 0\n", 3, "are hosts"),
        ("topology", "4 1 3\n0\n0 1 0Gbps 1us 0\n", 3, "rate: found `0Gbps`"),
        ("topology", "4 1 3\n0\n0 1 1bps 1us 0\n0 2 1Gbps 1us 0\n0 3 1Gbps 1us 0\n", 3, "1Kbps to 100Tbps"),
        ("topology", "4 1 3\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 11s 0\n0 3 100Gbps 1us 0\n", 4, "at most 10s"),
        ("topology", "4 1 3\n0\n0 1 1Gbps -1us 0\n", 3, "delay: found `-1us`"),
        ("topology", "4 1 3\n0\n0 1 1Gbps 1us 1\n", 3, "loss: found `1`"),
        (
            "topology",
            "4 1 3\n0\n0 1 1Gbps 1us 0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n",
            4,
            "has the link of line 3 already",
        ),
        ("topology", "4 1 2\n0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", 1, "the host 3 has no link"),
        ("topology", "4 1 3\n0\0\n", 2, "character"),
        ("flows", "", 0, "empty"),
        ("flows", "1 2\n", 1, "found 2 words"),
        ("flows", "0\n", 1, "number of flows: found `0`"),
        ("flows", "-1\n", 1, "number of flows: found `-1`"),
        ("flows", "18446744073709551615\n", 1, "number of flows"),
        ("flows", "10000000\n2 1 3 100 5 2\n", 2, "the file ends after 1 flows"),
        ("flows", "1\n2 1 3 100\n", 2, "found 4 words"),
        ("flows", "2\n2 1 3 100 5 2\n2 1 3 5 2\n", 3, "found 5 words, wanted is `src dst pg dport size start`"),
        ("flows", "1\n2 1 3 100 5 2.0 2.5\n", 2, "flows that stop at a time are not there"),
        ("flows", "1\n2 1 3 -5 2.0\n", 2, "size: found `-5`"),
        ("flows", "1\n2 1 3 5 2.0 18446744073709551616\n", 2, "group: found"),
        ("flows", "1\n0 1 3 100 5 2\n", 2, "src: 0 is no host"),
        ("flows", "1\n2 7 3 100 5 2\n", 2, "dst: 7 is no host"),
        ("flows", "1\n2 2 3 100 5 2\n", 2, "to itself"),
        ("flows", "1\n2 1 9 100 5 2\n", 2, "pg: found `9`"),
        ("flows", "1\n2 1 3 70000 5 2\n", 2, "dport: found"),
        ("flows", "1\n2 1 3 100 -5 2\n", 2, "size: found `-5`"),
        ("flows", "1\n2 1 3 100 0 2\n", 2, "size: found `0`"),
        ("flows", "1\n2 1 3 100 5 -2\n", 2, "start: found `-2`"),
        ("flows", "1\n2 1 3 100 5 NaN\n", 2, "start: found `NaN`"),
        ("flows", "1\n2 1 3 100 5 9\n", 0, "SIMULATOR_STOP_TIME is before"),
        ("config", "", 0, "CC_MODE is missing"),
        ("config", "CC_MODE 10\n", 1, "HPCC-PINT, is not supported"),
        ("config", "\nCC_MODE 2\n", 2, "found `2`, allowed is 1 (DCQCN)"),
        ("config", "CC_MODE\n", 1, "found 0 values"),
        ("config", "CC_MODE 1 2\n", 0, "the keys RATE_AI, RATE_HAI, KMIN_MAP, KMAX_MAP, PMAX_MAP are missing"),
        ("config", "CC_MODE 1\nLB_MODE 9\n", 2, "LB_MODE: 9, ConWeave, is not supported, allowed is 0 (ECMP)"),
        ("config", "CC_MODE 11\nLB_MODE 3\n", 1, "LB_MODE: 3, CONGA"),
        ("config", "ns3::RdmaHw::CcMode 3\n", 1, "names of attributes"),
        ("config", "{a comment that names CC_MODE as one}\n", 1, "CC_MODE: found `as`"),
    ];
    for (file, content, line, expected) in cases {
        let error = refused(file, content);
        assert_eq!(error.line, line, "{content:?}: {error}");
        assert!(error.message.contains(expected), "{content:?}: {error}");
    }
    for (from, to, expected) in [
        ("KMAX_MAP 2", "KMAX_MAP 3", "found 4 words after 3, wanted are 6"),
        ("KMAX_MAP 2", "KMAX_MAP 4000000000", "KMAX_MAP: found"),
        ("KMAX_MAP 2 100000000000 1600", "KMAX_MAP 1", "KMAX_MAP: nothing for 100Gbps, which line 3"),
        ("KMAX_MAP 2 100000000000 1600", "KMAX_MAP 2", "KMAX_MAP: found 2 words after 2, wanted are 4"),
        ("KMIN_MAP 2 100000000000", "KMIN_MAP 2 200000000000", "nothing for 100Gbps, which line 3"),
        ("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 4000", "found 4000 KB for 100Gbps"),
        ("RATE_AI 20Mb/s", "RATE_AI x20", "RATE_AI: found `x20`"),
        ("SIMULATOR_STOP_TIME 2.2", "SIMULATOR_STOP_TIME inf", "SIMULATOR_STOP_TIME: found `inf`"),
        ("EWMA_GAIN 0.00390625", "EWMA_GAIN -1", "EWMA_GAIN: found `-1`"),
        ("RP_TIMER 300", "RP_TIMER nan", "RP_TIMER: found `nan`"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 0 0", "LINK_DOWN: found 2 values"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 5 1 2", "no link joins 1 and 2"),
        ("BUFFER_SIZE 32", "BUFFER_SIZE 99999999", "BUFFER_SIZE: found"),
        ("PACKET_PAYLOAD_SIZE 1000", "PACKET_PAYLOAD_SIZE 9", "PACKET_PAYLOAD_SIZE: found"),
    ] {
        assert!(CONFIG.contains(from), "{from}");
        let line = CONFIG[..CONFIG.find(from).unwrap_or(0)].matches('\n').count() + 1;
        let error = refused("config", &CONFIG.replacen(from, to, 1));
        assert!(error.message.contains(expected), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}

/// Four hosts' worth of the descendants' topologies are the same as HPCC's.
#[test]
fn headers_and_links_of_descendants_are_read() {
    let plain = "4 1 3\n3\n0 3 100Gbps 0.001ms 0\n1 3 100Gbps 0.001ms 0\n2 3 100Gbps 0.001ms 0\n";
    let flows = "2\n0 2 3 100 1000000 2.0\n1 2 3 101 1000000 2.0\n";
    let expected = import_all(plain, flows, CONFIG, None).expect("imported");
    let said = |imported: &Imported, what: &str| imported.notes.iter().any(|note| note.contains(what));
    for (topology, unused) in [
        (plain.replace(" 0\n", "\n"), ""),
        (plain.replace("4 1 3", "4 1 1 3").replace("100Gbps 0.001ms", "100000000000.0 1us"), "tors"),
        (plain.replace("4 1 3", "4 1 1 3 100 400"), "the speeds of leaves and spines"),
        (plain.replace("4 1 3", "4 2 0 1 3 H100"), "gpus_per_server, gpu_type"),
        (plain.replace("4 1 3", "4 2 1 0 3 H100 2"), "gpus_per_node"),
    ] {
        let imported = import_all(&topology, flows, CONFIG, None).expect(&topology);
        assert_eq!(imported.topology, expected.topology, "{topology}");
        assert_eq!(imported.scenario, expected.scenario, "{topology}");
        assert!(said(&imported, unused), "{topology}: {:?}", imported.notes);
        let warned = imported.warnings.iter().any(|warning| warning.contains("--algorithm"));
        assert_eq!(warned, unused.starts_with("tors") || unused.starts_with("the speeds"), "{topology}");
    }
}

/// Hosts with NVLink and a NIC go on with the NIC; only flows inside a server need the other.
#[test]
fn nvswitches_are_left_out_where_hosts_have_a_nic() {
    let topology = "6 2 1 1 6 A100\n4 5\n0 4 2400Gbps 0.000025ms 0\n1 4 2400Gbps 0.000025ms 0\n\
                    0 5 100Gbps 0.0005ms 0\n1 5 100Gbps 0.0005ms 0\n2 5 100Gbps 0.0005ms 0\n3 5 100Gbps 0.0005ms 0\n";
    let imported = import_all(topology, "1\n0 2 3 100 5000 2.0\n", CONFIG, None).expect("imported");
    assert!(imported.warnings.iter().any(|warning| warning.contains("1 NVSwitches with 2 links are left out")));
    let ours = imported.topology.expect("a file");
    assert!(!ours.contains("s4") && !ours.contains("h4") && ours.contains("link h3 s5"), "{ours}");
    let error = import_all(topology, "2\n0 2 3 100 5000 2\n0 1 3 100 5000 2\n", CONFIG, None).expect_err("inside");
    assert_eq!(error.line, 3, "{error}");
    assert!(error.message.contains("0 and 1 are joined by the NVSwitch 4"), "{error}");
    // A host that has NVLink alone keeps the switch, and then another one has two links.
    let error = import_all(&topology.replace("1 5 100", "3 5 100"), "1\n0 2 3 100 5000 2.0\n", CONFIG, None);
    let error = error.expect_err("two NICs");
    assert_eq!(error.line, 5, "{error}");
    assert!(error.message.starts_with("the host 0 has the link of line 3 already"), "{error}");
    assert!(error.message.contains("instead write a host of its own for each NIC"), "{error}");
}

/// What astra-sim/astra-network-ns3 ships, but for what is recorded: its senders react to nothing.
#[test]
fn no_control_is_a_constant_window() {
    let astra = CONFIG.replace("CC_MODE 1", "CC_MODE 12").replace("GLOBAL_T 1", "GLOBAL_T 0");
    let scheme = |config: &str| {
        let scenario = import_all(TOPOLOGY, FLOWS, config, None).expect(config).scenario;
        let scheme =
            scenario.split("[[scheme]]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        assert!(scenario.contains("ecn = \"off\"  # the law does not look at marks"), "{scenario}");
        scheme.to_owned()
    };
    for (from, to) in [("VAR_WIN 0", "VAR_WIN 0"), ("VAR_WIN 0", "VAR_WIN 1"), ("RATE_HAI", "#")] {
        let found = scheme(&astra.replace("HAS_WIN 0", "HAS_WIN 1").replace(from, to));
        let lines: Vec<&str> = found.lines().collect();
        let [assumed, law, window] = lines[..] else { panic!("{found}") };
        assert!(assumed.starts_with("# Assumed of mode 12: no reaction to anything"), "{found}");
        assert_eq!(law, "law = \"constant-window\"  # CC_MODE 12: no congestion control");
        assert!(window.starts_with("window = \"52KB\"  # HAS_WIN: T and the topology"), "{found}");
    }
    assert!(scheme(&astra).contains("law = \"constant-rate\"  # CC_MODE 12 with HAS_WIN 0"), "{}", scheme(&astra));
    assert!(scheme(&format!("{astra}ENABLE_IRN 1\n")).contains("window = \"52KB\"  # ENABLE_IRN"));
}

#[test]
fn flows_of_descendants_are_read() {
    let imported = |flows: &str| import_all(TOPOLOGY, flows, CONFIG, None).expect(flows);
    let rows = |flows: &str| imported(flows).flows.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    for (flows, form, row) in [
        ("1\n2 1 3 1000000 2\n", "`src dst pg size start`", "0,h2,h1,1000000,background"),
        ("1\n2 1 3 0 2\n", "`src dst pg size start`", "0,h2,h1,1,background"),
        ("1\n2 1 3 1000000 2.0 7\n", "`src dst pg size start group`", "0,h2,h1,1000000,group-7"),
        ("1\n2 1 3 100 1000000 2.0\n", "`src dst pg dport size start`", "0,h2,h1,1000000,background"),
        ("1\n2 1 3 100 1000000 2.0 7\n", "`src dst pg dport size start group`", "0,h2,h1,1000000,group-7"),
    ] {
        assert_eq!(rows(flows), [row], "{flows}");
        let notes = imported(flows).notes;
        assert!(notes.iter().any(|note| note.contains(form)), "{flows}: {notes:?}");
    }
}

#[test]
fn comments_and_what_is_not_used_are_named() {
    let config = "CC_MODE 3 {1: DCQCN, 3: HPCC}\nU_TARGET 0.95 # eta\nRATE_AI 50Mb/s\nMIN_RATE 1000000000\n\
                  BUFFER_SIZE 32\nPINT_PROB 1.0\nFCT_OUTPUT_FILE fct.txt\nHAS_WIN 1 VAR_WIN 1\n\
                  SIMULATOR_STOP_TIME 40000000000000.00\n";
    let imported = import_all(TOPOLOGY, FLOWS, config, None).expect("imported");
    for line in ["min_rate = \"1Gbps\"  # MIN_RATE", "law = \"hpcc\"  # CC_MODE"] {
        assert!(imported.scenario.lines().any(|other| other == line), "{line}\n{}", imported.scenario);
    }
    assert!(!imported.warnings.iter().any(|warning| warning.contains("HPCC without a window")));
    for expected in [
        "skipped, as the peer does: line 1, 2",
        "ignored, as files and what is recorded: FCT_OUTPUT_FILE",
        "read and not used: PINT_PROB (only CC_MODE 10 uses it)",
    ] {
        assert!(imported.notes.iter().any(|note| note.contains(expected)), "{expected}: {:?}", imported.notes);
    }
    let late = |warning: &String| warning.contains("config.txt:9: SIMULATOR_STOP_TIME is later than our clock goes");
    assert!(imported.warnings.iter().any(late), "{:?}", imported.warnings);
}

#[test]
fn the_last_value_of_a_speed_counts() {
    let map = "KMAX_MAP 2 100000000000 1600 400000000000 6400";
    assert!(CONFIG.contains(map));
    let twice = CONFIG.replace(map, "KMAX_MAP 2 100000000000 1600 100000000000 800 400000000000 6400");
    let imported = import_all(TOPOLOGY, FLOWS, &twice, None).expect("imported");
    assert!(imported.scenario.contains("min = \"400KB\", max = \"800KB\""), "{}", imported.scenario);
    for expected in ["found `100000000000` twice", "the numbers behind the last pair are skipped"] {
        assert!(imported.warnings.iter().any(|warning| warning.contains(expected)), "{:?}", imported.warnings);
    }
}

#[test]
fn keys_of_conweave_change_the_scenario() {
    let config = CONFIG
        .replace("SIMULATOR_STOP_TIME 2.2", "FLOWGEN_STOP_TIME 2.1")
        .replace("LINK_DOWN 0 0 0", "LINK_DOWN 500 2 0");
    let config = format!("{config}ENABLE_PFC 0\nENABLE_IRN 1\nLB_MODE 0\nFLOWGEN_START_TIME 2.001\nLOAD 50\n");
    let imported = import_all(TOPOLOGY, FLOWS, &config, None).expect("imported");
    for line in [
        "pfc = false  # ENABLE_PFC",
        "recovery = \"selective-repeat\"  # ENABLE_IRN",
        "in_flight = \"bdp\"  # HAS_WIN, VAR_WIN, ENABLE_IRN",
        // 2.1 s and ten more, from 2 s on.
        "drain = \"10.099s\"  # SIMULATOR_STOP_TIME",
        "at = \"1499.999us\"  # LINK_DOWN",
    ] {
        assert!(imported.scenario.lines().any(|other| other == line), "{line}\n{}", imported.scenario);
    }
    for expected in ["ENABLE_PFC: 0 drops packets", "ENABLE_IRN: 1 is selective repeat", "acknowledgements before data"]
    {
        assert!(imported.warnings.iter().any(|warning| warning.contains(expected)), "{:?}", imported.warnings);
    }
}

mod never_panics {
    use super::*;
    use crate::import::testing::mutated;
    use proptest::prelude::*;

    fn try_all(topology: Vec<u8>, flows: Vec<u8>, config: Vec<u8>) -> Result<Imported, ImportError> {
        let inputs = Inputs {
            topology: &Text::new(Path::new("topology.txt"), topology)?,
            flows: &Text::new(Path::new("flow.txt"), flows)?,
            config: &Text::new(Path::new("config.txt"), config)?,
            paths: None,
        };
        import(&inputs, &Names::new(Path::new("case.toml")))
    }

    proptest! {
        #[test]
        fn on_bytes(one in proptest::collection::vec(any::<u8>(), 0..200), which in 0..3) {
            let mut files = [TOPOLOGY, FLOWS, CONFIG].map(|good| good.as_bytes().to_vec());
            files[which as usize] = one;
            let [topology, flows, config] = files;
            let _ = try_all(topology, flows, config);
        }

        /// What is accepted is a scenario that can be read.
        #[test]
        fn on_nearly_good_files(topology in mutated(TOPOLOGY), flows in mutated(FLOWS), config in mutated(CONFIG)) {
            if let Ok(imported) = try_all(topology, flows, config) {
                prop_assert!(imported.scenario.parse::<toml::Table>().is_ok(), "{}", imported.scenario);
                prop_assert!(incast_sim::topology::file::parse(&imported.topology.unwrap_or_default()).is_ok());
                prop_assert!(incast_lab::workload::trace::read_csv(imported.flows.as_bytes()).is_ok());
            }
        }
    }
}
