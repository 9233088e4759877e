"""Figures that papers show, of results, by matplotlib (``pip install 'incast[plot]'``).

Each function returns a matplotlib ``Figure``: ``figure.savefig("fct.pdf")``. Defaults fit one column of a two-column paper;
colours are those of Okabe and Ito, which people with any colour vision tell apart, and lines differ in their dashes, too.
With more than seven schemes, those of ``highlight`` (by default the best by the figure's own measure) are coloured and the
others grey, or each has a panel of its own (``panels=True``).

Flows that did not finish count: a distribution that does not reach 1 has them above its end.
"""

# First: it says what to install where there is no matplotlib.
from . import _style  # noqa: F401  # isort: skip
from .axes import bars, metric, metric_map
from .distributions import boxes, fct_cdf, slowdown_by_size
from .published import published
from .series import heat_map, jain, queue, rate, window

__all__ = [
    "bars",
    "boxes",
    "fct_cdf",
    "heat_map",
    "jain",
    "metric",
    "metric_map",
    "published",
    "queue",
    "rate",
    "slowdown_by_size",
    "window",
]
