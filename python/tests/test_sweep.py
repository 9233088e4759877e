"""Sweeps do each run once, and their tables are one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SMALL
from test_run import ENDLESS, SLACK, digests

import incast
from incast._progress import pace
from incast._sweep import points


def test_points_are_products_of_grids_and_zips():
    assert points({"a": [1, 2], "b": [3]}, {"c": [4, 5], "d": [6, 7]}) == [
        {"c": 4, "d": 6, "a": 1, "b": 3},
        {"c": 4, "d": 6, "a": 2, "b": 3},
        {"c": 5, "d": 7, "a": 1, "b": 3},
        {"c": 5, "d": 7, "a": 2, "b": 3},
    ]
    assert points(None, None) == [{}]
    for grid, zipped in [({"a": []}, None), (None, {"a": [1], "b": [1, 2]}), ({"a": [1]}, [{"a": [1]}])]:
        with pytest.raises(ValueError, match="found"):
            points(grid, zipped)


def test_a_second_sweep_does_no_run_again(small, tmp_path):
    grid = {"switch.ecn.at": ["0.1bdp", "0.2bdp"]}
    first = incast.sweep(small, grid, out=tmp_path, seeds=1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/run.json")}
    assert len(before) == 6 == len(first.runs)
    grid["switch.ecn.at"].insert(1, "1bdp")
    second = incast.sweep(small, grid, out=tmp_path, seeds=2)
    assert len(second.runs) == 18 and all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert [point["switch.ecn.at"] for point in second.points] == ["0.1bdp", "1bdp", "0.2bdp"]
    # Each folder is one of the command's.
    again = incast.open(second.results[1][1].folder)
    assert again.rows == second.results[1][1].rows
    changed = small.with_({"switch.ecn.at": "1bdp"})
    assert digests(again.folder) == digests(incast.run(changed, seeds=2).folder)


def test_its_tables_are_those_of_a_grid(small, tmp_path):
    polars = pytest.importorskip("polars")
    grid = {"switch.ecn.at": ["0.1bdp", "1bdp"], "host.ack_every": [1, 2]}
    swept = incast.sweep(small, grid, out=tmp_path, seeds=1)
    direct = incast.run(small.with_(grid=grid), seeds=1)
    for name in ("flows", "rows"):
        ours, theirs = polars.DataFrame(swept.table(name)), polars.DataFrame(direct.table(name))
        assert set(ours.columns) == set(theirs.columns)
        order = ["grid.switch.ecn.at", "grid.host.ack_every", "scheme", "class", *(["start_ps", "source", "sequence"] if name == "flows" else ["seed"])]
        key = [it for it in order if it in ours.columns]
        same = [column for column in theirs.columns if not column.startswith(("cpu_s", "ns_per_packet_hop", "wall_s"))]
        assert ours.select(same).sort(key).equals(theirs.select(same).sort(key)), name
    assert swept.verdict.count("switch.ecn.at = ") == 4


def test_a_sweep_opens_again_and_says_what_it_is(small, tmp_path):
    swept = incast.sweep(small, {"switch.ecn.at": ["0.1bdp", "1bdp"]}, out=tmp_path, seeds=1)
    assert repr(swept) == f"<incast.Sweep small: 2 points of switch.ecn.at, 6 runs in {tmp_path}>"
    again = incast.open(tmp_path)
    assert again.name == swept.name == "small"
    assert isinstance(again, incast.Sweep) and again.rows == swept.rows and again.points == swept.points
    assert repr(again) == repr(swept)
    (tmp_path / "other.sweep.json").write_text("{}")
    with pytest.raises(incast.ResultsError, match="found several sweeps, open one: other.sweep.json, small.sweep.json"):
        incast.open(tmp_path)
    assert incast.open(tmp_path / "small.sweep.json").rows == swept.rows
    with pytest.raises(incast.ResultsError, match="other.sweep.json: cannot be read"):
        incast.open(tmp_path / "other.sweep.json")


def test_a_sweep_that_cannot_say_what_it_is_keeps_its_results(small, tmp_path):
    (tmp_path / "small.sweep.json").mkdir()
    with pytest.warns(incast.RunWarning, match="small.sweep.json: cannot be written"):
        swept = incast.sweep(small, {"switch.ecn.at": ["1bdp"]}, out=tmp_path, seeds=1)
    assert len(swept.runs) == 3 and not list(tmp_path.glob(".*"))


def test_pace_is_of_what_is_done():
    assert pace(0, 4, 10) == pace(4, 4, 10) == pace(1, 4, 0.5) == ""
    assert pace(1, 4, 60) == ", 1 a minute, about 3 min left"
    assert pace(3, 4, 30) == ", 6 a minute, about 10 s left"


def test_points_that_come_to_the_same_are_done_once(small, tmp_path):
    swept = incast.sweep(small, {"switch.ecn.at": ["1bdp", "1.0bdp"]}, out=tmp_path, seeds=1)
    assert len(list(tmp_path.glob("*/"))) == 1 and len(swept.points) == 2 and len(swept.runs) == 6


def test_two_sweeps_at_once_share_their_runs(small, tmp_path):
    grid = {"switch.ecn.at": ["0.1bdp", "0.2bdp", "1bdp"]}
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: incast.sweep(small, grid, out=tmp_path, seeds=1, progress=False), range(2)))
    assert both[0].rows == both[1].rows and len(both[0].runs) == 9


def test_what_differs_between_points_is_each_point_s(small):
    plot = pytest.importorskip("incast.plot")
    axes = {"duration": ["100us", "200us"], "scheme": [[{"law": "dctcp"}], [{"law": "cubic"}]], "workload": [SMALL["workload"]]}
    swept = incast.sweep(small, axes, seeds=1)
    assert swept.schemes == ["dctcp", "cubic"] and len(swept.points) == 4
    for point, its in swept.results:
        ours, theirs = plot.fct_cdf(swept, point=point).axes[0].lines, plot.fct_cdf(its).axes[0].lines
        assert len(ours) == 1 == len(theirs) and (ours[0].get_xdata() == theirs[0].get_xdata()).all()
    assert len(incast.sweep(small, {"measure.traces": [True, False]}, seeds=1).events) > 0


def test_axes_that_are_no_lists_or_given_twice_are_refused(small):
    gridded = small.with_(grid={"switch.ecn.at": ["0.1bdp", "1bdp"]})
    for scenario, grid, message in [
        (gridded, {"switch.ecn.at": ["0.3bdp"]}, "the scenario's own grid varies"),
        (small, {"switch.ecn.at": "1bdp"}, "allowed is a list of values"),
        (small, {"switch.ecn.at": 1}, "allowed is a list of values"),
    ]:
        with pytest.raises(ValueError, match=message):
            incast.sweep(scenario, grid)
    for keys in ({"threads": 0}, {"jobs": 1.5}, {"seeds": 0}, {"run_timeout": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(keys))}: found"):
            incast.sweep(small, {"host.ack_every": [1]}, **keys)


def test_a_point_that_is_wrong_is_named_before_anything_runs(small, tmp_path):
    with pytest.raises(incast.ScenarioError, match="switch.ecn.at"):
        incast.sweep(small, {"switch.ecn.at": ["0.1bdp", "lots"]}, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_point_that_fails_is_named_and_the_others_stay(small):
    with pytest.warns(incast.RunWarning, match="10s|timeout|longer"):
        grid = {"duration": ["100us", "10s"]}
        swept = incast.sweep(ENDLESS, grid, seeds=1, run_timeout=2, only={"scheme": "dctcp"})
    assert [point for point, _ in swept.errors] == [{"duration": "10s"}]
    assert swept.points == [{"duration": "100us"}] and len(swept.flows) > 0


# The second is still making its flows by then, which does not notice; of more flows it would need more memory than others
# on the machine may leave.
@pytest.mark.parametrize(("duration", "after"), [("10s", 2.5), ("12s", 1.2)])
def test_an_interrupt_keeps_what_is_done(duration, after, tmp_path):
    code = f"""
import os, signal, threading, time, incast
threading.Timer({after}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    incast.sweep({ENDLESS!r}, {{"duration": ["100us", {duration!r}]}}, out={str(tmp_path)!r}, only={{"scheme": "dctcp"}}, progress=False)
except KeyboardInterrupt:
    print(time.monotonic() - started)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert after - 0.1 < float(done.stdout) < after + 1 + SLACK, done.stderr
    assert len(list(tmp_path.glob("*/*/run.json"))) == 1 and not list(tmp_path.glob("*/*.tmp"))
