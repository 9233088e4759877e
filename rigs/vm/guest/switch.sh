# shellcheck shell=dash
# From here on it is a Debian: its disk becomes the root, and systemd the first process.
modprobe ext4
mkdir -p /new
mount -t ext4 /dev/vdb /new
mkdir -p /new/out
cp /out/* /new/out/
umount /sys/kernel/tracing
for mounted in /dev /sys /proc; do
    mount -o move $mounted /new$mounted
done
exec switch_root /new /lib/systemd/systemd </new/dev/ttyS0 >/new/dev/ttyS0 2>&1
