#!/usr/bin/env bash
# Tests of the simulator under AddressSanitizer and ThreadSanitizer, with the stable toolchain, and in the long form
# under Miri, where there is a nightly toolchain with it (docs/unsafe.md).
# usage: scripts/sanitize.sh [--short]
set -euo pipefail
cd "$(dirname "$0")/.."
libraries=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/lib
for runtime in asan tsan; do
    if ! ls "$libraries"/librustc*_rt.$runtime.a >/dev/null 2>&1; then
        echo "skipped: sanitizers (no librustc-stable_rt.$runtime.a in $libraries; rustup's toolchains for Linux have it)"
        [ "${CI:-}" != true ] || exit 1
        exit 0
    fi
done
address=(--lib --test determinism --test pfc --test credits --test trimming --test receiver_driven)
thread=()
if [ "${1:-}" = --short ]; then
    address=(--lib)
    thread=(--skip go_back_n --skip put_off)
fi
sanitized() {
    scripts/instrumented.sh "$1" "-Zsanitizer=$1 -Cunsafe-allow-abi-mismatch=sanitizer" \
        test --locked --quiet -p incast-sim "${@:2}"
}
sanitized address "${address[@]}"
export TSAN_OPTIONS="suppressions=$PWD/scripts/thread-sanitizer.supp"
# One test at a time: each has threads of its own.
sanitized thread --lib engine
sanitized thread --test determinism -- --test-threads 1 "${thread[@]}"
sanitized thread --test scale two_phases -- --test-threads 1
[ "${1:-}" != --short ] || exit 0
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    # No package registry has it, so that CI cannot install it.
    echo "skipped: the engine under Miri (rustup toolchain install nightly --component miri,rust-src)"
    exit 0
fi
CARGO_TARGET_DIR=target/miri cargo +nightly miri test --locked --quiet -p incast-sim --test engine_from_outside
