# shellcheck shell=dash disable=SC2034,SC2154,SC2317
# What the cases of On-Ramp share: its command on each host, its counters, and something that a probe can connect to.

# ctl NODE COMMAND...: as an operator of that host. `ip netns exec` would hide where pins are.
ctl() {
    _host=$1
    shift
    nsenter "--net=/run/netns/incast-$_host" onrampctl "$@" >/out/said 2>&1
    _done=$?
    { echo "$_host: $* ($_done)" && cat /out/said; } >>/out/onrampctl
    return $_done
}
# refused CODE WORDS NODE COMMAND...: with that exit code, and says so.
refused() {
    _code=$1 _words=$2
    shift 2
    ctl "$@"
    [ $? -eq "$_code" ] && contains /out/said "$_words"
}
on_senders() {
    _all_ok=0
    for _s in 0 1 2 3; do
        "$@" "$_s" || _all_ok=1
    done
    return $_all_ok
}
queue() { ip netns exec "incast-$3" tc qdisc replace dev port root "$1" $2; }
# ready HOST: with the queue that the form needs.
ready() {
    case $FORM in
    edt) ip netns exec "incast-$1" tc qdisc replace dev port root fq nopacing ;;
    qdisc) ip netns exec "incast-$1" tc qdisc del dev port root 2>/dev/null || true ;;
    esac
}
loads() { ctl "$1" load port --form "$FORM" --set max_hold=50ms; }
unloads() { ctl "$1" unload; }
enables() { ctl "$1" enable default --peer 10.9.200.2:7; }
rolls_back() { ctl "$1" rollback; }
routes_of() { ip -n "incast-$1" route show table all >>/out/routes; }
all_routes() {
    : >/out/routes
    for _s in 0 1 2 3 r; do routes_of $_s; done
    mv /out/routes "/out/routes-$1"
}
# counter NAME: of all senders.
counter() {
    _total=0
    for _s in 0 1 2 3; do
        _one=$(nsenter "--net=/run/netns/incast-$_s" onrampctl status --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -n 1)
        _total=$((_total + ${_one:-0}))
    done
    echo $_total
}
# Retransmission timeouts of all senders since they were there.
timeouts() {
    _total=0
    for _s in 0 1 2 3; do
        _one=$(in_namespace "incast-$_s" awk '/^TcpExt:/ && !k { for (i = 2; i <= NF; i++) if ($i == "TCPTimeouts") k = i; next }
            /^TcpExt:/ { print $k }' /proc/net/netstat)
        _total=$((_total + _one))
    done
    echo $_total
}
# Comparing of clocks: a key, who watches HOST with CLOCK, and what is said of it.
new_key() { (umask 077 && tr -dc a-f0-9 </dev/urandom | head -c 32 >/tmp/key); }
compares() { nsenter "--net=/run/netns/incast-$1" onrampctl watch --clock "$2" --key /tmp/key >>/out/watch 2>&1 & }
# shows WORDS FILE COMMAND...: while small flows are played, up to ten times, the command's output has these words.
shows() {
    _words=$1 _shown=$2 _turns=10
    shift 2
    until play compared 100000 && "$@" >"$_shown" 2>&1 && contains "$_shown" "$_words"; do
        _turns=$((_turns - 1))
        [ $_turns -gt 0 ] || return 1
    done
}
top() { nsenter --net=/run/netns/incast-0 onrampctl top --once; }
status() { nsenter --net=/run/netns/incast-0 onrampctl status; }
# listens: something at the receiver that a probe can connect to.
listens() {
    mount -t bpf bpf /sys/fs/bpf
    mkfifo /tmp/quiet
    in_namespace incast-r sh -c 'while true; do nc -l -p 7 <>/tmp/quiet >/dev/null; done' &
    listener=$!
}
silent() {
    kill $listener
    for _process in $(pidof nc); do kill "$_process"; done
}
