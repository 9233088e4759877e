#!/usr/bin/env python3
"""Runs lanes: what `make test`, `make lint` and CI consist of. Two run side by side, each with half of the processors; what
a lane prints comes whole when it has ended. A table at the end has the wall-clock time and the CPU time of each.

usage: scripts/lanes.py [--list | --keep-going] SET-OR-LANE...      sets: lint, test, hosts, demo

A lane names what must have ended before it and what it must have for itself: a folder in which cargo builds, the kernel's
congestion control of one name. After a failure the lanes that run are waited for, and no other begins, but with
--keep-going those that do not need the one that failed. In CI all lanes together may take 85 minutes of CPU."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = os.environ.get("CARGO_TARGET_DIR", "target")
INCAST = f"{TARGET}/release/incast"
SIDE_BY_SIDE = 2
# Minutes of CPU. The aim is 50 and a limit of 60; whole runs took 49 to 80, by machine and by what ran beside them.
MOST_CPU = 85

# Lanes that run for seconds are compiled for as long.
UNOPTIMISED = {"CARGO_PROFILE_DEV_OPT_LEVEL": "0"}

# Where tests are compiled, they are linted by the same compilation (scripts/linted-rustc.sh); what that leaves out is this.
NOT_LINTED = "cargo clippy --locked --quiet -p incast-engine --all-targets -- -D warnings"

# What lanes would install one by one (scripts/debian.sh), which takes several times as long.
PACKAGES = """bc bpftool busybox-static chromium clang clang-19 cmake cpio ethtool g++ gcc-12 gcc-riscv64-unknown-elf
    iproute2 iputils-ping kmod libelf-dev libyang-tools linux-source nftables patch pkg-config python3-venv qemu-system-x86
    qemu-user strace tshark valgrind xz-utils zlib1g-dev""".split()


@dataclasses.dataclass
class Lane:
    name: str
    sets: str
    command: str
    # Lanes that must have ended, and are run for it.
    after: str = ""
    # What no two lanes may have at once.
    alone: str = ""
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    wall: float = 0
    cpu: float = 0
    state: str = "waits"
    # What it did not check, as it says.
    skipped: list[str] = dataclasses.field(default_factory=list)


# Those that others wait for stand first, then the longest.
LANES = [
    Lane("packages", "lint test hosts", f"scripts/debian.sh --ahead {' '.join(PACKAGES)}"),
    # With the Python extension, whose features of Parquet would have half of the program compiled again for the wheel.
    Lane("release", "test demo", "cargo build --locked --quiet --release -p incast -p incast-py", alone="release"),
    Lane("debug", "test hosts", "scripts/workspace.sh test --locked --quiet --no-run", "packages", "debug"),
    Lane("tests", "test", 'scripts/venv.sh && scripts/debian.sh tshark tshark "captures of incast trace, read by tshark" && '
         "scripts/workspace.sh test --locked --no-fail-fast", "debug release"),
    Lane("short-forms", "test", "scripts/short-forms.py $INCAST", "release"),
    Lane("clippy", "lint", "scripts/workspace.sh --python clippy --locked --quiet --all-targets -- -D warnings",
         "packages", "debug"),
    Lane("sanitizers", "test", "scripts/sanitize.sh --short", "debug", "debug", UNOPTIMISED),
    Lane("python", "test", "scripts/python.sh", "packages release", "release"),
    Lane("fuzz", "test", "scripts/fuzz.sh --replay", "debug", "debug"),
    # `make test` has these among all tests.
    Lane("deploy", "hosts", "cargo test --locked -p rig-traffic -p hostctl -p marimoctl -p onrampctl -p incast-quic", "debug", "debug"),
    Lane("models", "test", "scripts/models.sh", "debug", "debug"),
    Lane("virtual-time", "test hosts", "rigs/virtual-time/run.sh --units", "packages"),
    Lane("vm", "test hosts", "rigs/vm/run.sh && rigs/vm/run.sh --onramp", "debug"),
    Lane("netns", "test hosts", "rigs/netns/run.sh", "debug", "namespaces"),
    Lane("quic", "test hosts", "deploy/quic/test/run.sh", "debug", "namespaces"),
    Lane("routes", "test hosts", "deploy/linux/marimoctl/routes-test.sh && deploy/linux/onrampctl/namespaces-test.sh",
         "debug", "namespaces"),
    Lane("linux", "test hosts", "deploy/linux/test/run.sh", "packages"),
    Lane("core", "test", "deploy/core/test/run.sh", "packages"),
    Lane("compare", "test hosts", "rigs/compare/run.sh --test", "release"),
    Lane("sonic", "test hosts", "rigs/sonic/run.sh", "packages release", "namespaces"),
    Lane("gate", "test", "scripts/instruction-gate.sh", "packages release"),
    Lane("browser", "test", "scripts/report-browser-test.sh", "packages release"),
    Lane("tables", "test", "$INCAST table --check docs/*.md", "release"),
    Lane("traceability", "test", "scripts/traceability.py docs/onramp.md docs/marimo.md docs/mercury.md docs/polo.md docs/blitz.md"),
    Lane("documentation", "lint", "scripts/workspace.sh doc --locked --quiet --no-deps", "packages", "debug",
         {"RUSTDOCFLAGS": "-D warnings"}),
    Lane("licences", "lint", "scripts/deny.sh"),
    Lane("crates", "lint", "scripts/packages.sh --list"),
    Lane("format", "lint", "cargo fmt --all --check && rustfmt --check --edition 2024 "
         '$(find crates/incast-cc/src -name "*.rs") docs/examples/halve.rs docs/examples/shortest.rs'),
    Lane("demo", "demo", "mkdir -p target && COLUMNS=80 make demo OUT=$(mktemp -d) | tee target/demo.txt && "
         "scripts/page-examples.py --check --demo target/demo.txt $INCAST README.md", "release"),
    Lane("examples", "demo", "scripts/page-examples.py --check $INCAST docs/tutorial.md docs/reading-results.md", "release"),
]


class Run:
    """Lanes that are run: what of them has ended, and who has what for itself."""

    def __init__(self, lanes: list[Lane], environment: dict[str, str], keeps_going: bool) -> None:
        self.lanes = lanes
        self.environment = environment
        self.keeps_going = keeps_going
        self.changed = threading.Condition()

    def next(self) -> Lane | None:
        """The first lane that may begin; nothing where none will."""
        with self.changed:
            while True:
                for lane in self.lanes:
                    failed = [other for other in self.lanes if other.state in ("failed", "left out")]
                    is_vain = any(other.name in lane.after.split() or not self.keeps_going for other in failed)
                    if lane.state == "waits" and is_vain:
                        lane.state = "left out"
                waiting = [lane for lane in self.lanes if lane.state == "waits"]
                if not waiting:
                    return None
                for lane in waiting:
                    if not self.is_blocked(lane):
                        lane.state = "runs"
                        return lane
                self.changed.wait()

    def is_blocked(self, lane: Lane) -> bool:
        open_ = [other for other in self.lanes if other.state in ("waits", "runs")]
        return any(
            other.name in lane.after.split() or (lane.alone and lane.alone == other.alone and other.state == "runs")
            for other in open_
        )

    def work(self) -> None:
        while lane := self.next():
            with tempfile.TemporaryFile() as log:
                started = time.monotonic()
                process = subprocess.Popen(
                    ["bash", "-euo", "pipefail", "-c", lane.command],
                    cwd=ROOT, env={**self.environment, **lane.environment},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                )
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                lane.wall, lane.cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
                log.seek(0)
                text = log.read()
            with self.changed:
                lane.state = "passed" if process.returncode == 0 else "failed"
                lines = text.decode(errors="replace").splitlines()
                lane.skipped = [line.removeprefix("skipped: ") for line in lines if line.startswith("skipped: ")]
                print(f"=== {lane.name}: {lane.state}, {lane.wall:.0f} s, {lane.cpu:.0f} s of CPU", flush=True)
                sys.stdout.buffer.write(text)
                sys.stdout.flush()
                self.changed.notify_all()


def selected(names: list[str]) -> list[Lane]:
    known = {lane.name for lane in LANES} | {name for lane in LANES for name in lane.sets.split()}
    for name in names:
        if name not in known:
            print(f"lanes.py: no set or lane '{name}'; there are {', '.join(sorted(known))}", file=sys.stderr)
            sys.exit(2)
    wanted = {lane.name for lane in LANES if lane.name in names or set(lane.sets.split()) & set(names)}
    # Whatever is run for a lane stands before it.
    for lane in reversed(LANES):
        if lane.name in wanted:
            wanted |= set(lane.after.split())
    return [lane for lane in LANES if lane.name in wanted]


def main() -> int:
    lanes = selected([name for name in sys.argv[1:] if name not in ("--list", "--keep-going")])
    if not lanes:
        sys.exit(__doc__)
    if "--list" in sys.argv:
        for lane in lanes:
            print(f"{lane.name:14} {lane.command}")
        return 0
    processors = str(max(1, len(os.sched_getaffinity(0)) // SIDE_BY_SIDE))
    environment = {"CARGO_BUILD_JOBS": processors, "RUST_TEST_THREADS": processors, **os.environ, "JOBS": processors}
    by_name = {lane.name: lane for lane in lanes}
    if {"clippy", "debug", "release"} <= by_name.keys():
        environment["RUSTC_WORKSPACE_WRAPPER"] = str(ROOT / "scripts/linted-rustc.sh")
        by_name["clippy"].command = NOT_LINTED
    if "release" in by_name:
        # What lanes would build for themselves.
        environment["INCAST"] = str(pathlib.Path(ROOT, INCAST))
    run = Run(lanes, environment, "--keep-going" in sys.argv)
    started = time.monotonic()
    workers = [threading.Thread(target=run.work) for _ in range(SIDE_BY_SIDE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    cpu = sum(lane.cpu for lane in lanes)
    print(f"\n{'lane':14} {'wall':>7} {'CPU':>7}")
    for lane in sorted(lanes, key=lambda lane: -lane.cpu):
        print(f"{lane.name:14} {lane.wall:5.0f} s {lane.cpu:5.0f} s" + (f"  {lane.state}" if lane.state != "passed" else ""))
    print(f"{'all':14} {time.monotonic() - started:5.0f} s {cpu:5.0f} s")
    for lane in lanes:
        for line in lane.skipped:
            print(f"not checked by {lane.name}: {line}")
    failed = [lane.name for lane in lanes if lane.state == "failed"]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    is_expensive = os.environ.get("CI") == "true" and cpu > MOST_CPU * 60
    if is_expensive:
        print(f"lanes took {cpu / 60:.0f} minutes of CPU, allowed are {MOST_CPU}", file=sys.stderr)
    return 1 if failed or is_expensive else 0


if __name__ == "__main__":
    sys.exit(main())
