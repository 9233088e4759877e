#!/usr/bin/env bash
# Cargo on all crates of the workspace at once. Cargo unites the features of what the selected crates depend on: with one
# selection everywhere each dependency is compiled once, and every lane finds it. The targets among them are named
# (--bin, --test); a test among the targets makes dependencies of tests count, as they do when all tests are run.
#
# Left out: the Python extension, which has no test and needs more of Arrow; and marimoctl, with hostctl below it, and QUIC
# where what they need beside a Rust toolchain and a C compiler can be neither found nor installed (clang for the BPF
# object, libelf and zlib for what loads it, pkg-config to find them, cmake for QUIC's cryptography), which in CI is an
# error.
# usage: scripts/workspace.sh [--python | --tools-seen-to] COMMAND [ARGUMENTS OF CARGO] [-- ARGUMENTS BEHIND IT]
#        --python: with the Python extension
#        --tools-seen-to: the caller has what its targets need, which may be less
set -euo pipefail
cd "$(dirname "$0")/.."
selection=(--workspace --exclude incast-py)
what="marimoctl and Marimo over QUIC"
case $1 in
--python)
    selection=(--workspace)
    shift
    ;;&
--tools-seen-to) shift ;;
*)
    scripts/debian.sh clang clang "$what"
    scripts/debian.sh clang-19 clang-19 "the form qdisc of onrampctl"
    scripts/debian.sh cmake cmake "$what"
    scripts/debian.sh pkg-config pkg-config "$what"
    [ -e /usr/include/libelf.h ] || scripts/debian.sh libelf.h libelf-dev "$what"
    [ -e /usr/include/zlib.h ] || scripts/debian.sh zlib.h zlib1g-dev "$what"
    if ! { command -v clang && command -v cmake && command -v pkg-config &&
        [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; } >/dev/null; then
        selection+=(--exclude hostctl --exclude marimoctl --exclude onrampctl --exclude incast-quic)
    fi
    ;;
esac
command=$1
shift
exec "${CARGO:-cargo}" "$command" "${selection[@]}" "$@"
