# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# What a network and its operators do to a law: each fault leaves the transfers intact, the counters explained and the
# kernel's log clean. Small windows are the point of several, so that the queue is that of the smoke case.
. /rig/module.sh
. /rig/handshake.sh
ulimit -n 8192

# fault NAME: on a network as new.
fault() {
    echo "-- $1" >>/out/checks
    echo "-- $1" >/dev/ttyS0
    network 4
    receiver "$CONGESTION"
    _fallbacks=$(count_of fallbacks)
    _latched=$(count_of latched)
    "fault_$(echo "$1" | tr - _)"
    network_down
}
counters() { note "marked $marked, received $received, echoed $echoed, retransmissions $retransmissions"; }
fell_back() { echo $(($(count_of fallbacks) - _fallbacks)); }
total() { count_of "$1"; }
latched() { echo $(($(count_of latched) - _latched)); }

# netem ARGUMENTS: what happens between a sender and the switch.
netem() {
    for _n in 0 1 2 3; do
        in_namespace "incast-$_n" tc qdisc replace dev port root netem "$@"
    done
}

# ECT is taken off the data on its way.
fault_bleached() {
    on_the_way 'ip daddr 10.9.200.2 ip ecn != not-ect counter name touched ip ecn set not-ect'
    tell fallbacks_echo
    play bleached 500000
    intact
    check "packets were bleached" [ "$(touched)" -gt 0 ]
    check "nothing could be marked" [ "$marked$received$echoed" = 000 ]
    check "the queue has dropped instead" [ "$(red_count dropped)" -gt 0 ]
    check "what was lost was sent again" [ "$retransmissions" -gt 0 ]
    check "and senders found out that ECN does not work" [ "$(told fallbacks_echo)" -gt 0 ]
    counters
}

# The peer does not do ECN.
fault_without_ecn() {
    receiver cubic
    in_namespace incast-r sysctl -q -w net.ipv4.tcp_ecn=0
    on_the_way 'ip daddr 10.9.200.2 ip ecn != not-ect tcp flags & syn != syn counter name touched'
    play without-ecn 500000
    intact
    check "every connection fell back" [ "$(fell_back)" -eq 4 ]
    check "to the operations of its own that need no ECN" [ "$(awk -F , 'NR > 1 { print $NF }' /out/without-ecn/flows.csv |
        sort -u)" = marimo-reno ]
    check "and its data is not sent with ECT" [ "$(touched)" -eq 0 ]
    counters
}

# Every packet carries CE.
fault_all_marked() {
    on_the_way 'ip daddr 10.9.200.2 ip ecn != not-ect counter name touched ip ecn set ce'
    plan /out/all-marked.csv 2000000
    traffic /out/all-marked.csv /out/all-marked-flows.csv &
    play=$!
    floor() { in_namespace incast-0 ss -tin >/out/all-marked-ss && contains /out/all-marked-ss 'cwnd:2 '; }
    eventually "the window comes to its floor of two packets" floor
    wait $play
    check "every flow ends with its checksum intact" [ "$?$(sum ok /out/all-marked-flows.csv)" = 04 ]
    _delivered=$(sum delivered /out/all-marked-flows.csv)
    _echoed=$(sum delivered_ce /out/all-marked-flows.csv)
    _again=$(sum retransmissions /out/all-marked-flows.csv)
    check "the senders were told of every packet" within "$_echoed" $((_delivered - 3 * 4 - _again)) "$_delivered"
    note "delivered $_delivered, echoed $_echoed, retransmissions $_again"
}

# One packet in twenty is lost.
fault_loss() {
    for _offloads in off on; do
        note "offloads $_offloads"
        offloads $_offloads
        netem loss 5%
        trace_begins
        # Echoes are lost, too.
        in_namespace incast-r tc qdisc replace dev port root netem loss 5% delay 2ms limit 10000
        tell fallbacks_echo
        play "loss-offloads-$_offloads" 500000
        trace_ends "/out/loss-offloads-$_offloads/trace"
        intact
        check "what was lost was sent again" [ "$retransmissions" -gt 0 ]
        check "and ECN passed its tests" [ "$(told fallbacks_echo)" -eq 0 ]
        repaired
        counters
    done
}

