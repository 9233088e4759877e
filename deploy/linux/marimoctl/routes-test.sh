#!/usr/bin/env bash
# What marimoctl does to routes, on this kernel, in namespaces of its own: tables, nexthop objects and groups, several next hops
# of both families, routes that expire or were advertised, changes by others, kills between any two messages, next hops that are
# dead; routes that others make anew, and the watcher; other namespaces; and who may hold its lock or lead its files
# elsewhere. Marimo need not be loaded: --name takes any congestion control.
# usage: deploy/linux/marimoctl/routes-test.sh [--verbose]
set -euo pipefail
cd "$(dirname "$0")/../../.."
what="marimoctl's routes"
if [ "${1:-}" != inside ]; then
    skip() {
        echo "skipped: $what ($1)"
        [ "${CI:-}" != true ] || exit 1
        exit 0
    }
    [ "$(id -u)" = 0 ] || skip "root is needed"
    for tool in "ip iproute2" "ping iputils-ping" "strace strace" "python3 python3" "setpriv util-linux"; do
        # shellcheck disable=SC2086
        scripts/debian.sh $tool "$what"
        command -v "${tool% *}" >/dev/null || skip "no ${tool% *}"
    done
    scripts/workspace.sh --tools-seen-to build --quiet --locked --bin marimoctl
    binary=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/marimoctl
    exec unshare --net --mount --propagation private "$0" inside "$binary" "${1:-}"
fi
marimoctl=$2
[ "${3:-}" != --verbose ] || set -x
for folder in /var/lib /run /mnt; do mount -t tmpfs -o mode=1777 none "$folder"; done
mkdir /run/netns
cd /mnt

fault() { echo "routes-test.sh: $*" >&2; exit 1; }
# Times that go on by themselves are left out.
dump() { { ip -details route show table all; ip -details -6 route show table all; } | sed 's/ expires [0-9]*sec/ expires/' | sort; }
dumps_as() { dump >now; diff "$1" now >&2 || fault "$2: routes are not as before"; }
# A command's exit code must be this, and what it says have these words in it.
says() {
    local code=0 said
    said=$("$marimoctl" "${@:3}" 2>&1) || code=$?
    [ "$code" = "$1" ] || fault "marimoctl ${*:3}: exit code $code, not $1: $said"
    grep -qF -- "$2" <<<"$said" || fault "marimoctl ${*:3} says, without \"$2\": $said"
}

# A command that is killed before its message of this number; the shell's word of it is not wanted.
killed() {
    { strace -f -o /dev/null -e trace=sendto -e "inject=sendto:signal=SIGKILL:when=$1" "$marimoctl" "${@:2}" >said 2>&1; } 2>/dev/null
}

ip netns add peer
ip link set lo up
ip link add a0 type veth peer name b0 netns peer
sysctl -q net.ipv6.conf.a0.accept_dad=0 net.ipv6.conf.a0.accept_ra=2 net.ipv6.conf.a0.autoconf=1
ip netns exec peer sysctl -q net.ipv6.conf.b0.accept_dad=0
ip link set a0 up
ip -n peer link set b0 up
ip addr add 10.1.0.1/24 dev a0
ip -6 addr add fd00::1/64 dev a0 nodad
for host in 2 3; do
    ip nexthop add id $((3 + host)) via "10.1.0.$host" dev a0
    ip nexthop add id $((13 + host)) via "fd00::$host" dev a0
