#!/usr/bin/env bash
# The QUIC lane: marks, losses and the absence of ECN between namespaces of its own.
# shellcheck disable=SC2119,SC2120
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=deploy/quic/test/rig.sh
. deploy/quic/test/rig.sh
what="Marimo over QUIC between network namespaces"

skip() {
    if [ "${CI:-}" = true ]; then
        echo "$what: $1" >&2
        exit 1
    fi
    echo "skipped: $what ($1)"
    exit 0
}

# Checks everything, then runs the rig, and another one that is killed.
outside() {
    [ "$(id -u)" = 0 ] || skip "root is needed"
    scripts/debian.sh ip iproute2 "$what"
    scripts/debian.sh nft nftables "$what"
    scripts/debian.sh ethtool ethtool "$what"
    scripts/debian.sh python3 python3 "$what"
    scripts/debian.sh clang clang "$what"
    scripts/debian.sh bpftool bpftool "$what"
    local lacks left victim replayed status=0
    lacks=$(rig_lacks)
    [ -z "$lacks" ] || skip "$lacks"
    mkdir -p target/rigs/quic/vectors
    clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -c deploy/quic/test/marker.bpf.c \
        -o "$marker_object"
    # What is committed of the vectors is a sample, which `cargo test` replays; here all of them are.
    python3 deploy/quic/test/vectors.py --check deploy/quic/test/vectors.txt target/rigs/quic/vectors/vectors-whole.txt
    python3 deploy/core/oracle/marimo.py --check deploy/core/test/marimo.txt target/rigs/quic/vectors/marimo-whole.txt
    replayed=$(INCAST_VECTORS=$PWD/target/rigs/quic/vectors scripts/workspace.sh --tools-seen-to test --quiet \
        --locked --lib -- --exact controller::tests::the_golden_vectors_as_events_of_quic \
        controller::tests::events_of_quic_are_decided_as_the_oracle_decides 2>&1) || status=$?
    if [ "$status" != 0 ] || ! grep -q "2 passed" <<<"$replayed"; then
        echo "failed: the replay of all vectors: $replayed" >&2
        exit 1
    fi
    scripts/workspace.sh --tools-seen-to build --quiet --locked --bin marimo-perf --test loopback
    perf=$(realpath "${CARGO_TARGET_DIR:-target}/debug/marimo-perf")
    export perf

    rig_alone "lane-$$" deploy/quic/test/run.sh --inside checks

    # Killed, nothing of it may be left: no server, and nothing that holds its namespaces.
    rig_alone "held-$$" deploy/quic/test/run.sh --inside hold >/dev/null &
    victim=$!
    for _ in $(seq 300); do
        left=$(rig_processes "held-$$")
        serves "$left" && break
        sleep 0.1
    done
    serves "$left" || {
        echo "failed: the rig that was to be killed did not begin" >&2
        exit 1
    }
    kill -KILL "$victim"
    wait "$victim" 2>/dev/null || true
    for _ in $(seq 100); do
        left=$(rig_processes "held-$$"; rig_processes "lane-$$")
        [ -z "$left" ] && break
        sleep 0.1
    done
    if [ -n "$left" ]; then
        echo "failed: still there 10 s after the end of its rig: $left" >&2
        exit 1
    fi
    echo "QUIC: a rig ended by SIGKILL leaves no process"
}

# usage: serves PROCESSES: whether a server is among them
serves() {
    local environment
    for environment in $1; do
        if [ "$(cat "${environment%environ}comm" 2>/dev/null)" = marimo-perf ]; then return 0; fi
    done
    return 1
}

if [ "${1:-}" != --inside ]; then
    outside
    exit
fi
rig_begin
if [ "$2" = hold ]; then
    rig_up off none 200000
    serve
    sleep 60
    exit
fi
checks=0

