#!/usr/bin/env bash
# Records again what deploy/core/test/marimo-kernel.txt holds: what a kernel's Marimo was told and decided, for every
# connection of three small incasts: marks alone, a buffer that overflows, and random losses with timeouts.
# usage: record.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
out=${1:-$root/deploy/core/test/marimo-kernel.txt}
cache=${RIG_CACHE:-$root/target/rigs/virtual-time}
record=$cache/record
mkdir -p "$record"

record() {
    local folder=$record/$1
    shift
    ./make-case.py "$folder" "$@"
    ./rig.py "$folder/rig.json" "$folder" >/dev/null
    ./replay.py "$folder/trace.txt" --out "$folder/replay.txt"
}

record marks bytes=200000
record overflow senders=8 flows=8 bytes=200000 'red={"limit":60000}' buffer_bytes=60000
record losses flows=6 bytes=100000 'faults={"loss_percent":8}'
cat "$record"/{marks,overflow,losses}/replay.txt >"$out.partial"
mv "$out.partial" "$out"
echo "$out: $(wc -l <"$out") lines"
