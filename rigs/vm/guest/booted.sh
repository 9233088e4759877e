# shellcheck shell=dash disable=SC1091,SC2154
# In a Debian that has booted: what its pages tell operators to type, as they print it, and what stays over a boot. It runs
# at each boot of one disk; which one this is a file says.
. /rig/lib.sh
form=$(cat /rig/form)
stage=$(cat /rig/stage 2>/dev/null || echo 1)
export HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C

default() { cat /proc/sys/net/ipv4/tcp_congestion_control; }
is_default() { [ "$(default)" = "$1" ]; }
route_names() { ip route show "$1" | grep -q "congctl $2"; }
no_route_names() { ! ip route show | grep -q congctl; }
typed() { (cd /tree && echo "\$ $1" && sh -c "$1") 2>&1; }
# one connection of this machine to itself, under the default
connects() {
    timeout 20 nc -l -N 127.0.0.1 9000 </dev/null >/tmp/got &
    server=$!
    sleep 1
    echo hello | timeout 20 nc -N 127.0.0.1 9000 >/dev/null
    wait $server
    [ "$(cat /tmp/got)" = hello ]
}
counted() { marimoctl status --json >/out/status 2>&1 && grep -qE "\"$1\": [1-9]" /out/status; }
# The commands of a file, one check for each.
types() {
    while read -r line; do
        case $line in '' | '#'*) continue ;; esac
        check "\$ $line" typed "$line"
    done <"/rig/$1"
}
metric() { grep -qx "$1" /var/lib/prometheus/node-exporter/marimo.prom; }
# A route counts nothing that a next hop gets anew: the number of its nexthop object, and what state it is in.
all_routes() { { ip -d route show table all; ip -6 -d route show table all; } | sed -E 's/ nhid [0-9]+//; s/ expires [0-9]+sec//' | sort; }
same_routes() { all_routes | diff "$1" - >/out/routes-differ; }
routes_through() { [ "$(ip route show "$1" | grep -c "$2")" -eq "$3" ]; }
watched_says() { marimoctl metrics >/out/metrics 2>&1 && grep -qE "^$1\$" /out/metrics; }
exposed() { systemd-analyze security --no-pager --threshold=30 "$1" >>/out/security 2>&1; }

has_fq() { tc qdisc show dev rig0 | grep -q '^qdisc fq .*nopacing'; }
attached() { onrampctl status >/out/status 2>&1 && grep -q rig0 /out/status; }
detached() { [ ! -e /sys/fs/bpf/onramp ]; }
stamps() { ip route show "$1" | grep -q 'features.* tcp_usec_ts'; }
# compares SOURCE: the watcher compares clocks, as the page says.
compares() {
    mkdir -p /etc/systemd/system/onramp-watch.service.d
    sed "s/--clock chrony/--clock $1/" /usr/share/onramp/zz-clocks.conf >/etc/systemd/system/onramp-watch.service.d/zz-clocks.conf
    systemctl daemon-reload && systemctl restart onramp-watch.service
}
tells_its_clock() { onrampctl clock 127.0.0.1 --clock "$1" --key /etc/onramp/key >>/out/clock 2>&1; }
watcher_said() { journalctl -b --no-pager -u onramp-watch.service | grep -q "$1"; }
no_route_stamps() { ! ip route show | grep -q tcp_usec_ts; }

case $form$stage in
onramp1)
    . /rig/rollout.sh
    check "the package" apt-get install -qq -y /rig/onrampctl.deb
    check "enables nothing" [ "$(systemctl is-enabled onramp.service)" = disabled ]
    all_routes >/tmp/routes
    check "without a device the unit does not start" fails systemctl start onramp.service
    echo DEVICES=rig0 >/etc/onramp/devices
    check "nor without fq" fails systemctl start onramp.service
    systemctl stop onramp.service
    journalctl -b --no-pager -u onramp.service >/out/refused
    check "which it says" contains /out/refused 'fq'
    printf '[FairQueueing]\nPacing=no\n' >>/etc/systemd/network/rig0.network
    systemctl restart systemd-networkd.service
    eventually "networkd gives the device fq without pacing" has_fq
    check "the unit starts" systemctl start onramp.service
    check "it is attached" attached
    check "the watcher runs" [ "$(systemctl is-active onramp-watch.service)" = active ]
    check "metrics are written under the sandbox" systemctl start onramp-metrics.service
    check "and say that it is loaded" grep -qx 'onramp_loaded 1' /var/lib/prometheus/node-exporter/onramp.prom
    for unit in onramp onramp-metrics onramp-watch; do
        check "exposure of $unit.service is below 3" exposed $unit.service
    done
    (umask 077 && head -c 32 /dev/urandom | base64 >/etc/onramp/key)
    sysctl -q -w net.ipv4.tcp_timestamps=2
    echo 'local stratum 8' >>/etc/chrony/chrony.conf
    systemctl restart chrony.service
    check "it compares clocks" compares chrony
    eventually "and tells its own under the sandbox, by what chrony says" tells_its_clock chrony
    check "it compares clocks by the kernel's account" compares kernel
    eventually "which says that nobody synchronises this one" watcher_said 'clocks: the kernel says that nobody'
    check "so that it tells none" fails tells_its_clock chrony
    check "a route is enabled" onrampctl enable --stamps-only 10.2.3.0/24
    check "and stamps in microseconds" stamps 10.2.3.0/24
    check "somebody makes it anew" ip route replace 10.2.3.0/24 dev rig0 proto static scope link
    eventually "the watcher puts back what it was given" stamps 10.2.3.0/24
    check "stopping the unit takes it back" systemctl stop onramp.service
    check "the route" no_route_stamps
    check "and the programs" detached
    check "all routes are as before" same_routes /tmp/routes
    check "the unit is enabled" systemctl -q enable onramp.service
    ;;