# usage: expect WHAT NUMBER OPERATOR NUMBER
expect() {
    if ! test "$2" "$3" "$4"; then
        echo "failed: $1: $2 $3 $4" >&2
        exit 1
    fi
    checks=$((checks + 1))
}
same() {
    if [ "$2" != "$3" ]; then
        echo "failed: $1: found $2, expected $3" >&2
        exit 1
    fi
    checks=$((checks + 1))
}

# usage: acted_on WHAT RUN MARKS: every mark that the server read has reached the controller, but for those of packets that were
# under way when the flow was done: of a probe there may be two (RFC 9002, section 6.2.4)
acted_on() {
    local ce
    ce=$(value "$2" totals.ce_packets)
    expect "$1, at most" "$ce" -le "$3"
    expect "$1, at least" "$ce" -ge $(($3 - $(unread) - 2))
}

# Every mark is counted once where it is made, once where it arrives, once where it is acted on.
rig_up off marker 200000
serve
send marked deploy/quic/test/one.toml
marks=$(marked 0)
own=$(counter "$client" ce)
expect "marks" "$marks" -gt 20
same "CE at the server" "$(counter "$server" ce)" $((marks + own))
acted_on "CE at the controller" marked "$marks"
same "dropped by the port" "$(port_drops)" 0
same "ECN" "$(value marked flows.0.connection.ecn)" capable
same "fallbacks with ECN" "$(value marked totals.fallbacks)" 0
same "flows done" "$(value marked totals.done)" 1
# usage: decreases RUN: whether the window fell from one epoch to the next, which it may with marks alone
decreases() {
    python3 - "$work/$1/quic.json" <<'PY'
import json, sys
epochs = json.load(open(sys.argv[1]))["flows"][0]["connection"]["epochs"]
fell = [after for before, after in zip(epochs, epochs[1:]) if after["window"] < before["window"]]
assert len(epochs) > 10, epochs
assert all(epoch["share"] > 0 or epoch["rho"] >= 65536 for epoch in fell), fell
print("yes" if fell else "no")
PY
}
fell=$(decreases marked)
if [ "$fell" = no ]; then
    # Beside a full processor acknowledgements can come in batches in which the share of marks is always small.
    send again deploy/quic/test/one.toml
    fell=$(decreases again)
fi
same "the window fell" "$fell" yes

# Several senders: the table of flows is complete, whatever they did to one another.
mkdir "$work/incast"
in_client "$perf" client deploy/quic/test/incast.toml --host h0=10.77.1.1 --host h1=10.77.1.2 --host h2=10.77.1.3 \
    --host h3=10.77.1.4 --host h4=10.77.2.1 --source h0 --source h1 --source h2 --source h3 \
    --certificate "$work/certificate.pem" --out "$work/incast" >"$work/incast.log"
same "flows of two incasts" "$(value incast totals.done)" 8
expect "marks of the incasts" "$(value incast totals.ce_packets)" -gt 0

# The other controllers, for comparison.
for congestion in cubic bbr; do
    send "$congestion" deploy/quic/test/one.toml --congestion "$congestion"
    same "$congestion done" "$(value "$congestion" totals.done)" 1
done

# ECT is taken off: noticed, counted, and the transfer goes on by losses alone.
rig_up off none 60000 "ip ecn != not-ect counter name changed ip ecn set not-ect"
serve
send stripped deploy/quic/test/one.toml
same "ECN without ECT" "$(value stripped flows.0.connection.ecn)" failed
same "fallback without ECT" "$(value stripped flows.0.connection.fallbacks)" 1
same "done without ECT" "$(value stripped totals.done)" 1
expect "losses decide" "$(value stripped totals.lost_packets)" -gt 0
same "no CE at the server" "$(counter "$server" ce)" 0

# CE on every packet: the least window, and everything still arrives.
rig_up off none 200000 "ip ecn != not-ect counter name changed ip ecn set ce"
serve
send all-marked deploy/quic/test/one.toml --set workload.bulk.size=1MB
same "done with CE on all" "$(value all-marked totals.done)" 1
same "ECN with CE on all" "$(value all-marked flows.0.connection.ecn)" capable
same "the window with CE on all" "$(value all-marked flows.0.connection.window)" \
    $((2 * $(value all-marked flows.0.connection.full_packet)))

