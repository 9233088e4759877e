//! Compiles the BPF programs.

#[path = "../hostctl/compile.rs"]
mod compile;

fn main() {
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    println!("cargo:rerun-if-env-changed=ONRAMP_PROGRAM");
    let shared = ["../onramp/bpf_onramp.h", "../onramp/common.h", "../onramp/kernel.h", "../bpf.h", "../onramp_tcp.h"];
    // What a rig has instead (record, skew); what is shipped is built without.
    let program = std::env::var("ONRAMP_PROGRAM").unwrap_or_else(|_| "onramp".into());
    compile::compile(
        &format!("../onramp/{program}.bpf.c"),
        &["../onramp"],
        &[&shared[..], &["../../core/onramp.h", "../onramp/onramp.bpf.c"]].concat(),
        "onramp.bpf.o",
        None,
    );
    // Its tags need a newer one than others do. Without, there is one form less.
    let found = ["clang-19", "clang-20", "clang-21", "clang-18", "clang-17", "clang"]
        .into_iter()
        .find(|clang| version(clang) >= 17);
    if let Some(clang) = found {
        compile::compile(
            "../onramp/qdisc.bpf.c",
            &["../onramp"],
            &[&shared[..], &["../onramp/qdisc.h"]].concat(),
            "qdisc.bpf.o",
            Some(clang),
        );
    } else {
        let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
        std::fs::write(std::path::Path::new(&out).join("qdisc.bpf.o"), []).expect("the folder is there");
        // A file that is never there: the next build looks again.
        println!("cargo:rerun-if-changed=no-clang");
        println!("cargo:warning=no clang of 17 or later (Debian package clang-19): onrampctl without the form qdisc");
    }
}

/// A compiler's version; 0 without it.
fn version(clang: &str) -> u32 {
    let said =
        std::process::Command::new(clang).arg("-dumpversion").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).split('.').next().and_then(|major| major.trim().parse().ok()).unwrap_or(0)
}
