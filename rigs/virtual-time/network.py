# SPDX-License-Identifier: MIT OR Apache-2.0
"""The network of the guest: a switch and its hosts, as `ip`, `bridge` and `tc` read them."""

from plan import address, mac

# Of each port of a switch that routes.
PORT = "02:00:00:01:00:00"
# A host's own queue is as long as TCP's small queues let it be.
HOST_QUEUE = "bfifo limit 1073741824"
# Type of service to `0x..` under a mask that spares the rest: the two lowest bits are ECN.
ECN_ACTION = {"stripped": "munge ip dsfield set 0x00 retain 0x03", "ce": "munge ip dsfield set 0x03 retain 0x03"}


def network(settings, rows):
    """The files that the lines of `commands` read."""
    files = switch(settings, rows)
    files["host.sh"] = settle(settings)
    for me in range(settings["hosts"]):
        files[f"h{me}.ip"], files[f"h{me}.tc"] = host(settings, rows, me)
    return files


def commands(settings):
    """The lines of run.sh that make the switch, and those that make the hosts."""
    make_switch = [
        "/bin/ip link set lo up",
        "/bin/ip -batch /in/links",
        "/bin/ip -n switch -batch /in/switch.ip",
        *(["/bin/ip netns exec switch /bin/sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'"]
          if settings["host_queue"] == "fq" else ["/bin/bridge -n switch -batch /in/switch.fdb"]),
        "/bin/tc -n switch -batch /in/switch.tc",
    ]
    make_hosts = []
    for me in range(settings["hosts"]):
        make_hosts += [f"/bin/ip -n h{me} -batch /in/h{me}.ip", f"/bin/ip netns exec h{me} /bin/sh -e /in/host.sh",
                       f"/bin/tc -n h{me} -batch /in/h{me}.tc"]
    return make_switch, make_hosts


def receivers_of(rows):
    return sorted({int(row["destination_namespace"][1:]) for row in rows})


def switch(settings, rows):
    mtu, hosts, receivers = settings["mtu"], range(settings["hosts"]), receivers_of(rows)
    links = ["netns add switch", *(f"netns add h{host}" for host in hosts)]
    for host in hosts:
        links.append(f"link add p{host} mtu {mtu} netns switch type veth "
                     f"peer name eth0 address {mac(host)} mtu {mtu} netns h{host}")
    ways, fdb, queues = [], [], []
    for host in hosts:
        queues += htb(settings, f"p{host}", settings["bottleneck_rate_bps"], port_queue(settings, host in receivers))
        ways.append(f"link set p{host} up{gso_limit(settings)}")
    if settings["host_queue"] == "fq":
        for host in hosts:
            # What left a host, TCP's small queues do not count any more: routing ends it, a bridge does not.
            ways += [f"link set p{host} address {PORT}", f"link add n{host} mtu {mtu} type ifb", f"link set n{host} up",
                     f"route add {address(host)}/32 dev p{host}",
                     f"neigh replace {address(host)} lladdr {mac(host)} dev p{host} nud permanent"]
            queues += [*htb(settings, f"n{host}", settings["host_rate_bps"], HOST_QUEUE),
                       *redirected(f"p{host}", f"n{host}")]
    else:
        ways += ["link add bridge type bridge stp_state 0 mcast_snooping 0", "link set bridge up",
                 *(f"link set p{host} master bridge" for host in hosts)]
        fdb = [f"fdb replace {mac(host)} dev p{host} master static" for host in hosts]
    return {"links": links, "switch.ip": ways, "switch.fdb": fdb, "switch.tc": queues}


def settle(settings):
    """What each host does to itself."""
    lines = ["export PATH=/bin"]
    if not settings["offloads"]:
        # Those that the device lacks are no fault.
        lines.append("/bin/ethtool -K eth0 tso off gso off gro off tx off rx off >/dev/null 2>&1 || true")
    for key, value in settings["sysctls"].items():
        if key.startswith("net.ipv4."):
            lines.append(sysctl(key, value))
    return lines


def sysctl(key, value):
    return f"echo '{value}' >/proc/sys/{key.replace('.', '/')}"


def host(settings, rows, me):
    """A host's links, addresses and routes, and its queues."""
    # Whoever talks to whom, in both directions.
    pairs = [(int(row["source_namespace"][1:]), int(row["destination_namespace"][1:])) for row in rows]
    others = sorted({b for a, b in pairs if a == me} | {a for a, b in pairs if b == me})
    lines = [
        "link set lo up",
        f"link set eth0 up{gso_limit(settings)}",
        f"link add delay mtu {settings['mtu']} type ifb",
        "link set delay up",
        f"addr add {address(me)}/16 dev eth0 noprefixroute",
        f"route add 10.0.0.0/16 dev eth0 src {address(me)}{metrics(settings['route'])}",
    ]
    for other in others:
        station = PORT if settings["host_queue"] == "fq" else mac(other)
        lines.append(f"neigh replace {address(other)} lladdr {station} dev eth0 nud permanent")
    ecn, edit = settings["faults"]["ecn"], ""
    if ecn != "kept":
        edit = f"action pedit ex {ECN_ACTION[ecn]} pipe action csum ip pipe "
    if settings["host_queue"] == "fq":
        queue = ["qdisc replace dev eth0 root fq nopacing"]
    else:
        queue = htb(settings, "eth0", settings["host_rate_bps"], HOST_QUEUE)
    return lines, [*queue, *redirected("eth0", "delay", edit), f"qdisc replace dev delay root {way_in(settings)}"]


def redirected(device, to, edit=""):
    """What comes in at a device goes through the queue of an ifb first."""
    return [f"qdisc add dev {device} clsact",
            f"filter add dev {device} ingress protocol ip matchall {edit}action mirred egress redirect dev {to}"]


def gso_limit(settings):
    # Segments are cut before they reach the host's own queue, as no NIC would see them otherwise.
    return "" if settings["offloads"] else " gso_max_segs 1"


def metrics(route):
    words = ""
    if route["rto_min_us"]:
        words += f" rto_min {route['rto_min_us'] // 1000}ms"
    if route["initcwnd"]:
        words += f" initcwnd {route['initcwnd']}"
    if route["quickack"]:
        words += " quickack 1"
    return words


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
