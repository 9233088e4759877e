#!/usr/bin/env bash
# The numbers of docs/quic.md, from this machine.
# shellcheck disable=SC2119,SC2120
set -euo pipefail
cd "$(dirname "$0")/../../.."
"${CARGO:-cargo}" build --quiet --locked -p incast-quic
perf=$(realpath "${CARGO_TARGET_DIR:-target}/debug/marimo-perf")
mkdir -p target/rigs/quic
# shellcheck source=deploy/quic/test/rig.sh
. deploy/quic/test/rig.sh

# usage: compile THRESHOLD: the marker, with its threshold in bytes
compile() {
    clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -DTHRESHOLD="$1" -c deploy/quic/test/marker.bpf.c \
        -o target/rigs/quic/marker.bpf.o
}

# usage: row NAME: one line about its first flow
row() { python3 - "$work/$1/quic.json" "$1" <<'PY'
import json, sys
flow = json.load(open(sys.argv[1]))["flows"][0]
path, fct = flow["connection"], flow["fct_us"]
rate = f"{path['acked_bytes'] * 8 / fct:.1f}" if fct else "-"
print(f"{sys.argv[2]:24} {flow['status']:10} Mbit/s {rate:>6}  packets {path['sent_packets']}, marked {path['ce_packets']}, "
      f"lost {path['lost_packets']}, PTO {path['probe_timeouts']}, ECN {path['ecn']}")
PY
}

echo "max_ack_delay, windows of two packets (CE on all), offloads off"
for delay in 25ms 5ms 1ms; do
    rig_up off none 200000 "ip ecn != not-ect counter name changed ip ecn set ce"
    serve --ack-delay "$delay"
    send "two-packets-$delay" deploy/quic/test/one.toml --ack-delay "$delay" --set workload.bulk.size=1MB
    row "two-packets-$delay"
done
echo "max_ack_delay, a port that marks from 3000 bytes on, offloads off"
compile 3000
for delay in 25ms 5ms 1ms; do
    rig_up off marker 200000
    serve --ack-delay "$delay"
    send "small-$delay" deploy/quic/test/one.toml --ack-delay "$delay" --set workload.bulk.size=3MB
    row "small-$delay"
done
compile 30000
echo "GSO: marks made at the port, marks that arrive; offloads on"
for option in "" --gso; do
    rig_up on marker 200000
    serve
    # shellcheck disable=SC2086
    send "bundles$option" deploy/quic/test/one.toml $option
    echo "made $(marked 0) of $(marked 1)"
    row "bundles$option"
done
echo "A burst of the initial window into a small buffer, no marks"
for bundles in "" --gso; do
    for window in 12KB 60KB 400KB; do
        rig_up "$([ -n "$bundles" ] && echo on || echo off)" none 30000
        serve
        # shellcheck disable=SC2086
        send "burst-$window$bundles" deploy/quic/test/one.toml --parameter "initial_window=$window" \
            --set workload.bulk.size=2MB $bundles
        row "burst-$window$bundles"
    done
done
echo "ECT dropped after a megabyte, 10 s"
rig_up off none 200000 "ip ecn != not-ect quota over 1000 kbytes counter name changed drop"
serve
send late-hole deploy/quic/test/one.toml --drain 10s
row late-hole
echo "without ECN at the server: $(counter "$server" without)"
echo "Controllers, a port that marks from 30000 bytes on, offloads off"
for congestion in marimo cubic bbr; do
    rig_up off marker 200000
    serve
    send "$congestion" deploy/quic/test/one.toml --congestion "$congestion"
    row "$congestion"
done
