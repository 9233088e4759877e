"""Columns of tables as NumPy arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._results import Results, Table

Array = Any


def number(table: Table, name: str) -> Array:
    """A column of numbers as float64: NaN where there is none."""
    kind, values, valid, _ = table._inner.numpy(name)
    numbers = np.frombuffer(values, dtype=kind if kind == "?" else f"<{kind}").astype(float)
    if valid is not None:
        numbers[np.frombuffer(valid, dtype="u1") == 0] = np.nan
    return numbers


def whole(table: Table, name: str) -> Array:
    """A column of whole numbers that are all there, such as ids, which a float64 would round."""
    kind, values, _, _ = table._inner.numpy(name)
    return np.frombuffer(values, dtype=f"<{kind}")


@dataclass(frozen=True)
class Texts:
    """A column of texts."""

    places: Array
    distinct: list[str]

    def are(self, text: str) -> Array:
        """Which rows have this text."""
        if text not in self.distinct:
            return np.zeros(len(self.places), dtype=bool)
        return self.places == self.distinct.index(text)


def texts(table: Table, name: str) -> Texts:
    """A column of texts."""
    _, places, _, distinct = table._inner.numpy(name)
    return Texts(np.frombuffer(places, dtype="<i4"), distinct)


def at_point(table: Table, point: Mapping[str, Any]) -> Array:
    """Which rows are of a grid point of these results."""
    rows = np.ones(len(table), dtype=bool)
    for axis, value in point.items():
        column = f"grid.{axis}"
        if table.types[column] == "Utf8":
            rows &= texts(table, column).are(_text(value))
        else:
            rows &= number(table, column) == value
    return rows


def shown(results: Results, point: Mapping[str, Any] | None) -> list[str]:
    """The grid point as titles have it: its values of the axes that have several."""
    wanted = {**results.points[0], **results._by_axis(point)}
    return [f"{axis} {value}" for axis, value in wanted.items() if len({_text(one[axis]) for one in results.points}) > 1]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Flows:
    """Counted flows of a grid point and a class."""

    scheme: Texts
    size: Array
    fct: Array
    """In microseconds; infinite if the flow did not finish."""
    slowdown: Array


def _range(results: Results, wanted: str) -> tuple[str, float, float]:
    """Of a class, or of a row of ``[measure] sizes``: its flows' class, and the bytes that they are above and at most.

    Raises:
        ValueError: there is neither.
    """
    known = {row["class"] for row in results.rows}
    ranges = {name: (name, -np.inf, np.inf) for name in results.classes}
    for sizes in results._facts["sizes"]:
        over = -np.inf if sizes["over"] is None else sizes["over"]
        upto = np.inf if sizes["upto"] is None else sizes["upto"]
        # Where several classes have such flows, each has a row, with the name of the class in front.
        names = {f"{name} {sizes['name']}": name for name in results.classes}
        rows = {**names, sizes["name"]: sizes["class"] or "all"}
        ranges |= {row: (name, over, upto) for row, name in rows.items() if row in known}
    if wanted not in ranges:
        raise ValueError(f"class_: found {wanted!r}, allowed are {', '.join(ranges)}")
    return ranges[wanted]


def flows(results: Results, class_: str, point: Mapping[str, Any] | None) -> Flows:
    """The counted flows of all seeds.

    Raises:
        ValueError: there is no such class or grid point, or no flow.
    """
    results, point = results.at(point)
    name, over, upto = _range(results, class_)
    table = results.flows
    start = number(table, "start_ps")
    counted = (start >= results._facts["counted_from_ps"]) & (start < results._facts["counted_until_ps"])
    rows = counted & at_point(table, point)
    if name != "all":
        rows &= texts(table, "class").are(name)
    size = number(table, "size_bytes")
    rows &= (size > over) & (size <= upto)
    if not rows.any():
        raise ValueError(f"no flow of class {class_} counts at {point or 'the only point'}")
    scheme = texts(table, "scheme")
    fct = number(table, "fct_delivered_ps")[rows] / 1e6
    slowdown = number(table, "slowdown")[rows]
    unfinished = np.isnan(fct)
    fct[unfinished] = slowdown[unfinished] = np.inf
    return Flows(Texts(scheme.places[rows], scheme.distinct), size[rows], fct, slowdown)
