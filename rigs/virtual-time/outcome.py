# SPDX-License-Identifier: MIT OR Apache-2.0
"""What came of a run: how it ended, and what its kernel's log says."""

import csv
import json
import re

# What rig-traffic, and with it the guest, ends with if nothing is wrong but that flows were late.
UNFINISHED = 4

# Lines of a kernel's log that say that something went wrong.
TROUBLE = re.compile(
    r"BUG|WARNING|Oops|KASAN|UBSAN|Call Trace|lockdep|INFO: |unable to handle|refcount_t|Kernel panic|segfault|htb: |"
    r"quantum of class|too many events",
)


def outcome(code, trouble):
    """`played`, `unfinished` (all results are there, flows were not done at the deadline) or `broke`."""
    if trouble or code not in (0, UNFINISHED):
        return "broke"
    return "unfinished" if code == UNFINISHED else "played"


def unfinished(files):
    """How many flows did not arrive; nothing if there are no results."""
    if "FLOWS.csv" not in files:
        return None
    return sum(row["ok"] != "1" for row in csv.DictReader(files["FLOWS.csv"].decode().splitlines()))


def packets(files):
    """Packets that the congested ports sent."""
    return sum(entry.get("packets", 0) for entry in json.loads(files["tc-switch.json"])
               if entry["kind"] == "htb" and entry.get("root"))


def troubles(log):
    """Lines of the kernel's log that say that something went wrong."""
    found, position = [], 0
    while position < len(log):
        # User-mode Linux 6.1 walks its programs' mappings without the lock that lockdep wants: no word on what is tested.
        if "suspicious RCU usage" in log[position] and "lib/maple_tree.c" in " ".join(log[position:position + 4]):
            while position < len(log) and not log[position].endswith("Call Trace:"):
                position += 1
            position += 1
            while position < len(log) and "  [<" in log[position]:
                position += 1
            continue
        if TROUBLE.search(log[position]):
            found.append(log[position])
        position += 1
    return found
