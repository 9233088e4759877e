#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a TCP needs around Marimo, in plain Python integers: an oracle for marimo_tcp.h, and the vectors it makes.

Written from RFC 6937 (recovery), RFC 8257 section 3.2 (echo), RFC 2861 (idle), RFC 4821 (packets that grow) and
docs/marimo.md, not from the C; the algorithm itself is the oracle of deploy/core, whose golden.py has the command line.

The vectors are lines of a kind and whole numbers; `.` stands for the number of the line before:

    c ..., t ...    configuration and table, as in deploy/core/oracle/marimo.py
    n SAMPLE        a connection is established (marimo_tcp_init)
    a SAMPLE        an acknowledgement (marimo_tcp_on_ack)
    s SAMPLE        a change of state (marimo_tcp_on_state)
    x               a timeout begins an episode (marimo_tcp_on_timeout)
    u               a reduction is undone (marimo_tcp_on_undo)
    i SAMPLE        it sends with nothing in flight (marimo_tcp_on_start)
    e CE NEXT WAIT  a segment arrives (marimo_tcp_echo)

SAMPLE is the fields of struct marimo_tcp_sample in the order of `FIELDS`. After `=`: for n, a, s, i whether there is a
decision, window, threshold, pacing, events, the algorithm's window, threshold and rho, bundle and suspicion; for u
window and the algorithm's three; for e the result and the position before.
"""

import os
import random
import sys
from fractions import Fraction
from math import ceil

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../core/oracle"))
import golden  # noqa: E402
import marimo as core  # noqa: E402

ONE, WORD, NEVER = core.ONE, core.WORD, core.NEVER
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
ACK, LOST, TIMEOUT, IDLE, RESTART, UNDO, EPOCH, SUSPECT, INIT, RESIZE, FAIL, FAIL_ECT = (1 << bit for bit in range(12))
INFINITE = 0x7FFFFFFF

FIELDS = [
    "delivered", "delivered_ce", "una", "next", "flight", "pipe", "sent", "lost", "window", "threshold", "peak",
    "clamp", "mss", "srtt", "receive_next", "idle", "timeout", "state", "becomes", "limited", "exact", "restart", "marks", "plain",
]
DECISION = [
    "decided", "window", "threshold", "pacing", "events", "core_window", "core_threshold", "rho", "bundle", "latched", "codepoint",
]


def since(now, then):
    return (now - then) % WORD


def rate(size, gain, srtt):
    """size * gain bytes in srtt eighths of a microsecond, per second, with a reciprocal of 16 leading bits."""
    if srtt == 0:
        return 0
    bits = srtt.bit_length()
    leading = srtt * 2 ** (32 - bits) // 2**16
    per_second = 8_000_000 * ((WORD - 1) // leading) // 2**16
    result = int(size * gain) * per_second // 2**bits
    exact = Fraction(int(size * gain)) * 8_000_000 / srtt
    assert abs(result - exact) <= exact / 2**14 + 1, (size, gain, srtt)
    return result


class Recovery:
    """Proportional rate reduction, RFC 6937 section 3, in packets."""

    def __init__(self, delivered, sent, flight):
        self.delivered0, self.seen, self.sent0 = delivered, delivered, sent
        self.fs = min(max(flight, 1), 65535)

    def window(self, now, target, safe):
        delivered = since(now["delivered"], self.delivered0)
        newly = since(now["delivered"], self.seen)
        out = since(now["sent"], self.sent0)
        self.seen = now["delivered"]
        target = min(target, 65535)
        if now["pipe"] > target:
            count = ceil(Fraction(min(delivered, 65535) * target, self.fs)) - out
        else:
            # Slow start bound if the acknowledgement is safe, else the conservative one.
            limit = max(delivered - out, newly) + 1 if safe else delivered - out
            count = min(target - now["pipe"], limit)
        # The fast retransmission.
        return now["pipe"] + max(count, 0 if out else 1, 0)


class Echo:
    """RFC 8257 section 3.2: acknowledgements carry what the packets that they cover carried."""

    def __init__(self, expected):
        self.ce, self.expected = False, expected

    def segment(self, ce, expected, waiting):
        was, before = self.ce, self.expected
        self.ce, self.expected = bool(ce), expected
        result = 1 if ce else 0
        if was != bool(ce):
            result += 8 + (2 if waiting else 0) + (4 if was else 0)
        return [result, before]


class Peer:
    """Tells a receiver of RFC 3168 from one of RFC 8257 by where runs of echoes end."""

    NEEDED = 32  # bits

    def __init__(self):
        self.run = None  # (where the segment with CWR begins, what an end just there is worth)
        self.echoing = False
        self.evidence = 0

    def look(self, marked, now, una_before):
        """Returns whether suspicion has arisen."""
        if now["exact"]:
            return False
        ended = self.echoing and not marked
        begun = marked and not self.echoing
        self.echoing = bool(marked)
        if begun:
            bits = min((now["flight"] + 1).bit_length() - 1, 6)
            self.run = (now["next"], bits if now["state"] in (OPEN, CWR) else 0)
        if not ended or not self.run[1] or now["state"] not in (OPEN, CWR):
            return False
        cwr, bits = self.run
        if core.at_least(cwr, now["una"]):
            self.evidence = 0
        elif core.at_least(cwr, una_before) and self.evidence < self.NEEDED:
            self.evidence += bits
            return self.evidence >= self.NEEDED
        return False


class Doubt:
    """Whether ECN works, if a loss came before any mark: by CE of one's own (RFC 9002, section 8.3), or by further losses."""

    def __init__(self):
        self.seen = False
        self.bad = 0  # losses, or tests without an echo
        self.test = None  # "wanted", ("under way", from), ("sent", until)

    def one_more(self, most):
        self.bad = (self.bad + 1) % most
        if self.bad == 0:
            self.test = None
        return self.bad == 0

    def loss(self, now):
        """Returns whether ECN has failed."""
        if self.seen or now["exact"]:
            return False
        if now["marks"]:
            self.test = "wanted"
            return False
        return self.one_more(8)

    def undone(self):
        if not self.seen and self.test is None:
            self.bad = max(self.bad - 1, 0)

    def idle(self):
        if isinstance(self.test, tuple) and self.test[0] == "under way":
            self.test = "wanted"

    def ack(self, now, marked):
        """Returns how many of the marks count, and whether ECN has failed."""
        if marked and not self.seen:
            self.seen, self.bad = True, 0
        if self.test is None:
            return marked, False
        if self.test == "wanted":
            if self.seen:
                self.test = None
            elif now["state"] in (OPEN, DISORDER):
                self.test = ("under way", now["next"])
            return marked, False
        what, position = self.test
        if what == "under way":
            if now["next"] != position:
                self.test = ("sent", now["next"])
            return 0, False
        if not core.at_least(now["una"], position):
            return 0, False
        self.test = None if self.seen else "wanted"
        return 0, not self.seen and self.one_more(2)

    def marks(self, now):
        return bool(now["marks"]) and isinstance(self.test, tuple) and self.test[0] == "under way"


