# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guest is told to do."""

import json
import pathlib
import tempfile
import unittest

from plan import HEADER, flows_of
from scripts import scripts
from settings import settings_of
from testing import GOOD, ROW


class Scripts(unittest.TestCase):
    def test_the_port_to_the_receiver_is_what_marks(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "rig.json").write_text(json.dumps(GOOD))
        (folder / "plan.csv").write_text(f"{HEADER}\n{ROW}\n")
        settings = {**settings_of(folder / "rig.json"), "host_queue": "wire"}
        self.assertEqual(settings["red"]["burst"], 21)
        plan, rows = flows_of(settings, folder)
        texts = scripts(settings, plan, rows, False)
        queues = [line for line in texts["switch.tc"].splitlines() if "handle 10:" in line]
        self.assertIn("dev p0 parent 1:1 handle 10: red limit 100000 min 30000 max 30001", queues[0])
        self.assertTrue(all("bfifo limit 100000" in line for line in queues[1:]))
        self.assertIn("netem limit 1000000 delay 50.0005us", texts["h2.tc"])
        # Whoever talks to whom needs no ARP, in both directions; the third host is alone.
        self.assertIn("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:01", texts["h0.ip"])
        self.assertIn("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:00", texts["h1.ip"])
        self.assertNotIn("neigh", texts["h2.ip"])

    def test_on_ramp_holds_below_a_wire_of_its_own(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "rig.json").write_text(json.dumps({**GOOD, "onramp": {"beta": 0.5, "max_hold": "50ms"}}))
        (folder / "plan.csv").write_text(f"{HEADER}\n{ROW}\n")
        settings = {**settings_of(folder / "rig.json"), "host_queue": "fq", "form": "edt"}
        plan, rows = flows_of(settings, folder)
        texts = scripts(settings, plan, rows, False)
        for host in range(3):
            self.assertIn("dev eth0 root fq nopacing", texts[f"h{host}.tc"])
            self.assertIn(f"filter add dev p{host} ingress protocol ip matchall action mirred egress redirect dev n{host}",
                          texts["switch.tc"])
        run = texts["run.sh"].splitlines()
        stamps, load, enable, play, status = (next(number for number, line in enumerate(run) if words in line) for words in (
            "h0 /bin/onrampctl enable --stamps-only", "h1 /bin/onrampctl load --form edt --set beta=0.5 --set max_hold=50ms eth0",
            "h1 /bin/onrampctl enable --peer 10.0.0.1:7 10.0.0.0/16", "rig-traffic play", "h1 /bin/onrampctl status --json"))
        self.assertEqual([stamps, load, enable, play, status], sorted([stamps, load, enable, play, status]))
        # The third host sends nothing.
        self.assertNotIn("h2 /bin/onrampctl", texts["run.sh"])
        self.assertNotIn("skew", texts["run.sh"])
        self.assertNotIn("clocks", texts)
        wrong = scripts({**settings, "clocks": {"h1": [-1, 1000]}}, plan, rows, False)
        self.assertIn("key hex 00 00 00 00 value hex ff ff ff ff ff ff ff ff 32 04 00 00 00 00 00 00", wrong["run.sh"])
        self.assertIn("clocks", wrong)
