//! The program over the loopback device of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const HEADER: &str = "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes";

fn rig_traffic(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rig-traffic")).args(arguments).output().expect("it starts")
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).expect("a folder of our own");
    path
}

/// Plays a plan; returns the rows, without the header, and what the program said.
fn play(name: &str, rows: &str, more: &[&str]) -> (Vec<Vec<String>>, Output) {
    let folder = folder(name);
    let plan = folder.join("plan.csv");
    let out = folder.join("flows.csv");
    let _ = std::fs::remove_file(&out);
    std::fs::write(&plan, format!("{HEADER}\n{rows}")).expect("written");
    let mut arguments = vec!["play", "--plan", plan.to_str().expect("text"), "--out"];
    arguments.push(out.to_str().expect("text"));
    arguments.extend(["--congestion", "reno"]);
    arguments.extend(more);
    let output = rig_traffic(&arguments);
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let rows = text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect();
    (rows, output)
}

#[test]
fn flows_arrive_whole_and_in_their_order() {
    let mut plan = String::new();
    for flow in 0..20_u64 {
        let bytes = [1, 7, 65_536, 1_000_003][flow as usize % 4];
        let start = (20 - flow) * 1_000_000;
        plan += &format!("{flow},-,127.0.0.1,-,127.0.0.{},{},{start},{bytes}\n", 1 + flow % 2, 17_811 + flow % 3);
    }
    let (rows, output) = play("whole", &plan, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows.len(), 20);
    for (index, row) in rows.iter().enumerate() {
        let number = |column: usize| row[column].parse::<u64>().expect("a number");
        let flow = 19 - index as u64;
        assert_eq!(number(0), flow, "by start");
        assert_eq!(number(4), [1, 7, 65_536, 1_000_003][flow as usize % 4]);
        assert_eq!(&row[5], "1");
        assert_eq!(&row[9], "reno");
        let (start, connected, end) = (number(1), number(2), number(3));
        assert!((20 - flow) * 1_000_000 <= start && start <= connected && connected <= end, "{row:?}");
        assert!(0 < number(10) && number(10) <= end - start, "a part of its time: {row:?}");
        assert!(number(7) >= 2, "the SYN and some data were delivered: {row:?}");
    }
}

#[test]
fn a_flow_may_have_a_congestion_control_of_its_own() {
    let folder = folder("own");
    let (plan, out) = (folder.join("plan.csv"), folder.join("flows.csv"));
    let play = |second: &str| {
        let rows = format!("1,-,127.0.0.1,-,127.0.0.1,17871,0,9,-\n2,-,127.0.0.1,-,127.0.0.1,{second},0,9,cubic\n");
        std::fs::write(&plan, format!("{HEADER},congestion\n{rows}")).expect("written");
        let (plan, out) = (plan.to_str().expect("text"), out.to_str().expect("text"));
        rig_traffic(&["play", "--plan", plan, "--congestion", "reno", "--out", out])
    };
    let output = play("17871");
    assert_eq!(output.status.code(), Some(2), "one listener cannot have both");
    assert!(String::from_utf8_lossy(&output.stderr).contains("flows to 127.0.0.1:17871 are of reno and of cubic"));
    assert!(play("17872").status.success());
    let text = std::fs::read_to_string(&out).expect("written");
    let names: Vec<_> = text.lines().skip(1).filter_map(|row| row.split(',').nth(9)).collect();
    assert_eq!(names, ["reno", "cubic"]);
}

