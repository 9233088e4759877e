#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A real kernel beside the simulator, on the same flows.

Runs scenarios (of scenarios/hosts) in the simulator, plays the flows of each run on a rig, which is a program that
takes a folder with `rig.json` and `plan.csv` and leaves `FLOWS.csv` and raw counters in it, and prints both next to
each other: completion times, retransmissions, marks, queue, each with its 95% confidence interval over seeds.

Exit codes: 0 done; 1 a run failed or its counters contradict each other; 2 bad input.
"""

import argparse
import os
import pathlib
import sys

from comparison import compare
from errors import BadInput, Contradiction, Missing
from pages import END, update

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(words):
    arguments = arguments_of(words)
    failed = False
    try:
        for page in arguments.update:
            if not page.is_file():
                raise BadInput(f"--update {page}: there is no such file")
        for scenario in arguments.scenarios:
            if not scenario.is_file():
                raise BadInput(f"{scenario}: there is no such file")
            name, lines, short, note, errors = compare(scenario, arguments)
            print("\n".join(lines) + f"\n\n{note}\n", flush=True)
            for error in errors:
                print(f"error: {error}", file=sys.stderr)
            failed |= bool(errors)
            for page in arguments.update:
                if not errors and not update(page, name, "\n" + "\n".join(short) + f"\n\n{note}\n"):
                    print(f"{page}: has no table of {name}", file=sys.stderr)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Missing as error:
        if os.environ.get("CI") == "true":
            print(f"error: the rig cannot run here: {error}", file=sys.stderr)
            return 1
        print(f"skipped: the comparison with a real kernel ({error})")
        return 0
    except (Contradiction, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="See docs/hosts.md, Beside a real kernel.")
    parser.add_argument("scenarios", nargs="+", type=pathlib.Path, metavar="SCENARIO.toml")
    parser.add_argument("--rig", default=None, metavar="COMMAND",
                        help="called with RIG.json and a folder; without it the simulator runs alone")
    parser.add_argument("--incast", default=str(ROOT / "target/release/incast"), metavar="FILE", help="the simulator")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "results/hosts", metavar="DIR")
    parser.add_argument("--seeds", type=int, default=None, metavar="N", help="the scenario's first N")
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE,…", help="as of `incast run`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of `incast run`")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs of the rig at once")
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--update", action="append", type=pathlib.Path, default=[], metavar="FILE",
                        help="rewrite the tables in this page, each between <!-- hosts NAME --> and " + END)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
