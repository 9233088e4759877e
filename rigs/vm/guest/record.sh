# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# What On-Ramp was told and decided at one of four senders of an incast: its path to the receiver, from its first packet. The
# tool was built to write that down (deploy/linux/onramp/record.bpf.c). The threshold is fixed, as it is in the simulator.

. /rig/onrampctl.sh

loads() { ctl "$1" load port --set max_hold=50ms --set threshold=4ms; }
network 4
bottleneck
receiver cubic
listens
sleep 1
check "the queue that it needs" on_senders ready
# The first one to be loaded, so that its map is the first one of its name.
check "it is attached to all senders" on_senders loads
in_namespace incast-r sysctl -q -w net.ipv4.tcp_timestamps=2
check "the receiver stamps in microseconds" ctl r enable default --stamps-only
check "and then the senders, which hold" on_senders enables
play few 10000
intact
play incast 4000000
intact
check "packets were held" [ "$(counter held)" -gt 20 ]
check "all of them until they were to leave" [ "$(counter not_kept)" = 0 ]
map=$(bpftool map show | sed -n 's/^\([0-9]*\): .* name \.data\.record .*/\1/p' | head -n 1)
bpftool map dump id "$map" >/out/recorded 2>/out/bpftool
check "what was told and decided is written down" [ -s /out/recorded ]
silent