done
ip nexthop add id 7 group 5/6
ip nexthop add id 8 encap ip id 77 dst 10.1.0.77 via 10.1.0.2 dev a0
ip nexthop add id 17 group 15/16
ip route add 10.9.0.0/16 nhid 5 mtu lock 1400 congctl cubic
ip route add 10.8.0.0/16 nhid 7 congctl lock cubic rto_min 5ms
ip route add 10.17.0.0/16 via 10.1.0.2
ip route add 10.17.0.0/16 via 10.1.0.3 table 77
ip route add 10.17.0.0/16 via 10.1.0.3 metric 9
ip route add 10.7.0.0/16 nexthop via 10.1.0.2 weight 1 nexthop via 10.1.0.3 weight 3
ip route add 10.6.0.0/16 via 10.2.0.9 dev a0 onlink
ip route add 10.5.0.0/16 nhid 8
ip route add default via 10.1.0.2
ip -6 route add fd01::/64 nexthop via fd00::2 dev a0 nexthop via fd00::3 dev a0 weight 2
ip -6 route add fd02::/64 via fd00::2 dev a0 expires 1000
ip -6 route add fd03::/64 nhid 15
ip -6 route add fd04::/64 nhid 17 congctl cubic
ip -6 route add default via fd00::2 metric 55
# BGP unnumbered, realms, TOS, a tunnel, a route by source.
ip route add 10.30.0.0/16 via inet6 fe80::1 dev a0 proto bgp metric 20
ip route add 10.33.0.0/16 via 10.1.0.2 realm 7
ip route add 10.33.0.0/16 via 10.1.0.2 tos 0x10
ip route add 10.35.0.0/16 encap ip id 5 dst 10.1.0.7 via 10.1.0.2 dev a0
ip -6 route add fd31::/64 from fd00::/64 via fd00::2 dev a0
ip -6 route add fd31::/64 via fd00::3 dev a0
advertise() {
    ip netns exec peer python3 - <<'P'
import socket, struct
advertiser = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
device = socket.if_nametoindex("b0")
advertiser.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
advertiser.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, device)
# RFC 4861, sections 4.2 and 4.6.2: a router for 1,800 s, and a prefix for 3,600.
prefix = struct.pack("!BBBBIII16s", 3, 4, 64, 0xc0, 3600, 1800, 0, socket.inet_pton(socket.AF_INET6, "fd77::"))
advertiser.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix, ("ff02::1", 0, 0, device))
P
}
# Until both ends have their addresses.
for _ in $(seq 50); do
    ip -6 -n peer addr show dev b0 scope link | grep -q tentative || { sleep 0.1; advertise 2>/dev/null && ip -6 route show proto ra | grep -q default && break; }
    sleep 0.2
done
ip -6 route show proto ra | grep -q default || fault "no router was advertised"
dump >before

# The kernel's own, by advertisements: it would take no more of them.
says 2 "the kernel keeps this route by router advertisements" enable --name reno 10.9.0.0/16 default
dumps_as before "an advertised route that is refused"
# A daemon's.
sysctl -q net.ipv6.conf.a0.accept_ra=0

routes=(10.9.0.0/16 10.8.0.0/16 10.17.0.0/16 10.7.0.0/16 10.6.0.0/16 10.5.0.0/16 10.30.0.0/16 10.33.0.0/16 10.35.0.0/16 fd01::/64 fd02::/64 fd03::/64 fd04::/64 fd31::/64 default)
enable=(enable --name reno "${routes[@]}")

# All of it changes, nothing else of it, and comes back.
says 0 "10.8.0.0/16 table main: congestion control reno, before: lock cubic" "${enable[@]}"
dump >enabled
[ "$(ip -6 route show fd02::/64 | sed 's/.*expires \([0-9]*\)sec.*/\1/')" -gt 900 ] || fault "a route expires earlier"
[ "$(grep -c "congctl reno\|congctl lock reno" enabled)" -ge 14 ] || fault "not all routes were changed"
sed 's/ congctl \(lock \)\?reno//' enabled >changed
sed 's/ congctl \(lock \)\?cubic//' before >unchanged
diff unchanged changed >&2 || fault "more than the congestion control was changed"
grep -q "^unicast 10.17.0.0/16 via 10.1.0.3 dev a0 table 77 .*congctl" enabled && fault "a route of another table was changed"
says 0 "10.8.0.0/16 table main: congestion control lock cubic, as before" rollback
dumps_as before "rollback"
says 0 "nothing to undo" rollback
says 0 "10.17.0.0/16 table 77: congestion control reno" enable --name reno --table 77 10.17.0.0/16
[ "$(ip route show 10.17.0.0/16 | grep -c congctl)" = 0 ] || fault "--table 77 changed a route of main"
ip route show 10.17.0.0/16 table 77 | grep -q "via 10.1.0.3.*congctl reno" || fault "--table 77 did not change its route"
says 0 "10.17.0.0/16 table 77" rollback
dumps_as before "rollback of table 77"

