//! Compiles the BPF programs.

#[path = "../hostctl/compile.rs"]
mod compile;

fn main() {
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    compile::compile(
        "../onramp/onramp.bpf.c",
        &["../onramp"],
        &["../onramp/bpf_onramp.h", "../onramp/kernel.h", "../bpf.h", "../onramp_tcp.h", "../../core/onramp.h"],
        "onramp.bpf.o",
        None,
    );
}
