# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guest does: the files of its /in."""

from outcome import UNFINISHED
from plan import address, mac

# Type of service to `0x..` under a mask that spares the rest: the two lowest bits are ECN.
ECN_ACTION = {"stripped": "munge ip dsfield set 0x00 retain 0x03", "ce": "munge ip dsfield set 0x03 retain 0x03"}


def scripts(settings, plan, rows, with_module):
    """The files of the guest's /in."""
    hosts = range(settings["hosts"])
    receivers = sorted({int(row["destination_namespace"][1:]) for row in rows})
    pairs = sorted({(int(a), int(b)) for row in rows for a, b in
                    [(row["source_namespace"][1:], row["destination_namespace"][1:]),
                     (row["destination_namespace"][1:], row["source_namespace"][1:])]})
    mtu = settings["mtu"]
    # Segments are cut before they reach the host's own queue, as no NIC would see them otherwise.
    one = "" if settings["offloads"] else " gso_max_segs 1"
    links = ["netns add switch", *(f"netns add h{host}" for host in hosts)]
    for host in hosts:
        links.append(f"link add p{host} mtu {mtu} netns switch type veth "
                     f"peer name eth0 address {mac(host)} mtu {mtu} netns h{host}")
    switch = ["link add bridge type bridge stp_state 0 mcast_snooping 0", "link set bridge up"]
    fdb, switch_tc = [], []
    for host in hosts:
        switch += [f"link set p{host} master bridge", f"link set p{host} up{one}"]
        fdb.append(f"fdb replace {mac(host)} dev p{host} master static")
        switch_tc += htb(settings, f"p{host}", settings["bottleneck_rate_bps"], port_queue(settings, host in receivers))
    run = [
        "export PATH=/bin",
        "/bin/ip link set lo up",
        "/bin/ip -batch /in/links",
        "/bin/ip -n switch -batch /in/switch.ip",
        "/bin/bridge -n switch -batch /in/switch.fdb",
        "/bin/tc -n switch -batch /in/switch.tc",
    ]
    files = {"links": links, "switch.ip": switch, "switch.fdb": fdb, "switch.tc": switch_tc}
    everywhere = [(key, value) for key, value in settings["sysctls"].items() if not key.startswith("net.ipv4.")]
    here = [(key, value) for key, value in settings["sysctls"].items() if key.startswith("net.ipv4.")]
    for key, value in everywhere:
        run.append(f"echo '{value}' >/proc/sys/{key.replace('.', '/')}")
    route = settings["route"]
    metrics = ""
    if route["rto_min_us"]:
        metrics += f" rto_min {route['rto_min_us'] // 1000}ms"
    if route["initcwnd"]:
        metrics += f" initcwnd {route['initcwnd']}"
    if route["quickack"]:
        metrics += " quickack 1"
    settle = ["export PATH=/bin"]
    if not settings["offloads"]:
        # Those that the device lacks are no fault.
        settle.append("/bin/ethtool -K eth0 tso off gso off gro off tx off rx off >/dev/null 2>&1 || true")
    for key, value in here:
        settle.append(f"echo '{value}' >/proc/sys/{key.replace('.', '/')}")
    files["host.sh"] = settle
    ecn = settings["faults"]["ecn"]
    for host in hosts:
        lines = [
            "link set lo up",
            f"link set eth0 up{one}",
            f"link add delay mtu {mtu} type ifb",
            "link set delay up",
            f"addr add {address(host)}/16 dev eth0 noprefixroute",
            f"route add 10.0.0.0/16 dev eth0 src {address(host)}{metrics}",
        ]
        lines += [f"neigh replace {address(other)} lladdr {mac(other)} dev eth0 nud permanent"
                  for me, other in pairs if me == host]
        edit = ""
        if ecn != "kept":
            edit = f"action pedit ex {ECN_ACTION[ecn]} pipe action csum ip pipe "
        control = htb(settings, "eth0", settings["host_rate_bps"], "bfifo limit 1073741824") + [
            "qdisc add dev eth0 clsact",
            f"filter add dev eth0 ingress protocol ip matchall {edit}action mirred egress redirect dev delay",
            f"qdisc replace dev delay root {way_in(settings)}",
        ]
        files[f"h{host}.ip"] = lines
        files[f"h{host}.tc"] = control
        run += [f"/bin/ip -n h{host} -batch /in/h{host}.ip", f"/bin/ip netns exec h{host} /bin/sh -e /in/host.sh",
                f"/bin/tc -n h{host} -batch /in/h{host}.tc"]
    tracing = "/sys/kernel/tracing"
    if with_module:
        words = " ".join(f"{key}={value}" for key, value in settings["parameters"].items())
        run.append(f"insmod /in/tcp_marimo.ko {words}".rstrip())
        run.append("cat /sys/module/tcp_marimo/srcversion >/out/srcversion.txt")
        if settings["table"]:
            run.append("cat /in/marimo.table >/sys/module/tcp_marimo/table")
        if settings["trace"]:
            run += [
                f"echo 131072 >{tracing}/buffer_size_kb",
                f"echo mono >{tracing}/trace_clock",
                f"echo 1 >{tracing}/events/tcp_marimo/enable",
                f"echo 1 >{tracing}/tracing_on",
            ]
    play = f"/bin/rig-traffic play --plan /in/plan.csv --out /out/FLOWS.csv --deadline {settings['deadline_s']}"
    play += f" --sample-queue switch:p{receivers[0]} --sample-interval-us {settings['queue_sample_us']}"
    play += " --samples /out/queue.csv" + (" --ecn-check" if settings["ecn_check"] else "")
    churn = settings["churn"]
    if churn:
        play = (f"/bin/rig-traffic churn --connections {churn['connections']} --seconds {churn['seconds']} --bytes "
                f"{churn['bytes']} --source-namespace h1 --source {address(1)} --destination-namespace h0 "
                f"--destination {address(0)}")
    if settings["receiver_congestion"]:
        play += f" --receiver-congestion {settings['receiver_congestion']}"
    if settings["socket_buffer_bytes"]:
        play += f" --socket-buffer {settings['socket_buffer_bytes']}"
    run += [
        "failed=0",
        f"{play} --congestion {settings['congestion']} || failed=$?",
        # What is on its way (the last FIN, its acknowledgement) arrives before counters are read.
        "sleep 1",
        "/bin/uname -a >/out/uname.txt",
        "/bin/tc -n switch -s -j qdisc show >/out/tc-switch.json",
        "/bin/ip -n switch -s -j link show >/out/link-switch.json",
    ]
    for host in hosts:
        run += [f"/bin/tc -n h{host} -s -j qdisc show >/out/tc-h{host}.json",
                f"/bin/ip netns exec h{host} /bin/nstat -asz >/out/nstat-h{host}.txt"]
    if with_module:
        if settings["trace"]:
            run += [f"echo 0 >{tracing}/tracing_on", f"cat {tracing}/trace >/out/trace.txt"]
        # Connections that linger in a closing state may still hold it; that is what the log of a run would show.
        # What was cut off at the deadline takes its time: the sender hears of it when its data find nobody.
        run += [
            "tries=0",
            "until rmmod tcp_marimo; do",
            f"tries=$((tries + 1)); if [ $failed != {UNFINISHED} ] || [ $tries = 120 ]; then exit 1; fi; sleep 1",
            "done",
        ]
    run.append("if [ -e /in/probe.ko ]; then insmod /in/probe.ko; fi")
    run.append("exit $failed")
    files["run.sh"] = run
    texts = {key: "\n".join(lines) + "\n" for key, lines in files.items()}
    texts["plan.csv"] = plan
    return texts


