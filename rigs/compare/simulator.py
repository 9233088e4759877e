# SPDX-License-Identifier: MIT OR Apache-2.0
"""The simulator's command line."""

import csv
import json
import subprocess
import tomllib

from errors import BadInput
from values import plain


class Simulator:
    """The command `incast`."""

    def __init__(self, command):
        self.command = command

    def call(self, *arguments):
        done = subprocess.run([self.command, *arguments], capture_output=True, text=True)
        if done.returncode == 2:
            raise BadInput(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            raise RuntimeError(f"incast {' '.join(arguments)}\n{done.stderr.strip()}")
        return done.stdout

    def run(self, scenario, out, options):
        """Simulates; the folders of the runs, with what run.json says."""
        self.call("run", str(scenario), "--out", str(out), "--quiet", "--force", *options)
        name = tomllib.loads(scenario.read_text())["name"]
        runs = []
        for path in sorted((out / name).glob("*/run.json")):
            run = json.loads(path.read_text())
            if run["status"] != "done":
                raise RuntimeError(f"{path.parent}: {run['status']}")
            runs.append((path.parent, run))
        return name, runs

    def flows(self, scenario, run, sets, short):
        """The flows of a run, as rows."""
        arguments = ["flows", str(scenario), "--scheme", run["scheme"], "--seed", str(run["seed"])]
        arguments += ["--short"] if short else []
        for pair in sets:
            arguments += ["--set", pair]
        for path, value in run["grid"].items():
            arguments += ["--only", f"{path}={plain(value)}"]
        return list(csv.DictReader(self.call(*arguments).splitlines()))
