# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317
# On-Ramp by TCP's time stamps: four senders under CUBIC and a queue that holds 120 ms, without it, with it, and back.

. /rig/onrampctl.sh

# Octets that wait at the switch, ten times a second, until the file is gone.
sample() {
    touch /tmp/sampling
    while [ -f /tmp/sampling ]; do
        in_namespace incast-switch tc -s qdisc show dev to-r | sed -n '/^qdisc bfifo/,$s/.*backlog \([0-9]*\)\(K*\)b.*/\1\2/p' | sed 's/K$/000/'
        sleep 0.1
    done >"/out/backlog-$1"
}
# mean FILE: of the samples in which something waited.
mean() { awk '$1 > 0 { s += $1; n++ } END { print n ? int(s / n) : 0 }' "$1"; }
# measured NAME BYTES: plays while the queue is looked at.
measured() {
    sample "$1" &
    _sampler=$!
    play "$1" "$2"
    rm /tmp/sampling
    wait $_sampler
    backlog=$(mean "/out/backlog-$1")
}

network 4
bottleneck
receiver cubic
listens
sleep 1
all_routes before

if [ "$FORM" = edt ]; then
    check "without fq it is not attached" refused 1 'noqueue, which keeps nothing: tc qdisc' 0 load port
    queue fq pacing 0
    check "nor to fq that paces sockets itself" refused 1 'would be taken for a queue' 0 load port
else
    queue fq pacing 0
    check "what somebody has configured is not replaced" refused 1 'somebody has configured' 0 load port --form qdisc
    check "nor two devices" refused 2 'found 2 devices, allowed is one' 0 load port port --form qdisc
fi
check "the queue that it needs" on_senders ready
measured without 1500000
intact
before=$backlog
check "it is attached to all senders" on_senders loads
check "a peer that stamps in milliseconds is refused" refused 1 'stamps in milliseconds' 0 enable default --peer 10.9.200.2:7
check "a receiver whose connections have stamps of their own is told" refused 0 'tcp_timestamps = 1: the stamps of each' \
    r enable default --stamps-only
in_namespace incast-r sysctl -q -w net.ipv4.tcp_timestamps=2
check "the receiver stamps in microseconds" ctl r enable default --stamps-only
check "and then the senders, which hold" on_senders enables

# Who is connected to sends, too: an answer's path is shown by the handshake, before its first packet.
reports=$(counter reports)
in_namespace incast-0 sh -c 'exec nc -l -p 8 <>/tmp/quiet >/dev/null' &
server=$!
sleep 1
in_namespace incast-r sh -c 'exec nc 10.9.0.2 8 <>/tmp/quiet >/dev/null' &
client=$!
connected() { [ "$(counter reports)" -gt "$reports" ]; }
eventually "the handshake of a connection that the peer opens is a report" connected
kill $client $server

play few 10000
intact
check "what meets no queue is not held" [ "$(counter held)" = 0 ]
measured with 1500000
intact
note "octets that wait at the switch, mean: $before without, $backlog with"
# By how much depends on how fast the machine emulates.
check "the queue is shorter" [ "$backlog" -lt "$before" ]
check "packets were held" [ "$(counter held)" -gt 20 ]
check "all of them until they were to leave" [ "$(counter not_kept)" = 0 ]
check "all connections to the receiver share its stamps" [ "$(counter zeroed)" = 0 ]
check "acknowledgements were reports" [ "$(counter reports)" -gt 500 ]
note "$(counter packets) packets, $(counter held) held, $(counter reports) reports, $(counter zeroed) stamps of their own, $(counter milliseconds) in milliseconds"
nsenter --net=/run/netns/incast-0 onrampctl top --once >/out/top 2>&1
note "$(tail -n 1 /out/top)"

# What is held is then more than one packet of the wire, of which any may be the last that is acknowledged.
reports=$(counter reports) ignored=$(counter ignored) held=$(counter held) packets=$(counter packets)
offloads on
play offloads 1500000
offloads off
intact
reports=$(($(counter reports) - reports)) ignored=$(($(counter ignored) - ignored)) held=$(($(counter held) - held)) packets=$(($(counter packets) - packets))
# 4,144 segments of 1,448 octets.
check "what is held is more than one segment" [ $packets -lt 3000 ]
note "with segmentation offload: $held held of $packets, $reports reports, $ignored acknowledgements ignored"
check "with segmentation offload packets are held, too" [ $held -gt 10 ]
check "and most acknowledgements are reports" [ $reports -gt $((4 * ignored)) ]

