#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Marimo in plain Python integers: an oracle for marimo.h, and the golden vectors it makes.

Written from the equations of docs/marimo.md, not from the C. Quantities are exact rationals of 65536ths; every
rounding is a floor division that the book names. golden.py has the command line.

The vectors are lines of a kind and whole numbers:

    c ...                          configuration, fields in the order of `FIELDS`
    t k0 .. k64                    the table f
    n                              a new connection
    a packets marked acked position next limited      acknowledgement
    l position next | o next | i next                 loss, timeout, idle

and after each of n, a, l, o, i an `=` with window, threshold, rho, gain and epochs as the oracle has them; `.` stands
for the number of the line before.
"""

import random

import golden

ONE = 1 << 16
WORD = 1 << 32
NEVER = WORD - 1

FIELDS = [
    "increase_below", "decrease_above", "target", "min_decrease", "max_decrease", "rho_after_decrease",
    "loss_rho", "loss_decrease", "initial_window", "min_window", "max_window", "increase", "max_increase",
    "min_epoch", "beta_shift", "decrease_from", "settle", "slow_start",
]


def ahead(a, b):
    """Whether position a lies after b, modulo 2^32."""
    return 0 < (a - b) % WORD <= WORD // 2


def at_least(a, b):
    return a == b or ahead(a, b)


class Estimator:
    """rho <- (1 - beta) rho + beta f(e), once per epoch."""

    def __init__(self, table, shift):
        self.table, self.shift = table, shift
        self.rho = table[0]

    def load(self, share):
        """f on straight lines between knots 1/64 apart."""
        left, part = divmod(share, ONE // 64)
        if left == 64:
            return self.table[64]
        rise = self.table[left + 1] - self.table[left]
        return self.table[left] + rise * part // (ONE // 64)

    def step(self, share):
        load = self.load(share)
        distance = abs(load - self.rho) // 2**self.shift
        self.rho += distance if load > self.rho else -distance
        return load


class Connection:
    def __init__(self, config, table):
        self.c = dict(zip(FIELDS, config))
        self.estimator = Estimator(table, self.c["beta_shift"])
        self.window = self.before = self.c["initial_window"]
        self.threshold = NEVER
        self.phase = "slow start" if self.c["slow_start"] else "avoidance"
        self.episode = None  # (cause, position at which it ends)
        self.reduced_at = 0  # first position never sent at the last reduction
        self.gain = 0
        self.clean = 0  # epochs of growth in a row
        self.wait = 0
        self.epochs = 0
        self.started, self.end = False, 0
        self.seen = self.marks = 0
        if self.phase == "avoidance":
            self.grow()

    # Equations

    def shrunk(self, window, share):
        """window (1 - share), no less than the floor unless it was below it already."""
        return min(window, max(window * (ONE - share) // ONE, self.c["min_window"]))

    def cut_for(self, load):
        """(load - target) / load, with 12 fractional bits over 1/16ths of the load."""
        wanted = max(load - self.c["target"], 0) * 4096
        share = wanted // (load // 16) if wanted else 0
        return min(max(share, self.c["min_decrease"]), self.c["max_decrease"])

    # Decisions

    def grow(self):
        step = min(self.c["increase"] * 2 ** min(self.clean, 7), self.c["max_increase"], self.window)
        self.gain = min(step * 256 // (self.window // 256), ONE)
        self.clean += 1

    def hold(self):
        self.gain = self.clean = 0

    def reduce_to(self, window, cause, following):
        self.window = window
        self.episode = (cause, following)
        self.reduced_at = following
        self.phase = "avoidance"
        self.wait = self.c["settle"]
        self.hold()

    def decide(self, share, load, following):
        if self.phase == "slow start":
            if share:
                self.before = self.window
                self.reduce_to(self.shrunk(self.window, share // 2), "mark", following)
                self.threshold = self.window
        elif self.episode and self.episode[0] == "loss":
            self.hold()
        elif self.wait:
            self.wait -= 1
        else:
            judged = load if self.c["decrease_from"] else self.estimator.rho
            if judged > self.c["decrease_above"]:
                self.before = self.window
                self.reduce_to(self.shrunk(self.window, self.cut_for(judged)), "mark", following)
                self.threshold = self.window
                self.estimator.rho = min(self.estimator.rho, self.c["rho_after_decrease"])
            elif self.estimator.rho < self.c["increase_below"]:
                self.grow()
            else:
                self.hold()

    # Events

    def forget(self, following):
        self.end, self.seen, self.marks = following, 0, 0

    def on_ack(self, packets, marked, acked, position, following, limited):
        packets, acked = min(packets, 65535), min(acked, 65535)
        if not self.started:
            # Whatever happened before, the first epoch begins with the first acknowledgement.
            self.started, self.end = True, following
        if self.episode and at_least(position, self.episode[1]):
            self.episode = None
        self.seen, self.marks = self.seen + packets, self.marks + min(marked, packets)
        if self.seen >= ONE:
            self.seen, self.marks = self.seen // 2, self.marks // 2
        if self.phase == "slow start" and self.c["slow_start"] == 2 and min(marked, packets):
            self.before = self.window
            self.forget(following)
            self.reduce_to(self.shrunk(self.window, self.c["max_decrease"]), "mark", following)
            self.threshold = self.window
            return
        recovering = self.episode is not None and self.episode[0] == "loss"
        if limited and not recovering:
            if self.phase == "avoidance":
                self.window = min(self.window + acked * self.gain, self.c["max_window"])
            elif not self.marks:
                most = max(self.window, min(self.threshold, self.c["max_window"]))
                self.window = min(self.window + acked * ONE, most)
                if self.window >= self.threshold:
                    self.phase = "avoidance"
        if self.seen >= self.c["min_epoch"] and ahead(position, self.end):
            share = self.marks * ONE // self.seen
            load = self.estimator.step(share)
            self.epochs = (self.epochs + 1) % WORD
            self.forget(following)
            self.decide(share, load, following)

    def on_loss(self, position, following):
        if self.episode and ahead(self.episode[1], position):
            if self.episode[0] != "mark":
                return
        else:
            self.before = self.window
        window = min(self.window, self.shrunk(self.before, self.c["loss_decrease"]))
        self.threshold = window
        self.estimator.rho = max(self.estimator.rho, self.c["loss_rho"])
        self.forget(following)
        self.reduce_to(window, "loss", following)

    def on_timeout(self, following):
        if not (self.episode and self.episode[0] == "timeout"):
            self.before = self.window
            self.threshold = max(self.window // 2, ONE)
        self.estimator.rho = max(self.estimator.rho, self.c["loss_rho"])
        self.forget(following)
        self.reduce_to(min(self.window, ONE), "timeout", following)
        if self.window < self.threshold:
            self.phase = "slow start"

    def on_idle(self, following):
        self.forget(following)

    def decisions(self):
        return [self.window, self.threshold, self.estimator.rho, self.gain, self.epochs]


# Vectors

def q16(number):
    return round(number * ONE)


PAPER = dict(
    increase_below=q16(0.9), decrease_above=q16(1.0), target=q16(0.95), min_decrease=0, max_decrease=q16(0.5),
    rho_after_decrease=q16(1.0), loss_rho=q16(1.2), loss_decrease=q16(0.5), initial_window=10 * ONE, min_window=ONE,
    max_window=65535 * ONE, increase=ONE, max_increase=ONE, min_epoch=2, beta_shift=1, decrease_from=0, settle=0,
    slow_start=1,
)
OURS = dict(PAPER, max_increase=8 * ONE, decrease_from=1, settle=1, slow_start=2)
LINEAR = [q16(0.6) + (q16(1.2) - q16(0.6)) * knot // 64 for knot in range(65)]
STEEP = [q16(0.5)] * 64 + [8 * ONE]
FLAT = [0] * 32 + [q16(0.95)] * 32 + [q16(1.0) + 1]


class Writer:
    def __init__(self):
        self.lines = []

    def config(self, config, table):
        self.lines += ["c " + " ".join(str(config[field]) for field in FIELDS), "t " + " ".join(map(str, table))]
        self.make = lambda: Connection([config[field] for field in FIELDS], table)
        self.fresh()

    def fresh(self):
        self.connection, self.last = self.make(), [None] * 5
        self.lines.append("n" + self.result())

    def result(self):
        now, before = self.connection.decisions(), self.last
        self.last = now
        return " = " + " ".join("." if new == old else str(new) for new, old in zip(now, before))

    def event(self, kind, *numbers):
        handler = {"a": "on_ack", "l": "on_loss", "o": "on_timeout", "i": "on_idle"}[kind]
        numbers = [int(number) % WORD for number in numbers]
        getattr(self.connection, handler)(*numbers)
        self.lines.append(" ".join([kind, *map(str, numbers)]) + self.result())


def rounds(writer, at, epochs, marks, size=1000):
    """Window-limited epochs of one acknowledgement per packet; `marks(epoch, packet)` says which are marked."""
    for epoch in range(epochs):
        flight = max(writer.connection.window // ONE, 2)
        following = at + flight * size
        for packet in range(flight):
            at += size
            writer.event("a", 1, marks(epoch, packet), 1, at, following + (packet + 1) * size, 1)
    return at


def storm(writer, rng, events, at):
    """Events without sense, positions that only rise."""
    following = at
    for _ in range(events):
        following += rng.choice([0, 1, 1000, 9000, rng.randrange(1 << 22)])
        draw = rng.random()
        if draw < 0.85:
            at = min(at + rng.choice([0, 1000, 3000, rng.randrange(1 << 21)]), following)
            packets = rng.choice([0, 1, 1, 1, 2, 16, rng.randrange(1 << 17)])
            marked = rng.choice([0, 0, 1, packets, rng.randrange(1 << 17)])
            writer.event("a", packets, marked, rng.choice([0, packets]), at, following, rng.random() < 0.9)
        elif draw < 0.93:
            writer.event("l", at + rng.randrange(max(following - at, 1)), following)
        elif draw < 0.97:
            writer.event("o", following)
        else:
            writer.event("i", following)
    return at


def vectors():
    rng = random.Random(20261121)
    writer = Writer()
    small = dict(PAPER, initial_window=4 * ONE)
    # The three branches, slow start and its end, on each side of 2^32.
    writer.config(small, LINEAR)
    at = rounds(writer, WORD - 30_000, 3, lambda epoch, packet: 0)
    at = rounds(writer, at, 2, lambda epoch, packet: packet % 2)
    at = rounds(writer, at, 8, lambda epoch, packet: 0)
    at = rounds(writer, at, 3, lambda epoch, packet: 1)
    at = rounds(writer, at, 2, lambda epoch, packet: packet % 5 < 3)
    # A burst of losses, a loss in a marked window, timeouts in a row, idle.
    for position in range(0, 9000, 3000):
        writer.event("l", at + position, at + 30_000)
    at = rounds(writer, at, 4, lambda epoch, packet: 0)
    at = rounds(writer, at, 2, lambda epoch, packet: 1)
    writer.event("l", at + 1000, at + 50_000)
    for _ in range(3):
        writer.event("o", at + 50_000)
    at = rounds(writer, at + 50_000, 6, lambda epoch, packet: 0)
    writer.event("i", at + 1000)
    rounds(writer, at, 2, lambda epoch, packet: 0)
    # The same road under our rule.
    writer.config(dict(OURS, initial_window=4 * ONE), LINEAR)
    at = rounds(writer, WORD - 9_000, 2, lambda epoch, packet: 0)
    at = rounds(writer, at, 8, lambda epoch, packet: packet > 2)
    at = rounds(writer, at, 8, lambda epoch, packet: 0)
    writer.event("o", at + 3000)
    at = rounds(writer, at + 3000, 4, lambda epoch, packet: packet == 2)
    # Idle before the first acknowledgement, and no slow start.
    writer.config(dict(small, slow_start=0), LINEAR)
    writer.event("i", 5000)
    rounds(writer, 0, 6, lambda epoch, packet: 0)
    # Every share, at every weight; tables at the edges; loads at the limit.
    for shift, table in [(0, LINEAR), (1, STEEP), (4, FLAT), (8, STEEP), (2, FLAT)]:
        writer.config(dict(small, beta_shift=shift, slow_start=0, initial_window=100 * ONE), table)
        at = 0
        for share in range(0, 129):
            writer.event("a", 128, share, 64, at + 1000, at + 1000, share % 3)
            at += 1000
    # Counters that would overflow 16 bits; windows at the top and below one packet.
    for config in [dict(PAPER, initial_window=65_500 * ONE), dict(OURS, initial_window=65_500 * ONE, max_increase=255 * ONE)]:
        writer.config(config, LINEAR)
        at = 0
        for step in range(24):
            for _ in range(4):
                at += 60_000
                writer.event("a", 65_535, 65_535 if step % 5 == 4 else step, 65_535, at, at + 200_000, 1)
    for config in [dict(PAPER, min_window=ONE // 64), dict(OURS, min_window=ONE // 64, initial_window=ONE // 64 + 77)]:
        writer.config(dict(config, slow_start=0), LINEAR)
        at = rounds(writer, 0, 25, lambda epoch, packet: 1)
        rounds(writer, at, 12, lambda epoch, packet: 0)
    # Storms over configurations drawn at random, positions near 2^31 and 2^32.
    for number in range(24):
        low = rng.randrange(1, 2 * ONE)
        high = low + rng.randrange(ONE)
        window = rng.randrange(ONE // 64, 200 * ONE)
        increase = rng.randrange(1, 3 * ONE)
        config = dict(
            increase_below=low, decrease_above=high, target=rng.randrange(ONE // 16, 2 * ONE),
            min_decrease=rng.choice([0, 100]), max_decrease=rng.randrange(100, ONE),
            rho_after_decrease=rng.choice([ONE, NEVER]), loss_rho=rng.randrange(8 * ONE),
            loss_decrease=rng.randrange(ONE), initial_window=window, min_window=rng.randrange(ONE // 64, window + 1),
            max_window=rng.choice([65535 * ONE, max(window, ONE) + ONE]), increase=increase,
            max_increase=rng.randrange(increase, 255 * ONE), min_epoch=rng.choice([1, 2, 2, 9, 32767]),
            beta_shift=rng.randrange(9), decrease_from=rng.randrange(2), settle=rng.choice([0, 1, 2, 255]),
            slow_start=rng.randrange(3),
        )
        middle = sorted(rng.randrange(8 * ONE + 1) for _ in range(63))
        table = [rng.randrange(low), *middle, rng.randrange(high + 1, 8 * ONE + 1)]
        table = [min(max(value, table[0]), table[64]) for value in table]
        writer.config(config, table)
        for start in (0, (1 << 31) - (1 << 22), WORD - (1 << 22)):
            writer.fresh()
            storm(writer, rng, 70, start)
    return "\n".join(writer.lines) + "\n"


# See golden.py. Together they run every line of the oracle.
SAMPLE = [
    (0, 0, 90),  # slow start, its end by marks, 2^32
    (1, 0, 40),  # our rule
    (2, 0, 6),  # idle before the first acknowledgement
    (3, 0, 12), (5, 0, 12),  # shares, tables at the edges
    (8, 0, 22),  # counters that would overflow
    (10, 0, 20),  # below one packet
    (12, 1, 12), (13, 1, 2), (13, 2, 6), (16, 3, 5), (25, 2, 4), (27, 3, 3), (28, 1, 11),  # losses, timeouts, idle
]

if __name__ == "__main__":
    golden.main(vectors(), SAMPLE)
