# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a run left behind, on either side, and what of it must agree."""

import csv
import json
import math

from errors import BadInput, Contradiction
from values import quantity


def simulated(folder):
    """What a run of the simulator left behind."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise BadInput("the Python module pyarrow is missing: run rigs/compare/run.sh, which installs it") from None
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


def requests(rows, fct):
    """Of each class with requests, their completion times (us), from the start of the first flow to the end of the last; None
    for unfinished ones."""
    found = {}
    for row, time in zip(rows, fct):
        if row.get("request"):
            start = int(row["start_ps"]) / 1e6
            end = math.inf if time is None else start + time
            first, last = found.setdefault(row["class"], {}).get(row["request"], (start, end))
            found[row["class"]][row["request"]] = min(first, start), max(last, end)
    return {name: [None if last == math.inf else last - first for first, last in of.values()] for name, of in found.items()}


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


def check_same(flows, rows, folder):
    """What `incast flows` lists and what the simulator ran are the same flows."""
    ran = [(f["src"], f["dst"], f["size_bytes"], f["start_ps"], f["class"]) for f in flows]
    listed = [(r["src"], r["dst"], int(r["size_bytes"]), int(r["start_ps"]), r["class"]) for r in rows]
    if ran != listed:
        raise Contradiction(f"{folder}: the simulated flows are not those that `incast flows` lists")


def check_echo(run, folder):
    """Where the echo is exact, senders know of each mark, but for packets of the handshake and those that came twice. Senders
    of flows that did not finish may not have heard of the last ones."""
    slack = run["retransmissions"] + 2 * len(run["fct"])
    more = run["delivered_ce"] - run["marks"]
    if more > slack or (more < -slack and None not in run["fct"]):
        raise Contradiction(
            f"{folder}: {run['marks']} packets were marked, and senders heard of {run['delivered_ce']} (allowed: ± {slack})"
        )