# All of them are of one machine, and so are their clocks: hosts find that these do not differ. A machine that is slow may
# need several looks.
new_key
compares 0 2us
watchers=$!
eventually "clocks are not compared while nobody keeps them" contains /out/watch 'clocks: the kernel says that nobody'
synchronise &
daemon=$!
compares r 2us
other=$!
eventually "hosts answer each other" ctl 0 clock 10.9.200.2 --clock 2us --key /tmp/key
note "$(cat /out/said)"
check "delays are counted by clocks that were compared" shows ' ±[4-9][.0-9]* us$' /out/top-compared top
kill $other
compares r 100ms
other=$!
check "with clocks that may be wrong by more than a quarter of the threshold, from the least one again" \
    shows 'advice: 10.9.200.2: the clocks may be wrong by more than a quarter' /out/status-compared status
kill $watchers $other $daemon

# One is detached and attached while data is on its way, so many times: a slow machine needs more data for that.
plan /out/churn.csv 4000000
still=0
# stood FILE: what the longest stall is by now.
stood() {
    _stall=$(stall "$1")
    [ "$_stall" -le "$still" ] || still=$_stall
}
note "longest stall of a flow: $(stall /out/without/flows.csv) ms without, $(stall /out/with/flows.csv) ms with it"
turns=0
rounds=0
whole=0
late=$(timeouts)
while [ $turns -lt "$TIMES" ] && [ $rounds -lt $((2 + TIMES)) ]; do
    rounds=$((rounds + 1))
    traffic /out/churn.csv /out/churn-flows.csv &
    flood=$!
    while kill -0 $flood 2>/dev/null && [ $turns -lt "$TIMES" ]; do
        unloads 0 && loads 0 && enables 0 || break
        turns=$((turns + 1))
    done
    wait $flood && [ "$(sum ok /out/churn-flows.csv)" = 4 ] && whole=$((whole + 1))
    stood /out/churn-flows.csv
done
check "detached and attached while data is on its way, all flows end intact" [ $whole = $rounds ]
check "$TIMES times" [ $turns -ge "$TIMES" ]
note "$turns times, $(($(timeouts) - late)) retransmission timeouts of all senders meanwhile, longest stall $still ms"
still=0

# Its commands are killed at any moment: traffic goes on, and what was half done the next command ends or undoes.
plan /out/killed.csv 4000000
kills=0
rounds=0
whole=0
late=$(timeouts)
while [ $kills -lt "$TIMES" ] && [ $rounds -lt $((2 + TIMES)) ]; do
    rounds=$((rounds + 1))
    traffic /out/killed.csv /out/killed-flows.csv &
    flood=$!
    while kill -0 $flood 2>/dev/null && [ $kills -lt "$TIMES" ]; do
        for command in unload "load port --form $FORM --set max_hold=50ms" "enable default --peer 10.9.200.2:7" rollback; do
            # shellcheck disable=SC2086 # its words
            nsenter --net=/run/netns/incast-0 onrampctl $command >>/out/killed 2>&1 &
            victim=$!
            sleep "0.$((kills * 7 % 10))"
            kill -9 $victim 2>/dev/null && kills=$((kills + 1))
            wait $victim 2>/dev/null
        done
    done
    wait $flood && [ "$(sum ok /out/killed-flows.csv)" = 4 ] && whole=$((whole + 1))
    stood /out/killed-flows.csv
done
check "commands are killed while data is on its way, all flows end intact" [ $whole = $rounds ]
note "$kills times, $(($(timeouts) - late)) retransmission timeouts of all senders meanwhile, longest stall $still ms"
check "$TIMES times" [ $kills -ge "$TIMES" ]
ctl 0 rollback
ctl 0 unload
check "it is attached again" loads 0
check "and holds again" enables 0

# Whoever replaces fq takes the packets that it holds with it, as always; after that nothing is held.
plan /out/replaced.csv 1500000
traffic /out/replaced.csv /out/replaced-flows.csv &
flood=$!
sleep 1
for sender in 0 1 2 3; do queue pfifo "" $sender; done
wait $flood
check "with fq replaced under way, all flows end intact" [ "$?$(sum ok /out/replaced-flows.csv)" = 04 ]
check "and status says so" refused 0 'advice: port has pfifo, which (keeps|holds) nothing' 0 status
note "$(counter not_kept) packets were answered before they were to leave"

check "the way back" on_senders rolls_back
check "of the receiver, too" ctl r rollback
all_routes after
check "routes are as they were" cmp -s /out/routes-before /out/routes-after
check "nothing is held any more" refused 0 'packets are held to nothing' 0 status
check "it is detached" on_senders unloads
check "and nothing is left of it" [ ! -e /sys/fs/bpf/onramp ]
play gone 500000
intact
silent
