//! Runs the real binary on real files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The binary: that of `INCAST`, an absolute path, or what cargo compiled for the tests, which is slower.
pub fn program() -> PathBuf {
    std::env::var_os("INCAST").map_or_else(|| env!("CARGO_BIN_EXE_incast").into(), PathBuf::from)
}

/// The binary with arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments);
    command
}

/// Runs it to its end.
pub fn incast(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary starts")
}

/// Runs it and insists on exit code 0; what it printed on stdout.
pub fn succeed(arguments: &[&str]) -> String {
    let output = incast(arguments);
    assert!(output.status.success(), "{arguments:?}\n{}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// What it printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scenario of the tests.
pub fn scenario(name: &str) -> String {
    let path = std::path::absolute(format!("tests/scenarios/{name}.toml")).expect("a working directory");
    text(&path).to_owned()
}

/// A fresh, empty folder of a test's own.
pub fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if path.exists() {
        fs::remove_dir_all(&path).expect("an old folder of this test");
    }
    fs::create_dir_all(&path).expect("a new folder");
    path
}

/// As an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Folders of finished runs, sorted.
pub fn runs(results: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(results) else { return Vec::new() };
    let mut runs: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| is_finished(path)).collect();
    runs.sort();
    runs
}

fn is_finished(path: &Path) -> bool {
    path.join("run.json").exists() && path.extension().is_none_or(|ending| ending != "partial")
}

/// A JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}