# Again over what is enabled: what was first comes back.
says 0 "before: cubic" enable --name reno 10.9.0.0/16
says 0 "before: reno" enable --name cubic 10.9.0.0/16
says 0 "congestion control cubic, as before" rollback
dumps_as before "rollback of two commands"

# Bad input changes nothing.
says 2 "found no route 10.99.0.0/16 in table main" "${enable[@]}" 10.99.0.0/16
says 2 'found "10.0.0.0/33"' enable --name reno 10.0.0.0/33
says 2 '--table: found "nosuch"' enable --name reno --table nosuch default
says 2 "--name: found \"nosuch\"" enable --name nosuch default
ip route append 10.17.0.0/16 via 10.1.0.9
says 2 "several routes of this destination and metric" "${enable[@]}"
ip route del 10.17.0.0/16 via 10.1.0.9
dumps_as before "bad input"

# A message that the kernel refuses in the middle: those before it are taken back.
code=0
strace -f -o /dev/null -e trace=sendto -e inject=sendto:error=EPERM:when=10 "$marimoctl" "${enable[@]}" >said 2>&1 || code=$?
[ "$code" = 1 ] && grep -q "nothing was changed" said || fault "a refusal in the middle: exit code $code: $(cat said)"
dumps_as before "a refusal in the middle"
says 0 "nothing to undo" rollback

# Killed before each message, and after the last: rollback restores all of it and names each route that was changed.
for kill in $(seq 1 40); do
    code=0
    killed "$kill" "${enable[@]}" || code=$?
    dump >killed
    changed=$(diff before killed | grep -c '^>' || true)
    "$marimoctl" rollback >said 2>&1 || fault "rollback after a kill: $(cat said)"
    dumps_as before "rollback after a kill before message $kill"
    [ "$changed" = 0 ] || grep -q "as before" said || fault "rollback after a kill does not say what it did: $(cat said)"
    [ "$code" != 0 ] || break
done
[ "$kill" -gt 10 ] && [ "$code" = 0 ] || fault "$kill kills, the last with exit code $code"
# The same over what is enabled with another name.
for kill in $(seq 4 3 40); do
    "$marimoctl" "${enable[@]}" >/dev/null
    code=0
    killed "$kill" enable --name cubic "${routes[@]}" || code=$?
    "$marimoctl" rollback >said 2>&1 || fault "rollback after a second enable that was killed: $(cat said)"
    dumps_as before "rollback after a second enable that was killed before message $kill"
    [ "$code" != 0 ] || break
done
[ "$code" = 0 ] || fault "a second enable had more messages than expected"
# Killed in a rollback: the next one ends it.
for kill in 2 4 6 9; do
    "$marimoctl" "${enable[@]}" >/dev/null
    killed "$kill" rollback || true
    "$marimoctl" rollback >/dev/null
    dumps_as before "rollback after a rollback that was killed before message $kill"
done
"$marimoctl" "${enable[@]}" >/dev/null
killed 6 rollback || true
says 0 "as before" rollback
dumps_as before "rollback after a rollback that was killed"

# Readers that go away, and a full disk: all is done before any of it is said.
"$marimoctl" "${enable[@]}" | true
dump | grep -c "congctl reno\|congctl lock reno" >count
[ "$(cat count)" -ge 14 ] || fault "enable | true did not change all"
"$marimoctl" rollback 2>said | true
dumps_as before "rollback | true"
"$marimoctl" "${enable[@]}" >/dev/null
"$marimoctl" rollback >/dev/full 2>said || true
dumps_as before "rollback >/dev/full"

