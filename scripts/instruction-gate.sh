#!/usr/bin/env bash
# Guards the engine's cost: instructions per packet-hop of a small perm-128, counted by callgrind, which does not
# depend on the machine's load. Two runs of different length are subtracted, so that set-up does not count.
# And guards the ratio of Mercury to plain DCQCN on clos3-320, with a flow table wherever a packet waits, and the cold
# lines of a packet-hop among 8,192 hosts: last-level misses of a cache of 8 MiB, which knows of no prefetching.
# usage: scripts/instruction-gate.sh [--record]
set -euo pipefail
cd "$(dirname "$0")/.."
limit_file=scripts/instructions-per-hop
tolerance=3 # percent
misses_file=scripts/misses-per-thousand-hops
misses_tolerance=5 # percent: where memory lies makes a difference of one or two

scripts/debian.sh valgrind valgrind "the instruction gate"
command -v valgrind >/dev/null || exit 0

incast=${INCAST:-${CARGO_TARGET_DIR:-target}/release/incast}
[ -n "${INCAST:-}" ] || cargo build --release --locked --quiet -p incast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints "instructions packet-hops" of the scenario $1 with further arguments; "misses packet-hops" where $cache is the
# last level of a cache.
cache=
count() {
    valgrind --tool=callgrind --cache-sim="$([ -n "$cache" ] && echo yes || echo no)" ${cache:+--LL="$cache"} \
        --callgrind-out-file="$work/callgrind" --log-file="$work/log" \
        "$incast" run "scripts/$1.toml" "${@:2}" \
        --jobs 1 --threads 1 --quiet --json --force --out "$work/out" >"$work/rows"
    local events hops
    # Instructions, reads, writes, misses of the first level and of the last: of instructions, reads and writes.
    read -ra events <<<"$(sed -n 's/.*Collected *: *//p' "$work/log")"
    hops=$(sed -n 's/.*"packet_hops": *\([0-9][0-9]*\).*/\1/p' "$work/rows" | head -n 1)
    if [ -n "$cache" ]; then
        echo "$((events[6] + events[7] + events[8])) $hops"
    else
        echo "${events[0]} $hops"
    fi
}
# Prints the difference of two such counts, for $per packet-hops: of the scenario $1 where $2 is $3, and where it is $4.
per=1
per_hop() {
    local short short_hops long long_hops
    read -r short short_hops <<<"$(count "$1" --set "$2=$3" "${@:5}")"
    read -r long long_hops <<<"$(count "$1" --set "$2=$4" "${@:5}")"
    echo $((per * (long - short) / (long_hops - short_hops)))
}
measured=$(per_hop instruction-gate workload.permutation.size 300KB 900KB)

misses=$(cache=8388608,16,64 per=1000 per_hop instruction-gate-large workload.permutation.size 8KB 16KB)

if [ "${1:-}" = --record ]; then
    echo "$measured" >"$limit_file"
    echo "$misses" >"$misses_file"
fi
recorded=$(cat "$limit_file")
echo "instructions per packet-hop: $measured (recorded: $recorded, allowed: +$tolerance%)"
if ! grep -qw avx2 /proc/cpuinfo; then
    echo "recorded on a processor with AVX2, which sorts arrivals with fewer instructions: not compared" >&2
elif [ $((measured * 100)) -gt $((recorded * (100 + tolerance))) ]; then
    echo "the engine became slower: find out why, or record the new number with a reason in docs/performance.md" >&2
    exit 1
fi

recorded=$(cat "$misses_file")
echo "last-level misses of 1,000 packet-hops: $misses (recorded: $recorded, allowed: +$misses_tolerance%)"
if [ $((misses * 100)) -gt $((recorded * (100 + misses_tolerance))) ]; then
    echo "a packet-hop touches more cold lines: find out which, or record the new number with a reason" >&2
    exit 1
fi

plain=$(per_hop instruction-gate-agents duration 20us 60us --only scheme=dcqcn)
agents=$(per_hop instruction-gate-agents duration 20us 60us --only scheme=mercury)
echo "with Mercury: $agents, with plain DCQCN: $plain (allowed: +15%)"
if [ $((agents * 100)) -gt $((plain * 115)) ]; then
    echo "in-switch algorithms became too expensive" >&2
    exit 1
fi
