#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether losses, timeouts and what was undone of them are the same in the trace and in the kernel's counters.

usage: episodes.py FOLDER [loss] [timeout] [undo]

Checked: each recovery of the kernel was told to Marimo as one loss (a loss that only a probe saw may come on top); there
are no more timeouts and undos in the trace than the kernel counted; what is undone gives back at least the window and the
threshold of before the loss; no connection ends within a recovery. Each kind that is named must have occurred.
Exit codes: 0 all that holds; 1 something does not; 2 bad input.
"""

import collections
import pathlib
import sys

sys.dont_write_bytecode = True
import replay  # noqa: E402
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


def check(connections, total, wanted):
    """What is wrong, and a line that says what there was."""
    faults, checked, found = [], 0, collections.Counter()
    for events in connections.values():
        for _, values in events:
            found.update(kind for kind, bit in KINDS.items() if values["events"] & bit)
        wrong, more = undone(events)
        faults += wrong
        checked += more
        number, last = events[-1]
        if last["state"] in RECOVERING:
            faults.append(f"line {number}: the connection ends within a recovery")
    recoveries = total["TcpExtTCPSackRecovery"] + total["TcpExtTCPRenoRecovery"]
    if not recoveries <= found["loss"] <= recoveries + total["TcpExtTCPLossProbeRecovery"]:
        faults.append(f"{recoveries} recoveries, but {found['loss']} losses in the trace")
    undos = sum(total[f"TcpExtTCP{how}Undo"] for how in ("Full", "Partial", "DSACK", "Loss"))
    for kind, most in (("timeout", total["TcpExtTCPTimeouts"]), ("undo", undos)):
        if found[kind] > most:
            faults.append(f"{found[kind]} of {kind} in the trace, the kernel counted {most}")
    faults += [f"no {kind} occurred: there is nothing to check" for kind in wanted if not found[kind]]
    if "undo" in wanted and not checked:
        faults.append("no undo could be checked")
    return faults, (f"{len(connections)} ends of connections, {found['loss']} losses, {found['timeout']} timeouts, "
                    f"{found['undo']} undone, {checked} of them compared with what was before")


def main(words):
    if not words or any(word not in KINDS for word in words[1:]):
        print("usage: episodes.py FOLDER [loss] [timeout] [undo]", file=sys.stderr)
        return 2
    folder, total = pathlib.Path(words[0]), collections.Counter()
    try:
        connections = replay.events_of(folder / "trace.txt")
        for path in folder.glob("nstat-*.txt"):
            total.update(counters(path))
    except (replay.BadInput, OSError, ValueError, KeyError) as error:
        print(f"episodes.py: {error}", file=sys.stderr)
        return 2
    faults, says = check(connections, total, words[1:])
    print(says)
    for fault in faults:
        print(f"episodes.py: {folder}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