#[test]
fn the_queue_is_sampled() {
    let folder = folder("sampled");
    let samples = folder.join("queue.csv");
    let _ = std::fs::remove_file(&samples);
    let plan = "1,-,127.0.0.1,-,127.0.0.1,17881,0,9\n2,-,127.0.0.1,-,127.0.0.1,17881,50000000,9\n";
    let path = samples.to_str().expect("text");
    let (_, output) =
        play("sampled", plan, &["--sample-queue", "-:lo", "--sample-interval-us", "5000", "--samples", path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&samples).expect("written");
    let times: Vec<u64> =
        text.lines().skip(1).map(|row| row.split(',').next().expect("a time").parse().expect("ns")).collect();
    assert!(times.len() >= 2 && times.is_sorted(), "{times:?}");
    let (_, output) = play("sampled", plan, &["--sample-queue", "-:lo"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_flow_that_cannot_connect_fails_alone() {
    // 127.0.0.1 cannot reach an address beyond the loopback device.
    let plan = "1,-,127.0.0.1,-,127.0.0.1,17821,0,5000\n2,-,192.0.2.1,-,127.0.0.1,17821,0,5000\n";
    let (rows, output) = play("alone", plan, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(&rows[0][5], "1");
    assert_eq!((&*rows[1][3], &*rows[1][4], &*rows[1][5]), ("", "0", "0"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("flow 2: connecting from 192.0.2.1"));
}

#[test]
fn what_is_late_has_failed() {
    let plan = "1,-,127.0.0.1,-,127.0.0.1,17831,0,5000\n2,-,127.0.0.1,-,127.0.0.1,17831,2000000000,5000\n";
    let (rows, output) = play("late", plan, &["--deadline", "1"]);
    assert_eq!(output.status.code(), Some(4), "the results are complete");
    assert_eq!(&rows[0][5], "1");
    assert_eq!(&rows[1][5], "0");
    // A failure beside it is more than that.
    let plan = format!("{plan}3,-,192.0.2.1,-,127.0.0.1,17831,0,5000\n");
    let (rows, output) = play("late", &plan, &["--deadline", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows.len(), 3);
}

#[test]
fn what_has_ended_is_kept_when_the_machine_fails() {
    let folder = folder("broke");
    let (plan, out) = (folder.join("plan.csv"), folder.join("flows.csv"));
    let _ = std::fs::remove_file(&out);
    let rows = "1,-,127.0.0.1,-,127.0.0.1,17891,0,9\n2,-,127.0.0.1,-,127.0.0.1,17891,4000000000,9\n";
    std::fs::write(&plan, format!("{HEADER}\n{rows}")).expect("written");
    let child = Command::new(env!("CARGO_BIN_EXE_rig-traffic"))
        .args(["play", "--congestion", "reno", "--plan"])
        .args([&plan, Path::new("--out"), &out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let id = child.id();
    let files = || -> Vec<(usize, String)> {
        let links = std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").flatten();
        links
            .filter_map(|link| {
                let to = std::fs::read_link(link.path()).ok()?;
                Some((link.file_name().to_str()?.parse().ok()?, to.to_string_lossy().into_owned()))
            })
            .collect()
    };
    while !files().iter().any(|(_, to)| to.contains("timerfd")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(1));
    // Room for one end of a connection, not for both.
    let open = files();
    let mut free = (0..).filter(|number| open.iter().all(|(used, _)| used != number));
    let (_, second) = (free.next(), free.next().expect("numbers do not end"));
    let limit = format!("--nofile={second}:{second}");
    let status = Command::new("prlimit").args(["--pid", &id.to_string(), &limit]).status();
    assert!(status.expect("util-linux").success());
    let output = child.wait_with_output().expect("it ends");
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{says}");
    assert!(says.contains("the play broke: Too many open files"), "{says}");
    let text = std::fs::read_to_string(&out).expect("written");
    let ok: Vec<_> = text.lines().skip(1).filter_map(|row| row.split(',').nth(5)).collect();
    assert_eq!(ok, ["1", "0"]);
}

#[test]
fn more_files_than_are_allowed_is_bad_input() {
    let program = env!("CARGO_BIN_EXE_rig-traffic");
    let churn = format!(
        "{program} churn --connections 100 --seconds 1 --congestion reno \
         --source-namespace - --source 127.0.0.1 --destination-namespace - --destination 127.0.0.5"
    );
    // Whoever may raise the limit does; without that right it is said what is needed.
    let plain = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource";
    let shell = |command: &str| Command::new("sh").args(["-c", command]).output().expect("a shell");
    let raises = shell("ulimit -n 64; prlimit --nofile=65 true").status.success();
    if raises {
        let output = shell(&format!("ulimit -n 64; exec {churn}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let prefix = if raises { plain } else { "" };
    let output = shell(&format!("ulimit -n 64; exec {prefix} {churn}"));
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{says}");
    assert!(says.contains("open files are needed, 64 are allowed"), "{says}");
}

#[test]
fn ecn_is_required_only_if_asked_for() {
    // Reno negotiates no ECN unless the machine is set to ask for it.
    let asks = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").is_ok_and(|text| text.trim() == "1");
    let plan = "1,-,127.0.0.1,-,127.0.0.1,17841,0,5000\n";
    assert!(play("ecn", plan, &[]).1.status.success());
    let (rows, output) = play("ecn", plan, &["--ecn-check"]);
    assert_eq!(output.status.code(), Some(if asks { 0 } else { 1 }));
    assert_eq!(&rows[0][4], "5000");
}

#[test]
fn bad_input_writes_nothing() {
    for (plan, more, says) in [
        ("1,-,127.0.0.1,-,127.0.0.1,0,0,1\n", &[][..], "line 2: port"),
        ("1,-,127.0.0.1,-,127.0.0.1,17851,0,1\n", &["--ecn"][..], "unexpected argument '--ecn'"),
        ("1,-,127.0.0.1,-,127.0.0.1,17851,0,1\n", &["--socket-buffer", "1"][..], "is not in 4096.."),
        ("1,incast-not-there,127.0.0.1,-,127.0.0.1,17851,0,1\n", &[][..], "namespace incast-not-there"),
        ("1,-,127.0.0.1,-,192.0.2.1,17851,0,1\n", &[][..], "listening at 192.0.2.1:17851"),
    ] {
        let (rows, output) = play("bad", plan, more);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(says), "{error}");
        assert!(rows.is_empty());
    }
    let output = rig_traffic(&["play", "--plan", "/nowhere.csv", "--congestion", "reno", "--out", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(rig_traffic(&["play"]).status.code(), Some(2));
    assert_eq!(rig_traffic(&[]).status.code(), Some(2));
    assert!(rig_traffic(&["--help"]).status.success());
}

#[test]
fn an_unknown_congestion_control_is_bad_input() {
    let folder = folder("unknown");
    let plan = folder.join("plan.csv");
    std::fs::write(&plan, format!("{HEADER}\n1,-,127.0.0.1,-,127.0.0.1,17861,0,1\n")).expect("written");
    let out = folder.join("out.csv");
    let output = rig_traffic(&[
        "play",
        "--plan",
        plan.to_str().expect("text"),
        "--congestion",
        "nosuch",
        "--out",
        out.to_str().expect("text"),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("congestion control \"nosuch\"") && error.contains("available: "), "{error}");
    assert!(!out.exists());
}

/// Fifty connections at a time for as long. Its ports are fixed: each test has an address of its own.
fn churn(source: &str, destination: &str, seconds: &str) -> Output {
    rig_traffic(&[
        "churn",
        "--connections",
        "50",
        "--seconds",
        seconds,
        "--congestion",
        "reno",
        "--source-namespace",
        "-",
        "--source",
        source,
        "--destination-namespace",
        "-",
        "--destination",
        destination,
        "--bytes",
        "3000",
    ])
}

#[test]
fn a_churn_that_cannot_connect_gives_up() {
    let started = Instant::now();
    let output = churn("192.0.2.1", "127.0.0.4", "600");
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{says}");
    assert!(says.contains("connection 0: connecting from 192.0.2.1") && says.contains("64 connections failed"));
    assert!(started.elapsed() < Duration::from_secs(600), "long before its time");
}

#[test]
fn connections_churn() {
    let output = churn("127.0.0.1", "127.0.0.3", "1");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let complete: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a count");
    assert!(complete > 50, "each of the 50 was followed by another: {text}");
    assert!(text.contains(" 0 failed"), "{text}");
}

#[test]
fn a_port_may_be_reused_at_once() {
    // In a network of its own the kernel is left with so few ports that it gives each of them out again and again.
    let own = |command: &str| {
        Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c"])
            .arg(format!(
                "ip link set lo up && echo 20000 20039 >/proc/sys/net/ipv4/ip_local_port_range && exec {command}"
            ))
            .output()
    };
    if !own("true").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no network namespace of its own");
        return;
    }
    let program = env!("CARGO_BIN_EXE_rig-traffic");
    let output = own(&format!(
        "{program} churn --connections 100 --seconds 1 --congestion reno --bytes 3000 \
         --source-namespace - --source 127.0.0.1 --destination-namespace - --destination 127.0.0.1"
    ))
    .expect("it started before");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let complete: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a count");
    assert!(complete > 40 * 16, "each port was used more than once: {text}");
}
