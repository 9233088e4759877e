//! Compiles the BPF object. Only clang is needed: no headers of a kernel, nothing generated from the machine it is on.

use std::{env, path::PathBuf, process::Command};

const FOLDERS: [&str; 2] = ["../bpf_marimo", "../../core"];
const HEADERS: [&str; 5] = [
    "../bpf_marimo/bpf_marimo.bpf.c",
    "../bpf_marimo/bpf_marimo.h",
    "../bpf_marimo/kernel.h",
    "../marimo_tcp.h",
    "../../core/marimo.h",
];

fn main() {
    for file in HEADERS {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("bpf_marimo.bpf.o");
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let mut command = Command::new(&clang);
    command
        .args(["-target", target, "-mcpu=v3", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"])
        .args(FOLDERS.map(|folder| format!("-I{folder}")))
        .arg(HEADERS[0])
        .arg("-o")
        .arg(&object);
    let failure = match command.status() {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{clang} ended with {status}"),
        Err(error) => format!("{clang} did not start: {error} (Debian package clang, or set CLANG)"),
    };
    println!("cargo:error=bpf_marimo.bpf.c was not compiled: {failure}");
    std::process::exit(1);
}
