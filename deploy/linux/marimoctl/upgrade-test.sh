#!/usr/bin/env bash
# The package is upgraded, or goes back, while the BPF form is loaded and routes are enabled: each command of the one version
# handles what the other has left. Both ways, with a connection open, in namespaces of its own.
# usage: deploy/linux/marimoctl/upgrade-test.sh [COMMIT]...     [default: 4f068c97 and the commit before this one]
set -euo pipefail
cd "$(dirname "$0")/../../.."
what="marimoctl beside what other versions have left"
if [ "${1:-}" != inside ]; then
    skip() {
        echo "skipped: $what ($1)"
        [ "${CI:-}" != true ] || exit 1
        exit 0
    }
    [ "$(id -u)" = 0 ] || skip "root is needed"
    for tool in "ip iproute2" "python3 python3"; do
        # shellcheck disable=SC2086
        scripts/debian.sh $tool "$what"
    done
    scripts/workspace.sh --tools-seen-to build --quiet --locked --bin marimoctl
    own=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/marimoctl
    lacking=$("$own" status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["lacking"] or "")')
    [ -z "$lacking" ] || skip "$lacking"
    [ $# -gt 0 ] || set -- 4f068c97 HEAD~1
    out=$PWD/target/deploy/upgrade
    mkdir -p "$out"
    exec {lock}>/run/incast-netns-rig.lock
    flock "$lock"
    for commit in "$@"; do
        git rev-parse --quiet --verify "$commit^{commit}" >/dev/null || skip "no commit $commit in this clone"
        other=$out/marimoctl-$(git rev-parse --short=8 "$commit")
        if [ ! -x "$other" ]; then
            rm -rf "$out/tree"
            mkdir "$out/tree"
            git archive "$commit" | tar -x -C "$out/tree"
            (cd "$out/tree" && CARGO_TARGET_DIR=$out/target cargo build --quiet --locked -p marimoctl)
            cp "$out/target/debug/marimoctl" "$other"
            rm -rf "$out/tree"
        fi
        for pair in "$other $own" "$own $other"; do
            # shellcheck disable=SC2086
            unshare --net --mount --propagation private "$0" inside $pair
        done
        echo "marimoctl: ${other##*-} and this version handle what the other has loaded and enabled"
    done
    exit
fi
first=$2 second=$3 tree=$PWD
for folder in /var/lib /run /mnt; do mount -t tmpfs -o mode=755 none "$folder"; done
mount -t bpf bpf /sys/fs/bpf
cd /mnt
fault() { echo "upgrade-test.sh: loaded by ${first##*/}, then ${second##*/}: $*" >&2; exit 1; }
# succeeds PROGRAM ARGUMENT...: its output is in /mnt/said
succeeds() { "$@" >said 2>&1 || fault "${*:2}: exit code $?: $(cat said)"; }
said() { grep -qE -- "$1" said || fault "does not say \"$1\": $(cat said)"; }

ip link set lo up
sysctl -q net.ipv4.tcp_ecn=1
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip addr add 10.9.0.1/24 dev v0
ip route add 10.50.0.0/16 via 10.9.0.2 mtu 1400
ip route add 10.51.0.0/16 via 10.9.0.2 congctl cubic
dump() { ip -4 -details route show table all | sort; }
dump >before
succeeds "$first" load --set min_window=3
succeeds "$first" enable 10.50.0.0/16 10.51.0.0/16
python3 - <<'PYTHON' &
import socket, time
listener = socket.socket()
listener.setsockopt(6, 13, b"bpf_marimo")
listener.bind(("127.0.0.1", 9000))
listener.listen()
near = socket.socket()
near.setsockopt(6, 13, b"bpf_marimo")
near.connect(("127.0.0.1", 9000))
far, _ = listener.accept()
end = time.time() + 60
open("/mnt/connected", "w").close()
while time.time() < end:
    near.send(b"x" * 20000)
    far.recv(20000)
    time.sleep(0.01)
PYTHON
traffic=$!
trap 'kill $traffic' EXIT
for _ in $(seq 50); do [ -e connected ] && break; sleep 0.1; done
succeeds "$second" status
said "^bpf_marimo: 2 connections"
said "min_window = 3"
succeeds "$second" metrics
said '^marimo_connections\{form="bpf_marimo"\} 2$'
said '^marimo_routes 2$'
said 'event="fallbacks_echo"'
succeeds "$second" status --json
succeeds "$second" top --once --recorded
said "127.0.0.1:9000"
succeeds "$first" set-table "$tree/deploy/core/marimo-f.table"
succeeds "$second" set-table --previous
"$second" load >said 2>&1 && fault "loads twice"
said "is loaded already"
# Another route, and all of them back, by the other version alone.
succeeds "$second" enable --name reno 10.50.0.0/16
succeeds "$second" rollback
said "10.51.0.0/16 table main: congestion control cubic, as before"
dump | diff before - >&2 || fault "routes are not as before"
succeeds "$second" enable 10.50.0.0/16
succeeds "$first" rollback
dump | diff before - >&2 || fault "routes are not as before"
succeeds "$second" unload
said "2 connections keep their copy"
[ ! -e /sys/fs/bpf/marimo ] || fault "pins are left"
succeeds "$second" load
succeeds "$first" unload
