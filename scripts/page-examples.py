#!/usr/bin/env python3
"""What pages show of a command is what the command prints.

In a page, a comment says what the block of code after it is:
  <!-- file NAME -->           a file of this content
  <!-- file NAME: BASE -->     a file: BASE under the name of NAME, with this content appended
  <!-- prints COMMAND -->      what `incast` prints in a terminal of 80 columns, without costs and paths
  <!-- prints COMMAND: A | B | N lines -->   only the paragraphs that begin with A and with B, N lines of each
A paragraph ends before an empty line. Commands of a page run in one empty folder that has `scenarios`.
usage: page-examples.py --check|--update [--demo FILE] INCAST PAGE...
       --demo: what `make demo` printed; its commands are not run again
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = re.compile(r"<!-- (file|prints) ([^\n]*?) -->\n```(\w+)\n(.*?)```\n", re.DOTALL)
COLUMNS = 80
# What differs from machine to machine and from build to build.
VARIES = re.compile(r"packet-hops; at .*|s of CPU|^results: |^report: |^apply: |^switches: |GB are available|, incast \d")


# A line in which `make demo` says what it runs.
RUNS = re.compile(r"^\S*incast (run .*?) --out \S+ --force\n", re.MULTILINE)


def printed(incast, command, folder, demo):
    if command in demo:
        return demo[command]
    arguments = shlex.split(command)
    assert arguments[0] == "incast", command
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        [incast, *arguments[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 2):
        sys.exit(f"page-examples.py: {command} failed:\n{done.stderr}")
    text = done.stdout if done.returncode == 0 else done.stderr
    for line in text.splitlines():
        if len(line) > COLUMNS and arguments[1] in ("run", "table") and not VARIES.search(line) and done.returncode == 0:
            sys.exit(f"page-examples.py: {command}: wider than {COLUMNS} columns: {line}")
    return text


def paragraphs(text):
    # What is told about settings follows the title at once, and the verdict that.
    parts = re.split(r"\n\n+", re.sub(r"\n(settings:|verdict)", r"\n\n\1", text).strip("\n"))
    kept = ("\n".join(line for line in part.splitlines() if not VARIES.search(line)) for part in parts)
    return [part for part in kept if part]


def selected(command, text, names):
    most = re.fullmatch(r"(\d+) lines", names[-1]) if names else None
    found = []
    for name in names[:-1] if most else names:
        own = [part for part in paragraphs(text) if part.startswith(name)]
        if len(own) != 1:
            sys.exit(f"page-examples.py: {len(own)} paragraphs that {command} prints begin with {name!r}")
        lines = own[0].splitlines()
        kept = lines[: int(most[1])] if most else lines
        found.append("\n".join(kept + ["…"] * (len(kept) < len(lines))))
    return "\n\n".join(found if names else paragraphs(text)) + "\n"


def made_anew(incast, page, demo):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "scenarios").symlink_to(ROOT / "scenarios")

        def replaced(match):
            kind, what, language, body = match.groups()
            if kind == "file":
                file, _, base = what.partition(": ")
                text = (folder / base).read_text(encoding="utf-8") if base else ""
                text = re.sub(r'^name = .*', f'name = "{pathlib.Path(file).stem}"', text, count=1, flags=re.MULTILINE) + "\n" * bool(base)
                (folder / file).write_text(text + body, encoding="utf-8")
                return match[0]
            command, _, names = what.partition(": ")
            text = selected(command, printed(incast, command, folder, demo), names.split(" | ") if names else [])
            return f"<!-- prints {what} -->\n```{language}\n{text}```\n"

        return MARK.sub(replaced, page)


def main():
    mode, *rest = sys.argv[1:] or [""]
    demo = {}
    if rest[:1] == ["--demo"]:
        parts = RUNS.split(pathlib.Path(rest[1]).read_text(encoding="utf-8"))
        demo = {f"incast {command}": text for command, text in zip(parts[1::2], parts[2::2])}
        rest = rest[2:]
    if mode not in ("--check", "--update") or len(rest) < 2:
        sys.exit(__doc__)
    incast = pathlib.Path(rest[0]).resolve()
    stale = False
    for path in map(pathlib.Path, rest[1:]):
        old = path.read_text(encoding="utf-8")
        marks = len(re.findall(r"<!-- (?:file|prints) ", old))
        if not marks or marks != len(MARK.findall(old)):
            sys.exit(f"page-examples.py: {path} has no example, or one without a block of code right after it")
        new = made_anew(incast, old, demo)
        if mode == "--update":
            path.write_text(new, encoding="utf-8")
            continue
        names = {"fromfile": str(path), "tofile": "printed", "n": 0, "lineterm": ""}
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), **names):
            print(line, file=sys.stderr)
        stale |= new != old
    if stale:
        sys.exit("page-examples.py: pages do not show what is printed: run `make examples`")


main()
