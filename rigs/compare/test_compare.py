# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command on both sides, with the simulator that INCAST names and a rig that plays nothing."""

import contextlib
import io
import json
import os
import pathlib
import stat
import tempfile
import unittest

import compare
import pages


# Plays nothing: what would have come of it if every flow had taken its size at 500 Mbit/s, and the last ones had not finished.
RIG = """#!/usr/bin/env python3
import csv, json, os, pathlib, sys
version = os.environ.get("VERSION", "one")
if sys.argv[1:] == ["--fingerprint"]:
    print(version)
    sys.exit()
settings = json.loads(pathlib.Path(sys.argv[1]).read_text())
folder = pathlib.Path(sys.argv[2])
count = folder.parent / "played"
count.write_text(str(int(count.read_text()) + 1 if count.exists() else 1))
flows = list(csv.DictReader(open(folder / settings["plan"])))
late = flows[len(flows) - int(os.environ.get("LATE", "0")):]
with open(folder / "FLOWS.csv", "w") as out:
    print("flow,start_ns,connected_ns,end_ns,bytes,ok,retransmissions,delivered,delivered_ce,congestion", file=out)
    for flow in flows:
        end = int(flow["start_ns"]) + int(flow["bytes"]) * 16
        end = ["", 77, 0] if flow in late else [end, flow["bytes"], 1]
        print(flow["flow"], flow["start_ns"], flow["start_ns"], *end, 0, 9, 0, settings["congestion"], sep=",", file=out)
marked = int(os.environ.get("MARKED", "0"))
(folder / "tc.json").write_text(json.dumps([{"kind": "red", "marked": marked}]))
(folder / "nstat.txt").write_text("IpExtInCEPkts 0 0.0\\n")
(folder / "uname.txt").write_text("Linux of a test\\n")
if os.environ.get("VERSIONS"):
    version = str(settings["seed"])
(folder / "srcversion.txt").write_text(version + "\\n")
sys.exit(4 if late else 0)
"""


