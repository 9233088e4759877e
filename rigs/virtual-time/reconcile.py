#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether the counters of a run agree with one another.

usage: reconcile.py FOLDER [--exact-echo]

Checked: every flow of the plan arrived whole; the packets that the RED queue marked, less those that it then had no room
for, are those that hosts received with CE; and, where receivers echo exactly (--exact-echo) and nothing was lost, the packets that senders were told of are
the data segments among them. Exit codes: 0 they agree; 1 they do not; 2 bad input.
"""

import csv
import json
import pathlib
import sys


def counters(path):
    words = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {word[0]: int(word[1]) for word in words}


def reconcile(folder, exact):
    settings = json.loads((folder / "rig.json").read_text())
    with open(folder / settings["plan"], newline="") as file:
        plan = {row["flow"]: row for row in csv.DictReader(file)}
    with open(folder / "FLOWS.csv", newline="") as file:
        flows = {row["flow"]: row for row in csv.DictReader(file)}
    faults = []
    if list(sorted(plan)) != list(sorted(flows)):
        faults.append(f"the plan has {len(plan)} flows, the results {len(flows)}")
    for flow, row in flows.items():
        if row["ok"] != "1" or row["bytes"] != plan[flow]["bytes"]:
            faults.append(f"flow {flow}: {row['bytes']} of {plan[flow]['bytes']} bytes arrived")
    red = [entry for entry in json.loads((folder / "tc-switch.json").read_text()) if entry["kind"] == "red"]
    marked = sum(entry["marked"] for entry in red)
    # RED marks before its queue turns out to be full.
    lost = sum(entry["pdrop"] for entry in red)
    drops = sum(entry["drops"] for entry in json.loads((folder / "tc-switch.json").read_text()) if entry.get("root"))
    received = sum(counters(path)["IpExtInCEPkts"] for path in folder.glob("nstat-*.txt"))
    told = sum(int(row["delivered_ce"]) for row in flows.values())
    again = sum(int(row["retransmissions"]) for row in flows.values())
    faults_set = any(value not in (0, "kept") for value in settings.get("faults", {}).values())
    # Behind the queue faults lose, double or change what it has marked; of a bundle each segment is received.
    most = received if settings.get("offloads") else marked
    if not faults_set and not marked - lost <= received <= most:
        faults.append(f"{marked} packets were marked and {lost} dropped, hosts received {received} with CE")
    # Of each flow the SYN, the acknowledgement that opens it, those of the two FINs and the FIN can be marked, too.
    control = 5 * len(flows)
    bundles = settings.get("offloads", False)
    if exact and not bundles and not drops and not again and not told <= marked <= told + control:
        faults.append(f"{marked} packets were marked, senders were told of {told}")
    if exact and marked == 0:
        faults.append("no packet was marked: there is nothing to reconcile")
    print(f"{len(flows)} flows whole, {marked} packets marked, {received} received with CE, senders told of {told}, "
          f"{drops} dropped, {again} retransmitted")
    return faults


def main(words):
    if not words or any(word.startswith("--") and word != "--exact-echo" for word in words[1:]):
        print("usage: reconcile.py FOLDER [--exact-echo]", file=sys.stderr)
        return 2
    try:
        faults = reconcile(pathlib.Path(words[0]), "--exact-echo" in words)
    except (OSError, ValueError, KeyError) as error:
        print(f"reconcile.py: {error!r}", file=sys.stderr)
        return 2
    for fault in faults:
        print(f"reconcile.py: {words[0]}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
