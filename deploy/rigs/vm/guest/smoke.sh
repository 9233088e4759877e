# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# The module from its loading to its unloading, with one incast in between.
. /rig/module.sh

module_loads
if [ "$CONGESTION" = marimo ]; then
    check "an unprivileged user cannot choose it" fails unprivileged "$CONGESTION"
    check "as it can others" unprivileged reno
    tables
fi
network 4
receiver "$CONGESTION" route

# Transfers that stand still while they are looked at, however slow the machine: the switch's port is down.
# Eight seconds of the port: looking takes one or two in a slow machine.
plan /out/long.csv 10000000
traffic /out/long.csv /out/long-flows.csv &
long=$!
established() { in_namespace incast-0 ss -tin state established >/out/ss && contains /out/ss 'delivered_ce:'; }
eventually "marks arrive" established
ip -n incast-switch link set to-r down
in_namespace incast-0 ss -tinm state established >/out/ss
in_namespace incast-r ss -tin state established >/out/ss-receiver
check "a route gives the receiver its law" contains /out/ss-receiver "$CONGESTION"
[ "$CONGESTION" != marimo ] || check "the module counts the connections" [ "$(count_of connections)" -gt 0 ]
check "ss names the law" contains /out/ss "$CONGESTION"
check "ss shows its share of marks and window" contains /out/ss 'dctcp:\(|dctcp-ecn:\('
check "rmmod is refused while connections are open" fails rmmod "$MODULE"
ip -n incast-switch link set to-r up
wait $long
check "and they end well" [ $? -eq 0 ]

play incast 1000000
check "every flow ends with its checksum intact" [ "$played$flows" = 04 ]
check "the queue has marked" [ "$marked" -gt 0 ]
check "marks of the queue are marks at the receiver" [ "$marked" -eq "$received" ]
# A SYN and the acknowledgement that ends the handshake may carry a mark too, and so may a probe for a tail loss that
# turns out to be none: no newly delivered segment reports those.
check "the senders were told of each" within "$echoed" $((received - 2 * senders - retransmissions)) "$received"
# The last acknowledgement of a closed connection is sent without ECT: a queue over its limit drops that one.
check "the queue has not overflowed" [ "$(red_count pdrop)" -eq 0 ]
check "and has dropped no more than what is sent without ECT" [ "$(red_count dropped)" -le $((2 * 2 * senders)) ]
if [ "$CONGESTION" = marimo ]; then
    check "none of the connections fell back" [ "$(count_of fallbacks)" -eq 0 ]
    check "and the module counts none that is still open" [ "$(count_of connections)" -eq 0 ]
fi
note "marked $marked, received $received, echoed $echoed, retransmissions $retransmissions"
network_down
module_unloads
