//! Compiles a BPF object in a build script. Only clang is needed: no headers of a kernel, nothing generated from the machine it is
//! on.
//!
//! ```text
//! #[path = "../hostctl/compile.rs"]
//! mod compile;
//! ```

use std::{env, path::Path, process::Command};

/// Compiles `source` to `object` in `OUT_DIR`, with headers of `folders`, again when one of the `watched` files changes. Clang is
/// what `clang` says, else what the variable CLANG says. The build script ends where it fails.
pub fn compile(source: &str, folders: &[&str], watched: &[&str], object: &str, clang: Option<&str>) {
    for file in watched.iter().chain([&source]) {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = clang.map_or_else(|| env::var("CLANG").unwrap_or_else(|_| "clang".into()), str::to_owned);
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let mut command = Command::new(&clang);
    command
        .args(["-target", target, "-mcpu=v3", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"])
        .args(folders.iter().map(|folder| format!("-I{folder}")))
        .arg(source)
        .arg("-o")
        .arg(Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join(object));
    let failure = match command.status() {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{clang} ended with {status}"),
        Err(error) => format!("{clang} did not start: {error} (Debian package clang, or set CLANG)"),
    };
    let name = source.rsplit('/').next().unwrap_or(source);
    println!("cargo:error={name} was not compiled: {failure}");
    std::process::exit(1);
}
