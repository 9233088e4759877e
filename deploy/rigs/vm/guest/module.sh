# Loading, unloading and the table of the module. $CONGESTION may be another kernel's module: the harness is tried so.
# shellcheck shell=dash disable=SC2034,SC2154

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

# table_file FILE FIRST STEP [KNOTS [CHECKSUM]]: a table in the form of `incast calibrate`: FIRST, FIRST + STEP, …
table_file() {
    _hash=$((0x811c9dc5))
    _knot=0
    echo "marimo-f 1" >"$1"
    while [ $_knot -lt "${4:-65}" ]; do
        _value=$(($2 + _knot * $3))
        echo $_value >>"$1"
        _byte=0
        while [ $_byte -lt 4 ]; do
            _hash=$((((_hash ^ (_value >> (8 * _byte) & 255)) * 0x01000193) & 0xffffffff))
            _byte=$((_byte + 1))
        done
        _knot=$((_knot + 1))
    done
    printf 'checksum %08x\n' $((_hash ^ ${5:-0})) >>"$1"
}

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
