# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# What On-Ramp's programs execute, by the kernel's own account of BPF programs: the clock counts instructions here, so that a
# nanosecond is one. Where nothing is held, and where a queue of 120 ms holds packets.

. /rig/onrampctl.sh

case $FORM in
edt) programs="depart report" ;;
qdisc) programs="enqueue dequeue report" ;;
esac
# account NAME: runs and instructions so far of that program, of all senders.
account() {
    bpftool -j prog show name "$1" | sed 's/},{/}\n{/g' |
        sed -n 's/.*"run_time_ns":\([0-9]*\),"run_cnt":\([0-9]*\).*/\2 \1/p' | awk '{ n += $1; t += $2 } END { print n + 0, t + 0 }'
}
# spent WHAT BYTES: plays, and notes how many instructions a run of each program took.
spent() {
    for _program in $programs; do account $_program >"/tmp/$_program"; done
    play "$1" "$2"
    intact
    for _program in $programs; do
        read -r _runs _before <"/tmp/$_program"
        account $_program >/tmp/now
        read -r _all_runs _after </tmp/now
        check "$1: $_program ran" [ "$_all_runs" -gt "$_runs" ]
        note "$1: $_program: $((_all_runs - _runs)) runs, $(((_after - _before) / (_all_runs - _runs))) instructions each"
    done
}

# busy: instructions executed so far, in millions.
busy() { awk '{ printf "%d\n", ($1 - $2) * 1000 }' /proc/uptime; }
# whole WHAT: what all of the rig executes for a data packet and its acknowledgement, sender to receiver and back.
whole() {
    _before=$(busy)
    play "$1" 4000000
    intact
    note "$1: $((($(busy) - _before) * 1000000 / (4 * 4000000 / 1448))) instructions of the whole rig for a packet"
}

network 4
bottleneck
receiver cubic
listens
sleep 1
in_namespace incast-r sysctl -q -w net.ipv4.tcp_timestamps=2
ctl r enable default --stamps-only
on_senders ready
whole "without it"
above() { ctl "$1" load port --form "$FORM" --set max_hold=50ms --set threshold=900ms; }
check "it is attached, with a threshold above the queue" on_senders above
check "and enabled" on_senders enables
whole "attached and enabled, nothing held"
again() { unloads "$1" && loads "$1" && enables "$1"; }
check "with a threshold that the queue passes" on_senders again
whole "attached and enabled, packets held"
sysctl -q -w kernel.bpf_stats_enabled=1
spent unheld 10000
spent held 1500000
silent
