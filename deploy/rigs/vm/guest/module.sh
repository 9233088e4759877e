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

tables() {
    :
}
