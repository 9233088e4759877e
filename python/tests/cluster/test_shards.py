"""`incast plan`, `run --shard` and `gather`, and what they write for Slurm and Kubernetes."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest
import yaml
from conftest import COMMAND, command, contents

import incast

LONG = """
name = "long"
duration = "6ms"
seeds = [1, 2, 3, 4]
topology = { kind = "single-switch", hosts = 8, link = { rate = "100Gbps", delay = "1us" } }
switch = { buffer = { total = "4MB", alpha = 1.0 } }
host = { mtu = "1500B" }
workload = [{ class = "web", kind = "poisson", sizes = { fixed = "40KB" }, load = 0.6 }]
scheme = [{ law = "dctcp" }, { law = "cubic" }]
"""


@pytest.fixture
def local(small, tmp_path):
    """What one machine leaves."""
    command("run", small, "--out", tmp_path / "local", "--quiet")
    return contents(tmp_path / "local" / "small")


def shards(small, out, numbers, of=3):
    for number in numbers:
        command("run", small, "--shard", f"{number}/{of}", "--out", out, "--quiet")


def test_shards_in_any_order_come_to_what_one_machine_does(small, local, tmp_path):
    out = tmp_path / "out"
    assert "plan: " in command("plan", small, "--shards", "3", "--out", out)
    shards(small, out, [3, 1, 3, 2])
    assert "results: " in command("gather", out)
    assert contents(out / "small") == local
    # Again, and into another folder.
    command("gather", out, "--out", tmp_path / "joined")
    assert contents(tmp_path / "joined" / "small") == local


def test_shards_of_machines_that_share_nothing(small, local, tmp_path):
    folders = [tmp_path / f"node{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(folders, 1):
        shards(small, folder, [number])
    command("gather", *folders, "--out", tmp_path / "joined")
    assert contents(tmp_path / "joined" / "small") == local
    command("gather", *(next(folder.glob("shard-*")) for folder in folders), "--out", tmp_path / "again")
    assert contents(tmp_path / "again" / "small") == local


def test_every_run_has_one_shard_and_an_id_of_its_own(small, tmp_path):
    command("plan", small, "--shards", "4", "--out", tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    (of,) = plan["scenarios"]
    assert {run["shard"] for run in of["runs"]} == {1, 2, 3, 4}
    planned = incast.Scenario(small).check().runs
    assert [(run["folder"], run["id"]) for run in of["runs"]] == [(run.folder, run.id) for run in planned]
    assert len({run.id for run in planned}) == 6


def test_missing_runs_are_named_and_nothing_is_joined(small, tmp_path):
    shards(small, tmp_path / "out", [1, 3])
    said = command("gather", tmp_path / "out", code=1)
    assert "missing of shard 2/3: " in said and "+seed" in said
    assert not (tmp_path / "out" / "small").exists()
    # A run without its record was not finished.
    shards(small, tmp_path / "out", [2])
    record = next((tmp_path / "out" / "shard-2-of-3").glob("small/*/run.json"))
    record.unlink()
    assert record.parent.name in command("gather", tmp_path / "out", code=1)
    shards(small, tmp_path / "out", [2])
    command("gather", tmp_path / "out")


def test_a_shard_that_is_killed_leaves_nothing_half_written(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    command("run", tmp_path / "long.toml", "--out", tmp_path / "local", "--quiet")
    arguments = [COMMAND, "run", tmp_path / "long.toml", "--shard", "1/2", "--out", tmp_path / "out", "--quiet", "--jobs", "1"]
    kills = 0
    for _ in range(40):
        started = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        time.sleep(random.Random(kills).uniform(0.02, 0.3))
        started.kill()
        kills += started.wait() == -signal.SIGKILL
        for record in (tmp_path / "out").glob("shard-1-of-2/long/*/run.json"):
            if not record.parent.name.endswith(".partial"):
                assert json.loads(record.read_text())["status"] == "done"
    assert kills > 0
    shards(tmp_path / "long.toml", tmp_path / "out", [1, 2], of=2)
    command("gather", tmp_path / "out")
    assert contents(tmp_path / "out" / "long") == contents(tmp_path / "local" / "long")


def test_a_shard_that_was_not_copied_whole_is_missing(small, tmp_path):
    shards(small, tmp_path / "out", [1, 2, 3])
    flows = next((tmp_path / "out" / "shard-3-of-3").glob("small/*/flows.parquet"))
    whole = flows.read_bytes()
    flows.write_bytes(whole[:-100])
    assert flows.parent.name in command("gather", tmp_path / "out", code=1)
    flows.write_bytes(whole)
    command("gather", tmp_path / "out")


def test_runs_that_fail_are_named_and_not_repeated(tmp_path):
    (tmp_path / "long.toml").write_text(LONG.replace("6ms", "60ms"))
    arguments = ["--shard", "1/2", "--out", tmp_path / "out", "--quiet"]
    assert "--run-timeout" in command("run", tmp_path / "long.toml", *arguments, "--run-timeout", "1ms", code=1)
    records = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("run.json")}
    assert "--run-timeout" in command("run", tmp_path / "long.toml", *arguments, code=1)
    assert records == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("run.json")}
    command("run", tmp_path / "long.toml", "--shard", "2/2", "--out", tmp_path / "out", "--quiet", "--run-timeout", "1ms", code=1)
    # They are joined as failures, however often.
    for _ in range(2):
        assert "error: long/dctcp+seed1: it took longer" in command("gather", tmp_path / "out", code=1)
        shutil.rmtree(tmp_path / "out" / "shard-1-of-2" / "long", ignore_errors=True)


def test_what_does_not_belong_together_is_named(small, tmp_path):
    out = tmp_path / "out"
    command("plan", small, "--shards", "3", "--out", out)
    assert "has 3 shards, and the other 2" in command("plan", small, "--shards", "2", "--out", out, code=2)
    assert "has 3 shards, and the other 2" in command("run", small, "--shard", "1/2", "--out", out, code=2)
    assert "is of another scenario small" in command("run", small, "--shard", "1/3", "--set", "host.mtu=1500B", "--out", out, code=2)
    assert "has other runs of small" in command("run", small, "--shard", "1/3", "--seeds", "5", "--out", out, code=2)
    assert "there are 6 runs" in command("plan", small, "--shards", "7", "--out", tmp_path / "more", code=2)
    assert not (tmp_path / "more").exists()
    assert "expected NUMBER/SHARDS" in command("run", small, "--shard", "4/3", code=2)
    shards(small, out, [1, 2, 3])
    # Of another version, in one of the shards or in all of them.
    own = out / "shard-2-of-3" / "plan.json"
    plan = json.loads(own.read_text())
    own.write_text(json.dumps({**plan, "version": "0.0.9+0"}))
    assert f"{own}: is of incast 0.0.9+0, and the other of " in command("gather", out, code=2)
    for path in [out / "plan.json", *out.glob("shard-*/plan.json")]:
        path.write_text(json.dumps({**plan, "version": "0.0.9+0"}))
    assert "is of incast 0.0.9+0, and the other of " in command("gather", out, code=2)
    own.write_text("{")
    assert f"{own}: is not a plan" in command("gather", out, code=2)
    assert "there is no plan.json" in command("gather", small.parent, code=2)
    for path in [out / "plan.json", *out.glob("shard-*/plan.json")]:
        path.write_text(json.dumps(plan))
    # A file that the scenario names has changed since, or the scenario is elsewhere.
    (small.parent / "sizes.csv").write_text("size_bytes,cdf\n1000,0.0\n50000,1.0\n")
    assert "is of another scenario small" in command("gather", out, code=2)
    shutil.copy(small.parent / "sizes.csv", tmp_path)
    (tmp_path / "sizes.csv").write_text("size_bytes,cdf\n1000,0.0\n40000,0.6\n100000,1.0\n")
    small.rename(tmp_path / "moved.toml")
    assert "--scenario says where it is now" in command("gather", out, code=2)
    assert not (out / "small").exists()
    command("gather", out, "--scenario", tmp_path / "moved.toml")


def test_clocks_do_not_matter(small, local, tmp_path):
    shards(small, tmp_path / "out", [1, 2, 3])
    for place, path in enumerate((tmp_path / "out").rglob("*")):
        os.utime(path, (4e9, 4e9) if place % 2 else (0, 0))
    shards(small, tmp_path / "out", [2])
    command("gather", tmp_path / "out")
    assert contents(tmp_path / "out" / "small") == local


def test_a_full_disk_on_one_node_fails_its_shard_and_the_rest_goes_on(small, tmpfs, tmp_path):
    full = tmpfs("full", "-o", "size=60k")
    assert "No space left" in command("run", small, "--shard", "1/3", "--out", full, "--quiet", code=1)
    records = [path for path in full.glob("shard-1-of-3/small/*/run.json") if ".partial" not in str(path)]
    assert all(json.loads(path.read_text())["status"] == "done" for path in records)
    shards(small, tmp_path / "out", [2, 3])
    assert "missing of shard 1/3" in command("gather", tmp_path / "out", full, code=1)
    shards(small, tmp_path / "out", [1])
    command("gather", tmp_path / "out", full)


def test_a_read_only_disk_is_named(small, tmpfs):
    folder = tmpfs("read-only", "-o", "ro")
    assert "Read-only file system" in command("run", small, "--shard", "1/3", "--out", folder, "--quiet", code=1)


def engine(script, environment, folder):
    """Runs a script as an engine's node does, with this program in the path."""
    path = f"{pathlib.Path(COMMAND).parent}:{os.environ['PATH']}"
    return subprocess.run(script, env={**environment, "PATH": path}, cwd=folder, capture_output=True, text=True, check=False)


