#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A real kernel beside the simulator, on the same flows.

Runs scenarios (scenarios/hosts/*.toml) in the simulator, plays the flows of each run on a rig, which is a program that
takes a folder with `rig.json` and `plan.csv` and leaves `FLOWS.csv` and raw counters in it, and prints both next to
each other: completion times, retransmissions, marks, queue, each with its 95% confidence interval over seeds.

Exit codes: 0 done; 1 a run failed or its counters contradict each other; 2 bad input.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Two-sided 95% quantiles of Student's t by degrees of freedom; beyond the table the last one, which is at most 4% too large.
T_95 = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
]

# Segments of a TCP connection are at most this without its header and time stamps.
HEADERS = 20 + 20 + 12
ETHERNET = 14

# Laws whose echo of marks is exact, so that senders know of each mark.
EXACT_ECHO = {"marimo", "dctcp"}


class BadInput(Exception):
    """What the user gave is wrong."""


class Missing(Exception):
    """The rig says that this machine lacks what it needs."""


class Contradiction(Exception):
    """Counters of one run do not agree."""


# ---------------------------------------------------------------------------------------------------------------------
# Quantities of scenarios


UNITS = {
    "time": {"ps": 1, "ns": 1000, "us": 10**6, "ms": 10**9, "s": 10**12},
    "size": {"B": 1, "KB": 1000, "MB": 10**6, "GB": 10**9, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30},
    "rate": {"bps": 1, "Kbps": 1000, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12},
}


def quantity(kind, text, where):
    """A quantity such as "125us" as a whole number of ps, bytes or bit/s."""
    text = str(text).strip()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(digits):]
    if unit not in UNITS[kind]:
        raise BadInput(f"{where}: found {text!r}, expected a {kind} in {', '.join(UNITS[kind])}")
    try:
        whole, _, part = digits.strip().partition(".")
        scaled = int(whole + part) * UNITS[kind][unit]
        value, rest = divmod(scaled, 10 ** len(part))
    except ValueError:
        raise BadInput(f"{where}: found {text!r}, expected a {kind}") from None
    if rest:
        raise BadInput(f"{where}: {text!r} is not a whole number of the smallest unit")
    return value


# ---------------------------------------------------------------------------------------------------------------------
# The simulator


class Simulator:
    """The command `incast`."""

    def __init__(self, command):
        self.command = command

    def call(self, *arguments):
        done = subprocess.run([self.command, *arguments], capture_output=True, text=True)
        if done.returncode == 2:
            raise BadInput(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            raise RuntimeError(f"incast {' '.join(arguments)}\n{done.stderr.strip()}")
        return done.stdout

    def run(self, scenario, out, options):
        """Simulates; the folders of the runs, with what run.json says."""
        self.call("run", str(scenario), "--out", str(out), "--quiet", "--force", *options)
        name = tomllib.loads(scenario.read_text())["name"]
        runs = []
        for path in sorted((out / name).glob("*/run.json")):
            run = json.loads(path.read_text())
            if run["status"] != "done":
                raise RuntimeError(f"{path.parent}: {run['status']}")
            runs.append((path.parent, run))
        return name, runs

    def flows(self, scenario, run, sets, short):
        """The flows of a run, as rows."""
        arguments = ["flows", str(scenario), "--scheme", run["scheme"], "--seed", str(run["seed"])]
        arguments += ["--short"] if short else []
        for pair in sets:
            arguments += ["--set", pair]
        for path, value in run["grid"].items():
            arguments += ["--only", f"{path}={plain(value)}"]
        return list(csv.DictReader(self.call(*arguments).splitlines()))


def plain(value):
    return value if isinstance(value, str) else json.dumps(value)


def simulated(folder):
    """What a run of the simulator left behind."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise BadInput("the Python module pyarrow is missing: run deploy/rigs/compare/run.sh, which installs it") from None
    flows = parquet.read_table(folder / "flows.parquet").to_pylist()
    mtu = quantity("size", json.loads((folder / "run.json").read_text())["scenario"]["host"]["mtu"], "host.mtu")
    queue = []
    if (folder / "ports.parquet").exists():
        queue = [row["queue_bytes"] for row in parquet.read_table(folder / "ports.parquet").to_pylist()]
    return flows, {
        "fct": [None if f["fct_delivered_ps"] is None else f["fct_delivered_ps"] / 1e6 for f in flows],
        "class": [f["class"] for f in flows],
        "retransmissions": sum(-(-f["retransmitted_bytes"] // mtu) for f in flows),
        "marks": sum(f["marked_packets"] for f in flows),
        "queue": sum(queue) / len(queue) if queue else None,
        "queue_max": max(queue) if queue else None,
    }


# ---------------------------------------------------------------------------------------------------------------------
# What a rig is told


ANY = object()

# What scenarios may say: the values that a rig has, or `ANY` where it is told. All else would act on one side only. None is
# a key that is not there.
HOST = {
    "mtu": ANY,
    "rto_min": ANY,
    "ack_every": [2],
    # A kernel allows two ticks in a tail-loss probe and holds an acknowledgement for 40 ms; ours is one key.
    "ack_delay": ["2ms", "40ms"],
    "quick_acks": [16],
    "echo": ["flag"],
    # HZ is 1000.
    "timer_tick": ["1ms"],
    "handshake": [True],
    "frames": {"header": ["66B"], "control": ["66B"], "smallest": ["60B"]},
    "recovery": [None, "selective-repeat"],
    "answer_delay": ["0ps"],
    "notification_delay": ["0ps"],
    "answers_first": [True],
    "clock": {"offset": ["0ps"], "drift_ppm": [0], "noise": ["0ps"]},
}
SWITCH = {
    "buffer": {"per_port": ANY},
    "ecn": {"kind": ANY, "at": ANY},
    "ecn_at": ["enqueue"],
    "priorities": [1],
    "virtual_channels": [1],
    "pfc": ["off"],
    "credits": [False],
    "trim": [False],
    "agent": ["none"],
    "load_balancing": ["ecmp"],
    "ties": ["seeded"],
}
WORLD = {
    "profile": ["faithful"],
    "warmup": ["0ps"],
    "event": [None],
    "wire": {"gap": ANY, "rounding": [None, "exact"]},
    "topology": {"kind": ANY, "hosts": ANY, "link": {"rate": ANY, "delay": ANY, "loss": [None, 0]}},
}
SCHEME = {
    "law": ANY, "name": ANY, "by_class": ANY, "initial_window": ANY,
    "priority": [0], "ack_priority": [0], "notification_priority": [0],
}


def laws(mtu, base_rtt):
    """Parameters of laws, as above. Of Linux's own laws a rig sets none: they are what the kernel has, or stand for it."""
    return {
        "marimo": {
            **{key: ANY for key in MARIMO},
            "table": ANY,
            "fractional": [False],
            # The module goes by the timeout, of which this is about one.
            "idle_after": [f"{max(10**9, 4 * base_rtt)}ps"],
        },
        "dctcp": {"gain": [0.0625], "initial_alpha": [1], "min_window": [f"{2 * mtu}B"], "whole_packets": [True]},
        "cubic": {
            "ecn": ANY, "beta": [0.7], "steepness": [0.4], "fast_convergence": [True], "hystart": [True],
            "hystart_min_threshold": ["4ms"], "hystart_max_threshold": ["16ms"],
        },
        "bbr": {
            "initial_rtt": [f"{base_rtt}ps"], "min_window": [f"{4 * mtu}B"], "send_quantum": [f"{mtu}B"],
            "high_gain": [2.8853900817779268], "drain_gain": [0.75], "probe_gain": [1.25], "cwnd_gain": [2],
            "btlbw_window": [10], "rtprop_window": ["10s"], "probe_rtt_duration": ["200ms"],
            "full_pipe_growth": [1.25], "full_pipe_rounds": [3],
            "ack_aggregation": [False, True], "pacing_margin": [0, 0.01],
        },
    }


def thousandths(value):
    return whole(value * 1000, "whole thousandths")


def whole(value, kind="whole packets"):
    rounded = round(value)
    if abs(value - rounded) > 1e-9:
        raise ValueError(kind)
    return rounded


def halvings(value):
    return whole(-math.log2(value), "a power of 1/2")


# Parameters of Marimo that the module has, and how: its name, and its integer or word.
MARIMO = {
    "rule": ("rule", str),
    "decrease_from": ("decrease_from", str),
    "slow_start": ("slow_start", str),
    "settle": ("settle", whole),
    "increase": ("increase", whole),
    "max_increase": ("max_increase", whole),
    "increase_below": ("increase_below", thousandths),
    "decrease_above": ("decrease_above", thousandths),
    "target": ("target", thousandths),
    "max_decrease": ("max_decrease", thousandths),
    "loss_load": ("loss_load", thousandths),
    "loss_decrease": ("loss_decrease", thousandths),
    "beta": ("beta_shift", halvings),
    "forget": ("forget", int),
    "min_epoch": ("min_epoch", whole),
}


def canonical(value):
    """A quantity as a number of its smallest unit, all else as it is."""
    if isinstance(value, str):
        for kind in UNITS:
            try:
                return kind, quantity(kind, value, "")
            except BadInput:
                pass
    return value


def only(where, found, allowed):
    """Refuses, by name, whatever a rig would not do."""
    for key, value in found.items():
        if key not in allowed:
            raise BadInput(f"{where}{key}: found {plain(value)}; a rig has nothing of the kind")
    for key, values in allowed.items():
        value = found.get(key)
        if isinstance(values, dict):
            only(f"{where}{key}.", value or {}, values)
        elif values is not ANY and canonical(value) not in [canonical(one) for one in values]:
            has = " or ".join(plain(one) for one in values if one is not None) or "nothing"
            raise BadInput(f"{where}{key}: found {'nothing' if value is None else plain(value)}; a rig has {has}")


def schemes_of(run, rows):
    """The law's parameters of each class that has flows, with where they stand."""
    scheme, found = run["scenario"]["scheme"][0], {}
    for name, law in sorted({(row["class"], row["law"]) for row in rows}):
        refined = scheme.get("by_class", {}).get(name, {})
        # One with a law of its own takes over nothing.
        found[name] = law, refined if "law" in refined else {**scheme, **refined}
    return found


def check_supported(run, rows, mtu, base_rtt):
    scenario = run["scenario"]
    only("", {key: scenario[key] for key in WORLD if key in scenario}, WORLD)
    only("host.", scenario["host"], HOST)
    only("switch.", scenario["switch"], SWITCH)
    known = laws(mtu, base_rtt)
    for name, (law, parameters) in schemes_of(run, rows).items():
        if law not in known:
            raise BadInput(f"scheme {run['scheme']}: found the law {law}; a rig has {', '.join(known)}")
        only(f"scheme {run['scheme']}, class {name}: ", parameters, {**SCHEME, **known[law]})


def marimo(run, rows, beside):
    """The module's parameters and the text of its table, if it is not the bundled one. All connections share them."""
    found = []
    for name, (law, parameters) in schemes_of(run, rows).items():
        if law != "marimo":
            continue
        words = {}
        for key, (theirs, convert) in MARIMO.items():
            try:
                words[theirs] = convert(parameters[key])
            except ValueError as error:
                raise BadInput(
                    f"scheme {run['scheme']}, class {name}: {key}: found {plain(parameters[key])}; the module has {error}"
                ) from None
        words["initial_window"] = initial_window(run, quantity("size", run["scenario"]["host"]["mtu"], "host.mtu"))
        if (words, parameters["table"]) not in found:
            found.append((words, parameters["table"]))
    if not found:
        return {}, None
    if len(found) > 1:
        raise BadInput(f"scheme {run['scheme']}: its classes have Marimo with different parameters; a module has one set")
    words, table = found[0]
    if table == "calibrated":
        return words, None
    try:
        return words, (beside / table).read_text()
    except OSError as error:
        raise BadInput(f"scheme {run['scheme']}: table: a rig takes \"calibrated\" or a file: {error}") from None


def rig_settings(run, rows):
    """`rig.json`: the scenario of a run as a rig of real hosts has it. What a rig cannot do is refused by name."""
    scenario = run["scenario"]
    topology, switch, host = scenario["topology"], scenario["switch"], scenario["host"]
    if topology["kind"] != "single-switch":
        raise BadInput(f"topology.kind: found {topology['kind']!r}, a rig has one switch: \"single-switch\"")
    if switch["ecn"]["kind"] != "step":
        raise BadInput(f"switch.ecn: found {switch['ecn']['kind']!r}, a rig marks as \"step\" does")
    per_port = switch["buffer"].get("per_port")
    if per_port is None:
        raise BadInput("switch.buffer: a rig's port has memory of its own: { per_port = … }")
    receivers = sorted({row["dst"] for row in rows})
    if receivers != ["h0"]:
        raise BadInput(f"flows go to {', '.join(receivers)}; a rig has one congested port, that to h0")
    rate = quantity("rate", topology["link"]["rate"], "topology.link.rate")
    delay = quantity("time", topology["link"]["delay"], "topology.link.delay")
    mtu = quantity("size", host["mtu"], "host.mtu")
    at = quantity("size", switch["ecn"]["at"], "switch.ecn.at")
    rto_min = quantity("time", host["rto_min"], "host.rto_min")
    if rto_min < 10**9 or rto_min % 10**9:
        raise BadInput(f"host.rto_min: found {host['rto_min']!r}; routes hold whole milliseconds, at least 1ms")
    gap = quantity("size", scenario["wire"].get("gap", "20B"), "wire.gap")
    # A full packet one way, its acknowledgement the other, over two links each.
    frames = mtu + HEADERS + ETHERNET + gap, HEADERS + ETHERNET + gap
    base_rtt = 4 * delay + 2 * sum(-(-8 * 10**12 * frame // rate) for frame in frames)
    check_supported(run, rows, mtu, base_rtt)
    settings = {
        "hosts": topology["hosts"],
        "bottleneck_rate_bps": rate,
        "host_rate_bps": rate,
        # Four links: there and back.
        "rtt_ns": 4 * delay // 1000,
        # The marks of a step: everything above `min`, with the shortest memory that `tc` can give the average. What is not
        # ECN-capable is not dropped for it (nodrop), as in the simulator.
        "red": {
            "min": at,
            "max": at + 1,
            "probability": 1.0,
            "limit": quantity("size", per_port, "switch.buffer.per_port"),
            "avpkt": mtu + HEADERS + ETHERNET,
            "burst": -(-at // (mtu + HEADERS + ETHERNET)),
            "ecn": True,
            "nodrop": True,
        },
        "buffer_bytes": quantity("size", per_port, "switch.buffer.per_port"),
        "frame_overhead_bytes": gap,
        # Where classes differ, each row of the plan has its own.
        "congestion": rows[0]["law"],
        "plan": "plan.csv",
        # As long as the simulation, in the rig's whole seconds.
        "deadline_s": -(-end_ps(run) // 10**12),
        "seed": run["seed"],
        "mtu": mtu + HEADERS,
        "offloads": False,
        "trace": False,
        "sysctls": {
            # Windows of receivers must not be what limits a flow.
            "net.ipv4.tcp_rmem": "4096 4194304 16777216",
            "net.ipv4.tcp_wmem": "4096 4194304 16777216",
            "net.ipv4.tcp_ecn": "1" if speaks_ecn(run, rows) else "0",
            "net.ipv4.tcp_no_metrics_save": "1",
            "net.ipv4.tcp_slow_start_after_idle": "1",
        },
        "route": {"rto_min_us": rto_min // 10**6, "initcwnd": initial_window(run, mtu), "quickack": False},
    }
    return settings


def end_ps(run):
    """When a simulation ends, finished or not."""
    return sum(quantity("time", run["scenario"][key], key) for key in ("duration", "drain"))


def speaks_ecn(run, rows):
    """Whether the flows are ECN-capable: all or none, as hosts speak it or do not."""
    capable = {law in EXACT_ECHO or bool(parameters.get("ecn", False)) for law, parameters in schemes_of(run, rows).values()}
    if len(capable) != 1:
        raise BadInput(f"scheme {run['scheme']}: some classes speak ECN and some do not; hosts of a rig all do or none")
    return capable.pop()


def initial_window(run, mtu):
    """Segments of a new flow's window, which all laws of a run must share: routes tell hosts, not laws."""
    scheme = run["scenario"]["scheme"][0]
    windows = [scheme.get("initial_window")]
    windows += [refined["initial_window"] for refined in scheme.get("by_class", {}).values() if "initial_window" in refined]
    sizes = {None if window is None else quantity("size", window, "initial_window") for window in windows}
    if len(sizes) != 1 or None in sizes or next(iter(sizes)) % mtu:
        raise BadInput(f"scheme {run['scheme']}: initial_window must be given, in whole segments of {mtu} bytes, the same for all classes")
    return next(iter(sizes)) // mtu


def plan(rows):
    """`plan.csv`: the flows as the rig's traffic program reads them. Hosts are namespaces of their names; h5 is 10.0.5.1."""
    mixed = len({row["law"] for row in rows}) > 1
    lines = ["flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"]
    lines[0] += ",congestion" if mixed else ""
    for row in rows:
        source, destination = (int(row[end].removeprefix("h")) for end in ("src", "dst"))
        lines.append(
            f"{row['flow']},{row['src']},{address(source)},{row['dst']},{address(destination)},"
            f"{PORT_BASE + int(row['flow'])},{round(int(row['start_ps']) / 1000)},{row['size_bytes']}"
            + (f",{row['law']}" if mixed else "")
        )
    return "\n".join(lines) + "\n"


PORT_BASE = 10000


def address(host):
    return f"10.0.{host // 250}.{host % 250 + 1}"


# ---------------------------------------------------------------------------------------------------------------------
# The rig


# Exit codes of a rig.
MISSING, UNFINISHED = 3, 4


class Rig:
    """A program that plays `rig.json` and `plan.csv` of a folder on real hosts and leaves what came of it there."""

    def __init__(self, command):
        self.command = shlex.split(command)
        self.fingerprint = self.ask()

    def ask(self):
        """What the rig's results depend on besides its input: kernel, module, the rig itself."""
        done = subprocess.run([*self.command, "--fingerprint"], capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        if done.returncode == MISSING:
            raise Missing(said)
        words = done.stdout.split()
        if done.returncode != 0 or len(words) != 1:
            raise RuntimeError(f"{' '.join(self.command)} --fingerprint ended with {done.returncode}: expected one hash, "
                               f"found {said!r}")
        return words[0]

    def play(self, folder, settings, files):
        """Plays unless the folder holds the results of exactly this."""
        texts = {"rig.json": json.dumps(settings, indent=1, sort_keys=True) + "\n", **files}
        stamp = hashlib.sha256(json.dumps([texts, self.command, self.fingerprint]).encode()).hexdigest()
        done = folder / "done"
        if done.exists() and done.read_text() == stamp:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for old in [path for path in folder.iterdir() if path.is_file()]:
            old.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)
        with open(folder / "rig.log", "w") as log:
            code = subprocess.call([*self.command, str(folder / "rig.json"), str(folder)], stdout=log, stderr=log)
        if code == MISSING:
            raise Missing((folder / "rig.log").read_text().strip())
        # Flows that did not finish are a result: `ok` says so of each.
        if code not in (0, UNFINISHED):
            last = (folder / "rig.log").read_text().strip().splitlines()[-1:]
            raise RuntimeError(f"{folder}: the rig ended with {code}: {' '.join(last)}")
        done.write_text(stamp)


def tc_counters(folder):
    """Marks and drops of the congested port: those of its RED, of `tc -s -j qdisc show`."""
    found = []
    for path in sorted(folder.glob("tc*.json")):
        for qdisc in json.loads(path.read_text() or "[]"):
            if qdisc.get("kind") == "red":
                found.append(qdisc)
    if len(found) != 1:
        raise Contradiction(f"{folder}: {len(found)} RED queues in tc*.json, expected one")
    return found[0]


def nstat_sum(folder, counter):
    """A counter of `nstat -az`, summed over the namespaces, each of which has a file."""
    total, files = 0, sorted(folder.glob("nstat*.txt"))
    if not files:
        raise Contradiction(f"{folder}: there is no nstat*.txt")
    for path in files:
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] == counter:
                total += int(words[1])
    return total


def real(folder, rows, until_ns=math.inf):
    """What a run of the rig left behind. Its counters must agree with one another. What ends after `until_ns` is unfinished."""
    with open(folder / "FLOWS.csv", newline="") as file:
        played = {int(row["flow"]): row for row in csv.DictReader(file)}
    if sorted(played) != [int(row["flow"]) for row in rows]:
        raise Contradiction(f"{folder}: FLOWS.csv has {len(played)} flows, the plan {len(rows)}")
    fct, classes = [], []
    for row in rows:
        flow = played[int(row["flow"])]
        finished = flow["ok"] == "1"
        # Of a flow that did not finish less than all has come.
        if finished and int(flow["bytes"]) != int(row["size_bytes"]):
            raise Contradiction(f"{folder}: flow {row['flow']} had {flow['bytes']} bytes instead of {row['size_bytes']}")
        finished = finished and int(flow["end_ns"]) <= until_ns
        # From when the connection was asked for, the handshake included: in virtual time about a microsecond after the time
        # of the plan, at most 123 us.
        fct.append((int(flow["end_ns"]) - int(flow["start_ns"])) / 1e3 if finished else None)
        classes.append(row["class"])
    red = tc_counters(folder)
    marked, overflowed = int(red.get("marked", 0)), int(red.get("pdrop", 0))
    received = nstat_sum(folder, "IpExtInCEPkts")
    # Linux marks a packet before it knows whether there is room for it.
    if not received <= marked <= received + overflowed:
        raise Contradiction(
            f"{folder}: the queue marked {marked} packets and had no room for {overflowed}, and hosts received {received} with CE"
        )
    delivered = sum(int(flow["delivered_ce"]) for flow in played.values())
    queue = []
    if (folder / "queue.csv").exists():
        with open(folder / "queue.csv", newline="") as file:
            queue = [int(row["backlog_bytes"]) for row in csv.DictReader(file)]
    return {
        "fct": fct,
        "class": classes,
        "retransmissions": sum(int(flow["retransmissions"]) for flow in played.values()),
        "marks": received,
        "drops": overflowed + int(red.get("early", 0)),
        "delivered_ce": delivered,
        "queue": sum(queue) / len(queue) if queue else None,
        "queue_max": max(queue) if queue else None,
        "raw": {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.suffix in (".json", ".txt")},
    }


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def percentile(values, share):
    """Nearest rank; unfinished flows (None) are the slowest, and a percentile among them is None."""
    order = sorted(math.inf if value is None else value for value in values)
    if not order:
        return None
    value = order[max(0, math.ceil(share * len(order)) - 1)]
    return None if value == math.inf else value


def interval(values):
    """Mean and half of its 95% confidence interval over seeds; None among the values makes it None."""
    if not values or any(value is None for value in values):
        return None, None
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    quantile = T_95[min(len(values) - 1, len(T_95)) - 1]
    return mean, quantile * math.sqrt(variance / len(values))


def ratio(reals, simulateds):
    """Real over simulated, seed by seed, as both have the same flows: geometric mean and its 95% confidence interval."""
    pairs = list(zip(reals, simulateds))
    if not pairs or any(r is None or s is None or r <= 0 or s <= 0 for r, s in pairs):
        return None
    mean, half = interval([math.log(r / s) for r, s in pairs])
    half = half or 0.0
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


METRICS = [
    ("p50", "FCT p50 (us)", lambda run: percentile(run["fct"], 0.5)),
    ("p99", "FCT p99 (us)", lambda run: percentile(run["fct"], 0.99)),
    ("retransmissions", "retransmissions", lambda run: run["retransmissions"]),
    ("marks", "marks", lambda run: run["marks"]),
    ("queue", "queue (KB)", lambda run: None if run["queue"] is None else run["queue"] / 1e3),
    ("queue_max", "longest (KB)", lambda run: None if run["queue_max"] is None else run["queue_max"] / 1e3),
]


TIMED, COUNTED = METRICS[:2], METRICS[2:]


def restricted(run, name):
    """A run with the flows of one class only."""
    chosen = [fct for fct, other in zip(run["fct"], run["class"]) if other == name]
    # What is counted at the queue and of hosts is of all classes.
    shared = {key: None for key in ("retransmissions", "marks", "queue", "queue_max")}
    return {**run, **shared, "fct": chosen, "class": [name] * len(chosen)}


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def cell(values):
    mean, half = interval(values)
    if mean is None:
        finished = sum(value is not None for value in values)
        return f"unfinished in {len(values) - finished} of {len(values)}"
    return number(mean) + (f" ± {number(half)}" if half else "")


def table(points):
    """Markdown: for each grid point and scheme a line of the kernel, one of the simulator, and their ratio."""
    lines = [
        "| scheme | | " + " | ".join(title for _, title, _ in METRICS) + " |",
        "|---|---|" + "---|" * len(METRICS),
    ]
    for point in points:
        for who, runs in (("kernel", point["real"]), ("simulated", point["simulated"])):
            if not runs:
                continue
            label = point["label"] if who == "kernel" or not point["real"] else ""
            cells = [cell([of(run) for run in runs]) for _, _, of in TIMED]
            cells += [counted([of(run) for run in runs]) for _, _, of in COUNTED]
            lines.append(f"| {label} | {who} | " + " | ".join(cells) + " |")
        if point["real"]:
            cells = []
            for _, _, of in METRICS if point["real"][0]["marks"] is not None else TIMED:
                cells.append(between(ratio([of(run) for run in point["real"]], [of(run) for run in point["simulated"]])))
            cells += [""] * (len(METRICS) - len(cells))
            lines.append("| | ratio | " + " | ".join(cells) + " |")
    return lines


def counted(values):
    """As `cell`, of what may not have been measured."""
    return cell(values) if all(value is not None for value in values) else ""


def between(found):
    return "–" if found is None else f"{found[0]:.2f} ({found[1]:.2f}–{found[2]:.2f})"


def compact(points):
    """Markdown for a page: a line for each grid point and scheme, completion times in full, of the rest both means."""
    titles = ["scheme"]
    for _, title, _ in TIMED:
        titles += [f"{title}: kernel", "simulated", "ratio"]
    titles += [f"{title}: kernel, simulated" for _, title, _ in COUNTED]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for point in points:
        cells = [point["label"]]
        for _, _, of in TIMED:
            reals, ours = [of(run) for run in point["real"]], [of(run) for run in point["simulated"]]
            cells += [cell(reals) if reals else "–", cell(ours), between(ratio(reals, ours))]
        for _, _, of in COUNTED:
            means = [interval([of(run) for run in runs])[0] for runs in (point["real"], point["simulated"])]
            cells.append("" if None in means else ", ".join(number(mean) for mean in means))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Pages


def begin(name):
    return f"<!-- hosts {name} -->"


END = "<!-- end of hosts -->"


def update(page, name, body):
    """Rewrites the table of a scenario in a page."""
    text = page.read_text()
    start = text.find(begin(name))
    if start < 0:
        return False
    stop = text.find(END, start)
    if stop < 0:
        raise BadInput(f"{page}: after {begin(name)} there is no {END}")
    text = text[: start + len(begin(name))] + "\n" + body.rstrip() + "\n" + text[stop:]
    temporary = page.with_suffix(page.suffix + ".tmp")
    temporary.write_text(text)
    os.replace(temporary, page)
    return True


# ---------------------------------------------------------------------------------------------------------------------
# All of it


def check_same(flows, rows, folder):
    """What `incast flows` lists and what the simulator ran are the same flows."""
    ran = [(f["src"], f["dst"], f["size_bytes"], f["start_ps"], f["class"]) for f in flows]
    listed = [(r["src"], r["dst"], int(r["size_bytes"]), int(r["start_ps"]), r["class"]) for r in rows]
    if ran != listed:
        raise Contradiction(f"{folder}: the simulated flows are not those that `incast flows` lists")


def compare(scenario, arguments):
    """One scenario; its name, the lines of its table, those for pages, what it is of, and what contradicted itself."""
    out = arguments.out.resolve()
    simulator = Simulator(arguments.incast)
    options = [word for pair in arguments.set for word in ("--set", pair)]
    options += [word for only in arguments.only for word in ("--only", only)]
    options += ["--seeds", str(arguments.seeds)] if arguments.seeds else []
    options += ["--short"] if arguments.short else []
    rig = Rig(arguments.rig) if arguments.rig else None
    name, runs = simulator.run(scenario, out / "simulated", options)
    points, errors, rows_out, prepared = {}, [], [], []
    for folder, run in runs:
        rows = simulator.flows(scenario, run, arguments.set, arguments.short)
        flows, ours = simulated(folder)
        check_same(flows, rows, folder)
        settings = rig_settings(run, rows)
        files = {"plan.csv": plan(rows)}
        settings["parameters"], knots = marimo(run, rows, scenario.resolve().parent)
        if knots is not None:
            settings["table"], files["marimo.table"] = "marimo.table", knots
        place = out / "kernel" / name / folder.name
        prepared.append((folder, run, rows, ours, settings, files, place))
    # As the scenario has them: grid points, schemes, seeds.
    schemes = [scheme.get("name", scheme["law"]) for scheme in tomllib.loads(scenario.read_text())["scheme"]]
    prepared.sort(key=lambda it: (list(it[1]["grid"].values()), schemes.index(it[1]["scheme"]), it[1]["seed"]))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Faults come out below, run by run.
        played = [pool.submit(rig.play, place, settings, files) if rig else None
                  for _, _, _, _, settings, files, place in prepared]
    for (folder, run, rows, ours, settings, _, place), task in zip(prepared, played):
        # How many hosts there are follows from the traffic.
        shown = {path: value for path, value in run["grid"].items() if not path.startswith("topology.")}
        grid = ", ".join(f"{path.split('.')[-1]} {plain(value)}" for path, value in shown.items())
        classes = sorted({row["class"] for row in rows})
        theirs = None
        if rig:
            try:
                task.result()
                theirs = real(place, rows, end_ps(run) // 1000)
                for law in {row["law"] for row in rows}:
                    if law in EXACT_ECHO and len({row["law"] for row in rows}) == 1:
                        check_echo(theirs, place)
            except (Contradiction, RuntimeError, OSError, ValueError, KeyError) as error:
                errors.append(f"{type(error).__name__}: {error}")
                theirs = None
        rows_out.append({"scheme": run["scheme"], "seed": run["seed"], "grid": run["grid"], "settings": settings,
                         "simulated": ours, "kernel": theirs})
        if rig and theirs is None:
            continue
        for part in [None, *(classes if len(classes) > 1 else [])]:
            label = ", ".join(filter(None, [run["scheme"], grid, part]))
            point = points.setdefault(label, {"label": label, "real": [], "simulated": []})
            point["simulated"].append(ours if part is None else restricted(ours, part))
            if theirs:
                point["real"].append(theirs if part is None else restricted(theirs, part))
    versions = sorted({row["kernel"]["raw"]["srcversion.txt"].strip() for row in rows_out
                       if row["kernel"] and "srcversion.txt" in row["kernel"]["raw"]})
    if len(versions) > 1:
        errors.append(f"Contradiction: {name}: its runs are of different modules, srcversions {', '.join(versions)}")
    lines = table(list(points.values()))
    note = summary_line(name, rows_out, rig)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(rows_out, indent=1) + "\n")
    (out / f"{name}.md").write_text("\n".join(lines) + "\n\n" + note + "\n")
    return name, lines, compact(list(points.values())), note, errors


def check_echo(run, folder):
    """Where the echo is exact, senders know of each mark, but for packets of the handshake and those that came twice. Senders
    of flows that did not finish may not have heard of the last ones."""
    slack = run["retransmissions"] + 2 * len(run["fct"])
    more = run["delivered_ce"] - run["marks"]
    if more > slack or (more < -slack and None not in run["fct"]):
        raise Contradiction(
            f"{folder}: {run['marks']} packets were marked, and senders heard of {run['delivered_ce']} (allowed: ± {slack})"
        )


def summary_line(name, rows, rig):
    seeds = sorted({row["seed"] for row in rows})
    kernels = sorted({line for row in rows if row["kernel"] for key, line in row["kernel"]["raw"].items() if "uname" in key})
    text = f"{name}: {len(rows)} runs, seeds {seeds[0]} to {seeds[-1]}; mean and 95% confidence interval over seeds."
    if rig and kernels:
        text += " Kernel: " + "; ".join(kernel.strip() for kernel in kernels) + "."
    if not rig:
        text += " Simulated alone."
    return text


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="See docs/hosts.md, Beside a real kernel.")
    parser.add_argument("scenarios", nargs="*", type=pathlib.Path, metavar="SCENARIO.toml",
                        help="default: scenarios/hosts/*.toml")
    parser.add_argument("--rig", default=None, metavar="COMMAND",
                        help="called with RIG.json and a folder; without it the simulator runs alone")
    parser.add_argument("--incast", default=str(ROOT / "target/release/incast"), metavar="FILE", help="the simulator")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "results/hosts", metavar="DIR")
    parser.add_argument("--seeds", type=int, default=None, metavar="N", help="the scenario's first N")
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE,…", help="as of `incast run`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of `incast run`")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs of the rig at once")
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--update", action="append", type=pathlib.Path, default=[], metavar="FILE",
                        help="rewrite the tables in this page, each between <!-- hosts NAME --> and " + END)
    return parser.parse_args(words)


def main(words):
    arguments = arguments_of(words)
    scenarios = arguments.scenarios or sorted((ROOT / "scenarios/hosts").glob("*.toml"))
    failed = False
    try:
        for page in arguments.update:
            if not page.is_file():
                raise BadInput(f"--update {page}: there is no such file")
        for scenario in scenarios:
            if not scenario.is_file():
                raise BadInput(f"{scenario}: there is no such file")
            name, lines, short, note, errors = compare(scenario, arguments)
            print("\n".join(lines) + f"\n\n{note}\n", flush=True)
            for error in errors:
                print(f"error: {error}", file=sys.stderr)
            failed |= bool(errors)
            for page in arguments.update:
                if not errors and not update(page, name, "\n" + "\n".join(short) + f"\n\n{note}\n"):
                    print(f"{page}: has no table of {name}", file=sys.stderr)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Missing as error:
        if os.environ.get("CI") == "true":
            print(f"error: the rig cannot run here: {error}", file=sys.stderr)
            return 1
        print(f"skipped: the comparison with a real kernel ({error})")
        return 0
    except (Contradiction, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
