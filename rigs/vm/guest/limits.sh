# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# What On-Ramp is not made for, each to end as traffic without it, and with a clear word: no privilege, two at once, rules of
# others, a host that forwards, clocks that are set, devices that go, more destinations than there is room for.

. /rig/onrampctl.sh

# plan_from FILE NAMESPACE SOURCE BYTES COUNT FIRST: that many flows to as many addresses of the receiver, 1 ms apart.
plan_from() {
    awk -v namespace="$2" -v source="$3" -v bytes="$4" -v count="$5" -v first="$6" 'BEGIN {
        print "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"
        for (i = 0; i < count; i++)
            printf "%d,%s,%s,incast-r,10.20.%d.%d,5000,%.0f,%d\n", i, namespace, source, (first + i) / 250, (first + i) % 250 + 1, i * 1000000, bytes
    }' >"$1"
}
# arrive FILE COUNT: they are played, and all of them arrive whole.
arrive() {
    rig-traffic play --plan "$1" --congestion cubic --out /out/flows-many.csv >>/out/said-by-traffic 2>&1 &&
        [ "$(sum ok /out/flows-many.csv)" = "$2" ]
}
# of0 NAME: a counter of sender 0, or how many paths it knows.
of0() {
    nsenter --net=/run/netns/incast-0 onrampctl status --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -n 1
}
as_nobody() {
    nsenter --net=/run/netns/incast-0 su -s /bin/sh nobody -c "onrampctl $*" >/out/said 2>&1
    [ $? -eq 1 ] && contains /out/said 'root'
}

network 4
bottleneck
receiver cubic
listens
sleep 1
on_senders ready
in_namespace incast-r sysctl -q -w net.ipv4.tcp_timestamps=2
ip -n incast-r route add local 10.20.0.0/16 dev lo
ip -n incast-switch route add 10.20.0.0/16 via 10.9.200.2
check "the receiver stamps in microseconds" ctl r enable default --stamps-only

for command in "load port" unload "enable default --peer 10.9.200.2:7" rollback watch; do
    # shellcheck disable=SC2086 # its words
    check "without privilege, refused: $command" as_nobody $command
done
check "and nothing was attached" refused 1 'not loaded' 0 unload

# Two at once, of which one wins; then a second one is told.
ctl_in_background() {
    nsenter --net=/run/netns/incast-0 onrampctl "$@" >"/tmp/second" 2>&1 &
    second=$!
}
turns=0
fought=0
while [ $turns -lt 5 ]; do
    ctl_in_background load port --form "$FORM"
    ctl 0 load port --form "$FORM"
    first=$?
    wait $second
    case $first$? in 01 | 10) fought=$((fought + 1)) ;; *) note "two loads ended with $first and $?: $(cat /out/said /tmp/second)" ;; esac
    ctl_in_background enable default --peer 10.9.200.2:7
    ctl 0 enable default --peer 10.9.200.2:7
    wait $second
    ctl_in_background rollback
    ctl 0 rollback
    wait $second
    ctl 0 unload
    turns=$((turns + 1))
done
check "of two that load at once one does" [ $fought -eq 5 ]
routes_of 0
check "and routes have what they had" lacks /out/routes 'features'

# Rules of others: a filter of clsact at both ends of the device, and a mark and a DSCP by nft.
in_namespace incast-0 tc qdisc add dev port clsact
for way in ingress egress; do in_namespace incast-0 tc filter add dev port $way protocol ip matchall flowid 1:1; done
in_namespace incast-0 nft -f - <<RULES
table ip theirs {
    chain out {
        type filter hook output priority 0
        ip daddr 10.0.0.0/8 counter ip dscp set af21 meta mark set 7
    }
}
RULES
theirs() { { in_namespace incast-0 tc filter show dev port ingress; in_namespace incast-0 tc filter show dev port egress; } | grep -c matchall; }
check "attached beside a filter of somebody else" on_senders loads
check "and enabled" on_senders enables
# Too much for the queue, so that something is held.
play beside 1500000
intact
check "packets are held" [ "$(counter held)" -gt 20 ]
check "their rules see each packet" [ "$(in_namespace incast-0 nft list ruleset | sed -n 's/.*packets \([0-9]*\) .*/\1/p')" -gt 100 ]
ctl 0 rollback
ctl 0 unload
check "and are there after it" [ "$(theirs)" -ge 2 ]
in_namespace incast-0 tc qdisc del dev port clsact
in_namespace incast-0 nft delete table ip theirs
loads 0
enables 0

# A route whose connections would take a hold for a loss.
ip -n incast-0 route add 10.20.0.0/16 via 10.9.0.1 rto_min 20ms
check "a route with a short least timeout is refused" refused 2 'rto_min: found 20 ms, allowed is twice max_hold' \
    0 enable 10.20.0.0/16 --peer 10.20.0.1:7
ip -n incast-0 route del 10.20.0.0/16

