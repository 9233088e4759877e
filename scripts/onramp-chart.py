#!/usr/bin/env python3
"""Draws docs/onramp-tradeoff.svg: what On-Ramp's threshold trades. Needs matplotlib.

usage: scripts/onramp-chart.py RESULTS/onramp-tradeoff/summary.json

Each point is a threshold: small flows against large ones, over all seeds of `incast run onramp/tradeoff`.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "incast", "font.size": 9})
from matplotlib import pyplot, ticker  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
STYLES = {"": ("k", "*"), "published hold": ("#d9660a", "s"), "On-Ramp": ("#1f77b4", "o"), "On-Ramp by acks": ("#2a8f4a", "^")}


def points(rows, scheme):
    """(threshold, mean slowdown of large flows, p99 of small ones' slowdown) of each grid point."""
    found = {}
    for row in rows:
        if row["scheme"] == scheme and row["seed"] == "all" and row["class"] in ("small", "large"):
            threshold = next(iter(row["grid"].values()))
            number = "p99" if row["class"] == "small" else "mean"
            found.setdefault(threshold, {})[row["class"]] = row["slowdown"][number]
    return [(threshold, of["large"], of["small"]) for threshold, of in found.items()]


def main():
    rows = json.loads(pathlib.Path(sys.argv[1]).read_text())["rows"]
    figure, panels = pyplot.subplots(1, 2, figsize=(7.4, 3.4), constrained_layout=True)
    for panel, law, title in zip(panels, ("cubic", "window"), ("CUBIC", "window of 400 KB")):
        for kind, (colour, marker) in STYLES.items():
            of = points(rows, f"{law} + {kind}" if kind else law)
            if not kind:
                of = of[:1]
            panel.plot([x for _, x, _ in of], [y for _, _, y in of], color=colour, marker=marker, markersize=4,
                       linewidth=0.8, label=kind or "without On-Ramp")
            labels = {}
            for threshold, x, y in of if kind == "On-Ramp" else []:
                labels.setdefault((x, y), []).append(threshold)
            for place, thresholds in labels.items():
                panel.annotate(", ".join(thresholds), place, textcoords="offset points", xytext=(4, 4), fontsize=7)
        panel.set(title=title, xlabel="large flows (over 1 MB): mean slowdown", yscale="log")
        panel.yaxis.set_major_formatter(ticker.ScalarFormatter())
        panel.yaxis.set_minor_formatter(ticker.ScalarFormatter() if law == "cubic" else ticker.NullFormatter())
        panel.margins(x=0.16, y=0.1)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("small flows (up to 100 KB): p99 slowdown")
    panels[0].legend(fontsize=7)
    figure.savefig(DOCS / "onramp-tradeoff.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
