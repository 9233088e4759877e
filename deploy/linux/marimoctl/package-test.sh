#!/usr/bin/env bash
# Installs and purges the Debian package of marimoctl in a throw-away Debian 12: the program starts with the libraries
# that it depends on, and a purge leaves nothing. First the page's way without a package. The host needs root, for chroot and overlayfs, and keeps none of it.
# usage: deploy/linux/marimoctl/package-test.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=deploy/linux/marimoctl
what="install and purge of the Debian package of marimoctl"
if [ "$(id -u)" != 0 ]; then
    if [ "${CI:-}" = true ]; then
        echo "$what: root is needed" >&2
        exit 1
    fi
    echo "skipped: $what (needs root)"
    exit 0
fi
scripts/debian.sh debootstrap debootstrap "$what"
command -v debootstrap >/dev/null || exit 0
# Mounts of this script are its own and go with it, however it ends.
if [ "${1:-}" != inside ]; then
    exec unshare --mount --propagation private "$here/package-test.sh" inside
fi
package=$("$here/package.sh" 2>/dev/null)
install=$(grep -oE 'cargo install .*' "$here/README.md")
rm -rf target/deploy/installed
# shellcheck disable=SC2086 # the page's words
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target} $install --quiet --root target/deploy/installed 2>/dev/null
target/deploy/installed/bin/marimoctl --version | grep -q '^marimoctl '
base=$(rigs/debian/root.sh plain ca-certificates)
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT
mount -t tmpfs tmpfs "$work"
trap 'umount -R "$work"; rmdir "$work"' EXIT
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mount -t tmpfs tmpfs "$work/root/tmp"
cp "$package" "$work/root/tmp/marimoctl.deb"
inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$work/root" "$@" </dev/null; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }; }
fault() { echo "$here/package-test.sh: $*" >&2; exit 1; }

quietly inside apt-get install -qq -y --no-install-recommends /tmp/marimoctl.deb
inside marimoctl --version | grep -q '^marimoctl ' || fault "the program does not start"
# What it says of a host is text of Prometheus, loaded or not.
inside marimoctl metrics | grep -q '^marimo_loaded{form="bpf_marimo"} ' || fault "no metrics"
refused=$(inside marimoctl load --set min_window=1 2>&1 || true)
[[ $refused == *"min_window: found"* ]] || fault "a wrong setting: $refused"
for unit in "$work"/root/lib/systemd/system/marimo*.service; do
    # The programs that a unit starts are in the package.
    sed -n 's/^Exec[A-Za-z]*=-*\([^ ]*\).*/\1/p' "$unit" | while read -r program; do
        [ -x "$work/root$program" ] || fault "${unit##*/} starts $program, which is not there"
    done
done
# A route that could not be given back is named; its journal goes all the same.
mkdir -p "$work/root/var/lib/marimo"
echo '{"boot":"'"$(cat /proc/sys/kernel/random/boot_id)"'\n","entries":[{"before":"02","names":["bpf_marimo"],"route":"10.2.3.0/24 table main","due":true}]}' \
    >"$work/root/var/lib/marimo/routes-1.json"
quietly inside apt-get purge -qq -y marimoctl
grep -q "marimoctl: left: the route 10.2.3.0/24 table main names a congestion control that is gone" "$work/log" ||
    fault "a purge does not say what is left: $(cat "$work/log")"
left=$(cd "$work/root" && find . -xdev -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/cache -prune \
    -o -path ./var/log -prune -o -name '*marimo*' -print)
[ -z "$left" ] || fault "a purge leaves: $left"
echo "$here: ${package##*/}: installed, started, purged without a trace"
