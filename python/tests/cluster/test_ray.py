"""`incast.sweep(executor="ray")` on clusters of several nodes, of which some die."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import contents

import incast
from incast import _ray

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

GRID = {"switch.ecn.at": ["0.1bdp", "0.2bdp", "0.5bdp", "1bdp"]}
# So long that a node can be killed in the middle.
LONGER = {"duration": "10ms", "seeds": [1, 2]}


NODE = {"num_cpus": 1, "memory": 320 << 20, "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one core each, and a head that does nothing."""
    its = cluster_utils.Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    for _ in range(2):
        its.add_node(**NODE)
    ray.init(address=its.address, log_to_driver=False, logging_level="ERROR")
    yield its
    ray.shutdown()
    its.shutdown()


@pytest.fixture(params=[True, False], ids=["shared folder", "object store"])
def shares(request, monkeypatch):
    monkeypatch.setattr(_ray, "SHARES_FOLDERS", request.param)


def swept(scenario, folder, **options):
    return incast.sweep(scenario, GRID, out=folder, progress=False, **options)


INTERRUPTED = """
import os, signal, sys, threading, time, incast, ray
scenario = incast.Scenario({small!r}, duration="10ms", seeds=[1, 2, 3, 4, 5, 6])
def interrupt():
    while len(__import__("glob").glob({out!r} + "/.shards/*/*/*/*/run.json")) < 3:
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    incast.sweep(scenario, {grid!r}, out={out!r}, executor="ray", progress=False)
except KeyboardInterrupt:
    print("interrupted", ray.is_initialized())
"""


def test_an_interrupt_cancels_what_runs_and_keeps_what_is_done(small, tmp_path):
    # On a cluster of its own, which this starts.
    out = tmp_path / "out"
    code = INTERRUPTED.format(small=str(small), out=str(out), grid=GRID)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted True\n", done.stderr
    kept = list(out.glob("*/*/run.json"))
    assert 3 <= len(kept) < 48 and not (out / _ray.STAGING).exists()
    before = {path: path.stat().st_mtime_ns for path in kept}
    scenario = incast.Scenario(small, duration="10ms", seeds=[1, 2, 3, 4, 5, 6])
    swept(scenario, out)
    assert before == {path: path.stat().st_mtime_ns for path in kept}
    assert len(list(out.glob("*/*/run.json"))) == 48


def test_a_sweep_comes_to_what_one_machine_does(cluster, shares, small, tmp_path):
    local = swept(small, tmp_path / "local")
    on_ray = swept(small, tmp_path / "ray", executor="ray")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert on_ray.points == local.points and len(on_ray.flows) == len(local.flows)
    # Nothing is done twice.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "ray").glob("*/*/run.json")}
    swept(small, tmp_path / "ray", executor="ray")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "ray").glob("*/*/run.json")}


def test_seeds_are_added_where_claims_are_inconclusive(cluster, small, tmp_path):
    # Of effects that three seeds do not tell from nothing.
    claim = {"metric": "fct_us.p99", "class": "web", "scheme": "cubic", "ratio_to": "dctcp", "value": 1.2, "note": "a test"}
    scenario = incast.Scenario(small, paper={"claim": [claim]}, seed_budget=12)
    incast.sweep(scenario, out=tmp_path / "local", progress=False)
    incast.sweep(scenario, out=tmp_path / "ray", progress=False, executor="ray")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert len(list((tmp_path / "ray").glob("*/*/run.json"))) > 6


