//! Each call that writes results fails once, by a library that is loaded before libc: exit code 0 never with a run missing,
//! and `--resume` makes the results whole.

use crate::common::{command, folder, stderr, succeed, text};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

const SCENARIO: &str = r#"
name = "writes"
duration = "20us"
drain = "10ms"
seeds = [1, 2]
[topology]
kind = "single-switch"
hosts = 3
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { total = "1MB" }
[[workload]]
kind = "incast"
fan_in = 2
size = "5KB"
every = "20us"
[[scheme]]
law = "dctcp"
switch.ecn = { kind = "step", at = "10KB" }
[measure]
ports = { every = "10us", which = ["s0->h*"] }
"#;

/// `short`: a write takes half of its bytes.
const FAILURES: [&str; 5] = ["EIO", "ENOSPC", "EINTR", "short", "kill"];

/// With this variable each call fails in every way, otherwise in one of them in turn.
const EVERY: &str = "INCAST_EVERY_FAILURE";

/// Compiles the library.
pub fn library(test: &Path) -> PathBuf {
    let (library, source) = (test.join("failing.so"), std::path::absolute("tests/cli/failing_writes.c"));
    let source = source.expect("a working directory");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    assert!(compiler.status().is_ok_and(|status| status.success()), "cc compiles {}", source.display());
    library
}

/// What writes.
enum Writer {
    /// `incast run`.
    Run,
    /// `incast gather`, of shards that are there; their files get a second name, or where that cannot be are copied.
    Gather { shards: PathBuf, links: bool },
}

struct Writes {
    library: PathBuf,
    scenario: PathBuf,
    writer: Writer,
}

impl Writes {
    fn run(&self, out: &Path, again: bool, fail: &[(&str, &str)]) -> Output {
        let mut command = match &self.writer {
            Writer::Run => {
                let mut command = command(&["run", "--quiet", "--jobs", "1", "--out", text(out), text(&self.scenario)]);
                command.args(again.then_some("--resume"));
                command
            }
            Writer::Gather { shards, .. } => command(&["gather", text(shards), "--out", text(out)]),
        };
        if !fail.is_empty() {
            command.env("LD_PRELOAD", &self.library).env("FAIL_BELOW", out).envs(fail.iter().copied());
            if matches!(self.writer, Writer::Gather { links: false, .. }) {
                command.env("FAIL_LINKS", "1");
            }
        }
        command.output().expect("the binary starts")
    }
}

/// The names of all files below a folder, and the content of those that are equal in equal results.
fn content(results: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![results.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let is_table = path.extension().is_some_and(|ending| ending == "parquet");
                let bytes = if is_table { fs::read(&path).expect("a file") } else { Vec::new() };
                all.push((path.strip_prefix(results).expect("below").display().to_string(), bytes));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn a_write_that_fails_loses_nothing_in_silence() {
    let test = folder("failing-writes");
    let (library, scenario) = (library(&test), test.join("writes.toml"));
    fs::write(&scenario, SCENARIO).expect("written");
    // In memory: every file is synchronised with the disk.
    let memory = Path::new("/dev/shm").join(format!("incast-writes-{}", std::process::id()));
    let shards = memory.join("shards");
    fs::create_dir_all(&shards).expect("a folder");
    for shard in ["1/2", "2/2"] {
        succeed(&["run", "--quiet", "--shard", shard, "--out", text(&shards), text(&scenario)]);
    }
    let (library, scenario) = (&library, &scenario);
    let gather = |links| Writer::Gather { shards: shards.clone(), links };
    let writers = [("run", Writer::Run, 50), ("links", gather(true), 15), ("copies", gather(false), 30)];
    let contents = writers.map(|(name, writer, least)| {
        let (library, scenario) = (library.clone(), scenario.clone());
        each_call_fails_once(&Writes { library, scenario, writer }, &memory.join(name), least)
    });
    assert!(contents.iter().all(|content| *content == contents[0]), "{contents:?}");
    fs::remove_dir_all(memory).expect("removed");
}

/// The content of whole results, of which each of at least `least` calls failed once.
fn each_call_fails_once(writes: &Writes, memory: &Path, least: usize) -> Vec<(String, Vec<u8>)> {
    fs::create_dir_all(memory).expect("a folder");
    let (whole, count) = (memory.join("whole"), memory.join("count"));
    let output = writes.run(&whole, false, &[("FAIL_COUNT", text(&count))]);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = content(&whole);
    let calls: usize = fs::read_to_string(&count).expect("a count").trim().parse().expect("a number");
    assert!(calls > least && expected.len() == 11, "{calls} calls, {expected:?}");
    let every = std::env::var_os(EVERY).is_some();
    let cases = (1..=calls).flat_map(|call| {
        let failures = FAILURES.iter().enumerate();
        failures.filter(move |(place, _)| every || call % FAILURES.len() == *place).map(move |(_, as_)| (call, *as_))
    });
    let cases: Vec<(usize, &str)> = cases.collect();
    let one = |(call, failure): (usize, &str)| {
        let out = memory.join(format!("{call}-{failure}"));
        let at = call.to_string();
        let output = writes.run(&out, false, &[("FAIL_AT", &at), ("FAIL_AS", failure)]);
        let case = format!("call {call}, {failure}: {:?}, {}", output.status, stderr(&output));
        if output.status.success() {
            assert_eq!(content(&out), expected, "{case}");
        } else {
            assert!(failure == "kill" || stderr(&output).contains("error: "), "{case}");
            let resumed = writes.run(&out, true, &[]);
            assert!(resumed.status.success(), "{case}: {}", stderr(&resumed));
            assert!(!stderr(&resumed).contains("damaged"), "{case}: {}", stderr(&resumed));
            assert_eq!(content(&out), expected, "{case}");
        }
        fs::remove_dir_all(&out).expect("removed");
    };
    let (first, second) = cases.split_at(cases.len() / 2);
    thread::scope(|scope| {
        scope.spawn(|| first.iter().copied().for_each(one));
        second.iter().copied().for_each(one);
    });
    expected
}
