#!/usr/bin/env bash
# Builds the Debian package tcp-marimo-dkms from a clean tree and prints where it is.
# usage: deploy/linux/tcp_marimo/package.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=deploy/linux/tcp_marimo
out=target/deploy/tcp-marimo
what="the Debian package of tcp_marimo"
scripts/debian.sh dpkg-buildpackage dpkg-dev "$what" >&2
scripts/debian.sh dh debhelper "$what" >&2
scripts/debian.sh dh_dkms dh-dkms "$what" >&2
scripts/debian.sh fakeroot fakeroot "$what" >&2
for command in dpkg-buildpackage dh dh_dkms; do
    command -v "$command" >/dev/null || exit 1
done

version=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Version)
workspace=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ "$version" != "$workspace" ]; then
    echo "package.sh: $here/debian/changelog says $version, Cargo.toml $workspace; they must be the same" >&2
    exit 1
fi

rm -rf "$out"
source=$out/tcp-marimo-$version
"$here/stage.sh" "$source"
cp -r "$here/debian" "$here/dkms.conf" "$source/"
# The same input gives the same package.
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Timestamp)
export SOURCE_DATE_EPOCH
# -d: it is sources for any processor, so that no compiler is needed; what is needed was looked for above.
if ! (cd "$source" && dpkg-buildpackage -d -b -us -uc) >"$out/log" 2>&1; then
    cat "$out/log" >&2
    exit 1
fi
echo "$out/tcp-marimo-dkms_${version}_all.deb"