SBATCH = """#!/bin/bash
# Runs the tasks of a job array one after another, in random order, and one of them twice.
array=$(sed -n 's/^#SBATCH --array=1-//p' "$1")
for task in $(shuf -i "1-$array") 1; do
    SLURM_ARRAY_TASK_ID=$task bash "$1" || exit
done
"""


def test_slurm(small, local, tmp_path):
    out = tmp_path / "the results"
    said = command("plan", small, "--shards", "3", "--out", out, "--for", "slurm", "--jobs", "2")
    script = out / "slurm.sh"
    assert f"submit: sbatch {script}" in said
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text()
    assert "#SBATCH --array=1-3\n" in text and "#SBATCH --cpus-per-task=2\n" in text
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(SBATCH)
    done = engine(["bash", sbatch, script], {}, tmp_path)
    assert done.returncode == 0, done.stderr
    command("gather", out)
    assert contents(out / "small") == local


def test_slurm_tries_again_what_may_get_better(small, tmp_path):
    command("plan", small, "--shards", "2", "--out", tmp_path, "--for", "slurm")
    # The first two tries are killed, and then it goes well; or it is bad input.
    for code, tries in ((137, 3), (2, 1)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        fake = tmp_path / "bin" / "incast"
        log = tmp_path / f"tries-{code}"
        fake.write_text(f'#!/bin/bash\necho "$@" >>{log}\n[ $(wc -l <{log}) -ge 3 ] || exit {code}\n')
        fake.chmod(0o755)
        environment = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "2"}
        done = subprocess.run(["bash", tmp_path / "slurm.sh"], env=environment, check=False)
        assert len(log.read_text().splitlines()) == tries
        assert done.returncode == (0 if tries == 3 else 2) and log.read_text().rstrip().endswith("--shard 2/2")


