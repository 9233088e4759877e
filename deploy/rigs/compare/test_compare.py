#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of compare.py: numbers, what a rig is told, and what makes a row an error. Needs no rig and no simulator, but for the last
class, which runs the binary that INCAST names."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
import compare  # noqa: E402


def row(flow, source=1, size=100_000, start_ps=5_000_400, law="dctcp", name="incast"):
    return {"flow": str(flow), "src": f"h{source}", "dst": "h0", "size_bytes": str(size), "start_ps": str(start_ps),
            "law": law, "class": name}


# Parameters of laws as run.json has them.
LAWS = {
    "marimo": {
        "beta": 0.5, "decrease_above": 1.0, "decrease_from": "memory", "forget": True, "fractional": False,
        "idle_after": "2101.12us", "increase": 1.0, "increase_below": 0.9, "loss_decrease": 0.5, "loss_load": 1.2,
        "max_decrease": 0.5, "max_increase": 1.0, "min_epoch": 2, "rule": "paper", "settle": 0, "slow_start": "epoch",
        "table": "calibrated", "target": 0.95,
    },
    "dctcp": {"gain": 0.0625, "initial_alpha": 1.0, "min_window": "2.896KB", "whole_packets": True},
    "cubic": {
        "beta": 0.7, "ecn": False, "fast_convergence": True, "hystart": True, "hystart_max_threshold": "16ms",
        "hystart_min_threshold": "4ms", "steepness": 0.4,
    },
    "bbr": {
        "ack_aggregation": False, "btlbw_window": 10, "cwnd_gain": 2.0, "drain_gain": 0.75, "full_pipe_growth": 1.25,
        "full_pipe_rounds": 3, "high_gain": 2.8853900817779268, "initial_rtt": "525.28us", "min_window": "5.792KB",
        "pacing_margin": 0.0, "probe_gain": 1.25, "probe_rtt_duration": "200ms", "rtprop_window": "10s",
        "send_quantum": "1.448KB",
    },
}


def scheme(law, **changes):
    return {"law": law, "priority": 0, "ack_priority": 0, "notification_priority": 0, "initial_window": "14.48KB",
            **LAWS[law], **changes}


def run_of(**changes):
    scenario = {
        "profile": "faithful",
        "duration": "60ms",
        "drain": "3s",
        "warmup": "0ps",
        "topology": {"kind": "single-switch", "hosts": 5, "link": {"rate": "1Gbps", "delay": "125us"}},
        "wire": {"gap": "0B"},
        "switch": {
            "agent": "none", "buffer": {"per_port": "150KB"}, "credits": False, "ecn": {"kind": "step", "at": "30280B"},
            "ecn_at": "enqueue", "load_balancing": "ecmp", "pfc": "off", "priorities": 1, "ties": "seeded", "trim": False,
            "virtual_channels": 1,
        },
        "host": {
            "ack_delay": "2ms", "ack_every": 2, "answer_delay": "0ps", "answers_first": True,
            "clock": {"drift_ppm": 0.0, "noise": "0ps", "offset": "0ps"}, "echo": "flag",
            "frames": {"control": "66B", "header": "66B", "smallest": "60B"}, "handshake": True, "mtu": "1448B",
            "notification_delay": "0ps", "quick_acks": 16, "rto_min": "10ms", "timer_tick": "1ms",
        },
        "scheme": [scheme("dctcp")],
    }
    for path, value in changes.items():
        place, keys = scenario, path.split("__")
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
    return {"scheme": "dctcp", "seed": 3, "grid": {}, "scenario": scenario}


