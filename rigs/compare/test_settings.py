# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a rig is told, and what it is not asked."""

import unittest

import plan
import settings
from errors import BadInput
from testing import row, run_of, scheme


# On-Ramp as hosts have it, on the path of `run_of`: 2.5 base RTTs, and a fifth of it without the way of 274.224 us.
UNDERLAY = {"kind": "onramp", "scope": "destination", "reports": "acks", "rtt": "stack", "base_delay": "path", "profile": "scaled",
            "threshold": "1313.2us", "spread": "207795200ps", "backlog": 2, "variant": "paper", "beta": 0.75, "release": "paced",
            "reference": "2422.4us", "max_hold": "100ms", "gain": 0.25, "step": 0.5, "quantum": "1ms", "small_quantum": "1ms"}


class Settings(unittest.TestCase):
    def test_a_rig_is_told_what_the_scenario_says(self):
        told = settings.rig_settings(run_of(), [row(0)])
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
        self.assertEqual(settings.rig_settings(run, rows)["congestion"], "marimo")
        lines = [line.split(",") for line in plan.plan(rows).splitlines()]
        self.assertEqual([line[-1] for line in lines], ["congestion", "marimo", "cubic"])

    def test_hosts_speak_ecn_or_do_not(self):
        for law, parameters, speaks in [("marimo", {}, "1"), ("bbr", {}, "0"), ("cubic", {}, "0"), ("cubic", {"ecn": True}, "1")]:
            run = run_of(scheme=[scheme(law, **parameters)])
            told = settings.rig_settings(run, [row(0, law=law)])
            self.assertEqual(told["sysctls"]["net.ipv4.tcp_ecn"], speaks, law)
        run = run_of(scheme=[scheme("dctcp", by_class={"second": scheme("cubic")})])
        with self.assertRaisesRegex(BadInput, "some classes speak ECN"):
            settings.rig_settings(run, [row(0), row(1, law="cubic", name="second")])

    def test_on_ramp_is_told_what_differs_from_its_defaults(self):
        told = settings.rig_settings(run_of(scheme=[scheme("dctcp", underlay=UNDERLAY)]), [row(0)])
        self.assertEqual(told["onramp"], {"beta": 0.75, "max_hold": "100000000ns", "reference": "2422400ns", "release": "paced",
                                          "variant": "paper"})
        self.assertIsNone(settings.rig_settings(run_of(), [row(0)])["onramp"])
        split = scheme("dctcp", underlay=UNDERLAY, by_class={"second": {"underlay": {**UNDERLAY, "beta": 0.5}}})
        with self.assertRaisesRegex(BadInput, "different underlays"):
            settings.rig_settings(run_of(scheme=[split]), [row(0), row(1, name="second")])

    def test_clocks_are_those_that_were_drawn(self):
        drawn = [{"offset_ps": 5_000, "drift_ppm": 1.5}, {"offset_ps": -2_000, "drift_ppm": -0.5}]
        run = {**run_of(scheme=[scheme("dctcp", underlay=UNDERLAY)]), "clocks": drawn}
        # Of the sender h1: the receiver's clock is ahead, and faster.
        self.assertEqual(settings.rig_settings(run, [row(0)])["clocks"], {"h1": [7, 2_000]})
        self.assertIsNone(settings.rig_settings({**run_of(), "clocks": drawn}, [row(0)])["clocks"])
        self.assertIsNone(settings.rig_settings({**run, "clocks": []}, [row(0)])["clocks"])

    def test_where_each_packet_is_answered_no_answer_waits(self):
        run = run_of(host__ack_every=1, host__quick_acks=0, host__echo="counts", host__ack_delay="40us")
        self.assertIs(settings.rig_settings(run, [row(0)])["route"]["quickack"], True)

    def test_what_a_rig_cannot_do_is_refused_by_name(self):
        for changes, rows, says in [
            ({"topology__kind": "fat-tree"}, [row(0)], "topology.kind"),
            ({"switch__ecn": {"kind": "red"}}, [row(0)], "switch.ecn"),
            ({"switch__buffer": {"total": "4MB"}}, [row(0)], "switch.buffer"),
            ({"host__timer_tick": "4ms"}, [row(0)], 'host.timer_tick: found 4ms; a rig has 1ms'),
            ({"host__timer_tick": "0ps"}, [row(0)], "host.timer_tick"),
            ({"host__ack_every": 4}, [row(0)], "host.ack_every: found 4; a rig has 1 or 2"),
            ({"host__ack_delay": None}, [row(0)], "host.ack_delay: found nothing; a rig has 40ms"),
            ({"host__max_ack_delay": None}, [row(0)], "host.max_ack_delay: found nothing; a rig has 10ms"),
            ({"host__quick_acks": 0}, [row(0)], "host.quick_acks"),
            ({"host__echo": "counts"}, [row(0)], "host.echo"),
            ({"host__handshake": False}, [row(0)], "host.handshake"),
            ({"host__rto_min": "1500us", "host__max_ack_delay": "1500us"}, [row(0)], "host.rto_min"),
            ({"host__frames": None}, [row(0)], "host.frames.header: found nothing"),
            ({"host__clock": {"offset": "1us", "drift_ppm": 0, "noise": "1us"}}, [row(0)], "host.clock.noise"),
            ({"host__path_penalty": True}, [row(0)], "host.path_penalty: found true; a rig has nothing of the kind"),
            ({"switch__not_ect": "drop"}, [row(0)], "switch.not_ect: found drop; a rig has pass"),
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
            *(({"scheme": [scheme("dctcp", underlay={**UNDERLAY, **changes})]}, [row(0)], f"underlay.{key}: found")
              for key, changes in [("kind", {"kind": "other"}), ("scope", {"scope": "flow"}), ("reports", {"reports": "own"}),
                                   ("rtt", {"rtt": "network"}), ("threshold", {"threshold": "30us"}), ("backlog", {"backlog": 1000}),
                                   ("release", {"release": "clocked"}), ("spread", {"spread": "1us"}), ("new", {"new": 1})]),
            ({"scheme": [scheme("dctcp", priority=1)]}, [row(0)], "priority"),
            ({"scheme": [scheme("cubic", hystart=False)]}, [row(0, law="cubic")], "hystart"),
            ({"scheme": [scheme("bbr", initial_rtt="1ms")]}, [row(0, law="bbr")], "initial_rtt"),
            ({"scheme": [scheme("marimo", fractional=True)]}, [row(0, law="marimo")], "fractional"),
            ({"scheme": [scheme("marimo", idle_after="1ms")]}, [row(0, law="marimo")], "idle_after"),
            ({}, [row(0, law="swift")], "found the law swift; a rig has marimo, dctcp, cubic, bbr"),
            ({}, [{**row(0), "dst": "h3"}], "flows go to h3"),
        ]:
            with self.assertRaisesRegex(BadInput, says):
                settings.rig_settings(run_of(**changes), rows)
