#!/usr/bin/env bash
# The numbers of docs/deploy.md (Marimo over QUIC), from this machine.
# usage: deploy/quic/test/measure.sh [--repeat N] [CASE]…
# Cases: two-packets small-marks bundles burst late-hole controllers [default: all]
# shellcheck disable=SC2119,SC2120
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=deploy/quic/test/rig.sh
. deploy/quic/test/rig.sh
all="two-packets small-marks bundles burst late-hole controllers"

refuse() {
    echo "measure.sh: $1" >&2
    exit 2
}

if [ "${1:-}" != --inside ]; then
    repeat=1 cases=
    while [ $# -gt 0 ]; do
        case $1 in
        --repeat)
            [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || refuse "--repeat ${2:-}: allowed are 1 to 99"
            repeat=$2
            shift
            ;;
        *)
            case " $all " in *" $1 "*) ;; *) refuse "$1: no such case; allowed are $all" ;; esac
            cases="$cases $1"
            ;;
        esac
        shift
    done
    lacks=$(rig_lacks)
    if [ -n "$lacks" ]; then
        echo "measure.sh: $lacks" >&2
        exit 1
    fi
    scripts/workspace.sh --tools-seen-to build --quiet --locked --bin marimo-perf --test loopback
    perf=$(realpath "${CARGO_TARGET_DIR:-target}/debug/marimo-perf")
    export perf
    # shellcheck disable=SC2086
    rig_alone "measure-$$" deploy/quic/test/measure.sh --inside "$repeat" ${cases:-$all}
    exit
fi
rig_begin
repeat=$2
shift 2
marker_object=$work/marker.bpf.o

# usage: compile THRESHOLD: the marker, with its threshold in bytes
compile() {
    clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -DTHRESHOLD="$1" -c deploy/quic/test/marker.bpf.c \
        -o "$marker_object"
}

# usage: row NAME: one line about its first flow
row() { python3 - "$work/$1/quic.json" "$1" <<'PY'
import json, sys
flow = json.load(open(sys.argv[1]))["flows"][0]
path, fct = flow["connection"], flow["fct_us"]
rate = f"{path['acked_bytes'] * 8 / fct:.1f}" if fct else "-"
print(f"{sys.argv[2]:24} {flow['status']:10} Mbit/s {rate:>6}  packets {path['sent_packets']}, marked {path['ce_packets']}, "
      f"lost {path['lost_packets']}, PTO {path['probe_timeouts']}, ECN {path['ecn']}, fallbacks {path['fallbacks']}")
PY
}

# usage: measured NAME SCENARIO ARGUMENT…: sends, prints a row, and forgets
measured() {
    send "$@"
    row "$1"
    rm -r "${work:?}/$1"
}

two_packets() {
    echo "max_ack_delay, windows of two packets (CE on all), offloads off"
    local delay
    for delay in 25ms 5ms 1ms; do
        rig_up off none 200000 "ip ecn != not-ect counter name changed ip ecn set ce"
        serve --ack-delay "$delay"
        measured "two-packets-$delay" deploy/quic/test/one.toml --ack-delay "$delay" --set workload.bulk.size=1MB
    done
}

small_marks() {
    echo "max_ack_delay, a port that marks from 3000 bytes on, offloads off"
    local delay
    compile 3000
    for delay in 25ms 5ms 1ms; do
        rig_up off marker 200000
        serve --ack-delay "$delay"
        measured "small-$delay" deploy/quic/test/one.toml --ack-delay "$delay" --set workload.bulk.size=3MB
    done
}

bundles() {
    echo "GSO: marks made at the port, marks that arrive; offloads on"
    local option
    compile 30000
    for option in "" --gso; do
        rig_up on marker 200000
        serve
        # shellcheck disable=SC2086
        measured "bundles$option" deploy/quic/test/one.toml $option
        echo "made $(marked 0) of $(marked 1)"
    done
}

burst() {
    echo "A burst of the initial window into a small buffer, no marks"
    local option window
    for option in "" --gso; do
        for window in 12KB 60KB 400KB; do
            rig_up "$([ -n "$option" ] && echo on || echo off)" none 30000
            serve
            # shellcheck disable=SC2086
            measured "burst-$window$option" deploy/quic/test/one.toml --parameter "initial_window=$window" \
                --set workload.bulk.size=2MB $option
        done
    done
}

late_hole() {
    echo "ECT dropped after a megabyte, 10 s"
    rig_up off none 200000 "ip ecn != not-ect quota over 1000 kbytes counter name changed drop"
    serve
    measured late-hole deploy/quic/test/one.toml --drain 10s
    echo "without ECN at the server: $(counter "$server" without)"
}

controllers() {
    echo "Controllers, a port that marks from 30000 bytes on, offloads off"
    local congestion
    compile 30000
    for congestion in marimo cubic bbr; do
        rig_up off marker 200000
        serve
        measured "$congestion" deploy/quic/test/one.toml --congestion "$congestion"
    done
}

for case in "$@"; do
    for _ in $(seq "$repeat"); do
        "${case//-/_}"
    done
done
