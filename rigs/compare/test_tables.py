# SPDX-License-Identifier: MIT OR Apache-2.0
"""What stands in cells and lines."""

import unittest

import tables


class Tables(unittest.TestCase):
    def test_unfinished_flows_show_in_cells(self):
        self.assertEqual(tables.cell([1.0, 1.0]), "1")
        self.assertEqual(tables.cell([1.0, None, None]), "unfinished in 2 of 3")

    def test_classes_have_completion_times_of_their_own_and_nothing_else(self):
        run = {"fct": [1.0, None, 3.0], "class": ["a", "b", "a"], "retransmissions": 7, "marks": 8, "queue": 9.0, "queue_max": 10}
        part = tables.restricted(run, "a")
        self.assertEqual([of(part) for _, _, of in tables.METRICS], [1.0, 3.0, None, None, None, None])
        line = tables.table([{"label": "a", "real": [part], "simulated": [part]}])[2]
        self.assertEqual(line, "| a | kernel | 1 | 3 |  |  |  |  |")
        self.assertTrue(tables.compact([{"label": "a", "real": [part], "simulated": [part]}])[2].endswith("|  |  |  |  |"))
