#!/usr/bin/env bash
# The netns rig: bpf_marimo between network namespaces of this kernel, with a router that marks by its real backlog.
# usage: rigs/netns/run.sh [--faults] [--only CASE]...
#        rigs/netns/run.sh --hold     (for the lane itself: a rig that is to be killed)
#
# Everything runs in a mount and a PID namespace of its own, with a bpffs and a /run/netns of its own: when the rig ends,
# even by SIGKILL, the kernel ends its processes, and with the last of them its namespaces, pins and the registration of
# bpf_marimo. The one setting that is outside, net.core.netdev_max_backlog, is restored by a process that waits for the
# end of this one.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out=target/rigs/netns
what="bpf_marimo between network namespaces"

skip() {
    if [ "${CI:-}" = true ]; then
        echo "netns rig: $1" >&2
        exit 1
    fi
    echo "skipped: $what ($1)"
    exit 0
}

[ "$(id -u)" = 0 ] || skip "root is needed"
scripts/debian.sh clang clang "$what"
scripts/debian.sh ip iproute2 "$what"
scripts/debian.sh ethtool ethtool "$what"
scripts/debian.sh bpftool bpftool "$what"
scripts/debian.sh pkg-config pkg-config "$what"
scripts/debian.sh python3 python3 "$what"
scripts/debian.sh pgrep procps "$what"
[ -e /usr/include/libelf.h ] || scripts/debian.sh libelf.h libelf-dev "$what"
[ -e /usr/include/zlib.h ] || scripts/debian.sh zlib.h zlib1g-dev "$what"
for command in clang ip tc ethtool bpftool pkg-config pgrep python3; do
    command -v "$command" >/dev/null || skip "no $command"
done
for header in libelf.h zlib.h; do
    [ -e "/usr/include/$header" ] || skip "no $header: libelf-dev and zlib1g-dev are needed"
done

mkdir -p "$out"
binaries=${CARGO_TARGET_DIR:-$root/target}/debug
# The rig that is to be killed finds everything built.
[ "${1:-}" = --hold ] || scripts/workspace.sh --tools-seen-to build --quiet --locked \
    --bin marimoctl --bin rig-traffic --test lifecycle
clang -target bpf -mcpu=v3 -std=gnu11 -O2 -g -Wall -Wextra -Werror -c rigs/netns/marker.bpf.c \
    -o "$out/marker.bpf.o"

lacking=$("$binaries/marimoctl" status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["lacking"] or "")')
[ -z "$lacking" ] || skip "$lacking"
unshare --net tc qdisc add dev lo root handle 1: htb 2>/dev/null || skip "this kernel has no HTB"

# Without traffic of the rig: the life of marimoctl's command on this kernel. It takes the lock itself.
case " $* " in
*" --only "* | *" --hold "*) ;;
*)
    scripts/workspace.sh --tools-seen-to test --quiet --locked --test lifecycle -- --ignored \
        >"$out/lifecycle.log" 2>&1 || {
        cat "$out/lifecycle.log" >&2
        echo "netns rig: marimoctl: FAILED" >&2
        exit 1
    }
    grep -q "1 passed" "$out/lifecycle.log" || { echo "netns rig: marimoctl: its test did not run" >&2; exit 1; }
    echo "netns rig: marimoctl: loads, tunes, unloads with open connections, cleans up what a killed load left"
    ;;
esac

# One rig at a time: a congestion control has one name in a kernel.
exec {lock}>/run/incast-netns-rig.lock
flock "$lock"

# The kernel's threads that poll the rig's devices are not in its PID namespace: they are put on its CPU from here.
cpu=$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')
threads() { pgrep '^napi/eth0-' || true; }
others=$(threads)
pipes=$(mktemp -d)
mkfifo "$pipes/requests" "$pipes/answers"
while read -r; do
    for thread in $(threads); do
        case " ${others//$'\n'/ } " in *" $thread "*) continue ;; esac
        # One that has ended meanwhile is no matter.
        taskset -pc "$cpu" "$thread" >/dev/null 2>&1 || true
    done
    echo pinned
done <"$pipes/requests" >"$pipes/answers" {lock}>&- &
exec 9>"$pipes/requests" 8<"$pipes/answers"
rm -r "$pipes"

# The guard reads until nobody holds the other end of its pipe any more, then restores.
backlog=$(cat /proc/sys/net/core/netdev_max_backlog)
exec {alive}> >(
    exec 8<&- 9>&-
    trap '' INT TERM HUP
    cat >/dev/null
    echo "$backlog" >/proc/sys/net/core/netdev_max_backlog
)
if [ "$backlog" -lt 20000 ]; then
    echo 20000 >/proc/sys/net/core/netdev_max_backlog
fi

# Whoever kills this script kills the rig: its PID 1 dies with unshare, and unshare with us.
rig() {
    setpriv --pdeathsig KILL unshare --mount --propagation private --pid --mount-proc --fork --kill-child -- \
        python3 -B rigs/netns/rig.py --binaries "$binaries" --marker "$out/marker.bpf.o" --cpu "$cpu" \
        --pinner 8 9 "$@" {alive}>&- {lock}>&-
}

if [ "${1:-}" = --hold ]; then
    rig --only hold
    exit
fi

status=0
rig "$@" || status=$?

registered() { grep -qw bpf_marimo /proc/sys/net/ipv4/tcp_available_congestion_control; }

# Killed in the middle of a flow, nothing of it may be left.
case " $* " in *" --only "*) exit "$status" ;; esac
flock --unlock "$lock"
exec {alive}>&- {lock}>&-
for _ in $(seq 50); do
    [ "$(cat /proc/sys/net/core/netdev_max_backlog)" = "$backlog" ] && break
    sleep 0.1
done
setsid rigs/netns/run.sh --hold >/dev/null 2>&1 &
victim=$!
disown "$victim"
for _ in $(seq 300); do
    registered && break
    sleep 0.1
done
registered || { echo "netns rig: killed: the rig that was to be killed did not begin" >&2; exit 1; }
sleep 1
kill -KILL "$victim"
left=
for _ in $(seq 100); do
    left=
    if registered; then left="$left bpf_marimo"; fi
    if [ "$(cat /proc/sys/net/core/netdev_max_backlog)" != "$backlog" ]; then left="$left netdev_max_backlog"; fi
    [ -z "$left" ] && break
    sleep 0.1
done
if [ -n "$left" ]; then
    echo "netns rig: killed: still there after 10 s:$left" >&2
    exit 1
fi
echo "netns rig: killed: a rig ended by SIGKILL leaves no registration, namespace or setting"
exit "$status"
