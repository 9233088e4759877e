#!/usr/bin/env bash
# The module's C in user space, with mocks of the kernel, under AddressSanitizer and UndefinedBehaviorSanitizer: once
# as for an old kernel, once with every feature that a probe can find.
# usage: unit.sh [OUT]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
out=${1:-$root/target/deploy/unit}
cc=${CC:-cc}
mkdir -p "$out/include"
# Every header of the kernel is the mock.
grep -ho '^#include <[^>]*>' "$here"/../tcp_marimo.c "$here"/../tcp_marimo_trace.h | sed 's/.*<\(.*\)>/\1/' | sort -u |
    while read -r header; do
        mkdir -p "$out/include/$(dirname "$header")"
        echo '#include "mock.h"' >"$out/include/$header"
    done
features="-DMARIMO_HAVE_CWND_HELPERS -DMARIMO_HAVE_CONTROL_FLAG -DMARIMO_HAVE_ECN_HEADER -DMARIMO_HAVE_ECN_MODE
    -DMARIMO_HAVE_SEND_ACK_FLAGS -DMARIMO_HAVE_CONST_ATTRIBUTE -DMARIMO_HAVE_TX_START -DMARIMO_HAVE_ECN_XMIT_CLEARS"
for kernel in old new; do
    flags=(-std=gnu11 -O1 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare
        -Wno-address-of-packed-member -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined
        -DKBUILD_MODNAME='"tcp_marimo"' -I"$out/include" -I"$here" -I"$here/.." -I"$here/../..")
    if [ $kernel = new ]; then
        # shellcheck disable=SC2206 # one flag per word
        flags+=($features)
    fi
    "$cc" "${flags[@]}" "$here/unit.c" "$here/mock.c" -o "$out/unit-$kernel"
    printf 'tcp_marimo: unit, as for %s kernels: ' $kernel
    ASAN_OPTIONS=detect_leaks=1 "$out/unit-$kernel" "$root/deploy/core/marimo-f.table"
done
