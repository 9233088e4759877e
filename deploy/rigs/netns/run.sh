#!/usr/bin/env bash
# The netns rig: bpf_marimo between network namespaces of this kernel, with a router that marks by its real backlog.
# usage: deploy/rigs/netns/run.sh [--faults] [--only CASE]... [--keep DIRECTORY]
#
# Everything runs in a mount and a PID namespace of its own, with a bpffs and a /run/netns of its own: when the rig ends,
# even by SIGKILL, the kernel ends its processes, and with the last of them its namespaces, pins and the registration of
# bpf_marimo. The one setting that is outside, net.core.netdev_max_backlog, is restored by a process that waits for the
# end of this one.
set -euo pipefail
cd "$(dirname "$0")/../../.."
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
[ -r /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF"
scripts/debian.sh clang clang "$what"
scripts/debian.sh ip iproute2 "$what"
scripts/debian.sh ethtool ethtool "$what"
scripts/debian.sh bpftool bpftool "$what"
scripts/debian.sh python3 python3 "$what"
[ -e /usr/include/libelf.h ] || scripts/debian.sh libelf.h libelf-dev "$what"
[ -e /usr/include/zlib.h ] || scripts/debian.sh zlib.h zlib1g-dev "$what"
for command in clang ip tc ethtool bpftool python3; do
    command -v "$command" >/dev/null || skip "no $command"
done
[ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ] || skip "no libelf-dev or zlib1g-dev"

mkdir -p "$out"
cargo=${CARGO:-cargo}
$cargo build --quiet --locked -p marimoctl -p rig-traffic
binaries=${CARGO_TARGET_DIR:-$root/target}/debug
clang -target bpf -mcpu=v3 -std=gnu11 -O2 -g -Wall -Wextra -Werror -c deploy/rigs/netns/marker.bpf.c \
    -o "$out/marker.bpf.o"

# One rig at a time: a congestion control has one name in a kernel.
exec {lock}>/run/incast-netns-rig.lock
flock "$lock"

# The guard reads until nobody holds the other end of its pipe any more, then restores.
backlog=$(cat /proc/sys/net/core/netdev_max_backlog)
exec {alive}> >(
    trap '' INT TERM HUP
    cat >/dev/null
    echo "$backlog" >/proc/sys/net/core/netdev_max_backlog
)
if [ "$backlog" -lt 20000 ]; then
    echo 20000 >/proc/sys/net/core/netdev_max_backlog
fi

status=0
# Whoever kills this script kills the rig: its PID 1 dies with unshare, and unshare with us.
setpriv --pdeathsig KILL unshare --mount --propagation private --pid --mount-proc --fork --kill-child -- \
    python3 deploy/rigs/netns/rig.py --binaries "$binaries" --marker "$out/marker.bpf.o" "$@" \
    {alive}>&- {lock}>&- || status=$?
exit "$status"
