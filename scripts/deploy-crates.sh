#!/usr/bin/env bash
# Runs cargo on the crates of deploy/, which need more than a Rust toolchain and a C compiler: clang for the BPF object,
# libelf and zlib for what loads it, pkg-config to find them, cmake for QUIC's cryptography. Where they can be neither
# found nor installed, says so and succeeds, except in CI.
#
# Lanes that need some of their targets name these and build them here, too: cargo takes the features of what all three
# depend on together, and would compile that again for one crate alone. A test among the targets makes dependencies of
# tests count, as they do when all tests are run.
# usage: scripts/deploy-crates.sh [--tools-seen-to] COMMAND [ARGUMENTS OF CARGO] [-- ARGUMENTS BEHIND IT]
#        --tools-seen-to: the caller has what its targets need, which may be less
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = --tools-seen-to ]; then
    shift
else
    what="the crates of deploy/"
    scripts/debian.sh clang clang "$what"
    scripts/debian.sh cmake cmake "$what"
    scripts/debian.sh pkg-config pkg-config "$what"
    [ -e /usr/include/libelf.h ] || scripts/debian.sh libelf.h libelf-dev "$what"
    [ -e /usr/include/zlib.h ] || scripts/debian.sh zlib.h zlib1g-dev "$what"
    if ! { command -v clang && command -v cmake && command -v pkg-config &&
        [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; } >/dev/null; then
        exit 0
    fi
fi
command=$1
shift
exec "${CARGO:-cargo}" "$command" -p rig-traffic -p marimoctl -p incast-quic "$@"
