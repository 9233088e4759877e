#!/usr/bin/env bash
# Installs and purges the Debian package in a throw-away Debian 12: DKMS builds the module against the stock headers,
# and what a purge leaves behind is nothing. The host needs root, for chroot and overlayfs, and keeps none of it.
# usage: deploy/linux/tcp_marimo/package-test.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=deploy/linux/tcp_marimo
what="install and purge of the Debian package of tcp_marimo"
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

started=$SECONDS
package=$("$here/package.sh")
base=$(rigs/debian/root.sh dkms dkms linux-headers-cloud-amd64 openssl)
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT
mount -t tmpfs tmpfs "$work"
trap 'umount -R "$work"; rmdir "$work"' EXIT
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mount -t tmpfs tmpfs "$work/root/tmp"
cp "$package" "$work/root/tmp/tcp-marimo-dkms.deb"

inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$work/root" "$@" </dev/null; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }; }
fault() { echo "$here/package-test.sh: $*" >&2; exit 1; }
# DKMS's own signing key (made with openssl, which the package does not depend on), made at its first build, and what apt and depmod write about themselves.
paths() {
    (cd "$work/root" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./var/log -o -path ./var/cache \) -prune \
        -o -print | grep -vE '^./(var/lib/dkms/mok\.(key|pub)|var/lib/(apt|dpkg)/.*|lib/modules/[^/]*/modules\..*)$' |
        grep -vE '^./usr/lib/modules/[^/]*/modules\.' | LC_ALL=C sort)
}

kernel=$(basename "$(echo "$base"/lib/modules/*-cloud-amd64)")
before=$(paths)
quietly inside apt-get install -qq -y --no-install-recommends /tmp/tcp-marimo-dkms.deb
# shellcheck disable=SC2016 # dpkg-query's own
version=$(inside dpkg-query -W -f '${Version}' tcp-marimo-dkms)
inside dkms status -m tcp-marimo -v "$version" -k "$kernel" | grep -q ': installed' ||
    fault "DKMS says: $(inside dkms status)"

information() { inside modinfo -k "$kernel" -F "$1" tcp_marimo; }
[ "$(information filename)" = "/lib/modules/$kernel/updates/dkms/tcp_marimo.ko" ] ||
    fault "modinfo finds '$(information filename)'"
[ "$(information license)" = "Dual MIT/GPL" ] || fault "the licence is '$(information license)'"
case $(information vermagic) in
"$kernel "*) ;;
*) fault "built for '$(information vermagic)', not for $kernel" ;;
esac
[ "$(information name)" = tcp_marimo ] || fault "the name is '$(information name)'"
signer=$(information signer)
[ -n "$signer" ] || fault "DKMS has not signed the module"

# Without the sources a module built before must go too: an upgrade or a purge removes what was built.
quietly inside apt-get purge -qq -y tcp-marimo-dkms
left=$(comm -13 <(echo "$before") <(paths))
[ -z "$left" ] || fault "a purge leaves: $left"
gone=$(comm -23 <(echo "$before") <(paths))
[ -z "$gone" ] || fault "a purge takes what it did not bring: $gone"
[ -z "$(inside dkms status)" ] || fault "DKMS still knows: $(inside dkms status)"
if inside modinfo -k "$kernel" tcp_marimo >/dev/null 2>&1; then
    fault "modinfo still finds the module"
fi
if inside dpkg-query -W tcp-marimo-dkms >/dev/null 2>&1; then
    fault "dpkg still knows the package"
fi
echo "$here: ${package##*/}: installed, built and signed by DKMS for $kernel, purged without a trace" \
    "($((SECONDS - started)) s)"
