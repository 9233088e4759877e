"""What all figures share: sizes, colours, and which schemes are told apart."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError as error:
    raise ImportError("incast.plot needs matplotlib: pip install matplotlib") from error

COLUMN = 3.35
"""Width of a column of a two-column paper, in inches."""

# Okabe and Ito, Color Universal Design (2008), without yellow, which is faint on white; the darkest first.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
DASHES = ["-", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (7, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 2))]
GREY = "#B8B8B8"

_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "figure.dpi": 150,
}


@contextmanager
def style() -> Iterator[None]:
    """The settings of figures, for as long as one is made."""
    with matplotlib.rc_context(_SETTINGS):
        yield


class PaperFigure(Figure):
    """A figure that a notebook shows, whatever its backend is."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """As every figure's; text in a PDF stays text, of fonts that publishers take."""
        # What matplotlib reads when a figure is saved, and not when it is made.
        with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()


@dataclass(frozen=True)
class Look:
    """How a scheme is drawn."""

    colour: str
    dashes: Any
    behind: bool

    def line(self, label: str | None) -> dict[str, Any]:
        """Keywords of ``Axes.plot``."""
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "linewidth": 0.7 if self.behind else 1.3,
            "zorder": 1 if self.behind else 2,
            "label": None if self.behind else label,
        }


def looks(schemes: Sequence[str], highlight: Sequence[str] | None, best: Sequence[str]) -> dict[str, Look]:
    """How each scheme is drawn. ``best`` are all schemes, the best first.

    Raises:
        ValueError: more are to be highlighted than can be told apart, or one that is not there.
    """
    if highlight is None:
        few = len(schemes) <= len(COLOURS)
        chosen = [scheme for scheme in schemes if few or scheme in best[: len(COLOURS)]]
    else:
        chosen = [highlight] if isinstance(highlight, str) else list(highlight)
        if unknown := [scheme for scheme in chosen if scheme not in schemes]:
            raise ValueError(f"highlight: found {unknown[0]!r}, allowed are {', '.join(schemes)}")
        if len(chosen) > len(COLOURS):
            raise ValueError(f"highlight: found {len(chosen)} schemes, at most {len(COLOURS)} can be told apart")
    shown = {scheme: Look(COLOURS[place], DASHES[place], False) for place, scheme in enumerate(chosen)}
    return {scheme: shown.get(scheme, Look(GREY, "-", True)) for scheme in schemes}


def figure(panels: int = 1, *, columns: int | None = None, height: float | None = None) -> tuple[Figure, list[Axes]]:
    """A figure with panels that share their axes: one column of a paper wide, or two if there are several columns."""
    columns = columns or (1 if panels == 1 else min(panels, 4))
    rows = -(-panels // columns)
    width = COLUMN if columns == 1 else 2 * COLUMN + 0.3
    size = height or (2.2 if rows == 1 else 1.25 * rows + 0.5)
    made = PaperFigure(figsize=(width, size), layout="constrained")
    grid = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for unused in axes[panels:]:
        unused.set_axis_off()
    return made, axes[:panels]


def panel(ax: Axes | None, *, height: float | None = None) -> tuple[Figure, Axes]:
    """The axes to draw on and their figure: those that are given, or new ones.

    Raises:
        ValueError: they belong to no figure.
    """
    if ax is None:
        made, (axis,) = figure(height=height)
        return made, axis
    if (of := ax.get_figure(root=True)) is None:
        raise ValueError("ax: it belongs to no figure")
    return of, ax


def label(made: Figure, axes: Sequence[Axes], x: str, y: str) -> None:
    """Names the axes: of the figure, if there are several panels."""
    if len(axes) > 1:
        made.supxlabel(x, fontsize=8)
        made.supylabel(y, fontsize=8)
    else:
        axes[0].set_xlabel(x)
        axes[0].set_ylabel(y)


def plain(axis: Axis) -> None:
    """A logarithmic axis over less than two decades says 2 and 5, not 2 x 10^0."""
    low, high = axis.get_view_interval()
    if (ratio := high / max(low, 1e-300)) < 100:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]) if ratio < 6 else LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def legend(made: Figure, axes: Sequence[Axes], schemes: dict[str, Look]) -> None:
    """The legend below the figure, and how many schemes are grey."""
    handles, labels = axes[0].get_legend_handles_labels()
    behind = sum(look.behind for look in schemes.values())
    if behind and (line := next((line for line in axes[0].lines if line.get_color() == GREY), None)):
        handles, labels = [*handles, line], [*labels, f"{behind} others"]
    if len(labels) > 1:
        # Inches of a column: the line, and letters of 7 points.
        column = 0.42 + 0.056 * max(map(len, labels))
        columns = max(1, min(len(labels), int(made.get_figwidth() / column)))
        made.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=2.4, columnspacing=1)
