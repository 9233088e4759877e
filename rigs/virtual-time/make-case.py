#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes rig.json and plan.csv of a small incast, for the rig's own tests.

usage: make-case.py FOLDER [KEY=VALUE ...]     keys are those of rig.json (values in JSON), and senders, flows, bytes
"""

import json
import pathlib
import random
import sys

BASE = {
    "hosts": 5,
    "bottleneck_rate_bps": 10**9,
    "host_rate_bps": 10**9,
    "rtt_ns": 400_000,
    # 20 frames, DCTCP's threshold for 1 Gbit/s.
    "red": {"min": 30_280, "max": 30_281, "limit": 600_000, "avpkt": 1514},
    "buffer_bytes": 600_000,
    "congestion": "marimo",
    "plan": "plan.csv",
    "seed": 1,
    "ecn_check": True,
    "sysctls": {"net.ipv4.tcp_ecn": 1},
    "route": {"rto_min_us": 10_000, "initcwnd": 10},
}


def main(folder, words):
    settings, shape = json.loads(json.dumps(BASE)), {"senders": 4, "flows": 8, "bytes": 400_000}
    for word in words:
        key, _, value = word.partition("=")
        try:
            value = json.loads(value)
        except ValueError:
            pass
        if key in shape:
            shape[key] = value
        elif isinstance(value, dict) and isinstance(settings.get(key), dict):
            settings[key] |= value
        else:
            settings[key] = value
    settings["hosts"] = shape["senders"] + 1
    # Senders of an incast start within 100 us of each other.
    jitter = random.Random(settings["seed"] or 0)
    rows = ["flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"]
    for flow in range(shape["flows"]):
        host = 1 + flow % shape["senders"]
        start = 1_000_000 + int(100_000 * jitter.random())
        rows.append(f"{flow},h{host},10.0.0.{host + 1},h0,10.0.0.1,{10000 + flow},{start},{shape['bytes']}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rig.json").write_text(json.dumps(settings, indent=1) + "\n")
    (folder / "plan.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
