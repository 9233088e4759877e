# SPDX-License-Identifier: MIT OR Apache-2.0
"""Marimo's parameters as the kernel module has them."""

import math

from errors import BadInput
from schemes import initial_window, schemes_of
from values import plain, quantity


def thousandths(value):
    return whole(value * 1000, "whole thousandths")


def whole(value, kind="whole packets"):
    rounded = round(value)
    if abs(value - rounded) > 1e-9:
        raise ValueError(kind)
    return rounded


def halvings(value):
    return whole(-math.log2(value), "a power of 1/2")


# Parameters of Marimo that the module has, and how: its name, and its integer or word.
MARIMO = {
    "rule": ("rule", str),
    "decrease_from": ("decrease_from", str),
    "slow_start": ("slow_start", str),
    "settle": ("settle", whole),
    "increase": ("increase", whole),
    "max_increase": ("max_increase", whole),
    "increase_below": ("increase_below", thousandths),
    "decrease_above": ("decrease_above", thousandths),
    "target": ("target", thousandths),
    "max_decrease": ("max_decrease", thousandths),
    "loss_load": ("loss_load", thousandths),
    "loss_decrease": ("loss_decrease", thousandths),
    "beta": ("beta_shift", halvings),
    "forget": ("forget", int),
    "min_epoch": ("min_epoch", whole),
}


def marimo(run, rows, beside):
    """The module's parameters and the text of its table, if it is not the bundled one. All connections share them."""
    found = []
    for name, (law, parameters) in schemes_of(run, rows).items():
        if law != "marimo":
            continue
        words = {}
        for key, (theirs, convert) in MARIMO.items():
            try:
                words[theirs] = convert(parameters[key])
            except ValueError as error:
                raise BadInput(
                    f"scheme {run['scheme']}, class {name}: {key}: found {plain(parameters[key])}; the module has {error}"
                ) from None
        words["initial_window"] = initial_window(run, quantity("size", run["scenario"]["host"]["mtu"], "host.mtu"))
        if (words, parameters["table"]) not in found:
            found.append((words, parameters["table"]))
    if not found:
        return {}, None
    if len(found) > 1:
        raise BadInput(f"scheme {run['scheme']}: its classes have Marimo with different parameters; a module has one set")
    words, table = found[0]
    if table == "calibrated":
        return words, None
    try:
        return words, (beside / table).read_text()
    except OSError as error:
        raise BadInput(f"scheme {run['scheme']}: table: a rig takes \"calibrated\" or a file: {error}") from None