onramp2)
    eventually "it is attached after a boot" attached
    check "a route is enabled" onrampctl enable --stamps-only 10.2.3.0/24
    check "no unit has failed" [ -z "$(systemctl list-units --failed --no-legend --plain onramp*)" ]
    check "the package goes" apt-get purge -qq -y onrampctl
    check "and the programs with it" detached
    check "and the route's attributes" no_route_stamps
    check "and what it kept" [ ! -e /var/lib/onramp ]
    ;;
bpf1)
    types rollout
    check "the unit has loaded it" contains /proc/sys/net/ipv4/tcp_available_congestion_control bpf_marimo
    # A restart of the form does not wait for the unit that follows it.
    eventually "and set the default" is_default bpf_marimo
    check "a connection uses it" connects
    check "as its counters say" counted opened
    check "without fallback" fails counted fallbacks
    check "metrics are written under the sandbox" systemctl start marimo-metrics.service
    check "and say that it is loaded" metric 'marimo_loaded{form="bpf_marimo"} 1'
    check "and the default" metric 'marimo_default 1'
    # A namespace that is made now begins with the host's default, and holds it.
    check "a network namespace" ip netns add blue
    check "begins with the default" nsenter --net=/run/netns/blue grep -qx bpf_marimo /proc/sys/net/ipv4/tcp_congestion_control
    marimoctl status >/out/status 2>&1
    check "which status says" contains /out/status "network namespace of /run/netns/blue: the default of new connections"
    check "and its own tcp_ecn_fallback" contains /out/status "advice: network namespace of /run/netns/blue: net.ipv4.tcp_ecn_fallback = 1"
    for unit in marimo marimo-default marimo-metrics marimo-watch; do
        check "exposure of $unit.service is below 3" exposed $unit.service
    done
    check "the default goes with its unit" systemctl stop marimo-default.service
    check "to cubic" is_default cubic
    check "in the other network namespace, too" nsenter --net=/run/netns/blue grep -qx cubic /proc/sys/net/ipv4/tcp_congestion_control
    check "which goes" ip netns del blue
    while read -r enable && read -r back; do
        check "\$ $enable" typed "$enable"
        case $enable in
        *--default*) check "which is the default" is_default bpf_marimo ;;
        *) check "which its route names" route_names "${enable##* }" bpf_marimo ;;
        esac
        check "\$ $back" typed "$back"
        check "which leaves no route" no_route_names
        check "and cubic" is_default cubic
    done </rig/stages
    # FRR makes routes anew, and a next hop of a route that is none of its own dies.
    for number in 5 6; do
        ip link add "rig$number" type dummy
        ip addr add "172.20.$number.1/24" dev "rig$number"
        ip link set "rig$number" up
    done
    printf 'ip route 172.21.0.0/16 172.20.%s.2\n' 5 6 >/etc/frr/frr.conf
    check "FRR" systemctl start frr.service
    eventually "and its route of two next hops" routes_through 172.21.0.0/16 nexthop 2
    check "which is enabled" marimoctl enable 172.21.0.0/16
    check "the watcher runs" watched_says "marimo_watched 1"
    ip link set rig5 down
    ip link set rig6 down
    eventually "the route goes with its links" routes_through 172.21.0.0/16 172.21.0.0/16 0
    ip link set rig5 up
    ip link set rig6 up
    eventually "FRR makes it anew, and the watcher puts back what it was given" route_names 172.21.0.0/16 bpf_marimo
    eventually "and counts" watched_says "marimo_route_restores_total [1-9].*"
    eventually "both next hops are there" routes_through 172.21.0.0/16 nexthop 2
    check "it is given back" marimoctl rollback
    check "another such route" ip route add 172.22.0.0/16 nexthop via 172.20.5.2 nexthop via 172.20.6.2
    all_routes >/tmp/routes
    check "both are enabled" marimoctl enable 172.21.0.0/16 172.22.0.0/16
    ip link set rig6 down
    check "with a dead next hop the unit stops" systemctl stop marimo.service
    check "without failing" [ "$(systemctl is-failed marimo.service)" = inactive ]
    check "the form is unloaded" lacks /proc/sys/net/ipv4/tcp_available_congestion_control bpf_marimo
    check "one route is to be given back" watched_says "marimo_routes_due 1"
    check "the unit starts" systemctl start marimo.service
    ip link set rig6 up
    eventually "the watcher gives the route back" watched_says "marimo_routes_due 0"
    eventually "all routes are as before" same_routes /tmp/routes
    check "FRR ends" systemctl stop frr.service
    ip link del rig5
    ip link del rig6
    check "a route again" marimoctl enable 10.2.3.0/24
    check "stopping the unit takes it back" systemctl stop marimo.service
    check "the route" no_route_names
    check "and the form" lacks /proc/sys/net/ipv4/tcp_available_congestion_control bpf_marimo
    types marimoctl
    check "which its route names" route_names 10.2.3.0/24 bpf_marimo
    check "marimoctl rollback" marimoctl rollback
    check "marimoctl unload" marimoctl unload
    table_file /rig/other.table 39322 614
    # Loaded and given a table by the page's own commands, whatever their order there.
    for words in load set-table unload; do
        [ $words != set-table ] || check "another table" marimoctl set-table /rig/other.table
        check "\$ $(grep "^marimoctl $words" /rig/prose)" typed "$(grep "^marimoctl $words" /rig/prose)"
    done
    check "and it is gone" lacks /proc/sys/net/ipv4/tcp_available_congestion_control bpf_marimo
    # The second boot: networkd's route and the default, from the first moment on.
    printf '[Route]\nDestination=10.7.0.0/16\nTCPCongestionControlAlgorithm=bpf_marimo\n' >>/etc/systemd/network/rig0.network
    ;;
