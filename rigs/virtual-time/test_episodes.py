# SPDX-License-Identifier: MIT OR Apache-2.0
"""Losses and what was undone, in traces and in counters."""

import collections
import unittest

import episodes


class Episodes(unittest.TestCase):
    def check(self, *rows, wanted=(), state=0, beside=0, **total):
        """Faults of one connection whose lines are `rows`: events, window, threshold."""
        keys = ("events", "window", "threshold")
        events = [(number, {**dict(zip(keys, row)), "state": state}) for number, row in enumerate(rows, 1)]
        counts = collections.Counter({f"TcpExtTCP{name}": value for name, value in total.items()})
        return episodes.check({("10.0.0.1",): events}, {"10.0.0.1": episodes.Host(counts, beside)}, wanted)[0]

    start, loss, undo = (256, 10, 99), (3, 5, 5), (32, 10, 99)

    def test_what_agrees_is_accepted(self):
        self.assertEqual(self.check(self.start, self.loss, self.undo, wanted=["loss", "undo"], SackRecovery=1, FullUndo=1), [])

    def test_another_hosts_recovery_is_not_taken_for_ones_own(self):
        events = [(1, dict(events=self.loss[0], window=5, threshold=5, state=0))]
        here, there = (episodes.Host(collections.Counter(total), 0) for total in ({}, {"TcpExtTCPSackRecovery": 1}))
        faults, _ = episodes.check({("10.0.0.1",): events}, {"10.0.0.1": here, "10.0.0.2": there}, [])
        self.assertEqual(faults, ["10.0.0.1: 0 recoveries, but 1 losses in the trace",
                                  "10.0.0.2: 1 recoveries, but 0 losses in the trace"])

    def test_recoveries_beside_marimo_are_as_many_as_segments_sent_again_at_most(self):
        run = self.start, self.loss, self.undo
        for recoveries, agrees in [(0, False), (1, True), (3, True), (4, False)]:
            faults = self.check(*run, beside=2, SackRecovery=recoveries, FullUndo=1)
            self.assertEqual(not faults, agrees, faults)

    def test_senders_of_the_trace_are_the_flows_that_ended_as_marimos(self):
        def flow(congestion, port, retransmissions):
            return dict(source="10.0.0.2", destination="10.0.0.1", port=port, congestion=congestion,
                        retransmissions=retransmissions)

        flows = [flow("marimo", "10000", "3"), flow("marimo-reno", "10001", "8"), flow("marimo-reno", "10002", "1")]
        # A receiving end, whose peer's port is none of the plan's, has no flow of its own.
        keys = [("10.0.0.2", "10.0.0.1", "10000"), ("10.0.0.1", "10.0.0.2", "36374")]
        faults, beside = episodes.senders(flows, keys)
        self.assertEqual((faults, dict(beside)), ([], {"10.0.0.2": 9}))
        faults, _ = episodes.senders(flows, keys[1:])
        self.assertEqual(faults, ["10.0.0.2 to 10.0.0.1, port 10000: 1 flows ended as Marimo's, 0 are in the trace"])
        faults, _ = episodes.senders(flows, [*keys, ("10.0.0.2", "10.0.0.1", "10001")])
        self.assertEqual(faults, ["10.0.0.2 to 10.0.0.1, port 10001: 0 flows ended as Marimo's, 1 are in the trace"])

    def test_what_does_not_is_noticed(self):
        run = self.start, self.loss, self.undo
        for rows, total, says in [
            (run, dict(SackRecovery=2, FullUndo=1), "2 recoveries, but 1 losses"),
            (run, dict(FullUndo=1), "0 recoveries, but 1 losses"),
            (run, dict(SackRecovery=1), "1 of undo in the trace, the kernel counted 0"),
            ([*run[:2], (32, 9, 99)], dict(SackRecovery=1, FullUndo=1), "line 3: undone, yet window is 9, 10 before"),
            ([*run[:2], (32, 10, 98)], dict(SackRecovery=1, FullUndo=1), "line 3: undone, yet threshold is 98"),
            ([*run, (4, 1, 5)], dict(SackRecovery=1, FullUndo=1), "1 of timeout in the trace"),
            (run[:2], dict(SackRecovery=1), "no undo occurred"),
        ]:
            self.assertIn(says, " ".join(self.check(*rows, wanted=["loss", "undo"], **total)))
        self.assertIn("ends within a recovery", " ".join(self.check(*run[:2], state=3, SackRecovery=1)))
