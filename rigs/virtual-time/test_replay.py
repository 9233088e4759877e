# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces, against the oracle."""

import pathlib
import re
import tempfile
import unittest

import replay

LINE = ("rig-traffic-9 [000] ..s.. 0.1: ack: cookie=1f saddr=10.0.0.1 sport=1 daddr=10.0.0.2 dport=2 events={events} "
        "packets={packets} marked=0 "
        "acked={packets} position={position} next={next} limited=1 window={window} threshold=4294967295 rho=40336 "
        "gain=0 epochs=0 state=0 cwnd=10 ssthresh=9 pipe=1 srtt=8 pacing=1\n")


class Replay(unittest.TestCase):
    def run_replay(self, *lines):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "trace.txt").write_text("".join(LINE.format(**line) for line in lines))
        events = replay.events_of(folder / "trace.txt")
        table = replay.knots_of(replay.ROOT / "deploy/core/marimo-f.table")
        it = replay.Replay(replay.config_of([]), table)
        for connection in events.values():
            it.connection(connection)
        return it

    start = dict(events=256, packets=0, position=5, next=5, window=10 << 16)

    def test_what_the_oracle_decides_is_accepted(self):
        ack = dict(events=1, packets=1, position=6, next=20, window=11 << 16)
        it = self.run_replay(self.start, ack)
        self.assertEqual(it.compared, 2)
        self.assertEqual(it.lines[-1], "a 1 0 1 6 20 1 = 720896 . . . .")

    def test_another_window_is_noticed(self):
        ack = dict(events=1, packets=1, position=6, next=20, window=12 << 16)
        with self.assertRaisesRegex(replay.Differs, "line 2: the kernel decided"):
            self.run_replay(self.start, ack)

    def test_fields_are_known_by_their_names(self):
        line = LINE.format(**self.start)
        rest = re.sub(r" (cookie|saddr|daddr|sport|dport)=\S+", "", line).rstrip()
        more = rest + " dport=2 family=AF_INET saddr=10.0.0.2 daddr=10.0.0.1 sport=1\n"
        other = more.replace("10.0.0.2", "10.0.0.3")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "trace.txt").write_text(more + other)
        events = replay.events_of(folder / "trace.txt")
        self.assertEqual(len(events), 2, "two hosts with one port are two connections")
        (folder / "trace.txt").write_text(line)
        plain = replay.events_of(folder / "trace.txt")
        self.assertEqual([values for _, values in next(iter(events.values()))], [next(iter(plain.values()))[0][1]])

    def test_numbers_of_the_header_are_its_numbers(self):
        bits = replay.ACK, replay.LOSS, replay.TIMEOUT, replay.IDLE, replay.RESTART, replay.UNDO, replay.EPOCH, replay.INIT, replay.RESIZE
        self.assertEqual(bits, (1, 2, 4, 8, 16, 32, 64, 256, 512))
        header = (replay.ROOT / "deploy/linux/marimo_tcp.h").read_text()
        self.assertIn(f"\n#define MARIMO_TCP_SETTLING_INCREASE {replay.SETTLING_INCREASE}\n", header)
        packet = replay.oracle.ONE
        for parameters, packets in [([], 1), (["rule=settling"], replay.SETTLING_INCREASE), (["rule=settling", "increase=9"], 9)]:
            self.assertEqual(replay.config_of(parameters)["max_increase"], packets * packet, parameters)

    def test_what_came_before_the_connection_began_is_left_out(self):
        early = dict(events=1, packets=1, position=5, next=5, window=0)
        self.assertEqual(self.run_replay(early, self.start).compared, 1)
