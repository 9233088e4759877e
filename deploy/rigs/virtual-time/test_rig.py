#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the rig does with its input, without a kernel."""

import collections
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rig  # noqa: E402
import episodes  # noqa: E402
import replay  # noqa: E402

GOOD = {
    "hosts": 3, "bottleneck_rate_bps": 10**9, "host_rate_bps": 10**9, "rtt_ns": 100_001, "buffer_bytes": 100_000,
    "congestion": "reno", "plan": "plan.csv", "red": {"min": 30_000, "max": 30_001, "limit": 100_000, "avpkt": 1500},
}
ROW = "1,h1,10.0.0.2,h0,10.0.0.1,5000,0,1000"


class Input(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_rig(self, changes, rows=(ROW,)):
        """Exit code and what is said."""
        (self.folder / "rig.json").write_text(changes if isinstance(changes, str) else json.dumps(GOOD | changes))
        (self.folder / "plan.csv").write_text("\n".join([rig.HEADER, *rows]) + "\n")
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

    def test_the_port_to_the_receiver_is_what_marks(self):
        (self.folder / "rig.json").write_text(json.dumps(GOOD))
        (self.folder / "plan.csv").write_text(f"{rig.HEADER}\n{ROW}\n")
        settings = rig.settings_of(self.folder / "rig.json")
        self.assertEqual(settings["red"]["burst"], 21)
        plan, rows = rig.flows_of(settings, self.folder)
        texts = rig.scripts(settings, plan, rows, False)
        queues = [line for line in texts["switch.tc"].splitlines() if "handle 10:" in line]
        self.assertIn("dev p0 parent 1:1 handle 10: red limit 100000 min 30000 max 30001", queues[0])
        self.assertTrue(all("bfifo limit 100000" in line for line in queues[1:]))
        self.assertIn("netem limit 1000000 delay 50.0005us", texts["h2.tc"])
        # Whoever talks to whom needs no ARP, in both directions; the third host is alone.
        self.assertIn("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:01", texts["h0.ip"])
        self.assertIn("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:00", texts["h1.ip"])
        self.assertNotIn("neigh", texts["h2.ip"])


    def test_a_fingerprint_has_no_input(self):
        for words in ([], ["rig.json"], ["--fingerprint", "rig.json"], ["--fingerprint", "rig.json", "out"]):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                rig.main(words)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn("RIG.json and FOLDER, or --fingerprint", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(rig.main(["--fingerprint", "--module", "/nowhere.ko"]), 2)
        self.assertIn("there is no file /nowhere.ko", said.getvalue())


class Outcome(unittest.TestCase):
    def test_late_flows_are_not_a_failure_of_the_run(self):
        self.assertEqual(rig.outcome(0, []), "played")
        self.assertEqual(rig.outcome(rig.UNFINISHED, []), "unfinished")
        for code, trouble in [(1, []), (2, []), (0, ["BUG"]), (rig.UNFINISHED, ["BUG"])]:
            self.assertEqual(rig.outcome(code, trouble), "broke")

    def test_unfinished_flows_are_counted(self):
        self.assertIsNone(rig.unfinished({}))
        self.assertEqual(rig.unfinished({"FLOWS.csv": b"flow,ok\n1,1\n2,0\n3,0\n"}), 2)


class Cache(unittest.TestCase):
    def test_what_was_not_used_for_long_goes(self):
        cache = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        names = [f"kernel-plain-{number}" for number in range(rig.KEPT + 2)] + ["kernel-kasan-0", "guest-0"]
        for name in names:
            (cache / name).mkdir()
            # The first is the oldest.
            old = time.time() - 2 * rig.KEPT_FOR + names.index(name)
            os.utime(cache / name, (old, old))
        elsewhere = cache / "elsewhere"
        elsewhere.mkdir()
        (cache / names[1]).rmdir()
        (cache / names[1]).symlink_to(elsewhere)
        os.utime(elsewhere, (1, 1))
        rig.used(cache / names[0])
        left = {path.name for path in cache.iterdir()}
        self.assertEqual(left, {*names, "elsewhere"} - {names[1], names[2]})

    def test_what_was_used_lately_stays(self):
        cache = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for number in range(rig.KEPT + 3):
            (cache / f"guest-{number}").mkdir()
        rig.used(cache / "guest-0")
        self.assertEqual(len(list(cache.iterdir())), rig.KEPT + 3)


class Log(unittest.TestCase):
    def test_trouble_is_seen_but_for_the_known_report(self):
        known = ["[ 0.0] WARNING: suspicious RCU usage", "[ 0.0] 6.1 #1", "[ 0.0] ---",
                 "[ 0.0] lib/maple_tree.c:860 suspicious rcu_dereference_check() usage!", "[ 0.0] Call Trace:",
                 "[ 0.0]  [<60>] ? lockdep_rcu_suspicious+0x0/0x180"]
        self.assertEqual(rig.troubles([*known, "[ 0.1] fine"]), [])
        other = [known[0], *known[1:3], known[3].replace("lib/maple_tree.c", "net/ipv4/tcp_cong.c"), *known[4:]]
        self.assertEqual(rig.troubles(other)[0], known[0])
        for bad in ["[ 1.0] BUG: KASAN: use-after-free in marimo", "[ 1.0] WARNING: CPU: 0 PID: 1 at net/core"]:
            self.assertEqual(rig.troubles([*known, bad]), [bad])


LINE = ("rig-traffic-9 [000] ..s.. 0.1: ack: cookie=1f saddr=10.0.0.1 sport=1 daddr=10.0.0.2 dport=2 events={events} "
        "packets={packets} marked=0 "
        "acked={packets} position={position} next={next} limited=1 window={window} threshold=4294967295 rho=40336 "
        "gain=0 epochs=0 state=0 cwnd=10 ssthresh=9 pipe=1 srtt=8 pacing=1\n")


class Replay(unittest.TestCase):
    def run_replay(self, *lines):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "trace.txt").write_text("".join(LINE.format(**line) for line in lines))
        events = replay.events_of(folder / "trace.txt")
        table = replay.knots_of(replay.ROOT / "deploy/core/marimo-f.table")
        it = replay.Replay(replay.config_of([]), table)
        for connection in events.values():
            it.connection(connection)
        return it

    start = dict(events=256, packets=0, position=5, next=5, window=10 << 16)

    def test_what_the_oracle_decides_is_accepted(self):
        ack = dict(events=1, packets=1, position=6, next=20, window=11 << 16)
        it = self.run_replay(self.start, ack)
        self.assertEqual(it.compared, 2)
        self.assertEqual(it.lines[-1], "a 1 0 1 6 20 1 = 720896 . . . .")

    def test_another_window_is_noticed(self):
        ack = dict(events=1, packets=1, position=6, next=20, window=12 << 16)
        with self.assertRaisesRegex(replay.Differs, "line 2: the kernel decided"):
            self.run_replay(self.start, ack)

    def test_fields_are_known_by_their_names(self):
        line = LINE.format(**self.start)
        rest = re.sub(r" (cookie|saddr|daddr|sport|dport)=\S+", "", line).rstrip()
        more = rest + " dport=2 family=AF_INET saddr=10.0.0.2 daddr=10.0.0.1 sport=1\n"
        other = more.replace("10.0.0.2", "10.0.0.3")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "trace.txt").write_text(more + other)
        events = replay.events_of(folder / "trace.txt")
        self.assertEqual(len(events), 2, "two hosts with one port are two connections")
        (folder / "trace.txt").write_text(line)
        plain = replay.events_of(folder / "trace.txt")
        self.assertEqual([values for _, values in next(iter(events.values()))], [next(iter(plain.values()))[0][1]])

    def test_numbers_of_the_header_are_its_numbers(self):
        bits = replay.ACK, replay.LOSS, replay.TIMEOUT, replay.IDLE, replay.RESTART, replay.UNDO, replay.EPOCH, replay.INIT
        self.assertEqual(bits, (1, 2, 4, 8, 16, 32, 64, 256))
        header = (replay.ROOT / "deploy/linux/marimo_tcp.h").read_text()
        self.assertIn(f"\n#define MARIMO_TCP_SETTLING_INCREASE {replay.SETTLING_INCREASE}\n", header)
        packet = replay.oracle.ONE
        for parameters, packets in [([], 1), (["rule=settling"], replay.SETTLING_INCREASE), (["rule=settling", "increase=9"], 9)]:
            self.assertEqual(replay.config_of(parameters)["max_increase"], packets * packet, parameters)

    def test_what_came_before_the_connection_began_is_left_out(self):
        early = dict(events=1, packets=1, position=5, next=5, window=0)
        self.assertEqual(self.run_replay(early, self.start).compared, 1)