# What the kernel learned of a path is no route: neither counted nor changed.
"$marimoctl" "${enable[@]}" >/dev/null
ip -n peer addr add 10.1.0.2/24 dev b0
ip netns exec peer sysctl -q net.ipv4.ip_forward=1
ip -n peer link add c0 mtu 1300 type veth peer name c1
ip -n peer link set c0 up
ip -n peer link set c1 up
ip -n peer route add 10.17.9.0/24 dev c0
ping -c 1 -W 1 -M do -s 1350 10.17.9.9 >/dev/null 2>&1 || true
[[ $(ip route get 10.17.9.9) == *"mtu 1300"* ]] || fault "no path MTU was learned"
says 0 "10.17.0.0/16 table main: the path to 10.17.9.9/32 has MTU 1300, which the kernel has forgotten" enable --name cubic 10.17.0.0/16
says 0 "as before" rollback
dumps_as before "rollback beside a path MTU"
ip route flush cache

# Several routes of one metric, as somebody appended one: which is ours cannot be told to the kernel.
"$marimoctl" "${enable[@]}" >/dev/null
ip route append 10.17.0.0/16 via 10.1.0.9
says 1 "10.17.0.0/16 table main: there are several routes of its metric now" rollback
ip route del 10.17.0.0/16 via 10.1.0.9
says 0 "10.17.0.0/16 table main: congestion control none, as before" rollback
dumps_as before "rollback when the other route is gone"

# What the kernel will not take back now is kept, and given back when it takes it: a dead next hop of several, of both families,
# and a gateway whose connected route is gone.
ip link add c0 type veth peer name c1
ip link set c0 up
ip link set c1 up
ip addr add 10.3.0.1/24 dev c0
ip -6 addr add fd30::1/64 dev c0 nodad
ip route add 10.70.0.0/16 nexthop via 10.1.0.2 nexthop via 10.3.0.2
ip -6 route add fd70::/64 nexthop via fd00::2 dev a0 nexthop via fd30::2 dev c0
ip route add 10.71.0.0/16 via 10.3.0.2
more=(10.70.0.0/16 fd70::/64 10.71.0.0/16)
dump >whole
"$marimoctl" enable --name reno "${more[@]}" 10.9.0.0/16 >/dev/null
ip link set c0 down
says 1 "10.70.0.0/16 table main: the kernel refuses: " rollback
[ "$(dump | grep -c "congctl reno")" -ge 2 ] || fault "no route was left"
ip route show 10.9.0.0/16 | grep -q "congctl cubic" || fault "the others were not given back"
says 0 '"due": [' status --json
says 0 "marimo_routes_due 2" metrics
grep -q "route 10.70.0.0/16 table main: to be given back" <<<"$("$marimoctl" status)" || fault "status does not say what is left"
ip link set c0 up
ip -6 addr add fd30::1/64 dev c0 nodad 2>/dev/null || true
# By whatever command comes next, even one that is refused.
for _ in $(seq 30); do
    "$marimoctl" enable --name reno --table 77 10.17.0.0/16 >/dev/null
    grep -q congctl <<<"$(ip route show 10.70.0.0/16)" || break
    sleep 0.2
done
[ "$(ip route show 10.70.0.0/16 | grep -c congctl)" = 0 ] || fault "the next command did not give back what was due"
"$marimoctl" rollback >/dev/null
ip route replace 10.71.0.0/16 via 10.3.0.2
ip -6 route replace fd70::/64 nexthop via fd00::2 dev a0 nexthop via fd30::2 dev c0
dumps_as whole "routes that were given back late"
"$marimoctl" enable --name reno 10.71.0.0/16 >/dev/null
ip route del 10.3.0.0/24
says 1 "Nexthop has invalid gateway" rollback
ip route add 10.3.0.0/24 dev c0 proto kernel scope link src 10.3.0.1
says 0 "10.71.0.0/16 table main: congestion control none, as before" rollback
dumps_as whole "a gateway that was gone"
# A route that is refused as it is, is not said to be changed.
ip link set c1 down
ip link set c0 down
says 1 "nothing was changed" enable --name reno 10.9.0.0/16 10.70.0.0/16
ip route show 10.9.0.0/16 | grep -q "congctl cubic" || fault "enable that was refused has changed another route"
ip link del c0
ip route flush 10.70.0.0/16
ip -6 route flush fd70::/64
dumps_as before "dead next hops"

