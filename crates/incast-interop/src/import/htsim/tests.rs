use super::*;
use incast_lab::scenario::{Scenario, Source};
use std::path::Path;

const MATRIX: &str = "Nodes 128\nConnections 2\n103->32 id 1 start 0 size 2000000\n34->109 id 2 start 1000 size 1\n";
const CLOS: &str = "# three tiers\nNodes 128\nTiers 3\nPodsize 16\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
                    Downlink_Latency_ns 1000\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\nDownlink_Latency_ns 1000\n\n\
                    tier 2\ndownlink_speed_gbps 100\nradix_down 8\ndownlink_latency_ns 1000\n";
const LEAF_SPINE: &str = "Nodes 128\nTiers 2\nPodsize 128\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
                          Downlink_Latency_ns 1000\nSwitch_Latency_ns 301\nOversubscribed 4\n\n\
                          Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 16\nDownlink_Latency_ns 500\nSwitch_Latency_ns 100\n";
/// Pairs of links between all switches: half as many aggregation switches, and half as many cores.
const BUNDLES: &str = "Nodes 128\nTiers 3\nPodsize 16\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
                       Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 8\nDownlink_Latency_ns 1000\n\
                       Bundle 2\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 16\nDownlink_Latency_ns 1000\nBundle 2\n";

fn text(name: &str, content: &str) -> Result<Text, ImportError> {
    Text::new(Path::new(name), content.as_bytes().to_vec())
}

fn import_all(matrix: &str, topology: Option<&str>, law: &str) -> Result<Imported, ImportError> {
    let topology = topology.map(|content| text("f.topo", content)).transpose()?;
    let inputs = Inputs { matrix: &text("m.cm", matrix)?, topology: topology.as_ref(), law };
    import(&inputs, &Names::new(Path::new("out/case.toml")))
}

fn has(imported: &Imported, lines: &[&str]) {
    for line in lines {
        assert!(imported.scenario.lines().any(|other| other == *line), "{line}\n{}", imported.scenario);
    }
}

#[test]
fn connections_become_full_packets_on_a_fat_tree() {
    let imported = import_all(MATRIX, None, "ndp").expect("imported");
    assert_eq!(
        imported.flows,
        "# Imported from m.cm. Sizes are rounded up to full packets of 4096 bytes.\nstart_ps,src,dst,bytes,id\n\
         0,h103,h32,2002944,1\n1000,h34,h109,4096,2\n"
    );
    assert_eq!((imported.topology.as_deref(), &imported.warnings[..]), (None, &[][..]));
    has(
        &imported,
        &[
            "name = \"case\"",
            "duration = \"2ns\"  # the last connection starts before",
            "k = 8  # the smallest that has so many hosts",
            "link = { rate = \"100Gbps\", delay = \"1us\" }  # what the peer has without a file",
            "trim = { queue = 13, header_queue = \"122880B\", victim = \"either\", header_weight = \"strict\", \
             return_to_sender = true }  # -q 15: 61440 bytes with the packet in service",
            "load_balancing = \"spray-permutation\"  # -strat perm",
            "path_penalty = false  # -strat perm leaves no path out",
            "frames = { header = \"64B\", control = \"64B\", notification = \"64B\", min_size = \"64B\" }  # the peer's NDP",
            "unscheduled = \"204.8KB\"  # -cwnd 50",
            "pull_rate = 0.99  # of the receiver's link",
        ],
    );
}

