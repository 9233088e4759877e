#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""On-Ramp's hold rule in plain Python integers: an oracle for onramp.h, and the golden vectors it makes.

Written from the equations of docs/onramp.md, not from the C: pauses are intervals of unbounded integers, and nothing
wraps. golden.py has the command line.

The vectors are lines of a kind and whole numbers, times in nanoseconds:

    c ...                   configuration, fields in the order of `FIELDS`
    n                       a new flow
    r now queued = time     when a packet that was handed over at `queued` may leave
    l now queued            the first packet, handed over at `queued`, leaves
    p now sent delay        a report; the delay may be below zero

and after each of n, l, p an `=` with the end of the pause, the earliest time of the next packet, packets on their way,
the limit, the gap, the threshold at the flow's rate and whether packets are held; `.` stands for the number of the line before.
"""

import random

import golden

ONE = 1 << 16
SECOND = (1 << 30) - 1
MOST = (1 << 24) - 1
END = (1 << 64) - 1

FIELDS = [
    "threshold", "max_hold", "quantum", "small_quantum", "beta", "spread", "reference", "gain", "step", "variant",
    "release",
]
STRAWMAN, PAPER, COMMITTED = range(3)
BURST, PACED, QUANTISED, CLOCKED = range(4)


def clip(span):
    return max(0, min(span, SECOND))


def share(span, part):
    return min(span * part // ONE, SECOND)


def log2(number):
    """In parts of `ONE`; straight between powers of two."""
    if number == 0:
        return 0
    power = number.bit_length() - 1
    return power * ONE + (number - 2**power) * ONE // 2**power


class Pause:
    """Time paused, as if in one piece up to `end`; `begun` decides what else belongs to it."""

    def __init__(self, begun):
        self.begun, self.end, self.length = begun, begun, 0

    def within(self, since, until):
        """How much of it lies between two times."""
        first = self.end - self.length
        return max(0, min(self.end, until) - max(first, since))


class Flow:
    def __init__(self, config):
        self.c = dict(zip(FIELDS, config))
        self.pauses = []  # the newest first
        self.until = self.next = 0
        self.last_left = self.last_report = None
        self.held = self.late = self.fresh = False
        self.outstanding = self.limit = self.gap = self.bound = 0
        self.mark = self.since = self.flight = 0
        self.credit = 0

    def silent(self, now):
        return self.last_report is None or now >= min(END, self.last_report + 2 * self.c["max_hold"])

    # Questions

    def release(self, now, queued):
        c = self.c
        if not self.held or self.silent(now):
            return queued
        head = queued if self.last_left is None else max(queued, self.last_left)
        kind = c["release"]
        free = self.until
        if kind == PACED:
            free = max(free, self.next)
        elif kind == QUANTISED:
            quantum = "quantum" if clip(self.until - head) > c["threshold"] else "small_quantum"
            free = min(free, head + c[quantum])
        elif kind == CLOCKED and self.outstanding >= self.limit:
            free = self.last_report + c["max_hold"]
        return max(queued, min(free, head + c["max_hold"], self.last_report + 2 * c["max_hold"], END))

    # Events

    def leave(self, now, queued):
        if self.held:
            waited = queued < now or self.until > now
            if self.silent(now) or not (waited or self.late):
                self.held, self.credit = False, 0
        if not self.held and (self.outstanding == 0 or self.silent(now)):
            self.fresh = True
        self.last_left = now
        if self.held:
            self.next = min(now + self.gap, END)
        self.outstanding = min(self.outstanding + 1, MOST)
        self.since = min(self.since + 1, MOST)

    def end_round(self, now, trip, delay):
        """What arrived in the round trip gives the flow's own threshold, and what delays lack to it, the next rate."""
        c = self.c
        self.bound = c["threshold"]
        if self.fresh:
            self.gap = 0
        elif c["release"] == PACED:
            span = clip(now - self.mark)
            gap = 0
            if self.flight:
                doublings = log2(self.flight) + log2(c["reference"]) - log2(span)
                lower = share(c["spread"], abs(doublings))
                self.bound = clip(self.bound - lower if doublings >= 0 else self.bound + lower)
                total = span + min(max(self.bound - delay, 0), 3 * span)
                unit = 2 ** max(0, total.bit_length() - 16)
                fine = 64 if span < 2**26 else 1
                gap = share(span * fine // self.flight, span // unit * ONE // (total // unit)) // fine if span else 0
            self.gap = min(gap, trip)
        self.fresh = False
        self.outstanding = self.flight = self.since
        self.mark, self.since = now, 0

    def paused(self, now, sent):
        until = END + SECOND if self.c["variant"] == COMMITTED else now
        return min(sum(pause.within(max(sent, now - SECOND), until) for pause in self.pauses), SECOND)

    def report(self, now, sent, delay):
        c = self.c
        trip = clip(now - sent)
        if self.last_report is not None and now - self.last_report >= SECOND:
            self.pauses = []
        while self.pauses and now - self.pauses[-1].end >= SECOND:
            self.pauses.pop()
        if self.silent(now):
            self.held, self.credit = False, 0
        self.last_report = now
        step = 0
        if sent >= self.mark:
            self.end_round(now, trip, clip(delay))
            step = c["step"]
        self.outstanding = max(self.outstanding - 1, 0)

        delay = clip(delay)
        excess = delay - (self.bound if self.held else c["threshold"])
        self.late = excess > 0
        if self.late:
            if c["variant"] != STRAWMAN:
                excess -= share(self.paused(now, sent), c["beta"])
            if not self.held:
                self.held = True
                self.limit, self.next = self.outstanding + 1, now
            start = max(now, self.until) if c["variant"] == COMMITTED else now
            if excess > 0:
                self.extend(now, min(start + excess, now + c["max_hold"], END), trip)
        if c["release"] == CLOCKED and self.held:
            self.clock(now, max(c["threshold"] - delay, 0), trip, step)

    def extend(self, now, until, trip):
        if until <= now or until <= self.until:
            return
        added = clip(until - max(now, self.until))
        if not self.pauses or (self.until < now and clip(now - self.pauses[0].begun) > trip // 4):
            self.pauses = [Pause(now)] + self.pauses[:5]
        self.pauses[0].end = until
        self.pauses[0].length = min(self.pauses[0].length + added, SECOND)
        self.until = until
        self.next = min(max(self.next, now) + added, now + self.c["max_hold"], END)

    def clock(self, now, room, trip, step):
        if self.until > now:
            self.limit, self.credit = min(self.limit, self.outstanding), 0
        else:
            self.credit += min(share(room, self.c["gain"]), trip) + share(trip, step)
            if self.credit >= trip:
                self.credit = min(self.credit - trip, trip)
                self.limit = min(self.limit + 1, MOST)
        self.limit = max(self.limit, 1)

    def decisions(self):
        return [self.until, self.next, self.outstanding, self.limit, self.gap, self.bound, int(self.held)]


# Vectors


def q16(number):
    return round(number * ONE)


USUAL = dict(
    threshold=30_000, max_hold=500_000, quantum=30_000, small_quantum=3_000, beta=q16(0.75), spread=5_000,
    reference=672, gain=q16(0.25), step=q16(0.5), variant=PAPER, release=PACED,
)


class Writer:
    def __init__(self):
        self.lines = []

    def config(self, config):
        self.settings = [config[field] for field in FIELDS]
        self.lines.append("c " + " ".join(map(str, self.settings)))
        self.fresh()

    def fresh(self):
        self.flow = Flow(self.settings)
        self.last = [None] * 7
        self.lines.append("n" + self.result())

    def result(self):
        now, before = self.flow.decisions(), self.last
        self.last = now
        return " = " + " ".join("." if new == old else str(new) for new, old in zip(now, before))

    def ask(self, now, queued):
        time = self.flow.release(now, queued)
        self.lines.append(f"r {now} {queued} = {time}")
        return time

    def leave(self, now, queued):
        self.flow.leave(now, queued)
        self.lines.append(f"l {now} {queued}{self.result()}")

    def report(self, now, sent, delay):
        self.flow.report(now, sent, delay)
        self.lines.append(f"p {now} {sent} {delay}{self.result()}")


def fabric(writer, at, packets, window, others, base=4_000, wire=84):
    """A window of packets over one bottleneck that `others` share: what leaves comes back after a queue that grows."""
    queue, on_way, sent = 0, [], 0
    now, asked, free = at, None, 0
    backlog = [at] * min(window, packets)
    handed = len(backlog)
    while sent < packets:
        times = []
        if backlog:
            if asked != (backlog[0], sent, len(on_way)):
                asked = (backlog[0], sent, len(on_way))
                free = writer.ask(now, backlog[0])
            times.append(max(free, now))
        if on_way:
            times.append(on_way[0][0])
        step = max(min(times), now)
        queue = max(0, queue - (step - now))
        now = step
        if on_way and on_way[0][0] <= now:
            _, left, delay = on_way.pop(0)
            writer.report(now, left, delay)
            if handed < packets:
                backlog.append(now)
                handed += 1
        elif backlog:
            queued = backlog.pop(0)
            writer.leave(now, queued)
            sent += 1
            queue += wire * (1 + others)
            delay = base + queue
            on_way.append((max(now + delay + base, on_way[-1][0] if on_way else 0), now, delay))
            now += wire
            queue = max(0, queue - wire)
    for back, left, delay in on_way:
        writer.report(max(now, back), left, delay)
        now = max(now, back)
    return now


def storm(writer, rng, events, at):
    """Events without sense, times that only rise."""
    now, left = at, [at]
    for _ in range(events):
        now += rng.choice([0, 1, 80, 1000, 30_000, rng.randrange(1, 1_000_000), rng.choice([0, 1 << rng.randrange(36)])])
        now = min(now, END)
        draw = rng.random()
        queued = max(0, now - rng.choice([0, 0, 1, 5_000, rng.randrange(1_000_000)]))
        writer.ask(now, queued)
        if draw < 0.4:
            writer.leave(now, queued)
            left.append(now)
        else:
            sent = rng.choice([left[-1], rng.choice(left), max(0, now - rng.randrange(200_000)), now, now // 2])
            delay = rng.choice([
                rng.randrange(200_000), rng.randrange(40_000), 30_000, 30_001, 0, -rng.randrange(1 << 40),
                rng.choice([-(1 << 63), (1 << 63) - 1, 1 << 31, 1 << 32, 1 << 34]),
            ])
            writer.report(now, sent, delay)


def vectors():
    rng = random.Random(20261122)
    writer = Writer()
    # Each pause with each release, on each side of 2^32 nanoseconds, alone and beside eleven others.
    for variant in range(3):
        for release in range(4):
            writer.config(dict(USUAL, variant=variant, release=release))
            fabric(writer, 1_000, 20, 20, 0)
            writer.fresh()
            fabric(writer, (1 << 32) - 60_000, 110, 40, 11)
    # Once others have left, with thresholds that depend on rates more and less, and not at all.
    for spread in (0, 1_000, 10_000):
        writer.config(dict(USUAL, spread=spread))
        at = fabric(writer, 1_000, 60, 20, 11)
        fabric(writer, at, 120, 20, 0)
    # Idle for seconds, then again: what is old is forgotten.
    for release in (PACED, CLOCKED):
        writer.config(dict(USUAL, release=release, variant=COMMITTED))
        at = fabric(writer, 5_000, 80, 40, 11)
        at = fabric(writer, at + 3_000_000_000, 80, 40, 11)
        fabric(writer, at + 900_000_000, 80, 40, 11)
    # No reports at all, reports that stop, and the end of time.
    writer.config(USUAL)
    for now in range(0, 5_000, 1_000):
        writer.ask(now, 0)
        writer.leave(now, 0)
    writer.report(100_000, 4_000, 90_000)
    for now in (100_000, 130_000, 300_000, 599_999, 600_000, 1_099_999, 1_100_000):
        writer.ask(now, 50_000)
    writer.fresh()
    storm(writer, rng, 60, END - 200_000)
    # Storms over configurations drawn at random.
    for number in range(48):
        writer.config(dict(
            threshold=rng.choice([0, 30_000, 150_000, SECOND]), max_hold=rng.choice([1, 100_000, 500_000, SECOND]),
            quantum=rng.choice([3_000, 30_000, SECOND]), small_quantum=rng.choice([1, 3_000]),
            beta=rng.choice([0, q16(0.5), ONE, rng.randrange(ONE)]),
            spread=rng.choice([0, 5_000, SECOND, rng.randrange(200_000)]), reference=rng.choice([1, 672, SECOND]),
            gain=rng.choice([1, q16(0.25), ONE]), step=rng.choice([0, q16(0.5), ONE]), variant=number % 3,
            release=number // 3 % 4,
        ))
        storm(writer, rng, 50, rng.choice([0, (1 << 32) - 3_000_000, 1 << 40]))
    return "\n".join(writer.lines) + "\n"


# See golden.py. Together they run every line of the oracle.
SAMPLE = [
    (1, 0, 30),  # alone
    (17, 0, 20), (17, 1, 12),  # reports that stop, the end of time
    *((number, 0, 12) for number in range(18, 30)),  # each pause with each release, some across 2^32
    (41, 0, 16), (59, 0, 3), (60, 0, 7), (63, 0, 21), (64, 0, 5),  # rates that double, configurations at the edges
]

if __name__ == "__main__":
    golden.main(vectors(), SAMPLE)
