# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plan of flows."""

import unittest

import plan
from testing import row


class Plan(unittest.TestCase):
    def test_plans_have_a_row_for_each_flow(self):
        lines = plan.plan([row(0), row(1, source=4, size=7, start_ps=1_999_500)]).splitlines()
        self.assertEqual(lines[0], "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes")
        first, second = (line.split(",") for line in lines[1:])
        self.assertEqual((first[1], first[3], first[6], first[7]), ("h1", "h0", "5000", "100000"))
        self.assertEqual((second[1], second[6], second[7]), ("h4", "2000", "7"))
        self.assertNotEqual(first[5], second[5])
        self.assertNotEqual(first[2], first[4])
