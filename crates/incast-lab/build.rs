//! Gives the program an identity: a hash of the sources of everything that decides results, so that results of
//! different engines are never mixed because both call themselves 0.1.0.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders whose files decide results: sources of other crates, our own, and distributions. Relative to this crate's
/// folder, in which cargo runs build scripts: where the script was compiled says nothing about which tree is built.
const OTHERS: [&str; 5] =
    ["../incast-units/src", "../incast-cc/src", "../incast-engine/src", "../incast-sim/src", "../incast-cc/core"];
const OWN: [&str; 2] = ["src", "workloads"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn main() {
    // FNV-1a: a build script needs no library to notice a change.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    let (there, missing): (Vec<_>, Vec<_>) = OTHERS.iter().map(Path::new).partition(|folder| folder.exists());
    // From a registry each crate is alone: there the crates' versions tell engines apart, and published sources do not
    // change. Anywhere else a part of the sources would give a hash that is not theirs.
    assert!(there.is_empty() || missing.is_empty(), "these sources are missing: {missing:?}");
    for folder in there.into_iter().chain(OWN.map(Path::new)) {
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut found = Vec::new();
        files(folder, &mut found);
        found.sort();
        for byte in found.iter().filter_map(|file| fs::read(file).ok()).flatten() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=INCAST_SOURCES={hash:016x}");
}