/// csg-htsim's own examples have size 0; what another start has is another workload.
#[test]
fn connections_without_an_end_last_as_long_as_the_run() {
    let matrix = "Nodes 16\nConnections 4\n1->0 start 0.000000 size 0\n2->0 start 0\n3->0 start 1000000 size 0\n\
                  4->0 start 5 size 4096\n";
    let imported = import_all(matrix, None, "dctcp").expect("imported");
    has(
        &imported,
        &[
            "duration = \"1.001ms\"  # 1 ms after the last start: the peer's -end is 1000 us unless given",
            "drain = \"0ps\"  # connections without an end last as long as the run",
            "class = \"endless\"",
            "class = \"endless-2\"",
            "    [\"h2\", \"h0\"],",
            "class = \"connections\"",
        ],
    );
    assert!(imported.flows.ends_with("start_ps,src,dst,bytes,id\n5,h4,h0,4096,\n"), "{}", imported.flows);
    let [warning] = &imported.warnings[..] else { panic!("{:?}", imported.warnings) };
    assert!(warning.starts_with("m.cm:3: no size, or size 0: 3 connections last until the run ends"), "{warning}");
    // Without others there is no trace in the scenario.
    let alone = import_all("Nodes 16\nConnections 1\n1->0 start 0 size 0\n", None, "ndp").expect("imported");
    assert!(!alone.scenario.contains("kind = \"trace\""), "{}", alone.scenario);
    let text = alone.scenario.clone();
    let parsed = Scenario::parse(Source { path: "case.toml".into(), text }, &[]);
    assert!(parsed.is_ok(), "{:?}", parsed.err());
    let rows: String = (0..17).map(|start| format!("1->0 start {start} size 0\n")).collect();
    let error = import_all(&format!("Nodes 16\nConnections 17\n{rows}"), None, "ndp").expect_err("too many");
    assert!(error.line == 19 && error.message.contains("more than 16 different starts"), "{error}");
}

#[test]
fn the_fat_tree_is_the_smallest_with_so_many_hosts() {
    for (nodes, k, warned) in [(2, 2, false), (16, 4, false), (17, 6, true), (432, 12, false), (1024, 16, false)] {
        let matrix = format!("Nodes {nodes}\nConnections 1\n0->1 start 0 size 5\n");
        let imported = import_all(&matrix, None, "dctcp").expect("imported");
        has(&imported, &[&format!("k = {k}  # the smallest that has so many hosts")]);
        assert_eq!(imported.warnings.len(), usize::from(warned), "{nodes}: {:?}", imported.warnings);
    }
    let error = import_all("Nodes 2097152\nConnections 1\n0->1 start 0 size 5\n", None, "ndp");
    let error = error.expect_err("too many nodes");
    assert!(error.line == 1 && error.message.contains("allowed is"), "{error}");
}

#[test]
fn a_topology_file_becomes_the_kind_that_it_describes() {
    let clos = import_all(MATRIX, Some(CLOS), "ndp").expect("imported");
    let link = "{ rate = \"100Gbps\", delay = \"1us\" }  # Downlink_speed_Gbps, Downlink_Latency_ns";
    has(
        &clos,
        &[
            "kind = \"clos3\"  # Tiers",
            "pods = 8  # Nodes / Podsize",
            "tors_per_pod = 4  # Podsize / Radix_Down",
            "aggs_per_pod = 4  # Radix_Up",
            "cores = 16  # Radix_Up",
            "hosts_per_tor = 4  # Radix_Down",
            &format!("host_link = {link}"),
            &format!("agg_core_link = {link}"),
        ],
    );
    let leaf_spine = import_all(MATRIX, Some(LEAF_SPINE), "ndp").expect("imported");
    has(
        &leaf_spine,
        &[
            "kind = \"leaf-spine\"  # Tiers",
            "leaves = 16  # Podsize / Radix_Down",
            "spines = 2  # Radix_Up",
            "hosts_per_leaf = 8  # Radix_Down",
            // Half of what the switch below and the one above take.
            "host_link = { rate = \"100Gbps\", delay = \"1150.5ns\" }  # Downlink_speed_Gbps, Downlink_Latency_ns",
            "fabric_link = { rate = \"100Gbps\", delay = \"700.5ns\" }  # Downlink_speed_Gbps, Downlink_Latency_ns",
        ],
    );
    assert!(clos.topology.is_none() && leaf_spine.topology.is_none());
}

#[test]
fn parallel_links_are_keys() {
    let imported = import_all(MATRIX, Some(BUNDLES), "ndp").expect("imported");
    has(&imported, &["kind = \"clos3\"  # Tiers", "tor_agg_links = 2  # Bundle", "agg_core_links = 2  # Bundle"]);
    assert!(imported.topology.is_none());
}

