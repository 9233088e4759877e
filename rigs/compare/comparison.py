# SPDX-License-Identifier: MIT OR Apache-2.0
"""One scenario on both sides: simulate, play the same flows on a rig, put the results next to each other."""

import concurrent.futures
import dataclasses
import json
import pathlib
import tomllib

from errors import Contradiction
from fairness import fairness
from marimo_parameters import marimo
from plan import plan
from pairs import pairs
from results import check_echo, check_same, real, requests, simulated
from rig import Rig
from schemes import EXACT_ECHO
from settings import end_ps, rig_settings
from simulator import Simulator
from tables import compact, restricted, summary_line, table
from values import plain


def compare(scenario, arguments):
    """One scenario; its name, the lines of its table, those for pages, what it is of, and what contradicted itself."""
    out = arguments.out.resolve()
    simulator = Simulator(arguments.incast)
    rig = Rig(arguments.rig) if arguments.rig else None
    name, runs = simulate(scenario, arguments, simulator, out)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Faults come out below, run by run.
        played = [pool.submit(rig.play, run.place, run.settings, run.files) if rig else None for run in runs]
    points, errors, rows_out = {}, [], []
    for run, task in zip(runs, played):
        theirs = None
        if rig:
            try:
                task.result()
                theirs = run.on_the_rig()
            except (Contradiction, RuntimeError, OSError, ValueError, KeyError) as error:
                errors.append(f"{type(error).__name__}: {error}")
        rows_out.append({"scheme": run.description["scheme"], "seed": run.description["seed"],
                         "grid": run.description["grid"], "settings": run.settings, "simulated": run.ours,
                         "kernel": theirs})
        if theirs or not rig:
            add(points, run, theirs)
    errors += different_modules(name, rows_out)
    lines = table(list(points.values()))
    brought = pairs(list(points.values())) or fairness(list(points.values()))
    note = summary_line(name, rows_out, rig)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(rows_out, indent=1) + "\n")
    lines += ["", *brought] if brought else []
    (out / f"{name}.md").write_text("\n".join(lines) + "\n\n" + note + "\n")
    return name, lines, brought or compact(list(points.values())), note, errors


@dataclasses.dataclass
class Run:
    """A run of the simulator, and what a rig needs to play its flows."""

    # run.json.
    description: dict
    # The flows, as `incast flows` lists them.
    rows: list
    # What came of it in the simulator.
    ours: dict
    # rig.json, what lies beside it, and the folder of both.
    settings: dict
    files: dict
    place: pathlib.Path

    def on_the_rig(self):
        """What came of it on the rig."""
        theirs = real(self.place, self.rows, end_ps(self.description) // 1000)
        theirs["rct"] = requests(self.rows, theirs["fct"])
        laws = {row["law"] for row in self.rows}
        if len(laws) == 1 and laws <= EXACT_ECHO:
            check_echo(theirs, self.place)
        return theirs


def simulate(scenario, arguments, simulator, out):
    """The scenario's name, and its runs in its own order: grid points, schemes, seeds."""
    options = [word for pair in arguments.set for word in ("--set", pair)]
    options += [word for only in arguments.only for word in ("--only", only)]
    options += ["--seeds", str(arguments.seeds)] if arguments.seeds else []
    options += ["--short"] if arguments.short else []
    name, found = simulator.run(scenario, out / "simulated", options)
    runs = []
    for folder, description in found:
        rows = simulator.flows(scenario, description, arguments.set, arguments.short)
        flows, ours = simulated(folder)
        check_same(flows, rows, folder)
        ours["rct"] = requests(rows, ours["fct"])
        settings = rig_settings(description, rows)
        files = {"plan.csv": plan(rows)}
        settings["parameters"], knots = marimo(description, rows, scenario.resolve().parent)
        if knots is not None:
            settings["table"], files["marimo.table"] = "marimo.table", knots
        runs.append(Run(description, rows, ours, settings, files, out / "kernel" / name / folder.name))
    schemes = [scheme.get("name", scheme["law"]) for scheme in tomllib.loads(scenario.read_text())["scheme"]]

    def order(run):
        description = run.description
        return list(description["grid"].values()), schemes.index(description["scheme"]), description["seed"]

    return name, sorted(runs, key=order)


def add(points, run, theirs):
    """Adds a run to its grid point, in whole and by class."""
    # How many hosts there are, and which, follows from the traffic.
    shown = {path: value for path, value in run.description["grid"].items()
             if not path.startswith("topology.") and not path.endswith(".from")}
    grid = ", ".join(f"{path.split('.')[-1]} {plain(value)}" for path, value in shown.items())
    classes = sorted({row["class"] for row in run.rows})
    for part in [None, *(classes if len(classes) > 1 else [])]:
        label = ", ".join(filter(None, [run.description["scheme"], grid, part]))
        point = points.setdefault(label, {"label": label, "scheme": run.description["scheme"], "grid": grid, "class": part,
                                          "real": [], "simulated": []})
        point["simulated"].append(run.ours if part is None else restricted(run.ours, part))
        if theirs:
            point["real"].append(theirs if part is None else restricted(theirs, part))


def different_modules(name, rows_out):
    """Runs of one scenario are of one module."""
    versions = sorted({row["kernel"]["raw"]["srcversion.txt"].strip() for row in rows_out
                       if row["kernel"] and "srcversion.txt" in row["kernel"]["raw"]})
    if len(versions) < 2:
        return []
    return [f"Contradiction: {name}: its runs are of different modules, srcversions {', '.join(versions)}"]
