"""Scenarios are checked as the command checks them."""

import copy
import json
import pathlib
import pickle
import subprocess

import pytest
from conftest import SMALL

import incast


def test_equal_input_has_the_command_s_hash(small, tmp_path):
    text = small.check().effective_toml
    file = tmp_path / "small.toml"
    file.write_text(text)
    assert incast.Scenario(file).hash == small.hash
    subprocess.run(["incast", "run", file, "--out", tmp_path, "--seeds", "1", "--quiet"], check=True, capture_output=True)
    record = json.loads(next(tmp_path.glob("small/*/run.json")).read_text())
    assert record["scenario_hash"] == small.hash
    keys = dict(SMALL)
    assert incast.Scenario(**keys) == small
    assert incast.Scenario(str(file), seeds=[1, 2, 3]) == small


def test_bundled_scenarios_have_names():
    names = incast.bundled()
    assert "first-light" in names and "marimo/table1" in names
    full, short = incast.Scenario("marimo/table1"), incast.Scenario("marimo/table1", short=True)
    assert full.hash != short.hash and len(short.check().runs) < len(full.check().runs)


def test_all_problems_are_listed_with_their_keys(tmp_path):
    wrong = copy.deepcopy(SMALL)
    wrong["switch"]["ecn"]["kind"] = "stpe"
    wrong["duration"] = "5 parsecs"
    wrong["hots"] = {}
    with pytest.raises(incast.ScenarioError) as caught:
        incast.Scenario(wrong)
    problems = {problem.key: problem for problem in caught.value.problems}
    assert {"switch.ecn.kind", "duration", "hots"} <= set(problems)
    assert problems["switch.ecn.kind"].nearest == "step"
    assert problems["hots"].nearest == "host"
    assert all(problem.file is None and problem.line is None for problem in problems.values())
    assert isinstance(caught.value, ValueError) and isinstance(pickle.loads(pickle.dumps(caught.value)), incast.ScenarioError)
    file = tmp_path / "wrong.toml"
    file.write_text('name = "a"\nduration = 7\n')
    with pytest.raises(incast.ScenarioError, match=r"wrong.toml:2: duration: "):
        incast.Scenario(file)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({**SMALL, "seeds": {1, 2}}, "seeds"),
        ({**SMALL, "host": {"mtu": None}}, "host.mtu"),
        ({**SMALL, "topology": {"kind": object()}}, "topology.kind"),
        ({**SMALL, "scheme": [{"law": "dctcp"}, {"law": b"cubic"}]}, "scheme[1].law"),
        ({**SMALL, "workload": [{"load": float("nan")}]}, "workload[0].load"),
        ({**SMALL, "grid": {1: [2]}}, "grid"),
    ],
)
def test_wrong_types_name_what_was_expected(value, key):
    with pytest.raises(incast.ScenarioError) as caught:
        incast.Scenario(value)
    (problem,) = caught.value.problems
    assert problem.key == key and problem.allowed


def test_what_is_no_scenario_is_refused():
    with pytest.raises(TypeError, match="found int, expected a path, a bundled name or a mapping"):
        incast.Scenario(7)
    with pytest.raises(incast.ScenarioError, match="first-light"):
        incast.Scenario("first-ligt")


def test_with_makes_a_changed_copy(small):
    changed = small.with_({"switch.ecn.at": "1bdp", "scheme": [{"law": "dctcp", "gain": 0.1}]}, duration="100us")
    assert changed.effective["duration"] == "100us" and small.effective["duration"] == "200us"
    assert changed.effective["scheme"][0]["gain"] == 0.1 and changed.schemes == ["dctcp"]
    assert changed.hash != small.hash
    assert small.with_() == small
    with pytest.raises(incast.ScenarioError) as caught:
        small.with_({"switch.ecn.att": "1bdp"})
    assert caught.value.problems[0].key.startswith("switch.ecn") and caught.value.problems[0].nearest == "at"


def test_a_range_is_a_list(small):
    assert small.with_(seeds=range(1, 11)).seeds == list(range(1, 11))


def test_numbers_of_numpy_and_paths_are_values(small):
    numpy = pytest.importorskip("numpy")
    changed = small.with_({"workload": [{**SMALL["workload"][0], "load": numpy.float64(0.25)}]}, seeds=numpy.arange(1, 4))
    assert changed.effective["workload"][0]["load"] == 0.25 and changed.seeds == [1, 2, 3]
    with pytest.raises(incast.ScenarioError, match="none.csv"):
        small.with_({"workload": [{**SMALL["workload"][0], "sizes": pathlib.Path("none.csv")}]})


def test_check_tells_runs_and_cost(small):
    check = small.check(seeds=2, only={"scheme": "cubic"})
    assert [(run.scheme, run.seed) for run in check.runs] == [("cubic", 1), ("cubic", 2)]
    assert 0 < check.cpu_s < 60 and check.packet_hops > 1000 and check.memory_bytes > 0
    assert check.effective["host"]["mtu"] == "4.096KB" and 'mtu = "4.096KB"' in check.effective_toml
    assert "2 runs" in str(check)
    with pytest.raises(incast.RunError, match="cubix"):
        small.check(only=["scheme=cubix"])


def test_a_file_is_read_once(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "small.toml"
    file.write_text(small.check().effective_toml)
    read = incast.Scenario("small.toml")
    file.write_text("")
    monkeypatch.chdir("/")
    assert read.with_() == read == pickle.loads(pickle.dumps(read))


def test_scenarios_are_values(small):
    again = pickle.loads(pickle.dumps(small.with_(duration="100us")))
    assert again == small.with_(duration="100us") != small and hash(again) == hash(small.with_(duration="100us"))
    assert "dctcp" in repr(small)


def test_a_saved_scenario_is_the_same(small, tmp_path):
    changed = small.with_({"switch.ecn.at": "0.5bdp", "grid": {"workload.web.load": [0.2, 0.4]}})
    path = changed.save(tmp_path / "saved.toml")
    again = incast.Scenario(path)
    assert again == changed and again.axes == ["workload.web.load"] and again.hash == changed.hash
    # What laws compute from the fabric is computed at each point of the grid.
    rates = small.with_({"grid": {"topology.link.rate": ["100Gbps", "200Gbps"]}})
    saved = incast.Scenario(rates.save(tmp_path / "rates.toml"))
    digests = [[run["digest"] for run in incast.run(one, seeds=1, progress=False).runs] for one in (rates, saved)]
    assert digests[0] == digests[1] and len(set(digests[0])) > 1
    # A file that it names is found from anywhere.
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "sizes.csv").write_text("size_bytes,cdf\n1000,0.0\n40000,1.0\n")
    named = {**json.loads(json.dumps(small.effective)), "workload": [{**small.effective["workload"][0], "sizes": {"file": "sizes.csv"}}]}
    saved = incast.Scenario(named, folder=tmp_path / "here").save(tmp_path / "elsewhere.toml")
    assert incast.Scenario(saved).check().runs
    with pytest.raises(incast.RunError, match="saved.toml"):
        changed.save(tmp_path / "none" / "saved.toml")
