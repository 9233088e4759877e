# What run.sh and instructions.sh share: tools, builds, one boot. Sourced from the top of the repository.
# shellcheck shell=bash

rig=rigs/vm
built=target/rigs/vm
# Of QEMU: a clock that counts instructions, a nanosecond for each, and stands still while all sleep.
counting=(-icount "shift=0,sleep=off" -rtc "base=2026-01-01,clock=vm")
# What the guest gets beside its own, below $built.
programs=(rig-traffic)

# tools: sees to it that everything a run needs is there; ends the run where it cannot be (scripts/debian.sh says what).
# Not to be called in a condition, in which bash would go on after a failure.
tools() {
    local pair command
    for pair in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static gcc-12:gcc-12 make:make bc:bc \
        cpio:cpio depmod:kmod xz:xz-utils ip:iproute2 nft:nftables ethtool:ethtool bpftool:bpftool cargo:cargo; do
        command=${pair%%:*}
        PATH=$PATH:/usr/sbin:/sbin scripts/debian.sh "$command" "${pair##*:}" "$rig"
        PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || lacking "$command"
    done
    # A dynamic busybox would need its libraries before they are there.
    if ldd "$(command -v busybox)" >/dev/null 2>&1; then
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends busybox-static >/dev/null 2>&1 ||
            true
        hash -r
        if ldd "$(command -v busybox)" >/dev/null 2>&1; then
            [ "${CI:-}" = true ] || echo "skipped: $rig (busybox needs libraries; Debian package busybox-static)"
            lacking "busybox without libraries"
        fi
    fi
}

# lacking WHAT: the end of a run that cannot be: an error in CI, elsewhere skipped, as has been said.
lacking() {
    if [ "${CI:-}" = true ]; then
        echo "$rig: $1 is missing" >&2
        exit 1
    fi
    exit 0
}

# alone: one run at a time in a checkout, as builds and results have fixed places. However this one ends, its machine and
# what it was made from go with it.
alone() {
    mkdir -p "$built"
    exec {lock}>"$built/lock"
    if ! flock --nonblock "$lock"; then
        echo "$rig: waits for another run to end" >&2
        flock "$lock"
    fi
    trap end EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Of runs that were killed: nobody else is here.
    rm -rf "$built"/overlay.* "$built"/root.*
}
end() {
    if [ -n "${machine:-}" ]; then
        kill "$machine" 2>/dev/null || true
        wait "$machine" 2>/dev/null || true
        machine=
    fi
    rm -rf "${overlay:-}"
}

# traffic: the program that plays a plan, without any library of the host.
traffic() {
    CARGO_TARGET_DIR=target/rigs/traffic RUSTFLAGS="-C target-feature=+crt-static" \
        cargo build --quiet --release --locked -p rig-traffic --target x86_64-unknown-linux-gnu
    cp target/rigs/traffic/x86_64-unknown-linux-gnu/release/rig-traffic "$built/rig-traffic"
}

