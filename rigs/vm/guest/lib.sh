# What the cases share: checks, the network, one play of a plan, counters. For busybox's sh.
# shellcheck shell=dash disable=SC1091,SC2034,SC2154,SC2317

passed=0
failed=0

# Debian's busybox prefers its own ip and tc, which know less, to those of iproute2.
ip() { /sbin/ip "$@"; }
tc() { /sbin/tc "$@"; }

# check WHAT COMMAND...: one line on the console and in /out/checks.
check() {
    _what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        _line="ok      $_what"
    else
        failed=$((failed + 1))
        _line="FAILED  $_what ($*)"
    fi
    printf '%s\n' "$_line"
    printf '%s\n' "$_line" >>/out/checks
    printf '%s\n' "$_line" >/dev/ttyS0
}

# note WHAT: a number or a fact that is shown and not judged.
note() {
    echo "        $*" >>/out/checks
    echo "        $*" >/dev/ttyS0
}

# eventually WHAT COMMAND...: a check that may take its time on a busy machine.
eventually() {
    _what=$1
    shift
    _left=200
    until "$@" || [ $_left -eq 0 ]; do
        _left=$((_left - 1))
        sleep 0.05
    done
    check "$_what" [ $_left -gt 0 ]
}

fails() { ! "$@"; }
contains() { grep -qE -- "$2" "$1"; }
lacks() { ! grep -qE -- "$2" "$1"; }
within() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }
in_namespace() { ip netns exec "$@"; }

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

nothing_in_the_log() {
    check "the kernel's log is clean" lacks /out/dmesg \
        'WARNING|BUG|Oops|general protection|Call Trace|RCU.*stall|refcount_t|list_(add|del) corruption|lockup|leak'
}

# network SENDERS: hosts incast-0 … and incast-r around the router incast-switch, whose port to incast-r is the
# bottleneck. Offloads are off, so that every counter counts packets of the wire.
network() {
    senders=$1
    _all="switch r"
    _i=0
    while [ $_i -lt "$senders" ]; do
        _all="$_all $_i"
        _i=$((_i + 1))
    done
    for _n in $_all; do
        ip netns add "incast-$_n"
        in_namespace "incast-$_n" ip link set lo up
    done
    in_namespace incast-switch sysctl -q -w net.ipv4.ip_forward=1
    for _n in $_all; do
        [ "$_n" = switch ] && continue
        address "$_n"
        ip -n incast-switch link add "to-$_n" type veth peer name port netns "incast-$_n"
        ip -n incast-switch addr add "$network.1/24" dev "to-$_n"
        ip -n incast-switch link set "to-$_n" up
        ip -n "incast-$_n" addr add "$network.2/24" dev port
        ip -n "incast-$_n" link set port up
        ip -n "incast-$_n" route add default via "$network.1"
    done
    offloads off
    bottleneck "$red"
    # A return path of some length: the windows are more than the floor of two packets.
    in_namespace incast-r tc qdisc replace dev port root netem delay 2ms limit 10000
}

# address NODE: sets $network to the /24 of its link.
address() {
    case $1 in
    r) network=10.9.200 ;;
    *) network=10.9.$1 ;;
    esac
}

# on_the_way RULE: what the switch does to the packets it forwards.
on_the_way() {
    in_namespace incast-switch nft -f - <<RULES
table ip way {
    counter touched {}
    chain way {
        type filter hook forward priority 0
        $1
    }
}
RULES
}
touched() { in_namespace incast-switch nft list counter ip way touched | sed -n 's/.*packets \([0-9]*\) .*/\1/p'; }

# Of the four flows that were played.
intact() { check "every flow ends with its checksum intact" [ "$played$flows" = 04 ]; }

offloads() {
    for _n in $_all; do
        [ "$_n" = switch ] && continue
        in_namespace incast-switch ethtool -K "to-$_n" tso "$1" gso "$1" gro "$1" tx "$1" rx "$1" sg "$1" >/dev/null
        in_namespace "incast-$_n" ethtool -K port tso "$1" gso "$1" gro "$1" tx "$1" rx "$1" sg "$1" >/dev/null
    done
}

# A queue that marks and does not overflow.
red="limit 600000 min 15000 max 45000 avpkt 1500 burst 11 probability 1 bandwidth 40mbit ecn"

