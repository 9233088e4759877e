#!/usr/bin/env python3
"""Runs every bundled scenario in its short form, for half the duration that the form sets: one seed, of each law, alone
and over each underlay, the first two schemes (of many the first), and of each axis of the grid the first and the last value. That a scenario
runs and ends is what is tried, not its numbers. A run that takes longer than two minutes has failed.
usage: scripts/short-forms.py INCAST"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

LIMIT = "120s"
SMALLER = {"s": "ms", "ms": "us", "us": "ns"}
# Seconds of a scenario, all its runs together, beside other lanes.
TOTAL = 600
# Seconds of CPU of all scenarios together.
MOST_CPU = 300
# So many of the longest are printed.
PRINTED = 10
# Scenarios at once: what lanes.py leaves to a lane.
JOBS = int(os.environ.get("JOBS") or os.cpu_count() or 1)
# Of more schemes than this, one of each kind is run.
MANY = 20
# There are more scenarios than this.
LEAST = 50


def selected(scenario: dict) -> list[str]:
    """The names of the first two schemes of each kind, of a law and of what is below it; of many schemes the first."""
    names: dict[tuple[str, bool, bool], list[str]] = {}
    for scheme in scenario["scheme"]:
        kind = scheme["law"], "underlay" in scheme, "underlay" in str(scheme.get("by_class", ""))
        names.setdefault(kind, []).append(scheme.get("name", scheme["law"]))
    each = 2 if len(scenario["scheme"]) <= MANY else 1
    return [name for of_kind in names.values() for name in of_kind[:each]]


def ends(scenario: dict) -> list[str]:
    """A condition of `--only` for each axis of the grid: its ends, as far as they can be named there."""
    conditions = []
    for axis, values in {**scenario.get("grid", {}), **scenario["short"].get("grid", {})}.items():
        named = [f'"{value}"' for value in (values[0], values[-1]) if isinstance(value, (str, int, float))]
        if named and len(values) > 2:
            conditions.append(f"{axis}={','.join(named)}")
    return conditions


def halved(duration: str) -> str:
    """Half a duration, in the next smaller unit, so that it stays a whole number."""
    number, unit = re.fullmatch(r"(\d+)(s|ms|us)", duration).groups()
    return f"{int(number) * 500}{SMALLER[unit]}"


def run(incast: str, file: pathlib.Path, out: str) -> tuple[pathlib.Path, float, str]:
    """A scenario, the seconds of CPU that it took, and what is wrong with it."""
    scenario = tomllib.loads(file.read_text())
    if "short" not in scenario:
        return file, 0.0, "it has no [short]"
    schemes = ",".join(f'"{name}"' for name in selected(scenario))
    command = [incast, "run", str(file), "--short", "--seeds", "1", "--jobs", "1"]
    for condition in [f"scheme={schemes}", *ends(scenario)]:
        command += ["--only", condition]
    if "duration" in scenario["short"]:
        times = {key: value for key, value in {**scenario, **scenario["short"]}.items() if key in ("duration", "warmup")}
        for key, value in times.items():
            command += ["--set", f'{key}="{halved(value)}"']
    command += ["--run-timeout", LIMIT, "--quiet", "--out", out]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(["timeout", str(TOTAL), *command], stdout=subprocess.DEVNULL, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        wrong = log.read().decode(errors="replace") or f"exit code {process.returncode}" if process.returncode else ""
    if process.returncode == 124:
        wrong = f"it does not end within {TOTAL} s"
    return file, used.ru_utime + used.ru_stime, wrong


def main() -> int:
    root = pathlib.Path(__file__).parent.parent
    files = sorted((root / "scenarios").rglob("*.toml"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as out, concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        done = list(pool.map(lambda file: run(sys.argv[1], file, out), files))
    failed = [f"{file.relative_to(root)}: {wrong}" for file, _, wrong in done if wrong]
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")
    cpu = sum(seconds for _, seconds, _ in done)
    for file, seconds, _ in sorted(done, key=lambda one: -one[1])[:PRINTED]:
        print(f"short forms: {seconds:5.1f} s of CPU: {file.relative_to(root)}")
    print(
        f"short forms: {len(done) - len(failed)} of {len(done)} scenarios in {time.monotonic() - started:.0f} s "
        f"({cpu:.0f} s of CPU)"
    )
    if cpu > MOST_CPU:
        print(f"short forms: they take {cpu:.0f} s of CPU, allowed are {MOST_CPU} s", file=sys.stderr)
    if len(done) < LEAST:
        print(f"short forms: found {len(done)} scenarios, expected at least {LEAST}", file=sys.stderr)
    return 1 if failed or cpu > MOST_CPU or len(done) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
