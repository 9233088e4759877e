#!/usr/bin/env bash
# Says in one line what a build of incast lacks on this machine, and succeeds if that is nothing.
# usage: scripts/needs.sh
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
missing=()
# rustup's proxies answer only where a toolchain is installed.
found=$("${RUSTC:-rustc}" --version 2>/dev/null | cut -d' ' -f2 || true)
if [ -z "$found" ] || ! "${CARGO:-cargo}" --version >/dev/null 2>&1; then
    missing+=("a Rust toolchain of at least $wanted (https://rustup.rs)")
elif [ "$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1)" != "$wanted" ]; then
    missing+=("Rust $wanted or newer, found $found (rustup update)")
fi
if ! echo '#include <stdlib.h>' | "${CC:-cc}" -E - >/dev/null 2>&1; then
    missing+=("a C compiler with the C library's headers (Debian packages gcc and libc6-dev)")
fi
if [ ${#missing[@]} -gt 0 ]; then
    line=$(printf '; %s' "${missing[@]}")
    echo "incast cannot be built, missing: ${line:2}" >&2
    exit 1
fi