class Numbers(unittest.TestCase):
    def test_percentiles_are_nearest_ranks_and_keep_unfinished_flows(self):
        values = list(range(1, 101))
        self.assertEqual([compare.percentile(values, share) for share in (0.5, 0.99, 1.0)], [50, 99, 100])
        self.assertEqual(compare.percentile([7], 0.01), 7)
        self.assertEqual(compare.percentile([3, None, 1, 2], 0.75), 3)
        self.assertIsNone(compare.percentile([3, None, 1, 2], 0.76))
        self.assertIsNone(compare.percentile([], 0.5))

    def test_intervals_are_those_of_student(self):
        # Ten values 1..10: standard deviation 3.02765, t(9) = 2.262.
        mean, half = compare.interval(list(range(1, 11)))
        self.assertEqual(mean, 5.5)
        self.assertAlmostEqual(half, 2.262 * 3.0276503540974917 / math.sqrt(10), places=12)
        self.assertEqual(compare.interval([4.0]), (4.0, None))
        self.assertEqual(compare.interval([4.0, None]), (None, None))

    def test_ratios_are_paired_by_seed(self):
        # Seeds differ by far more than the two sides: paired, the interval is narrow.
        found = compare.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
        for value in found:
            self.assertAlmostEqual(value, 2.0, places=12)
        low = compare.ratio([2.0, 22.0, 180.0], [1.0, 10.0, 100.0])
        self.assertTrue(low[1] < low[0] < low[2])
        for impossible in ([0.0], [None]):
            self.assertIsNone(compare.ratio(impossible, [1.0]))

    def test_quantities_are_exact(self):
        self.assertEqual(compare.quantity("time", "125us", "x"), 125_000_000)
        self.assertEqual(compare.quantity("rate", "2.5Gbps", "x"), 2_500_000_000)
        self.assertEqual(compare.quantity("size", "64KiB", "x"), 65_536)
        for kind, text in [("time", "5 fortnights"), ("size", "1us"), ("size", "0.5B"), ("rate", "Gbps"), ("time", "1.2.3us")]:
            with self.assertRaisesRegex(compare.BadInput, "x: "):
                compare.quantity(kind, text, "x")

    def test_unfinished_flows_show_in_cells(self):
        self.assertEqual(compare.cell([1.0, 1.0]), "1")
        self.assertEqual(compare.cell([1.0, None, None]), "unfinished in 2 of 3")

    def test_classes_have_completion_times_of_their_own_and_nothing_else(self):
        run = {"fct": [1.0, None, 3.0], "class": ["a", "b", "a"], "retransmissions": 7, "marks": 8, "queue": 9.0, "queue_max": 10}
        part = compare.restricted(run, "a")
        self.assertEqual([of(part) for _, _, of in compare.METRICS], [1.0, 3.0, None, None, None, None])
        line = compare.table([{"label": "a", "real": [part], "simulated": [part]}])[2]
        self.assertEqual(line, "| a | kernel | 1 | 3 |  |  |  |  |")
        self.assertTrue(compare.compact([{"label": "a", "real": [part], "simulated": [part]}])[2].endswith("|  |  |  |  |"))


