#!/usr/bin/env bash
# Builds user-mode Linux for the virtual-time rig from Debian's kernel source, unless that is done already.
# usage: build.sh [--kasan]
# Exit code 3: something is missing that may not be installed here.
# The last line of what it prints is the folder of the kernel: `linux` in it, and what modules are built against.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../.. && pwd)
cache=${RIG_CACHE:-$root/target/rigs/virtual-time}
what="a real kernel under virtual time"
tarball=/usr/src/linux-source-6.1.tar.xz

variant=plain configs=(kernel.config)
case "${1:-}" in
"") ;;
--kasan) variant=kasan configs+=(kasan.config) ;;
*)
    echo "usage: build.sh [--kasan]; found $1" >&2
    exit 2
    ;;
esac

need() {
    "$root/scripts/debian.sh" "$1" "$2" "$what" >&2
    command -v "$1" >/dev/null || exit 3
}
need gcc gcc
need make make
need flex flex
need bison bison
need bc bc
need xz xz-utils
need python3 python3
if [ ! -e "$tarball" ]; then
    "$root/scripts/debian.sh" "$tarball" linux-source-6.1 "$what" >&2
    [ -e "$tarball" ] || exit 3
fi
if ! echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1; then
    "$root/scripts/debian.sh" /usr/include/stdio.h libc6-dev "$what" >&2
fi

version=$(dpkg-query -W -f '${Version}' linux-source-6.1)
hash=$({
    echo "$version"
    gcc --version
    cat build.sh "${configs[@]}"
} | sha256sum | cut -c1-16)
source=$cache/source-$version
build=$cache/kernel-$variant-$hash
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

if [ ! -e "$build/complete" ]; then
    start=$SECONDS
    if [ ! -e "$source/complete" ]; then
        rm -rf "$source"
        mkdir -p "$source"
        # Without what no configuration below needs: it is two thirds of the tree.
        tar -xJf "$tarball" -C "$source" --strip-components=1 \
            --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*' --exclude='*/tools/perf/*' \
            --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/media/*.[ch]' --exclude='*/drivers/staging/*.[ch]' \
            --exclude='*/drivers/net/ethernet/*.[ch]' --exclude='*/drivers/net/wireless/*.[ch]' \
            --exclude='*/drivers/infiniband/*.[ch]' --exclude='*/drivers/scsi/*.[ch]' --exclude='*/sound/*.[ch]' \
            --exclude='*/arch/*/*.dts' --exclude='*/arch/*/*.dtsi'
        # HZ of user-mode Linux has no prompt.
        sed -i '/^config HZ$/,/default/s/default 100$/default 1000/' "$source/arch/um/Kconfig"
        touch "$source/complete"
    fi
    rm -rf "$build"
    mkdir -p "$build"
    export ARCH=um KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=incast KBUILD_BUILD_HOST=incast
    wanted=$build/wanted.config
    cat "${configs[@]/#/$here/}" >"$wanted"
    log=$build/build.log
    fail() {
        echo "build.sh: $1; see $log" >&2
        tail -n 20 "$log" >&2
        exit 1
    }
    make -s -C "$source" O="$build" KCONFIG_ALLCONFIG="$wanted" allnoconfig >"$log" 2>&1 || fail "no configuration"
    while read -r line; do
        case "$line" in
        CONFIG_*) grep -qxF "$line" "$build/.config" || fail "$line did not take effect" ;;
        "# CONFIG_"*" is not set")
            name=${line#\# }
            if grep -q "^${name%% *}=" "$build/.config"; then fail "${name%% *} is set"; fi
            ;;
        esac
    done <"$wanted"
    grep -qx CONFIG_HZ=1000 "$build/.config" || fail "HZ is not 1000"
    make -s -C "$source" O="$build" -j"${JOBS:-$(nproc)}" linux modules >>"$log" 2>&1 || fail "the kernel does not build"
    echo $((SECONDS - start)) >"$build/seconds"
    touch "$build/complete"
    echo "virtual time: built user-mode Linux $version ($variant) in $((SECONDS - start)) s" >&2
fi

preload=$build/host.so
if [ ! "$preload" -nt host.c ]; then
    gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$preload" host.c
fi
echo "$build"
