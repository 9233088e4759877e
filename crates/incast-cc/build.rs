//! Compiles the laws that exist as C: the same files that a kernel module and a NIC are built from.

fn main() {
    // A link to deploy/core, so that the files are in the crate when it is packaged.
    let core = "core";
    println!("cargo:rerun-if-env-changed=INCAST_TREE");
    for file in ["marimo.c", "marimo.h", "onramp.c", "onramp.h"] {
        println!("cargo:rerun-if-changed={core}/{file}");
    }
    cc::Build::new()
        .file(format!("{core}/marimo.c"))
        .file(format!("{core}/onramp.c"))
        .std("c99")
        .flag_if_supported("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .compile("incast-core");
}