class Ect:
    """Whether data with ECT arrives at all, by timeouts in a row (RFC 9000, section 13.4.2.1).

    Who can sends again without ECT from the second one on: a timeout of that is none of ECT's, and what it repairs does
    not end the row. Data that is sent after the reduction has ECT again.
    """

    def __init__(self):
        self.row = 0

    def without(self, now):
        return self.row >= 2 and bool(now["plain"])

    def arrived(self, now, marked, reduced_at):
        if marked or not self.without(now) or core.ahead(now["una"], reduced_at):
            self.row = 0

    def timeout(self, now, unrepaired):
        """Returns whether ECN has failed; `unrepaired`: what an earlier timeout sent again has not all arrived."""
        if self.without(now) and unrepaired:
            return False
        self.row = min(self.row + 1, 3)
        return self.row == 3


class Tcp:
    def __init__(self, config, table, now):
        self.c = dict(zip(core.FIELDS, config))
        self.core = core.Connection(config, table)
        window = min(max(now["window"], 1), self.c["max_window"] // ONE)
        self.core.window = window * ONE
        if now["threshold"] < 65535:
            self.core.threshold = now["threshold"] * ONE
            if window >= now["threshold"]:
                self.core.phase = "avoidance"
        if self.core.phase == "avoidance":
            self.core.hold()
            self.core.grow()
        self.told, self.told_ce, self.una = now["delivered"], now["delivered_ce"], now["una"]
        self.recovery = Recovery(now["delivered"], now["sent"], now["flight"])
        self.echo, self.peer = Echo(now["receive_next"]), Peer()
        self.saved, self.expired, self.safe = None, False, False
        self.cwr = now["next"]
        self.mss = min(now["mss"], 65535)
        self.doubt, self.ect = Doubt(), Ect()

    def resize(self, now):
        """As many bytes in fewer packets, to 1/65536; windows hold one packet."""
        old, self.mss = self.mss, min(now["mss"], 65535)
        if old == 0 or self.mss <= old:
            return 0
        smaller = Fraction(int(Fraction(old, self.mss) * 65536), 65536)
        self.core.window = max(int(self.core.window * smaller), ONE)
        self.core.before = max(int(self.core.before * smaller), ONE)
        if self.core.threshold != NEVER:
            self.core.threshold = int(self.core.threshold * smaller)
        if self.saved:
            window, threshold, rho, phase = self.saved
            self.saved = (int(window * smaller), threshold if threshold == NEVER else int(threshold * smaller), rho, phase)
        return RESIZE

    def packets(self):
        return max(self.core.window // ONE, -(-self.c["min_window"] // ONE))

    def decision(self, now, state, events, least=0):
        window = self.packets()
        if state == RECOVERY:
            window = self.recovery.window(now, window, self.safe)
        elif state == LOSS:
            window = max(self.core.window // ONE, 1)
        window = max(min(window, now["clamp"]), 1)
        if self.core.phase == "slow start":
            gain = Fraction(2)
        else:
            gain = Fraction(5, 4)
        size = min(max(window, now["pipe"]), 65535) * min(now["mss"], 65535)
        pacing = rate(size, gain, now["srtt"])
        threshold = self.core.threshold
        return [
            1, window if window >= least else min(least, max(now["clamp"], 1)),
            INFINITE if threshold == NEVER else max(threshold // ONE, 2), pacing, events, *self.state(),
            1 if self.core.window < 5 * ONE else 2, int(self.peer.evidence >= Peer.NEEDED), self.codepoint(now, state),
        ]

    def codepoint(self, now, state):
        """0 is ECT, 1 CE, 2 neither."""
        if state == LOSS and self.ect.without(now):
            return 2
        return int(self.doubt.marks(now))


    def state(self):
        return [self.core.window, self.core.threshold, self.core.estimator.rho]

    def nothing(self):
        return [0] * 5 + [*self.state(), 1 if self.core.window < 5 * ONE else 2, int(self.peer.evidence >= Peer.NEEDED), 0]

    def deliver(self, now):
        advanced = now["una"] != self.una
        self.safe = advanced and not now["lost"]
        events = self.resize(now)
        packets = since(now["delivered"], self.told)
        marked = since(now["delivered_ce"], self.told_ce)
        if not packets and not advanced:
            return events
        events += ACK
        if packets:
            self.ect.arrived(now, marked, self.core.reduced_at)
            marked, failed = self.doubt.ack(now, marked)
            events += FAIL if failed else 0
            events += SUSPECT if self.peer.look(marked, now, self.una) else 0
        limited = self.core.window // ONE < now["clamp"] and (
            now["limited"] or (self.core.phase == "slow start" and now["window"] < 2 * now["peak"] % WORD))
        epochs = self.core.epochs
        acked = packets if advanced else 0
        self.core.on_ack(packets, min(marked, packets), acked, now["una"], now["next"], limited)
        events += EPOCH if self.core.epochs != epochs else 0
        self.una, self.told = now["una"], now["delivered"]
        if packets:
            self.told_ce = now["delivered_ce"]
        return events

    def on_ack(self, now):
        return self.decision(now, now["state"], self.deliver(now))

    def remember(self):
        c = self.core
        self.saved = (c.window, c.threshold, c.estimator.rho, c.phase)

    def on_timeout(self):
        self.remember()
        self.expired = True

    def on_state(self, now):
        old, new = now["state"], now["becomes"]
        if new == RECOVERY and old != RECOVERY:
            before = self.told
            events = self.deliver(now)
            self.remember()
            self.core.on_loss(now["una"], now["next"])
            events |= FAIL if self.doubt.loss(now) else 0
            self.recovery = Recovery(before, now["sent"], now["flight"])
            decision = self.decision(now, new, events + LOST)
            self.recovery.seen = before
            return decision
        if new == CWR:
            self.cwr = now["next"]
        if old == CWR and new in (OPEN, DISORDER) and core.at_least(self.cwr, now["una"]):
            # RFC 8985, section 7.4.2: a probe repaired a loss; the host answers as to congestion and goes on.
            events = self.deliver(now)
            self.core.on_loss(now["una"], now["next"])
            events |= FAIL if self.doubt.loss(now) else 0
            return self.decision(now, new, events + LOST)
        if new != LOSS:
            return self.nothing()
        announced, self.expired = self.expired, False
        collapsed = now["window"] <= now["pipe"] + 1
        if not (announced or old == LOSS or (old in (CWR, RECOVERY) and collapsed)):
            return self.nothing()
        events = self.deliver(now)
        episode = self.core.episode
        if self.ect.timeout(now, episode is not None and episode[0] == "timeout"):
            events |= FAIL + FAIL_ECT
        self.core.on_timeout(now["next"])
        if announced and self.doubt.loss(now):
            events |= FAIL
        return self.decision(now, new, events + TIMEOUT, least=now["pipe"] + 1)

    def on_undo(self):
        if self.saved:
            window, threshold, rho, phase = self.saved
            self.saved = None
            self.doubt.undone()
            self.core.window = max(self.core.window, window)
            self.core.threshold = max(self.core.threshold, threshold)
            self.core.estimator.rho = rho
            self.core.phase = phase
            self.core.episode = None
            self.core.wait = 0
            self.core.hold()
            if phase == "avoidance" and rho < self.c["increase_below"]:
                self.core.grow()
        return [self.packets(), *self.state()]

    def on_start(self, now):
        if now["flight"] or not now["timeout"] or now["idle"] <= now["timeout"]:
            return self.nothing()
        events = IDLE + self.resize(now)
        self.doubt.idle()
        self.core.on_idle(now["next"])
        if now["restart"]:
            window = self.core.window
            halvings = min(-(-now["idle"] // now["timeout"]) - 1, 16)
            left = max(window // 2**halvings, min(self.c["initial_window"], window))
            if left < window:
                # Without a threshold only the first slow start goes on; who never had one leads back to what was used.
                if self.core.phase == "slow start" or self.core.threshold != NEVER:
                    self.core.threshold = max(self.core.threshold, window - window // 4)
                else:
                    self.core.threshold = window - window // 4
                self.core.window = left
                if left < self.core.threshold:
                    self.core.phase = "slow start"
                events += RESTART
        return self.decision(now, now["state"], events)


# Vectors


class Writer:
    def __init__(self):
        self.lines = []

    def config(self, config, table):
        values = [config[field] for field in core.FIELDS]
        self.lines += ["c " + " ".join(map(str, values)), "t " + " ".join(map(str, table))]
        self.make = lambda now: Tcp(values, table, now)

    @staticmethod
    def short(values, before):
        return " ".join("." if new == old else str(new) for new, old in zip(values, before))

    def event(self, kind, now=None, numbers=()):
        text = kind
        if kind == "n":
            self.sample, self.decided = [None] * len(FIELDS), [None] * len(DECISION)
        if now is not None:
            now = {field: int(now[field]) % WORD for field in FIELDS}
            values = [now[field] for field in FIELDS]
            text += " " + self.short(values, self.sample)
            self.sample = values
        if kind == "n":
            self.tcp = self.make(now)
            result = self.tcp.decision(now, now["state"], INIT)
        elif kind == "x":
            self.lines.append(text)
            return self.tcp.on_timeout()
        elif kind == "u":
            result = self.tcp.on_undo()
            self.lines.append(text + " = " + " ".join(map(str, result)))
            return result
        elif kind == "e":
            result = self.tcp.echo.segment(*numbers)
            self.lines.append(text + " " + " ".join(map(str, numbers)) + " = " + " ".join(map(str, result)))
            return result
        else:
            result = {"a": self.tcp.on_ack, "s": self.tcp.on_state, "i": self.tcp.on_start}[kind](now)
        self.lines.append(text + " = " + self.short(result, self.decided))
        self.decided = result
        return result


class Flow:
    """A sender whose packets arrive, are marked or lost at random, in Linux's order of calls."""

    def __init__(self, writer, rng, *, start, mss=1448, srtt=800, exact=0, latching=False, marks=0, plain=0):
        self.w, self.rng, self.latching = writer, rng, latching
        self.s = dict.fromkeys(FIELDS, 0)
        self.s.update(delivered=rng.choice([1, WORD - 5]), una=start, next=start, window=10, threshold=INFINITE,
                      clamp=24, mss=mss, srtt=srtt, receive_next=77, exact=exact, timeout=50, marks=marks, plain=plain)
        self.s["sent"] = rng.choice([0, WORD - 20])
        self.high, self.cwr_at, self.ece = start, None, False
        self.take(writer.event("n", self.s), start=True)

    def take(self, result, start=False):
        if result[0] and not start:
            self.s["window"], self.s["threshold"] = result[1], result[2]

    def add(self, field, amount):
        self.s[field] = (self.s[field] + amount) % WORD

    def send(self):
        count = max(self.s["window"] - self.s["pipe"], 0)
        self.add("next", count * self.s["mss"])
        for field in ("flight", "pipe", "sent"):
            self.add(field, count)
        self.s["peak"] = self.s["flight"]
        self.s["limited"] = 1

    def becomes(self, state):
        self.s["becomes"] = state
        self.take(self.w.event("s", self.s))
        self.s["state"] = state

    def ack(self, packets, marked):
        self.add("una", packets * self.s["mss"])
        self.add("delivered", packets)
        self.s["flight"] -= packets
        self.s["pipe"] = max(self.s["pipe"] - packets, 0)
        ece = bool(marked)
        if self.latching:
            if self.cwr_at is not None and core.ahead(self.s["una"], self.cwr_at):
                self.ece, self.cwr_at = False, None
            self.ece = ece = self.ece or ece
        self.add("delivered_ce", packets if ece else 0)
        if self.s["state"] == CWR and core.ahead(self.s["una"], self.high):
            self.becomes(OPEN)
        if ece and self.s["state"] < CWR:
            self.high = self.s["next"]
            self.becomes(CWR)
            if self.cwr_at is None:
                self.cwr_at = self.high
        self.s["becomes"] = self.s["state"]
        self.take(self.w.event("a", self.s))

    def rounds(self, count, chance):
        for _ in range(count):
            self.send()
            for _ in range(self.s["flight"]):
                self.ack(1, self.rng.random() < chance)
                self.send()

    def lose(self, lost, *, timer=False, undo=None, again=0):
        """The first `lost` packets of the window; the others are acknowledged selectively, one by one."""
        self.send()
        lost = min(lost, self.s["flight"])
        arriving = self.s["flight"] - lost
        known = 0 if timer else min(3, arriving)
        self.add("delivered", known)
        self.s["pipe"] = max(self.s["pipe"] - lost - known, 0)
        self.high = self.s["next"]
        self.s["lost"] = 1
        self.becomes(RECOVERY)
        if not timer:
            self.s["lost"] = lost
            self.s["becomes"] = self.s["state"]
            self.take(self.w.event("a", self.s))
        self.s["lost"] = 0
        to_repair, repaired = lost, 0
        for step in range(arriving - known + lost):
            room = self.s["window"] - self.s["pipe"]
            repair = min(max(room, 0), to_repair)
            to_repair -= repair
            repaired += repair
            self.add("sent", repair)
            self.add("pipe", repair)
            if to_repair == 0:
                self.send()
            self.s["pipe"] = max(self.s["pipe"] - 1, 0)
            self.add("delivered", 1)
            if repaired and step >= arriving - known and self.s["flight"] > 1:
                self.add("una", self.s["mss"])
                self.s["flight"] -= 1
                repaired -= 1
            self.s["lost"] = int(again > 0 and step % 4 == 3)
            again -= self.s["lost"]
            self.take(self.w.event("a", self.s))
            if undo == step:
                break
        if undo is not None:
            result = self.w.event("u")
            self.s["window"] = result[0]
        self.s["lost"] = 0
        left = self.s["flight"]
        self.add("una", since(self.high, self.s["una"]))
        self.s["flight"] = self.s["pipe"] = max(since(self.s["next"], self.high) // self.s["mss"], 0)
        self.add("delivered", max(left - self.s["flight"], 0) and 1)
        self.becomes(OPEN)
        self.take(self.w.event("a", self.s))

    def probe(self):
        """The last packet was lost, and a probe for it is acknowledged."""
        self.send()
        self.add("una", self.s["flight"] * self.s["mss"])
        self.add("delivered", self.s["flight"])
        self.s["flight"] = self.s["pipe"] = 0
        self.becomes(CWR)
        self.becomes(OPEN)
        self.s["becomes"] = OPEN
        self.take(self.w.event("a", self.s))

    def drop_ect(self, times):
        """Whoever sends ECT hears nothing; what is sent without is repaired, up to what was sent before."""
        for _ in range(times):
            self.send()
            for _ in range(2):
                if self.s["state"] <= DISORDER:
                    self.w.event("x")
                self.s["pipe"] = 0
                self.becomes(LOSS)
                if self.w.decided[-1] != 2:
                    continue
                while self.s["flight"]:
                    self.ack(min(2, self.s["flight"]), 0)
                self.becomes(OPEN)
                break

    def expire(self, times=1, undo=False, grow=None):
        self.send()
        for _ in range(times):
            if self.s["state"] <= DISORDER:
                self.w.event("x")
            self.s["pipe"] = 0
            self.s["window"] = 1
            self.high = self.s["next"]
            self.becomes(LOSS)
        if grow:
            self.s["mss"] = grow
            self.take(self.w.event("a", self.s))
        if undo:
            self.s["window"] = self.w.event("u")[0]
            self.becomes(OPEN)
        flight = self.s["flight"]
        self.s["pipe"] = 1
        self.s["limited"] = 1
        while flight > 0:
            step = min(self.rng.randrange(1, 3), flight)
            flight -= step
            self.ack(step, 0)
            self.s["pipe"] = min(self.s["window"], flight)
        self.s["pipe"] = 0
        self.becomes(OPEN)
        self.s["becomes"] = OPEN
        self.take(self.w.event("a", self.s))

    def idle(self, ticks, restart=1):
        self.s["pipe"] = 0
        if self.s["flight"]:
            self.ack(self.s["flight"], 0)
        self.s.update(idle=ticks, restart=restart)
        self.take(self.w.event("i", self.s))
        self.s.update(idle=0, restart=0)


def storm(writer, rng, events, start):
    """Samples without sense, positions that only rise."""
    s = dict.fromkeys(FIELDS, 0)
    s.update(delivered=rng.randrange(WORD), una=start, next=start, window=rng.randrange(1, 100_000), clamp=NEVER,
             threshold=rng.choice([2, 30, 70_000, INFINITE]), mss=rng.choice([0, 88, 1448, 65_483, 1 << 20]),
             srtt=rng.randrange(WORD), sent=rng.randrange(WORD), marks=rng.randrange(2), plain=rng.randrange(2))
    writer.event("n", s)
    for _ in range(events):
        s["next"] = (s["next"] + rng.choice([0, 1448, rng.randrange(1 << 22)])) % WORD
        draw = rng.random()
        s.update(flight=rng.choice([0, 0, 1, rng.randrange(1 << 17)]), pipe=rng.choice([0, 3, rng.randrange(1 << 17)]),
                 lost=rng.choice([0, 0, 1, 70_000]), window=rng.randrange(1, 1 << 17), peak=rng.randrange(1 << 17),
                 clamp=rng.choice([NEVER, NEVER, 0, 1, rng.randrange(70_000)]), limited=rng.randrange(2),
                 srtt=rng.choice([0, 1, 7, 8, 800, 65_535, 65_536, NEVER, rng.randrange(WORD)]),
                 exact=int(rng.random() < 0.2), state=rng.randrange(5), becomes=rng.randrange(5),
                 idle=rng.choice([0, 50, 51, 100, 101, 5000, NEVER]), timeout=rng.choice([0, 50, 50, 50, 1]),
                 restart=rng.randrange(2))
        if rng.random() < 0.05:
            s["mss"] = rng.choice([0, 88, 1448, 8948, 65_483, 1 << 20])
        s["sent"] = (s["sent"] + rng.choice([0, 1, 10, rng.randrange(1 << 18)])) % WORD
        if draw < 0.75:
            s["delivered"] = (s["delivered"] + rng.choice([0, 1, 2, rng.randrange(1 << 17)])) % WORD
            s["delivered_ce"] = (s["delivered_ce"] + rng.choice([0, 0, 1, 2, rng.randrange(1 << 17)])) % WORD
            ahead = since(s["next"], s["una"])
            s["una"] = (s["una"] + rng.choice([0, min(1448, ahead), rng.randrange(ahead + 1)])) % WORD
        kind = "a" if draw < 0.6 else "s" if draw < 0.85 else "i" if draw < 0.9 else "x" if draw < 0.95 else "u"
        writer.event(kind, None if kind in "xu" else s)


def vectors():
    rng = random.Random(20261122)
    writer = Writer()
    kernel = dict(core.PAPER, min_window=2 * ONE)
    ours = dict(core.OURS, min_window=2 * ONE, max_increase=4 * ONE)
    for number, config in enumerate([kernel, ours, dict(kernel, slow_start=0), dict(kernel, min_window=ONE)]):
        writer.config(config, core.LINEAR)
        flow = Flow(writer, rng, start=WORD - 40_000)
        flow.rounds(2, 0)
        flow.rounds(3, 0.4)
        flow.lose(1)
        flow.rounds(2, 0)
        flow.lose(4, again=2)
        flow.lose(2, undo=3)
        flow.lose(1, timer=True)
        flow.probe()
        flow.rounds(1, 0)
        flow.probe()
        flow.rounds(4, 1)
        flow.rounds(2, 0)
        flow.expire()
        flow.expire(times=3)
        flow.rounds(1, 0.2)
        flow.expire(undo=True)
        flow.rounds(3, 0)
        for ticks, restart in [(50, 1), (51, 1), (51, 0), (200, 1), (100_000, 1)]:
            flow.idle(ticks, restart)
            flow.rounds(1, 0)
        # A change of the MTU: state Loss, but no timeout.
        flow.send()
        flow.s["mss"] = 536
        flow.s["pipe"] = 2
        flow.becomes(LOSS)
        flow.becomes(OPEN)
        # A probe of the MTU succeeds: fewer packets, no more bytes; also with a reduction that is undone then.
        flow.rounds(1, 0)
        flow.s["mss"] = 8948
        flow.rounds(2, 0.1)
        flow.expire(undo=True, grow=9000)
        flow.rounds(1, 0)
        # Idle in the first slow start.
        flow = Flow(writer, rng, start=77)
        flow.rounds(2, 0)
        flow.s["mss"] = 4000
        flow.idle(60)
        flow.rounds(2, 0)
        # Peers that echo as RFC 3168 says, and counters that are exact by protocol.
        flow = Flow(writer, rng, start=5000, latching=True)
        flow.rounds(90 if number == 0 else 6, 0.06)
        flow = Flow(writer, rng, start=5000, exact=1, srtt=rng.randrange(1, 1 << 20))
        flow.rounds(6, 0.3)
        # A loss before any mark: a test that is echoed, one that is not, one that is lost; and hosts that cannot test.
        for chances in [(0, 1, 0.3), (0, 0, 0)]:
            flow = Flow(writer, rng, start=900, marks=1)
            flow.rounds(2, 0)
            flow.lose(1)
            for chance in chances:
                flow.rounds(2, chance)
            flow.idle(60)
            flow.lose(1)
            flow.idle(60)
            flow.rounds(2, 0)
        flow = Flow(writer, rng, start=900, marks=1)
        flow.rounds(1, 0)
        flow.lose(1)
        flow.ack(1, 0)
        flow.lose(2)
        flow.expire()
        flow.rounds(2, 0)
        flow = Flow(writer, rng, start=900)
        flow.rounds(1, 0)
        for _ in range(9):
            flow.lose(1)
        flow.rounds(1, 0.5)
        flow.lose(1)
        # Data with ECT is dropped: who can sends again without; an outage; and a path that is whole again.
        for marks, plain in [(0, 0), (number % 2, 1)]:
            flow = Flow(writer, rng, start=900, marks=marks, plain=plain)
            flow.rounds(1, 0.2)
            flow.drop_ect(3)
            flow.rounds(1, 0)
            flow = Flow(writer, rng, start=900, marks=marks, plain=plain)
            flow.expire(times=2)
            flow.rounds(2, 0.3)
            flow.expire(times=5)
            flow.rounds(1, 0)
            flow.expire(times=2)
            flow.lose(2)
            flow.expire()
        # The receiver: CE in runs of every length, with and without an acknowledgement that waits.
        writer.event("n", flow.s)
        at, ce = rng.randrange(WORD), 0
        for _ in range(120):
            at = (at + rng.choice([1, 1448, 2896])) % WORD
            ce = rng.randrange(2) if rng.random() < 0.4 else ce
            writer.event("e", None, (ce, at, rng.randrange(2)))
    for number in range(12):
        writer.config(dict(rng.choice([kernel, ours]), initial_window=rng.randrange(2, 200) * ONE,
                           slow_start=rng.randrange(3)), rng.choice([core.LINEAR, core.STEEP]))
        for start in (0, (1 << 31) - (1 << 22), WORD - (1 << 22)):
            storm(writer, rng, 50, start)
    return "\n".join(writer.lines) + "\n"


# See golden.py. Together they run every line of the oracle.
SAMPLE = [
    (2, 5, 88), (2, 6, 37),  # losses before any mark: tests without an echo
    (3, 8, 40), (3, 10, 60),  # data with ECT that is dropped
    (3, 12, 14),  # the receiver
    (4, 2, 2), (5, 0, 16), (5, 2, 6), (6, 0, 6), (6, 1, 2), (6, 2, 14), (7, 1, 3), (7, 2, 16), (8, 2, 15), (10, 0, 5),
    (10, 2, 2), (11, 0, 2), (11, 2, 7), (14, 2, 45),  # recovery, timeouts, undo, idle, packets that grow
]

if __name__ == "__main__":
    golden.main(vectors(), SAMPLE)
