# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line of the oracles, and what of their vectors is committed: a sample, and the hash of the whole.

    ORACLE                          prints the whole vectors
    ORACLE --write SAMPLE           writes SAMPLE, and beside it SAMPLE-whole.sha256, as sha256sum does
    ORACLE --check SAMPLE [WHOLE]   whether both are what the oracle makes; the whole vectors go to the file WHOLE

A sample is beginnings of connections, each with the configuration that it has in the whole vectors: a list of
(configuration, connection of it, how many lines), counted from 0. A connection begins with a line `n`, which holds
every number, so that it can be replayed without those before it.
"""

import hashlib
import pathlib
import sys


def sample(whole, pieces):
    configurations = []
    for line in whole.splitlines():
        kind = line.split()[0]
        if kind == "c":
            head, connections = [], []
            configurations.append((head, connections))
        if kind == "n":
            connections.append([])
        (connections[-1] if connections else head).append(line)
    lines, last = [], None
    for configuration, connection, count in pieces:
        head, connections = configurations[configuration]
        lines += head if configuration != last else []
        lines += connections[connection][:count]
        last = configuration
    return "\n".join(lines) + "\n"


def main(whole, pieces):
    if len(sys.argv) == 1:
        sys.stdout.write(whole)
        return
    option, *files = sys.argv[1:]
    if (option, len(files)) not in [("--write", 1), ("--check", 1), ("--check", 2)]:
        sys.exit(f"usage: {sys.argv[0]} [--write SAMPLE | --check SAMPLE [WHOLE]]")
    path = pathlib.Path(files[0])
    name = path.stem + "-whole"
    digest = hashlib.sha256(whole.encode("ascii")).hexdigest()
    made = {path: sample(whole, pieces), path.with_name(name + ".sha256"): f"{digest}  {name}.txt\n"}
    if option == "--write":
        for file, text in made.items():
            file.write_text(text, encoding="ascii")
        return
    # Written although it may be wrong: the programs that replay it say where.
    if len(files) == 2:
        pathlib.Path(files[1]).write_text(whole, encoding="ascii")
    wrong = [str(file) for file, text in made.items() if not file.is_file() or file.read_text(encoding="ascii") != text]
    if wrong:
        sys.exit(f"{sys.argv[0]} makes something else than {', '.join(wrong)}; if that is meant: --write {path}")
