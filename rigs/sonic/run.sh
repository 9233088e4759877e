#!/usr/bin/env bash
# What `incast config --for sonic` writes, validated by SONiC's own YANG models; and what is wrong is refused by them, so
# that the test can fail. Then what `--for linux` writes is applied in a network namespace.
# usage: rigs/sonic/run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
incast=${INCAST:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/incast}
what="configuration of SONiC switches by SONiC's models"
scripts/debian.sh yanglint libyang-tools "$what"
scripts/debian.sh ip iproute2 "$what"
command -v yanglint >/dev/null || exit 0
[ -x "$incast" ] || cargo build --release --locked --quiet -p incast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "rigs/sonic: $1" >&2
    exit 1
}
# config NAME ARGUMENTS...: writes NAME.json.
config() {
    local name=$1
    shift
    "$incast" config --for sonic "$@" >"$work/$name.json" 2>"$work/notes" || fail "$name: $(cat "$work/notes")"
}
rigs=rigs/sonic
leaf=(--switch leaf0 --ports Ethernet{0..7}@25Gbps Ethernet{48,52}@100Gbps)
config lossy $rigs/tcp.toml --scheme dctcp "${leaf[@]}" --as-rounded "$work/rounded.toml"
config spine $rigs/tcp.toml --scheme dctcp --switch spine0 --ports Ethernet{0,4,8,12}@100Gbps
config lossless $rigs/roce.toml --switch leaf0 --ports Ethernet{0..7}@100Gbps Ethernet{48,56}@400Gbps --queues 1=3:26 0=6:48
config static $rigs/roce.toml --set 'switch.pfc={xoff="320KB",lossless=[1]}' --switch spine0 --ports Ethernet{0,8,16,24}@400Gbps
leaf_that_trims=(--switch leaf0 --ports Ethernet{0..7}@100Gbps Ethernet{48,56}@400Gbps)
config trimming $rigs/trim.toml --scheme ndp "${leaf_that_trims[@]}" --as-rounded "$work/bytes.toml"
config bytes "$work/bytes.toml" "${leaf_that_trims[@]}"
cmp "$work/trimming.json" "$work/bytes.json" || fail "the rounded scenario trims otherwise"
"$incast" import sonic "$work/trimming.json" 2>/dev/null | grep -q '^size = "256B"' || fail "trimming is not read back"
# What was rounded is not rounded again, and nothing else changes.
config again "$work/rounded.toml" "${leaf[@]}" --as-rounded "$work/twice.toml"
cmp "$work/lossy.json" "$work/again.json" || fail "the rounded scenario has other tables"
cmp "$work/rounded.toml" "$work/twice.toml" || fail "a rounded scenario is rounded again"
python3 $rigs/validate.py "$work"/{lossy,spine,lossless,static,trimming}.json

# What the models refuse: each edit makes the tables wrong.
wrong=0
while IFS=$'\t' read -r of from to; do
    sed "s/$from/$to/" "$work/$of.json" >"$work/wrong.json"
    ! cmp -s "$work/$of.json" "$work/wrong.json" || fail "nothing to edit: $from"
    ! python3 $rigs/validate.py "$work/wrong.json" >/dev/null 2>&1 || fail "accepted: $to for $from"
    wrong=$((wrong + 1))
done <<'EDITS'
lossless	"green_max_threshold": "1600000"	"green_max_threshold": "1"
lossless	"green_drop_probability": "20"	"green_drop_probability": "101"
lossless	"dynamic_th": "-3"	"dynamic_th": "9"
lossless	"weight": "4"	"weight": "0"
lossless	"type": "DWRR"	"type": "FIFO"
lossless	"profile": "incast_lossy"	"profile": "incast_missing"
lossless	"wred_profile": "incast_100g"	"wred_profile": "none"
lossless	"pfc_enable": "3"	"pfc_enable": "3-4"
lossless	"63": "0"	"64": "0"
lossless	"detection_time": "200"	"detection_time": "50"
trimming	"packet_discard_action": "trim"	"packet_discard_action": "cut"
trimming	"dscp_value": "56"	"dscp_value": "64"
EDITS
echo "rigs/sonic: 5 configurations are instances of SONiC's models, $wrong damaged ones are not"

if [ "$(id -u)" != 0 ]; then
    [ "${CI:-}" != true ] || fail "root is needed for the namespace"
    echo "skipped: configuration of Linux hosts in a namespace (root is needed)"
    exit 0
fi
space=incast-config-$$
ip netns add "$space"
trap 'ip netns delete "$space"; rm -rf "$work"' EXIT
within() { ip netns exec "$space" "$@"; }
within ip link set lo up
within ip link add port type veth peer name other
within ip link set other up
within ip address add 10.9.0.1/24 dev port
within ip link set port up
within ip route add 10.9.1.0/24 via 10.9.0.2 rto_min 40ms
"$incast" config $rigs/tcp.toml --scheme cubic --for linux --set scheme.cubic.initial_window=29KB --out "$work/host" 2>"$work/notes" ||
    fail "linux: $(cat "$work/notes")"
# Of the sysctls one, the qdisc of later devices, is the whole machine's.
grep -v default_qdisc "$work/host/60-incast.conf" >"$work/own.conf"
within sysctl -q -p "$work/own.conf"
within sh "$work/host/routes.sh" 10.9.1.0/24 >"$work/back"
within sh "$work/host/routes.sh" 10.9.1.0/24 >"$work/back"
route=$(within ip route show exact 10.9.1.0/24)
for attribute in "via 10.9.0.2" "congctl cubic" "initcwnd 20" "initrwnd 20" "rto_min lock 5ms"; do
    grep -q "$attribute" <<<"$route" || fail "the route is without $attribute: $route"
done
# A scheme that sets less leaves nothing of another, and the way back is what is printed.
"$incast" config $rigs/tcp.toml --scheme cubic --for linux --set host.rto_min=700us --out "$work/less" 2>/dev/null
within sh "$work/less/routes.sh" 10.9.1.0/24 >"$work/back"
! grep -q "rto_min\|initcwnd" <<<"$(within ip route show exact 10.9.1.0/24)" || fail "something of another scheme is left"
within $(sed 's/the way back: //' "$work/back")
[ "$(within ip route show exact 10.9.1.0/24)" = "$route" ] || fail "the way back leads elsewhere"
within ip route add 10.9.2.0/24 nexthop via 10.9.0.3 nexthop via 10.9.0.4
! within sh "$work/less/routes.sh" 10.9.2.0/24 2>/dev/null || fail "next hops apart were taken"
! within sh "$work/host/routes.sh" 10.77.0.0/16 2>/dev/null || fail "a route that is not there was taken"
# Not every kernel has fq: this one may keep what it has.
if within tc qdisc replace dev port root fq 2>/dev/null; then
    within sh "$work/host/links.sh" port
    grep -q "mtu 1500" <<<"$(within ip link show port)" || fail "the link has another MTU"
    grep -q "qdisc fq" <<<"$(within tc qdisc show dev port)" || fail "the link has no fq"
else
    echo "skipped: rigs/sonic: links.sh in a namespace (this kernel has no fq)"
fi
echo "rigs/sonic: a Linux host takes its files: $route"
