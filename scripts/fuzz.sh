#!/usr/bin/env bash
# Fuzzes the readers of files: libFuzzer, which mutates inputs by the coverage they reach, with a stable toolchain.
# An input that panics, takes 10 seconds or allocates gigabytes is a failure; its file is in target/fuzz/failures.
# usage: scripts/fuzz.sh SECONDS [TARGET…]     each target for so long; all of fuzz/fuzz_targets without TARGET
#        scripts/fuzz.sh --replay [TARGET…]    every input to start from once, by targets of an ordinary build
# An input again: target/debug/fuzz-TARGET FILE
set -euo pipefail
cd "$(dirname "$0")/.."
export RUST_BACKTRACE=0 TMPDIR=$PWD/target/fuzz/tmp
seconds=${1/--replay/0}
shift
[ $# -gt 0 ] || set -- scenario import tables results
scripts/debian.sh c++ g++ "fuzzing: libFuzzer is compiled from its sources"
command -v c++ >/dev/null || exit 0

work=target/fuzz
rm -rf "$work/tmp"
mkdir -p "$work"/{failures,tmp,seeds/scenario,seeds/tables,seeds/results}
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
# In the selection of all other lanes (scripts/workspace.sh), so that dependencies are those that are there.
bins=()
for target in "$@"; do bins+=(--bin "fuzz-$target"); done
build=(build --locked --quiet --workspace --exclude incast-py "${bins[@]}")
if [ "$seconds" = 0 ]; then
    # A test among the targets: dependencies of tests count, and what is there is used (scripts/workspace.sh).
    "${CARGO:-cargo}" "${build[@]}" --test from_outside
else
    scripts/instrumented.sh fuzz "$coverage" "${build[@]}"
fi

# Inputs to start from: what is committed, and the words of the schema.
rm -f "$work"/seeds/*/*
find scenarios crates/incast/tests/scenarios -name "*.toml" | while read -r file; do
    cp "$file" "$work/seeds/scenario/${file//\//-}"
done
for file in workloads/*.csv; do
    { echo distribution; cat "$file"; } >"$work/seeds/tables/$(basename "$file")"
done
{ echo trace; cat crates/incast/tests/scenarios/ring.csv; } >"$work/seeds/tables/ring"
for file in scenarios/*/*.topology; do
    { echo topology; head -n 60 "$file"; } >"$work/seeds/tables/$(basename "$file")"
done
# An edit of a record each: see fuzz_targets/results.rs.
for number in $(seq 0 63); do
    edit=$(printf '\\x%02x' "$number" $((number * 7)) 0 $((number * 37 % 256)) $((number * 11 % 256)))
    printf %b "$edit" >"$work/seeds/results/edit-$number"
done
grep -oE '"[a-z][a-z0-9_-]{2,30}"' docs/scenario.schema.json | sort -u >"$work/words"

limits=(-timeout=10 -rss_limit_mb=1024 -max_len=8192)
for target in "$@"; do
    seeds=$work/seeds/$target
    [ -d "$seeds" ] || seeds=fuzz/seeds/$target
    mkdir -p "$work/corpus/$target"
    log=$work/$target.log
    run=(-max_total_time="$seconds" -dict="$work/words" -print_final_stats=1 "$work/corpus/$target" "$seeds")
    [ "$seconds" != 0 ] || run=("$seeds"/*)
    # The limit on memory makes a huge allocation fail even if it is never written.
    if ! (
        ulimit -v 4194304
        "${CARGO_TARGET_DIR:-target}/debug/fuzz-$target" "${limits[@]}" -artifact_prefix="$work/failures/$target-" "${run[@]}"
    ) >"$log" 2>&1; then
        grep -vE '^(#[0-9]|\s+(NEW|REDUCE))' "$log" | tail -n 40 >&2
        echo "fuzzing $target failed: $log; the input is in $work/failures" >&2
        exit 1
    fi
    if [ "$seconds" = 0 ]; then
        inputs=$(grep -c '^Executed ' "$log")
        [ "$inputs" -gt 0 ] || { echo "fuzzing $target: nothing was replayed: $log" >&2; exit 1; }
        echo "fuzzing $target: $inputs inputs replayed, no failure"
        continue
    fi
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    reached=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)
    echo "fuzzing $target: $inputs inputs in $seconds s, $reached, no failure"
done
