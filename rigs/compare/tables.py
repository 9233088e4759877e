# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of both sides, in Markdown."""

from estimates import interval, percentile, ratio

METRICS = [
    ("p50", "FCT p50 (us)", lambda run: percentile(run["fct"], 0.5)),
    ("p99", "FCT p99 (us)", lambda run: percentile(run["fct"], 0.99)),
    ("retransmissions", "retransmissions", lambda run: run["retransmissions"]),
    ("marks", "marks", lambda run: run["marks"]),
    ("queue", "queue (KB)", lambda run: None if run["queue"] is None else run["queue"] / 1e3),
    ("queue_max", "longest (KB)", lambda run: None if run["queue_max"] is None else run["queue_max"] / 1e3),
]

TIMED, COUNTED = METRICS[:2], METRICS[2:]


def table(points):
    """Markdown: for each grid point and scheme a line of the kernel, one of the simulator, and their ratio."""
    lines = [
        "| scheme | | " + " | ".join(title for _, title, _ in METRICS) + " |",
        "|---|---|" + "---|" * len(METRICS),
    ]
    for point in points:
        for who, runs in (("kernel", point["real"]), ("simulated", point["simulated"])):
            if not runs:
                continue
            label = point["label"] if who == "kernel" or not point["real"] else ""
            cells = [cell([of(run) for run in runs]) for _, _, of in TIMED]
            cells += [counted([of(run) for run in runs]) for _, _, of in COUNTED]
            lines.append(f"| {label} | {who} | " + " | ".join(cells) + " |")
        if point["real"]:
            cells = []
            for _, _, of in METRICS if point["real"][0]["marks"] is not None else TIMED:
                cells.append(between(ratio([of(run) for run in point["real"]], [of(run) for run in point["simulated"]])))
            cells += [""] * (len(METRICS) - len(cells))
            lines.append("| | ratio | " + " | ".join(cells) + " |")
    return lines


def compact(points):
    """Markdown for a page: a line for each grid point and scheme, completion times in full, of the rest both means."""
    titles = ["scheme"]
    for _, title, _ in TIMED:
        titles += [f"{title}: kernel", "simulated", "ratio"]
    titles += [f"{title}: kernel, simulated" for _, title, _ in COUNTED]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for point in points:
        cells = [point["label"]]
        for _, _, of in TIMED:
            reals, ours = [of(run) for run in point["real"]], [of(run) for run in point["simulated"]]
            cells += [cell(reals) if reals else "–", cell(ours), between(ratio(reals, ours))]
        for _, _, of in COUNTED:
            means = [interval([of(run) for run in runs])[0] for runs in (point["real"], point["simulated"])]
            cells.append("" if None in means else ", ".join(number(mean) for mean in means))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def summary_line(name, rows, rig):
    seeds = sorted({row["seed"] for row in rows})
    kernels = sorted({line for row in rows if row["kernel"] for key, line in row["kernel"]["raw"].items() if "uname" in key})
    text = f"{name}: {len(rows)} runs, seeds {seeds[0]} to {seeds[-1]}; mean and 95% confidence interval over seeds."
    if rig and kernels:
        text += " Kernel: " + "; ".join(kernel.strip() for kernel in kernels) + "."
    if not rig:
        text += " Simulated alone."
    return text


def restricted(run, name):
    """A run with the flows of one class only."""
    chosen = [fct for fct, other in zip(run["fct"], run["class"]) if other == name]
    # What is counted at the queue and of hosts is of all classes.
    shared = {key: None for key in ("retransmissions", "marks", "queue", "queue_max")}
    return {**run, **shared, "fct": chosen, "class": [name] * len(chosen)}


def cell(values):
    mean, half = interval(values)
    if mean is None:
        finished = sum(value is not None for value in values)
        return f"unfinished in {len(values) - finished} of {len(values)}"
    return number(mean) + (f" ± {number(half)}" if half else "")


def counted(values):
    """As `cell`, of what may not have been measured."""
    return cell(values) if all(value is not None for value in values) else ""


def between(found):
    return "–" if found is None else f"{found[0]:.2f} ({found[1]:.2f}–{found[2]:.2f})"


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"
