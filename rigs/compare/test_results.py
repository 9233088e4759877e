# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading what a rig left, and what makes a row an error."""

import csv
import json
import pathlib
import tempfile
import unittest

import estimates
import results
from errors import Contradiction
from testing import row


def leave(folder, rows, marked=4, ce=4, heard=4, overflowed=0, unfinished=()):
    """What a rig leaves behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "FLOWS.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow("flow,start_ns,connected_ns,end_ns,bytes,ok,retransmissions,delivered,delivered_ce,congestion".split(","))
        for index, planned in enumerate(rows):
            start = round(int(planned["start_ps"]) / 1000)
            # As rig-traffic has it: a flow that did not finish has no end, and fewer bytes than its size.
            end = [start + 2_000_000 + index, planned["size_bytes"], 1] if index not in unfinished else ["", 77, 0]
            out.writerow([planned["flow"], start, start + 500_000, *end, 1, 70, heard if index == 0 else 0, planned["law"]])
    (folder / "tc.json").write_text(json.dumps([{"kind": "htb"}, {"kind": "red", "marked": marked, "pdrop": overflowed, "early": 0}]))
    (folder / "nstat-h0.txt").write_text(f"#kernel\nIpExtInCEPkts                   {ce}                 0.0\nTcpExtTCPTimeouts 0 0.0\n")
    (folder / "nstat-h1.txt").write_text("#kernel\nIpExtInCEPkts                   0                 0.0\n")
    (folder / "queue.csv").write_text("time_ns,backlog_bytes\n0,0\n100000,3028\n200000,6056\n")
    (folder / "uname.txt").write_text("Linux 6.1.0 x86_64\n")


class Reconciliation(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "run"
        self.rows = [row(0), row(1, source=2)]

    def test_what_a_rig_left_is_read(self):
        leave(self.folder, self.rows)
        found = results.real(self.folder, self.rows)
        self.assertEqual(found["fct"], [2000.0, 2000.001])
        self.assertEqual((found["marks"], found["delivered_ce"], found["retransmissions"]), (4, 4, 2))
        self.assertAlmostEqual(found["queue"], 3028.0)
        self.assertEqual(found["queue_max"], 6056)
        self.assertIn("uname.txt", found["raw"])

    def test_flows_that_did_not_finish_are_kept_as_the_slowest(self):
        leave(self.folder, self.rows, unfinished=[1])
        found = results.real(self.folder, self.rows)
        self.assertEqual(found["fct"], [2000.0, None])
        self.assertEqual((estimates.percentile(found["fct"], 0.5), estimates.percentile(found["fct"], 0.99)), (2000.0, None))
        # What ended after the simulation would have ended did not finish either: the second one did, 1 ns later.
        leave(self.folder, self.rows)
        start = round(int(self.rows[0]["start_ps"]) / 1000)
        self.assertEqual(results.real(self.folder, self.rows, start + 2_000_000)["fct"], [2000.0, None])

    def test_senders_that_did_not_finish_need_not_have_heard_of_all_marks(self):
        leave(self.folder, self.rows, marked=40, ce=40, heard=0)
        with self.assertRaisesRegex(Contradiction, "senders heard of 0"):
            results.check_echo(results.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows, marked=40, ce=40, heard=0, unfinished=[1])
        results.check_echo(results.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows, marked=4, ce=4, heard=40, unfinished=[1])
        with self.assertRaisesRegex(Contradiction, "senders heard of 40"):
            results.check_echo(results.real(self.folder, self.rows), self.folder)

    def test_counters_that_contradict_each_other_are_errors(self):
        leave(self.folder, self.rows, marked=5)
        with self.assertRaisesRegex(Contradiction, "marked 5 packets and had no room for 0, and hosts received 4"):
            results.real(self.folder, self.rows)
        # A packet that was marked and then found no room.
        leave(self.folder, self.rows, marked=5, overflowed=1)
        self.assertEqual(results.real(self.folder, self.rows)["marks"], 4)
        leave(self.folder, self.rows, marked=3, overflowed=9)
        with self.assertRaisesRegex(Contradiction, "hosts received 4"):
            results.real(self.folder, self.rows)
        leave(self.folder, self.rows, heard=40)
        with self.assertRaisesRegex(Contradiction, "senders heard of 40"):
            results.check_echo(results.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows[:1])
        with self.assertRaisesRegex(Contradiction, "has 1 flows"):
            results.real(self.folder, self.rows)
        leave(self.folder, [self.rows[0], {**self.rows[1], "size_bytes": "9"}])
        with self.assertRaisesRegex(Contradiction, "9 bytes instead of 100000"):
            results.real(self.folder, self.rows)
        (self.folder / "tc.json").write_text("[]")
        leave_tc = self.folder / "tc.json"
        leave(self.folder, self.rows)
        leave_tc.write_text("[]")
        with self.assertRaisesRegex(Contradiction, "0 RED queues"):
            results.real(self.folder, self.rows)
