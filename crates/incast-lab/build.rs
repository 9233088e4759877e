//! Gives the program an identity: a hash of the sources of everything that decides results, so that results of
//! different engines are never mixed because both call themselves 0.1.0.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders whose sources decide results. From a registry each crate is alone, and only the last one is here; there the
/// crates' versions tell engines apart, and published sources do not change.
const SOURCES: [&str; 5] =
    ["../incast-units/src", "../incast-cc/src", "../incast-sim/src", "../../deploy/core", "src"];

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
    for name in SOURCES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if !folder.exists() {
            continue;
        }
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut found = Vec::new();
        files(&folder, &mut found);
        found.sort();
        for byte in found.iter().filter_map(|file| fs::read(file).ok()).flatten() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=INCAST_SOURCES={hash:016x}");
}
