#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a kernel's trace of tcp_marimo:ack to events that any build of marimo.h can replay.

usage: replay.py TRACE.txt --out FILE [--table FILE] [NAME=VALUE ...]

The lines are those of deploy/core/oracle/marimo.py, connection after connection. Where one line of the trace stands for
two events (the acknowledgement that shows a loss, and the loss) the first has no decisions. NAME=VALUE are the module's
parameters. On the way every event is given to the oracle, too: what the kernel decided must be what it decides.
Exit codes: 0 all agree; 1 something does not; 2 bad input.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "deploy/core/oracle"))
import marimo as oracle  # noqa: E402

# Numbers that deploy/linux/marimo_tcp.h defines, by their names there.
DEFINED = dict(re.findall(
    r"^#define MARIMO_TCP_(\w+) (\d+)u?\b", (ROOT / "deploy/linux/marimo_tcp.h").read_text(), re.MULTILINE))
ACK, LOSS, TIMEOUT, IDLE, RESTART, UNDO, EPOCH, INIT, RESIZE = (
    int(DEFINED["DID_" + name]) for name in ("ACK", "LOSS", "TIMEOUT", "IDLE", "RESTART", "UNDO", "EPOCH", "INIT", "RESIZE"))
# Packets that the rule "settling" lets the increase grow to.
SETTLING_INCREASE = int(DEFINED["SETTLING_INCREASE"])

# What is read of a line; it may have more, in any order.
FIELDS = ("sport", "dport", "events", "packets", "marked", "acked", "position", "next", "limited", "window", "threshold",
          "rho", "gain", "epochs", "state")
# What tells connections apart, as far as it is there: words, not numbers.
NAMES = ("cookie", "saddr", "daddr", "family", "sport", "dport")

NO_THRESHOLD = (1 << 32) - 1


class BadInput(Exception):
    """What the user gave is wrong."""


class Differs(Exception):
    """The kernel and the oracle do not agree."""


def q16(thousandths):
    return (thousandths * oracle.ONE + 500) // 1000


def config_of(parameters):
    """struct marimo_config from the module's parameters, as modinfo describes them."""
    known = dict(
        rule="paper", increase_below=900, decrease_above=1000, target=950, max_decrease=500, loss_load=1200,
        loss_decrease=500, beta_shift=1, forget=1, min_window=2, min_epoch=2, increase=1,
    )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name not in known or not value:
            raise BadInput(f"parameter {parameter!r}; there are {', '.join(known)}")
        known[name] = value if name == "rule" else int(value)
    settling = {"paper": False, "settling": True}.get(known["rule"])
    if settling is None:
        raise BadInput(f"rule is paper or settling; found {known['rule']!r}")
    packets = oracle.ONE
    return dict(
        increase_below=q16(known["increase_below"]), decrease_above=q16(known["decrease_above"]),
        target=q16(known["target"]), min_decrease=0, max_decrease=q16(known["max_decrease"]),
        rho_after_decrease=packets if known["forget"] else NO_THRESHOLD, loss_rho=q16(known["loss_load"]),
        loss_decrease=q16(known["loss_decrease"]), initial_window=10 * packets,
        min_window=known["min_window"] * packets, max_window=65535 * packets, increase=known["increase"] * packets,
        max_increase=(max(known["increase"], SETTLING_INCREASE) if settling else known["increase"]) * packets,
        min_epoch=known["min_epoch"], beta_shift=known["beta_shift"], decrease_from=int(settling),
        settle=int(settling), slow_start=2 if settling else 1,
    )