@unittest.skipUnless(os.environ.get("INCAST"), "INCAST names no binary of the simulator")
class WithTheSimulator(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.rig = self.folder / "rig"
        self.rig.write_text(RIG)
        self.rig.chmod(self.rig.stat().st_mode | stat.S_IXUSR)
        self.page = self.folder / "page.md"
        self.page.write_text(f"{pages.begin('hosts-incast')}\n{pages.END}\n")

    def call(self, *more):
        words = [str(compare.ROOT / "scenarios/hosts/incast.toml"), "--short", "--incast", os.environ["INCAST"],
                 "--out", str(self.folder / "out"), "--only", "scheme=dctcp,cubic,fan_in=4", *more]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare.main(words)
        return code, out.getvalue(), err.getvalue()

    def test_both_sides_stand_next_to_each_other(self):
        code, out, err = self.call("--rig", str(self.rig), "--update", str(self.page))
        self.assertEqual((code, err), (0, ""))
        # 200 KB at 500 Mbit/s are 3,200 us, for every flow and seed.
        kernels = [line for line in out.splitlines() if "| kernel |" in line]
        self.assertEqual(len(kernels), 2, out)
        self.assertTrue(all("| 3,200 | 3,200 | 0 | 0 |" in line for line in kernels), out)
        self.assertEqual(sum("| simulated |" in line for line in out.splitlines()), 2)
        self.assertIn("Kernel: Linux of a test.", out)
        page = self.page.read_text().splitlines()
        for scheme in ("dctcp", "cubic"):
            lines = [line.split(" | ") for line in page if line.startswith(f"| {scheme}, fan_in 4 | 3,200 | ")]
            self.assertEqual(len(lines), 1, page)
            # Real over simulated, and the marks of both: the rig's are none.
            self.assertRegex(lines[0][3], r"^0\.[0-9]{2} \([0-9.]+–[0-9.]+\)$")
            self.assertRegex(lines[0][8], r"^0, [1-9]")
        results = json.loads((self.folder / "out/hosts-incast.json").read_text())
        self.assertEqual(len(results), 4)
        self.assertTrue(all(entry["kernel"]["raw"]["uname.txt"] == "Linux of a test\n" for entry in results))
        # Nothing is played twice.
        played = self.folder / "out/kernel/hosts-incast/played"
        self.assertEqual(played.read_text(), "4")
        self.assertEqual(self.call("--rig", str(self.rig))[0], 0)
        self.assertEqual(played.read_text(), "4")
        # Unless it is another rig: its module, say, has changed.
        self.set("VERSION", "two")
        self.assertEqual(self.call("--rig", str(self.rig))[0], 0)
        self.assertEqual(played.read_text(), "8")

    def set(self, name, value):
        os.environ[name] = value
        self.addCleanup(os.environ.pop, name)

    def test_flows_that_do_not_finish_are_a_result(self):
        self.set("LATE", "1")
        code, out, err = self.call("--rig", str(self.rig))
        self.assertEqual((code, err), (0, ""))
        kernels = [line for line in out.splitlines() if "| kernel |" in line]
        self.assertTrue(all("| 3,200 | unfinished in 2 of 2 | 0 | 0 |" in line for line in kernels), out)

    def test_runs_of_different_modules_are_an_error(self):
        self.set("VERSIONS", "1")
        code, _, err = self.call("--rig", str(self.rig), "--update", str(self.page))
        self.assertEqual(code, 1)
        self.assertIn("different modules, srcversions 1, 2", err)
        self.assertNotIn("kernel", self.page.read_text())

    def test_what_a_rig_does_not_have_is_bad_input(self):
        code, _, err = self.call("--rig", str(self.rig), "--set", "host.timer_tick=4ms")
        self.assertEqual(code, 2)
        self.assertIn("host.timer_tick: found 4ms; a rig has 1ms", err)
        self.assertFalse((self.folder / "out/kernel").exists())

    def test_a_contradiction_fails_and_leaves_pages_alone(self):
        os.environ["MARKED"] = "3"
        self.addCleanup(os.environ.pop, "MARKED")
        before = self.page.read_text()
        code, _, err = self.call("--rig", str(self.rig), "--update", str(self.page))
        self.assertEqual(code, 1)
        self.assertIn("the queue marked 3 packets and had no room for 0, and hosts received 0 with CE", err)
        self.assertEqual(self.page.read_text(), before)

    def test_a_rig_that_fails_is_an_error(self):
        code, _, err = self.call("--rig", "false")
        self.assertEqual(code, 1)
        self.assertIn("false --fingerprint ended with 1", err)
        self.rig.write_text('#!/bin/sh\n[ "$1" != --fingerprint ] || exec echo one\necho broke\nexit 1\n')
        code, _, err = self.call("--rig", str(self.rig))
        self.assertEqual(code, 1)
        self.assertIn("the rig ended with 1: broke", err)

    def test_a_rig_that_cannot_run_here_is_skipped_unless_required(self):
        self.rig.write_text("#!/bin/sh\necho there is no kernel\nexit 3\n")
        before = os.environ.pop("CI", None)
        code, out, _ = self.call("--rig", str(self.rig), "--seeds", "1")
        self.assertEqual(code, 0)
        self.assertEqual(out, "skipped: the comparison with a real kernel (there is no kernel)\n")
        os.environ["CI"] = "true"
        code, _, err = self.call("--rig", str(self.rig), "--seeds", "1")
        os.environ.pop("CI")
        if before is not None:
            os.environ["CI"] = before
        self.assertEqual(code, 1)
        self.assertIn("the rig cannot run here", err)

    def test_without_a_rig_the_simulator_runs_alone(self):
        code, out, _ = self.call()
        self.assertEqual(code, 0)
        self.assertIn("Simulated alone.", out)
        self.assertNotIn("| kernel |", out)

    def test_bad_input_has_its_own_code(self):
        self.assertEqual(self.call("--only", "scheme=nothing")[0], 2)
        self.assertEqual(compare.main(["no-such.toml"]), 2)