#[test]
fn queues_of_a_topology_file_are_those_of_the_switches() {
    let with = |up: &str, down: &str| {
        CLOS.replace("Radix_Up 4\n", &format!("Radix_Up 4\nQueue_Up {up}\nQueue_Down {down}\n"))
            .replace("radix_down 8\n", &format!("radix_down 8\nqueue_down {down}\n"))
    };
    let imported = import_all(MATRIX, Some(&with("41600", "41600")), "ndp").expect("imported");
    assert!(imported.scenario.contains("queue = 9, header_queue = \"83200B\""), "{}", imported.scenario);
    let imported = import_all(MATRIX, Some(&with("41600", "41600")), "dctcp").expect("imported");
    has(&imported, &["buffer = { per_port = \"41600B\" }  # Queue_Up, Queue_Down"]);
    let error = import_all(MATRIX, Some(&with("41600", "41601")), "ndp").expect_err("two sizes");
    assert!(error.message.contains("Queue_Up: found 41600, but 41601 at line 11"), "{error}");
    let some = CLOS.replace("radix_down 8\n", "radix_down 8\nqueue_down 5000\n");
    let error = import_all(MATRIX, Some(&some), "ndp").expect_err("not everywhere");
    assert!(error.message.contains("Queue_Down: found 5000, but none at line 6"), "{error}");
}

#[test]
fn faults_of_a_topology_have_a_line() {
    for (file, from, to, line, expected) in [
        (CLOS, "Nodes 128", "Nodes 64", 2, "Nodes: found 64, but the matrix has 128"),
        (CLOS, "Tiers 3", "Tiers 4", 3, "Tiers: found `4`"),
        (CLOS, "Tiers 3\n", "", 5, "Tiers is missing"),
        (CLOS, "Podsize 16", "Podsize 48", 4, "Podsize: found 48"),
        (CLOS, "Podsize 16\n", "", 0, "Podsize is missing"),
        (CLOS, "Tier 0", "Tier 3", 6, "Tier: found `3`, allowed is a whole number from 0 to 2"),
        (CLOS, "tier 2", "Tier 1", 18, "tier 1 is in line 12 already"),
        (CLOS, "Radix_Up 4", "Radix_Pu 4", 9, "did you mean Radix_Up?"),
        (CLOS, "Radix_Up 4", "Nodes 4", 9, "Nodes is of the whole"),
        (CLOS, "Radix_Up 4\n", "Radix_Up 4\nRadix_Up 4\n", 10, "Radix_Up is in line 9 already"),
        (CLOS, "Podsize 16\n", "Podsize 16\nBundle 1\n", 5, "Bundle is before the first `Tier`"),
        (CLOS, "Downlink_speed_Gbps 100", "Downlink_speed_Gbps 0", 7, "Downlink_speed_Gbps: found `0`"),
        (CLOS, "Radix_Down 4", "Radix_Down 3", 8, "Radix_Down: found 3, allowed is what divides the 16"),
        (CLOS, "Radix_Down 4", "Radix_Down 8", 14, "2 switches below with 1 links each make 2"),
        (CLOS, "radix_down 8", "radix_down 16", 20, "Radix_Down: found 16, but 8 switches below"),
        (CLOS, "radix_down 8\n", "radix_down 8\nradix_up 8\n", 21, "Radix_Up: the top tier has no links up"),
        (CLOS, "radix_down 8\n", "", 18, "Radix_Down of tier 2 is missing"),
        (CLOS, "Radix_Down 4\n", "Radix_Down 4 4\n", 8, "found 3 words"),
        (CLOS, "Tier 1\nDown", "Tier 1\nBundle 3\nDown", 13, "Bundle: found 3, allowed is what divides"),
        (CLOS, "Tier 0\n", "Tier 0\nBundle 2\n", 7, "Bundle: found 2, allowed is 1 as hosts have one link"),
        (LEAF_SPINE, "Oversubscribed 4", "Oversubscribed 2", 11, "Oversubscribed: found 2, but tier 0 has 8 links"),
        (LEAF_SPINE, "Oversubscribed 4\n", "", 5, "Oversubscribed: found 1"),
        (LEAF_SPINE, "Podsize 128", "Podsize 64", 3, "two tiers are one pod"),
    ] {
        assert!(file.contains(from), "{from}");
        let error = import_all(MATRIX, Some(&file.replacen(from, to, 1)), "ndp").expect_err(to);
        assert!(error.message.contains(expected), "{to}: {error}");
        assert_eq!((error.line, error.file.as_path()), (line, Path::new("f.topo")), "{to}: {error}");
    }
    let missing = CLOS.replace("\ntier 2\n", "\n# tier 2\n");
    let error = import_all(MATRIX, Some(&missing), "ndp").expect_err("a tier is missing");
    assert!(error.message.contains("already"), "{error}");
    let two = LEAF_SPINE.replace("Tiers 2", "Tiers 3");
    let error = import_all(MATRIX, Some(&two), "ndp").expect_err("a tier is missing");
    assert!(error.message.contains("there is no `Tier 2`"), "{error}");
}

