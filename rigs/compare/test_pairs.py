# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a scheme brings over another, and completion times of requests."""

import unittest

import pairs
import results
from testing import row


def run(fct, rct=None):
    return {"fct": fct, "class": ["incast"] * len(fct), "rct": {"incast": rct} if rct else {}}


def point(scheme, real, simulated, name="incast"):
    return {"scheme": scheme, "grid": "fan_in 4", "class": name, "real": real, "simulated": simulated}


class Pairs(unittest.TestCase):
    def test_a_request_is_done_with_its_last_flow(self):
        rows = [{**row(0, start_ps=10**9), "request": "7"}, {**row(1, start_ps=2 * 10**9), "request": "7"},
                {**row(2, start_ps=0), "request": "8"}, {**row(3, name="background"), "request": ""}]
        self.assertEqual(results.requests(rows, [5000, 2500, None, 1]), {"incast": [5000, None]})
        # The second flow began 1,000 us later.
        self.assertEqual(results.requests(rows, [1000, 2500, 3, 1]), {"incast": [3500, 3]})

    def test_without_is_over_with_seed_by_seed(self):
        lines = pairs.pairs([point("cubic", [run([1], [8000]), run([1], [4000])], [run([1], [9000]), run([1], [9000])]),
                             point("cubic + On-Ramp", [run([1], [4000]), run([1], [2000])], [run([1], [3000]), run([1], [3000])])])
        self.assertEqual(len(lines), 4)
        self.assertIn("cubic + On-Ramp, fan_in 4, incast: requests | kernel |", lines[2])
        self.assertEqual(lines[2].count("2.00 [2.00, 2.00]"), 3)
        self.assertEqual(lines[3].count("9 ± 0, 3 ± 0: 3.00 [3.00, 3.00]") + lines[3].count("9, 3: 3.00 [3.00, 3.00]"), 3, lines[3])

    def test_flows_where_there_are_no_requests_and_nothing_without_a_pair(self):
        alone = [point("cubic", [], [run([6000])], "background"), point("bbr + On-Ramp", [], [run([1])], "background")]
        self.assertEqual(pairs.pairs(alone), [])
        lines = pairs.pairs([*alone, point("cubic + On-Ramp", [], [run([4000])], "background")])
        self.assertEqual(len(lines), 3)
        self.assertIn("cubic + On-Ramp, fan_in 4, background | simulated | 6, 4: 1.50 [1.50, 1.50] |", lines[2])

    def test_an_unfinished_request_is_no_number(self):
        lines = pairs.pairs([point("cubic", [], [run([1], [8000, None])]), point("cubic + On-Ramp", [], [run([1], [4000, 4000])])])
        self.assertIn("8, 4: 2.00", lines[2])
        self.assertEqual(lines[2].count("unfinished in 1 of 1, 4: –"), 2)


if __name__ == "__main__":
    unittest.main()