# Routes that others make anew come back as they were enabled, or are only reported; what somebody has chosen stays.
"$marimoctl" watch >watched 2>&1 &
watcher=$!
seen() { for _ in $(seq 60); do grep -qF -- "$1" watched && return; sleep 0.1; done; fault "the watcher does not say \"$1\": $(cat watched)"; }
for _ in $(seq 50); do grep -qx "marimo_watched 1" <<<"$("$marimoctl" metrics)" && break; sleep 0.1; done
says 0 "marimo_watched 1" metrics
says 1 "another marimoctl watches this network namespace" watch
"$marimoctl" enable --name reno 10.17.0.0/16 10.7.0.0/16 >/dev/null
"$marimoctl" enable --name reno --watch=report 10.9.0.0/16 >/dev/null
sleep 1.5
ip route change 10.17.0.0/16 via 10.1.0.3
ip route change 10.9.0.0/16 nhid 6 mtu lock 1400
ip route change 10.7.0.0/16 congctl cubic nexthop via 10.1.0.2 weight 1 nexthop via 10.1.0.3 weight 3
seen "10.17.0.0/16 table main: has come back without reno, which it has again"
seen "10.9.0.0/16 table main: has come back without reno"
seen "10.7.0.0/16 table main: has been given another congestion control, which stays"
grep -q "via 10.1.0.3 .*congctl reno" <<<"$(ip route show 10.17.0.0/16)" || fault "the watcher did not put a route back: $(ip route show 10.17.0.0/16)"
grep -q congctl <<<"$(ip route show 10.9.0.0/16)" && fault "the watcher put back what it was to report"
says 0 "marimo_route_drifts_total 2" metrics
says 0 "marimo_route_restores_total 1" metrics
says 0 "marimo_routes_drifted 1" metrics
says 0 "10.7.0.0/16 table main: left with cubic" rollback
# It finishes nothing that was killed: neither an enable, nor does it undo a rollback.
killed 6 enable --name reno 10.17.0.0/16 10.6.0.0/16 10.5.0.0/16 && fault "an enable was not killed"
[ "$(ip route show | grep -c "congctl reno")" -lt 3 ] || fault "an enable was killed too late"
before=$(ip route show | grep -c "congctl reno" || true)
ip route change 10.6.0.0/16 via 10.2.0.9 dev a0 onlink
sleep 2.5
[ "$(ip route show | grep -c "congctl reno" || true)" -le "$before" ] || fault "the watcher went on with an enable that was killed"
"$marimoctl" rollback >/dev/null
"$marimoctl" enable --name reno 10.17.0.0/16 10.6.0.0/16 10.5.0.0/16 >/dev/null
sleep 1.5
killed 4 rollback && fault "a rollback was not killed"
sleep 3
grep -q "congctl reno" <<<"$(ip route show)" && fault "the watcher has not ended a rollback that was killed, or has undone it: $(ip route show)"
"$marimoctl" rollback >/dev/null
kill "$watcher"
wait "$watcher" 2>/dev/null || true
says 0 "marimo_watched 0" metrics
ip route change 10.17.0.0/16 via 10.1.0.2
ip route change 10.9.0.0/16 nhid 5 mtu lock 1400 congctl cubic
ip route change 10.7.0.0/16 nexthop via 10.1.0.2 weight 1 nexthop via 10.1.0.3 weight 3
dumps_as before "the watcher"

# What cannot be done from inside of other namespaces is said.
code=0
said=$(unshare --user --map-root-user "$marimoctl" status 2>&1) || code=$?
[ "$code" = 1 ] && [[ $said == *"not that of a user namespace"* ]] || fault "in a user namespace: exit code $code: $said"