# One packet in four overtakes. Hosts undo nothing once a mark is echoed: with a queue that does not mark they do.
fault_reordering() {
    netem delay 4ms reorder 25%
    play reordering 500000
    intact
    check "and the receiver saw it" [ "$(nstat_of incast-r TcpExtTCPOFOQueue)" -gt 0 ]
    counters
    bottleneck
    for _offloads in off on; do
        note "offloads $_offloads, no marks"
        offloads $_offloads
        _before=$(nstat_of_senders TcpExtTCPFullUndo)
        _before=$((_before + $(nstat_of_senders TcpExtTCPPartialUndo) + $(nstat_of_senders TcpExtTCPDSACKUndo)))
        plan "/out/reordering-$_offloads.csv" 500000
        trace_begins
        traffic "/out/reordering-$_offloads.csv" "/out/reordering-$_offloads-flows.csv"
        check "every flow ends with its checksum intact" [ "$?$(sum ok "/out/reordering-$_offloads-flows.csv")" = 04 ]
        trace_ends "/out/reordering-$_offloads.trace"
        _after=$(nstat_of_senders TcpExtTCPFullUndo)
        _after=$((_after + $(nstat_of_senders TcpExtTCPPartialUndo) + $(nstat_of_senders TcpExtTCPDSACKUndo)))
        repaired
        check "what was no loss was undone, as the kernel counts it" [ $_after -gt $_before ]
        check "and in the module" [ "$(decisions "$DID_UNDO")" -gt 0 ]
    done
}

# Acknowledgements come late, once: timeouts that nothing was lost by.
fault_late() {
    bottleneck
    for _offloads in off on; do
        note "offloads $_offloads, no marks"
        offloads $_offloads
        _before=$(nstat_of_senders TcpExtTCPTimeouts)
        plan "/out/late-$_offloads.csv" 3000000
        trace_begins
        traffic "/out/late-$_offloads.csv" "/out/late-$_offloads-flows.csv" &
        play=$!
        sleep 1
        in_namespace incast-r tc qdisc change dev port root netem delay 800ms limit 10000
        sleep 1.5
        in_namespace incast-r tc qdisc change dev port root netem delay 2ms limit 10000
        wait $play
        check "every flow ends with its checksum intact" [ "$?$(sum ok "/out/late-$_offloads-flows.csv")" = 04 ]
        trace_ends "/out/late-$_offloads.trace"
        check "there were timeouts" [ "$(nstat_of_senders TcpExtTCPTimeouts)" -gt "$_before" ]
        check "which the module was told of" [ "$(decisions "$DID_TIMEOUT")" -gt 0 ]
        check "and which were undone" [ "$(decisions "$DID_UNDO")" -gt 0 ]
        check "no window is then smaller than before" [ "$(not_undone)" -eq 0 ]
        note "timeouts $(decisions "$DID_TIMEOUT"), undone $(decisions "$DID_UNDO")"
    done
}

# Not the window is the limit, but what a socket holds: then no window grows. Otherwise it does, and is paced.
fault_limited() {
    bottleneck
    for _offloads in off on; do
        note "offloads $_offloads, no marks"
        offloads $_offloads
        plan "/out/limited-$_offloads.csv" 1000000
        trace_begins
        rig-traffic play --plan "/out/limited-$_offloads.csv" --congestion "$CONGESTION" --socket-buffer 8192 \
            --out "/out/limited-$_offloads-flows.csv"
        check "every flow ends with its checksum intact" [ "$?$(sum ok "/out/limited-$_offloads-flows.csv")" = 04 ]
        trace_ends "/out/limited-$_offloads.trace"
        _limited=$(largest_window)
        # Doubled by the kernel the buffers hold 11 packets at most; slow start may have twice what it uses.
        check "no window becomes larger than twice what is held" within "$_limited" 1 22
        trace_begins
        traffic "/out/limited-$_offloads.csv" "/out/free-$_offloads-flows.csv" &
        play=$!
        eventually "a connection is paced by its window and round trip" paced
        wait $play
        check "without that bound every flow ends with its checksum intact, too" \
            [ "$?$(sum ok "/out/free-$_offloads-flows.csv")" = 04 ]
        trace_ends "/out/free-$_offloads.trace"
        check "and windows grow beyond it" [ "$(largest_window)" -gt 22 ]
        note "largest window $_limited, without the bound $(largest_window)"
    done
}

