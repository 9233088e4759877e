//! Compiles the BPF object.

#[path = "../hostctl/compile.rs"]
mod compile;

const HEADERS: [&str; 5] =
    ["../bpf_marimo/bpf_marimo.h", "../bpf_marimo/kernel.h", "../bpf.h", "../marimo_tcp.h", "../../core/marimo.h"];

fn main() {
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    let folders = ["../bpf_marimo", "../../core"];
    compile::compile("../bpf_marimo/bpf_marimo.bpf.c", &folders, &HEADERS, "bpf_marimo.bpf.o", None);
}
