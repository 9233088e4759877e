#!/usr/bin/env bash
# Counts what Marimo, DCTCP and CUBIC execute per acknowledgement on Debian's stock kernel: one boot and one incast each
# under QEMU's software emulation, with a plugin that counts every instruction of the kernel. Prints tables.
# usage: rigs/vm/instructions.sh [LAW...]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=rigs/vm/vm.sh
. rigs/vm/vm.sh
laws=("$@")
if [ ${#laws[@]} -eq 0 ]; then
    laws=(marimo dctcp cubic)
fi
for law in "${laws[@]}"; do
    case $law in
    marimo | dctcp | cubic) ;;
    *)
        echo "instructions.sh: no law '$law' (marimo, dctcp, cubic)" >&2
        exit 2
        ;;
    esac
done

tools
alone
kernel=$("$rig/kernel.sh")
version=$(cat "$kernel/version")
traffic
gcc-12 -shared -fPIC -O2 -Wall -Wextra -Werror -fvisibility=hidden -o "$built/count.so" "$rig/count.c"
results=()
for law in "${laws[@]}"; do
    out=$built/instructions/$law
    object=$kernel/root/lib/modules/$version/kernel/net/ipv4/tcp_$law.ko
    if [ "$law" = marimo ]; then
        module "$kernel"
        object=$built/module-$version/tcp_marimo.ko
    fi
    # One processor, and addresses that are the same in every boot.
    CONGESTION=$law APPEND=nokaslr boot "$kernel" instructions 300 "$out" -smp 1 \
        -plugin "$built/count.so,out=$out.counts" || { cat "$out/checks" >&2; exit 1; }
    read -r passed failed <"$out/verdict"
    if [ "$failed" -ne 0 ] || [ "$passed" -eq 0 ]; then
        cat "$out/checks" >&2
        exit 1
    fi
    mv "$out.counts" "$out/counts"
    if [ -f "$object" ]; then
        cp "$object" "$out/module.ko"
    fi
    results+=("$out")
done
echo "Linux $version, gcc-12, offloads off, $(nproc --all) host processors:"
echo
python3 "$rig/instructions.py" "${results[@]}"
