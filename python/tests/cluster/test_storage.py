"""Results behind URLs: in memory, and on a server that speaks S3."""

import json
import pathlib
import shutil
import sys

import pytest
from conftest import contents

import incast
from incast import _storage

fsspec = pytest.importorskip("fsspec")
GRID = {"switch.ecn.at": ["0.1bdp", "0.2bdp"]}


@pytest.fixture(scope="module")
def s3():
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
        yield "s3://bucket/results"
    server.stop()


@pytest.fixture(params=["memory", "s3", "file"])
def url(request, tmp_path):
    yield {"memory": "memory://results", "file": f"file://{tmp_path}/behind"}.get(request.param) or request.getfixturevalue("s3")
    fsspec.filesystem("memory").store.clear()


def download(url, folder):
    files, root = fsspec.core.url_to_fs(url)
    files.get(root, str(folder), recursive=True)
    return contents(folder)


def test_a_sweep_leaves_there_what_it_leaves_in_a_folder(url, small, tmp_path):
    url += "/sweep"
    incast.sweep(small, GRID, out=tmp_path / "local", progress=False)
    swept = incast.sweep(small, GRID, out=url, progress=False)
    assert len(swept.results) == 2 and len(swept.flows) > 0
    assert download(url, tmp_path / "copy") == contents(tmp_path / "local")
    # It is found again: nothing runs, nothing is written but summaries.
    files, root = fsspec.core.url_to_fs(url)
    before = {path: files.info(path).get("LastModified") or files.info(path).get("created") for path in files.glob(f"{root}/*/*/run.json")}
    again = incast.sweep(small, GRID, out=url, progress=False)
    files.invalidate_cache()
    after = {path: files.info(path).get("LastModified") or files.info(path).get("created") for path in files.glob(f"{root}/*/*/run.json")}
    assert len(before) == 12 and before == after
    assert [run["cost"] for run in again.runs] == [run["cost"] for run in swept.runs]


def test_results_of_a_run_are_opened_and_not_overwritten(url, small, tmp_path):
    url += "/run"
    done = incast.run(small, out=url, progress=False)
    opened = incast.open(f"{url}/small")
    assert opened.verdict == done.verdict and len(opened.flows) == len(done.flows)
    with pytest.raises(incast.RunError, match="holds results already"):
        incast.run(small, out=url, progress=False)
    with pytest.raises(incast.RunError, match="another scenario"):
        incast.run(incast.Scenario(small, host={"mtu": "1500B"}), out=url, resume=True, progress=False)
    incast.run(incast.Scenario(small, host={"mtu": "1500B"}), out=url, overwrite=True, progress=False)
    assert incast.open(f"{url}/small").runs[0]["digest"] != done.runs[0]["digest"]


def test_what_was_cut_off_in_the_middle_is_not_there(url, small, tmp_path, monkeypatch):
    url += "/cut"
    written = []
    put = _storage.Store._put

    def fail(self, path, content):
        written.append(path)
        if len(written) == 12:
            raise OSError("the network is gone")
        put(self, path, content)

    monkeypatch.setattr(_storage.Store, "_put", fail)
    with pytest.raises(incast.RunError, match="the network is gone"):
        incast.run(small, out=url, progress=False)
    files, root = fsspec.core.url_to_fs(url)
    runs = [path.rsplit("/", 1)[0] for path in files.glob(f"{root}/small/*/run.json")]
    assert 0 < len(runs) < 6
    for run in runs:
        assert json.loads(files.cat_file(f"{run}/run.json"))["status"] == "done" and files.exists(f"{run}/flows.parquet")
    monkeypatch.undo()
    incast.run(small, out=tmp_path / "local", progress=False)
    incast.run(small, out=url, resume=True, progress=False)
    assert download(url, tmp_path / "copy") == contents(tmp_path / "local")


def test_runs_that_failed_there_are_replaced(url, small, tmp_path):
    url += "/failed"
    long = incast.Scenario(small, duration="4ms")
    with pytest.raises(incast.RunError, match="every run failed"):
        incast.run(long, out=url, run_timeout=1e-6, progress=False)
    done = incast.run(long, out=url, resume=True, progress=False)
    records = download(url, tmp_path / "copy")
    assert all(json.loads(text)["status"] == "done" for name, text in records.items() if name.endswith("run.json"))
    assert incast.open(f"{url}/small").verdict == done.verdict


def test_results_that_cannot_be_written_stay_and_are_named(small, monkeypatch):
    put = _storage.Store._put

    def fail(self, path, content):
        if path != _storage.PROBE:
            raise PermissionError("denied")
        put(self, path, content)

    monkeypatch.setattr(_storage.Store, "_put", fail)
    with pytest.raises(incast.RunError, match="memory://results: PermissionError: denied; the results are in /") as why:
        incast.run(small, out="memory://results", progress=False)
    kept = pathlib.Path(str(why.value).rpartition(" ")[2])
    assert (kept / "summary.json").is_file()
    shutil.rmtree(kept.parent)


def test_errors_name_the_url(url, small):
    incast.run(small, out=url + "/named", progress=False)
    with pytest.raises(incast.RunError, match=f"^{url}/named/small: holds results already"):
        incast.run(small, out=url + "/named", progress=False)
    with pytest.raises(incast.ResultsError, match=f"{url}/named/nothing"):
        incast.open(url + "/named/nothing")


def test_what_cannot_be_reached_is_named_before_anything_runs(small, monkeypatch):
    with pytest.raises(incast.RunError, match="^nosuch://bucket/results: ValueError: Protocol not known"):
        incast.run(small, out="nosuch://bucket/results")
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.filesystem("s3").clear_instance_cache()
    monkeypatch.setattr(incast._incast, "run", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(incast.RunError, match="^s3://gone/results: .*127.0.0.1:1"):
        incast.sweep(small, GRID, out="s3://gone/results")


def test_without_fsspec_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(incast.RunError, match=r"pip install 'incast\[remote\]'"):
        _storage.Store("memory://results")
