#!/usr/bin/env python3
"""The cases of the netns rig. Started by run.sh, as PID 1 of a PID namespace and in a mount namespace of its own.

Hosts are network namespaces behind a router whose port to the receiver is HTB over bfifo, marked by marker.bpf.c.
Checks are about structure: what was marked, echoed, decided and delivered. None is about a rate.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROUTER, RECEIVER = "incast-r", "incast-d"
PINS = "/sys/fs/bpf/rig"
MAPS = "/sys/fs/bpf/rig-maps"
NAME = "bpf_marimo"
AVAILABLE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PLACES = ["port", "receiver", "sender"]
DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
TABLE = DEPLOY / "core/marimo-f.table"
# Of marimo.h and marimo_tcp.h.
SLOW_START = 2
DID_ACK, DID_LOSS, DID_TIMEOUT, DID_IDLE, DID_RESTART, DID_UNDO, DID_RESIZE = 1, 2, 4, 8, 16, 32, 512

sys.path.append(str(DEPLOY / "core/oracle"))
import marimo as oracle  # noqa: E402

options = None


class Broken(Exception):
    """A check that does not hold."""


class Skipped(Exception):
    """What this kernel lacks for a case."""


def run(*command, ok=True, **more):
    """A command's output; ok=False: whatever its exit code."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if ok and done.returncode:
        raise Broken(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def inside(namespace, *command, **more):
    """nsenter and not ip netns exec, which would hide the pins."""
    return run("nsenter", f"--net=/run/netns/{namespace}", "--", *command, **more)


def sysctl(namespace, **values):
    """Settings of a namespace; in a keyword two underlines stand for a dot."""
    for name, value in values.items():
        inside(namespace, "sysctl", "-qw", f"{name.replace('__', '.')}={value}")


def check(holds, text):
    if not holds:
        raise Broken(text)


def marimoctl(*arguments, **more):
    return run(options.binaries / "marimoctl", *arguments, **more)


def status():
    return json.loads(marimoctl("status", "--json").stdout)


class Net:
    """Senders, a router and a receiver, as long as the with block lasts."""

    def __init__(self, senders=2, rate="200mbit", limit=600_000, threshold=30_000, offloads=False, patient=False):
        self.senders = [f"incast-s{number}" for number in range(1, senders + 1)]
        self.rate, self.limit, self.threshold, self.offloads = rate, limit, threshold, offloads
        # Nothing is sent again only because the machine is busy.
        self.patient = patient
        self.port = {}

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for namespace in [ROUTER, RECEIVER, *self.senders]:
            run("ip", "netns", "del", namespace, ok=False)
        for path in [PINS, MAPS]:
            run("rm", "-rf", path)

    def build(self):
        for namespace in [ROUTER, RECEIVER, *self.senders]:
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
            # What was learnt of a path is not carried over to the next connection.
            sysctl(namespace, net__ipv4__tcp_no_metrics_save=1)
        sysctl(ROUTER, net__ipv4__ip_forward=1)
        for number, host in enumerate([RECEIVER, *self.senders]):
            port = f"r{number}"
            run("ip", "link", "add", port, "netns", ROUTER, "type", "veth", "peer", "name", "eth0", "netns", host)
            for namespace, device, last in [(ROUTER, port, 1), (host, "eth0", 2)]:
                run("ip", "-n", namespace, "address", "add", f"10.77.{number}.{last}/24", "dev", device)
                run("ip", "-n", namespace, "link", "set", device, "up")
                if not self.offloads:
                    inside(namespace, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
            wait = ["rto_min", "5s"] if self.patient else []
            run("ip", "-n", host, "route", "add", "default", "via", f"10.77.{number}.1", *wait)
            if self.patient:
                sysctl(host, net__ipv4__tcp_early_retrans=0)
        tc = ["tc", "-n", ROUTER]
        run(*tc, "qdisc", "add", "dev", "r0", "root", "handle", "1:", "htb", "default", "10")
        # 1:10 is the port; 1:20 is slower, so that what goes through it comes late.
        for leaf, rate in [("10", self.rate), ("20", "10mbit")]:
            run(*tc, "class", "add", "dev", "r0", "parent", "1:", "classid", f"1:{leaf}", "htb", "rate", rate,
                "burst", 3000, "cburst", 3000, "quantum", 3000)
            run(*tc, "qdisc", "add", "dev", "r0", "parent", f"1:{leaf}", "bfifo", "limit", self.limit)
        run("bpftool", "prog", "loadall", options.marker, PINS, "pinmaps", MAPS)
        self.set(threshold=self.threshold)
        hooks = [(ROUTER, "r0", "egress", "port"), (RECEIVER, "eth0", "ingress", "arrivals")]
        hooks += [(sender, "eth0", "egress", "departures") for sender in self.senders]
        for namespace, device, hook, program in hooks:
            inside(namespace, "tc", "qdisc", "add", "dev", device, "clsact")
            inside(namespace, "tc", "filter", "add", "dev", device, hook, "bpf", "direct-action",
                   "object-pinned", f"{PINS}/{program}")
        self.poll_in_threads()

    def poll_in_threads(self):
        """Hosts receive in threads of the kernel, never in an interrupt of a process that is none of the rig's.

        There are machines that leave BPF out in such interrupts (bpf_marimo/README.md).
        """
        for host in [RECEIVER, *self.senders]:
            # Either gives a veth its NAPI.
            if self.offloads:
                inside(host, "ethtool", "-K", "eth0", "gro", "on")
            else:
                inside(host, "ip", "link", "set", "eth0", "xdp", "pinned", f"{PINS}/pass")
            # Mounts this namespace's sysfs, unlike nsenter.
            run("ip", "netns", "exec", host, "sh", "-c", "echo 1 >/sys/class/net/eth0/threaded")
        answers, requests = options.pinner
        os.write(requests, b"pin\n")
        check(os.read(answers, 100) == b"pinned\n", "run.sh does not pin threads")

    def set(self, **settings):
        """What the port does: the fields of struct port in marker.bpf.c."""
        self.port.update(settings)
        fields = ["threshold", "mark_all", "strip", "drop", "delay", "slow_class", "drop_ect"]
        values = {**dict.fromkeys(fields, 0), "slow_class": 0x1_0020, **self.port}
        data = b"".join(values[field].to_bytes(4, sys.byteorder) for field in fields)
        run("bpftool", "map", "update", "pinned", f"{MAPS}/ports", "key", 0, 0, 0, 0, "value", *data)

    def counts(self):
        """What the marker has counted, by place."""
        entries = json.loads(run("bpftool", "-j", "map", "dump", "pinned", f"{MAPS}/places").stdout)
        return {PLACES[entry["formatted"]["key"]]: entry["formatted"]["value"] for entry in entries}

    def drops(self):
        text = run("tc", "-n", ROUTER, "-s", "-j", "qdisc", "show", "dev", "r0").stdout
        return sum(queue.get("drops", 0) for queue in json.loads(text) if queue["kind"] == "bfifo")

    def nstat(self, namespace, name):
        text = inside(namespace, "nstat", "-asz", name).stdout
        return int(re.search(rf"{name}\s+(\d+)", text)[1])

    def plan(self, flows):
        """flows: (sender's number from 1, start in ms, bytes, congestion or None)."""
        rows = ["flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes,congestion"]
        for number, (sender, start, size, congestion) in enumerate(flows, 1):
            rows.append(f"{number},incast-s{sender},10.77.{sender}.2,{RECEIVER},10.77.0.2,{5000 + number},"
                        f"{start * 1_000_000},{size},{congestion or '-'}")
        path = options.work / "plan.csv"
        path.write_text("\n".join(rows) + "\n")
        return path

    def start(self, flows, congestion=NAME, receiver=None):
        """Starts the flows; wait() has the results."""
        out = options.work / "flows.csv"
        # One CPU: on two, packets of one connection could overtake each other between the namespaces.
        command = ["taskset", "-c", options.cpu, options.binaries / "rig-traffic", "play", "--plan", self.plan(flows),
                   "--congestion", congestion, "--out", out, "--deadline", "120"]
        if receiver:
            command += ["--receiver-congestion", receiver]
        out.unlink(missing_ok=True)
        return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def wait(self, process):
        said, _ = process.communicate(timeout=180)
        check(process.returncode == 0, f"rig-traffic: exit code {process.returncode}: {said}")
        with open(options.work / "flows.csv", newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            check(row["ok"] == "1", f"flow {row['flow']}: a checksum or the transfer failed: {row}")
        return [{key: value if key == "congestion" else int(value) for key, value in row.items()} for row in rows]

    def play(self, flows, **more):
        return self.wait(self.start(flows, **more))


@contextlib.contextmanager
def loaded(*arguments):
    """bpf_marimo, loaded by marimoctl, and gone afterwards."""
    marimoctl("load", *arguments)
    try:
        yield
    finally:
        if NAME in AVAILABLE.read_text().split():
            marimoctl("unload")
    check(NAME not in AVAILABLE.read_text().split(), f"{NAME} is registered after the case")


@contextlib.contextmanager
def trace():
    """Everything that the trace holds while the block runs; filled when it ends."""
    entries = []
    process = subprocess.Popen([str(options.binaries / "marimoctl"), "top", "--json", "--recorded"],
                               stdout=open(options.work / "trace.json", "w", encoding="ascii"))
    try:
        yield entries
        time.sleep(0.3)
    finally:
        process.terminate()
        process.wait(timeout=10)
    with open(options.work / "trace.json", encoding="ascii") as file:
        entries.extend(json.loads(line) for line in file)


def total(rows, field):
    return sum(row[field] for row in rows)


def recursions():
    """How often the kernel skipped our programs because they were running on that CPU already."""
    programs = json.loads(run("bpftool", "-j", "prog", "show").stdout)
    ours = [program for program in programs if program.get("name", "").startswith("marimo")]
    return sum(program.get("recursion_misses", 0) for program in ours)


def copies(net, rows):
    """How many data segments were sent twice although nothing was lost, as a machine that stalls makes timers do.

    It is the kernel's own account: timeouts, what slow start sends after them, and probes. What it sends again because
    acknowledgements say that something is missing is none of these. The receiver must have had each already.
    """
    again = total(rows, "retransmissions")
    if not again:
        return 0
    timed, fast, opening = (
        sum(net.nstat(sender, f"TcpExtTCP{name}") for sender in net.senders for name in names)
        for names in [("Timeouts", "SlowStartRetrans", "LossProbes"), ("FastRetrans",), ("SynRetrans",)])
    said = f"{again} retransmissions without a loss, by timers {timed}, by acknowledgements {fast}"
    check(again <= timed and not fast, said)
    had = sum(net.nstat(RECEIVER, f"TcpExtTCPDSACK{where}Sent") for where in ["Old", "Ofo"])
    check(had >= again - opening, f"{said}; the receiver had {had} of them")
    return again - opening


def exact(net, rows, counters, told_by_program=True):
    """Every mark of the port was seen by the receiver, echoed, and told to the algorithm; no other one was.

    Of two copies that are marked only one is echoed, and the receiver's program sees one. A patient Net has copies only
    if the machine stalls for long; then both are known to within as many.
    """
    counts = net.counts()
    port, receiver = counts["port"], counts["receiver"]
    check(port["ce_data"] > 0, f"the port marked nothing: {port}")
    check(receiver["ce_data"] == port["ce_data"], f"marked {port['ce_data']}, received {receiver['ce_data']}")
    check(net.nstat(RECEIVER, "IpExtInCEPkts") == port["ce_data"] + port["ce_other"], "the receiver's IP counts others")
    check(net.drops() == 0, f"{net.drops()} packets dropped by the port")
    twice = copies(net, rows)
    if told_by_program:
        missed = receiver["data"] - counters["arrivals"] - net.nstat(RECEIVER, "TcpExtTCPBacklogCoalesce")
        check(missed <= twice, f"the kernel left the program out for {missed} segments, {twice} of them copies; "
              f"programs were skipped for recursion {recursions()} times")
    echoed = total(rows, "delivered_ce")
    check(port["ce_data"] - twice <= echoed <= port["ce_data"],
          f"marked {port['ce_data']}, echoed {echoed}, sent twice {twice}")
    # The acknowledgement of a FIN comes after the last look at a flow and repeats the last echo.
    told = counters["marked"]
    check(echoed <= told <= echoed + len(rows), f"echoed {echoed}, the algorithm was told {told}")
    said = f"{port['ce_data']} of {port['data']} packets marked, received, echoed"
    return f"{said} ({twice} of them copies at most)" if twice else said


def case_marks():
    """Marks are seen, echoed exactly, and make windows shrink; the trace has every epoch."""
    with Net(patient=True) as net, loaded("--trace-acks"), trace() as entries:
        rows = net.play([(1, 0, 2_000_000, None), (2, 0, 2_000_000, None)])
        counters = status()["bpf"]["counters"]
        said = exact(net, rows, counters)
    check(counters["epochs"] > 0 and counters["decreases"] > 0, f"no epochs or decreases: {counters}")
    check(counters["ce_changes"] > 0 and counters["fallbacks"] == 0, f"{counters}")
    check(counters["inflating"] == 0, f"an exact receiver was taken for a latching one: {counters}")
    check(counters["opened"] == 4 and counters["closed"] == 4, f"two connections have four ends: {counters}")
    epochs = [entry for entry in entries if entry["kind"] == "epoch"]
    check(len(epochs) + counters["untraced"] >= counters["epochs"], f"{len(epochs)} epochs traced: {counters}")
    check(all(0 <= epoch["share"] <= 1 and epoch["window"] >= 2 for epoch in epochs), "an epoch out of bounds")
    check({row["congestion"] for row in rows} == {NAME}, f"{rows}")
    acks = replay(entries, counters)
    return (f"{said}; {counters['epochs']} epochs, {counters['decreases']} decreases; "
            f"{acks} decisions replayed by the oracle")


def replay(entries, counters):
    """The kernel's windows against the independent oracle of marimo.h, acknowledgement by acknowledgement."""
    check(counters["untraced"] == 0, f"the trace is not complete: {counters}")
    config = dict(oracle.PAPER, min_window=2 * oracle.ONE)
    lines = TABLE.read_text(encoding="ascii").split("marimo-f 1\n")[1].split("\n")
    table = [int(line) for line in lines[:65]]
    connections, told = {}, 0
    for entry in entries:
        key = (entry["netns"], entry["connection"])
        kernel = [round(entry[field] * oracle.ONE) for field in ["window", "rho"]] + [entry["epochs"]]
        threshold = oracle.NEVER if entry["threshold"] is None else round(entry["threshold"] * oracle.ONE)
        slow_start, events = entry["flags"] & SLOW_START, entry["events"]
        if entry["kind"] == "open":
            twin = connections[key] = oracle.Connection([config[field] for field in oracle.FIELDS], table)
            twin.window = kernel[0]
        elif entry["kind"] == "decision":
            twin = connections[key]
            told += 1
            if events & DID_ACK:
                twin.on_ack(*(entry[field] for field in
                              ["packets", "marked", "acked", "position", "next", "limited"]))
            if events & DID_LOSS:
                twin.on_loss(entry["position"], entry["next"])
            if events & DID_TIMEOUT:
                twin.on_timeout(entry["next"])
            if events & DID_IDLE:
                twin.on_idle(entry["next"])
            if events & (DID_RESTART | DID_UNDO | DID_RESIZE):
                # Not the algorithm's doing but TCP's: taken over.
                twin.window, twin.threshold = kernel[0], threshold
                twin.phase = "slow start" if slow_start else "avoidance"
            if events & DID_UNDO:
                twin.estimator.rho, twin.episode = kernel[1], None
                twin.wait = 0
                twin.hold()
                if not slow_start and kernel[1] < config["increase_below"]:
                    twin.grow()
        else:
            continue
        ours = [twin.window, twin.estimator.rho, twin.epochs]
        check(ours == kernel and twin.threshold == threshold, f"the oracle has {ours}, {twin.threshold}: {entry}")
    return told


def case_accecn():
    """With AccECN the counters of the protocol are used, and our echo is left out."""
    with Net() as net, loaded():
        for host in [RECEIVER, *net.senders]:
            if inside(host, "sysctl", "-qw", "net.ipv4.tcp_ecn=3", ok=False).returncode:
                raise Skipped("this kernel has no AccECN")
        rows = net.play([(1, 0, 2_000_000, None), (2, 0, 2_000_000, None)])
        counters = status()["bpf"]["counters"]
        port = net.counts()["port"]
    check(counters["accecn"] == counters["opened"] == 4, f"AccECN was not negotiated: {counters}")
    check(counters["ce_changes"] == counters["echo_acks"] == 0, f"we echoed beside AccECN: {counters}")
    check(counters["marked"] > 0 and counters["decreases"] > 0, f"{counters}")
    return f"{port['ce_data']} packets marked, {total(rows, 'delivered_ce')} counted by AccECN, no echo of ours"


def case_fallback():
    """A peer without ECN: the connection is handed to Reno and what it sends is not ECN-capable.

    Linux refuses ECN to a SYN that is ECT itself, as ours is, unless its own congestion control needs ECN.
    """
    with Net() as net, loaded():
        rows = net.play([(1, 0, 2_000_000, None)], receiver="cubic")
        counters = status()["bpf"]["counters"]
        counts = net.counts()
    check(rows[0]["congestion"] == "reno", f"the sender has {rows[0]['congestion']}")
    check(counters["fallbacks"] == 1 and counters["opened"] == 0, f"{counters}")
    check(counts["port"]["data"] > 0 and counts["port"]["ect"] == 0, f"ECT without ECN: {counts['port']}")
    check(counts["port"]["ce_data"] == 0 and rows[0]["delivered_ce"] == 0, f"{counts['port']}")
    return f"the sender became {rows[0]['congestion']}, {counts['port']['data']} packets without ECT"


def case_unmodified():
    """A receiver of RFC 3168 repeats the echo: e is inflated, which the sender notices.

    Peers that take no offence at an ECT SYN do ECN with us; a Linux peer does if the ECT of the SYN is lost on the way.
    """
    with Net() as net, loaded():
        net.set(strip=2)
        rows = net.play([(1, 0, 8_000_000, None), (2, 0, 8_000_000, None)], receiver="cubic")
        counters = status()["bpf"]["counters"]
        port = net.counts()["port"]
    echoed = total(rows, "delivered_ce")
    check(counters["opened"] == 2 and counters["arrivals"] <= 2, f"the receiver echoed as we do: {counters}")
    check(echoed > port["ce_data"], f"marked {port['ce_data']}, echoed {echoed}: nothing inflated")
    check(counters["inflating"] > 0, f"not noticed: {counters}")
    return f"{port['ce_data']} marks became {echoed}; noticed {counters['inflating']} times"


def case_beside_cubic():
    """Marimo and ECN-CUBIC in one queue: both are marked, both get on while the other is there."""
    with Net() as net, loaded():
        for host in [RECEIVER, *net.senders]:
            sysctl(host, net__ipv4__tcp_ecn=1)
        rows = net.play([(1, 0, 6_000_000, None), (2, 0, 6_000_000, "cubic")])
        counters = status()["bpf"]["counters"]
    check([row["congestion"] for row in rows] == [NAME, "cubic"], f"{rows}")
    check(all(row["delivered_ce"] > 0 for row in rows), f"one was never marked: {rows}")
    check(counters["epochs"] > 0, f"{counters}")
    first = min(rows, key=lambda row: row["end_ns"])
    check(max(row["connected_ns"] for row in rows) < first["end_ns"], "they did not overlap")
    return f"marked {rows[0]['delivered_ce']} and {rows[1]['delivered_ce']} times, both complete"


def case_stripped():
    """ECN stripped on the way: no mark arrives, the connection goes on by losses."""
    with Net(limit=60_000) as net, loaded():
        net.set(strip=1)
        rows = net.play([(1, 0, 3_000_000, None)])
        counters = status()["bpf"]["counters"]
        counts = net.counts()
    check(counts["port"]["stripped"] > 0 and counts["receiver"]["ect"] == 0, f"{counts}")
    check(total(rows, "delivered_ce") == 0 and counters["marked"] == 0, f"{rows}")
    check(counters["losses"] + counters["timeouts"] > 0, f"no loss in a short queue without marks: {counters}")
    return f"{counts['port']['stripped']} packets stripped, {counters['losses']} reductions for losses, complete"


def case_ect_dropped():
    """The handshake comes through with ECT, data does not: after three timeouts in a row it leaves without."""
    with Net() as net, loaded():
        net.set(drop_ect=1)
        rows = net.play([(1, 0, 200_000, None), (2, 0, 200_000, None)])
        counters = status()["bpf"]["counters"]
        counts = net.counts()
    check(counts["port"]["dropped"] > 0 and counts["receiver"]["ect"] == 0, f"{counts}")
    check({row["congestion"] for row in rows} == {"reno"}, f"{rows}")
    check(counters["fallbacks_ect"] == 2 and counters["fallbacks_echo"] == 0, f"{counters}")
    slowest = max(row["end_ns"] - row["start_ns"] for row in rows)
    return f"{counts['port']['dropped']} packets with ECT dropped; complete without after {slowest / 1e9:.1f} s"


def case_restored():
    """A limit: a receiver that was checkpointed and restored has forgotten ECN. A sender that was marked before goes on by
    losses, as one without ECN would, and stays Marimo: nothing tells it that marks have stopped."""
    script, size = pathlib.Path(__file__).with_name("restored.py"), 12_000_000
    with Net(rate="50mbit", limit=150_000) as net, loaded():
        file = options.work / "restored"
        waits = [file, file.with_name("restored.listens")]
        for path in waits:
            path.unlink(missing_ok=True)
        ends = {}
        for what, namespace in [("receive", RECEIVER), ("send", net.senders[0])]:
            ends[what] = subprocess.Popen(["nsenter", f"--net=/run/netns/{namespace}", "--", sys.executable, str(script), what,
                                           "10.77.0.2", "5000", str(size), str(file)], stdout=subprocess.PIPE, text=True)
            while not waits[1].exists():
                time.sleep(0.05)
        said = {what: json.loads(end.communicate(timeout=60)[0]) for what, end in ends.items()}
        port, counters = net.counts()["port"], status()["bpf"]["counters"]
    check(said["receive"]["received"] == size, f"{said}")
    check(said["send"]["marked_before"] > 0 and said["send"]["marked_after"] == 0, f"marks after it was restored: {said}")
    check(counters["losses"] > 0, f"{counters}")
    return (f"{port['ce_data']} packets were marked, {said['send']['marked_before']} of them told before, none after; the queue's "
            f"longest {port['backlog_max'] // 1000} KB (marked from 30), {counters['losses']} losses, {said['send']['congestion']}")


def case_all_marked():
    """CE on every packet: e is 1, windows go to the floor and stay there, the flow completes."""
    with Net(patient=True) as net, loaded(), trace() as entries:
        net.set(mark_all=1)
        rows = net.play([(1, 0, 1_000_000, None)])
        counters = status()["bpf"]["counters"]
        said = exact(net, rows, counters)
        port = net.counts()["port"]
    check(port["ce_data"] == port["data"], f"{port}")
    sender = [entry for entry in entries if entry["kind"] == "epoch" and entry["connection"].startswith("10.77.1.2")]
    # A timeout begins again at a window of 1, which never grows here.
    floor = (1, 2) if total(rows, "retransmissions") else (2,)
    check(sender[-1]["share"] == 1 and sender[-1]["window"] in floor, f"the last epoch: {sender[-1]}")
    return f"{said}; the window ended at {sender[-1]['window']:.0f}"


def case_mtu():
    """The path's MTU shrinks under a connection: no reduction, what is too large is sent again."""
    with Net(rate="50mbit") as net, loaded("--trace-acks"), trace() as entries:
        process = net.start([(1, 0, 3_000_000, None)])
        time.sleep(0.2)
        changed = time.monotonic()
        run("ip", "-n", ROUTER, "link", "set", "r0", "mtu", 1300)
        rows = net.wait(process)
        counters = status()["bpf"]["counters"]
        fragments = net.nstat(ROUTER, "IcmpOutDestUnreachs")
    check(fragments > 0, "the router asked for no smaller packets")
    check(rows[0]["bytes"] == 3_000_000 and total(rows, "retransmissions") > 0, f"{rows}")
    acks = replay(entries, counters)
    after = [entry for entry in entries if entry["kind"] == "decision" and entry["time"] > changed]
    reductions = [entry for entry in after if entry["events"] & (DID_LOSS | DID_TIMEOUT)]
    check(len(after) > 100, f"{len(after)} decisions after the change")
    check(not reductions, f"taken for a loss: {reductions[:1]}")
    return (f"{fragments} times too large, {rows[0]['retransmissions']} sent again, "
            f"no reduction in {len(after)} of {acks} replayed decisions")


def case_table():
    """f is swapped under load; a bad file changes nothing and is named."""
    work = options.work
    steep = oracle_table([oracle.q16(0.6) + (oracle.q16(1.2) - oracle.q16(0.6)) * knot // 64 for knot in range(65)])
    (work / "linear.table").write_text(steep, encoding="ascii")
    (work / "bad.table").write_text(steep.replace("checksum ", "checksum 1"), encoding="ascii")
    with Net(rate="100mbit") as net, loaded():
        process = net.start([(1, 0, 12_000_000, None), (2, 0, 12_000_000, None)])
        seen, swaps = set(), 0
        while process.poll() is None and swaps < 60:
            marimoctl("set-table", [work / "linear.table", TABLE][swaps % 2])
            swaps += 1
            now = status()["bpf"]
            seen.add((now["table"], now["slot"]))
            bad = marimoctl("set-table", work / "bad.table", ok=False)
            check(bad.returncode == 2 and "bad.table line 67: found" in bad.stderr, f"{bad.returncode} {bad.stderr}")
            check(status()["bpf"]["table"] == now["table"], "a bad table replaced the old one")
        rows = net.wait(process)
        counters = status()["bpf"]["counters"]
    check(len(seen) == 2 and swaps >= 4, f"{swaps} swaps, seen {seen}")
    check(counters["epochs"] > 0 and len(rows) == 2, f"{counters}")
    return f"{swaps} swaps and as many bad files during {counters['epochs']} epochs"


def oracle_table(knots):
    """A table's file, with the checksum from its definition: FNV-1a."""
    value = 0x811C9DC5
    for byte in b"".join(knot.to_bytes(4, "little") for knot in knots):
        value = (value ^ byte) * 0x01000193 % 2**32
    return "\n".join(["marimo-f 1", *map(str, knots), f"checksum {value:08x}"]) + "\n"


def case_unload():
    """Unloaded with open connections: they go on with their copy; nobody new gets it; then it is gone."""
    with Net(rate="50mbit") as net:
        marimoctl("load")
        # Long enough for all that follows, also beside a full processor.
        process = net.start([(1, 0, 12_000_000, None), (2, 0, 12_000_000, None)])
        while status()["bpf"]["connections"] < 4:
            time.sleep(0.02)
        said = marimoctl("unload").stdout
        check("4 connections keep their copy" in said, said)
        check(NAME not in AVAILABLE.read_text().split(), "still registered")
        now = status()
        check(now["bpf"] is None and now["draining"] == 1, f"{now}")
        marimoctl("load")
        check(status()["draining"] == 1 and status()["bpf"]["connections"] == 0, "a second copy beside the first")
        marimoctl("unload")
        rows = net.wait(process)
        check({row["congestion"] for row in rows} == {NAME}, f"{rows}")
        for _ in range(100):
            if status()["draining"] == 0:
                break
            time.sleep(0.05)
        check(status()["draining"] == 0, "a copy without connections is still there")
    return "4 ends finished on an unloaded copy, which then went away"


def case_loss():
    """5% loss: recovery by recovery, nothing lost."""
    with Net() as net, loaded("--trace-acks"), trace() as entries:
        net.set(drop=65536 // 20)
        rows = net.play([(1, 0, 1_000_000, None), (2, 0, 1_000_000, None)])
        counters = status()["bpf"]["counters"]
        dropped = net.counts()["port"]["dropped"]
    check(dropped > 0 and total(rows, "retransmissions") >= dropped, f"dropped {dropped}: {rows}")
    check(counters["losses"] > 0, f"{counters}")
    acks = replay(entries, counters)
    return (f"{dropped} dropped, {counters['losses']} reductions, {counters['timeouts']} timeouts, "
            f"{acks} decisions replayed")


def case_reordering():
    """Packets that come late: transfers are intact, reductions that were spurious are undone."""
    with Net() as net, loaded("--trace-acks"), trace() as entries:
        net.set(delay=65536 // 50)
        rows = net.play([(1, 0, 3_000_000, None), (2, 0, 3_000_000, None)])
        counters = status()["bpf"]["counters"]
        delayed = net.counts()["port"]["delayed"]
        late = net.nstat(RECEIVER, "TcpExtTCPOFOQueue")
    check(delayed > 0 and late > 0, f"{delayed} delayed, {late} out of order")
    acks = replay(entries, counters)
    return (f"{late} packets out of order, {counters['losses']} reductions, {counters['undone']} undone, "
            f"{acks} decisions replayed, {total(rows, 'bytes')} bytes intact")


def case_offloads():
    """Offloads on: bundles are marked as one packet; structure holds, exactness is not to be had."""
    with Net(offloads=True) as net, loaded("--trace-acks"), trace() as entries:
        rows = net.play([(1, 0, 4_000_000, None), (2, 0, 4_000_000, None)])
        counters = status()["bpf"]["counters"]
        port = net.counts()["port"]
    check(port["ce_data"] > 0 and counters["decreases"] > 0, f"{port} {counters}")
    check(port["data"] < total(rows, "delivered"), "no bundle on the wire")
    acks = replay(entries, counters)
    return f"{total(rows, 'delivered')} segments in {port['data']} bundles, {acks} decisions replayed"


def case_churn():
    """1,000 short connections at a time for a minute, no more in all than there are ports: each is used once."""
    with Net(rate="150mbit") as net, loaded():
        sysctl(net.senders[0], net__ipv4__ip_local_port_range="1024 65535")
        process = run(options.binaries / "rig-traffic", "churn", "--connections", 1000, "--seconds", 60,
                      "--congestion", NAME, "--source-namespace", net.senders[0], "--source", "10.77.1.2",
                      "--destination-namespace", RECEIVER, "--destination", "10.77.0.2")
        counters = status()["bpf"]["counters"]
    check(counters["opened"] > 1000, f"{counters}")
    check(counters["opened"] - counters["closed"] <= 2000, f"connections were lost count of: {counters}")
    return f"{counters['opened']} ends opened, {counters['closed']} closed: {process.stdout.strip()}"


def case_hold():
    """For run.sh, which kills the rig under it: flows until the end."""
    with Net(rate="20mbit") as net, loaded():
        net.play([(1, 0, 60_000_000, None)])
    return "not killed"


CASES = {
    "marks": case_marks,
    "accecn": case_accecn,
    "fallback": case_fallback,
    "unmodified": case_unmodified,
    "beside-cubic": case_beside_cubic,
    "stripped": case_stripped,
    "ect-dropped": case_ect_dropped,
    "all-marked": case_all_marked,
    "loss": case_loss,
    "reordering": case_reordering,
    "mtu": case_mtu,
    "table": case_table,
    "unload": case_unload,
    "offloads": case_offloads,
}
FAULTS = {"churn": case_churn, "restored": case_restored}
HIDDEN = {"hold": case_hold}
# These keep exact account of what passes through our programs.
EXACT = {"marks", "all-marked"}


def kernel_faults():
    """Lines of the kernel's log that tell of a fault."""
    log = run("dmesg", ok=False).stdout.splitlines()
    return [line for line in log if re.search(r"WARNING:|BUG:|Oops|general protection|UBSAN|KASAN|hung task", line)]


def attempted(name, case):
    """Plays a case; one that keeps exact account of what this kernel may leave out (README) up to three times.

    What is wrong with our programs is wrong each time.
    """
    for _ in range(2 if name in EXACT else 0):
        try:
            return case()
        except Broken as broken:
            print(f"netns rig: {name}: once more: {broken}", file=sys.stderr, flush=True)
    return case()


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--marker", type=pathlib.Path, required=True)
    parser.add_argument("--cpu", type=int, required=True, help="where the traffic program and the threads run")
    parser.add_argument("--pinner", type=int, nargs=2, required=True, metavar=("ANSWERS", "REQUESTS"),
                        help="descriptors of who puts the kernel's threads there")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=[*CASES, *FAULTS, *HIDDEN])
    options = parser.parse_args()
    options.work = options.marker.resolve().parent
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run/netns")
    run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    cases = {**CASES, **(FAULTS if options.faults or options.only else {}), **(HIDDEN if options.only else {})}
    failures = done = skipped = 0
    faults = kernel_faults()
    begun = time.monotonic()
    for name, case in cases.items():
        if options.only and name not in options.only:
            continue
        start = time.monotonic()
        try:
            said = attempted(name, case)
            done += 1
            print(f"netns rig: {name}: {said} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skipped as lacking:
            skipped += 1
            print(f"skipped: netns rig: {name} ({lacking})", flush=True)
        except (Broken, subprocess.TimeoutExpired) as broken:
            failures += 1
            print(f"netns rig: {name}: FAILED: {broken}", file=sys.stderr, flush=True)
    new = kernel_faults()[len(faults):]
    if new:
        failures += 1
        print("netns rig: the kernel's log: FAILED:", *new, sep="\n", file=sys.stderr, flush=True)
    seconds = time.monotonic() - begun
    print(f"netns rig: {done} cases hold, {failures} do not, {skipped} skipped ({seconds:.0f} s)", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
