"""Runs end, can be ended, and are those of the command."""

import contextlib
import gc
import json
import multiprocessing
import os
import pathlib
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest
from packaging.version import Version
from conftest import SMALL, without_cost

import incast

# Ends by itself after hours.
ENDLESS = {
    **SMALL,
    "name": "endless",
    "duration": "10s",
    "seeds": [1],
    "workload": [{"class": "web", "kind": "poisson", "sizes": {"fixed": "40KB"}, "load": 0.4}],
    "measure": {},
}


# Seconds beside the one in which runs end: other work on the machine, Python's start and end.
SLACK = 3


def digests(folder):
    records = (json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("*/run.json")))
    return [record["digest"] for record in records]


def test_runs_are_those_of_the_command(results, small, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(small.check().effective_toml)
    subprocess.run(["incast", "run", file, "--out", tmp_path, "--quiet"], check=True, capture_output=True)
    assert digests(tmp_path / "small") == digests(results.folder) and len(digests(results.folder)) == 9
    (there,) = (tmp_path / "small").glob("*dctcp*1/flows.parquet")
    assert there.read_bytes() == (results.folder / there.parent.name / "flows.parquet").read_bytes()
    assert without_cost(incast.open(tmp_path / "small").rows) == without_cost(results.rows)


def test_results_that_are_there_are_kept_or_refused(small, tmp_path):
    first = incast.run(small, out=tmp_path, seeds=1)
    before = {path: path.stat().st_mtime_ns for path in first.folder.glob("*/run.json")}
    with pytest.raises(incast.RunError, match="holds results already; use resume=True to keep .*, overwrite=True to overwrite, or another out$"):
        incast.run(small, out=tmp_path)
    more = incast.run(small, out=tmp_path, seeds=2, resume=True)
    assert len(more.runs) == 6 and all(path.stat().st_mtime_ns == at for path, at in before.items())
    with pytest.raises(incast.RunError, match="another scenario"):
        incast.run(small.with_(duration="100us"), out=tmp_path, resume=True)
    assert len(incast.run(small.with_(duration="100us"), out=tmp_path, overwrite=True, seeds=1).runs) == 3


def test_a_temporary_folder_goes_with_the_results(small):
    results = incast.run(small, seeds=1)
    table, folder = results.flows, results.folder
    assert len(table) > 0 and folder.is_dir()
    del results
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"seeds": 0}, "seeds: found 0"),
        ({"jobs": 1.5}, "jobs: found 1.5"),
        ({"threads": -1}, "threads: found -1"),
        ({"run_timeout": 0}, "run_timeout: found 0"),
        ({"resume": True, "overwrite": True}, "allowed is one of them"),
    ],
)
def test_bad_arguments_are_named(small, keys, message):
    with pytest.raises(ValueError, match=message):
        incast.run(small, **keys)


def test_other_threads_go_on(small):
    ticks = 0
    stop = threading.Event()

    def count():
        nonlocal ticks
        while not stop.wait(0.005):
            ticks += 1

    thread = threading.Thread(target=count)
    thread.start()
    started = time.monotonic()
    incast.run(small.with_(duration="4ms"), jobs=1)
    wall = time.monotonic() - started
    stop.set()
    thread.join()
    assert ticks > 20 * wall


def test_progress_is_told(small):
    told = []
    incast.run(small.with_(duration="10ms"), jobs=1, progress=lambda part, line: told.append((part, line)))
    assert told and all(0 <= part <= 1 for part, _ in told) and "runs" in told[0][1]


def test_a_terminal_shows_a_line_and_clears_it():
    code = f"import incast; incast.run({ {**SMALL, 'duration': '10ms'}!r}, jobs=1)"
    leader, follower = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=follower) as process:
        os.close(follower)
        told = b""
        # The end of a terminal without another end is an error.
        with contextlib.suppress(OSError):
            while part := os.read(leader, 4096):
                told += part
    os.close(leader)
    assert process.returncode == 0 and b"packet-hops/s" in told and told.endswith(b"\r\x1b[K")
    # Elsewhere nothing is shown.
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert quiet.stderr == b""


def test_an_error_in_the_progress_function_ends_the_run(small):
    def fail(part, line):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        incast.run(ENDLESS, progress=fail)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_a_run_within_a_second(threads, tmp_path):
    code = f"""
import os, signal, threading, time, incast
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    incast.run({ENDLESS!r}, out={str(tmp_path)!r}, threads={threads}, progress=False)
except KeyboardInterrupt:
    print(time.monotonic() - started)
    print(len(incast.run({SMALL!r}, seeds=1).runs))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    took, runs = done.stdout.split()
    assert 1.4 < float(took) < 2.5 + SLACK and runs == "3"
    assert not list(tmp_path.glob("endless/*[!l]/run.json"))


def test_runs_that_fail_are_named_and_the_others_stay(small, tmp_path):
    with pytest.warns(incast.RunWarning, match="dctcp"):
        # A folder that cannot be made: a file is in its place.
        (name,) = (run.folder for run in small.check(seeds=1, only={"scheme": "dctcp"}).runs)
        (tmp_path / "small").mkdir()
        (tmp_path / "small" / name).write_text("in the way")
        results = incast.run(small, out=tmp_path, seeds=1)
    assert [run["scheme"] for run in results.runs] == ["cubic", "swift"]


def test_a_run_that_takes_too_long_has_failed(small):
    with pytest.raises(incast.RunError, match=r"every run failed(.|\n)*0.3 s of run_timeout"):
        incast.run(ENDLESS, run_timeout=0.3)


def test_a_full_disk_fails_the_run_and_names_it(small, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", tmp_path], check=False).returncode:
        pytest.skip("mount is not allowed here")
    try:
        with pytest.raises(incast.Error, match="No space left"):
            incast.run(small, out=tmp_path)
        assert not list(tmp_path.glob("small/*/run.json.tmp"))
        for record in tmp_path.glob("small/*/run.json"):
            json.loads(record.read_text())
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_killed_process_leaves_nothing_half_written(small, tmp_path):
    code = f"import incast; incast.run({ {**SMALL, 'duration': '3ms'}!r}, out={str(tmp_path)!r}, jobs=1)"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob("small/*/run.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    long = small.with_(duration="3ms")
    resumed = incast.run(long, out=tmp_path, resume=True)
    assert digests(resumed.folder) == digests(incast.run(long, out=tmp_path / "other").folder)


def in_child(queue):
    results = incast.run(SMALL, seeds=1, progress=False)
    queue.put(digests(results.folder))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_run_too(small, method):
    # After a run in this process, whose threads a fork does not have.
    here = incast.run(small, seeds=1)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == digests(here.folder)
    child.join()
    assert here.folder.is_dir()


def test_threads_run_at_once(small, tmp_path):
    found = {}

    def one(place):
        found[place] = digests(incast.run(small, out=tmp_path / str(place), seeds=1).folder)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(it) for it in found.values()}) == 1 and len(found) == 4


def test_the_command_is_there():
    version = subprocess.run(["incast", "--version"], capture_output=True, text=True, check=True).stdout
    assert version.strip() == f"incast {incast.__build__}"
    # By PEP 440.
    assert str(Version(incast.__version__)) == incast.__version__ and incast.__build__.startswith(incast.__version__)
    assert subprocess.run(["incast", "run", "no-such.toml"], capture_output=True, check=False).returncode == 2
    listed = subprocess.run("incast list schemes | head -1", shell=True, capture_output=True, text=True, check=True)
    assert listed.stderr == ""
