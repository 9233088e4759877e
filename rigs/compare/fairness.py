# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long flows share a port, on both sides, in Markdown."""

from estimates import ratio
from tables import between, cell

CLASS = "long"


def fairness(points):
    """Lines of points with long flows alone, which begin together and are equally long: Jain's index of their mean rates, and how many
    times longer the last one takes than the first."""
    lines = []
    for point in points:
        if any(set(run["class"]) != {CLASS} for run in point["simulated"]):
            continue
        for side, what in (("real", "kernel"), ("simulated", "simulated")):
            if not point[side]:
                continue
            times = [run["fct"] for run in point[side]]
            spread = [None if None in one else max(one) / min(one) for one in times]
            label = point["label"] if side == "real" or not point["real"] else ""
            lines.append(f"| {label} | {what} | {cell([jain(one) for one in times])} | {between(ratio(spread, [1] * len(spread)))} |")
    if not lines:
        return []
    return ["| scheme | | Jain's index | last over first |", "|---|---|---|---|", *lines]


def jain(times):
    """Of the rates of equally long flows; None if one did not finish."""
    if None in times:
        return None
    rates = [1 / time for time in times]
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
