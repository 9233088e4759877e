# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantities."""

import unittest

import values
from errors import BadInput


class Values(unittest.TestCase):
    def test_quantities_are_exact(self):
        self.assertEqual(values.quantity("time", "125us", "x"), 125_000_000)
        self.assertEqual(values.quantity("rate", "2.5Gbps", "x"), 2_500_000_000)
        self.assertEqual(values.quantity("size", "64KiB", "x"), 65_536)
        for kind, text in [("time", "5 fortnights"), ("size", "1us"), ("size", "0.5B"), ("rate", "Gbps"), ("time", "1.2.3us")]:
            with self.assertRaisesRegex(BadInput, "x: "):
                values.quantity(kind, text, "x")
