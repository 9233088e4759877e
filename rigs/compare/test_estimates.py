# SPDX-License-Identifier: MIT OR Apache-2.0
"""Percentiles, intervals and ratios, against numbers worked out by hand."""

import math
import unittest

import estimates


class Estimates(unittest.TestCase):
    def test_percentiles_are_nearest_ranks_and_keep_unfinished_flows(self):
        values = list(range(1, 101))
        self.assertEqual([estimates.percentile(values, share) for share in (0.5, 0.99, 1.0)], [50, 99, 100])
        self.assertEqual(estimates.percentile([7], 0.01), 7)
        self.assertEqual(estimates.percentile([3, None, 1, 2], 0.75), 3)
        self.assertIsNone(estimates.percentile([3, None, 1, 2], 0.76))
        self.assertIsNone(estimates.percentile([], 0.5))

    def test_intervals_are_those_of_student(self):
        # Ten values 1..10: standard deviation 3.02765, t(9) = 2.262.
        mean, half = estimates.interval(list(range(1, 11)))
        self.assertEqual(mean, 5.5)
        self.assertAlmostEqual(half, 2.262 * 3.0276503540974917 / math.sqrt(10), places=12)
        self.assertEqual(estimates.interval([4.0]), (4.0, None))
        self.assertEqual(estimates.interval([4.0, None]), (None, None))

    def test_ratios_are_paired_by_seed(self):
        # Seeds differ by far more than the two sides: paired, the interval is narrow.
        found = estimates.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
        for value in found:
            self.assertAlmostEqual(value, 2.0, places=12)
        low = estimates.ratio([2.0, 22.0, 180.0], [1.0, 10.0, 100.0])
        self.assertTrue(low[1] < low[0] < low[2])
        for impossible in ([0.0], [None]):
            self.assertIsNone(estimates.ratio(impossible, [1.0]))
