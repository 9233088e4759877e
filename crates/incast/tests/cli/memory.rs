//! Estimates of memory and of packet-hops against what runs take.

use crate::common::{folder, json, runs, succeed, text};
use incast_lab::scenario::Scenario;
use std::fs;

/// A scenario of 100 Gbit/s with 1 us links.
struct Case {
    name: &'static str,
    topology: &'static str,
    switch: &'static str,
    mtu: &'static str,
    workload: &'static str,
    law: &'static str,
    duration: &'static str,
    drain: &'static str,
    measure: &'static str,
}

/// A small run; the others say what they change.
const SMALL: Case = Case {
    name: "permutation",
    topology: "kind = \"fat-tree\"\nk = 8",
    switch: "ecn = { kind = \"step\", at = \"0.2bdp\" }",
    mtu: "4096B",
    workload: "kind = \"permutation\"\nsize = \"2MB\"",
    law: "dctcp",
    duration: "1ms",
    drain: "1s",
    measure: "",
};

const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 8\n\
                          host_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                          fabric_link = { rate = \"200Gbps\", delay = \"1us\" }";

const CASES: [Case; 16] = [
    SMALL,
    Case {
        name: "all-to-all-512",
        topology: "kind = \"leaf-spine\"\nleaves = 32\nspines = 16\nhosts_per_leaf = 16\n\
        host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }",
        workload: "kind = \"all-to-all\"\nsize = \"4KB\"",
        ..SMALL
    },
    Case { name: "all-to-all-128", workload: "kind = \"all-to-all\"\nsize = \"20KB\"", ..SMALL },
    Case {
        name: "incast",
        topology: "kind = \"single-switch\"\nhosts = 129",
        mtu: "1500B",
        workload: "kind = \"incast\"\nfan_in = 128\nsize = \"100KB\"\nevery = \"500us\"",
        ..SMALL
    },
    Case {
        name: "trimming",
        switch: "trim = { queue = \"60KB\" }\nload_balancing = \"spray-permutation\"",
        law: "ndp",
        workload: "kind = \"incast\"\nfan_in = 100\nsize = \"450KB\"\nevery = \"2ms\"",
        ..SMALL
    },
    Case {
        name: "permutation-1024",
        topology: "kind = \"fat-tree\"\nk = 16",
        workload: "kind = \"permutation\"\nsize = \"200KB\"",
        ..SMALL
    },
    Case {
        name: "websearch",
        topology: LEAF_SPINE,
        duration: "4ms",
        workload: "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.8",
        ..SMALL
    },
    Case {
        name: "short-flows",
        topology: LEAF_SPINE,
        duration: "2ms",
        mtu: "1500B",
        law: "cubic",
        workload: "kind = \"poisson\"\nsizes = { fixed = \"2KB\" }\nload = 0.3",
        ..SMALL
    },
    Case {
        name: "calls",
        topology: "kind = \"single-switch\"\nhosts = 16",
        duration: "2ms",
        workload: "kind = \"rpc\"\nrequest = { fixed = \"256B\" }\nresponse = { fixed = \"16KB\" }\noutstanding = 8",
        ..SMALL
    },
    Case {
        name: "samples",
        topology: "kind = \"single-switch\"\nhosts = 17",
        duration: "5ms",
        drain: "1ms",
        workload: "kind = \"long\"\npairs = [[\"h1\", \"h0\"], [\"h2\", \"h0\"], [\"h3\", \"h0\"]]",
        measure: "[measure]\nports = { every = \"1us\", which = [\"s0->h*\"] }\nrates = { every = \"5us\", flows = \"all\" }",
        ..SMALL
    },
    Case {
        name: "permutation-8192",
        topology: "kind = \"fat-tree\"\nk = 32",
        workload: "kind = \"permutation\"\nsize = \"256KB\"",
        ..SMALL
    },
    Case {
        name: "websearch-1024",
        topology: "kind = \"fat-tree\"\nk = 16",
        workload: "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6",
        drain: "100ms",
        ..SMALL
    },
    // Long after the last flow is done there is nothing to sample.
    Case {
        name: "ports-and-a-long-drain",
        topology: LEAF_SPINE,
        measure: "[measure]\nports = { every = \"1us\", which = [\"leaf0->*\"] }",
        ..SMALL
    },
    Case {
        name: "rates-of-calls",
        topology: "kind = \"single-switch\"\nhosts = 65",
        workload: "kind = \"rpc\"\nrequest = { fixed = \"256B\" }\nresponse = { fixed = \"16KB\" }\noutstanding = 64",
        measure: "[measure]\nrates = { every = \"1us\", flows = \"all\" }",
        ..SMALL
    },
    Case {
        name: "rates",
        topology: LEAF_SPINE,
        duration: "4ms",
        drain: "20ms",
        workload: "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6",
        measure: "[measure]\nrates = { every = \"1us\", flows = \"all\" }",
        ..SMALL
    },
    Case {
        name: "events",
        topology: LEAF_SPINE,
        duration: "4ms",
        drain: "20ms",
        workload: "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6",
        measure: "[measure]\ntraces = true",
        ..SMALL
    },
];

/// Each runs in a process of its own, whose largest resident memory is what the estimate is about. Time is not looked
/// at: packet-hops are what it is estimated from.
#[test]
#[cfg(target_os = "linux")]
fn estimates_are_not_below_what_is_taken_and_at_most_twice_that() {
    let out = folder("memory");
    let mut wrong = Vec::new();
    for case in CASES {
        let Case { name, topology, switch, mtu, workload, law, duration, drain, measure } = case;
        let link = if topology.contains("link") { "" } else { "link = { rate = \"100Gbps\", delay = \"1us\" }" };
        let scenario = format!(
            "name = {name:?}\nduration = {duration:?}\ndrain = {drain:?}\n[topology]\n{topology}\n{link}\n[switch]\n\
             buffer = {{ total = \"16MB\" }}\n{switch}\n[host]\nmtu = {mtu:?}\n[[workload]]\n{workload}\n[[scheme]]\n\
             law = {law:?}\n{measure}\n"
        );
        let file = out.join(format!("{name}.toml"));
        fs::write(&file, scenario).expect("written");
        let loaded = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let run = &loaded.runs()[0];
        succeed(&["run", "--quiet", "--jobs", "1", "--out", text(&out), text(&file)]);
        let cost = &json(&runs(&out.join(name))[0].join("run.json"))["cost"];
        let memory = run.estimated_memory() as f64 / cost["peak_rss_bytes"].as_f64().expect("bytes");
        let hops = run.estimated_packet_hops() / cost["packet_hops"].as_f64().expect("a count");
        println!("{name}: memory {memory:.2}, packet-hops {hops:.2} of what was measured; {cost}");
        if !(1.0..=2.0).contains(&memory) || !(1.0..=2.0).contains(&hops) {
            wrong.push(format!("{name}: memory {memory:.2}, packet-hops {hops:.2}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
