"""Distributions of completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._results import Results
from . import _data
from ._style import figure, label, legend, looks, panel, plain, style


def _best(schemes: Sequence[str], tails: Mapping[str, float]) -> list[str]:
    return sorted(schemes, key=lambda scheme: tails.get(scheme, np.inf))


def fct_cdf(
    results: Results,
    *,
    of: str = "fct",
    class_: str = "all",
    point: Mapping[str, Any] | None = None,
    complement: bool = False,
    highlight: Sequence[str] | None = None,
    panels: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Distribution of flow completion times or slowdowns, a line for each scheme.

    Args:
        results: what to draw.
        of: ``"fct"``, completion times in microseconds, or ``"slowdown"``.
        class_: class of flows, or a row of ``[measure] sizes``.
        point: grid point. Default: the first.
        complement: the part of flows that takes longer, on a logarithmic axis, which shows the tail.
        highlight: schemes in colour. Default: all, or the seven with the least 99th percentile.
        panels: a panel for each scheme, the others grey behind it.
        ax: where to draw, without a legend. Default: a new figure with one.

    Raises:
        ValueError: both ``panels`` and ``ax`` are given.
    """
    if of not in ("fct", "slowdown"):
        raise ValueError(f"of: found {of!r}, allowed are fct and slowdown")
    if panels and ax is not None:
        raise ValueError("ax: found one, allowed is none with panels")
    data = _data.flows(results, class_, point)
    values = data.fct if of == "fct" else data.slowdown
    known = ~np.isnan(values)
    times = {scheme: np.sort(values[known & data.scheme.are(scheme)]) for scheme in results.schemes}
    times = {scheme: its for scheme, its in times.items() if len(its)}
    schemes = results.at(point)[0].schemes
    best = _best(schemes, {scheme: its[int(0.99 * (len(its) - 1))] for scheme, its in times.items()})
    its_looks = looks(schemes, highlight, best)
    with style():
        if panels:
            made, axes = figure(len(times))
        else:
            made, axis = panel(ax)
            axes = [axis]
        for alone, axis in zip(times if panels else [None], axes, strict=False):
            for scheme, its in times.items():
                part = np.arange(1, len(its) + 1) / len(its)
                its_look = looks(schemes, [alone], best)[scheme] if alone else its_looks[scheme]
                finite = np.isfinite(its)
                drawn = 1 - part + 1 / len(its) if complement else part
                axis.step(its[finite], drawn[finite], where="pre" if complement else "post", **its_look.line(scheme))
            if alone:
                axis.set_title(alone)
            elif shown := _data.shown(results, point):
                axis.set_title("\n".join(shown), fontsize=7)
            axis.set_xscale("log")
            if complement:
                axis.set_yscale("log")
            plain(axis.xaxis)
        what = "flow completion time (µs)" if of == "fct" else "slowdown"
        label(made, axes, what, ("part that takes longer" if of == "fct" else "part above") if complement else "part of flows")
        if not panels and ax is None:
            legend(made, axes, its_looks)
    return made