# The path's MTU falls and rises again.
fault_mtu() {
    # With one processor packets do not overtake each other: all that is missing is missing by the MTU.
    echo 0 >/sys/devices/system/cpu/cpu1/online
    plan /out/mtu.csv 6000000
    trace_begins
    traffic /out/mtu.csv /out/mtu-flows.csv &
    play=$!
    sleep 1
    ip -n incast-switch link set to-r mtu 1000
    smaller() { in_namespace incast-0 ss -tin >/out/mtu-ss && contains /out/mtu-ss 'mss:9[0-9][0-9] pmtu:1000'; }
    eventually "segments become smaller" smaller
    ip -n incast-switch link set to-r mtu 1500
    wait $play
    check "every flow ends with its checksum intact" [ "$?$(sum ok /out/mtu-flows.csv)" = 04 ]
    trace_ends /out/mtu.trace
    echo 1 >/sys/devices/system/cpu/cpu1/online
    check "what was too large was sent again" [ "$(sum retransmissions /out/mtu-flows.csv)" -gt 0 ]
    check "and taken for no loss and no timeout" [ "$(decisions "$DID_LOSS")-$(decisions "$DID_TIMEOUT")" = 0-0 ]
    note "retransmissions $(sum retransmissions /out/mtu-flows.csv), timers $(nstat_of_senders TcpExtTCPTimeouts)"
}

