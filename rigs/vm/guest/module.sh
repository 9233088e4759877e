# Loading, unloading and the table of the module. $CONGESTION may be another kernel's module: the harness is tried so.
# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317

MODULE=tcp_$CONGESTION
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
available=/proc/sys/net/ipv4/tcp_available_congestion_control

module_loads() {
    if [ "$CONGESTION" = marimo ]; then
        check "insmod" insmod /rig/tcp_marimo.ko
    else
        check "modprobe" modprobe "$MODULE"
    fi
    check "it can be chosen" contains $available "$CONGESTION"
    check "by the privileged only" lacks $allowed "$CONGESTION"
}

module_unloads() {
    # Closed connections keep their law until the last timer of theirs is gone.
    _tries=0
    until rmmod "$MODULE" || [ $_tries -ge 50 ]; do
        _tries=$((_tries + 1))
        sleep 0.2
    done
    check "rmmod" lacks /proc/modules "^$MODULE "
    check "it can no longer be chosen" lacks $available "$CONGESTION"
    note "rmmod after $_tries tries"
}

# unprivileged: a user without capabilities asks for the law for a socket of its own.
unprivileged() {
    echo flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes >/tmp/own.csv
    echo 0,-,127.0.0.1,-,127.0.0.1,5000,0,1000 >>/tmp/own.csv
    su -s /bin/sh nobody -c "rig-traffic play --plan /tmp/own.csv --congestion $1 --out /tmp/own-$1.csv"
}

parameters=/sys/module/tcp_marimo

# One write, whatever the size: what sysfs gets is a whole table.
write_table() { dd if="$1" of=$parameters/table bs=16k 2>/dev/null; }
has_table() { cat $parameters/table >/tmp/has && cmp -s "$1" /tmp/has; }
count_of() { awk -v n="$1" '$1 == n { print $2 }' $parameters/counters; }

refuses_table() {
    _refused=$(count_of refused)
    if write_table "$1" || ! has_table /tmp/steep || [ "$(count_of refused)" -ne $((_refused + 1)) ]; then
        return 1
    fi
    cat $parameters/table_error >>/out/table-errors
    [ -n "$(cat $parameters/table_error)" ]
}

tables() {
    grep -v '^#' /rig/marimo-f.table >/tmp/shipped
    table_file /tmp/steep 39322 614
    check "it starts with the table that incast calibrate made" has_table /tmp/shipped
    check "a table can be replaced" write_table /tmp/steep
    check "and is read back as it was written" has_table /tmp/steep

    table_file /tmp/checksum 39322 614 65 1
    table_file /tmp/short 39322 614 64
    table_file /tmp/long 39322 614 66
    table_file /tmp/falling 39322 -10
    table_file /tmp/idle 0 10
    table_file /tmp/full 65000 614
    table_file /tmp/high 39322 90000
    head -n 30 /tmp/steep >/tmp/truncated
    sed '10s/.*/-1/' /tmp/steep >/tmp/negative
    sed '10s/.*/39k/' /tmp/steep >/tmp/letters
    sed '1s/1/2/' /tmp/steep >/tmp/version
    { cat /tmp/steep; echo 5; } >/tmp/more
    head -c 4000 /dev/urandom >/tmp/noise
    for _bad in checksum short long falling idle full high truncated negative letters version more noise; do
        check "a bad table is refused and the old one stays: $_bad" refuses_table /tmp/$_bad
    done
    check "the comments of incast calibrate are read over" write_table /rig/marimo-f.table
    check "and its table is in place again" has_table /tmp/shipped
}

# swap_tables FILE: one table after the other until FILE is gone; how many is left in FILE.count.
swap_tables() {
    _swaps=0
    while [ -e "$1" ]; do
        write_table /tmp/steep || break
        write_table /tmp/shipped || break
        _swaps=$((_swaps + 2))
    done
    echo $_swaps >"$1.count"
}

tracing=/sys/kernel/tracing