bpf2)
    check "the default after a boot" is_default bpf_marimo
    check "the route of systemd-networkd after a boot" route_names 10.7.0.0/16 bpf_marimo
    check "a connection uses it" connects
    check "as its counters say" counted opened
    printf 'iface rig1 inet static\n address 10.8.0.1/24\n pre-up ip link add rig1 type dummy\n' >/etc/network/interfaces
    cat /rig/ifupdown >>/etc/network/interfaces
    check "ifup" typed "ifup rig1"
    check "the route of ifupdown" route_names "$(grep -oE '10[0-9./]+' /rig/ifupdown)" bpf_marimo
    check "no unit has failed" [ -z "$(systemctl list-units --failed --no-legend --plain marimo*)" ]
    check "the package goes" apt-get purge -qq -y marimoctl
    check "and the form with it" lacks /proc/sys/net/ipv4/tcp_available_congestion_control bpf_marimo
    check "and the default" is_default cubic
    ;;
module1)
    types deploy
    check "which is the default" is_default marimo
    ;;
module2)
    check "the default after a boot" is_default marimo
    check "for which the kernel has loaded the module" [ -d /sys/module/tcp_marimo ]
    check "a connection uses it" connects
    check "without fallback" contains /sys/module/tcp_marimo/counters '^fallbacks 0'
    check "and starts are told of" contains /sys/module/tcp_marimo/counters '^starts 1'
    types module
    check "the route names it" route_names 10.0.0.0/8 marimo
    check "the table has been replaced" contains /sys/module/tcp_marimo/counters '^tables 1'
    check "cubic again" sysctl -q -w net.ipv4.tcp_congestion_control=cubic
    eventually "the module can go" modprobe -r tcp_marimo
    types modprobe
    check "which has loaded it" contains /sys/module/tcp_marimo/parameters/any_kernel Y
    ;;
esac
journalctl -b --no-pager >"/out/journal-$stage" 2>&1
dmesg >/out/dmesg
nothing_in_the_log
echo $((stage + 1)) >/rig/stage
echo "$passed $failed" >/out/verdict
tar -c -C /out -f /dev/vda .
sync
systemctl poweroff --force --force
