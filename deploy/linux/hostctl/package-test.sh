#!/usr/bin/env bash
# Installs and purges the Debian package of a tool of hosts in a throw-away Debian 12: the program starts with the libraries
# that it depends on, and a purge leaves nothing. First the page's way without a package. The host needs root, for chroot and overlayfs, and keeps none of it.
# usage: deploy/linux/hostctl/package-test.sh marimoctl|onrampctl
set -euo pipefail
cd "$(dirname "$0")/../../.."
tool=${1:-}
case $tool in
marimoctl) sign='marimo_loaded{form="bpf_marimo"} ' wrong=(load --set min_window=1) refusal="min_window: found" \
    names='"bpf_marimo"' ;;
onrampctl) sign='onramp_loaded ' wrong=(load --set beta=7 lo) refusal="beta: found" \
    names='' ;;
*)
    echo "package-test.sh: no tool '$tool' (marimoctl, onrampctl)" >&2
    exit 2
    ;;
esac
here=deploy/linux/$tool
name=${tool%ctl}
what="install and purge of the Debian package of $tool"
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
if [ "${2:-}" != inside ]; then
    exec unshare --mount --propagation private deploy/linux/hostctl/package-test.sh "$tool" inside
fi
package=$(deploy/linux/hostctl/package.sh "$tool" 2>/dev/null)
install=$(grep -oE 'cargo install .*' "$here/README.md")
rm -rf target/deploy/installed
# shellcheck disable=SC2086 # the page's words
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target} $install --quiet --root target/deploy/installed 2>/dev/null
"target/deploy/installed/bin/$tool" --version | grep -q "^$tool "
base=$(rigs/debian/root.sh plain ca-certificates)
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT
mount -t tmpfs tmpfs "$work"
trap 'umount -R "$work"; rmdir "$work"' EXIT
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mount -t tmpfs tmpfs "$work/root/tmp"
cp "$package" "$work/root/tmp/$tool.deb"
inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$work/root" "$@" </dev/null; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }; }
fault() { echo "package-test.sh: $tool: $*" >&2; exit 1; }

quietly inside apt-get install -qq -y --no-install-recommends "/tmp/$tool.deb"
inside "$tool" --version | grep -q "^$tool " || fault "the program does not start"
# What it says of a host is text of Prometheus, loaded or not.
inside "$tool" metrics | grep -qF "$sign" || fault "no metrics"
refused=$(inside "$tool" "${wrong[@]}" 2>&1 || true)
[[ $refused == *"$refusal"* ]] || fault "a wrong setting: $refused"
for unit in "$work/root/lib/systemd/system/$name"*.service; do
    # The programs that a unit starts are in the package.
    sed -n 's/^Exec[A-Za-z]*=-*\([^ ]*\).*/\1/p' "$unit" | while read -r program; do
        [ -x "$work/root$program" ] || fault "${unit##*/} starts $program, which is not there"
    done
done
# A route that could not be given back is named; its journal goes all the same.
mkdir -p "$work/root/var/lib/$name"
echo '{"boot":"'"$(cat /proc/sys/kernel/random/boot_id)"'\n","entries":[{"before":"02","names":['"$names"'],"route":"10.2.3.0/24 table main","due":true}]}' \
    >"$work/root/var/lib/$name/routes-1.json"
quietly inside apt-get purge -qq -y "$tool"
grep -q "$tool: left: the route 10.2.3.0/24 table main $(cat "$here/package/DEBIAN/left")" "$work/log" ||
    fault "a purge does not say what is left: $(cat "$work/log")"
left=$(cd "$work/root" && find . -xdev -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/cache -prune \
    -o -path ./var/log -prune -o -name "*$name*" -print)
[ -z "$left" ] || fault "a purge leaves: $left"
echo "package-test.sh: ${package##*/}: installed, started, purged without a trace"