# What the module is told and decides, from its tracepoint: what no counter of the kernel's shows.
trace_begins() {
    echo 16384 >$tracing/buffer_size_kb
    echo >$tracing/trace
    echo 1 >$tracing/events/tcp_marimo/ack/enable
}

trace_ends() {
    trace=$1
    echo 0 >$tracing/events/tcp_marimo/ack/enable
    cat $tracing/trace >"$trace"
    # Of what was overwritten nothing could be said.
    check "the trace is whole" whole_trace
}
whole_trace() { awk -F '[ :/]+' '/entries-in-buffer/ { whole = $4 > 0 && $4 == $5 } END { exit !whole }' "$trace"; }

# The bits of its events, as in marimo_tcp.h.
DID_ACK=1 DID_LOSS=2 DID_TIMEOUT=4 DID_UNDO=32 DID_SUSPECT=128

# in_trace PROGRAM: what awk prints that sees the events of the trace: v[NAME], and did(BIT) as in marimo_tcp.h.
in_trace() {
    awk 'function did(bit) { return int(v["events"] / bit) % 2 }
        / events=/ {
            for (i = 1; i <= NF; i++) if (split($i, pair, "=") == 2) v[pair[1]] = pair[2]
            '"$1"'
        }
        END { print n + 0 }' "$trace"
}
decisions() { in_trace "if (did($1)) n++"; }
# Connections whose peer was found latched, however often each of them.
suspicious() { in_trace "if (did($DID_SUSPECT) && !seen[v[\"sport\"], v[\"dport\"]]++) n++"; }
largest_window() { in_trace 'if (v["cwnd"] + 0 > n) n = v["cwnd"] + 0'; }

# Windows during recovery that are larger than proportional rate reduction allows (RFC 6937): with no more on its way
# than the target, the window is at most the target, but for one packet to begin with.
recovering='v["state"] == 3 && (did(1) || did(2)) && !did(32)'
too_large() {
    in_trace "if ($recovering)"' {
        target = int(v["window"] / 65536)
        if (target < 2) target = 2
        if (v["pipe"] + 0 <= target && v["cwnd"] > (target > v["pipe"] + 1 ? target : v["pipe"] + 1)) n++
    }'
}

# Undone timeouts after which a window is smaller than before.
not_undone() {
    in_trace 'k = v["sport"] "-" v["dport"]
        if (did(4) && !(k in before)) before[k] = last[k]
        if (did(32) && k in before && v["window"] + 0 < before[k]) n++
        if (did(32) || v["state"] == 0) delete before[k]
        last[k] = v["window"] + 0'
}

# repaired: losses were answered once they were seen, and windows were as recovery wants them.
repaired() {
    check "recovery was entered" [ "$(decisions "$DID_LOSS")" -gt 0 ]
    check "and seen at work" [ "$(in_trace "if ($recovering) n++")" -gt 0 ]
    check "it made no window larger than it may" [ "$(too_large)" -eq 0 ]
    note "recoveries $(decisions "$DID_LOSS"), timeouts $(decisions "$DID_TIMEOUT"), undone $(decisions "$DID_UNDO")"
}

# paced: ss of a sender shows the rate that the module sets: 5/4 of the window per round trip, twice in slow start; more
# while more is on its way than the window.
paced() {
    in_namespace incast-0 ss -tin state established >/out/paced-ss
    awk '{
            for (i = 1; i <= NF; i++) {
                if ($i == "pacing_rate") rate = $(i + 1) + 0
                if (split($i, pair, ":") == 2) v[pair[1]] = pair[2] + 0
            }
        }
        END {
            if (!rate || !v["rtt"] || !v["unacked"]) exit 1
            one = 8000 * v["mss"] / v["rtt"]
            packets = v["unacked"] > v["cwnd"] ? v["unacked"] : v["cwnd"]
            exit !(rate >= 1.25 * one * v["cwnd"] * 0.99 && rate <= 2 * one * packets * 1.01)
        }' /out/paced-ss
}
