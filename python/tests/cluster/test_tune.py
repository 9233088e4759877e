"""`incast.tune(executor="ray")` finds what a search on one machine finds."""

import os
import subprocess
import sys

import pytest
from conftest import contents

import incast
from incast import _incast, _ray

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
pytest.importorskip("ray")

OVER = {"switch.ecn.at": "3KB..60KB"}


@pytest.mark.parametrize("shares", [True, False], ids=["shared folder", "object store"])
def test_a_search_on_a_cluster_is_the_same(small, tmp_path, monkeypatch, shares):
    monkeypatch.setattr(_ray, "SHARES_FOLDERS", shares)
    here, there = (tmp_path / name for name in ("here", "there"))
    asked = ("web:slowdown.mean", OVER)
    alone = incast.tune(small, *asked, schemes=["dctcp"], budget=14, out=here)
    done: list[str] = []
    run = _incast.adopt

    def adopt(scenario, **how):
        done.extend(how["runs"])
        run(scenario, **how)

    monkeypatch.setattr(_incast, "adopt", adopt)
    lines: list[float] = []
    found = incast.tune(
        small, *asked, schemes=["dctcp"], budget=14, out=there, executor="ray", progress=lambda part, line: lines.append(part)
    )
    assert found.found == alone.found
    assert contents(here) == contents(there)
    # All but the first, those of other loads, too.
    assert len(done) >= len(found.runs) - 1 > 10
    assert not (there / _ray.STAGING).exists() and lines


def test_what_the_cluster_cannot_do_is_done_here(small, tmp_path, monkeypatch):
    asked, how = ("web:slowdown.mean", OVER), {"schemes": ["dctcp"], "budget": 14, "vary": 0}
    alone = incast.tune(small, *asked, **how, out=tmp_path / "here")
    monkeypatch.setattr(_ray.Driver, "_misfit", lambda self, task: "no node is large enough")
    with pytest.warns(incast.RunWarning, match="no node is large enough; it is done here, and so is the rest of the search"):
        found = incast.tune(small, *asked, **how, out=tmp_path / "there", executor="ray")
    assert found.found == alone.found


INTERRUPTED = """
import glob, os, signal, threading, time, incast
def interrupt():
    while len(glob.glob({out!r} + "/.shards/*/*/*/*/run.json")) < 2:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
scenario = incast.Scenario({small!r}, duration="5ms")
try:
    incast.tune(scenario, "web:slowdown.mean", {over!r}, schemes=["dctcp"], budget=14, vary=0, out={out!r}, executor="ray", progress=False)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_keeps_what_is_done(small, tmp_path):
    out = tmp_path / "out"
    code = INTERRUPTED.format(small=str(small), out=str(out), over=OVER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted\n", done.stderr
    kept = list(out.glob("*/*/run.json"))
    assert len(kept) >= 3 and not (out / _ray.STAGING).exists()
    before = {path: path.stat().st_mtime_ns for path in kept}
    scenario = incast.Scenario(small, duration="5ms")
    incast.tune(scenario, "web:slowdown.mean", OVER, schemes=["dctcp"], budget=14, vary=0, out=out, resume=True)
    assert before == {path: path.stat().st_mtime_ns for path in kept}


def test_another_executor_is_refused(small):
    with pytest.raises(ValueError, match="allowed is 'ray'"):
        incast.tune(small, "web:slowdown.mean", OVER, executor="dask")
