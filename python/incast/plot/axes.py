"""A number over axes of the grid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from .._results import Results
from ._style import figure, label, legend, looks, panel, plain, style

# Words for metrics on an axis, by what stands before the dot; and for what stands behind it.
_WORDS = {
    "fct_us": "flow completion time (µs)",
    "rct_us": "request completion time (µs)",
    "slowdown": "slowdown",
    "goodput_gbps": "goodput (Gbit/s)",
    "long_flow_gbps": "rate of long flows (Gbit/s)",
    "max_queue_bytes": "largest queue (B)",
    "retransmitted_bytes": "retransmitted (B)",
    "jain": "Jain's index",
}

# Of these more is better.
_MORE = ("goodput_gbps", "long_flow_gbps", "assigned_gbps", "measured_gbps", "jain", "completed")


def metric(
    results: Results,
    metric: str,
    over: str,
    *,
    class_: str = "all",
    point: Mapping[str, Any] | None = None,
    highlight: Sequence[str] | None = None,
    logarithmic: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """A metric against the values of one axis of the grid, a line for each scheme, with 95% confidence intervals.

    An interval is over the seeds, as in the summary; with one seed there is none. Where a value is unknown, as flows did not
    finish, there is no point. Numbers lie at their places, whatever their unit; other values, and those of different units,
    at equal distances.

    Args:
        results: what to draw, also a sweep.
        metric: as in claims and ``incast table``: ``"slowdown.p99"``.
        over: path of the axis, or its last part where that names one axis: ``"workload.web.load"`` or ``"load"``.
        class_: class of flows.
        point: values of the other axes of the grid; each that has several is to be given.
        highlight: schemes in colour. Default: all, or the seven with the best mean over the axis.
        logarithmic: both scales, of a value axis as far as its values are numbers above 0.
        ax: where to draw. Default: a new figure with a legend.

    Raises:
        ValueError: there is no such metric, axis, class or point, or more than one.
    """
    axis = results._axis(over, "over")
    fixed = _fixed(results, [axis], point)
    rows = _rows(results, class_, fixed)
    values = list({str(row["grid"][axis]): row["grid"][axis] for row in rows}.values())
    places, unit = _places(values)
    where = {str(value): place for value, place in zip(values, places or range(len(values)), strict=True)}
    lines: dict[str, list[tuple[float, float, tuple[float, float] | None]]] = {}
    for scheme in results.schemes:
        own = [(where[str(row["grid"][axis])], _number(row, metric), row) for row in rows if row["scheme"] == scheme]
        lines[scheme] = [
            (place, number, tuple(row["ci95"][metric]) if row["ci95"].get(metric) else None)
            for place, number, row in sorted(own, key=lambda one: one[0])
            if number is not None
        ]
    if not any(lines.values()):
        raise ValueError(f"{metric} of {class_} is unknown at every point: flows did not finish, or it was not measured")
    means = {scheme: sum(y for _, y, _ in line) / len(line) for scheme, line in lines.items() if line}
    its_looks = looks(results.schemes, highlight, _best(means, metric))
    name = _label(metric, class_)
    is_long = len(name) > 28
    with style():
        made, drawn = panel(ax, height=2.6 if is_long else None)
        for scheme, line in lines.items():
            look = its_looks[scheme]
            drawn.plot([x for x, _, _ in line], [y for _, y, _ in line], marker=".", markersize=4, **look.line(scheme))
            known = [(x, interval) for x, _, interval in line if interval]
            if known and not look.behind:
                low, high = zip(*(interval for _, interval in known), strict=True)
                drawn.fill_between([x for x, _ in known], low, high, color=look.colour, alpha=0.15, linewidth=0)
        if places is None:
            drawn.set_xticks(range(len(values)), [str(value) for value in values])
        elif len(values) <= 8 and not logarithmic:
            drawn.set_xticks(places)
        if logarithmic:
            drawn.set_yscale("log")
            plain(drawn.yaxis)
            if places and min(places) > 0:
                drawn.set_xscale("log")
                plain(drawn.xaxis)
        drawn.set_xlabel(f"{axis} ({unit})" if unit else axis)
        # Two lines, where one would be longer than the axis is high.
        drawn.set_ylabel(name.replace(": ", ":\n", 1) if is_long else name, fontsize=7 if is_long else 8)
        if shown := [f"{key} {value}" for key, value in fixed.items() if _varies(results, key)]:
            drawn.set_title("\n".join(shown), fontsize=7)
        if ax is None:
            legend(made, [drawn], its_looks)
    return made


def metric_map(
    results: Results,
    metric: str,
    over: tuple[str, str],
    *,
    class_: str = "all",
    scheme: str | None = None,
    point: Mapping[str, Any] | None = None,
    logarithmic: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """A metric over two axes of the grid: a cell for each pair of values, a panel for each scheme, one scale of colours.

    Cells are of one size, their values in the order of the grid, whatever lies between them. A cell whose value is unknown, as
    flows did not finish, is white. Up to eight values an axis, each cell has its number.

    Args:
        results: what to draw, also a sweep.
        metric: as in claims and ``incast table``: ``"slowdown.p99"``.
        over: paths of the axes, from left to right and upwards, or their last parts: ``("load", "at")``.
        class_: class of flows.
        scheme: only this one. Default: all.
        point: values of the other axes of the grid; each that has several is to be given.
        logarithmic: the scale of colours.
        ax: where to draw one scheme; the bar of colours takes a part of it. Default: a new figure.

    Raises:
        ValueError: there is no such metric, axis, class, scheme or point, or more than one.
    """
    if isinstance(over, str) or len(over) != 2:
        raise ValueError(f"over: found {over!r}, allowed are two axes")
    across, upwards = (results._axis(name, "over") for name in over)
    if across == upwards:
        raise ValueError(f"over: found {across} twice, allowed are two axes")
    fixed = _fixed(results, [across, upwards], point)
    schemes = results.schemes if scheme is None else [scheme]
    if unknown := [name for name in schemes if name not in results.schemes]:
        raise ValueError(f"scheme: found {unknown[0]!r}, allowed are {', '.join(results.schemes)}")
    if ax is not None and len(schemes) > 1:
        raise ValueError(f"ax: found one, and {len(schemes)} schemes: scheme names one of {', '.join(schemes)}")
    rows = _rows(results, class_, fixed)
    columns, lines = (list({str(row["grid"][axis]): row["grid"][axis] for row in rows}) for axis in (across, upwards))
    cells = {name: np.full((len(lines), len(columns)), np.nan) for name in schemes}
    for row in rows:
        if row["scheme"] in cells and (number := _number(row, metric)) is not None:
            cells[row["scheme"]][lines.index(str(row["grid"][upwards])), columns.index(str(row["grid"][across]))] = number
    known = np.concatenate([own[~np.isnan(own)] for own in cells.values()])
    if not known.size:
        raise ValueError(f"{metric} of {class_} is unknown at every point: flows did not finish, or it was not measured")
    scale = (LogNorm if logarithmic and known.min() > 0 else Normalize)(known.min(), known.max())
    # Numbers of cells have to fit.
    are_few = max(len(columns), len(lines)) <= 8 and len(schemes) * len(columns) <= 16
    with style():
        if ax is None:
            made, panels = figure(len(schemes), height=None if len(schemes) > 4 else 2.4)
        else:
            made, panels = panel(ax)[0], [ax]
        for name, drawn in zip(schemes, panels, strict=True):
            drawn.pcolormesh(cells[name], norm=scale, cmap="cividis", edgecolors="white", linewidth=0.5)
            if are_few:
                for (line, column), value in np.ndenumerate(cells[name]):
                    dark = scale(value) < 0.55
                    text = "" if np.isnan(value) else f"{value:.3g}"
                    drawn.text(column + 0.5, line + 0.5, text, ha="center", va="center", fontsize=6, color="w" if dark else "k")
            drawn.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=45, ha="right")
            drawn.set_yticks(np.arange(len(lines)) + 0.5, lines)
            drawn.grid(False)
            shown = [f"{key} {value}" for key, value in fixed.items() if _varies(results, key)]
            drawn.set_title("\n".join([name, *shown]), fontsize=7)
        label(made, panels, across, upwards)
        made.colorbar(ScalarMappable(scale, "cividis"), ax=panels, label=_label(metric, class_).replace(": ", ":\n", 1))
    return made


def bars(
    results: Results,
    metric: str,
    *,
    class_: str = "all",
    point: Mapping[str, Any] | None = None,
    highlight: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A metric at one grid point: a bar for each scheme, with its 95% confidence interval over seeds.

    A scheme whose value is unknown, as flows did not finish, has no bar. An interval beyond a factor of ten is not drawn, and
    a title says so.

    Args:
        results: what to draw.
        metric: as in claims and ``incast table``: ``"slowdown.p99"``.
        class_: class of flows.
        point: values of the axes of the grid; each that has several is to be given.
        highlight: schemes in colour. Default: all, or the seven with the best value.
        ax: where to draw. Default: a new figure.

    Raises:
        ValueError: there is no such metric, class or point, or more than one.
    """
    fixed = _fixed(results, [], point)
    rows = {row["scheme"]: row for row in _rows(results, class_, fixed)}
    values = {scheme: number for scheme, row in rows.items() if (number := _number(row, metric)) is not None}
    if not values:
        raise ValueError(f"{metric} of {class_} is unknown for every scheme: flows did not finish, or it was not measured")
    its_looks = looks(list(rows), highlight, _best(values, metric))
    with style():
        made, axis = panel(ax, height=2.5)
        shown = [f"{key} {value}" for key, value in fixed.items() if _varies(results, key)]
        for place, scheme in enumerate(rows):
            if (value := values.get(scheme)) is None:
                continue
            axis.bar(place, value, width=0.7, color=its_looks[scheme].colour)
            if not (interval := rows[scheme]["ci95"].get(metric)):
                continue
            if interval[0] < value / 10 or interval[1] > value * 10:
                shown.append(f"{scheme}: interval beyond a factor of ten")
            else:
                axis.plot([place, place], interval, color="k", linewidth=0.8)
        axis.set_xticks(range(len(rows)), list(rows), rotation=45, ha="right")
        # Two lines: names below the axis leave it less height.
        axis.set_ylabel(_label(metric, class_).replace(": ", ":\n", 1), fontsize=7)
        if shown:
            axis.set_title("\n".join(shown), fontsize=7)
    return made


