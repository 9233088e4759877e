# shellcheck shell=dash
# A plan, as rigs/virtual-time says it.
for program in ip tc bridge nstat ethtool bpftool; do ln -sf /sbin/$program /bin/$program; done
mount -t bpf bpf /sys/fs/bpf
if [ -e /rig/tcp_marimo.ko ]; then cp /rig/tcp_marimo.ko /in/; fi
/bin/busybox sh -e /in/run.sh >/out/console.txt 2>&1
echo $? >/out/status
dmesg >/out/dmesg.txt
check "the plan came to its end" [ -s /out/FLOWS.csv ]
