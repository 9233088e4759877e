# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values of scenarios: quantities with units, and how a value is written."""

import json

from errors import BadInput

UNITS = {
    "time": {"ps": 1, "ns": 1000, "us": 10**6, "ms": 10**9, "s": 10**12},
    "size": {"B": 1, "KB": 1000, "MB": 10**6, "GB": 10**9, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30},
    "rate": {"bps": 1, "Kbps": 1000, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12},
}


def quantity(kind, text, where):
    """A quantity such as "125us" as a whole number of ps, bytes or bit/s."""
    text = str(text).strip()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(digits):]
    if unit not in UNITS[kind]:
        raise BadInput(f"{where}: found {text!r}, expected a {kind} in {', '.join(UNITS[kind])}")
    try:
        whole, _, part = digits.strip().partition(".")
        scaled = int(whole + part) * UNITS[kind][unit]
        value, rest = divmod(scaled, 10 ** len(part))
    except ValueError:
        raise BadInput(f"{where}: found {text!r}, expected a {kind}") from None
    if rest:
        raise BadInput(f"{where}: {text!r} is not a whole number of the smallest unit")
    return value


def canonical(value):
    """A quantity as a number of its smallest unit, all else as it is."""
    if isinstance(value, str):
        for kind in UNITS:
            try:
                return kind, quantity(kind, value, "")
            except BadInput:
                pass
    return value


def plain(value):
    return value if isinstance(value, str) else json.dumps(value)
