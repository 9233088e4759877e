# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line, without a kernel: what is bad input, and what is said of it."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import plan
import rig
from testing import GOOD, ROW


class Input(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_rig(self, changes, rows=(ROW,)):
        """Exit code and what is said."""
        (self.folder / "rig.json").write_text(changes if isinstance(changes, str) else json.dumps(GOOD | changes))
        (self.folder / "plan.csv").write_text("\n".join([plan.HEADER, *rows]) + "\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = rig.main([str(self.folder / "rig.json"), str(self.folder / "out")])
        return code, said.getvalue()

    def test_bad_input_names_the_key_and_what_is_allowed(self):
        for changes, says in [
            ("{", "rig.json"),
            ("[]", "expected an object"),
            ({"speed": 1}, "speed: unknown key; there are hosts, "),
            ({"hosts": 1}, "hosts: expected a whole number from 2 to 200; found 1"),
            ({"hosts": True}, "hosts: expected a whole number"),
            ({"congestion": "re no"}, "congestion: expected a name"),
            ({"congestion": {"a": "reno"}}, "the plan's column `congestion`"),
            ({"red": {"min": 1}}, "red.max: missing"),
            ({"red": GOOD["red"] | {"max": 30_000}}, "red.max: expected more than red.min"),
            ({"red": GOOD["red"] | {"limit": 30_001}}, "red.limit: expected more than red.max"),
            ({"red": GOOD["red"] | {"burst": 3}}, "red.burst: expected at least red.min / red.avpkt, 21; found 3"),
            ({"red": GOOD["red"] | {"drop": True}}, "red.drop: unknown key"),
            ({"route": {"rto_min_us": 1500}}, "route.rto_min_us: expected whole milliseconds"),
            ({"faults": {"ecn": "gone"}}, "faults.ecn: expected kept or stripped or ce"),
            ({"sysctls": {"kernel.panic": 1}}, "keys are sysctls below net."),
            ({"sysctls": {"net.ipv4.tcp_ecn": "1'; reboot"}}, "an object of numbers and words"),
            ({"churn": {"connections": 1, "seconds": 1}}, "plan, churn: one of them is wanted"),
            ({"plan": "none.csv"}, "none.csv"),
        ]:
            code, said = self.run_rig(changes)
            self.assertEqual(code, 2, said)
            self.assertIn(says, said)
            self.assertFalse((self.folder / "out").exists(), "nothing is written")

    def test_a_plan_speaks_of_the_hosts_that_there_are(self):
        for row, says in [
            (ROW.replace("h1", "h3"), "line 2: source_namespace is h0 to h2; found 'h3'"),
            (ROW.replace("10.0.0.2", "10.0.0.9"), "line 2: the address of h1 is 10.0.0.2; found '10.0.0.9'"),
        ]:
            code, said = self.run_rig({}, [row])
            self.assertEqual(code, 2, said)
            self.assertIn(says, said)

    def test_a_fingerprint_has_no_input(self):
        for words in ([], ["rig.json"], ["--fingerprint", "rig.json"], ["--fingerprint", "rig.json", "out"]):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                rig.main(words)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn("RIG.json and FOLDER, or --fingerprint", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(rig.main(["--fingerprint", "--module", "/nowhere.ko"]), 2)
        self.assertIn("there is no file /nowhere.ko", said.getvalue())