# A path that drops whatever has ECT: s2n-quic sends ten packets with it, the handshake's among them, then goes on
# without. ECN is never validated, and what is acknowledged without it makes the controller go on without marks.
rig_up off none 200000 "ip ecn != not-ect counter name changed drop"
serve
send black-hole deploy/quic/test/one.toml --lead 2s
expect "packets with ECT dropped" "$(counter "$router" changed)" -ge 10
same "done through the hole" "$(value black-hole totals.done)" 1
same "ECN through the hole" "$(value black-hole flows.0.connection.ecn)" unknown
same "fallback through the hole" "$(value black-hole flows.0.connection.fallbacks)" 1
same "CE through the hole" "$(value black-hole totals.ce_packets)" 0

# The same of data once ECN is in use: a limit of s2n-quic 1.91, whose probes have ECT, too (docs/deploy.md). A version that
# has it right turns this red.
rig_up off none 200000 "ip ecn != not-ect ip length > 300 quota over 60 kbytes counter name changed drop"
serve
send late-hole deploy/quic/test/one.toml --lead 2s --set drain=3s
expect "packets with ECT dropped late" "$(counter "$router" changed)" -ge 10
expect "probes through the late hole" "$(value late-hole totals.probe_timeouts)" -ge 3
same "ECN through the late hole" "$(value late-hole flows.0.connection.ecn)" capable
same "done through the late hole" "$(value late-hole totals.done)" 0

# Losses without congestion: the checksum is right, and a lost packet is no mark.
rig_up off marker 200000 "numgen random mod 100 < 5 counter name changed drop"
serve
send lossy deploy/quic/test/one.toml --set workload.bulk.size=2MB
expect "packets dropped at random" "$(counter "$router" changed)" -gt 20
same "done with losses" "$(value lossy totals.done)" 1
expect "losses noticed" "$(value lossy totals.lost_packets)" -gt 20
expect "CE with losses" "$(value lossy totals.ce_packets)" -le "$(marked 0)"

# A bundle of packets is marked as one, and all in it arrive marked.
rig_up on marker 200000
serve
send bundles deploy/quic/test/one.toml --gso
marks=$(marked 0)
expect "CE of bundles" "$(value bundles totals.ce_packets)" -gt "$marks"
rig_up on marker 200000
serve
send single deploy/quic/test/one.toml
acted_on "CE without bundles, offloads on" single "$(marked 0)"

# Bad input is refused before anything is sent.
refused() {
    local expected=$1 status=0
    shift
    "$perf" "$@" >"$work/refused.log" 2>&1 || status=$?
    same "exit code of $*" "$status" 2
    if ! grep -q -- "$expected" "$work/refused.log"; then
        echo "failed: $*: expected '$expected' in" >&2
        cat "$work/refused.log" >&2
        exit 1
    fi
    checks=$((checks + 1))
}
printf 'name = "x"\nduration = "1ms"\n[topology]\nkind = "star"\n' >"$work/bad.toml"
refused "bad.toml" client "$work/bad.toml" --source h0 --certificate "$work/certificate.pem" --out "$work/none"
refused "h9" client deploy/quic/test/one.toml --source h9 --first-host 10.0.0.1 \
    --certificate "$work/certificate.pem" --out "$work/none"
refused "beta" client deploy/quic/test/one.toml --source h0 --first-host 10.0.0.1 --parameter beta=0.3 \
    --certificate "$work/certificate.pem" --out "$work/none"
refused "already" client deploy/quic/test/one.toml --source h0 --first-host 10.0.0.1 \
    --certificate "$work/certificate.pem" --out "$work/marked"
same "nothing written" "$([ -e "$work/none" ] && ls "$work/none")" ""

rig_down
same "servers left" "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -x marimo-perf)" ""

echo "QUIC: $checks checks passed: marks made = arrived = acted on, ECN stripped, lost and saturated, bundles, bad input; vectors are the oracle's"
