#!/usr/bin/env bash
# The engine under AddressSanitizer and ThreadSanitizer, with the stable toolchain; in the long form also packets and whole
# simulations, and the engine under Miri, where there is a nightly toolchain with it (docs/unsafe.md).
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
sanitized() {
    scripts/instrumented.sh "$1" "-Zsanitizer=$1 -Cunsafe-allow-abi-mismatch=sanitizer" test --locked --quiet "${@:2}"
}
# Whatever is unsafe and whatever threads share is in the engine, but for how packets hold telemetry.
sanitized address -p incast-engine --tests
export TSAN_OPTIONS="suppressions=$PWD/scripts/thread-sanitizer.supp"
# One test at a time: each has threads of its own.
sanitized thread -p incast-engine --tests -- --test-threads 1
[ "${1:-}" != --short ] || exit 0
sanitized address -p incast-sim --lib
sanitized address -p incast-sim --test it determinism:: pfc:: credits:: trimming:: receiver_driven::
sanitized thread -p incast-sim --test it determinism:: scale::two_phases -- --test-threads 1
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    # No package registry has it, so that CI cannot install it.
    echo "skipped: the engine under Miri, which alone sees uninitialised reads and broken aliasing in it" \
        "(rustup toolchain install nightly --component miri,rust-src)"
    exit 0
fi
CARGO_TARGET_DIR=target/miri cargo +nightly miri test --locked --quiet -p incast-engine --test from_outside
