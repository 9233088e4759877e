#!/usr/bin/env bash
# Applies each patch of sabotage/ to a copy of deploy/ and runs the unit tests there: each must turn one red. That
# they are green without a patch is shown first.
# usage: sabotage.sh [OUT]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
out=${1:-$root/target/deploy/sabotage}

# A copy of what the unit tests read.
copy() {
    rm -rf "$1"
    mkdir -p "$1/deploy"
    cp -R "$root/deploy/core" "$root/deploy/linux" "$1/deploy/"
}

copy "$out/none"
"$out/none/deploy/linux/tcp_marimo/test/unit.sh" "$out/none/out" >"$out/none.log" 2>&1 || {
    cat "$out/none.log"
    echo "tcp_marimo: the unit tests fail without sabotage"
    exit 1
}
count=0
for patch in "$here"/sabotage/*.patch; do
    name=$(basename "$patch" .patch)
    copy "$out/$name"
    patch --quiet --fuzz=0 -p1 -d "$out/$name" <"$patch"
    if "$out/$name/deploy/linux/tcp_marimo/test/unit.sh" "$out/$name/out" >"$out/$name.log" 2>&1; then
        echo "tcp_marimo: sabotage $name was not noticed"
        exit 1
    fi
    # A test that failed, not a copy that did not compile.
    if ! grep -q '^FAILED ' "$out/$name.log"; then
        cat "$out/$name.log"
        echo "tcp_marimo: sabotage $name broke the build instead of a test"
        exit 1
    fi
    echo "tcp_marimo: sabotage $name: $(grep '^FAILED ' "$out/$name.log" | sort -u | sed 's/FAILED //' | tr '\n' ' ')"
    count=$((count + 1))
done
if [ "$count" -ne 4 ]; then
    echo "tcp_marimo: $count sabotage patches, expected 4"
    exit 1
fi
echo "tcp_marimo: $count sabotage patches, each noticed by a unit test"