# What others set since is what a second enable keeps.
"$marimoctl" enable --name reno 10.17.0.0/16 >/dev/null
ip route change 10.17.0.0/16 via 10.1.0.2 congctl cubic
says 0 "before: cubic" enable --name reno 10.17.0.0/16
says 0 "congestion control cubic, as before" rollback
ip route change 10.17.0.0/16 via 10.1.0.2
dumps_as before "a second enable over a change"

# A journal that is damaged, or of which an entry is: said, and nothing of it is lost.
"$marimoctl" "${enable[@]}" >/dev/null
journal=$(echo /var/lib/marimo/routes-*.json)
cp "$journal" whole
echo "{" >"$journal"
says 1 "is damaged" rollback
says 1 "is damaged" enable --name reno 10.17.0.0/16
sed 's/"before":"../"before":"zz/' whole >"$journal"
says 1 "an entry of the journal cannot be read" rollback
cp whole "$journal"
"$marimoctl" rollback >/dev/null
dumps_as before "rollback with the journal mended"

# Others in between: their changes stay.
"$marimoctl" "${enable[@]}" >/dev/null
ip route change 10.9.0.0/16 nhid 6 mtu lock 1400 congctl reno
ip route del 10.6.0.0/16
ip route change 10.7.0.0/16 congctl cubic nexthop via 10.1.0.2 weight 1 nexthop via 10.1.0.3 weight 3
"$marimoctl" rollback >said
grep -q "10.6.0.0/16 table main: is gone" said && grep -q "10.7.0.0/16 table main: left with cubic" said || fault "others in between: $(cat said)"
ip route show 10.9.0.0/16 | grep -q "nhid 6 .*congctl cubic" || fault "a next hop that was changed since did not stay"
ip route change 10.9.0.0/16 nhid 5 mtu lock 1400 congctl cubic
ip route change 10.7.0.0/16 nexthop via 10.1.0.2 weight 1 nexthop via 10.1.0.3 weight 3
ip route add 10.6.0.0/16 via 10.2.0.9 dev a0 onlink
dumps_as before "others in between"

# The lock is root's alone, and who holds it is named.
[ "$(stat -c '%a %u' /run/marimo)" = "700 0" ] && [ "$(stat -c %a /run/marimo/lock)" = 600 ] || fault "the lock is not root's alone"
setpriv --reuid 65534 --regid 65534 --clear-groups flock -n /run/marimo/lock true 2>/dev/null && fault "anybody may hold the lock"
(
    exec 9<>/run/marimo/lock
    flock 9
    echo "process $BASHPID (a test)" >/run/marimo/lock
    exec sleep 15
) &
sleep 0.3
says 1 "(a test) has been changing Marimo for 10 s" enable --name reno default
wait
chmod 755 /run/marimo
says 1 "is not root's alone" enable --name reno default
chmod 700 /run/marimo

# A link in the place of a file leads nowhere else, neither does one in the place of the file that is renamed.
mkdir -m 1777 metrics
echo precious >target
ln -s /mnt/target metrics/marimo.prom
ln -s metrics elsewhere
"$marimoctl" metrics --out metrics/marimo.prom
grep -qx precious target && [ ! -L metrics/marimo.prom ] && grep -q marimo_loaded metrics/marimo.prom || fault "metrics --out followed a link"

says 1 "cannot write" metrics --out elsewhere/marimo.prom

# Bounded input, and readers that have seen enough.
says 2 "more than" set-table /dev/zero
"$marimoctl" status | head -n 0
"$marimoctl" status 2>said | true
[ ! -s said ] || fault "status | true says: $(cat said)"
code=0
"$marimoctl" status >/dev/full 2>said || code=$?
[ "$code" = 1 ] && grep -q "No space left" said || fault "status >/dev/full: exit code $code: $(cat said)"
echo "marimoctl: routes of every kind change and come back, after kills between any two messages, too"