def slowdown_by_size(
    results: Results,
    *,
    percentile: float = 99,
    class_: str = "all",
    point: Mapping[str, Any] | None = None,
    bins: int = 10,
    highlight: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Slowdown against flow size: completion time over that of the flow alone in an idle fabric.

    Sizes are binned so that each bin has as many flows, as in the figures of Homa and HPCC; a tick is the largest size of
    its bin. A bin in which too many flows did not finish to know its percentile has no point. There are no more bins than
    leave about one flow of each bin above the percentile, of 100 flows for the 99th.

    Args:
        results: what to draw.
        percentile: of the slowdowns of a bin.
        class_: class of flows, or a row of ``[measure] sizes``.
        point: grid point. Default: the first.
        bins: how many there are at most.
        highlight: schemes in colour. Default: all, or the seven with the least percentile over all sizes.
        ax: where to draw, without a legend. Default: a new figure with one.
    """
    if not 0 < percentile <= 100:
        raise ValueError(f"percentile: found {percentile}, allowed is above 0 to 100")
    data = _data.flows(results, class_, point)
    known = ~np.isnan(data.slowdown)
    size, slowdown = data.size[known], data.slowdown[known]
    fewest = min((int(data.scheme.are(scheme)[known].sum()) for scheme in results.at(point)[0].schemes), default=0)
    # Of 100%, the largest, one flow is enough.
    bins = max(1, min(bins, int(fewest * (100 - percentile) / 100 + 1e-9) or 1)) if percentile < 100 else bins
    edges = np.unique(np.quantile(size, np.linspace(0, 1, bins + 1), method="inverted_cdf")) if len(size) else []
    uppers = edges[1:] if len(edges) > 1 else edges
    of = np.searchsorted(uppers, size)
    # An order statistic, never between two: one of them may be infinite.
    tail = lambda values: np.quantile(values, percentile / 100, method="inverted_cdf") if len(values) else np.nan  # noqa: E731
    names = results.at(point)[0].schemes
    schemes = {scheme: data.scheme.are(scheme)[known] for scheme in names}
    best = _best(names, {scheme: tail(slowdown[rows]) for scheme, rows in schemes.items()})
    its_looks = looks(names, highlight, best)
    with style():
        made, axis = panel(ax)
        for scheme, rows in schemes.items():
            tails = np.array([tail(slowdown[rows & (of == place)]) for place in range(len(uppers))])
            tails[np.isinf(tails)] = np.nan
            axis.plot(range(len(uppers)), tails, marker=".", markersize=4, **its_looks[scheme].line(scheme))
        axis.set_xticks(range(len(uppers)), [_bytes(upper) for upper in uppers], rotation=45, ha="right")
        axis.set_yscale("log")
        axis.set_xlabel("flow size up to")
        axis.set_ylabel(f"slowdown (p{percentile:g})")
        if shown := _data.shown(results, point):
            axis.set_title("\n".join(shown), fontsize=7)
        plain(axis.yaxis)
        if ax is None:
            legend(made, [axis], its_looks)
    return made


def boxes(
    results: Results,
    *,
    of: str = "slowdown",
    class_: str = "all",
    point: Mapping[str, Any] | None = None,
    highlight: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A box for each scheme: the median and the quartiles of its flows, with whiskers to the 1st and 99th percentile.

    Flows that did not finish count as longer than all others: what of a box lies among them is left out, and a title says so.

    Args:
        results: what to draw.
        of: ``"slowdown"``, or ``"fct"``, completion times in microseconds.
        class_: class of flows, or a row of ``[measure] sizes``.
        point: grid point. Default: the first.
        highlight: schemes in colour. Default: all, or the seven with the least 99th percentile.
        ax: where to draw. Default: a new figure.
    """
    if of not in ("slowdown", "fct"):
        raise ValueError(f"of: found {of!r}, allowed are slowdown and fct")
    data = _data.flows(results, class_, point)
    names = results.at(point)[0].schemes
    values = data.slowdown if of == "slowdown" else data.fct
    known = ~np.isnan(values)
    parts = (0.01, 0.25, 0.5, 0.75, 0.99)
    found = {}
    for scheme in names:
        its = values[known & data.scheme.are(scheme)]
        if len(its):
            # Order statistics: one of two neighbours may be infinite.
            found[scheme] = np.quantile(its, parts, method="inverted_cdf")
    best = _best(names, {scheme: numbers[-1] for scheme, numbers in found.items()})
    its_looks = looks(names, highlight, best)
    with style():
        made, axis = panel(ax)
        open_ended = False
        for place, (scheme, numbers) in enumerate(found.items()):
            its_look = its_looks[scheme]
            open_ended |= bool(np.isinf(numbers).any())
            low, first, median, third, high = numbers
            ends = [end for end in (low, high) if np.isfinite(end)]
            if len(ends) == 2:
                axis.plot([place, place], ends, color=its_look.colour, linewidth=0.8)
            if np.isfinite(third):
                axis.bar(place, third - first, bottom=first, width=0.6, color="none", edgecolor=its_look.colour)
            if np.isfinite(median):
                axis.plot([place - 0.3, place + 0.3], [median, median], color=its_look.colour, linewidth=1.2)
        axis.set_xticks(range(len(found)), list(found), rotation=45, ha="right")
        axis.set_yscale("log")
        plain(axis.yaxis)
        axis.set_ylabel("slowdown" if of == "slowdown" else "flow completion time (µs)")
        title = _data.shown(results, point)
        if open_ended:
            title.append("what is missing: flows did not finish")
        if title:
            axis.set_title("\n".join(title), fontsize=7)
    return made


def _bytes(count: float) -> str:
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count:.0f} B"