def test_kubernetes(small, local, tmp_path):
    said = command("plan", small, "--shards", "3", "--out", tmp_path / "out", "--for", "kubernetes", "--set", "host.mtu=4096B")
    file = tmp_path / "out" / "kubernetes.yaml"
    assert f"submit: kubectl create -f {file}" in said
    subprocess.run([f"{pathlib.Path(COMMAND).parent}/kubernetes-validate", "--strict", file], check=True, capture_output=True)
    files, job = yaml.safe_load_all(file.read_text())
    assert job["spec"]["completions"] == 3
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    # As the kubelet lays it out: files of the ConfigMap, and the claim.
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    for item in next(volume["configMap"]["items"] for volume in pod["volumes"] if volume["name"] == "scenario"):
        place = tmp_path / "pod" / item["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(files["data"][item["key"]])
    shell = container["command"]
    assert shell[:2] == ["sh", "-c"]
    inside = shell[2].replace(mounts["scenario"], str(tmp_path / "pod")).replace(f"--out={mounts['results']}", f"--out={tmp_path / 'out'}")
    for index in ("2", "0", "1", "0"):
        done = engine(["sh", "-c", inside], {"JOB_COMPLETION_INDEX": index}, tmp_path)
        assert done.returncode == 0, done.stderr
    command("gather", tmp_path / "out")
    assert contents(tmp_path / "out" / "small") == local


def test_kubernetes_cannot_take_files_from_anywhere(small, tmp_path):
    text = small.read_text().replace('"sizes.csv"', f'"{small.parent / "sizes.csv"}"')
    small.write_text(text)
    said = command("plan", small, "--shards", "2", "--out", tmp_path / "out", "--for", "kubernetes", code=2)
    assert "not below the scenario's folder" in said and not (tmp_path / "out").exists()
    # A bundled scenario is in the image.
    command("plan", "tutorial", "--shards", "2", "--out", tmp_path / "bundled", "--for", "kubernetes")
    (job,) = yaml.safe_load_all((tmp_path / "bundled" / "kubernetes.yaml").read_text())
    assert "incast run tutorial " in job["spec"]["template"]["spec"]["containers"][0]["command"][2]


def test_the_image_builds_where_a_builder_is():
    builder = next((path for path in map(shutil.which, ("docker", "podman", "buildah")) if path), None)
    # A client without its daemon or a registry is no builder.
    base = "docker.io/library/debian:bookworm-slim"
    if builder is None or subprocess.run([builder, "pull", base], check=False, capture_output=True).returncode:
        pytest.skip("no builder of images, or no registry, is here")
    root = pathlib.Path(__file__).resolve().parents[3]
    subprocess.run([builder, "build", "--file", root / "Containerfile", root], check=True)
