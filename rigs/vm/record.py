#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The log of record.bpf.c, as bpftool shows it, as lines for deploy/linux/test/onramp_replay.c, which has the format.
usage: record.py KERNEL DUMP FILE"""

import json
import sys

kernel, dump, out = sys.argv[1:]
with open(dump, encoding="utf-8") as file:
    recorded = json.load(file)[0]["value"][".data.record"][0]["recorded"]
config = recorded["config"]
records = recorded["records"][: recorded["count"]]
rule = ("threshold", "max_hold", "quantum", "small_quantum", "beta", "spread", "reference", "gain", "step", "variant", "release")
numbers = [config["rule"][name] for name in rule] + [config[name] for name in ("threshold", "floor", "drift")]
DEPARTED = 4

lines = [
    f"# One path of On-Ramp in kernel {kernel}, at one of four CUBIC senders of an incast at 40 Mbit/s (QEMU, emulated).",
    "# Made by rigs/vm/run.sh --onramp --record FILE; the format is in deploy/linux/test/onramp_replay.c.",
    "c " + " ".join(map(str, numbers)),
]
for record in records:
    if record["what"] == DEPARTED:
        lines.append("d {now} {other} = {result}".format(**record))
    else:
        lines.append("a {now} {value} {echo} {zero} {zeros} = {what} {delay} {result}".format(**record))
with open(out, "w", encoding="ascii") as file:
    file.write("\n".join(lines) + "\n")
print(f"{out}: {len(records)} calls")
