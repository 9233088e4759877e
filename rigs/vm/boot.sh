#!/usr/bin/env bash
# Boots a Debian 13 with systemd in QEMU's software emulation, with the newest kernel that its backports have, twice for each
# form: Marimo's BPF form by marimoctl's package and units, its module by a line in sysctl.d, and On-Ramp by onrampctl's
# package and units. What docs/rollout.md, docs/deploy.md and onrampctl's page tell operators to type is read from there and
# run as printed; the rollout of onrampctl's page must leave the machine as it was.
# usage: rigs/vm/boot.sh [bpf] [module] [onramp]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=rigs/vm/vm.sh
. rigs/vm/vm.sh

forms=("$@")
[ $# -gt 0 ] || forms=(bpf module onramp)
for form in "${forms[@]}"; do
    case $form in bpf | module | onramp) ;; *)
        echo "boot.sh: no form '$form' (bpf, module, onramp)" >&2
        exit 2
        ;;
    esac
done
if [ "$(id -u)" != 0 ]; then
    [ "${CI:-}" = true ] || echo "skipped: $rig/boot.sh (needs root)"
    lacking "root"
fi
tools
scripts/debian.sh debootstrap debootstrap "$rig/boot.sh"
scripts/debian.sh mkfs.ext4 e2fsprogs "$rig/boot.sh"
# Mounts of this script are its own and go with it, however it ends.
if [ "${BOOT_RIG:-}" != inside ]; then
    BOOT_RIG=inside exec unshare --mount --propagation private "$rig/boot.sh" "${forms[@]}"
fi
alone
traffic
kernel=$("$rig/kernel.sh" newest)
version=$(cat "$kernel/version")
module "$kernel"
package=$(deploy/linux/hostctl/package.sh marimoctl)
onramp=$(deploy/linux/hostctl/package.sh onrampctl)
base=$(rigs/debian/root.sh --newest boot systemd-sysv udev ifupdown iproute2 kmod procps netcat-openbsd libelf1t64 zlib1g frr bpftool dbus chrony)

