"""Takes a table with the one library that is installed beside incast: `check.py polars`."""

import importlib.util
import sys

import incast

OTHERS = {"polars", "pyarrow", "pandas", "duckdb"}
library = sys.argv[1]
there = {name for name in OTHERS if importlib.util.find_spec(name)}
assert there == {library}, there

results = incast.run(incast.Scenario("first-light", short=True), seeds=1)
table, rows = results.flows, len(results.flows)
assert rows > 1000
total = sum(row["size_bytes"] for row in table.select("size_bytes").to_pylist())
if library == "polars":
    import polars

    frame = table.to_polars()
    assert len(frame) == rows and frame["size_bytes"].sum() == total
    assert len(polars.DataFrame(results.summary)) == len(results.rows)
elif library == "pyarrow":
    import pyarrow
    import pyarrow.compute

    taken = pyarrow.table(table)
    assert taken.num_rows == rows and pyarrow.compute.sum(taken["size_bytes"]).as_py() == total
    reader = pyarrow.RecordBatchReader.from_stream(table)
    assert sum(batch.num_rows for batch in reader) == rows
elif library == "pandas":
    frame = table.to_pandas()
    assert len(frame) == rows and frame["size_bytes"].sum() == total
    assert frame.groupby("scheme")["slowdown"].median().notna().all()
    assert len(results.to_pandas()) == len(results.rows)
else:
    import duckdb

    flows = table  # found by its name
    assert duckdb.sql("select count(*), sum(size_bytes)::bigint from flows").fetchall() == [(rows, total)]
print(f"{library} takes {rows} rows")