def knots_of(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if lines[0] != "marimo-f 1" or len(lines) < 66:
        raise BadInput(f"{path}: not a table")
    return [int(line) for line in lines[1:66]]


def events_of(path):
    """The fields of each line of the trace, by connection, in the order in which connections began."""
    connections = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            if (lost := re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", line)) and lost[1] != lost[2]:
                raise BadInput(f"{path}: the buffer kept {lost[1]} of {lost[2]} events")
            continue
        if " ack: " not in line:
            continue
        fields = dict(word.split("=", 1) for word in line.split(" ack: ")[1].split())
        values = {name: int(fields[name]) for name in FIELDS}
        key = tuple(fields.get(name) for name in NAMES)
        # The kernel asks about the handshake before it lets a congestion control begin.
        if key not in connections and not values["events"] & INIT:
            continue
        connections.setdefault(key, []).append((number, values))
    if not connections:
        raise BadInput(f"{path}: no event of tcp_marimo:ack")
    return connections


class Replay:
    """Lines of a connection, and the oracle beside them."""

    def __init__(self, config, table):
        self.config, self.table = config, table
        self.lines, self.window = [], None
        self.compared, self.epochs, self.left_out = 0, 0, 0

    def decided(self, values):
        new = [values["window"], values["threshold"], values["rho"], values["gain"], values["epochs"]]
        words = ["." if a == b else str(a) for a, b in zip(new, self.last)]
        self.last = new
        return " = " + " ".join(words)

    def connection(self, events):
        """Whether the connection could be replayed to its end."""
        _, first = events[0]
        # A threshold from the kernel's memory of the path is not the algorithm's own, nor is a window below its floor,
        # with which a connection starts whose SYN was lost.
        if first["threshold"] != NO_THRESHOLD or first["window"] < self.config["min_window"]:
            self.left_out += 1
            return
        if first["window"] != self.window:
            self.window = first["window"]
            self.config["initial_window"] = self.window
            self.lines.append("c " + " ".join(str(self.config[field]) for field in oracle.FIELDS))
            self.lines.append("t " + " ".join(map(str, self.table)))
        state = oracle.Connection([self.config[field] for field in oracle.FIELDS], self.table)
        self.last = [None] * 5
        for number, values in events:
            bits = values["events"]
            if bits & (RESTART | UNDO | RESIZE) or (bits & INIT and number != events[0][0]):
                # These set the window itself, beside the algorithm.
                self.left_out += 1
                return
            what = []
            if bits & INIT:
                what.append(("n",))
            if bits & ACK:
                what.append(("a", *(values[key] for key in ("packets", "marked", "acked", "position", "next", "limited"))))
                state.on_ack(*what[-1][1:])
            if bits & LOSS:
                what.append(("l", values["position"], values["next"]))
                state.on_loss(*what[-1][1:])
            if bits & TIMEOUT:
                what.append(("o", values["next"]))
                state.on_timeout(*what[-1][1:])
            if bits & IDLE:
                what.append(("i", values["next"]))
                state.on_idle(*what[-1][1:])
            if not what:
                continue
            for early in what[:-1]:
                self.lines.append(" ".join(map(str, early)))
            found = [values[key] for key in ("window", "threshold", "rho", "gain", "epochs")]
            if state.decisions() != found:
                raise Differs(f"line {number}: the kernel decided {found}, the oracle {state.decisions()}")
            self.lines.append(" ".join(map(str, what[-1])) + self.decided(values))
            self.compared += 1
        self.epochs += state.epochs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("trace", type=pathlib.Path, metavar="TRACE.txt")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "deploy/core/marimo-f.table", metavar="FILE")
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    arguments = parser.parse_args()
    try:
        replay = Replay(config_of(arguments.parameters), knots_of(arguments.table))
        connections = events_of(arguments.trace)
        for events in connections.values():
            replay.connection(events)
        if not replay.epochs:
            raise BadInput(f"{arguments.trace}: no epoch that could be replayed")
    except (BadInput, OSError, ValueError, KeyError) as error:
        print(f"replay.py: {error}", file=sys.stderr)
        return 2
    except Differs as error:
        print(f"replay.py: {error}", file=sys.stderr)
        return 1
    arguments.out.write_text("\n".join(replay.lines) + "\n")
    print(f"{len(connections)} connections, {replay.compared} events and {replay.epochs} epochs agree with the oracle, "
          f"{replay.left_out} connections left out or cut short")
    return 0


if __name__ == "__main__":
    sys.exit(main())
