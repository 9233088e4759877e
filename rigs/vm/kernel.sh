#!/usr/bin/env bash
# Unpacks a stock Debian kernel, its modules and its headers below target/rigs without installing anything, and
# prints where. What is there already is used as it is, so that only the first run needs the archive. Kernels of the
# backports of Debian 13, of which the newest is one, come with that release around them, whose compiler they need; 3 if
# the archive has that series no more.
# usage: rigs/vm/kernel.sh [6.1|6.12|7.2|newest]
set -euo pipefail
cd "$(dirname "$0")/../.."
series=${1:-6.1}
case $series in
6.1) image=linux-image-cloud-amd64 headers=linux-headers-cloud-amd64 ;;
6.12) image=linux-image-6.12-cloud-amd64 headers=linux-headers-6.12-cloud-amd64 ;;
7.2 | newest) ;;
*)
    echo "kernel.sh: no kernel series '$series' (6.1, 6.12, 7.2 or newest)" >&2
    exit 2
    ;;
esac
kernels=$PWD/target/rigs/vm/kernels

# movable ROOT VERSION: the only absolute path in Debian's headers is one to their other package; the links between the
# packages are relative. With that one relative, too, a checkout can be moved or copied with what was unpacked here.
# That of a cache from before this was so names the folder in which it was made.
movable() {
    # shellcheck disable=SC2016 # for make to expand
    sed -E -i 's#^include /(.*/)?usr/src/#include $(dir $(lastword $(MAKEFILE_LIST)))../#' \
        "$1/usr/src/linux-headers-$2/Makefile"
}

if [ -f "$kernels/$series/version" ]; then
    [ -L "$kernels/$series/root" ] || movable "$kernels/$series/root" "$(cat "$kernels/$series/version")"
    echo "$kernels/$series"
    exit 0
fi

if ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
    echo "kernel.sh: the kernel comes from Debian's amd64 archive; this machine does not have it" >&2
    exit 1
fi

# What a package depends on by an exact name: the metapackage on the kernel of the day, the headers on what they share.
depends() {
    apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Depends: //p' | tr ',' '\n' |
        sed 's/ *(.*//; s/^ *//' | grep -E "$2"
}

fetch() {
    local image_package headers_package
    image_package=$(depends "$image" '^linux-image-') || return 1
    headers_package=$(depends "$headers" '^linux-headers-') || return 1
    # shellcheck disable=SC2046 # one word per package
    (cd "$work" && apt-get download -qq "$image_package" "$headers_package" \
        $(depends "$headers_package" '^linux-(headers|kbuild)-') >&2)
}

mkdir -p "$kernels"
if [ "$series" = 7.2 ] || [ "$series" = newest ]; then
    root=$(rigs/debian/root.sh --newest backports make gcc libc6-dev)
    inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" "$@" </dev/null >&2; }
    # The archive keeps some older series for a while.
    name=$(chroot "$root" apt-cache search --names-only "^linux-headers-[0-9.]+.*-cloud-amd64\$" | sed 's/ .*//' |
        if [ "$series" = newest ]; then cat; else grep -F "linux-headers-$series." || true; fi | sort -V | tail -1)
    version=${name#linux-headers-}
    if [ -z "$version" ]; then
        echo "kernel.sh: the archive has no kernel $series any more" >&2
        exit 3
    fi
    inside apt-get install -qq -y --no-install-recommends "$name"
    rm -rf "$root/var/tmp/kernel"
    mkdir "$root/var/tmp/kernel"
    inside sh -c "cd /var/tmp/kernel && apt-get -o APT::Sandbox::User=root download -qq linux-binary-$version linux-modules-$version"
    for package in "$root"/var/tmp/kernel/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    rm -r "$root/var/tmp/kernel"
    # The package leaves it to a hook of its installation to copy it here.
    cp "$root/usr/lib/modules/$version/vmlinuz" "$root/boot/vmlinuz-$version"
    work=$(mktemp -d "$kernels/unpack.XXXXXX")
    ln -s "$root" "$work/root"
    echo "$version" >"$work/version"
    rm -rf "${kernels:?}/$series"
    mv "$work" "$kernels/$series"
    echo "$kernels/$series"
    exit 0
fi
work=$(mktemp -d "$kernels/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
# apt drops its privileges for downloads; it may only where its user can write.
chmod 755 "$work"
chown _apt "$work" 2>/dev/null || true
if ! fetch; then
    apt-get update -qq >&2
    fetch
fi
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
modules=$(echo "$work"/root/lib/modules/*)
version=${modules##*/}
if [ ! -d "$modules/kernel" ] && [ -d "$work/root/usr/lib/modules" ]; then
    modules=$(echo "$work"/root/usr/lib/modules/*)
    version=${modules##*/}
fi
test -f "$work/root/boot/vmlinuz-$version"
movable "$work/root" "$version"
rm "$work"/*.deb
echo "$version" >"$work/version"
rm -rf "${kernels:?}/$series"
mv "$work" "$kernels/$series"
trap - EXIT
echo "$kernels/$series"
