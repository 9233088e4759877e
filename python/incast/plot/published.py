"""What was measured, beside what is published."""

from __future__ import annotations

from matplotlib.figure import Figure

from .._results import Results
from ._style import COLOURS, COLUMN, PaperFigure, plain, style

_STATUS = {
    "reproduced": COLOURS[2],
    "same direction": COLOURS[4],
    "not reproduced": COLOURS[1],
    "inconclusive": "#808080",
}


def published(results: Results) -> Figure:
    """Each published number beside what was measured, with its 95% confidence interval, as parts of the published one.

    Bounds and ranges are drawn from their end. Colours are statuses.

    Raises:
        ValueError: the scenario has no published numbers, or none of its runs were made.
    """
    claims = [claim for claim in results.claims if claim["measured"] is not None and claim["published"]]
    if not claims:
        raise ValueError(f"{results.name} has no published numbers that were measured")
    with style():
        made = PaperFigure(figsize=(2 * COLUMN + 0.3, 0.19 * len(claims) + 0.9), layout="constrained")
        axis = made.subplots()
        seen: set[str] = set()
        for place, claim in enumerate(reversed(claims)):
            one, status = claim["published"], claim["status"]
            colour = _STATUS.get(status, "black")
            low, high = claim["interval"] or (claim["measured"], claim["measured"])
            axis.plot([low / one, high / one], [place, place], color=colour, linewidth=1.2)
            label = None if status in seen else status
            axis.plot(claim["measured"] / one, place, "o", color=colour, markersize=3.5, label=label)
            if "published_to" in claim:
                axis.plot([1, claim["published_to"] / one], [place, place], color="black", linewidth=3, alpha=0.25)
            seen.add(status)
        axis.axvline(1, color="black", linewidth=0.8, zorder=0)
        axis.set_xscale("log")
        plain(axis.xaxis)
        axis.set_yticks(range(len(claims)), [_label(claim) for claim in reversed(claims)])
        axis.tick_params(axis="y", labelsize=6)
        axis.set_ylim(-0.7, len(claims) - 0.3)
        axis.set_xlabel("measured / published, with the 95% interval")
        made.legend(loc="outside lower center", ncols=4)
    return made


def _label(claim: dict) -> str:
    grid = "".join(f", {key.rsplit('.', 1)[-1]} {value}" for key, value in claim["grid"].items())
    relation = f"{claim['relation']} " if claim["relation"] else ""
    of = "" if claim["class"] == "all" else f", {claim['class']}"
    return f"{claim['claim']}{of}{grid}: {relation}{claim['published']:g}"
