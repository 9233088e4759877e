# SPDX-License-Identifier: MIT OR Apache-2.0
"""Losses and what was undone, in traces and in counters."""

import collections
import unittest

import episodes


class Episodes(unittest.TestCase):
    def check(self, *rows, wanted=(), state=0, **total):
        """Faults of one connection whose lines are `rows`: events, window, threshold."""
        keys = ("events", "window", "threshold")
        events = [(number, {**dict(zip(keys, row)), "state": state}) for number, row in enumerate(rows, 1)]
        counts = collections.Counter({f"TcpExtTCP{name}": value for name, value in total.items()})
        return episodes.check({"one": events}, counts, wanted)[0]

    start, loss, undo = (256, 10, 99), (3, 5, 5), (32, 10, 99)

    def test_what_agrees_is_accepted(self):
        self.assertEqual(self.check(self.start, self.loss, self.undo, wanted=["loss", "undo"], SackRecovery=1, FullUndo=1), [])

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
