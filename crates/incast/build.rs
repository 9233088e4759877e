//! Makes the bundled scenarios, and the files beside them, part of the binary; and tells it what it was built from.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

fn main() -> io::Result<()> {
    let of = |name: &str| env::var(name).unwrap_or_else(|_| "unknown".into());
    println!("cargo::rerun-if-env-changed=INCAST_TREE");
    println!("cargo::rustc-env=INCAST_BUILD=commit {}, {}, {}", commit(), of("PROFILE"), of("TARGET"));
    let root = Path::new("scenarios");
    // What the link leads to, where it is one.
    println!("cargo::rerun-if-changed={}", fs::canonicalize(root)?.display());
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    // A program without scenarios would look as if it worked.
    if files.is_empty() {
        return Err(io::Error::other("found no scenarios in crates/incast/scenarios, a link to ../../scenarios"));
    }
    let mut text = String::from("/// Path and content of each bundled file.\nconst BUNDLED: &[(&str, &[u8])] = &[\n");
    for file in files {
        // With `/` on every system: these are names.
        let parts = file.strip_prefix(root).unwrap_or(&file).components();
        let name: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let absolute = fs::canonicalize(&file)?;
        text.push_str(&format!("    ({:?}, include_bytes!({:?})),\n", name.join("/"), absolute.display().to_string()));
    }
    text.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("bundled.rs"), text)
}

/// What the program is built from, in the repository: a change here makes it another program than the commit's.
const BUILT_FROM: [&str; 12] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/incast-cc/src",
    "crates/incast-engine/src",
    "crates/incast-interop/src",
    "crates/incast-lab/src",
    "crates/incast-sim/src",
    "crates/incast-units/src",
    "crates/incast/src",
    "deploy/core",
    "scenarios",
    "workloads",
];

/// The commit of the sources, and whether they differ from it: of the repository around this crate, or the one that a
/// package was made of.
fn commit() -> String {
    const ROOT: &str = "../..";
    // Written by `cargo package`.
    const PACKAGED: &str = ".cargo_vcs_info.json";
    let is_repository = Path::new(ROOT).join(".git").exists();
    let git = |arguments: &[&str]| {
        // Without the lock that `git status` takes to write down what it found.
        let git = ["--no-optional-locks", "-C", ROOT];
        let output = Command::new("git").args(git).args(arguments).output().ok();
        let output = output.filter(|output| is_repository && output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The log of HEAD grows with every commit.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    println!("cargo::rerun-if-changed={}", log.as_deref().unwrap_or("build.rs"));
    let packaged = || {
        let text = fs::read_to_string(PACKAGED).ok()?;
        let hash = text.split_once("\"sha1\"")?.1.split('"').nth(1)?.to_owned();
        Some(hash)
    };
    let changed = git(&[&["status", "--porcelain", "--"][..], &BUILT_FROM].concat());
    for place in BUILT_FROM.iter().filter(|_| is_repository) {
        println!("cargo::rerun-if-changed={ROOT}/{place}");
    }
    let hash = git(&["rev-parse", "HEAD"]).or_else(packaged);
    let is_hash = |hash: &String| hash.len() >= 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = hash.filter(is_hash).map_or_else(|| "unknown".into(), |hash| hash[..12].to_owned());
    if changed.is_some_and(|names| !names.is_empty()) { format!("{hash} with changes") } else { hash }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            collect(&path, files)?;
        } else if !hidden {
            files.push(path);
        }
    }
    Ok(())
}