# The clock of the peer is set under way, as sender 0 reads it; no clock is touched.
# set_clock OCTETS: by so many nanoseconds, from the lowest of eight octets on.
set_clock() {
    _map=$(bpftool map show | sed -n 's/^\([0-9]*\): .* name \.data\.skew .*/\1/p' | tail -n 1)
    # shellcheck disable=SC2086 # one word an octet
    bpftool map update id "$_map" key hex 00 00 00 00 value hex $1 00 00 00 00 00 00 00 00
}
ctl 0 rollback
ctl 0 unload
nsenter --net=/run/netns/incast-0 onrampctl-skew load port --form "$FORM" --set max_hold=50ms >>/out/onrampctl 2>&1
check "On-Ramp with clocks that can be set" enables 0
late=$(timeouts)
plan /out/set.csv 6000000
traffic /out/set.csv /out/set-flows.csv &
flood=$!
sleep 1
set_clock "00 ca 9a 3b 00 00 00 00"
sleep 2
set_clock "00 36 65 c4 ff ff ff ff"
wait $flood
check "with the peer's clock set by 1 s, and back by 2 s, under way, all flows end intact" [ "$?$(sum ok /out/set-flows.csv)" = 04 ]
check "without a retransmission timeout" [ "$(timeouts)" = "$late" ]
check "a connection whose stamps jumped is noticed" [ "$(of0 zeroed)" -ge 2 ]
check "and status says so" refused 0 'advice: [0-9]* connections had stamps of their own' 0 status
set_clock "00 00 00 00 00 00 00 00"
play set-back 1500000
intact
note "longest stall $(stall /out/set-flows.csv) ms"

# The same of clocks that were compared: 100 ms less than they said, so that packets seem to arrive before they are sent.
ctl 0 unload
nsenter --net=/run/netns/incast-0 onrampctl-skew load port --form "$FORM" --set max_hold=50ms >>/out/onrampctl 2>&1
enables 0
new_key
synchronise &
daemon=$!
compares 0 2us
watchers=$!
compares r 2us
watchers="$watchers $!"
check "delays are counted by clocks that were compared" shows ' ±[4-9][.0-9]* us$' /out/top-compared top
set_clock "00 1f 0a fa ff ff ff ff"
check "of which one is wrong, from the least one again" \
    shows 'advice: 10.9.200.2: stamps contradict' /out/status-compared status
intact
# shellcheck disable=SC2086 # process by process
kill $watchers $daemon
ctl 0 rollback
ctl 0 unload

# Devices that get another name, or go.
ip -n incast-0 link add spare type veth peer name other
ip -n incast-0 link set spare up
[ "$FORM" = qdisc ] || in_namespace incast-0 tc qdisc replace dev spare root fq nopacing
check "attached to a device" ctl 0 load spare --form "$FORM"
ip -n incast-0 link set spare down
ip -n incast-0 link set spare name moved
check "which has another name now" refused 0 'attached to moved' 0 status
ip -n incast-0 link del moved
ip -n incast-0 link add spare type veth peer name other
check "and is gone, whatever is there by that name" refused 0 'advice: spare is gone' 0 status
nsenter --net=/run/netns/incast-0 onrampctl watch >/out/watch-gone 2>&1 &
watchers=$!
eventually "of which watch tells, too" contains /out/watch-gone 'spare is gone'
kill $watchers
[ "$FORM" = qdisc ] || in_namespace incast-0 tc qdisc replace dev spare root fq nopacing
in_namespace incast-0 tc qdisc show dev spare >/out/spare-before
check "On-Ramp is detached from a device that is gone" ctl 0 unload
in_namespace incast-0 tc qdisc show dev spare >/out/spare-after
check "and the new one of that name keeps its queue" cmp -s /out/spare-before /out/spare-after
ip -n incast-0 link del spare
loads 0
enables 0

# A host that forwards, as for pods: what is not of a socket of its own passes.
ip netns add incast-pod
ip -n incast-0 link add pod type veth peer name port netns incast-pod
ip -n incast-0 addr add 10.9.50.1/24 dev pod
ip -n incast-0 link set pod up
ip -n incast-pod addr add 10.9.50.2/24 dev port
ip -n incast-pod link set port up
ip -n incast-pod route add default via 10.9.50.1
ip -n incast-switch route add 10.9.50.0/24 via 10.9.0.2
in_namespace incast-0 sysctl -q -w net.ipv4.ip_forward=1
forwarded=$(of0 forwarded)
plan_from /tmp/pods.csv incast-pod 10.9.50.2 400000 4 0
check "flows of a pod arrive" arrive /tmp/pods.csv 4
check "forwarded, and not held" [ "$(($(of0 forwarded) - forwarded))" -gt 100 ]

# More destinations than there is room for: those that have none pass.
plan_from /tmp/many.csv incast-0 10.9.0.2 2000 10000 1000
check "flows to 10,000 destinations arrive" arrive /tmp/many.csv 10000
note "$(of0 full) packets to addresses without room"
check "all have room" [ "$(of0 full)" = 0 ]
plan_from /tmp/more.csv incast-0 10.9.0.2 2000 8000 12000
check "8,000 more arrive" arrive /tmp/more.csv 8000
note "$(of0 full) packets to addresses without room"
check "those without room pass" [ "$(of0 full)" -gt 0 ]
check "status is still told" refused 0 'packets are held to' 0 status
nsenter --net=/run/netns/incast-0 onrampctl metrics >/out/metrics
check "and metrics are not one for each address" [ "$(wc -l </out/metrics)" -lt 200 ]
check "the way back" on_senders rolls_back
check "it is detached" on_senders unloads
check "and nothing is left of it" [ ! -e /sys/fs/bpf/onramp ]
silent