#[test]
fn huge_fabrics_are_refused() {
    let file = "Nodes 65534\nTiers 3\nPodsize 32767\nTier 0\nDownlink_speed_Gbps 1\nRadix_Down 32767\nRadix_Up 65534\n\
                Downlink_Latency_ns 1\nTier 1\nDownlink_speed_Gbps 1\nRadix_Down 2\nRadix_Up 65534\nDownlink_Latency_ns 1\nBundle 2\n\
                Tier 2\nDownlink_speed_Gbps 1\nRadix_Down 4\nDownlink_Latency_ns 1\nBundle 2\n";
    let matrix = "Nodes 65534\nConnections 1\n0->1 start 0 size 5\n";
    let error = import_all(matrix, Some(file), "ndp").expect_err("too large or not a tree");
    assert!(error.message.contains("found") || error.message.contains("allowed"), "{error}");
}

/// Other laws have drop-tail queues, and what is written is a scenario: it is read, resolved and built.
#[test]
fn what_is_written_can_be_run() {
    for (law, marks) in [("ndp", false), ("dctcp", true), ("swift", false), ("credit", false)] {
        for topology in [None, Some(CLOS), Some(LEAF_SPINE), Some(BUNDLES)] {
            let imported = import_all(MATRIX, topology, law).expect("imported");
            assert_eq!(imported.scenario.contains("ecn ="), marks, "{law}");
            if law != "ndp" {
                has(&imported, &["buffer = { per_port = \"409600B\" }  # drop-tail, 100 packets"]);
            }
            // The trace is a file beside the scenario; its place is taken by what has no file.
            let scenario = imported
                .scenario
                .replace("kind = \"trace\"\npath = \"case.flows.csv\"", "kind = \"permutation\"\nsize = \"4096B\"");
            let source = Source { path: "case.toml".into(), text: scenario };
            let scenario = Scenario::parse(source, &[]).unwrap_or_else(|error| panic!("{law}: {error}"));
            assert_eq!(scenario.runs().len(), 1);
        }
    }
}

mod never_panics {
    use super::*;
    use crate::import::testing::mutated;
    use proptest::prelude::*;

    fn try_all(matrix: Vec<u8>, topology: Vec<u8>) -> Result<Imported, ImportError> {
        let topology = Text::new(Path::new("f.topo"), topology)?;
        let matrix = &Text::new(Path::new("m.cm"), matrix)?;
        import(&Inputs { matrix, topology: Some(&topology), law: "ndp" }, &Names::new(Path::new("case.toml")))
    }

    proptest! {
        #[test]
        fn on_bytes(one in proptest::collection::vec(any::<u8>(), 0..200), which in 0..2) {
            let mut files = [MATRIX, CLOS].map(|good| good.as_bytes().to_vec());
            files[which as usize] = one;
            let [matrix, topology] = files;
            let _ = try_all(matrix, topology);
        }

        /// What is accepted is a scenario that can be read.
        #[test]
        fn on_nearly_good_files(
            matrix in mutated(MATRIX),
            topology in prop_oneof![mutated(CLOS), mutated(LEAF_SPINE), mutated(BUNDLES)],
        ) {
            if let Ok(imported) = try_all(matrix, topology) {
                prop_assert!(imported.scenario.parse::<toml::Table>().is_ok(), "{}", imported.scenario);
                prop_assert!(incast_lab::workload::trace::read_csv(imported.flows.as_bytes()).is_ok());
                if let Some(file) = &imported.topology {
                    prop_assert!(incast_sim::topology::file::parse(file).is_ok());
                }
            }
        }
    }
}
