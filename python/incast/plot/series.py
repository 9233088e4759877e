"""What is sampled over time: queues, rates, windows, fairness. ``measure.ports`` and ``measure.rates`` ask for samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._results import Results, Table
from . import _data
from ._style import COLOURS, DASHES, figure, label, legend, looks, panel, style


def _seed(results: Results, seed: int | None) -> int:
    seeds = sorted({run["seed"] for run in results.runs})
    if seed is not None and seed not in seeds:
        raise ValueError(f"seed: found {seed}, allowed are {', '.join(map(str, seeds))}")
    return seeds[0] if seed is None else seed


def _rows(results: Results, table: Table, point: Mapping[str, Any], seed: int | None) -> Any:
    seed = _seed(results, seed)
    rows = _data.at_point(table, point) & (_data.whole(table, "seed") == seed)
    if not rows.any():
        raise ValueError(f"there are no samples of seed {seed} at {point or 'the only point'}")
    return rows


def queue(
    results: Results,
    *,
    port: str | None = None,
    point: Mapping[str, Any] | None = None,
    seed: int | None = None,
    highlight: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Bytes in a port's queues over time, a line for each scheme.

    Args:
        results: what to draw; its scenario asks for ``measure.ports``.
        port: the port. Default: the one with the longest queue in any run shown.
        point: grid point. Default: the first.
        seed: the run shown. Default: the first seed.
        highlight: schemes in colour. Default: all, or the seven with the least mean.
        ax: where to draw, without a legend. Default: a new figure with one.
    """
    title = _data.shown(results, point)
    results, its_point = results.at(point)
    table = results.ports
    rows = _rows(results, table, its_point, seed)
    ports, scheme = _data.texts(table, "port"), _data.texts(table, "scheme")
    time, held = _data.number(table, "time_ps") / 1e9, _data.number(table, "queue_bytes")
    if port is not None and port not in ports.distinct:
        raise ValueError(f"port: found {port!r}, allowed are {', '.join(ports.distinct)}")
    shown = port or ports.distinct[ports.places[rows][np.argmax(held[rows])]]
    rows &= ports.are(shown)
    series = {}
    for name in results.schemes:
        its = rows & scheme.are(name)
        times, places = np.unique(time[its], return_inverse=True)
        series[name] = times, np.bincount(places, held[its]) / 1e3  # all priorities together
    means = {name: values.mean() if len(values) else np.inf for name, (_, values) in series.items()}
    its_looks = looks(results.schemes, highlight, sorted(means, key=lambda name: means[name]))
    with style():
        made, axis = panel(ax)
        for name, (times, values) in series.items():
            axis.plot(times, values, **its_looks[name].line(name))
        axis.set_xlabel("time (ms)")
        # The port's name may be longer than the axis is high.
        axis.set_title("\n".join([shown, *title]))
        axis.set_ylabel("queue (KB)")
        if ax is None:
            legend(made, [axis], its_looks)
    return made


