//! Loading, tuning and unloading on this kernel, with connections, in namespaces of the test's own: a bpffs and a
//! loopback device that end with it. Needs root and BTF: `rigs/netns/run.sh` runs it, or says why it cannot.

use std::{
    ffi::CString,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicBool, Ordering},
};

const TABLE: &str = "../../core/marimo-f.table";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const PINS: &str = "/sys/fs/bpf/marimo";

fn marimoctl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_marimoctl")).args(arguments).output().expect("built by cargo")
}

fn done(arguments: &[&str]) -> String {
    let output = marimoctl(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn failed(arguments: &[&str], code: i32) -> String {
    let output = marimoctl(arguments);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

fn status() -> serde_json::Value {
    serde_json::from_str(&done(&["status", "--json"])).expect("JSON")
}

fn registered() -> bool {
    fs::read_to_string(AVAILABLE).expect("Linux").split_whitespace().any(|name| name == "bpf_marimo")
}

/// Namespaces of this thread, from which all commands are started.
fn own_namespaces() {
    // SAFETY: asks only.
    assert_eq!(unsafe { libc::geteuid() }, 0, "root is needed");
    assert!(status()["lacking"].is_null(), "{}", status()["lacking"]);
    let text = |text: &str| CString::new(text).expect("no zero in it");
    let (none, slash, bpf, place) = (text("none"), text("/"), text("bpf"), text("/sys/fs/bpf"));
    // SAFETY: strings of C, no data; only this thread's namespaces change.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET), 0);
        let private = libc::MS_REC | libc::MS_PRIVATE;
        assert_eq!(libc::mount(none.as_ptr(), slash.as_ptr(), std::ptr::null(), private, std::ptr::null()), 0);
        assert_eq!(libc::mount(bpf.as_ptr(), place.as_ptr(), bpf.as_ptr(), 0, std::ptr::null()), 0);
        // Kept tables end with the test, too.
        let (tmpfs, kept) = (text("tmpfs"), text("/var/lib"));
        assert_eq!(libc::mount(none.as_ptr(), kept.as_ptr(), tmpfs.as_ptr(), 0, std::ptr::null()), 0);
    }
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("iproute2").success());
}

/// What `ip` of iproute2 prints.
fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The stages of the operator's page: the command that begins each, and the one that takes it back.
fn stages() -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/rollout.md");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("`marimoctl enable"));
    let commands = |row: &str| row.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.map(|row| <[_; 2]>::try_from(commands(row)).expect("two commands").into()).collect()
}

/// Types a command of `marimoctl` as it is printed.
fn typed(command: &str) -> Output {
    let arguments: Vec<_> = command.split(' ').skip(1).collect();
    marimoctl(&arguments)
}

/// The page's stages in this namespace, but for the default: a kernel refuses that to all namespaces but the first, and
/// some keep a copy of the congestion control for each refusal. `rigs/vm/boot.sh` types that one, too.
fn follows_the_page() {
    let stages = stages();
    assert_eq!(stages.len(), 3);
    for (begin, back) in stages {
        let Some(route) = begin.split(' ').find(|word| word.contains('/')) else { continue };
        ip(&format!("route add {route} dev lo"));
        let output = typed(&begin);
        assert!(output.status.success(), "{begin}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(ip(&format!("route show {route}")).contains("congctl bpf_marimo"), "{begin}");
        assert!(typed(&back).status.success(), "{back}");
        assert!(!ip("route show table all").contains("congctl"), "{begin}, {back}");
    }
}

/// A command in namespaces of another kind: exit code, and what it has said.
fn elsewhere(namespaces: &[&str], script: &str) -> (Option<i32>, String) {
    let marimoctl = env!("CARGO_BIN_EXE_marimoctl");
    let script = script.replace("marimoctl", marimoctl);
    let output = Command::new("unshare").args(namespaces).args(["sh", "-c", &script]).output().expect("util-linux");
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&both).into_owned())
}

/// What a mount namespace hides is said, and a time namespace's clock is put right.
fn sees_what_it_can(near: &mut TcpStream, far: &mut TcpStream) {
    // As `ip netns exec` has it: another sysfs, without what is pinned.
    for command in ["status", "metrics", "top --once", "set-table --previous --form bpf", "unload", "load"] {
        let script = format!("umount /sys/fs/bpf && marimoctl {command}");
        let (code, said) = elsewhere(&["--mount"], &script);
        assert_eq!(code, Some(1), "{command}: {said}");
        assert!(said.contains("not seen from here") && said.contains("nsenter --net="), "{command}: {said}");
        assert!(!said.contains("not loaded") || command == "status", "{command}: {said}");
    }
    assert!(registered(), "and nothing of it is touched");
    // What comes now is shown, however far this clock is ahead or behind.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                transfer(near, far);
            }
        });
        let shown = ["100000", "-30"].map(|ahead| {
            let namespaces = ["--time", "--monotonic", ahead, "--boottime", ahead, "--fork"];
            elsewhere(&namespaces, "marimoctl top --once --json")
        });
        stop.store(true, Ordering::Relaxed);
        traffic.join().expect("no panic");
        for (code, said) in shown {
            assert!(code == Some(0) && said.contains("\"kind\":\"epoch\""), "{code:?}: {said}");
        }
    });
}

fn choose(socket: &impl AsRawFd) {
    let name = b"bpf_marimo";
    // SAFETY: the name outlives the call.
    let refused = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
}

/// Both ends of a connection that uses bpf_marimo. ECN is on, as the sender chooses only when it is connected.
fn connection() -> (TcpStream, TcpStream) {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("our own namespace");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    choose(&listener);
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    choose(&near);
    (near, listener.accept().expect("connected").0)
}

fn transfer(near: &mut TcpStream, far: &mut TcpStream) {
    let sent: Vec<u8> = (0..2_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    let mut received = vec![0; sent.len()];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| near.write_all(&sent));
        far.read_exact(&mut received).expect("open");
        writer.join().expect("no panic").expect("open");
    });
    assert!(received == sent, "bytes changed on the way");
}

#[test]
#[ignore = "needs root and BTF: rigs/netns/run.sh runs it"]
fn loads_tunes_drains_and_cleans_up() {
    // A congestion control has one name in a kernel: one test or rig at a time.
    let lock = fs::File::create("/run/incast-netns-rig.lock");
    if let Ok(lock) = &lock {
        // SAFETY: the descriptor is open.
        unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    }
    own_namespaces();
    assert!(!registered(), "somebody else has loaded bpf_marimo");
    // Of others before, for whom the kernel has not let it go.
    let held = status()["held"].as_u64().expect("a number");

    // Nothing is loaded.
    assert!(failed(&["unload"], 1).contains("not loaded"));
    assert!(failed(&["set-table", TABLE], 1).contains("neither bpf_marimo nor tcp_marimo is loaded"));
    assert!(failed(&["top", "--once"], 1).contains("neither"));
    assert!(failed(&["load", "--fallback", "nosuch"], 2).contains("allowed is one of"));
    assert!(!Path::new(PINS).exists() && !registered());

    // What a killed load leaves is removed, by either command.
    fs::create_dir(PINS).expect("our own bpffs");
    assert_eq!(status()["leftovers"], true);
    assert!(done(&["unload"]).contains("had left"));
    fs::create_dir(PINS).expect("our own bpffs");
    assert!(done(&["load", "--set", "min_window=3", "--fallback", "cubic"]).contains("is loaded"));
    assert!(registered());
    assert!(failed(&["load"], 1).contains("loaded already"));

    let now = status();
    assert_eq!(now["bpf"]["config"]["min_window"], "3");
    assert_eq!(now["bpf"]["fallback"], "cubic");
    assert_eq!((&now["bpf"]["connections"], &now["bpf"]["slot"]), (&0.into(), &0.into()));

    let (mut near, mut far) = connection();
    transfer(&mut near, &mut far);
    let now = status();
    assert_eq!(now["bpf"]["connections"], 2, "{now}");
    assert!(now["bpf"]["counters"]["epochs"].as_u64() > Some(0), "{now}");
    let table = done(&["top", "--once", "--recorded"]);
    assert!(table.contains("127.0.0.1:") && table.lines().count() >= 2, "{table}");
    let lines = done(&["top", "--json", "--recorded", "--seconds", "0"]);
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");

    sees_what_it_can(&mut near, &mut far);

    // A good table takes the other slot, a bad one changes nothing.
    assert!(done(&["set-table", TABLE]).contains("in slot 1"));
    let bad = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lifecycle.table");
    let text = fs::read_to_string(TABLE).expect("of the repository");
    fs::write(&bad, text.replace("checksum 1", "checksum 2")).expect("the folder of this test");
    assert!(failed(&["set-table", bad.to_str().expect("text")], 2).contains("found \"checksum 2"));
    assert_eq!(status()["bpf"]["slot"], 1);
    // What a table replaced comes back.
    let before = status()["bpf"]["table"].clone();
    let linear = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linear.table");
    let text = incast_cc::window::marimo::core::LoadTable::linear().text(&[]);
    fs::write(&linear, text).expect("the folder of this test");
    done(&["set-table", linear.to_str().expect("text")]);
    assert_ne!(status()["bpf"]["table"], before);
    done(&["set-table", "--previous"]);
    assert_eq!(status()["bpf"]["table"], before);

    // One route, then every connection of the namespace, then none.
    ip("route add 10.9.0.0/16 dev lo mtu 9000");
    assert!(failed(&["enable", "10.8.0.0/16"], 2).contains("found no route 10.8.0.0/16 in table main"));
    assert!(failed(&["enable", "10.9.0.0/16", "--name", "nosuch"], 2).contains("allowed is one of"));
    done(&["enable", "10.9.0.0/16"]);
    let route = ip("route show 10.9.0.0/16");
    assert!(route.contains("congctl bpf_marimo") && route.contains("mtu 9000"), "{route}");
    assert!(done(&["metrics"]).contains("\nmarimo_routes 1\n"));
    assert!(done(&["metrics"]).contains("\nmarimo_connections{form=\"bpf_marimo\"} 2\n"));
    assert!(failed(&["rollback", "--to", "bpf_marimo"], 2).contains("allowed is one of"));
    assert!(done(&["rollback"]).contains("10.9.0.0/16 table main: congestion control none, as before"));
    let route = ip("route show 10.9.0.0/16");
    assert!(!route.contains("congctl") && route.contains("mtu 9000"), "{route}");
    assert!(done(&["rollback"]).contains("nothing to undo"));

    follows_the_page();

    // Open connections keep what is unloaded.
    assert!(done(&["unload"]).contains("2 connections keep their copy"));
    assert!(!registered() && !Path::new(PINS).exists());
    assert_eq!((status()["draining"].as_u64(), status()["held"].as_u64()), (Some(1), Some(held)));
    transfer(&mut near, &mut far);
    drop((near, far));
    for _ in 0..200 {
        if status()["draining"] == 0 && status()["held"] == held {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(status()["draining"], 0, "a copy without connections is still there");
    assert_eq!(status()["held"], held, "nor does the kernel keep one");
}