def _best(values: Mapping[str, float], metric: str) -> list[str]:
    """Schemes, the best first."""
    return sorted(values, key=lambda scheme: values[scheme], reverse=metric.partition(".")[0] in _MORE)


def _varies(results: Results, axis: str) -> bool:
    return len({str(point[axis]) for point in results.points}) > 1


def _rows(results: Results, class_: str, fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows that pool the seeds, of a class, at these values of axes."""
    pooled = [row for row in results.rows if row["seed"] == "all" and row["class"] == class_]
    if not pooled:
        classes = dict.fromkeys(row["class"] for row in results.rows)
        raise ValueError(f"class_: found {class_!r}, allowed are {', '.join(classes)}")
    return [row for row in pooled if all(row["grid"][key] == value for key, value in fixed.items())]


def _fixed(results: Results, over: Sequence[str], point: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of the other axes."""
    fixed: dict[str, Any] = {}
    given = results._by_axis(point)
    if found := [axis for axis in over if axis in given]:
        raise ValueError(f"point: found {found[0]}, which the figure is over")
    for other in (key for key in results.points[0] if key not in over):
        values = list({str(one[other]): one[other] for one in results.points}.values())
        if other not in given and len(values) > 1:
            raise ValueError(f"point: {other} is missing, allowed are {', '.join(map(str, values))}")
        fixed[other] = given.get(other, values[0])
        if fixed[other] not in values:
            raise ValueError(f"point: {other}: found {fixed[other]!r}, allowed are {', '.join(map(str, values))}")
    return fixed


def _number(row: Mapping[str, Any], metric: str) -> float | None:
    value: Any = row
    for part in metric.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise ValueError(f"metric: found {metric!r}, allowed are those of `incast list metrics`, such as slowdown.p99")
        value = value[part]
    if value is not None and not isinstance(value, (int, float)):
        raise ValueError(f"metric: found {metric!r}, which is no number")
    return value


def _places(values: Sequence[Any]) -> tuple[list[float] | None, str]:
    """The values as numbers of one unit, where they are that."""
    parts = [re.fullmatch(r"([-+0-9.]+(?:e[-+]?\d+)?)\s*([A-Za-z%]*)", str(value)) for value in values]
    if any(isinstance(value, bool) for value in values) or not all(parts):
        return None, ""
    units = {part[2] for part in parts if part}
    if len(units) != 1:
        return None, ""
    return [float(part[1]) for part in parts if part], units.pop()


def _label(metric: str, class_: str) -> str:
    name, _, statistic = metric.partition(".")
    words = {"p50": "median", "p999": "p99.9"}.get(statistic, statistic)
    what = " ".join(part for part in (words, _WORDS.get(name, name.replace("_", " "))) if part)
    return what if class_ == "all" else f"{class_}: {what}"
