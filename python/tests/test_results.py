"""Results are tables that others take without a copy."""

import json
import pickle
import subprocess
import sys

import pytest
from conftest import SMALL

import incast


def test_rows_verdict_and_claims(results):
    assert {row["scheme"] for row in results.rows} == {"dctcp", "cubic", "swift"}
    assert results.verdict and results.claims == [] and results.failed == {}
    assert results.classes == ["all", "web", "incast"] and results.points == [{}]
    assert json.loads((results.folder / "summary.json").read_text())["rows"] == results.rows
    html = results._repr_html_()
    assert "dctcp" in html and "<table>" in html and "slowdown p99" in html


def test_tables_are_what_export_makes(results, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("flows", "requests", "ports", "rates", "events"):
        file = tmp_path / f"{name}.parquet"
        subprocess.run(["incast", "export", results.folder, "--table", name, "--out", file], check=True, capture_output=True)
        ours, theirs = pyarrow.table(results.table(name)), parquet.read_table(file)
        assert ours.schema.names == theirs.schema.names and len(results.table(name)) == theirs.num_rows
        assert ours.cast(theirs.schema).equals(theirs)


def test_buffers_are_shared(results):
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    table = results.flows.select("size_bytes").load()
    first = pyarrow.table(table).column(0).chunks
    again = pyarrow.table(table).column(0).chunks
    assert [it.buffers()[1].address for it in first] == [it.buffers()[1].address for it in again]
    series = polars.DataFrame(table).to_series()
    addresses = [chunk.to_arrow().buffers()[1].address for chunk in series.get_chunks()]
    assert addresses == [chunk.buffers()[1].address for chunk in first]


def test_a_buffer_outlives_its_results(small):
    polars = pytest.importorskip("polars")
    results = incast.run(small, seeds=1)
    table = results.flows.load()
    frame = polars.DataFrame(table)
    total, rows = frame["size_bytes"].sum(), len(table)
    del results, table
    assert frame["size_bytes"].sum() == total and len(frame) == rows


def test_pandas_has_the_same_values(results):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    for name in ("flows", "events", "rows"):
        theirs, ours = polars.DataFrame(results.table(name)), results.table(name).to_pandas()
        assert list(ours.columns) == theirs.columns and len(ours) == len(theirs)
        for column in theirs.columns:
            values = [None if pandas.isna(value) else value for value in ours[column].astype(object)]
            assert values == theirs[column].to_list(), column
    assert results.table("flows").to_pylist() == polars.DataFrame(results.flows).to_dicts()


def test_columns_are_selected(results):
    pyarrow = pytest.importorskip("pyarrow")
    table = results.flows.select("size_bytes", "scheme")
    assert pyarrow.table(table).equals(pyarrow.table(results.flows).select(["size_bytes", "scheme"]))
    assert len(pyarrow.table(results.flows.select("seed"))) == len(results.flows)
    with pytest.raises(KeyError, match="no column sizes; there are"):
        results.flows.select("sizes")
    assert table.types == {"size_bytes": "UInt64", "scheme": "Utf8"}


def test_the_summary_has_every_metric(results):
    polars = pytest.importorskip("polars")
    frame = results.to_polars()
    pooled = frame.filter(frame["pooled"] & (frame["class"] == "all") & (frame["scheme"] == "dctcp")).to_dicts()[0]
    (row,) = (it for it in results.rows if (it["scheme"], it["class"], it["seed"]) == ("dctcp", "all", "all"))
    assert pooled["fct_us.p99"] == row["fct_us"]["p99"] and pooled["flows"] == row["flows"]
    assert [pooled["slowdown.mean.low"], pooled["slowdown.mean.high"]] == row["ci95"]["slowdown.mean"]
    assert polars.DataFrame(results.summary).equals(frame)


def test_tables_are_of_the_runs_of_the_summary(small, tmp_path):
    three = incast.run(small, out=tmp_path, seeds=3)
    all_flows = len(three.flows)
    one = incast.run(small, out=tmp_path, seeds=1, resume=True)
    assert len(one.runs) == 3 and set(it["seed"] for it in one.flows.select("seed").to_pylist()) == {1}
    assert len(one.flows) < all_flows == len(incast.run(small, out=tmp_path, resume=True).flows)


def test_results_are_handed_on_where_they_stay(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = incast.run(small, out="here", seeds=1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickle.dumps(results)).rows == results.rows and len(results.flows) > 0
    with pytest.raises(TypeError, match="out="):
        pickle.dumps(incast.run(small, seeds=1))


def test_what_is_not_there_is_named(small, tmp_path):
    with pytest.raises(incast.ResultsError, match=str(tmp_path)):
        incast.open(tmp_path)
    results = incast.run(small.with_(measure={}), seeds=1)
    with pytest.raises(incast.ResultsError, match="measure"):
        len(results.rates)
    with pytest.raises(incast.ResultsError, match="allowed is rows, flows"):
        results.table("flow")


def test_damaged_results_are_named(small, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    results = incast.run(small, out=tmp_path, seeds=1)
    file = sorted(results.folder.glob("*/flows.parquet"))[1]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(Exception, match="flows.parquet"):
        pyarrow.table(results.flows)
    with pytest.raises(incast.ResultsError, match="flows.parquet"):
        results.flows.load()
    (results.folder / "summary.json").write_text("{")
    with pytest.raises(incast.ResultsError, match="summary.json"):
        incast.open(results.folder)


def without_checksums(folder):
    """Makes results as builds wrote them that had no checksums."""
    for path in folder.glob("*/run.json"):
        record = json.loads(path.read_text())
        del record["files"], record["sha256"]
        path.write_text(json.dumps(record))
    summary = json.loads((folder / "summary.json").read_text())
    del summary["runs"], summary["sha256"]
    (folder / "summary.json").write_text(json.dumps(summary | {"schema": 3}))


def test_results_of_another_version_say_so(small, tmp_path):
    results = incast.run(small, out=tmp_path, seeds=1)
    assert results.verified
    (path,) = results.folder.glob("*dctcp*/run.json")
    whole = path.read_text()
    path.write_text(whole.replace(results.version, "0.0.9+0"))
    with pytest.raises(incast.ResultsError, match="SHA-256"):
        incast.open(results.folder)
    path.write_text(whole)
    without_checksums(results.folder)
    assert not incast.open(results.folder).verified
    path.write_text(path.read_text().replace(results.version, "0.0.9+0"))
    with pytest.raises(incast.ResultsError, match="0.0.9"):
        incast.open(results.folder)
    with pytest.raises(incast.RunError, match="holds results of incast 0.0.9"):
        incast.run(small, out=tmp_path, seeds=1, resume=True)


def test_a_large_table_takes_little_more_than_itself(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    numpy = pytest.importorskip("numpy")
    results = incast.run({**SMALL, "scheme": [{"law": "dctcp"}]}, out=tmp_path, seeds=1)
    (file,) = results.folder.glob("*/flows.parquet")
    without_checksums(results.folder)
    few = parquet.read_table(file)
    rows = 10_000_000
    many = few.take(pyarrow.array(numpy.arange(rows) % len(few)))
    parquet.write_table(many, file, row_group_size=1 << 20, compression="zstd")
    del many
    code = f"""
import incast, pyarrow
table = incast.open({str(results.folder)!r}).flows
peak = lambda: next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
held = pyarrow.table(table)
print(held.num_rows, held.nbytes, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    found, size, taken = map(int, done.stdout.split())
    assert found == rows and taken <= 1.3 * size, taken / size
