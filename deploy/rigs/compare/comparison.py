# SPDX-License-Identifier: MIT OR Apache-2.0
"""One scenario on both sides: simulate, play the same flows on a rig, put the results next to each other."""

import concurrent.futures
import json
import tomllib

from errors import Contradiction
from marimo_parameters import marimo
from plan import plan
from results import check_echo, check_same, real, simulated
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
    options = [word for pair in arguments.set for word in ("--set", pair)]
    options += [word for only in arguments.only for word in ("--only", only)]
    options += ["--seeds", str(arguments.seeds)] if arguments.seeds else []
    options += ["--short"] if arguments.short else []
    rig = Rig(arguments.rig) if arguments.rig else None
    name, runs = simulator.run(scenario, out / "simulated", options)
    points, errors, rows_out, prepared = {}, [], [], []
    for folder, run in runs:
        rows = simulator.flows(scenario, run, arguments.set, arguments.short)
        flows, ours = simulated(folder)
        check_same(flows, rows, folder)
        settings = rig_settings(run, rows)
        files = {"plan.csv": plan(rows)}
        settings["parameters"], knots = marimo(run, rows, scenario.resolve().parent)
        if knots is not None:
            settings["table"], files["marimo.table"] = "marimo.table", knots
        place = out / "kernel" / name / folder.name
        prepared.append((folder, run, rows, ours, settings, files, place))
    # As the scenario has them: grid points, schemes, seeds.
    schemes = [scheme.get("name", scheme["law"]) for scheme in tomllib.loads(scenario.read_text())["scheme"]]
    prepared.sort(key=lambda it: (list(it[1]["grid"].values()), schemes.index(it[1]["scheme"]), it[1]["seed"]))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Faults come out below, run by run.
        played = [pool.submit(rig.play, place, settings, files) if rig else None
                  for _, _, _, _, settings, files, place in prepared]
    for (folder, run, rows, ours, settings, _, place), task in zip(prepared, played):
        # How many hosts there are follows from the traffic.
        shown = {path: value for path, value in run["grid"].items() if not path.startswith("topology.")}
        grid = ", ".join(f"{path.split('.')[-1]} {plain(value)}" for path, value in shown.items())
        classes = sorted({row["class"] for row in rows})
        theirs = None
        if rig:
            try:
                task.result()
                theirs = real(place, rows, end_ps(run) // 1000)
                for law in {row["law"] for row in rows}:
                    if law in EXACT_ECHO and len({row["law"] for row in rows}) == 1:
                        check_echo(theirs, place)
            except (Contradiction, RuntimeError, OSError, ValueError, KeyError) as error:
                errors.append(f"{type(error).__name__}: {error}")
                theirs = None
        rows_out.append({"scheme": run["scheme"], "seed": run["seed"], "grid": run["grid"], "settings": settings,
                         "simulated": ours, "kernel": theirs})
        if rig and theirs is None:
            continue
        for part in [None, *(classes if len(classes) > 1 else [])]:
            label = ", ".join(filter(None, [run["scheme"], grid, part]))
            point = points.setdefault(label, {"label": label, "real": [], "simulated": []})
            point["simulated"].append(ours if part is None else restricted(ours, part))
            if theirs:
                point["real"].append(theirs if part is None else restricted(theirs, part))
    versions = sorted({row["kernel"]["raw"]["srcversion.txt"].strip() for row in rows_out
                       if row["kernel"] and "srcversion.txt" in row["kernel"]["raw"]})
    if len(versions) > 1:
        errors.append(f"Contradiction: {name}: its runs are of different modules, srcversions {', '.join(versions)}")
    lines = table(list(points.values()))
    note = summary_line(name, rows_out, rig)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(rows_out, indent=1) + "\n")
    (out / f"{name}.md").write_text("\n".join(lines) + "\n\n" + note + "\n")
    return name, lines, compact(list(points.values())), note, errors
