#!/usr/bin/env bash
# Makes a minimal Debian 12 below target/rigs, once, and prints where: what throw-away trials start from. Nothing of the
# host is in it. --newest: a Debian 13 whose kernels are those of its backports.
# usage: rigs/debian/root.sh [--newest] NAME PACKAGE...
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=bookworm
if [ "${1:-}" = --newest ]; then
    suite=trixie
    shift
fi
if [ $# -lt 1 ]; then
    echo "root.sh: usage: rigs/debian/root.sh [--newest] NAME PACKAGE..." >&2
    exit 2
fi
name=$1
shift
roots=$PWD/target/rigs/debian
if [ -f "$roots/$name/packages" ] && [ "$(cat "$roots/$name/packages")" = "$*" ]; then
    echo "$roots/$name/root"
    exit 0
fi
mkdir -p "$roots"
work=$(mktemp -d "$roots/new.XXXXXX")
mounted=()
end() {
    for path in "${mounted[@]}"; do
        umount "$path"
    done
    rm -rf --one-file-system "$work"
}
trap end EXIT
chmod 755 "$work"
debootstrap --variant=minbase "$suite" "$work/root" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    exit 1
}
# Kernels of the day come from the security archive, beside the one that debootstrap chose.
sed -n "s#^deb \([^ ]*\)/debian $suite main#deb \1/debian-security $suite-security main#p" \
    "$work/root/etc/apt/sources.list" >"$work/root/etc/apt/sources.list.d/security.list"
if [ $suite = trixie ]; then
    sed -n "s#^deb \([^ ]*\) $suite main#deb \1 $suite-backports main#p" \
        "$work/root/etc/apt/sources.list" >"$work/root/etc/apt/sources.list.d/backports.list"
    printf 'Package: linux-*\nPin: release n=%s-backports\nPin-Priority: 900\n' $suite \
        >"$work/root/etc/apt/preferences.d/kernels"
fi
cp /etc/resolv.conf "$work/root/etc/"
mount -t proc proc "$work/root/proc"
mounted+=("$work/root/proc")
for command in "update -qq" "install -qq -y --no-install-recommends $*" clean; do
    # shellcheck disable=SC2086 # one word per argument
    DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$work/root" apt-get $command >"$work/log" 2>&1 </dev/null || {
        tail -n 20 "$work/log" >&2
        exit 1
    }
done
umount "$work/root/proc"
mounted=()
echo "$*" >"$work/packages"
rm -rf --one-file-system "${roots:?}/$name"
mv "$work" "$roots/$name"
trap - EXIT
echo "$roots/$name/root"
