# shellcheck shell=dash disable=SC2154
# The rollout of onrampctl's page, line by line, from a machine without the package to the same machine again. This machine
# is the sender. The receiver is a network namespace that only an open file keeps: like another host, it is out of reach of a
# rollback here. The two share a disk, so that what both are to do is done once. Between them is a switch of 40 Mbit/s.

at_receiver() { nsenter --net=/proc/$$/fd/9 "$@"; }
# network_of_page: eth0, whose routes are systemd-networkd's, the switch and the receiver, by the addresses of the page.
network_of_page() {
    ip netns add switch
    unshare --net sleep 60 &
    _first=$!
    until [ "$(readlink /proc/$_first/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
    exec 9</proc/$_first/ns/net
    ip link add eth0 type veth peer name to-s netns switch
    ip -n switch link add to-r type veth peer name port netns $_first
    kill $_first
    wait $_first
    ip -n switch addr add 10.1.0.254/24 dev to-s
    ip -n switch addr add 10.2.0.254/24 dev to-r
    ip -n switch addr add 10.3.0.254/24 dev to-r
    ip -n switch link set to-s up
    ip -n switch link set to-r up
    ip netns exec switch sysctl -q -w net.ipv4.ip_forward=1
    tc -n switch qdisc add dev to-r root tbf rate 40mbit burst 3000 limit 600000
    at_receiver ip link set lo up
    at_receiver ip link set port up
    at_receiver ip addr add 10.2.0.7/24 dev port
    at_receiver ip addr add 10.3.0.7/24 dev port
    at_receiver ip route add 10.1.0.0/24 via 10.2.0.254
    {
        printf '[Match]\nName=eth0\n[Network]\nAddress=10.1.0.2/24\n'
        printf '[Route]\nDestination=10.%s.0.0/24\nGateway=10.1.0.254\n' 2 3
    } >/etc/systemd/network/eth0.network
    networkctl reload
}
listens() {
    # Not by the function: its number would be that of a shell around it.
    nsenter --net=/proc/$$/fd/9 nc -l -k -d 22 >/dev/null 2>&1 &
    listener=$!
}
sends() { head -c 3000000 /dev/zero | timeout 60 nc -N "$1" 22; }
reaches() { ip route get "$1" | grep -q 'dev eth0' && timeout 1 nc -z "$1" 22; }
event() { onrampctl status --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -n 1; }
is_fq() { tc qdisc show dev eth0 | grep -q '^qdisc fq .*nopacing'; }
says() { onrampctl metrics 2>&1 | grep -qxF "$1"; }

# state: what must be the same in the end, of both. Programs of cgroups are systemd's and come and go.
state_of_host() {
    all_routes
    ip rule
    ip -6 rule
    tc qdisc show
    cat /proc/sys/net/ipv4/tcp_timestamps
}
state() {
    echo "sender:"
    state_of_host
    echo "receiver:"
    at_receiver sh -c 'ip -d route show table all; ip -6 -d route show table all; ip rule; ip -6 rule; tc qdisc show
        cat /proc/sys/net/ipv4/tcp_timestamps'
    echo "disk:"
    systemctl list-unit-files --no-legend --no-pager --plain
    dpkg -l
    find /etc /var/lib/onramp /var/lib/prometheus /run/onramp /lib/systemd/system -printf '%p %y %m %l\n' 2>/dev/null | sort
    find /etc -type f -exec sha256sum {} + | sort -k 2
    echo "kernel:"
    find /sys/fs/bpf
    bpftool prog show | sed -nE 's/^[0-9]+: ([a-z_]+) +(name [^ ]+)?.*/\1 \2/p' | grep -v '^cgroup' | sort
    bpftool net show
}
same_state() { state >/out/state-after && cmp -s /out/state-before /out/state-after; }
# follow WHO COMMAND: types it; what it said is shown if it fails.
follow() {
    (cd /tree && if [ "$1" = receiver ]; then at_receiver sh -c "$2"; else sh -c "$2"; fi) </dev/null >/out/said 2>&1 && return
    note "$(tail -n 3 /out/said)"
    return 1
}

network_of_page
listens
eventually "the network of the page: the first rack" reaches 10.2.0.7
eventually "and the second one" reaches 10.3.0.7
sleep 2
state >/out/state-before
note "$(grep -c . /out/state-before) lines of state"
while read -r line who command <&8; do
    # What is asked for now is another machine's.
    case $command in 'onrampctl rollback') kill $listener 2>/dev/null && wait $listener 2>/dev/null ;; esac
    check "onrampctl/README.md:$line, $who: \$ $command" follow "$who" "$command"
    { echo "$line, $who: \$ $command" && cat /out/said; } >>/out/rollout
    case "$who $command" in
    'sender networkctl reload') [ ! -e /etc/systemd/network/eth0.network.d ] || eventually "networkd gives the device its queue" is_fq ;;
    'sender systemctl enable --now onramp.service')
        check "what is sent" sends 10.2.0.7
        check "is not held: no route is enabled" [ "$(event packets)" = 0 ]
        ;;
    'sender onrampctl enable '*)
        peer=${command##* }
        peer=${peer%:*}
        packets=$(event packets) held=$(event held) reports=$(event reports)
        for number in 1 2 3; do check "what is sent to $peer, $number" sends "$peer"; done
        note "to $peer: $(($(event packets) - packets)) packets, $(($(event held) - held)) held, $(($(event reports) - reports)) reports"
        check "packets to $peer were held" [ "$(event held)" -gt "$held" ]
        check "and acknowledgements were reports" [ "$(event reports)" -gt "$reports" ]
        while read -r metric <&7; do eventually "the page goes on with $metric" says "$metric"; done 7</rig/onramp-wanted
        ;;
    'sender onrampctl disable '*)
        packets=$(event packets)
        check "what is sent there" sends "$peer"
        check "is held no more" [ "$(event packets)" = "$packets" ]
        ;;
    'sender onrampctl rollback')
        check "which a receiver does for itself" at_receiver sh -c 'ip route show 10.1.0.0/24 | grep -q tcp_usec_ts'
        ;;
    esac
done 8</rig/onramp-rollout
eventually "the machine is as it was" same_state
diff /out/state-before /out/state-after | while read -r line; do note "$line"; done
rm /etc/systemd/network/eth0.network
ip link del eth0
ip netns del switch
exec 9<&-
networkctl reload
