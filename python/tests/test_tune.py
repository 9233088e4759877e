"""A search for settings finds what the command finds."""

import json
import subprocess

import pytest

import incast

OVER = {"switch.ecn.at": ["3KB", "30KB"], "scheme.dctcp.initial_window": "1500B..24KB"}


def without_checksum(text):
    found = json.loads(text)
    del found["sha256"]
    return found


def test_it_is_the_command_s(small, tmp_path):
    start = small.with_({"scheme.dctcp.initial_window": "1500B", "switch.ecn.at": "30KB"})
    lines = []
    tuned = incast.tune(
        start, "web:slowdown.mean", OVER, budget=14, vary=0, out=tmp_path, progress=lambda part, line: lines.append(part)
    )
    assert tuned.advised.keys() == {"dctcp"} and set(tuned.advised["dctcp"]) == set(OVER)
    assert "set: " in str(tuned) and tuned.found["schemes"][0]["helps"] and all(0 <= part <= 1 for part in lines)
    assert len(tuned.scenarios) == 1 and incast.Scenario(tuned.scenarios[0]).name == f"{small.name}-tuned"
    # All its runs are results as any others.
    assert len(tuned.runs) > 10 and tuned.rows and without_checksum((tuned.folder / "tune.json").read_text()) == tuned.found
    again = incast.tune(start, "web:slowdown.mean", OVER, budget=14, vary=0, out=tmp_path, resume=True)
    assert again.found == tuned.found
    file = tmp_path / "start.toml"
    file.write_text(start.check().effective_toml)
    command = ["incast", "tune", file, "--for", "web:slowdown.mean", "--json", "--quiet", "--vary", "0%", "--budget", "14"]
    over = ["--over", "switch.ecn.at=3KB,30KB", "--over", "scheme.dctcp.initial_window=1500B..24KB"]
    done = subprocess.run([*command, *over, "--out", tmp_path / "command"], capture_output=True, text=True, check=True)
    assert without_checksum(done.stdout) == tuned.found


def test_values_are_values(small):
    ecn = [{"kind": "step", "at": "3KB"}, {"kind": "step", "at": "10KB"}, "off"]
    tuned = incast.tune(small, "web:slowdown.mean", {"switch.ecn": ecn}, schemes="dctcp", budget=12, vary=0)
    assert all(value in tuned.found["axes"][0]["values"] for value in ecn)


def test_what_cannot_be_asked_is_refused(small):
    with pytest.raises(incast.Error, match="different units"):
        incast.tune(small, "web:slowdown.mean", {"switch.ecn.at": "1KB..2us"})
    with pytest.raises(incast.Error, match="a single value"):
        incast.tune(small, "web:slowdown.mean", {"switch.ecn.at": ["1KB"]})
    with pytest.raises(incast.Error, match="found '1KB-2KB', allowed is a range"):
        incast.tune(small, "web:slowdown.mean", {"switch.ecn.at": "1KB-2KB"})
    with pytest.raises(incast.Error, match="web:slowdown.p99: found 0.05, allowed is a part"):
        incast.tune(small, "web:slowdown.mean", {"switch.ecn.at": "1KB..2KB"}, within={"web:slowdown.p99": 0.05})
    with pytest.raises(incast.Error, match="no number"):
        incast.tune(small, "slowdown.meen", {"switch.ecn.at": "1KB..2KB"})
    with pytest.raises(incast.RunError, match="no such value to start from"):
        incast.tune(small, "web:slowdown.mean", {"switch.ecn.att": "1KB..2KB"})
    for wrong in ({"vary": 1}, {"budget": 0}, {"resume": True, "overwrite": True}):
        with pytest.raises(ValueError, match="allowed"):
            incast.tune(small, "web:slowdown.mean", {"switch.ecn.at": "1KB..2KB"}, **wrong)
