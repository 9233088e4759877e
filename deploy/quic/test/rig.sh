# shellcheck shell=bash
# Three namespaces of this test's own: client, router, server. Sourced by run.sh and measure.sh.
#
#   client 10.77.1.1 .. .4 ── router ── HTB at 100 Mbit/s, bfifo ── server 10.77.2.1
#
# The router's port may have a marker (marker.bpf.c), which counts the marks that it makes, and rules of nftables. The
# server counts what arrives by codepoint, the client what it sends with CE itself.
#
# A rig is alone in a mount and a PID namespace: when it ends, even by SIGKILL, the kernel ends its processes, and with
# the last of them go its namespaces and its files.

client=incast-q-client router=incast-q-router server=incast-q-server
work=$PWD/target/rigs/quic/work
# The object of the marker.
marker_object=$PWD/target/rigs/quic/marker.bpf.o
server_pid=

# What this machine lacks for a rig, if it lacks something.
rig_lacks() {
    local command
    if [ "$(id -u)" != 0 ]; then
        echo "root is needed"
        return
    fi
    for command in ip tc nft ethtool python3 clang bpftool nsenter setpriv unshare; do
        command -v "$command" >/dev/null || {
            echo "no $command"
            return
        }
    done
    if [ ! -r /sys/kernel/btf/vmlinux ]; then
        echo "this kernel has no BTF"
    elif ! grep -qaF bpf_cast_to_kern_ctx /sys/kernel/btf/vmlinux; then
        echo "this kernel has no bpf_cast_to_kern_ctx, by which the marker reads the queue; Linux has it from 6.2 on"
    elif ! unshare --net tc qdisc add dev lo root handle 1: htb 2>/dev/null; then
        echo "this kernel has no HTB"
    elif ! unshare --net tc qdisc add dev lo clsact 2>/dev/null; then
        echo "this kernel has no clsact"
    elif ! unshare --net nft add table ip rig 2>/dev/null; then
        echo "this kernel has no nftables"
    fi
}

# usage: rig_alone NAME COMMAND…: the command, in namespaces of its own; NAME is found by rig_processes
rig_alone() {
    local name=$1
    shift
    INCAST_QUIC_RIG=$name setpriv --pdeathsig KILL unshare --mount --propagation private --pid --mount-proc \
        --fork --kill-child -- "$@"
}

# usage: rig_processes NAME: files of /proc of what a rig still runs
rig_processes() { grep -lzxF "INCAST_QUIC_RIG=$1" /proc/[0-9]*/environ 2>/dev/null || true; }