# bottleneck [RED'S ARGUMENTS]: the switch's port to the receiver, 40 Mbit/s. Without arguments it never marks.
bottleneck() {
    in_namespace incast-switch tc qdisc del dev to-r root 2>/dev/null
    in_namespace incast-switch tc qdisc add dev to-r root handle 1: htb default 1
    in_namespace incast-switch tc class add dev to-r parent 1: classid 1:1 htb rate 40mbit burst 3000 cburst 3000
    # shellcheck disable=SC2086 # one word per argument
    in_namespace incast-switch tc qdisc add dev to-r parent 1:1 handle 2: ${1:+red} ${1:-bfifo limit 600000}
}

# receiver LAW [route]: with what incast-r answers; by route, as an operator sets it for some peers, its listeners
# themselves ask for CUBIC.
receiver() {
    receiver=$1
    ip -n incast-r route replace default via 10.9.200.1
    if [ "${2:-}" = route ]; then
        receiver=cubic
        ip -n incast-r route replace default via 10.9.200.1 congctl "$1"
    fi
}

# traffic PLAN ROWS: plays a plan under the law.
traffic() {
    rig-traffic play --plan "$1" --congestion "$CONGESTION" --receiver-congestion "$receiver" --out "$2"
}

network_down() {
    for _n in $_all; do
        ip netns del "incast-$_n"
    done
}

# plan FILE BYTES [FLOWS OF A SENDER]: every sender to incast-r, all at once.
plan() {
    echo flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes >"$1"
    _flow=0
    while [ $_flow -lt $((senders * ${3:-1})) ]; do
        _s=$((_flow % senders))
        echo "$_flow,incast-$_s,10.9.$_s.2,incast-r,10.9.200.2,$((5000 + _flow)),$((_flow * 100000)),$2" >>"$1"
        _flow=$((_flow + 1))
    done
}

# red_count NAME: what the queue says of itself: marked, dropped, early, pdrop.
red_count() {
    in_namespace incast-switch tc -s qdisc show dev to-r | sed -n '/^qdisc red/,$p' |
        sed -n "s/.*[ (]$1 \([0-9]*\).*/\1/p" | tail -n 1
}

nstat_of() {
    _value=$(in_namespace "$1" nstat -asz "$2" 2>/dev/null | awk -v n="$2" '$1 == n { print $2 }')
    echo "${_value:-0}"
}

# nstat_of_senders NAME: since the network was made.
nstat_of_senders() {
    _total=0
    for _n in $_all; do
        case $_n in switch | r) ;; *) _total=$((_total + $(nstat_of "incast-$_n" "$1"))) ;; esac
    done
    echo $_total
}

# sum COLUMN FILE: a column of rig-traffic's rows, by name.
sum() {
    awk -F , -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i; next } { s += $k } END { print s + 0 }' "$2"
}

# stall FILE...: the longest time in which nothing arrived of one of the flows, ms.
stall() {
    awk -F , 'FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "stall_ns") k = i; next } $k > most { most = $k }
        END { print int(most / 1000000) }' "$@"
}

# play NAME BYTES [FLOWS]: plays and keeps everything that was counted below /out/NAME. Sets marked, received (CE at the
# receiver), echoed (CE that the senders were told of), flows and retransmissions.
play() {
    _name=$1
    mkdir -p "/out/$_name"
    plan "/out/$_name/plan.csv" "$2" "${3:-1}"
    _marked=$(red_count marked)
    _received=$(nstat_of incast-r IpExtInCEPkts)
    traffic "/out/$_name/plan.csv" "/out/$_name/flows.csv"
    played=$?
    marked=$(($(red_count marked) - _marked))
    received=$(($(nstat_of incast-r IpExtInCEPkts) - _received))
    echoed=$(sum delivered_ce "/out/$_name/flows.csv")
    flows=$(sum ok "/out/$_name/flows.csv")
    retransmissions=$(sum retransmissions "/out/$_name/flows.csv")
    in_namespace incast-switch tc -s qdisc show >"/out/$_name/tc"
    for _n in $_all; do
        in_namespace "incast-$_n" nstat -asz >"/out/$_name/nstat-$_n"
    done
}
