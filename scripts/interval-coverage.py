#!/usr/bin/env python3
"""How often a 95% confidence interval over seeds contains what it is of, in draws of lognormal times whose seeds differ by a
tenth: of the seeds' geometric mean (`ci95` up to schema 4 of summary.json), around the pooled number (today), and by the
delete-one jackknife. Prints a line for each number of flows and seeds; docs/results.md has some of them. Needs numpy.
usage: scripts/interval-coverage.py [DRAWS]     1000 by default"""
import sys

import numpy as np

STUDENT_T = {3: 4.303, 5: 2.776, 10: 2.262}
random = np.random.default_rng(1)


def p99(times: np.ndarray) -> float:
    """By nearest rank, in logarithms."""
    return np.log(np.sort(times)[-(-len(times) * 99 // 100) - 1])


def seed(flows: int) -> np.ndarray:
    return np.exp(random.normal(0, 0.1) + random.normal(0, 1, flows))


draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
print("flows seeds   geometric mean   around   jackknife")
for flows in (30, 300, 2000):
    true = p99(np.exp(random.normal(0, 0.1, 4_000_000) + random.normal(0, 1, 4_000_000)))
    for seeds, t in STUDENT_T.items():
        hits = np.zeros(3)
        for _ in range(draws):
            runs = [seed(flows) for _ in range(seeds)]
            pooled, each = p99(np.concatenate(runs)), np.array([p99(run) for run in runs])
            half = t * each.std(ddof=1) / seeds**0.5
            without = np.array([p99(np.concatenate(runs[:i] + runs[i + 1 :])) for i in range(seeds)])
            jackknife = t * ((seeds - 1) * without.var()) ** 0.5
            for place, (middle, reach) in enumerate([(each.mean(), half), (pooled, half), (pooled, jackknife)]):
                hits[place] += abs(true - middle) <= reach
        print(f"{flows:5} {seeds:5}   {hits[0] / draws:14.2f}   {hits[1] / draws:6.2f}   {hits[2] / draws:9.2f}", flush=True)
