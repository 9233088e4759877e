#!/usr/bin/env python3
"""What README shows of `make demo` is what `make demo` prints.

In README a table follows `<!-- demo NAME: columns A, B; rows X | Y -->`: columns of a table that the demo prints, by their
headings, and rows by the beginning of their cells, joined by blanks; of several rows the first. It ends before the next
empty line. NAME is the beginning of the table's scenario, or `NAME claims` for its published numbers.
usage: readme-demo.py --check|--update OUTPUT
OUTPUT is what `make demo` printed.
"""

import pathlib
import re
import sys

README = pathlib.Path(__file__).parent.parent / "README.md"
MARK = re.compile(r"<!-- demo (.*?): columns (.*?); rows (.*?) -->\n((?:\|.*\n)*)")


def tables(output):
    """The printed tables, as lists of rows of cells: each with the line of text before the scenario's first table."""
    found, lines, heads, name = [], [], 1, ""
    for line in output.splitlines() + [""]:
        if line.startswith("═"):
            heads = len(lines)
        if line.startswith("─") or line.startswith("═"):
            continue
        if line.startswith(" ") and (lines or not line.startswith("  ")):
            lines.append(line)
            continue
        if lines:
            rows = cells(lines)
            # Wide tables have headings of two lines.
            head = [" ".join(filter(None, column)) for column in zip(*rows[:heads])]
            found.append((name, [head, *rows[heads:]]))
            lines = []
        if re.match(r"[a-z0-9-]+( \(short form\))?: ", line):
            name = line
    return found


def cells(lines):
    """Columns are what at least two blanks in all lines separate."""
    width = max(map(len, lines))
    padded = [line.ljust(width) for line in lines]
    blank = [all(line[place] == " " for line in padded) for place in range(width)]
    columns, start = [], None
    for place in range(width + 1):
        ends = place >= width or (blank[place] and (place + 1 >= width or blank[place + 1]))
        if ends and start is not None:
            columns.append((start, place))
            start = None
        elif not ends and start is None:
            start = place
    return [[line[start:end].strip() for start, end in columns] for line in padded]


def shown(output, name, columns, rows):
    """A table of Markdown, or an error."""
    scenario, _, claims = name.partition(" ")
    first = "published" if claims else "scheme"
    for title, (head, *body) in tables(output):
        if title.startswith(scenario) and head[0] == first:
            break
    else:
        sys.exit(f"readme-demo.py: the demo prints no table of {name}")
    columns = [column.strip() for column in columns.split(",")]
    for column in columns:
        if column not in head:
            sys.exit(f"readme-demo.py: {name} has no column {column!r}, allowed are {', '.join(head)}")
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows.split("|"):
        matching = [line for line in body if " ".join(filter(None, line)).startswith(row.strip() + " ")]
        if not matching:
            sys.exit(f"readme-demo.py: {name} has no row {row.strip()!r}")
        values = (matching[0][head.index(column)] for column in columns)
        lines.append("| " + " | ".join("" if value == "–" else value for value in values) + " |")
    return "".join(line + "\n" for line in lines)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--update"):
        sys.exit(__doc__)
    output = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    old = README.read_text(encoding="utf-8")
    if not MARK.search(old):
        sys.exit("readme-demo.py: README.md shows no table of the demo")

    def replaced(match):
        name, columns, rows, _ = match.groups()
        return f"<!-- demo {name}: columns {columns}; rows {rows} -->\n{shown(output, name, columns, rows)}"

    new = MARK.sub(replaced, old)
    if sys.argv[1] == "--update":
        README.write_text(new, encoding="utf-8")
    elif new != old:
        for line, other in zip(old.splitlines(), new.splitlines()):
            if line != other:
                print(f"README.md: {line}\nthe demo:  {other}", file=sys.stderr)
        sys.exit("readme-demo.py: README.md is not what `make demo` prints: run `make readme`")


main()
