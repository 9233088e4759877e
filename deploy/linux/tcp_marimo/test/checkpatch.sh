#!/usr/bin/env bash
# The kernel's own checkpatch.pl and kernel-doc over what the module is made of. They are in Debian's kernel source,
# from where they are taken once.
# usage: checkpatch.sh [OUT]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
out=${1:-$root/target/deploy/checkpatch}
skip() {
    echo "skipped: checkpatch of tcp_marimo ($1)"
    if [ "${CI:-}" = true ]; then exit 1; fi
    exit 0
}
find_source() { find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' 2>/dev/null | sort | tail -1; }

command -v perl >/dev/null || skip "no perl"
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ ! -f "$out/kernel-doc" ]; then
    source=$(find_source)
    if [ -z "$source" ]; then
        "$root/scripts/debian.sh" linux-source.tar.xz linux-source "checkpatch of tcp_marimo" >/dev/null || true
        source=$(find_source)
    fi
    [ -n "$source" ] || skip "no kernel source; Debian package linux-source"
    version=$(basename "$source" .tar.xz)
    tar -xJf "$source" -C "$out" --strip-components=2 "$version/scripts/checkpatch.pl" "$version/scripts/spelling.txt" \
        "$version/scripts/const_structs.checkpatch" "$version/scripts/kernel-doc"
fi
cd "$here/.."
files=(tcp_marimo.c tcp_marimo_trace.h ../marimo_tcp.h ../marimo_f.h probe/*.c)
# It is built for many kernels, of which it refuses those that are newer than any it knows.
perl "$out/checkpatch.pl" --no-tree --file --terse --quiet --no-summary --ignore LINUX_VERSION_CODE "${files[@]}"
perl "$out/kernel-doc" -none -Werror tcp_marimo.c ../marimo_tcp.h
echo "tcp_marimo: checkpatch and kernel-doc: ${#files[@]} files clean"
