# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long flows share a port."""

import unittest

from fairness import fairness, jain


class Fairness(unittest.TestCase):
    def test_equal_rates_are_fair(self):
        self.assertEqual(jain([5.0] * 4), 1)
        # One with all of it: one in four.
        self.assertAlmostEqual(jain([1.0, 1e9, 1e9, 1e9]), 0.25)
        self.assertIsNone(jain([1.0, None]))

    def test_only_long_flows_are_compared(self):
        run = {"class": ["long"] * 2, "fct": [2.0, 4.0]}
        lines = fairness([{"label": "cubic", "real": [run, run], "simulated": [run, run]}])
        self.assertEqual(lines[2], "| cubic | kernel | 0.9 | 2.00 (2.00–2.00) |")
        self.assertEqual(len(lines), 4)
        self.assertEqual(fairness([{"label": "cubic", "real": [], "simulated": [{**run, "class": ["long", "short"]}]}]), [])
