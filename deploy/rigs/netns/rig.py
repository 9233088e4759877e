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
DEPLOY = pathlib.Path(__file__).resolve().parents[2]
TABLE = DEPLOY / "core/marimo-f.table"
# Of marimo.h and marimo_tcp.h.
SLOW_START = 2
DID_ACK, DID_LOSS, DID_TIMEOUT, DID_IDLE, DID_RESTART, DID_UNDO = 1, 2, 4, 8, 16, 32

sys.path.append(str(DEPLOY / "core/oracle"))
import marimo as oracle  # noqa: E402

options = None


class Broken(Exception):
    """A check that does not hold."""


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

    def __init__(self, senders=2, rate="200mbit", limit=600_000, threshold=30_000, offloads=False):
        self.senders = [f"incast-s{number}" for number in range(1, senders + 1)]
        self.rate, self.limit, self.threshold, self.offloads = rate, limit, threshold, offloads
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
            run("ip", "-n", host, "route", "add", "default", "via", f"10.77.{number}.1")
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

    def set(self, **settings):
        """What the port does: the fields of struct port in marker.bpf.c."""
        self.port.update(settings)
        fields = ["threshold", "mark_all", "strip", "drop", "delay", "slow_class"]
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

    def ce_received(self):
        text = inside(RECEIVER, "nstat", "-asz", "IpExtInCEPkts").stdout
        return int(re.search(r"IpExtInCEPkts\s+(\d+)", text)[1])

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
        command = [options.binaries / "rig-traffic", "play", "--plan", self.plan(flows), "--congestion", congestion,
                   "--out", out, "--deadline", "120"]
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


def exact(net, rows, counters):
    """Every mark of the port was seen by the receiver, echoed, and told to the algorithm; no other one was."""
    counts = net.counts()
    port, receiver = counts["port"], counts["receiver"]
    check(net.drops() == 0 and total(rows, "retransmissions") == 0, f"drops: {net.drops()}, {rows}")
    check(port["ce_data"] > 0, f"the port marked nothing: {port}")
    check(receiver["ce_data"] == port["ce_data"], f"marked {port['ce_data']}, received {receiver['ce_data']}")
    check(net.ce_received() == port["ce_data"] + port["ce_other"], f"the receiver's IP counts {net.ce_received()}")
    echoed = total(rows, "delivered_ce")
    check(echoed == port["ce_data"], f"marked {port['ce_data']}, echoed {echoed}")
    # The acknowledgement of a FIN comes after the last look at a flow and repeats the last echo.
    told = counters["marked"]
    check(echoed <= told <= echoed + len(rows), f"echoed {echoed}, the algorithm was told {told}")
    return f"{port['ce_data']} of {port['data']} packets marked, received, echoed"


def case_marks():
    """Marks are seen, echoed exactly, and make windows shrink; the trace has every epoch."""
    with Net() as net, loaded("--trace-acks"), trace() as entries:
        rows = net.play([(1, 0, 6_000_000, None), (2, 0, 6_000_000, None)])
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
    return f"{said}; {counters['epochs']} epochs, {counters['decreases']} decreases; {acks} decisions replayed by the oracle"


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
            if events & (DID_RESTART | DID_UNDO):
                # Not the algorithm's doing but TCP's: taken over.
                twin.window, twin.threshold = kernel[0], threshold
                twin.phase = "slow start" if slow_start else "avoidance"
            if events & DID_UNDO:
                twin.estimator.rho, twin.episode = kernel[1], None
        else:
            continue
        ours = [twin.window, twin.estimator.rho, twin.epochs]
        check(ours == kernel and twin.threshold == threshold, f"the oracle has {ours}, {twin.threshold}: {entry}")
    return told


CASES = {"marks": case_marks}
FAULTS = {}


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--marker", type=pathlib.Path, required=True)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=[*CASES, *FAULTS])
    options = parser.parse_args()
    options.work = options.marker.resolve().parent
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run/netns") if os.path.isdir("/run/netns") else None
    if not os.path.ismount("/run/netns"):
        os.makedirs("/run/netns", exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run/netns")
    run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    cases = {**CASES, **(FAULTS if options.faults or options.only else {})}
    failures = 0
    for name, case in cases.items():
        if options.only and name not in options.only:
            continue
        start = time.monotonic()
        try:
            said = case()
            print(f"netns rig: {name}: {said} ({time.monotonic() - start:.1f} s)", flush=True)
        except (Broken, subprocess.TimeoutExpired) as broken:
            failures += 1
            print(f"netns rig: {name}: FAILED: {broken}", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
