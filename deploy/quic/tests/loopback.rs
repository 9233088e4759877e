//! marimo-perf as a program: all hosts of a scenario in one process, over the loopback interface.
#![cfg(feature = "perf")]

use incast_lab::results::parquet;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const SCENARIO: &str = r#"
name = "loopback"
duration = "200ms"
drain = "20s"

[topology]
kind = "single-switch"
hosts = 4
link = { rate = "1Gbps", delay = "10us" }

[switch]
buffer = { per_port = "200KB" }
ecn = { kind = "step", at = "30KB" }

[[workload]]
class = "incast"
kind = "incast"
fan_in = 3
size = "200KB"
every = "100ms"
receiver = "h3"

[[scheme]]
law = "marimo"
"#;

/// A folder of a test's own, gone when the test ends well.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("incast-quic-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        fs::write(path.join("scenario.toml"), SCENARIO).expect("written");
        Self(path)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn client(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_marimo-perf"))
            .arg("client")
            .arg(self.path("scenario.toml"))
            .args(arguments)
            .output()
            .expect("started")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("there")).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

#[test]
fn flows_of_a_scenario_end_in_the_simulators_table() {
    let scratch = Scratch::new("all");
    let out = scratch.path("out");
    let ran = scratch.client(&["--all", "--first-host", "127.0.77.1", "--port", "47433", "--out", text(&out)]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let flows = parquet::read_flows(&out.join("flows.parquet"), &["incast".into()]).expect("readable");
    assert_eq!(flows.len(), 6, "two incasts of three");
    for flow in &flows {
        let delivered = flow.delivered.expect("done");
        assert!(delivered > flow.start && flow.bytes == 200_000, "{flow:?}");
    }
    assert_eq!(flows.iter().filter(|flow| flow.request == flows[0].request).count(), 3);
    let document = json(&out.join("quic.json"));
    assert_eq!(document["totals"]["done"], 6);
    assert_eq!(document["totals"]["ecn_capable"], 6, "the loopback interface leaves ECN alone");
    assert_eq!(document["transport"]["congestion"], "marimo");
    for flow in document["flows"].as_array().expect("a list") {
        assert_eq!(flow["delivery"], "measured");
        assert!(flow["connection"]["acked_bytes"].as_u64() > Some(200_000), "{flow}");
    }
    // What is there is not overwritten by accident.
    let again = scratch.client(&["--all", "--first-host", "127.0.77.1", "--port", "47433", "--out", text(&out)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
}

/// A server that runs for a while and leaves its certificate.
fn server(listen: &str, certificate: &Path, duration: &str) -> std::process::Child {
    let child = Command::new(env!("CARGO_BIN_EXE_marimo-perf"))
        .args(["server", "--listen", listen, "--certificate-out", text(certificate), "--for", duration])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    for _ in 0..200 {
        if certificate.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child
}

#[test]
fn flows_that_reach_no_server_stay_in_the_table() {
    let scratch = Scratch::new("none");
    let (own, other) = (scratch.path("own.pem"), scratch.path("other.pem"));
    // A certificate of a server that is gone, and one of a server that is there under another certificate.
    let ended = server("127.0.77.9:0", &own, "1ms").wait().expect("ended");
    assert!(ended.success());
    let mut there = server("127.0.77.4:47434", &other, "60s");
    let client = |name: &str, port: &str, certificate: &Path| {
        let out = scratch.path(name);
        let ran = scratch.client(&[
            "--source",
            "h0",
            "--first-host",
            "127.0.77.1",
            "--port",
            port,
            "--certificate",
            text(certificate),
            "--drain",
            "1s",
            "--out",
            text(&out),
        ]);
        let flows = parquet::read_flows(&out.join("flows.parquet"), &["incast".into()]).expect("readable");
        assert_eq!(flows.len(), 2, "those of h0: {}", String::from_utf8_lossy(&ran.stderr));
        let delivered = flows.iter().filter(|flow| flow.delivered.is_some()).count();
        let status = json(&out.join("quic.json"))["flows"][0]["status"].as_str().expect("a text").to_owned();
        (ran.status.code(), delivered, status)
    };
    assert_eq!(client("nobody", "47999", &own), (Some(0), 0, "unfinished".into()));
    assert_eq!(client("stranger", "47434", &own), (Some(1), 0, "failed".into()), "certificates are pinned");
    assert_eq!(client("known", "47434", &other), (Some(0), 2, "done".into()));
    there.kill().expect("ended");
    there.wait().expect("ended");
}

#[test]
fn bad_input_names_its_place() {
    let scratch = Scratch::new("bad");
    let out = scratch.path("out");
    let refused = |arguments: &[&str], expected: &str| {
        let ran = scratch.client(&[arguments, &["--out", text(&out)]].concat());
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!out.exists(), "nothing is written");
    };
    refused(&["--all", "--host", "h0=nowhere"], "--host h0=nowhere");
    refused(&["--all", "--host", "h0=127.0.0.1"], "h3 is the destination of a flow and has no address");
    refused(&["--source", "h7", "--first-host", "127.0.77.1"], "--source h7: no such host");
    refused(&["--all", "--first-host", "255.255.255.254"], "no room for 4 hosts");
    refused(&["--all", "--first-host", "127.0.77.1", "--parameter", "beta=0.3"], "1/2");
    refused(&["--all", "--first-host", "127.0.77.1", "--mtu", "900"], "--mtu 900");
    refused(&["--all", "--first-host", "127.0.77.1", "--set", "workload.incast.size=0B"], "workload.incast.size");
    refused(&["--source", "h0", "--first-host", "127.0.77.1"], "--certificate");
    refused(
        &["--source", "h0", "--first-host", "127.0.77.1", "--certificate", "/nonexistent"],
        "--certificate /nonexistent",
    );
    let closed = SCENARIO.replace(
        "[[scheme]]",
        "[[workload]]\nkind = \"rpc\"\nrequest = { fixed = \"1KB\" }\nresponse = { fixed = \"2KB\" }\nclients = \"h0..h1\"\nservers = [\"h3\"]\n[[scheme]]",
    );
    fs::write(scratch.path("scenario.toml"), closed).expect("written");
    refused(&["--all", "--first-host", "127.0.77.1"], "opens its flows during the run");
}