# tool NAME TARGETS...: what operators have, built as the rig of the BPF form and the tests build it. Where it cannot be built
# the guest goes without.
tool() {
    local name=$1 what="$1 in a virtual machine"
    shift
    scripts/debian.sh clang clang "$what"
    [ "$name" != onrampctl ] || scripts/debian.sh clang-19 clang-19 "its form qdisc"
    scripts/debian.sh pkg-config pkg-config "$what"
    [ -e /usr/include/libelf.h ] || scripts/debian.sh libelf.h libelf-dev "$what"
    [ -e /usr/include/zlib.h ] || scripts/debian.sh zlib.h zlib1g-dev "$what"
    if { command -v clang && command -v pkg-config && [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; } >/dev/null
    then
        scripts/workspace.sh --tools-seen-to build --quiet --locked "$@"
        strip -o "$built/$name" "${CARGO_TARGET_DIR:-target}/debug/$name"
        programs+=("$name")
    fi
}

# with_libraries PROGRAM ROOT FOLDER: a program into a folder of a root, and its libraries to where it looks for them.
with_libraries() {
    local library
    cp -L "$1" "$2/$3/"
    { ldd "$1" 2>/dev/null || true; } | { grep -oE '/[^ )]+' || true; } | while read -r library; do
        mkdir -p "$2${library%/*}"
        cp -Lu "$library" "$2$library"
    done
}

# module KERNEL: tcp_marimo built against the headers of a kernel, in a copy of its sources.
module() {
    local kernel=$1 version sources
    version=$(cat "$kernel/version")
    work=$built/module-$version
    sources=$(cat deploy/linux/tcp_marimo/{*.c,*.h,Kbuild,Makefile} deploy/linux/*.h deploy/core/marimo.h | sha256sum)
    if [ "$sources" = "$(cat "$work/sources" 2>/dev/null)" ]; then return; fi
    rm -rf "$work"
    mkdir -p "$work"
    deploy/linux/tcp_marimo/stage.sh "$work"
    # Headers of 6.12 want it.
    case $version in 6.1.*) ;; *) scripts/debian.sh pahole pahole "$rig" ;; esac
    if [ -x "$kernel/root/usr/bin/make" ]; then
        # In the release that the kernel is of.
        rm -rf "$kernel/root/var/tmp/module"
        cp -r "$work" "$kernel/root/var/tmp/module"
        # shellcheck disable=SC2016 # for the inner shell
        if ! unshare --mount sh -ec 'mount -t proc proc "$1/proc"; exec chroot "$1" make -s -C "$2" M=/var/tmp/module modules' \
            build "$kernel/root" "/usr/src/linux-headers-$version" >"$work/log" 2>&1 </dev/null; then
            cat "$work/log" >&2
            return 1
        fi
        cp "$kernel/root/var/tmp/module/tcp_marimo.ko" "$work/"
    elif ! make -s -C "$kernel/root/usr/src/linux-headers-$version" M="$PWD/$work" modules >"$work/log" 2>&1; then
        cat "$work/log" >&2
        return 1
    fi
    # What the compiler says about the module is as good as an error.
    if grep -E 'warning:|WARNING' "$work/log" >&2; then
        return 1
    fi
    echo "$sources" >"$work/sources"
}

# base KERNEL: prints the initramfs of a kernel, made once per kernel and version of what makes it.
base() {
    local kernel=$1 key
    key=$(cat "$kernel/version" "$rig/initramfs.sh" "$rig/vm.sh" <(dpkg-query -W busybox-static iproute2 nftables ethtool) |
        sha256sum | cut -c 1-16)
    if [ ! -f "$built/base-$key.cpio" ]; then
        "$rig/initramfs.sh" "$kernel" "$built/base-$key.cpio" >&2
    fi
    echo "$built/base-$key.cpio"
}

# boot KERNEL CASE SECONDS OUT QEMU_ARGUMENTS...: runs a case of guest/ with the settings in the environment and
# unpacks what it left to OUT. Fails if the machine does not come to its end within the bound.
boot() {
    assemble "$1" "$2" "$4"
    run "$@"
}

# assemble KERNEL CASE OUT [IN]: what a machine begins with, in OUT; with the files of IN in its /in.
assemble() {
    local kernel=$1 case=$2 out=$3 version program
    version=$(cat "$kernel/version")
    rm -rf "$out"
    mkdir -p "$out"
    overlay=$(mktemp -d "$built/overlay.XXXXXX")
    mkdir -p "$overlay/rig" "$overlay/bin"
    cp "$rig"/guest/*.sh "$overlay/rig/"
    cp "$rig/guest/init" "$overlay/init"
    chmod 755 "$overlay" "$overlay/init"
    for program in "${programs[@]}"; do
        with_libraries "$built/$program" "$overlay" bin
    done
    deploy/core/test/run.sh --programs "$built/core"
    cp "$built/core/onramp-vectors-kernel" "$overlay/bin/"
    cp "$built/core/onramp-whole.txt" deploy/core/marimo-f.table "$overlay/rig/"
    if [ -f "$built/module-$version/tcp_marimo.ko" ]; then
        cp "$built/module-$version/tcp_marimo.ko" "$overlay/rig/"
    fi
    if [ -n "${4:-}" ]; then
        mkdir "$overlay/in"
        cp "$4"/* "$overlay/in/"
    fi
    printf "CASE='%s'\nCONGESTION='%s'\nFAULTS='%s'\nTIMES='%s'\nFORM='%s'\n" "$case" "$CONGESTION" "${FAULTS:-}" "${TIMES:-}" "${FORM:-edt}" \
        >"$overlay/rig/settings"
    {
        cat "$(base "$kernel")"
        (cd "$overlay" && find . | LC_ALL=C sort | cpio -o -H newc --quiet)
    } >"$out/initrd"
    rm -rf "$overlay"
    overlay=
    truncate -s 64M "$out/disk"
}

# run KERNEL CASE SECONDS OUT QEMU_ARGUMENTS...: the machine, from OUT to OUT.
run() {
    local kernel=$1 case=$2 seconds=$3 out=$4 version status=0
    shift 4
    version=$(cat "$kernel/version")
    # On a busy machine emulated ticks are late, and a kernel that counts them as it boots would find no timer.
    # In the background, so that a signal to this script is answered at once. Killed, it takes the machine with it.
    setpriv --pdeathsig KILL timeout --foreground "$seconds" setpriv --pdeathsig KILL qemu-system-x86_64 -machine q35 -accel tcg -m 768 -display none -monitor none \
        -no-reboot -nodefaults -serial "file:$out/console" -kernel "$kernel/root/boot/vmlinuz-$version" \
        -initrd "$out/initrd" -append "console=ttyS0 quiet panic=-1 oops=panic no_timer_check rdinit=/init${APPEND:+ $APPEND}" \
        -drive "file=$out/disk,if=none,id=disk,format=raw" -device virtio-blk-pci,drive=disk \
        "$@" </dev/null >"$out/qemu" 2>&1 {lock}>&- &
    machine=$!
    wait "$machine" || status=$?
    machine=
    tar -x -f "$out/disk" -C "$out" 2>/dev/null || true
    rm -f "$out/initrd" "$out/disk"
    if [ "$status" -ne 0 ] || [ ! -f "$out/verdict" ]; then
        if [ "$status" -eq 124 ]; then
            echo "$rig: $case: no end within $seconds s; its console:" >&2
        else
            echo "$rig: $case: ended with $status without a verdict; its console:" >&2
        fi
        tail -n 40 "$out/console" "$out/qemu" >&2
        return 1
    fi
}
