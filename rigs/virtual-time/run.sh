#!/usr/bin/env bash
# The virtual-time rig's own tests: tcp_marimo in a real kernel whose time is virtual.
# usage: run.sh --units         its parts alone, without a kernel
#        run.sh --short         the same, and one incast twice with the same seed, once under load, and once with another seed
#        run.sh --seeds N       the same incast with N seeds, and its spread
#        run.sh --faults        peers without ECN, losses, reordering, duplicates, ECN stripped, CE everywhere; with offloads:
#                               marks, losses, reordering
#        run.sh --churn         1,000 connections for a minute in a kernel that checks every access of memory
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../.. && pwd)
cache=${RIG_CACHE:-$root/target/rigs/virtual-time}
out=$cache/tests
mkdir -p "$out"
load=
trap 'if [ -n "$load" ]; then kill "$load" 2>/dev/null || true; fi' EXIT

fail() {
    echo "virtual time: $1" >&2
    exit 1
}

# Plays a case; 3 means that this machine lacks something.
play() {
    local folder=$1 status=0
    shift
    "$here/rig.py" "$folder/rig.json" "$folder" "$@" || status=$?
    if [ "$status" = 3 ]; then
        if [ "${CI:-}" = true ]; then fail "what it needs is missing"; fi
        echo "skipped: tcp_marimo under virtual time"
        exit 0
    fi
    return "$status"
}

field() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1/result.json" "$2"
}

digest() {
    field "$1" digest
}

case_of() {
    local folder=$out/$1
    shift
    rm -rf "$folder"
    ./make-case.py "$folder" "$@"
    echo "$folder"
}

units() {
    python3 -B -m unittest discover 2>"$out/tests.log" || {
        cat "$out/tests.log" >&2
        fail "the rig's own tests"
    }
    echo "virtual time: the rig's own tests: $(tail -n 3 "$out/tests.log" | head -n 1)"
}

short() {
    local start=$SECONDS first again other late status=0
    units
    first=$(case_of first)
    again=$(case_of again)
    other=$(case_of other seed=2)
    play "$first"
    (while :; do :; done) &
    load=$!
    play "$again"
    kill "$load"
    wait "$load" 2>/dev/null || true
    load=
    play "$other"
    [ "$(digest "$first")" = "$(digest "$again")" ] || fail "two runs of one seed differ: $first and $again"
    [ "$(digest "$first")" != "$(digest "$other")" ] || fail "two seeds gave the same run: $first and $other"
    # A thousandth of the rate, and a second of time: not done at the deadline, which is told apart from a failure.
    late=$(case_of late bottleneck_rate_bps=1000000 deadline_s=1)
    play "$late" >"$late/rig.log" 2>&1 || status=$?
    if [ "$status" != 4 ] || [ "$(grep -c '^[0-9]' "$late/FLOWS.csv")" != 8 ] ||
        [ "$(field "$late" outcome)" != unfinished ]; then
        cat "$late/rig.log" >&2
        fail "a play that ends at its deadline: exit code $status; see $late"
    fi
    [ "$(./rig.py --fingerprint)" = "$(field "$first" fingerprint)" ] || fail "--fingerprint and result.json differ"
    ./reconcile.py "$first" --exact-echo
    ./reconcile.py "$other" --exact-echo
    ./replay.py "$first/trace.txt" --out "$first/replay.txt"
    # Not -p incast-cc: its dependencies would be compiled once more, without the features that others want of them.
    INCAST_REPLAY=$first/replay.txt "${CARGO:-cargo}" test --quiet --locked --test marimo_replay \
        --manifest-path "$root/Cargo.toml" >"$first/replay.log" 2>&1 || {
        cat "$first/replay.log" >&2
        fail "incast-cc decides otherwise than the kernel"
    }
    echo "virtual time: one seed, one result (twice, once under load), another seed another; marks sent, received and" \
        "echoed agree; incast-cc decides as the kernel did; $((SECONDS - start)) s"
}

seeds() {
    local seed folder
    for seed in $(seq 1 "$1"); do
        folder=$(case_of "seed-$seed" "seed=$seed")
        play "$folder" >/dev/null
        ./reconcile.py "$folder" --exact-echo >/dev/null
    done
    python3 - "$out" "$1" <<'END'
import csv, json, pathlib, statistics, sys
out, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rows = {"last flow (us)": [], "median flow (us)": [], "marks": [], "retransmissions": [], "packets per second of wall time": []}
for seed in range(1, count + 1):
    folder = out / f"seed-{seed}"
    flows = list(csv.DictReader(open(folder / "FLOWS.csv", newline="")))
    times = sorted((int(f["end_ns"]) - int(f["start_ns"])) / 1e3 for f in flows)
    result = json.load(open(folder / "result.json"))
    rows["last flow (us)"].append(times[-1])
    rows["median flow (us)"].append(statistics.median(times))
    rows["marks"].append(sum(int(f["delivered_ce"]) for f in flows))
    rows["retransmissions"].append(sum(int(f["retransmissions"]) for f in flows))
    rows["packets per second of wall time"].append(result["packets"] / result["wall_seconds"])
print(f"virtual time: {count} seeds: least, mean, most")
for name, values in rows.items():
    print(f"  {name}: {min(values):.0f}, {statistics.mean(values):.0f}, {max(values):.0f}")
END
}

faults() {
    local folder name kinds words
    # The second column is what must have happened at least once, by the trace.
    while read -r name kinds words; do
        # shellcheck disable=SC2086
        folder=$(case_of "fault-$name" ecn_check=false bytes=100000 $words)
        play "$folder" >/dev/null || fail "$name: see $folder"
        ./reconcile.py "$folder" >/dev/null || fail "$name: see $folder"
        if [ "$kinds" != - ]; then
            # shellcheck disable=SC2086
            ./episodes.py "$folder" ${kinds//,/ } || fail "$name: see $folder"
        fi
        # A peer of another congestion control refuses ECN, as the SYN is itself ECN-capable.
        if [ "$name" = fallback ] && grep -q ',marimo$' "$folder/FLOWS.csv"; then fail "no fallback: see $folder"; fi
        echo "virtual time: $name: every byte arrived, the log is clean"
    done <<'END'
offloads - offloads=true
fallback - receiver_congestion=reno
loss loss faults={"loss_percent":5}
offloads-loss loss offloads=true faults={"loss_percent":5}
reordering loss,undo faults={"reorder_percent":25}
offloads-reordering loss,undo offloads=true faults={"reorder_percent":25}
duplicates - faults={"duplicate_percent":2}
stripped - faults={"ecn":"stripped"}
every - faults={"ecn":"ce"}
END
}

churn() {
    local folder start=$SECONDS
    play "$(case_of probe congestion=reno flows=1 bytes=1000)" --kasan --probe >/dev/null
    # Small and slow, so that a minute of it is a matter of minutes; with room for a packet of each connection.
    folder=$(case_of churn senders=1 plan=null bottleneck_rate_bps=10000000 host_rate_bps=100000000 trace=false \
        buffer_bytes=2000000 'red={"limit":2000000}' 'churn={"connections":1000,"seconds":60,"bytes":2000}')
    play "$folder" --kasan --wall-limit 3000
    echo "virtual time: $(grep connections, "$folder/console.txt"), KASAN silent but for a probe; $((SECONDS - start)) s"
}

case "${1:-}" in
--units) units ;;
--short) short ;;
--seeds) seeds "${2:-10}" ;;
--faults) faults ;;
--churn) churn ;;
*)
    echo "usage: run.sh --units | --short | --seeds N | --faults | --churn; found ${1:-nothing}" >&2
    exit 2
    ;;
esac
