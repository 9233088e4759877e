#!/usr/bin/env bash
# Makes the root file system of the guest: busybox, iproute2, nft and ethtool with their libraries, and the modules of
# the kernel that a run needs. What changes from run to run (module, programs, plan) comes in a second archive.
# usage: rigs/vm/initramfs.sh KERNEL_DIR OUT.cpio
set -euo pipefail
# shellcheck source=rigs/vm/vm.sh
. "${0%/*}/vm.sh"
kernel=$1 out=$2
version=$(cat "$kernel/version")
modules=$kernel/root/lib/modules/$version
programs=(ip tc bridge ss nstat nft ethtool bpftool)
# The disk over which results leave, a disk that a Debian is on; queues, links, filters; the other senders that Marimo is compared with.
wanted=(virtio_pci virtio_blk ext4 veth sch_htb sch_red sch_netem sch_tbf sch_fq sch_ingress af_packet tcp_diag inet_diag nf_tables nft_quota
    nft_objref tcp_dctcp tcp_bbr bridge ifb act_mirred act_pedit act_csum cls_matchall)

root=$(mktemp -d "${out%/*}/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,sbin,lib64,usr/lib,dev,proc,sys,run,tmp,etc,out,"lib/modules/$version"}
busybox=$(command -v busybox)
cp "$busybox" "$root/bin/busybox"
for name in sh modprobe insmod rmmod; do
    ln -s /bin/busybox "$root/sbin/$name"
done
ln -s /bin/busybox "$root/bin/sh"

for name in "${programs[@]}"; do
    with_libraries "$(PATH=$PATH:/usr/sbin:/sbin command -v "$name")" "$root" sbin
done

# The modules with what they depend on. Newer kernels keep them compressed, which busybox's loader may not read.
for name in "${wanted[@]}"; do
    find "$modules/kernel" -name "$name.ko" -o -name "$name.ko.xz"
done >"$root/tmp/wanted"
depmod -b "$kernel/root" "$version"
while read -r file; do
    name=${file##*/}
    modprobe -d "$kernel/root" -S "$version" --show-depends "${name%%.*}" | sed -n 's/^insmod //p'
done <"$root/tmp/wanted" | awk '{ print $1 }' | sort -u | while read -r file; do
    target=$root/lib/modules/$version/${file#"$modules"/}
    mkdir -p "${target%/*}"
    case $file in
    *.xz) xz -dc "$file" >"${target%.xz}" ;;
    *) cp "$file" "$target" ;;
    esac
done
rm "$root/tmp/wanted"
cp "$modules"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
depmod -b "$root" "$version"

printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet) >"$out.part"
mv "$out.part" "$out"
