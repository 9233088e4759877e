#!/usr/bin/env bash
# Builds the program twice from this tree, each time from nothing, and compares the two files. About ten minutes of two
# processors; not in CI.
# usage: scripts/reproducible.sh
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for build in first second; do
    rm -rf "$work/target"
    CARGO_TARGET_DIR=$work/target CARGO_INCREMENTAL=0 "$cargo" build --release --locked --quiet -p incast
    mv "$work/target/release/incast" "$work/$build"
done
sha256sum "$work/first" "$work/second" | sed "s#$work/##"
if ! cmp --silent "$work/first" "$work/second"; then
    echo "reproducible.sh: two builds of one tree differ, from byte $(cmp "$work/first" "$work/second" | sed 's/.*byte \([0-9]*\).*/\1/') on" >&2
    exit 1
fi
echo "reproducible: two builds are one file"