# The kernel probes for a larger MTU (RFC 4821) and gives packets of its size to a window of as many bytes.
fault_mtu_probe() {
    bottleneck
    for _n in 0 1 2 3; do
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_mtu_probing=2 net.ipv4.tcp_base_mss=512
    done
    plan /out/mtu-probe.csv 2000000
    trace_begins
    traffic /out/mtu-probe.csv /out/mtu-probe-flows.csv
    check "every flow ends with its checksum intact" [ "$?$(sum ok /out/mtu-probe-flows.csv)" = 04 ]
    trace_ends /out/mtu-probe.trace
    _probes=$(nstat_of_senders TcpExtTCPMTUPSuccess)
    check "probes came through" [ "$_probes" -gt 0 ]
    # The first is for packets of twice the size. Nothing else makes a window so much smaller that hears of no loss.
    _fell=$(in_trace 'k = v["sport"] "-" v["dport"]
        if (last[k] && v["state"] == 0 && !did(2) && !did(4) && v["cwnd"] < last[k] * 0.7 && !fell[k]++) n++
        last[k] = v["cwnd"] + 0')
    check "and the first of each connection made its window one of fewer packets" [ "$_fell" -eq 4 ]
    note "$_probes probes came through"
}

# The receiver never echoes a mark.
fault_mute() {
    # The queue drops in the end, as no sender hears of its marks.
    bottleneck "$(echo "$red" | sed s/600000/90000/)"
    on_the_way 'ip saddr 10.9.200.2 tcp flags == ack|ecn counter name touched tcp flags set ack'
    tell fallbacks_echo
    play mute 2000000
    intact
    check "echoes were taken off" [ "$(touched)" -gt 0 ]
    check "the queue has marked" [ "$marked" -gt 0 ]
    check "no sender heard of it" [ "$echoed" -eq 0 ]
    check "it ends in losses" [ "$retransmissions" -gt 0 ]
    check "by which the senders found out" [ "$(told fallbacks_echo)" -gt 0 ]
    counters
}

# The receiver echoes until it is answered (RFC 3168).
fault_latched() {
    # A stock listener takes a SYN with ECT for no request of ECN: the path clears it.
    receiver cubic
    in_namespace incast-r sysctl -q -w net.ipv4.tcp_ecn=1
    on_the_way 'ip daddr 10.9.200.2 tcp flags & syn == syn counter name touched ip ecn set not-ect'
    # It takes a run of evidence: with few packets in flight an exact receiver looks alike half of the time.
    trace_begins
    play latched 6000000
    trace_ends /out/latched/trace
    intact
    check "ECN was agreed on" [ "$(fell_back)" -eq 0 ]
    check "more is echoed than was marked" [ "$echoed" -gt "$received" ]
    check "the module has noticed" [ "$(latched)" -gt 0 ]
    check "as often as its trace says" [ "$(latched)" -eq "$(decisions "$DID_SUSPECT")" ]
    note "$(suspicious) of $flows connections noticed, $(latched) times in all"
    counters
}

# CUBIC with ECN in the same queue.
fault_beside() {
    for _n in $_all; do
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_ecn=1
    done
    plan /tmp/both.csv 1500000
    { head -n 1 /tmp/both.csv; grep -E 'incast-[01],' /tmp/both.csv; } >/out/beside-marimo.csv
    { head -n 1 /tmp/both.csv; grep -E 'incast-[23],' /tmp/both.csv; } >/out/beside-cubic.csv
    rig-traffic play --plan /out/beside-cubic.csv --congestion cubic --out /out/beside-cubic-flows.csv &
    play=$!
    traffic /out/beside-marimo.csv /out/beside-marimo-flows.csv
    check "every flow of Marimo ends with its checksum intact" [ "$?$(sum ok /out/beside-marimo-flows.csv)" = 02 ]
    wait $play
    check "and every one of CUBIC" [ "$?$(sum ok /out/beside-cubic-flows.csv)" = 02 ]
    check "both were marked" [ "$(sum delivered_ce /out/beside-marimo-flows.csv)" -gt 0 ] &&
        check "both were marked" [ "$(sum delivered_ce /out/beside-cubic-flows.csv)" -gt 0 ]
    for _law in marimo cubic; do
        note "$_law: last byte after $(awk -F , 'NR > 1 && $4 > m { m = $4 } END { printf "%.2f", m / 1e9 }' \
            /out/beside-$_law-flows.csv) s, retransmissions $(sum retransmissions /out/beside-$_law-flows.csv)"
    done
}

# Segmentation and receive offloads are on.
fault_offloads() {
    offloads on
    in_namespace incast-r tc qdisc replace dev port root netem delay 2ms limit 10000
    play offloads 4000000
    intact
    check "packets of several segments crossed the switch" [ "$(nstat_of incast-r IpExtInReceives)" -lt \
        $((4 * 4000000 / 1448)) ] || note "packets at the receiver: $(nstat_of incast-r IpExtInReceives)"
    check "marks came back" [ "$echoed" -gt 0 ]
    counters
    netem loss 2%
    play offloads-loss 1000000
    check "with losses too every flow ends with its checksum intact" [ "$played$flows" = 04 ]
    check "what was lost was sent again" [ "$retransmissions" -gt 0 ]
    counters
}

# Tables are replaced while windows move.
fault_swap() {
    : >/tmp/swap
    swap_tables /tmp/swap &
    swap=$!
    play swap 1000000
    intact
    rm /tmp/swap
    wait $swap
    check "many times" [ "$(cat /tmp/swap.count)" -gt 100 ]
    note "$(cat /tmp/swap.count) tables"
    counters
}

# Processes die with connections open.
fault_killed() {
    plan /out/killed.csv 20000000
    rig-traffic play --plan /out/killed.csv --congestion "$CONGESTION" --out /out/killed-flows.csv &
    play=$!
    sleep 2
    check "rmmod is refused" fails rmmod "$MODULE"
    ip -n incast-switch link set to-r down
    kill -9 $play
    wait $play
    check "and refused while their last data is on its way" fails rmmod "$MODULE"
    ip -n incast-switch link set to-r up
    module_unloads
    module_loads
}

# gave_up: which connections failed, and what the kernel counts of those that did not end as they should.
gave_up() {
    grep 'connection [0-9]' /out/churn | head -n 8 | while read -r _line; do
        note "$_line"
    done
    for _n in 0 r; do
        note "incast-$_n: $(awk '/^Tcp(ActiveOpens|PassiveOpens|AttemptFails|EstabResets|OutRsts) / ||
            /^TcpExt(TCPAbort|Listen|TCPReqQ|TCPTimeouts|TCPSynRetrans|TCPTimeWaitOverflow)/ {
                if ($2) printf "%s %s, ", $1, $2
            }' "/out/churn-nstat-$_n")"
    done
}

uptime_seconds() { cut -d . -f 1 /proc/uptime; }

# A thousand connections for a minute, and attempts to unload.
fault_churn() {
    # A closed connection whose memory of it is thrown away answers a repeated FIN with a reset: a machine this small
    # remembers 4,096 of them.
    for _n in 0 r; do
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_max_tw_buckets=200000
        # A thousand windows of two packets are five times what the queue holds, so that one packet in four is lost, and
        # for some connections many in a row. After the usual five retries of its SYN-ACK, 63 s, the receiver forgets a
        # handshake that the sender takes for complete, and resets it at its next segment. Here no timer gives up before
        # rig-traffic does.
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_syn_retries=15 net.ipv4.tcp_synack_retries=15 \
            net.ipv4.tcp_orphan_retries=15
    done
    : >/tmp/swap
    swap_tables /tmp/swap &
    swap=$!
    _begun=$(uptime_seconds)
    rig-traffic churn --connections 1000 --seconds 60 --congestion "$CONGESTION" --bytes 16384 \
        --source-namespace incast-0 --source 10.9.0.2 --destination-namespace incast-r --destination 10.9.200.2 \
        >/out/churn 2>&1 &
    churn=$!
    _refusals=0
    _unloaded=0
    sleep 3
    # While there are new connections for sure: once all is closed, unloading is granted.
    while [ "$(uptime_seconds)" -lt $((_begun + 55)) ]; do
        if rmmod "$MODULE" 2>/dev/null; then
            _unloaded=$((_unloaded + 1))
            break
        fi
        _refusals=$((_refusals + 1))
        sleep 1
    done
    wait $churn
    churned=$?
    for _n in 0 r; do
        in_namespace "incast-$_n" nstat -asz >"/out/churn-nstat-$_n"
    done
    check "every transfer's checksum is intact" [ $churned -eq 0 ]
    [ $churned -eq 0 ] || gave_up
    check "rmmod was refused every time" [ $_refusals -gt 0 ] && check "not once granted" [ $_unloaded -eq 0 ]
    rm /tmp/swap
    wait $swap
    note "$(grep -m 1 connections, /out/churn)"
    in_namespace incast-switch tc -s qdisc show >/out/churn-tc
    note "$_refusals attempts to unload, $(cat /tmp/swap.count) tables"
    [ "$CONGESTION" != marimo ] || check "no connection is counted that is gone" [ "$(count_of connections)" -eq 0 ]
}

fault_lost_syn() { handshake_lost_syn; }
fault_keeps_ecn() { handshake_keeps_ecn; }
fault_ect_dropped() { handshake_ect_dropped; }
fault_ect_data() { handshake_ect_data; }
fault_ect_syn_ack() { handshake_ect_syn_ack; }
fault_cookies() {
    # Newer kernels let no socket send CE: losses are counted, of which long flows have enough.
    case $(uname -r) in
    6.*) handshake_cookies 1500000 4 ;;
    *) handshake_cookies 12000000 1 ;;
    esac
}

