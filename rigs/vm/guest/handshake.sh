# What becomes of a handshake on the way, for both forms of Marimo. For busybox's sh.
# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317

# tell COUNTER...: remembers what counters say; told COUNTER: how much it has grown since. total COUNTER is the form's own.
tell() {
    for _counter in "$@"; do
        eval "_before_$_counter=$(total "$_counter")"
    done
}
told() { eval "echo \$(($(total "$1") - _before_$1))"; }

# plays_without_first_syns NAME: the first SYN of each connection is lost.
plays_without_first_syns() {
    tell fallbacks fallbacks_syn syns
    on_the_way 'ip daddr 10.9.200.2 tcp flags & (syn | ack) == syn quota until 240 bytes counter name touched drop'
    play "$1" 100000
    check "SYNs were lost" [ "$(touched)" -eq 4 ]
    intact
    check "each SYN was sent again" [ "$(told syns)" -eq 4 ]
}

# The kernel asks for no ECN in the next one.
handshake_lost_syn() {
    plays_without_first_syns lost-syn
    check "every connection fell back, at both ends" [ "$(told fallbacks)" -eq 8 ]
    check "one of them for its SYN" [ "$(told fallbacks_syn)" -eq 4 ]
}

# Somebody drops each SYN that is ECT: what comes then is not, and the connection is there.
handshake_ect_dropped() {
    tell fallbacks_syn
    on_the_way 'ip daddr 10.9.200.2 tcp flags & (syn | ack) == syn ip ecn != not-ect counter name touched drop'
    play ect-dropped 100000
    check "SYNs with ECT were dropped" [ "$(touched)" -eq 4 ]
    intact
    check "every connection fell back for its SYN" [ "$(told fallbacks_syn)" -eq 4 ]
}

# SYNs come through with ECT, data does not: timeouts have to tell.
handshake_ect_data() {
    tell fallbacks_ect
    on_the_way 'ip daddr 10.9.200.2 tcp flags & syn == 0 ip length > 100 ip ecn != not-ect counter name touched drop'
    play ect-data 200000
    check "data with ECT was dropped" [ "$(touched)" -ge 12 ]
    intact
    check "every sender fell back for that" [ "$(told fallbacks_ect)" -eq 4 ]
}

# Somebody drops each SYN-ACK that is ECT. The kernel sends those of a listener that chose the law by itself so, each
# time, and asks no law: nobody connects. Those of a listener that has it by a route are not ECT.
handshake_ect_syn_ack() {
    for _n in 0 1 2 3; do
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_syn_retries=2
    done
    on_the_way 'ip saddr 10.9.200.2 tcp flags & (syn | ack) == (syn | ack) ip ecn != not-ect counter name touched drop'
    play ect-syn-ack 100000
    check "SYN-ACKs with ECT were dropped" [ "$(touched)" -ge 8 ]
    check "and nobody connects" [ "$flows" -eq 0 ]
    _dropped=$(touched)
    receiver "$CONGESTION" route
    play ect-syn-ack-route 100000
    intact
    check "with a route no SYN-ACK is ECT" [ "$(touched)" -eq "$_dropped" ]
}

# net.ipv4.tcp_ecn_fallback = 0: a lost SYN costs no ECN.
handshake_keeps_ecn() {
    for _n in 0 1 2 3; do
        in_namespace "incast-$_n" sysctl -q -w net.ipv4.tcp_ecn_fallback=0
    done
    plays_without_first_syns keeps-ecn
    check "and no connection fell back" [ "$(told fallbacks)" -eq 0 ]
}

# A listener that answers with SYN cookies and has tcp_ecn = 0 says in its SYN-ACK that it does ECN, and has forgotten it
# when the connection begins: the sender hears of no mark until the queue is full.
handshake_cookies() { # BYTES OF A FLOW, LEAST THAT FIND OUT
    tell fallbacks_echo
    in_namespace incast-r sysctl -q -w net.ipv4.tcp_syncookies=2 net.ipv4.tcp_ecn=0
    bottleneck "limit 120000 min 15000 max 45000 avpkt 1500 burst 11 probability 1 bandwidth 40mbit ecn"
    # After it fell back a sender's data has no ECT.
    in_namespace incast-switch nft -f - <<'RULES'
table ip way {
    counter plain {}
    chain way {
        type filter hook forward priority 0
        ip daddr 10.9.200.2 ip ecn not-ect ip length > 1000 counter name plain
    }
}
RULES
    play cookies "$1"
    plain=$(in_namespace incast-switch nft list counter ip way plain | sed -n 's/.*packets \([0-9]*\) .*/\1/p')
    intact
    check "packets were marked" [ "$received" -gt 0 ]
    check "of which the senders heard nothing" [ "$echoed" -eq 0 ]
    check "which they found out" within "$(told fallbacks_echo)" "$2" 4
    check "and sent what came then without ECT" [ "$plain" -gt 0 ]
    note "marked $marked, received $received, echoed $echoed, retransmissions $retransmissions, without ECT $plain"
}