def _by_flow(results: Results, column: str, scale: float, what: str, point, seed, most: int, ax, logarithmic=False) -> Figure:
    results, its_point = results.at(point)
    table = results.rates
    rows = _rows(results, table, its_point, seed)
    scheme, flow = _data.texts(table, "scheme"), _data.whole(table, "flow")
    time, value = _data.number(table, "time_ps") / 1e9, _data.number(table, column) / scale
    with style():
        made, axes = _panels(results, ax)
        for name, axis in zip(results.schemes, axes, strict=True):
            its = rows & scheme.are(name)
            flows = np.unique(flow[its])
            for place, one in enumerate(flows[:most]):
                of = its & (flow == one)
                colour = COLOURS[place % len(COLOURS)]
                axis.plot(time[of], value[of], color=colour, linestyle=DASHES[place // len(COLOURS) % len(DASHES)], linewidth=0.8)
            rest = f", {most} of {len(flows)} flows" if len(flows) > most else ""
            axis.set_title(f"{name}{rest}")
        # Panels share their axes, and a limit that is set before they are full would be that of the first.
        if logarithmic:
            axes[0].set_yscale("log")
        else:
            axes[0].set_ylim(bottom=0)
        if ax is None:
            label(made, axes, "time (ms)", what)
        else:
            for axis in axes:
                axis.set_xlabel("time (ms)")
                axis.set_ylabel(what)
    return made


def _panels(results: Results, ax: Axes | Sequence[Axes] | None) -> tuple[Figure, list[Axes]]:
    """Axes for each scheme: new ones, or those that are given."""
    if ax is None:
        return figure(len(results.schemes))
    given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != len(results.schemes):
        raise ValueError(f"ax: found {len(given)}, allowed is one for each of {len(results.schemes)} schemes")
    return panel(given[0])[0], given


def rate(
    results: Results,
    *,
    assigned: bool = False,
    point: Mapping[str, Any] | None = None,
    seed: int | None = None,
    most: int = 21,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Rates of flows over time, a panel for each scheme.

    Args:
        results: what to draw; its scenario asks for ``measure.rates``.
        assigned: what the law allows, instead of what was sent.
        point: grid point. Default: the first.
        seed: the run shown. Default: the first seed.
        most: so many flows are drawn, those with the least ids.
        ax: where to draw, one for each scheme. Default: a new figure.
    """
    column = "assigned_bps" if assigned else "measured_bps"
    return _by_flow(results, column, 1e9, "rate (Gbit/s)", point, seed, most, ax)


def window(
    results: Results,
    *,
    point: Mapping[str, Any] | None = None,
    seed: int | None = None,
    most: int = 21,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Windows of flows over time, a panel for each scheme. Arguments as for ``rate``."""
    return _by_flow(results, "window_bytes", 1e3, "window (KB)", point, seed, most, ax, logarithmic=True)


def jain(
    results: Results,
    *,
    point: Mapping[str, Any] | None = None,
    seed: int | None = None,
    highlight: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Jain's fairness index of the rates measured at each sample: (Σ x)² / (n Σ x²). 1 is fair, 1/n is one flow alone.

    Args:
        results: what to draw; its scenario asks for ``measure.rates``.
        point: grid point. Default: the first.
        seed: the run shown. Default: the first seed.
        highlight: schemes in colour. Default: all, or the seven with the highest mean.
        ax: where to draw, without a legend. Default: a new figure with one.
    """
    results, its_point = results.at(point)
    table = results.rates
    rows = _rows(results, table, its_point, seed)
    scheme = _data.texts(table, "scheme")
    time, value = _data.number(table, "time_ps") / 1e9, _data.number(table, "measured_bps")
    series = {}
    for name in results.schemes:
        its = rows & scheme.are(name)
        times, places = np.unique(time[its], return_inverse=True)
        total, square, count = (np.bincount(places, weights) for weights in (value[its], value[its] ** 2, None))
        some = square > 0
        series[name] = times[some], total[some] ** 2 / (count[some] * square[some])
    means = {name: values.mean() if len(values) else 0.0 for name, (_, values) in series.items()}
    its_looks = looks(results.schemes, highlight, sorted(means, key=lambda name: -means[name]))
    with style():
        made, axis = panel(ax)
        for name, (times, values) in series.items():
            axis.plot(times, values, **its_looks[name].line(name))
        axis.set_ylim(0, 1.05)
        axis.set_xlabel("time (ms)")
        axis.set_ylabel("Jain's index")
        if ax is None:
            legend(made, [axis], its_looks)
    return made


def heat_map(
    results: Results,
    *,
    scheme: str | None = None,
    of: str = "queue",
    point: Mapping[str, Any] | None = None,
    seed: int | None = None,
    most: int = 60,
    ax: Axes | None = None,
) -> Figure:
    """The fabric over time: a row for each port, in the order of their names, a column for each sample.

    Args:
        results: what to draw; its scenario asks for ``measure.ports``.
        scheme: whose run. Default: the first.
        of: ``"queue"``, bytes that wait; or ``"rate"``, bytes sent since the sample before.
        point: grid point. Default: the first.
        seed: the run shown. Default: the first seed.
        most: so many ports are drawn, those with the largest values.
        ax: where to draw; the bar of colours takes a part of it. Default: a new figure.
    """
    results, its_point = results.at(point)
    scheme = scheme or results.schemes[0]
    if scheme not in results.schemes:
        raise ValueError(f"scheme: found {scheme!r}, allowed are {', '.join(results.schemes)}")
    if of not in ("queue", "rate"):
        raise ValueError(f"of: found {of!r}, allowed are queue and rate")
    table = results.ports
    rows = _rows(results, table, its_point, seed) & _data.texts(table, "scheme").are(scheme)
    ports = _data.texts(table, "port")
    times, columns = np.unique(_data.number(table, "time_ps")[rows] / 1e9, return_inverse=True)
    values = _data.number(table, "queue_bytes" if of == "queue" else "tx_bytes")[rows]
    shown = np.zeros((len(ports.distinct), len(times)))
    np.add.at(shown, (ports.places[rows], columns), values)
    if of == "rate" and len(times) > 1:
        # Counters since the start: bits over the time between two samples, in Gbit/s.
        shown = np.diff(shown, axis=1) * 8 / (np.diff(times) * 1e6)
        times = times[1:]
    else:
        shown = shown / 1e3
    largest = np.argsort(-shown.max(axis=1, initial=0), kind="stable")[:most]
    order = sorted(largest, key=lambda place: _natural(ports.distinct[place]))
    with style():
        made, axis = panel(ax, height=max(2.2, 0.09 * len(order) + 0.9))
        edges = _edges(times), np.arange(len(order) + 1) - 0.5
        picture = axis.pcolormesh(*edges, shown[order], cmap="cividis", shading="flat", rasterized=True)
        step = max(1, len(order) // 30)
        axis.set_yticks(range(0, len(order), step), [ports.distinct[place] for place in order[::step]])
        axis.tick_params(axis="y", labelsize=5)
        axis.grid(False)
        axis.set_xlabel("time (ms)")
        axis.set_title(f"{scheme}{f', {most} of {len(ports.distinct)} ports' if len(ports.distinct) > most else ''}")
        made.colorbar(picture, ax=axis, label="queue (KB)" if of == "queue" else "rate (Gbit/s)")
    return made


def _edges(centres: Any) -> Any:
    """Edges of cells around these centres, which rise; of one centre a cell of width 1."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    between = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - between[0]], between, [2 * centres[-1] - between[-1]]])


def _natural(name: str) -> list:
    """``s10`` after ``s9``."""
    import re

    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name)]
