#!/usr/bin/env python3
"""What README shows of `make demo` is what `make demo` prints.

In README a block of code follows `<!-- demo NAME: A | B | N lines -->`: those paragraphs of what the demo prints for
scenario NAME that begin with A and with B, at most so many lines of each. A paragraph ends before an empty line.
usage: readme-demo.py --check|--update OUTPUT
OUTPUT is what `make demo` printed for a terminal of 80 columns.
"""

import pathlib
import re
import sys

README = pathlib.Path(__file__).parent.parent / "README.md"
MARK = re.compile(r"<!-- demo (\S+): (.*?) -->\n```text\n(.*?)```\n", re.DOTALL)
COLUMNS = 80


def paragraphs(output, name):
    """What is printed for a scenario, from its title to the path of its report."""
    for part in re.split(r"^report: .*\n", output, flags=re.MULTILINE):
        if re.search(rf"^{re.escape(name)}( \(short form\))?(:|$)", part, re.MULTILINE):
            # The verdict follows the title at once.
            return re.split(r"\n\n+", part.replace("\nverdict", "\n\nverdict").strip("\n"))
    sys.exit(f"readme-demo.py: the demo prints nothing of {name}")


def shown(output, name, beginnings):
    found = []
    names = beginnings.split(" | ")
    most = re.fullmatch(r"(\d+) lines", names[-1])
    for beginning in names[:-1] if most else names:
        own = [text for text in paragraphs(output, name) if text.startswith(beginning)]
        if len(own) != 1:
            sys.exit(f"readme-demo.py: {len(own)} paragraphs of {name} begin with {beginning!r}")
        lines = own[0].splitlines()
        kept = lines[: int(most[1])] if most else lines
        found.append("\n".join(kept + ["…"] * (len(kept) < len(lines))))
    return "\n\n".join(found) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--update"):
        sys.exit(__doc__)
    output = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    for line in output.splitlines():
        if len(line) > COLUMNS and not line.startswith(("results: ", "report: ", "target/release/incast ")):
            sys.exit(f"readme-demo.py: wider than {COLUMNS} columns: {line}")
    old = README.read_text(encoding="utf-8")
    if not MARK.search(old):
        sys.exit("readme-demo.py: README.md shows nothing of the demo")

    def replaced(match):
        name, beginnings, _ = match.groups()
        return f"<!-- demo {name}: {beginnings} -->\n```text\n{shown(output, name, beginnings)}```\n"

    new = MARK.sub(replaced, old)
    if sys.argv[1] == "--update":
        README.write_text(new, encoding="utf-8")
    elif new != old:
        for line, other in zip(old.splitlines(), new.splitlines()):
            if line != other:
                print(f"README.md: {line}\nthe demo:  {other}", file=sys.stderr)
        sys.exit("readme-demo.py: README.md is not what `make demo` prints: run `make readme`")


main()
