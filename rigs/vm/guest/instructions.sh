# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# One incast under a law, and where the kernel's functions are: the host counts what was executed.
. /rig/module.sh

case $CONGESTION in
marimo) insmod /rig/tcp_marimo.ko ;;
dctcp) modprobe tcp_dctcp ;;
esac
network 4
receiver "$CONGESTION"
# CUBIC asks for ECN only where it is switched on; then all three see marks and no losses.
for _n in $_all; do
    in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_ecn=1
done
play incast 2000000
check "every flow of $CONGESTION ends with its checksum intact" [ "$played$flows" = 04 ]
check "the queue has marked" [ "$marked" -gt 0 ]
check "the queue has not overflowed" [ "$(red_count pdrop)" -eq 0 ]
cat /proc/kallsyms >/out/kallsyms
cat /proc/modules >/out/modules