# quoted PAGE REGEXP: what it has between back quotes in the rows of tables, as far as that matches.
quoted() { sed -n '/^|/p' "$1" | grep -oE '`[^`]+`' | tr -d '`' | grep -E "$2"; }
# prose PAGE REGEXP: what its sentences have between back quotes, as far as that matches; waiting is for 20 seconds.
prose() { sed '/^```/,/^```$/d' "$1" | tr '\n' ' ' | grep -oE '`[^`]+`' | tr -d '`' | grep -E "$2" | sed 's/SECONDS/20/'; }
# blocks PAGE: the lines of its blocks of sh.
blocks() { awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$1"; }
# stages PAGE: the commands of the table of stages, each followed by the one that takes it back.
stages() { awk -F '`' '/^\| [0-9]\. / && $2 ~ /^marimoctl enable/ { print $2; print $4 }' "$1"; }

# rollout PAGE: of its blocks of sh that begin with who types them, each command: the line of the page, who, the command.
rollout() {
    awk '/^```sh/ { on = 1; who = ""; next } /^```/ { on = 0 }
        on && !who { who = $2; if ($0 !~ /^# (sender|receiver|both)$/) on = 0; next }
        on { print NR, who, $0 }' "$1"
}
# wanted PAGE: the metrics of its table that have a value to go on with, as they are printed then.
wanted() { awk -F ' *[|] *' '/^\| `onramp_/ && $3 ~ /^[0-9]+$/ { gsub("`", "", $2); print $2, $3 }' "$1"; }

export CONGESTION=marimo FAULTS= TIMES=
status=0
for form in "${forms[@]}"; do
    work=$built/boot-root
    rm -rf "$work"
    mkdir -p "$work"
    mount -t tmpfs tmpfs "$work"
    mkdir "$work"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
    root=$work/root
    # The page's commands find what builds the package; here that is built already. sudo is nobody's: root types.
    mkdir -p "$root/rig" "$root/tree/deploy/linux/hostctl" "$root/lib/modules/$version/updates"
    cp "$package" "$root/rig/marimoctl.deb"
    cp "$onramp" "$root/rig/onrampctl.deb"
    # shellcheck disable=SC2016 # for that shell
    printf '#!/bin/sh\necho "../rig/$1.deb"\n' >"$root/tree/deploy/linux/hostctl/package.sh"
    printf '#!/bin/sh\nexec "$@"\n' >"$root/usr/local/bin/sudo"
    chmod 755 "$root/tree/deploy/linux/hostctl/package.sh" "$root/usr/local/bin/sudo"
    cp "$rig"/guest/{lib,booted,rollout}.sh "$root/rig/"
    echo "$form" >"$root/rig/form"
    blocks docs/rollout.md >"$root/rig/rollout"
    stages docs/rollout.md >"$root/rig/stages"
    # But for the first line, whose package DKMS builds: package-test.sh does that.
    blocks docs/deploy.md | sed 1d >"$root/rig/deploy"
    # What marimoctl's page shows first, and what the module's tells to type for routes, the default and the table; the
    # simulator, which calibrates for minutes in an emulated machine, is its result.
    sed -n 's/^    \(marimoctl .*\)/\1/p' deploy/linux/marimoctl/README.md >"$root/rig/marimoctl"
    { quoted deploy/linux/tcp_marimo/README.md '^(ip route replace|sysctl net.ipv4.tcp_congestion)'
        blocks deploy/linux/tcp_marimo/README.md | grep '^incast calibrate'; } >"$root/rig/module"
    prose docs/rollout.md '^marimoctl (load --any|unload --wait|set-table --previous)' >"$root/rig/prose"
    prose docs/rollout.md '^modprobe ' >"$root/rig/modprobe"
    prose docs/rollout.md '^up ip route' >"$root/rig/ifupdown"
    printf '#!/bin/sh\ncp /rig/marimo-f.table f.table\n' >"$root/usr/local/bin/incast"
    chmod 755 "$root/usr/local/bin/incast"
    cp deploy/core/marimo-f.table "$root/rig/"
    rollout deploy/linux/onrampctl/README.md >"$root/rig/onramp-rollout"
    wanted deploy/linux/onrampctl/README.md >"$root/rig/onramp-wanted"
    for file in rollout stages deploy marimoctl module prose modprobe ifupdown onramp-rollout onramp-wanted; do
        [ -s "$root/rig/$file" ] || { echo "boot.sh: no commands in the page ($file)" >&2; exit 1; }
    done
    # Links for routes, their queues, and what may be loaded.
    cp "$built/module-$version/tcp_marimo.ko" "$root/lib/modules/$version/updates/"
    find "$kernel/root/usr/lib/modules/$version" \( -name 'dummy.ko*' -o -name 'veth.ko*' -o -name 'sch_fq.ko*' -o -name 'sch_tbf.ko*' \) -exec cp {} "$root/lib/modules/$version/updates/" \;
    cp "$kernel/root/usr/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
    depmod -b "$root" "$version"
    cp "$rig"/guest/systemd/* "$root/etc/systemd/system/"
    mkdir -p "$root/etc/systemd/network"
    mv "$root"/etc/systemd/system/*.net* "$root/etc/systemd/network/"
    chroot "$root" systemctl --quiet enable rig.service systemd-networkd.service
    chroot "$root" systemctl --quiet disable frr.service
    chroot "$root" systemctl --quiet mask serial-getty@ttyS0.service
    echo /dev/vdb / ext4 defaults 0 0 >"$root/etc/fstab"
    rm -f "$root/etc/resolv.conf"
    image=$built/boot-$form.ext4
    rm -f "$image"
    truncate -s 1G "$image"
    mkfs.ext4 -q -d "$root" "$image"
    umount -R "$work"

    for number in 1 2; do
        out=$built/boot-$form-$number
        at=$SECONDS
        if ! boot "$kernel" switch 900 "$out" -smp 1 -drive "file=$image,if=none,id=root,format=raw" \
            -device virtio-blk-pci,drive=root; then
            cat "$out/checks" 2>/dev/null || true
            status=1
            break
        fi
        cat "$out/checks"
        read -r passed failed <"$out/verdict"
        echo "$rig/boot.sh: $form, boot $number on $version: $passed checks passed, $failed failed; the machine ran" \
            "$((SECONDS - at)) s"
        [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || status=1
    done
    rm -f "$image"
done
exit $status