# The first thing that a command of rig_alone does. What it runs is in $perf.
rig_begin() {
    : "${perf:?}" "${INCAST_QUIC_RIG:?}"
    mkdir -p /run/netns "$work"
    mount -t tmpfs tmpfs /run/netns
    mount -t tmpfs tmpfs "$work"
    trap rig_down EXIT
    # As the first process of its namespace it would not hear them otherwise.
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

rig_down() {
    if [ -n "$server_pid" ]; then
        kill "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
        server_pid=
    fi
    local space
    for space in "$client" "$router" "$server"; do
        ip netns del "$space" 2>/dev/null || true
    done
}

in_client() { nsenter --net="/run/netns/$client" "$@"; }
in_router() { nsenter --net="/run/netns/$router" "$@"; }
in_server() { nsenter --net="/run/netns/$server" "$@"; }

# usage: rig_up OFFLOADS(on|off) MARKER(marker|none) BUFFER [RULE of nftables for packets to the server]…
rig_up() {
    local offloads=$1 marker=$2 buffer=$3
    shift 3
    rig_down
    local space
    for space in "$client" "$router" "$server"; do
        ip netns add "$space"
        ip -n "$space" link set lo up
    done
    ip -n "$client" link add east type veth peer name west netns "$router"
    ip -n "$router" link add east type veth peer name west netns "$server"
    local host
    for host in 1 2 3 4; do
        ip -n "$client" address add "10.77.1.$host/24" dev east
    done
    ip -n "$router" address add 10.77.1.254/24 dev west
    ip -n "$router" address add 10.77.2.254/24 dev east
    ip -n "$server" address add 10.77.2.1/24 dev west
    ip -n "$client" link set east up
    ip -n "$router" link set west up
    ip -n "$router" link set east up
    ip -n "$server" link set west up
    if [ "$offloads" = off ]; then
        in_client ethtool -K east gso off gro off tx-udp-segmentation off >/dev/null 2>&1
        in_router ethtool -K west gso off gro off tx-udp-segmentation off >/dev/null 2>&1
        in_router ethtool -K east gso off gro off tx-udp-segmentation off >/dev/null 2>&1
        in_server ethtool -K west gso off gro off tx-udp-segmentation off >/dev/null 2>&1
    fi
    in_router sysctl -q -w net.ipv4.ip_forward=1
    ip -n "$client" route add default via 10.77.1.254
    ip -n "$server" route add default via 10.77.2.254
    in_router tc qdisc add dev east root handle 1: htb default 1
    in_router tc class add dev east parent 1: classid 1:1 htb rate 100mbit quantum 3000
    in_router tc qdisc add dev east parent 1:1 handle 2: bfifo limit "$buffer"
    if [ "$marker" = marker ]; then
        in_router tc qdisc add dev east clsact
        in_router tc filter add dev east egress bpf direct-action \
            object-file "$marker_object" section tc
    fi
    in_router nft -f - <<'NFT'
table ip rig {
    counter changed {}
    counter dropped {}
    chain forward {
        type filter hook forward priority 0
        oifname "east" meta l4proto udp jump east
    }
    chain east {
    }
}
NFT
    local rule
    for rule in "$@"; do
        in_router nft add rule ip rig east "$rule"
    done
    in_server nft -f - <<'NFT'
table ip rig {
    counter ce {}
    counter ect {}
    counter without {}
    chain input {
        type filter hook input priority 0
        meta l4proto udp ip ecn ce counter name ce
        meta l4proto udp ip ecn ect0 counter name ect
        meta l4proto udp ip ecn not-ect counter name without
    }
}
NFT
    in_client nft -f - <<'NFT'
table ip rig {
    counter ce {}
    chain output {
        type filter hook output priority 0
        meta l4proto udp ip ecn ce counter name ce
    }
}
NFT
}

# usage: marked INDEX: packets that the marker marked (0), or that it could have marked (1)
marked() { python3 - "$1" <<PY
import json, subprocess, sys
def say(*command):
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
filters = say("nsenter", "--net=/run/netns/$router", "tc", "-j", "filter", "show", "dev", "east", "egress")
program = [entry["options"]["prog"]["id"] for entry in filters if "options" in entry][0]
held = say("bpftool", "-j", "prog", "show", "id", str(program))["map_ids"][0]
print(say("bpftool", "-j", "map", "dump", "id", str(held))[int(sys.argv[1])]["formatted"]["value"])
PY
}

# usage: counter SPACE NAME: packets
counter() { nsenter --net="/run/netns/$1" nft -j list counter ip rig "$2" | python3 -c '
import json, sys
print([entry["counter"]["packets"] for entry in json.load(sys.stdin)["nftables"] if "counter" in entry][0])'; }

# Packets that the router's port had no room for.
port_drops() { nsenter --net="/run/netns/$router" tc -s -j qdisc show dev east | python3 -c '
import json, sys
print(sum(entry["drops"] for entry in json.load(sys.stdin) if entry["kind"] == "bfifo"))'; }

# Datagrams that arrived while the server's socket was full: on a busy machine the server may not read for 10 ms.
unread() { nsenter --net="/run/netns/$server" cat /proc/self/net/snmp | python3 -c '
import sys
names, values = (line.split() for line in sys.stdin if line.startswith("Udp:"))
print(dict(zip(names, values))["RcvbufErrors"])'; }

# usage: serve ARGUMENT…: starts the server and waits until it listens
serve() {
    rm -f "$work/certificate.pem"
    # No function: $! would be its shell, which does not take the server with it.
    nsenter --net="/run/netns/$server" "$perf" server --listen 10.77.2.1:4433 \
        --certificate-out "$work/certificate.pem" "$@" >"$work/server.log" 2>&1 &
    server_pid=$!
    local tries=0
    until [ -s "$work/certificate.pem" ]; do
        if [ $((tries += 1)) -gt 100 ] || ! kill -0 "$server_pid" 2>/dev/null; then
            echo "the server did not start:" >&2
            cat "$work/server.log" >&2
            return 1
        fi
        sleep 0.1
    done
}

# usage: send NAME SCENARIO ARGUMENT…: results in $work/NAME
send() {
    local name=$1 scenario=$2
    shift 2
    in_client "$perf" client "$scenario" --host h0=10.77.1.1 --host h1=10.77.2.1 --source h0 \
        --certificate "$work/certificate.pem" --out "$work/$name" "$@" >"$work/$name.log" 2>&1 || {
        echo "$name failed:" >&2
        cat "$work/$name.log" >&2
        return 1
    }
}

# usage: value NAME KEY: of quic.json, such as totals.ce_packets or flows.0.connection.ecn
value() { python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[int(key) if isinstance(value, list) else key]
print(value)' "$work/$1/quic.json" "$2"; }
