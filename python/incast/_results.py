"""Results: what runs leave behind."""

from __future__ import annotations

import array
import html
import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _incast
from ._errors import ResultsError

if TYPE_CHECKING:
    import pandas
    import polars

# Kinds of `_incast.Table.numpy` in the module `array`.
_CODES = {"u4": "I", "u8": "Q", "f8": "d", "str": "i"}

TABLES = ("flows", "requests", "ports", "rates", "events")


class Table:
    """A table of all runs of a results folder, read when somebody asks, batch by batch.

    It is an Arrow stream by the PyCapsule interface (``__arrow_c_stream__``): ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)`` and DuckDB take it as it is, and share its buffers.
    Its first columns are ``scheme``, ``seed`` and ``grid.<axis>``, the others are those of the run's Parquet file
    (`the columns <https://github.com/incast/incast/blob/main/docs/results.md>`_). Times are in picoseconds.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: _incast.Table):
        self._inner = inner

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._inner.columns

    @property
    def types(self) -> dict[str, str]:
        """The Arrow type of each column."""
        return dict(zip(self._inner.columns, self._inner.types, strict=True))

    def __len__(self) -> int:
        """Number of rows. Of files, what they state."""
        return len(self._inner)

    def select(self, *columns: str) -> Table:
        """The table of these columns alone, in this order; the others are not read.

        Raises:
            KeyError: there is no such column.
        """
        return Table(self._inner.select(list(columns)))

    def load(self) -> Table:
        """The table in memory, read once: whoever takes it shares one set of buffers."""
        return Table(self._inner.load())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C stream. See the class."""
        return self._inner.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Arrow's C schema."""
        return self._inner.__arrow_c_schema__()

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars frame."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas frame. Needs no pyarrow.

        Whole numbers that may be missing are of pandas' ``UInt64``; real numbers are NaN where they are missing; texts
        are objects.
        """
        import pandas

        return pandas.DataFrame({name: self._pandas_column(name) for name in self.columns})

    def _pandas_column(self, name: str) -> Any:
        import numpy
        import pandas

        kind, values, valid, texts = self._inner.numpy(name)
        if kind == "str":
            places = numpy.frombuffer(values, dtype="<i4")
            return numpy.array([*texts, None], dtype=object)[places]
        # Of its own memory: that of `bytes` is read-only.
        numbers = numpy.frombuffer(values, dtype=kind if kind == "?" else f"<{kind}").copy()
        if valid is None:
            return numbers
        missing = numpy.frombuffer(valid, dtype="?") == False  # noqa: E712
        if kind == "f8":
            numbers[missing] = numpy.nan
            return numbers
        make = pandas.arrays.BooleanArray if kind == "?" else pandas.arrays.IntegerArray
        return make(numbers, missing)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts, where a missing value is ``None``. For small tables."""
        columns = []
        for name in self.columns:
            kind, values, valid, texts = self._inner.numpy(name)
            numbers = array.array(_CODES.get(kind, "B"), values).tolist()
            cells = [*texts, None]
            column = [cells[place] for place in numbers] if kind == "str" else numbers
            if kind == "?":
                column = [bool(it) for it in column]
            columns.append([it if ok else None for it, ok in zip(column, valid, strict=True)] if valid else column)
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        return f"<incast.Table: {len(self)} rows of {', '.join(self.columns)}>"


