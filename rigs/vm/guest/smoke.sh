# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# The module from its loading to its unloading, with one incast in between.
. /rig/module.sh

# What operators have beside the module, where the host could build it.
operated() { [ "$CONGESTION" = marimo ] && [ -x /bin/marimoctl ]; }
status_of() { marimoctl status --json >/out/status 2>&1; }
status_names_table() {
    status_of && contains /out/status "\"table\": \"$(sed -n 's/^checksum //p' "$1")\""
}
status_has_parameters() {
    for _parameter in "$parameters"/parameters/*; do
        contains /out/status "\"${_parameter##*/}\": \"$(cat "$_parameter")\"" || return 1
    done
}
sets_table() { marimoctl set-table "$1" >>/out/set-table 2>&1; }
# refused_table FILE WHY: with the exit code of bad input.
refused_table() {
    sets_table "$1"
    [ $? -eq 2 ] && contains /out/set-table "^marimoctl set-table: $1.*$2"
}
# A file is checked against the usual thresholds before the module sees it, which may have others.
operates_other_thresholds() {
    table_file /tmp/late 55000 614
    check "insmod with other thresholds" insmod /rig/tcp_marimo.ko increase_below=800
    check "a table that does not cross them is refused, with the module's reason" \
        refused_table /tmp/late 'tcp_marimo refuses it: line 2: f'
    check "and changes nothing" status_names_table /rig/marimo-f.table
    check "rmmod" rmmod "$MODULE"
}
# What this kernel offers, in the words of docs/rollout.md.
case $(uname -r) in
6.*) start=cwnd_event test=ce ;;
*) start=cwnd_event_tx_start test=losses ;;
esac
status_says() { marimoctl status >/out/status-text 2>&1 && contains /out/status-text "$1"; }
operates() {
    check "marimoctl status says by what its safety rules are kept" status_says \
        "safety rules: ecn_test \\($test\\), lost_syn \\(without-ect\\), pacing \\(on\\), restart_after_idle \\($start, not told yet\\)"
    check "marimoctl status names the table in use" status_names_table /tmp/shipped
    check "and the parameters" status_has_parameters
    check "marimoctl set-table gives it another" sets_table /tmp/steep
    check "which it has" has_table /tmp/steep
    check "and status names" status_names_table /tmp/steep
    check "one with which windows never shrink is refused" refused_table /tmp/idle 'windows never shrink'
    check "and changes nothing" has_table /tmp/steep
    check "marimoctl puts the table of incast calibrate back" sets_table /rig/marimo-f.table
    check "and its table is in place again" has_table /tmp/shipped
}

# The core of On-Ramp, as a program of this kernel.
core_agrees() { onramp-vectors-kernel </rig/onramp-whole.txt >/out/onramp 2>&1; }
check "this kernel's verifier takes onramp.h, and all vectors agree" core_agrees
note "$(tail -n 1 /out/onramp)"

! operated || operates_other_thresholds
module_loads
if [ "$CONGESTION" = marimo ]; then
    check "an unprivileged user cannot choose it" fails unprivileged "$CONGESTION"
    check "as it can others" unprivileged reno
    tables
    ! operated || operates
fi
network 4
receiver "$CONGESTION" route

# Transfers that stand still while they are looked at, however slow the machine: the switch's port is down.
# Eight seconds of the port: looking takes one or two in a slow machine.
plan /out/long.csv 10000000
if operated; then
    marimoctl top --json >/out/top 2>&1 &
    top=$!
    # Before the first packet, however long a program takes to start in a slow machine.
    for _ in $(seq 100); do
        grep -qs 1 /sys/kernel/tracing/instances/marimoctl-*/events/tcp_marimo/epoch/enable && break
        sleep 0.1
    done
fi
traffic /out/long.csv /out/long-flows.csv &
long=$!
established() { in_namespace incast-0 ss -tin state established >/out/ss && contains /out/ss 'delivered_ce:'; }
eventually "marks arrive" established
ip -n incast-switch link set to-r down
in_namespace incast-0 ss -tinm state established >/out/ss
in_namespace incast-r ss -tin state established >/out/ss-receiver
check "a route gives the receiver its law" contains /out/ss-receiver "$CONGESTION"
if [ "$CONGESTION" = marimo ]; then
    check "the module counts the connections" [ "$(count_of connections)" -gt 0 ]
    # Of a hook that a kernel has moved nobody would hear.
    check "and the kernel has told of a start" [ "$(count_of starts)" -eq 1 ]