# Loaded, used and unloaded, again and again.
fault_reload() {
    # A route knows the law by name and does not hold it.
    receiver "$CONGESTION" route
    module_unloads
    _cycle=0
    while [ $_cycle -lt 10 ]; do
        insmod /rig/tcp_marimo.ko || break
        echo flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes >/tmp/own.csv
        echo 0,-,127.0.0.1,-,127.0.0.1,5000,0,100000 >>/tmp/own.csv
        rig-traffic play --plan /tmp/own.csv --congestion "$CONGESTION" --out /tmp/own-flows.csv || break
        _tries=0
        until rmmod "$MODULE" 2>/dev/null || [ $_tries -ge 50 ]; do
            _tries=$((_tries + 1))
            sleep 0.1
        done
        _cycle=$((_cycle + 1))
    done
    check "ten times loaded, used and unloaded" [ $_cycle -eq 10 ]
    module_loads
}

grep -v '^#' /rig/marimo-f.table >/tmp/shipped
table_file /tmp/steep 39322 614
module_loads
for _fault in ${FAULTS:-bleached without-ecn all-marked loss reordering late limited mtu mtu-probe mute latched beside offloads swap killed churn lost-syn keeps-ecn ect-dropped ect-data ect-syn-ack cookies reload}; do
    fault "$_fault"
done
module_unloads
