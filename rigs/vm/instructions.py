#!/usr/bin/env python3
"""Instructions per acknowledgement of each law, from what count.c counted: prints one Markdown table.

ACKs are the pure acknowledgements that the senders got, by the kernel's own counters. What the kernel does itself for a
law without cong_control (recovery, pacing) stands beside what the law does; the echo runs in the receivers.

usage: instructions.py DIRECTORY/LAW...   (each with counts, kallsyms, incast/nstat-*, incast/flows.csv)
"""

import bisect
import csv
import pathlib
import re
import subprocess
import sys

# Functions of the kernel that do for one law what another brings itself, as far as the compiler left them their names.
SHARED = re.compile(
    r"tcp_(slow_start|cong_avoid_ai|reno_(cong_avoid|ssthresh|undo_cwnd)|is_cwnd_limited|cwnd_reduction"
    r"|update_pacing_rate|init_cwnd_reduction|end_cwnd_reduction|min_tso_segs|mss_to_mtu)(\.\w+)*$"
)
LAWS = {
    "marimo": lambda name, module: module == "tcp_marimo",
    "dctcp": lambda name, module: module == "tcp_dctcp",
    "cubic": lambda name, module: not module and re.match(r"(bictcp|cubictcp|hystart)_", name),
}
# What a law does for the other direction: the echo of marks, once per data packet or less.
ECHO = re.compile(r"cwnd_event|marimo_received")


def symbols(path):
    """Addresses in order, and name and module of each."""
    found = []
    for line in path.read_text().splitlines():
        fields = line.split()
        if fields[1] in "tTwW":
            module = fields[3].strip("[]") if len(fields) > 3 else ""
            found.append((int(fields[0], 16), fields[2], module))
    # Of several names of one address the first that is not a mere label.
    found.sort(key=lambda symbol: (symbol[0], symbol[1].startswith("_")))
    unique = [symbol for i, symbol in enumerate(found) if i == 0 or symbol[0] != found[i - 1][0]]
    return [symbol[0] for symbol in unique], unique


def counters(path):
    """One file of nstat: name and value."""
    rows = (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))
    return {row[0]: int(row[1]) for row in rows}


def measure(directory):
    """What one law executed: (functions with instructions and calls, acknowledgements, data packets)."""
    law = directory.name
    addresses, names = symbols(directory / "kallsyms")
    functions = {}
    for line in (directory / "counts").read_text().splitlines():
        address, count = line.split()
        address, count = int(address, 16), int(count)
        at = bisect.bisect_right(addresses, address) - 1
        if at < 0:
            continue
        start, name, module = names[at]
        own = bool(LAWS[law](name, module))
        if not (own or (not module and (SHARED.match(name) or name == "tcp_ack"))):
            continue
        entry = functions.setdefault((name, own), [0, 0])
        entry[0] += count
        if address == start:
            entry[1] += count
    acknowledgements = 0
    for path in sorted((directory / "incast").glob("nstat-[0-9]*")):
        values = counters(path)
        acknowledgements += values["TcpExtTCPPureAcks"] + values["TcpExtTCPHPAcks"]
    with open(directory / "incast" / "flows.csv", newline="", encoding="utf-8") as file:
        packets = sum(int(row["delivered"]) for row in csv.DictReader(file))
    return functions, acknowledgements, packets


def sizes(path):
    """Code of the section .text, then text, data and bss as size(1) says; None where the law is part of the kernel."""
    if not path.exists():
        return None
    sections = subprocess.run(["size", "-A", path], check=True, capture_output=True, text=True).stdout
    code = sum(int(fields[1]) for fields in map(str.split, sections.splitlines()) if fields[:1] == [".text"])
    whole = subprocess.run(["size", path], check=True, capture_output=True, text=True).stdout
    return [code, "/".join(whole.splitlines()[1].split()[:3])]


def main():
    """Prints the table, then each law's functions."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    detail = []
    print("| law | code, B | text/data/bss of the module, B | ACKs | own, per ACK | with the kernel's functions in its "
          "place, per ACK | echo, per data packet | `tcp_ack` itself, per call |")
    print("|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:]:
        directory = pathlib.Path(name)
        law = directory.name
        functions, acknowledgements, packets = measure(directory)
        echo = sum(n for (f, own), (n, _) in functions.items() if own and ECHO.search(f))
        own = sum(n for (f, own), (n, _) in functions.items() if own) - echo
        shared = sum(n for (f, own), (n, _) in functions.items() if not own and f != "tcp_ack")
        whole, calls = functions[("tcp_ack", False)]
        if not own or not acknowledgements:
            sys.exit(f"instructions.py: {law}: nothing of it was executed")
        size = sizes(directory / "module.ko")
        if size is None:
            # Part of the kernel: the span of its functions.
            addresses, names = symbols(directory / "kallsyms")
            text = sum(addresses[i + 1] - addresses[i] for i, (_, f, module) in enumerate(names) if LAWS[law](f, module))
            size = [text, "built in"]
        per = [own / acknowledgements, (own + shared) / acknowledgements, echo / packets, whole / calls]
        print(f"| {law} | " + " | ".join(str(n) for n in size) + f" | {acknowledgements} | "
              + " | ".join(f"{n:.0f}" for n in per) + " |")
        for (f, mine), (n, calls) in sorted(functions.items(), key=lambda item: -item[1][0]):
            detail.append(f"| {law} | {'' if mine else 'kernel: '}`{f}` | {calls / acknowledgements:.2f} | "
                          f"{n / calls if calls else 0:.0f} | {n / acknowledgements:.1f} |")
    print("\n| law | function | calls per ACK | instructions per call | per ACK |\n|---|---|---|---|---|")
    print("\n".join(detail))


if __name__ == "__main__":
    main()
