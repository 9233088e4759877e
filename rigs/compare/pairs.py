# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a scheme `A + B` brings over `A`, on both sides, in Markdown."""

from estimates import percentile, ratio
from tables import cell

PERCENTILES = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]


def pairs(points):
    """A line for each class of each `A + B`: percentiles without and with, and how many times shorter, seed by seed."""
    by_place = {(point["scheme"], point["grid"], point["class"]): point for point in points}
    lines = []
    for (scheme, grid, name), point in by_place.items():
        without = by_place.get((scheme.rpartition(" + ")[0], grid, name))
        if name is None or without is None:
            continue
        requests = name in point["simulated"][0]["rct"]
        label = ", ".join(filter(None, [scheme, grid, f"{name}: requests" if requests else name]))
        for side, what in (("real", "kernel"), ("simulated", "simulated")):
            if not point[side]:
                continue
            cells = []
            for _, share in PERCENTILES:
                before, after = ([percentile(run["rct"][name] if requests else run["fct"], share) for run in one[side]]
                                 for one in (without, point))
                cells.append(f"{milliseconds(before)}, {milliseconds(after)}: {times(ratio(before, after))}")
            lines.append(f"| {label if side == 'real' or not point['real'] else ''} | {what} | " + " | ".join(cells) + " |")
    if not lines:
        return []
    titles = [f"{title} (ms): without, with, times shorter" for title, _ in PERCENTILES]
    return ["| scheme | | " + " | ".join(titles) + " |", "|---|---|" + "---|" * len(titles), *lines]


def milliseconds(values):
    return cell([None if value is None else value / 1000 for value in values])


def times(found):
    return "–" if found is None else f"{found[0]:.2f} [{found[1]:.2f}, {found[2]:.2f}]"
