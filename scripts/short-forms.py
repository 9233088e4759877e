#!/usr/bin/env python3
"""Runs every bundled scenario in its short form: one seed, and of each law, alone and over each underlay, the first two
schemes. A run that takes longer than a minute has failed.
usage: scripts/short-forms.py INCAST"""
import concurrent.futures
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import tomllib

LIMIT = "60s"
# Seconds of a scenario, all its runs together.
TOTAL = 300
# Seconds of CPU of all scenarios together: four minutes of two processors, and half as much again on a busy machine.
MOST_CPU = 720
# There are more scenarios than this.
LEAST = 50


def selected(scenario: dict) -> list[str]:
    """The names of the first two schemes of each kind: of a law, and of what is below it."""
    names: dict[tuple[str, bool, bool], list[str]] = {}
    for scheme in scenario["scheme"]:
        kind = scheme["law"], "underlay" in scheme, "underlay" in str(scheme.get("by_class", ""))
        names.setdefault(kind, []).append(scheme.get("name", scheme["law"]))
    return [name for of_kind in names.values() for name in of_kind[:2]]


def run(incast: str, file: pathlib.Path, out: str) -> tuple[pathlib.Path, float, str]:
    """A scenario, the seconds that it took, and what is wrong with it."""
    scenario = tomllib.loads(file.read_text())
    if "short" not in scenario:
        return file, 0.0, "it has no [short]"
    schemes = ",".join(f'"{name}"' for name in selected(scenario))
    command = [incast, "run", str(file), "--short", "--seeds", "1", "--only", f"scheme={schemes}", "--jobs", "1"]
    command += ["--run-timeout", LIMIT, "--quiet", "--out", out]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOTAL)
        wrong = done.stderr if done.returncode else ""
    except subprocess.TimeoutExpired:
        wrong = f"it does not end within {TOTAL} s"
    return file, time.monotonic() - started, wrong


def main() -> int:
    root = pathlib.Path(__file__).parent.parent
    files = sorted((root / "scenarios").rglob("*.toml"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as out, concurrent.futures.ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda file: run(sys.argv[1], file, out), files))
    failed = [f"{file.relative_to(root)}: {wrong}" for file, _, wrong in done if wrong]
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    file, longest, _ = max(done, key=lambda one: one[1])
    print(
        f"short forms: {len(done) - len(failed)} of {len(done)} scenarios in {time.monotonic() - started:.0f} s "
        f"({cpu:.0f} s of CPU), the longest {longest:.0f} s ({file.relative_to(root)})"
    )
    if cpu > MOST_CPU:
        print(f"short forms: they take {cpu:.0f} s of CPU, allowed are {MOST_CPU} s", file=sys.stderr)
    if len(done) < LEAST:
        print(f"short forms: found {len(done)} scenarios, expected at least {LEAST}", file=sys.stderr)
    return 1 if failed or cpu > MOST_CPU or len(done) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
