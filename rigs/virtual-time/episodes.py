#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether losses, timeouts and what was undone of them are the same in the trace and in the kernel's counters.

usage: episodes.py FOLDER [loss] [timeout] [undo]

Checked: the flows that ended as Marimo's are those whose senders are in the trace; of each host, each recovery of the
kernel was told to Marimo as one loss (a loss that only a probe saw may come on top), and there are no more timeouts
and undos in the trace than the kernel counted; what is undone gives back at least the window and the threshold of
before the loss; no connection ends within a recovery. Each kind that is named must have occurred.

The kernel counts by host, Marimo's connections and those that fell back (a SYN that is sent again does without ECN)
together. Where a host has such senders, as many of its recoveries may be missing in the trace as these sent segments
again.
Exit codes: 0 all that holds; 1 something does not; 2 bad input.
"""

import collections
import csv
import json
import pathlib
import sys

sys.dont_write_bytecode = True
import replay  # noqa: E402
from plan import address  # noqa: E402
from reconcile import counters  # noqa: E402

KINDS = {"loss": replay.LOSS, "timeout": replay.TIMEOUT, "undo": replay.UNDO}
# TCP_CA_Recovery, TCP_CA_Loss.
RECOVERING = (3, 4)


def undone(events):
    """What is wrong with the undos of a connection, and how many could be checked."""
    faults, checked, before, last = [], 0, None, None
    for number, values in events:
        bits = values["events"]
        if bits & replay.UNDO:
            if before:
                checked += 1
                for field in ("window", "threshold"):
                    if values[field] < before[field]:
                        faults.append(f"line {number}: undone, yet {field} is {values[field]}, {before[field]} before")
            before = None
        elif bits & (replay.LOSS | replay.TIMEOUT):
            # Where one line stands for an epoch's end and a loss, or for losses in a row, what was between is not seen.
            alone = last and not before and not bits & (replay.EPOCH | replay.TIMEOUT)
            before = last if alone else None
        elif bits & replay.EPOCH:
            before = None
        last = values
    return faults, checked


# What a host's kernel counted, and how many segments its senders that are not Marimo's sent again.
Host = collections.namedtuple("Host", ("total", "beside"))


def check(connections, hosts, wanted):
    """What is wrong, and a line that says what there was. Of `connections` the keys begin with the host's address."""
    faults, checked, found = [], 0, collections.defaultdict(collections.Counter)
    for (host, *_), events in connections.items():
        for _, values in events:
            found[host].update(kind for kind, bit in KINDS.items() if values["events"] & bit)
        wrong, more = undone(events)
        faults += wrong
        checked += more
        number, last = events[-1]
        if last["state"] in RECOVERING:
            faults.append(f"line {number}: the connection ends within a recovery")
    for host, (total, beside) in hosts.items():
        faults += [f"{host}: {fault}" for fault in counted(found[host], total, beside)]
    seen = sum(found.values(), collections.Counter())
    faults += [f"no {kind} occurred: there is nothing to check" for kind in wanted if not seen[kind]]
    if "undo" in wanted and not checked:
        faults.append("no undo could be checked")
    return faults, (f"{len(connections)} ends of connections, {seen['loss']} losses, {seen['timeout']} timeouts, "
                    f"{seen['undo']} undone, {checked} of them compared with what was before")


def counted(found, total, beside):
    """What of a host is otherwise in the trace than in its kernel's counters."""
    faults = []
    recoveries = total["TcpExtTCPSackRecovery"] + total["TcpExtTCPRenoRecovery"]
    # A recovery begins with a segment that is sent again.
    if not recoveries - beside <= found["loss"] <= recoveries + total["TcpExtTCPLossProbeRecovery"]:
        others = f" ({beside} segments sent again beside Marimo)" if beside else ""
        faults.append(f"{recoveries} recoveries, but {found['loss']} losses in the trace{others}")
    undos = sum(total[f"TcpExtTCP{how}Undo"] for how in ("Full", "Partial", "DSACK", "Loss"))
    for kind, most in (("timeout", total["TcpExtTCPTimeouts"]), ("undo", undos)):
        if found[kind] > most:
            faults.append(f"{found[kind]} of {kind} in the trace, the kernel counted {most}")
    return faults


def senders(flows, keys):
    """What is wrong with who is in the trace, and by host what those who are not sent again.

    `flows`: rows of the plan with those of their results; `keys`: local and remote address and remote port of each end.
    """
    planned = [((row["source"], row["destination"], row["port"]), row) for row in flows]
    ours = collections.Counter(key for key, row in planned if row["congestion"] == "marimo")
    places = {key for key, _ in planned}
    traced = collections.Counter(key for key in keys if key in places)
    beside = collections.Counter()
    for _, row in planned:
        if row["congestion"] != "marimo":
            beside[row["source"]] += int(row["retransmissions"])
    faults = []
    for key in sorted(places):
        if ours[key] != traced[key]:
            source, destination, port = key
            faults.append(f"{source} to {destination}, port {port}: {ours[key]} flows ended as Marimo's, "
                          f"{traced[key]} are in the trace")
    return faults, beside


def read(folder):
    """The connections of a run, its hosts, and what is wrong with who is in the trace."""
    by_name = [replay.NAMES.index(name) for name in ("saddr", "daddr", "dport", "sport")]
    connections = {tuple(key[place] for place in by_name): events
                   for key, events in replay.events_of(folder / "trace.txt").items()}
    settings = json.loads((folder / "rig.json").read_text())
    with open(folder / settings["plan"], newline="") as file:
        plan = {row["flow"]: row for row in csv.DictReader(file)}
    with open(folder / "FLOWS.csv", newline="") as file:
        flows = [{**plan[row["flow"]], **row} for row in csv.DictReader(file)]
    faults, beside = senders(flows, [key[:3] for key in connections])
    hosts = {address(host): Host(collections.Counter(counters(folder / f"nstat-h{host}.txt")), beside[address(host)])
             for host in range(settings["hosts"])}
    return connections, hosts, faults


def main(words):
    if not words or any(word not in KINDS for word in words[1:]):
        print("usage: episodes.py FOLDER [loss] [timeout] [undo]", file=sys.stderr)
        return 2
    folder = pathlib.Path(words[0])
    try:
        connections, hosts, strangers = read(folder)
    except (replay.BadInput, OSError, ValueError, KeyError) as error:
        print(f"episodes.py: {error}", file=sys.stderr)
        return 2
    faults, says = check(connections, hosts, words[1:])
    print(says)
    for fault in strangers + faults:
        print(f"episodes.py: {folder}: {fault}", file=sys.stderr)
    return 1 if strangers + faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
