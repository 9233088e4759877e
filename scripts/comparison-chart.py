#!/usr/bin/env python3
"""Draws docs/comparison.svg from the tables in docs/comparison.md.

usage: scripts/comparison-chart.py

The numbers come from `incast reproduce all/leaf-spine-100g` in its full form; `incast table --update` writes them into the
page ("Adding a scheme" there). One row for each scheme, grouped by what it needs from the switches.
"""

import math
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
TABLE = "<!-- incast table leaf-spine-100g --columns small:slowdown.p99,large:slowdown.mean --by-number -->"
COLUMN = "0.5, websearch, 0.05"

# What switches must do, a colour, and the schemes.
GROUPS = [
    ("drop-tail, or ECN marks at a threshold", "#1f77b4",
     ["cubic", "bbr", "bbr3 ecn", "swift", "dctcp", "marimo", "marimo settling", "dctcp onramp"]),
    ("lossless: PFC or credits", "#d9660a",
     ["timely window", "dcqcn", "dcqcn window", "tcd", "pacc (reconstructed)", "mercury bdp", "hpcc", "ibcc", "blitz", "dcqcn iofd"]),
    ("priorities or trimming, receiver-driven", "#2a8f4a",
     ["polo active-limit", "ndp", "phost spray", "homa spray", "homa unmarked spray"]),
]
# Title, first and last value of the axis, ticks.
PANELS = [
    ("small flows (up to 100 KB): p99 slowdown", 1, 300, [1, 3, 10, 30, 100, 300]),
    ("large flows (over 1 MB): mean slowdown", 1, 50, [1, 2, 5, 10, 20, 50]),
]
LEFT, WIDTH, GAP, ROW, TOP = 130, 270, 24, 17, 62


def tables():
    """{scheme: (value, interval, text)} of COLUMN, one for each panel."""
    text = (DOCS / "comparison.md").read_text()
    body = text.split(TABLE)[1].split("<!-- end of table")[0]
    found = []
    for line in body.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0] == "scheme":
            column = [cell.strip(" |") for cell in cells].index(COLUMN)
            found.append({})
        elif found and len(cells) > 1 and not line.startswith("|--"):
            found[-1][cells[0]] = cell(cells[column].strip(" |"))
    assert len(found) == len(PANELS), f"{len(found)} tables"
    return found


def cell(text):
    """`104 ±15`, `104 [89.9, 121]` or `104 ±?`, whose interval is not drawn; `!` is no part of it."""
    value, spread = text.rstrip("!").split(" ", 1)
    number = float(value)
    if spread.startswith("["):
        low, high = (float(end) for end in spread.strip("[]").split(", "))
    elif spread == "±?":
        low = high = number
    else:
        half = float(spread.removeprefix("±"))
        low, high = number - half, number + half
    return number, (low, high), text


def main():
    data = tables()
    groups = [(title, colour, [scheme for scheme in schemes if scheme in data[0]]) for title, colour, schemes in GROUPS]
    missing = [scheme for _, _, schemes in GROUPS for scheme in schemes if scheme not in data[0]]
    if missing:
        print(f"comparison-chart.py: the page has no row {', '.join(missing)}", file=sys.stderr)
    rows = sum(len(schemes) + 1 for _, _, schemes in groups)
    height, width = TOP + rows * ROW + 42, LEFT + 2 * WIDTH + GAP + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="10" y="18" font-size="13" font-weight="bold">Web search at 50% load with 16-to-1 incasts, 32 hosts, '
        "100 Gbps leaf-spine</text>",
        '<text x="10" y="34" fill="#555">1 is the time of the flow alone. Left is better. Bars: 95% confidence interval '
        "over five seeds. Logarithmic scales.</text>",
    ]

    def position(panel, value):
        _, low, high, _ = PANELS[panel]
        share = math.log(max(value, low) / low) / math.log(high / low)
        return LEFT + panel * (WIDTH + GAP) + share * WIDTH

    bottom = TOP + rows * ROW
    for panel, (title, low, _, ticks) in enumerate(PANELS):
        out.append(f'<text x="{position(panel, low):.0f}" y="{TOP - 8}" font-weight="bold">{title}</text>')
        for tick in ticks:
            x = f"{position(panel, tick):.1f}"
            out.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#ddd"/>')
            out.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle" fill="#555">{tick}</text>')
    y = TOP
    for needs, colour, schemes in groups:
        y += ROW
        out.append(f'<text x="10" y="{y - 4}" fill="{colour}" font-weight="bold">{needs}</text>')
        for scheme in schemes:
            y += ROW
            middle = y - ROW / 2
            out.append(f'<text x="{LEFT - 8}" y="{y - 4}" text-anchor="end">{scheme}</text>')
            for panel, table in enumerate(data):
                value, interval, text = table[scheme]
                ends = [position(panel, end) for end in interval]
                x = position(panel, value)
                out.append(f'<path d="M{ends[0]:.1f} {middle}H{ends[1]:.1f}" stroke="{colour}" stroke-width="2"/>')
                out.append(f'<circle cx="{x:.1f}" cy="{middle}" r="3.5" fill="{colour}">'
                           f"<title>{scheme}: {text}</title></circle>")
    out.append(f'<text x="10" y="{height - 8}" fill="#555">incast reproduce all/leaf-spine-100g; '
               "every scheme with its defaults. All rows: docs/comparison.md</text>")
    out.append("</svg>")
    (DOCS / "comparison.svg").write_text("\n".join(out) + "\n")


main()