@pytest.mark.parametrize("victim", ["node", "worker"])
def test_what_dies_is_done_elsewhere(cluster, victim, small, tmp_path):
    scenario = incast.Scenario(small, **LONGER)
    swept(scenario, tmp_path / "local")

    killed = threading.Event()

    def kill():
        # When both nodes are at work.
        deadline = time.monotonic() + 60
        while len(list((tmp_path / "ray" / _ray.STAGING).glob("*/*/*/*"))) < 3:
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        if victim == "node":
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        else:
            os.kill(worker(cluster), signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    on_ray = swept(scenario, tmp_path / "ray", executor="ray")
    killer.join()
    assert killed.is_set()
    if victim == "node":
        cluster.add_node(**NODE)
    assert not on_ray.errors
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_what_dies_between_its_last_run_and_its_report_leaves_nothing_twice(cluster, shares, small, tmp_path, monkeypatch):
    swept(small, tmp_path / "local")
    real, died = _ray.work, tmp_path / "died"

    def work(how, scenarios, contents):
        done = real(how, scenarios, contents)
        with contextlib.suppress(FileExistsError):
            died.touch(exist_ok=False)
            os._exit(1)
        return done

    monkeypatch.setattr(_ray, "work", work)
    on_ray = swept(small, tmp_path / "ray", executor="ray")
    assert died.exists() and not on_ray.errors
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert not (tmp_path / "ray" / _ray.STAGING).exists()


def worker(cluster):
    """A process of a cluster that does a task."""
    parents = {started.process.pid for node in cluster.worker_nodes for all_of in node.all_processes.values() for started in all_of}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in parents and b"ray::work" in (process / "cmdline").read_bytes():
                return int(process.name)
    raise AssertionError("no worker is there")


def test_a_run_that_no_node_has_memory_for_is_named_and_the_others_go_on(cluster, small, tmp_path):
    with pytest.warns(incast.RunWarning, match=r"it needs \d+ MB of memory and 1 cores on one node; the largest of \d nodes have"):
        result = incast.sweep(small, {"topology.hosts": [8, 4000]}, out=tmp_path, executor="ray", progress=False, seeds=1)
    assert [point for point, _ in result.errors] == [{"topology.hosts": 4000}]
    assert len(result.results) == 1


def test_workers_of_another_version_are_refused(cluster, small, tmp_path, monkeypatch):
    monkeypatch.setattr(incast._incast, "version", "0.0.9+0")
    with pytest.raises(incast.RunError, match=r"incast on .* is .*, and here 0\.0\.9\+0"), pytest.warns(incast.RunWarning):
        incast.sweep(small, out=tmp_path, executor="ray", progress=False)


def test_what_a_node_with_a_full_disk_cannot_do_another_does(cluster, small, tmpfs, tmp_path, monkeypatch):
    monkeypatch.setattr(_ray, "SHARES_FOLDERS", False)
    full = tmpfs("full", "-o", "size=60k")
    node = cluster.add_node(**NODE, env_vars={"TMPDIR": str(full)})
    try:
        for number in range(3):
            scenario = incast.Scenario(small, seeds=[10 * number + seed for seed in range(1, 9)])
            assert not swept(scenario, tmp_path / str(number), executor="ray").errors
            swept(scenario, tmp_path / "local")
        assert sum(map(len, (contents(tmp_path / str(number)) for number in range(3)))) == len(contents(tmp_path / "local"))
    finally:
        cluster.remove_node(node)


def test_two_sweeps_in_one_folder_take_what_the_other_did(cluster, small, tmp_path):
    swept(small, tmp_path / "local")
    code = f"import incast; incast.sweep({str(small)!r}, {GRID!r}, out={str(tmp_path / 'ray')!r}, executor='ray', progress=False)"
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    other = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], env=environment)
    swept(small, tmp_path / "ray", executor="ray")
    assert other.wait(timeout=60) == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_what_a_killed_sweep_left_is_taken(cluster, small, tmp_path):
    swept(small, tmp_path / "local")
    (run, *_) = (tmp_path / "local").glob("*/*/run.json")
    left = tmp_path / "ray" / _ray.STAGING / "gone" / "store" / run.parent.parent.name
    shutil.copytree(run.parent, left / run.parent.name)
    swept(small, tmp_path / "ray", executor="ray")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    taken = tmp_path / "ray" / run.relative_to(tmp_path / "local")
    assert json.loads(taken.read_text())["cost"] == json.loads(run.read_text())["cost"]


def test_a_cluster_that_is_gone_is_named(small, tmp_path):
    # Ray itself ends the process.
    out = tmp_path / "out"
    code = f"import incast; incast.sweep({str(small)!r}, out={str(out)!r}, executor='ray', progress=False)"
    environment = {**os.environ, "RAY_ADDRESS": "127.0.0.1:1", "RAY_gcs_rpc_server_reconnect_timeout_s": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode != 0 and "Failed to connect to GCS" in done.stderr and not out.exists()


def test_a_cluster_that_is_gone_is_not_waited_for(small, tmp_path):
    # What a cluster leaves that was killed. The names of Ray's sockets have 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        (pathlib.Path(folder) / "ray").mkdir()
        (pathlib.Path(folder) / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
        out = tmp_path / "out"
        code = f"import incast; incast.sweep({str(small)!r}, out={str(out)!r}, executor='ray', progress=False)"
        environment = {**os.environ, "RAY_TMPDIR": folder}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=100)
    assert list(out.glob("*/*/run.json"))


def test_arguments_that_are_wrong(small):
    with pytest.raises(ValueError, match="executor: found 'slurm', allowed is 'ray' or None"):
        incast.sweep(small, GRID, executor="slurm")


def test_tasks_become_small_and_have_every_run_once():
    single = [_ray.Task([(f"s{place % 5}", [f"r{place}"])], cpu_s=0.3 + place % 5, memory=place) for place in range(60)]
    tasks = _ray.divide(single, cores=2)
    runs = [(name, run) for task in tasks for name, names in task.runs for run in names]
    assert sorted(runs) == sorted((task.runs[0][0], task.runs[0][1][0]) for task in single)
    left = sum(task.cpu_s for task in single)
    for task in tasks:
        # No more than a part of what is left, or one run.
        assert task.cpu_s <= max(left / (2 * _ray.PARTS), _ray.SHORTEST) or sum(len(runs) for _, runs in task.runs) == 1
        left -= task.cpu_s
    assert tasks[0].cpu_s > 4 * tasks[-1].cpu_s
