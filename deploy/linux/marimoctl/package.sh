#!/usr/bin/env bash
# Builds marimoctl and its Debian package, for this machine's architecture, and prints where it is.
# usage: deploy/linux/marimoctl/package.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=deploy/linux/marimoctl
out=target/deploy/marimoctl
command -v dpkg-deb >/dev/null || {
    echo "package.sh: dpkg-deb is missing (Debian package dpkg)" >&2
    exit 1
}
scripts/workspace.sh build --release --locked --bin marimoctl >&2
program=${CARGO_TARGET_DIR:-target}/release/marimoctl
[ -x "$program" ] || exit 1

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
# The same commit gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
rm -rf "$out"
root=$out/root
install -D -m 755 "$program" "$root/usr/bin/marimoctl"
strip --strip-unneeded "$root/usr/bin/marimoctl"
for unit in marimo.service marimo-default.service marimo-watch.service marimo-metrics.service marimo-metrics.timer; do
    install -D -m 644 "$here/package/$unit" "$root/lib/systemd/system/$unit"
done
for services in marimo.service.d marimo-.service.d; do
    install -D -m 644 "$here/package/sandbox.conf" "$root/lib/systemd/system/$services/sandbox.conf"
done
install -D -m 644 "$here/package/handshake.conf" "$root/usr/share/marimo/handshake.conf"
install -d "$root/var/lib/prometheus/node-exporter"
install -D -m 644 "$here/package/marimo.conf" "$root/etc/marimo/marimo.conf"
install -D -m 644 "$here/README.md" "$root/usr/share/doc/marimoctl/README.md"
install -D -m 644 deploy/linux/tcp_marimo/debian/copyright "$root/usr/share/doc/marimoctl/copyright"
mkdir "$root/DEBIAN"
for script in postinst prerm postrm; do
    install -m 755 "$here/package/$script" "$root/DEBIAN/$script"
done
echo /etc/marimo/marimo.conf >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<CONTROL
Package: marimoctl
Version: $version
Architecture: $architecture
Maintainer: The incast developers <incast@localhost>
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6 (>= 2.34), libelf1 | libelf1t64, zlib1g, iproute2
Section: net
Priority: optional
Description: Marimo's congestion control on this host
 Loads Marimo as BPF, enables it by route or for all connections, takes it back,
 and watches and tunes it and the kernel module tcp_marimo.
CONTROL
dpkg-deb --root-owner-group --build "$root" "$out/marimoctl_${version}_$architecture.deb" >&2
echo "$out/marimoctl_${version}_$architecture.deb"
