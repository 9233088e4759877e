# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the scheme of a run says of its flows: laws, their parameters, ECN, the first window."""

from errors import BadInput
from values import quantity

# Laws whose echo of marks is exact, so that senders know of each mark.
EXACT_ECHO = {"marimo", "dctcp"}


def schemes_of(run, rows):
    """The law's parameters of each class that has flows, with where they stand."""
    scheme, found = run["scenario"]["scheme"][0], {}
    for name, law in sorted({(row["class"], row["law"]) for row in rows}):
        refined = scheme.get("by_class", {}).get(name, {})
        # One with a law of its own takes over nothing.
        found[name] = law, refined if "law" in refined else {**scheme, **refined}
    return found


def speaks_ecn(run, rows):
    """Whether the flows are ECN-capable: all or none, as hosts speak it or do not."""
    capable = {law in EXACT_ECHO or bool(parameters.get("ecn", False)) for law, parameters in schemes_of(run, rows).values()}
    if len(capable) != 1:
        raise BadInput(f"scheme {run['scheme']}: some classes speak ECN and some do not; hosts of a rig all do or none")
    return capable.pop()


def initial_window(run, mtu):
    """Segments of a new flow's window, which all laws of a run must share: routes tell hosts, not laws."""
    scheme = run["scenario"]["scheme"][0]
    windows = [scheme.get("initial_window")]
    windows += [refined["initial_window"] for refined in scheme.get("by_class", {}).values() if "initial_window" in refined]
    sizes = {None if window is None else quantity("size", window, "initial_window") for window in windows}
    if len(sizes) != 1 or None in sizes or next(iter(sizes)) % mtu:
        raise BadInput(f"scheme {run['scheme']}: initial_window must be given, in whole segments of {mtu} bytes, the same for all classes")
    return next(iter(sizes)) // mtu
