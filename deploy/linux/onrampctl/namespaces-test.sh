#!/usr/bin/env bash
# Tests onrampctl between two network namespaces of its own: what is refused, routes and their way back, and the programs on
# this kernel, where it has fq. What needs a queue and a kernel with fq for sure: rigs/vm/run.sh --onramp.
# usage: deploy/linux/onrampctl/namespaces-test.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
what="onrampctl between network namespaces"
skip() {
    if [ "${CI:-}" = true ]; then
        echo "onrampctl: $1" >&2
        exit 1
    fi
    echo "skipped: $what ($1)"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "root is needed"
if [ "${1:-}" != in ]; then
    for pair in ip:iproute2 python3:python3 clang:clang pkg-config:pkg-config; do
        scripts/debian.sh "${pair%:*}" "${pair#*:}" "$what"
        command -v "${pair%:*}" >/dev/null || skip "no ${pair%:*}"
    done
    scripts/workspace.sh --tools-seen-to build --quiet --locked --bin onrampctl
    # The kernel ends what is in the namespaces with the last process of theirs.
    exec timeout --kill-after=5 120 unshare --net --mount --pid --fork --kill-child --propagation private "$0" in </dev/null
fi
mount -t proc proc /proc
for folder in /run /var/lib /tmp; do mount -t tmpfs tmpfs "$folder"; done
mkdir /run/netns
program=$PWD/${CARGO_TARGET_DIR:-target}/debug/onrampctl

at() { nsenter "--net=/run/netns/$1" "${@:2}"; }
ctl() { at "$1" "$program" "${@:2}"; }
fail() {
    echo "onrampctl: $1" >&2
    exit 1
}
# refused CODE WORDS NODE ARGUMENTS...
refused() {
    local code=0 said
    said=$(ctl "${@:3}" 2>&1) || code=$?
    [ "$code" = "$1" ] && grep -q -- "$2" <<<"$said" || fail "${*:3}: exit code $code, said: $said"
}
said() { grep -q -- "$1" <<<"$(ctl "${@:2}" 2>&1)" || fail "${*:2} does not say '$1'"; }
dump() { for node in a b; do for family in -4 -6; do at $node ip $family route show table all; done; done; }

for node in a b; do ip netns add $node; ip -n $node link set lo up; done
ip link add name va netns a type veth peer name vb netns b
for pair in a:1 b:2; do
    node=${pair%:*} number=${pair#*:}
    ip -n "$node" addr add "10.1.0.$number/24" dev "v$node"
    ip -n "$node" addr add "fd01::$number/64" dev "v$node" nodad
    ip -n "$node" link set "v$node" addrgenmode none up
    ip -n "$node" route add 10.9.0.0/16 via 10.1.0.$((3 - number)) metric 7 mtu 1400
done
at b python3 -c '
import socket
server = socket.create_server(("::", 7), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    connection, _ = server.accept()
    connection.recv(1)
    connection.close()' >/dev/null 2>&1 &
for _ in $(seq 50); do at a python3 -c 'import socket; socket.create_connection(("10.1.0.2", 7), 1)' 2>/dev/null && break; sleep 0.1; done
before=$(dump)

# Bad input: exit code 2, and nothing is changed.
refused 2 'found no network device "nope"' a load nope
refused 2 'lo: found another kind of link' a load lo
refused 2 'max_hold: found "1s", allowed is a time up to 100ms' a load va --set max_hold=1s
refused 2 'allowed is threshold, floor' a load va --set treshold=1us
refused 2 'required arguments' a enable 10.1.0.0/24
refused 2 'found no route 10.2.0.0/24' b enable 10.2.0.0/24 --stamps-only
refused 2 'allowed is 10.0.0.0/8' b enable 10.2.0/24 --stamps-only
refused 2 'found none behind 10.9.0.0/16' a enable 10.1.0.0/24 10.9.0.0/16 --peer 10.1.0.2:7
refused 2 'that is enabled' b disable 10.1.0.0/24
# The machine: exit code 1.
refused 1 'not loaded in this network namespace' a enable 10.1.0.0/24 --peer 10.1.0.2:7
refused 1 'not loaded in this network namespace' a unload
refused 1 'cannot probe 10.1.0.2:8' a probe 10.1.0.2:8
refused 1 'stamps in milliseconds' a probe 10.1.0.2:7
[ "$(dump)" = "$before" ] || fail "something that was refused has changed routes"

# A receiver, by routes of both families, and another that has a metric of its own.
ctl b enable 10.1.0.0/24 fd01::/64 10.9.0.0/16 --stamps-only >/dev/null
said '10.1.0.2:7 stamps in microseconds' a probe 10.1.0.2:7
said 'stamps in microseconds' a probe '[fd01::2]:7'
said 'routes enabled: 3' b status
grep -q 'mtu 1400.*quickack 1\|quickack 1.*mtu 1400' <<<"$(at b ip route show 10.9.0.0/16)" || fail "the MTU of a route is gone"
ctl b disable fd01::/64 >/dev/null
refused 1 'stamps in milliseconds' a probe '[fd01::2]:7'
# Somebody makes a route anew: it is told, and the watcher puts it back.
at b ip route replace 10.9.0.0/16 via 10.1.0.1 metric 7 mtu 1400
said 'has come back without' b status
ctl b watch >/dev/null 2>&1 &
watcher=$!
for _ in $(seq 50); do grep -q quickack <<<"$(at b ip route show 10.9.0.0/16)" && break; sleep 0.1; done
grep -q quickack <<<"$(at b ip route show 10.9.0.0/16)" || fail "the watcher has not put a route back"
grep -q '^onramp_watched 1$' <<<"$(ctl b metrics)" || fail "metrics do not say that it is watched"
kill $watcher
ctl b rollback >/dev/null
[ "$(dump)" = "$before" ] || fail "a rollback left: $(diff <(echo "$before") <(dump))"
said 'nothing to undo' b rollback

if at a tc qdisc replace dev va root fq nopacing 2>/dev/null; then
    mkdir -p /sys/fs/bpf
    mount -t bpf bpf /sys/fs/bpf
    ctl a load va >/dev/null
    ctl b enable 10.1.0.0/24 --stamps-only >/dev/null
    ctl a enable 10.1.0.0/24 --peer 10.1.0.2:7 >/dev/null
    said 'packets are held to 10.1.0.0/24' a status
    ctl a rollback >/dev/null
    ctl b rollback >/dev/null
    said 'packets are held to nothing' a status
    ctl a unload >/dev/null
    echo "onrampctl: attached to this kernel, and taken away"
else
    refused 1 'which keeps nothing: tc qdisc replace dev va root fq nopacing' a load va
fi
[ "$(dump)" = "$before" ] || fail "something is left of it"
echo "onrampctl: bad input, probes of both families, routes, a watcher and the way back: checked"