class Episodes(unittest.TestCase):
    def check(self, *rows, wanted=(), state=0, **total):
        """Faults of one connection whose lines are `rows`: events, window, threshold."""
        keys = ("events", "window", "threshold")
        events = [(number, {**dict(zip(keys, row)), "state": state}) for number, row in enumerate(rows, 1)]
        counts = collections.Counter({f"TcpExtTCP{name}": value for name, value in total.items()})
        return episodes.check({"one": events}, counts, wanted)[0]

    start, loss, undo = (256, 10, 99), (3, 5, 5), (32, 10, 99)

    def test_what_agrees_is_accepted(self):
        self.assertEqual(self.check(self.start, self.loss, self.undo, wanted=["loss", "undo"], SackRecovery=1, FullUndo=1), [])

    def test_what_does_not_is_noticed(self):
        run = self.start, self.loss, self.undo
        for rows, total, says in [
            (run, dict(SackRecovery=2, FullUndo=1), "2 recoveries, but 1 losses"),
            (run, dict(FullUndo=1), "0 recoveries, but 1 losses"),
            (run, dict(SackRecovery=1), "1 of undo in the trace, the kernel counted 0"),
            ([*run[:2], (32, 9, 99)], dict(SackRecovery=1, FullUndo=1), "line 3: undone, yet window is 9, 10 before"),
            ([*run[:2], (32, 10, 98)], dict(SackRecovery=1, FullUndo=1), "line 3: undone, yet threshold is 98"),
            ([*run, (4, 1, 5)], dict(SackRecovery=1, FullUndo=1), "1 of timeout in the trace"),
            (run[:2], dict(SackRecovery=1), "no undo occurred"),
        ]:
            self.assertIn(says, " ".join(self.check(*rows, wanted=["loss", "undo"], **total)))
        self.assertIn("ends within a recovery", " ".join(self.check(*run[:2], state=3, SackRecovery=1)))


if __name__ == "__main__":
    unittest.main()