fi
if operated; then
    check "marimoctl status counts them, too" status_of
    check "as many" contains /out/status "\"connections\": $(count_of connections),"
    kill "$top"
    wait "$top"
    check "marimoctl top ends when it is told to" [ $? -eq 0 ]
    check "and has shown the epochs of a sender" contains /out/top '"kind":"epoch",.*"connection":"10.9.0.2:'
    check "and leaves no tracing behind" [ -z "$(ls "$tracing"/instances)" ]
fi
check "ss names the law" contains /out/ss "$CONGESTION"
check "ss shows its share of marks and window" contains /out/ss 'dctcp:\(|dctcp-ecn:\('
check "rmmod is refused while connections are open" fails rmmod "$MODULE"
ip -n incast-switch link set to-r up
wait $long
check "and they end well" [ $? -eq 0 ]

play incast 1000000
intact
check "the queue has marked" [ "$marked" -gt 0 ]
check "marks of the queue are marks at the receiver" [ "$marked" -eq "$received" ]
# A SYN and the acknowledgement that ends the handshake may carry a mark too, and so may a probe for a tail loss that
# turns out to be none: no newly delivered segment reports those. A segment that is sent again can also share its
# acknowledgement with one that was marked, and then counts as marked, too.
check "the senders were told of each" within "$echoed" $((received - 2 * senders - retransmissions)) $((received + retransmissions))
# The last acknowledgement of a closed connection is sent without ECT: a queue over its limit drops that one.
check "the queue has not overflowed" [ "$(red_count pdrop)" -eq 0 ]
check "and has dropped no more than what is sent without ECT" [ "$(red_count dropped)" -le $((2 * 2 * senders)) ]
if [ "$CONGESTION" = marimo ]; then
    check "none of the connections fell back" [ "$(count_of fallbacks)" -eq 0 ]
    check "and the module counts none that is still open" [ "$(count_of connections)" -eq 0 ]
fi
note "marked $marked, received $received, echoed $echoed, retransmissions $retransmissions"
# A namespace that is made while the law is the default begins with it, and holds the module.
if operated && [ "$CONGESTION" = marimo ]; then
    sysctl -q -w net.ipv4.tcp_congestion_control=marimo
    ip netns add later
    sysctl -q -w net.ipv4.tcp_congestion_control=cubic
    has_default() { in_namespace "$1" sysctl -n net.ipv4.tcp_congestion_control | grep -qx "$2"; }
    check "a namespace made under the default has it" has_default later marimo
    check "by which rmmod is refused" fails rmmod "$MODULE"
    check "marimoctl rollback takes it back there" marimoctl rollback
    check "to cubic" has_default later cubic
    ip netns del later
fi
network_down
module_unloads

# The BPF form, where this kernel takes it.
status_has() { status_of && contains /out/status "$1"; }
bpf_counts() { marimoctl status --json >/out/bpf-status 2>&1 && grep -E "\"$1\": [1-9]" /out/bpf-status >/dev/null; }
if operated && status_of && contains /out/status '"lacking": null'; then
    check "marimoctl load" marimoctl load
    CONGESTION=bpf_marimo
    network 4
    receiver bpf_marimo route
    play bpf 1000000
    check "every flow of the BPF form ends with its checksum intact" [ "$played$flows" = 04 ]
    check "the senders were told of marks" [ "$echoed" -gt 0 ]
    check "and the kernel has told of starts" bpf_counts starts
    check "by the operation that status names" status_says \
        "safety rules: ecn_test \\(losses\\), lost_syn \\(fallback\\).* restart_after_idle \\($start, told\\)"
    check "none of the connections fell back" fails bpf_counts fallbacks
    network_down
    . /rig/handshake.sh
    total() { marimoctl status --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p"; }
    for handshake in lost_syn keeps_ecn ect_dropped ect_data ect_syn_ack "cookies 12000000 1"; do
        network 4
        receiver bpf_marimo
        # shellcheck disable=SC2086 # a name and its argument
        handshake_$handshake
        network_down
    done
    # A default that is refused in a namespace costs a copy for good; it is told from those that wait.
    ip netns add refusing
    check "a namespace cannot make it its default" fails in_namespace refusing \
        sysctl -q -w net.ipv4.tcp_congestion_control=bpf_marimo
    ip netns del refusing
    check "marimoctl unload" marimoctl unload
    eventually "no copy waits" status_has '"draining": 0'
    note "of which the kernel keeps $(sed -n 's/.*"held": \([0-9]*\).*/\1/p' /out/status)"
fi
