#!/usr/bin/env python3
"""How often the test for a steady state is wrong, from runs of known load.

usage: steady-state-rates.py INCAST [GROUPS]

Eight hosts on a switch send web search at a known load under DCTCP. Each group is three seeds; the test is made of each
seed alone and of each group. Prints the table of docs/reading-results.md.
"""
import json
import subprocess
import sys
import tempfile

SEEDS = 3
# Load of each host's link, headers not counted, and the duration in ms: below capacity, then above.
CASES = [(0.3, 10), (0.5, 10), (0.5, 30), (0.8, 30), (0.8, 150), (1.05, 30), (1.2, 10), (1.2, 30)]
SCENARIO = """
name = "known-load"
duration = "{duration}ms"
warmup = "{warmup}ms"
drain = "2s"
seeds = {seeds}

[topology]
kind = "single-switch"
hosts = 8
link = {{ rate = "100Gbps", delay = "1us" }}

[switch]
buffer = {{ total = "4MB", alpha = 1.0 }}
ecn = {{ kind = "step", at = "0.2bdp" }}

[host]
mtu = "4096B"
rto_min = "1ms"

[[workload]]
class = "web"
kind = "poisson"
sizes = "websearch"
load = {load}
overload = true

[[scheme]]
law = "dctcp"
"""


def rows(incast, folder, load, duration, group):
    path = f"{folder}/known-load.toml"
    seeds = list(range(SEEDS * group + 1, SEEDS * (group + 1) + 1))
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(load=load, duration=duration, warmup=duration / 10, seeds=seeds))
    command = [incast, "run", path, "--out", f"{folder}/results", "--force", "--quiet", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [row for row in found["rows"] if row["class"] == "all"]


def main(incast, groups=100):
    print("| load | nominal load | duration | needed | too short, of one seed | of three seeds |")
    print("|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for load, duration in CASES:
            one, three = [], []
            for group in range(groups):
                for row in rows(incast, folder, load, duration, group):
                    (three if row["seed"] == "all" else one).append(row)
            needed = one[0]["duration_needed_us"]
            text = f"{needed / 1000:.1f} ms" if needed else "less" if load < 1 else "none"
            rate = [f"{100 * sum(row['too_short'] for row in of) / len(of):.1f}% of {len(of)}" for of in (one, three)]
            print(f"| {load} | {one[0]['nominal_load']:.3f} | {duration} ms | {text} | {rate[0]} | {rate[1]} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
