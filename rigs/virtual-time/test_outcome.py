# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a run ended, and what its log says."""

import unittest

import outcome


class Outcome(unittest.TestCase):
    def test_late_flows_are_not_a_failure_of_the_run(self):
        self.assertEqual(outcome.outcome(0, []), "played")
        self.assertEqual(outcome.outcome(outcome.UNFINISHED, []), "unfinished")
        for code, trouble in [(1, []), (2, []), (0, ["BUG"]), (outcome.UNFINISHED, ["BUG"])]:
            self.assertEqual(outcome.outcome(code, trouble), "broke")

    def test_unfinished_flows_are_counted(self):
        self.assertIsNone(outcome.unfinished({}))
        self.assertEqual(outcome.unfinished({"FLOWS.csv": b"flow,ok\n1,1\n2,0\n3,0\n"}), 2)


class Log(unittest.TestCase):
    def test_trouble_is_seen_but_for_the_known_report(self):
        known = ["[ 0.0] WARNING: suspicious RCU usage", "[ 0.0] 6.1 #1", "[ 0.0] ---",
                 "[ 0.0] lib/maple_tree.c:860 suspicious rcu_dereference_check() usage!", "[ 0.0] Call Trace:",
                 "[ 0.0]  [<60>] ? lockdep_rcu_suspicious+0x0/0x180"]
        self.assertEqual(outcome.troubles([*known, "[ 0.1] fine"]), [])
        other = [known[0], *known[1:3], known[3].replace("lib/maple_tree.c", "net/ipv4/tcp_cong.c"), *known[4:]]
        self.assertEqual(outcome.troubles(other)[0], known[0])
        for bad in ["[ 1.0] BUG: KASAN: use-after-free in marimo", "[ 1.0] WARNING: CPU: 0 PID: 1 at net/core"]:
            self.assertEqual(outcome.troubles([*known, bad]), [bad])