class Results:
    """The results of a scenario: a folder that ``incast run`` or ``incast.run`` wrote.

    Nothing but the summary is read before it is asked for.
    """

    def __init__(self, folder: str | os.PathLike[str], *, _keep: object | None = None):
        self.folder = Path(folder).absolute()
        """Where the results are."""
        # Whatever has to live as long as the results: a temporary folder.
        self._keep = _keep

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return json.loads(_incast.read(self.folder))

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._facts["name"]

    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario as run, with effective values."""
        return self._facts["scenario"]

    @property
    def scenario_hash(self) -> str:
        """Hash of the scenario."""
        return self._facts["scenario_hash"]

    @property
    def version(self) -> str:
        """Version of incast that made them."""
        return self._facts["version"]

    @property
    def verified(self) -> bool:
        """Every file that is read is what the runs wrote, by its checksum. False of results of builds that wrote none."""
        return self._facts["verified"]

    @property
    def schemes(self) -> list[str]:
        """Names of what is compared, in their order."""
        return self._facts["schemes"]

    @property
    def classes(self) -> list[str]:
        """Classes of flows: ``all``, then each if there are several."""
        return self._facts["classes"]

    @property
    def points(self) -> list[dict[str, Any]]:
        """Grid points in their order; one, empty, without a grid."""
        return self._facts["points"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of the summary, as ``summary.json`` has them: one for each grid point, scheme, class and seed, and one that
        pools the seeds (``seed`` is ``"all"``)."""
        return self._facts["rows"]

    @property
    def verdict(self) -> str:
        """Which scheme is best in what, and which cannot be told from it."""
        return self._facts["verdict"]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Which values of settings are best for each scheme, and which cannot be told from them: one entry for each combination
        of conditions (axes of workloads, topology and times), with ``subjects``, one for each number that is judged. Of each
        scheme there are the ``point`` at which it is best, and ``axes``: the ``best`` value, the two ends of the ``range``
        around it in which nothing is told apart, values that are ``as_good``, ``open`` (cannot be told) or ``apart``, with the part by which they differ and
        its 95% interval. Empty without a grid over settings, and with fewer than three seeds."""
        return self._facts["settings"]

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Published numbers beside what was measured, with its confidence interval and the status."""
        return self._facts["claims"]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Each finished run: scheme, seed, grid, digest, cost, folder."""
        return self._facts["runs"]

    @property
    def failed(self) -> dict[str, str]:
        """Runs that failed: their folders, and why."""
        return dict(self._facts["failed"])

    @cached_property
    def summary(self) -> Table:
        """The rows of the summary as a table: a column for each metric, and ``<metric>.low`` and ``.high``, the ends of its
        95% confidence interval, in rows that pool seeds."""
        return self.table("rows")

    @cached_property
    def flows(self) -> Table:
        """One row for each flow."""
        return self.table("flows")

    @cached_property
    def requests(self) -> Table:
        """One row for each request: flows that belong together."""
        return self.table("requests")

    @cached_property
    def ports(self) -> Table:
        """Samples of ports. Asked for by ``measure.ports``."""
        return self.table("ports")

    @cached_property
    def rates(self) -> Table:
        """Samples of flows' rates and windows. Asked for by ``measure.rates``."""
        return self.table("rates")

    @cached_property
    def events(self) -> Table:
        """Drops, marks, pauses and the like. Asked for by ``measure.traces``."""
        return self.table("events")

    def table(self, name: str) -> Table:
        """The table of this name.

        Raises:
            ResultsError: the results do not have it, or are damaged.
        """
        if name not in (*TABLES, "rows"):
            raise ResultsError(f"found {name!r}, allowed is rows, {', '.join(TABLES)}")
        return Table(_incast.table(self._folders(), name))

    def _folders(self) -> list[tuple[os.PathLike[str], str]]:
        return [(self.folder, "{}")]

    def to_pandas(self) -> pandas.DataFrame:
        """The summary as a pandas frame."""
        return self.summary.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The summary as a polars frame."""
        return self.summary.to_polars()

    def at(self, point: Mapping[str, Any] | None) -> tuple[Results, dict[str, Any]]:
        """The results that hold a grid point, and the point in their own grid. ``None`` is the first, and so is the value of
        an axis that is not given. An axis is named by its path, or its last part where that names one axis.

        Raises:
            ValueError: there is no such grid point or axis.
        """
        wanted = {**self.points[0], **self._by_axis(point)}
        if wanted not in self.points:
            raise ValueError(f"point: found {dict(point or {})}, allowed are {', '.join(map(str, self.points))}")
        return self, wanted

    def _axis(self, name: str, what: str) -> str:
        """The path of an axis of the grid, by it or by its last part."""
        axes = list(self.points[0])
        found = [axis for axis in axes if axis == name] or [axis for axis in axes if axis.endswith(f".{name}")]
        if len(found) != 1:
            allowed = f"allowed is one of {', '.join(axes)}" if axes else "and there is no grid"
            raise ValueError(f"{what}: found {name!r}, {allowed}")
        return found[0]

    def _by_axis(self, point: Mapping[str, Any] | None) -> dict[str, Any]:
        """The point with the paths of its axes."""
        return {self._axis(name, "point"): value for name, value in (point or {}).items()}

    def __reduce__(self) -> tuple[Any, ...]:
        if self._keep is not None:
            raise TypeError("results in a temporary folder go with this object; run with out= to hand them on")
        return Results, (self.folder,)

    def __repr__(self) -> str:
        return f"<incast.Results {self.name}: {len(self.runs)} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        rows = [row for row in self.rows if row["seed"] == "all"]
        axes = list(self.points[0])
        heads = [*axes, "scheme", "class", *(head for head, _, _ in _SHOWN)]
        cells = [
            [
                *(row["grid"][axis] for axis in axes),
                row["scheme"],
                row["class"],
                *(_number(row.get(group), member) for _, group, member in _SHOWN),
            ]
            for row in rows
        ]
        head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>" for line in cells
        )
        verdict = f"<pre>{html.escape(self.verdict)}</pre>" if self.verdict else ""
        return f"<h4>{html.escape(self.name)}</h4>{verdict}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# Columns of the table in a notebook: heading, group and member in a row.
_SHOWN = [
    ("flows", "flows", None),
    ("completed", "completed", None),
    ("FCT p50 (us)", "fct_us", "p50"),
    ("FCT p99 (us)", "fct_us", "p99"),
    ("slowdown p50", "slowdown", "p50"),
    ("slowdown p99", "slowdown", "p99"),
    ("drops", "drops", None),
]


def _number(value: Any, member: str | None) -> str:
    bound = value.get(f"{member}_at_least") if isinstance(value, dict) else None
    value = value.get(member) if isinstance(value, dict) else value
    if value is None:
        return "-" if bound is None else f"> {bound:.4g}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"
