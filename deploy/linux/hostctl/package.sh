#!/usr/bin/env bash
# Builds a tool of hosts and its Debian package, for this machine's architecture, and prints where it is. What the package
# has beside the program lies below the tool's package/, where it is installed; what is alike in all packages below package/
# here.
# usage: deploy/linux/hostctl/package.sh marimoctl|onrampctl
set -euo pipefail
cd "$(dirname "$0")/../../.."
tool=${1:-}
case $tool in marimoctl | onrampctl) ;; *)
    echo "package.sh: no tool '$tool' (marimoctl, onrampctl)" >&2
    exit 2
    ;;
esac
name=${tool%ctl}
here=deploy/linux/$tool
shared=deploy/linux/hostctl/package
out=target/deploy/$tool
command -v dpkg-deb >/dev/null || {
    echo "package.sh: dpkg-deb is missing (Debian package dpkg)" >&2
    exit 1
}
scripts/workspace.sh build --release --locked --bin "$tool" >&2
program=${CARGO_TARGET_DIR:-target}/release/$tool
[ -x "$program" ] || exit 1

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
# The same commit gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
rm -rf "$out"
root=$out/root
install -D -m 755 "$program" "$root/usr/bin/$tool"
strip --strip-unneeded "$root/usr/bin/$tool"
(cd "$here/package" && find . -path ./DEBIAN -prune -o -type f -print) | while read -r file; do
    install -D -m 644 "$here/package/$file" "$root/$file"
done
units=$root/lib/systemd/system
for services in "$name.service.d" "$name-.service.d"; do
    install -D -m 644 "$shared/sandbox.conf" "$units/$services/sandbox.conf"
done
# filled FILE: a shared file, for this tool.
filled() {
    sed "s/@tool@/$tool/g; s/@name@/$name/g; s/@units@/${enabled:-}/; s/@left@/$(cat "$here/package/DEBIAN/left")/" "$shared/$1"
}
for unit in metrics.service metrics.timer; do
    filled $unit >"$units/$name-$unit"
    chmod 644 "$units/$name-$unit"
done
enabled=$(cd "$units" && grep -l '^\[Install\]' -- *.timer *.service | paste -sd ' ')
install -d "$root/var/lib/prometheus/node-exporter"
install -D -m 644 "$here/README.md" "$root/usr/share/doc/$tool/README.md"
install -D -m 644 deploy/linux/tcp_marimo/debian/copyright "$root/usr/share/doc/$tool/copyright"
mkdir "$root/DEBIAN"
for script in postinst prerm postrm; do
    filled $script >"$root/DEBIAN/$script"
    chmod 755 "$root/DEBIAN/$script"
done
(cd "$root" && find etc -type f | sort | sed 's#^#/#') >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<CONTROL
Package: $tool
Version: $version
Architecture: $architecture
Maintainer: The incast developers <incast@localhost>
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6 (>= 2.34), libelf1 | libelf1t64, zlib1g, iproute2
Section: net
Priority: optional
Description: $(cat "$here/package/DEBIAN/description")
CONTROL
dpkg-deb --root-owner-group --build "$root" "$out/${tool}_${version}_$architecture.deb" >&2
echo "$out/${tool}_${version}_$architecture.deb"
