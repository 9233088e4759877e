#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Golden vectors of QUIC events, decided by the oracle of deploy/core: neither the C nor the Rust is asked.

A path of full packets is played here: sent while the window has room, acknowledged in order or not, marked, lost. The
oracle is told what this program knows of each packet; the controller has to find the same out of bytes and totals.
golden.py of that oracle has the command line.

    c, t, n              as in deploy/core/oracle/marimo.py
    s count              so many packets leave
    m count              so many more are reported as marked
    a positions          one frame acknowledges these packets
    l position | o position     a packet is lost; with persistent congestion

and after each of a, l, o an `=` with window, rho and epochs.
"""

import pathlib
import random
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "core/oracle"))
import golden  # noqa: E402
import marimo as oracle  # noqa: E402

FULL = 1200


class Path:
    def __init__(self, lines, config, table):
        self.lines = lines
        self.law = oracle.Connection([config[field] for field in oracle.FIELDS], table)
        self.flight = []
        self.sent = self.acked = self.marks = 0
        self.peak, self.round_end = 0, 0

    def window(self):
        """In bytes, no less than two packets."""
        return max(self.law.window, 2 * oracle.ONE) * FULL // oracle.ONE

    def send(self):
        count = max(self.window() // FULL - len(self.flight), 0)
        if count:
            self.lines.append(f"s {count}")
            self.flight += range(self.sent, self.sent + count)
            self.sent += count
            self.peak = max(self.peak, len(self.flight))

    def say(self, kind, *positions):
        law = self.law
        self.lines.append(f"{kind} {' '.join(map(str, positions))} = {law.window} {law.estimator.rho} {law.epochs}")

    def ack(self, positions, marked):
        if marked:
            self.lines.append(f"m {marked}")
        self.marks += marked
        flight, count = len(self.flight), len(positions)
        self.flight = [packet for packet in self.flight if packet not in positions]
        self.acked = max(self.acked, max(positions) + 1)
        if self.acked > self.round_end:
            self.peak, self.round_end = flight, self.sent
        told = min(self.marks, count)
        self.marks -= told
        limited = 2 * self.peak * FULL >= self.window()
        self.law.on_ack(count, told, count, self.acked, self.sent, limited)
        self.say("a", *positions)

    def lose(self, position, persistent):
        self.flight.remove(position)
        if persistent:
            self.law.on_timeout(self.sent)
        else:
            self.law.on_loss(position, self.sent)
        self.say("o" if persistent else "l", position)


def play(lines, config, table, seed):
    config = dict(config, min_window=2 * oracle.ONE)
    lines.append("c " + " ".join(str(config[field]) for field in oracle.FIELDS))
    lines.append("t " + " ".join(map(str, table)))
    lines.append("n")
    rng = random.Random(seed)
    path = Path(lines, config, table)
    share = 0
    for step in range(400):
        if step % 40 == 0:
            share = rng.choice([0, 0, 0.2, 0.6, 0.9, 1])
        path.send()
        draw = rng.random()
        if draw < 0.02:
            path.lose(path.flight[0], False)
        elif draw < 0.03:
            for packet in path.flight[: rng.randrange(1, 6)]:
                path.lose(packet, True)
        else:
            near = path.flight[:8]
            count = min(rng.choice([1, 2, 2, 2, 4, 8]), len(near))
            chosen = near[:count] if rng.random() < 0.8 else sorted(rng.sample(near, count))
            # Counts may run ahead of the packets that they are of, as after a frame that was overtaken.
            marked = sum(rng.random() < share for _ in chosen) + (rng.random() < 0.02)
            path.ack(chosen, marked)


def vectors():
    lines = []
    for seed, (config, table) in enumerate(
        (config, table)
        for config in (oracle.PAPER, oracle.OURS, dict(oracle.PAPER, beta_shift=3))
        for table in (oracle.LINEAR, oracle.STEEP)
    ):
        play(lines, config, table, seed)
    return "\n".join(lines) + "\n"


# See golden.py. Together they run every line of the oracle that QUIC reaches.
SAMPLE = [(0, 0, 185), (1, 0, 38), (2, 0, 44), (3, 0, 12), (5, 0, 24)]

if __name__ == "__main__":
    golden.main(vectors(), SAMPLE)