class Settings(unittest.TestCase):
    def test_a_rig_is_told_what_the_scenario_says(self):
        told = compare.rig_settings(run_of(), [row(0)])
        self.assertEqual(told["rtt_ns"], 500_000)
        self.assertEqual((told["bottleneck_rate_bps"], told["host_rate_bps"], told["hosts"]), (10**9, 10**9, 5))
        self.assertEqual((told["mtu"], told["seed"], told["congestion"]), (1500, 3, "dctcp"))
        # 60 ms and 3 s, in whole seconds.
        self.assertEqual((told["deadline_s"], told["frame_overhead_bytes"]), (4, 0))
        self.assertEqual(told["route"], {"rto_min_us": 10_000, "initcwnd": 10, "quickack": False})
        red = told["red"]
        self.assertEqual((red["min"], red["max"], red["limit"], red["avpkt"], red["burst"]), (30_280, 30_281, 150_000, 1514, 20))

    def test_each_class_may_have_its_own_law(self):
        run = run_of(scheme=[scheme("marimo", by_class={"second": scheme("cubic", ecn=True)})])
        rows = [row(0, name="first", law="marimo"), row(1, name="second", law="cubic")]
        self.assertEqual(compare.rig_settings(run, rows)["congestion"], "marimo")
        lines = [line.split(",") for line in compare.plan(rows).splitlines()]
        self.assertEqual([line[-1] for line in lines], ["congestion", "marimo", "cubic"])

    def test_hosts_speak_ecn_or_do_not(self):
        for law, parameters, speaks in [("marimo", {}, "1"), ("bbr", {}, "0"), ("cubic", {}, "0"), ("cubic", {"ecn": True}, "1")]:
            run = run_of(scheme=[scheme(law, **parameters)])
            told = compare.rig_settings(run, [row(0, law=law)])
            self.assertEqual(told["sysctls"]["net.ipv4.tcp_ecn"], speaks, law)
        run = run_of(scheme=[scheme("dctcp", by_class={"second": scheme("cubic")})])
        with self.assertRaisesRegex(compare.BadInput, "some classes speak ECN"):
            compare.rig_settings(run, [row(0), row(1, law="cubic", name="second")])

    def test_what_a_rig_cannot_do_is_refused_by_name(self):
        for changes, rows, says in [
            ({"topology__kind": "fat-tree"}, [row(0)], "topology.kind"),
            ({"switch__ecn": {"kind": "red"}}, [row(0)], "switch.ecn"),
            ({"switch__buffer": {"total": "4MB"}}, [row(0)], "switch.buffer"),
            ({"host__timer_tick": "4ms"}, [row(0)], 'host.timer_tick: found 4ms; a rig has 1ms'),
            ({"host__timer_tick": "0ps"}, [row(0)], "host.timer_tick"),
            ({"host__ack_every": 1}, [row(0)], "host.ack_every: found 1; a rig has 2"),
            ({"host__ack_delay": None}, [row(0)], "host.ack_delay: found nothing; a rig has 2ms or 40ms"),
            ({"host__quick_acks": 0}, [row(0)], "host.quick_acks"),
            ({"host__echo": "counts"}, [row(0)], "host.echo"),
            ({"host__handshake": False}, [row(0)], "host.handshake"),
            ({"host__rto_min": "1500us"}, [row(0)], "host.rto_min"),
            ({"host__frames": None}, [row(0)], "host.frames.header: found nothing"),
            ({"host__clock": {"offset": "1us", "drift_ppm": 0, "noise": "0ps"}}, [row(0)], "host.clock.offset"),
            ({"host__path_penalty": True}, [row(0)], "host.path_penalty: found true; a rig has nothing of the kind"),
            ({"switch__priorities": 2}, [row(0)], "switch.priorities"),
            ({"switch__ecn_at": "dequeue"}, [row(0)], "switch.ecn_at"),
            ({"wire__rounding": "whole-ns"}, [row(0)], "wire.rounding"),
            ({"topology__link__loss": 0.01}, [row(0)], "topology.link.loss: found 0.01"),
            ({"warmup": "1ms"}, [row(0)], "warmup"),
            ({"event": [{}]}, [row(0)], "event"),
            ({"scheme": [scheme("dctcp", initial_window=None)]}, [row(0)], "initial_window"),
            ({"scheme": [scheme("dctcp", initial_window="14000B")]}, [row(0)], "initial_window"),
            ({"scheme": [scheme("dctcp", gain=0.5)]}, [row(0)], "gain: found 0.5; a rig has 0.0625"),
            ({"scheme": [scheme("dctcp", whole_packets=False)]}, [row(0)], "whole_packets"),
            ({"scheme": [scheme("dctcp", underlay="on-ramp")]}, [row(0)], "underlay"),
            ({"scheme": [scheme("dctcp", priority=1)]}, [row(0)], "priority"),
            ({"scheme": [scheme("cubic", hystart=False)]}, [row(0, law="cubic")], "hystart"),
            ({"scheme": [scheme("bbr", initial_rtt="1ms")]}, [row(0, law="bbr")], "initial_rtt"),
            ({"scheme": [scheme("marimo", fractional=True)]}, [row(0, law="marimo")], "fractional"),
            ({"scheme": [scheme("marimo", idle_after="1ms")]}, [row(0, law="marimo")], "idle_after"),
            ({}, [row(0, law="swift")], "found the law swift; a rig has marimo, dctcp, cubic, bbr"),
            ({}, [{**row(0), "dst": "h3"}], "flows go to h3"),
        ]:
            with self.assertRaisesRegex(compare.BadInput, says):
                compare.rig_settings(run_of(**changes), rows)

    def test_marimos_parameters_are_the_modules(self):
        def told(**changes):
            run = run_of(scheme=[scheme("marimo", **changes)])
            return compare.marimo(run, [row(0, law="marimo")], folder)

        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        words, table = told()
        self.assertEqual(words, {
            "rule": "paper", "decrease_from": "memory", "slow_start": "epoch", "settle": 0, "increase": 1, "max_increase": 1,
            "increase_below": 900, "decrease_above": 1000, "target": 950, "max_decrease": 500, "loss_load": 1200,
            "loss_decrease": 500, "beta_shift": 1, "forget": 1, "min_epoch": 2, "initial_window": 10,
        })
        self.assertIsNone(table)
        for changes, name, value in [
            ({"target": 0.875}, "target", 875), ({"beta": 0.0625}, "beta_shift", 4), ({"forget": False}, "forget", 0),
            ({"rule": "settling"}, "rule", "settling"), ({"settle": 3}, "settle", 3),
        ]:
            self.assertEqual(told(**changes)[0][name], value)
        for changes, says in [({"target": 0.9505}, "target: found 0.9505; the module has whole thousandths"),
                              ({"max_increase": 2.7}, "max_increase: found 2.7; the module has whole packets"),
                              ({"table": "linear"}, "table: a rig takes \"calibrated\" or a file")]:
            with self.assertRaisesRegex(compare.BadInput, says):
                told(**changes)
        (folder / "f.table").write_text("marimo-f 1\n")
        self.assertEqual(told(table="f.table")[1], "marimo-f 1\n")
        # One module: classes share its parameters.
        rows = [row(0, name="first", law="marimo"), row(1, name="second", law="marimo")]
        run = run_of(scheme=[scheme("marimo", by_class={"second": scheme("marimo", target=0.9)})])
        with self.assertRaisesRegex(compare.BadInput, "different parameters"):
            compare.marimo(run, rows, folder)
        self.assertEqual(compare.marimo(run_of(), [row(0)], folder), ({}, None))

    def test_plans_have_a_row_for_each_flow(self):
        lines = compare.plan([row(0), row(1, source=4, size=7, start_ps=1_999_500)]).splitlines()
        self.assertEqual(lines[0], "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes")
        first, second = (line.split(",") for line in lines[1:])
        self.assertEqual((first[1], first[3], first[6], first[7]), ("h1", "h0", "5000", "100000"))
        self.assertEqual((second[1], second[6], second[7]), ("h4", "2000", "7"))
        self.assertNotEqual(first[5], second[5])
        self.assertNotEqual(first[2], first[4])


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
        found = compare.real(self.folder, self.rows)
        self.assertEqual(found["fct"], [2000.0, 2000.001])
        self.assertEqual((found["marks"], found["delivered_ce"], found["retransmissions"]), (4, 4, 2))
        self.assertAlmostEqual(found["queue"], 3028.0)
        self.assertEqual(found["queue_max"], 6056)
        self.assertIn("uname.txt", found["raw"])

    def test_flows_that_did_not_finish_are_kept_as_the_slowest(self):
        leave(self.folder, self.rows, unfinished=[1])
        found = compare.real(self.folder, self.rows)
        self.assertEqual(found["fct"], [2000.0, None])
        self.assertEqual((compare.percentile(found["fct"], 0.5), compare.percentile(found["fct"], 0.99)), (2000.0, None))
        # What ended after the simulation would have ended did not finish either: the second one did, 1 ns later.
        leave(self.folder, self.rows)
        start = round(int(self.rows[0]["start_ps"]) / 1000)
        self.assertEqual(compare.real(self.folder, self.rows, start + 2_000_000)["fct"], [2000.0, None])

    def test_senders_that_did_not_finish_need_not_have_heard_of_all_marks(self):
        leave(self.folder, self.rows, marked=40, ce=40, heard=0)
        with self.assertRaisesRegex(compare.Contradiction, "senders heard of 0"):
            compare.check_echo(compare.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows, marked=40, ce=40, heard=0, unfinished=[1])
        compare.check_echo(compare.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows, marked=4, ce=4, heard=40, unfinished=[1])
        with self.assertRaisesRegex(compare.Contradiction, "senders heard of 40"):
            compare.check_echo(compare.real(self.folder, self.rows), self.folder)

    def test_counters_that_contradict_each_other_are_errors(self):
        leave(self.folder, self.rows, marked=5)
        with self.assertRaisesRegex(compare.Contradiction, "marked 5 packets and had no room for 0, and hosts received 4"):
            compare.real(self.folder, self.rows)
        # A packet that was marked and then found no room.
        leave(self.folder, self.rows, marked=5, overflowed=1)
        self.assertEqual(compare.real(self.folder, self.rows)["marks"], 4)
        leave(self.folder, self.rows, marked=3, overflowed=9)
        with self.assertRaisesRegex(compare.Contradiction, "hosts received 4"):
            compare.real(self.folder, self.rows)
        leave(self.folder, self.rows, heard=40)
        with self.assertRaisesRegex(compare.Contradiction, "senders heard of 40"):
            compare.check_echo(compare.real(self.folder, self.rows), self.folder)
        leave(self.folder, self.rows[:1])
        with self.assertRaisesRegex(compare.Contradiction, "has 1 flows"):
            compare.real(self.folder, self.rows)
        leave(self.folder, [self.rows[0], {**self.rows[1], "size_bytes": "9"}])
        with self.assertRaisesRegex(compare.Contradiction, "9 bytes instead of 100000"):
            compare.real(self.folder, self.rows)
        (self.folder / "tc.json").write_text("[]")
        leave_tc = self.folder / "tc.json"
        leave(self.folder, self.rows)
        leave_tc.write_text("[]")
        with self.assertRaisesRegex(compare.Contradiction, "0 RED queues"):
            compare.real(self.folder, self.rows)


class Pages(unittest.TestCase):
    def test_tables_are_rewritten_in_place(self):
        page = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "page.md"
        text = f"before\n{compare.begin('a')}\nold\n{compare.END}\nbetween\n{compare.begin('b')}\nkept\n{compare.END}\n"
        page.write_text(text)
        self.assertTrue(compare.update(page, "a", "new\n"))
        self.assertEqual(page.read_text(), text.replace("old", "new"))
        self.assertFalse(compare.update(page, "c", "new\n"))
        page.write_text(f"{compare.begin('a')}\nno end")
        with self.assertRaisesRegex(compare.BadInput, "there is no"):
            compare.update(page, "a", "new")


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
        self.page.write_text(f"{compare.begin('hosts-incast')}\n{compare.END}\n")

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


if __name__ == "__main__":
    unittest.main()