def htb(settings, device, bps, leaf):
    """A port: HTB as its wire, `leaf` as its queue."""
    mtu = settings["mtu"] + 14
    overhead = settings["frame_overhead_bytes"]
    # A bucket of nothing: each packet waits until the one before has been sent.
    wire = f"rate {rate(bps)} ceil {rate(bps)} burst 1 cburst 1 quantum {max(mtu, 1000)} mtu {max(mtu, 2047)}"
    if overhead:
        wire += f" overhead {overhead}"
    return [
        f"qdisc replace dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb {wire}",
        f"qdisc add dev {device} parent 1:1 handle 10: {leaf}",
    ]


def port_queue(settings, congested):
    red = settings["red"]
    if not red or not congested:
        return f"bfifo limit {settings['buffer_bytes']}"
    flags = (" ecn" if red["ecn"] else "") + (" nodrop" if red["nodrop"] else "")
    return (f"red limit {red['limit']} min {red['min']} max {red['max']} avpkt {red['avpkt']} burst {red['burst']} "
            f"probability {red['probability']} bandwidth {rate(settings['bottleneck_rate_bps'])}{flags}")


def way_in(settings):
    """What stands between the switch and a host: half of the round trip, and faults."""
    faults, words = settings["faults"], []
    if settings["rtt_ns"]:
        words += ["delay", f"{settings['rtt_ns'] / 2000}us"]
    for key in ("loss", "reorder", "duplicate"):
        if faults[f"{key}_percent"]:
            words += [key, f"{faults[f'{key}_percent']}%"]
    return "netem limit 1000000 " + " ".join(words)


def rate(bps):
    return f"{bps}bit"
