#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a rule of a paper to the code that has it, and to the test that fails without it.

    traceability.py PAGE...              whether what the tables of these pages name exists
    traceability.py --mutate [NAME...]   whether each mutation (traceability.toml) makes its test fail

A table's header is `| rule | code | test |`. A cell of code is `FILE: FUNCTION`, one of a test `CRATE: TEST`; several
are parted by `;`. Mutations are applied in a work tree of its own, one at a time; their tests pass before.
"""

import functools
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "| rule | code | test |"
MUTATIONS = "scripts/traceability.toml"


def rows(page):
    """Line number, code and test of each row of the page's tables."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line == HEADER:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            cells = line.strip("| ").split(" | ")
            if len(cells) != 3:
                sys.exit(f"{page}:{number}: {len(cells)} cells, not rule, code and test")
            yield number, *cells[1:]


def named(cell):
    """What a cell names, as pairs."""
    for part in cell.split(";"):
        place, _, name = part.replace("`", "").strip().partition(": ")
        yield place, name


@functools.cache
def tests():
    """The names of all tests in the sources of the crates: functions below `#[test]`."""
    sources = [path for folder in ("src", "tests") for path in ROOT.glob(f"crates/*/{folder}/**/*.rs")]
    pattern = re.compile(r"#\[test\]\n(?:\s*#\[.*\]\n)*\s*fn (\w+)")
    return {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}


def has_test(name):
    return name in tests()


def defines(file, name):
    text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
    pattern = rf"^static .*\b{name}\(" if file.endswith((".h", ".c")) else rf"\bfn {name}\b"
    return re.search(pattern, text, re.M) is not None


def check(pages):
    wrong, count = [], 0
    for page in map(pathlib.Path, pages):
        found = list(rows(page))
        if not found:
            wrong.append(f"{page}: no table {HEADER}")
        count += len(found)
        for number, code, test in found:
            wrong += [f"{page}:{number}: {file} has no {name}" for file, name in named(code) if not defines(file, name)]
            wrong += [f"{page}:{number}: there is no test {name}" for _, name in named(test) if not has_test(name)]
    for mutation in mutations([]):
        times = (ROOT / mutation["file"]).read_text(encoding="utf-8").count(mutation["from"])
        if times != 1:
            wrong.append(f"{MUTATIONS}: {mutation['name']}: what it changes is {times} times in {mutation['file']}")
        if not has_test(mutation["test"]):
            wrong.append(f"{MUTATIONS}: {mutation['name']}: there is no test {mutation['test']}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{count} rules of {len(pages)} pages: their code and tests exist")


def mutations(names):
    listed = tomllib.loads((ROOT / MUTATIONS).read_text(encoding="utf-8"))["mutation"]
    unknown = set(names) - {mutation["name"] for mutation in listed}
    if unknown:
        sys.exit(f"{MUTATIONS} has no {', '.join(sorted(unknown))}")
    return [mutation for mutation in listed if not names or mutation["name"] in names]


def mutate(names):
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree], cwd=ROOT, check=True)
        try:
            for mutation in mutations(names):
                file = tree / mutation["file"]
                text = file.read_text(encoding="utf-8")
                passes = run(tree, mutation)
                file.write_text(text.replace(mutation["from"], mutation["to"]), encoding="utf-8")
                fails = not run(tree, mutation)
                file.write_text(text, encoding="utf-8")
                if not (passes and fails):
                    missed.append(mutation["name"])
                result = "found" if passes and fails else "not found" if passes else "the test fails without it"
                print(f"{mutation['name']}: {result} by {mutation['test']}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    if missed:
        sys.exit(f"not found: {', '.join(missed)}")


def run(tree, mutation):
    """Whether the test of a mutation passes. A mutation that does not compile is a mistake in the list."""
    command = ["cargo", "test", "--locked", "--quiet", "-p", mutation["crate"], "--target-dir", ROOT / "target" / "mutations"]
    built = subprocess.run([*command, "--no-run"], cwd=tree, capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"{mutation['name']} does not compile:\n{built.stderr}")
    return subprocess.run([*command, "--", mutation["test"]], cwd=tree, capture_output=True).returncode == 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mutate"]:
        mutate(sys.argv[2:])
    elif len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        check(sys.argv[1:])
    else:
        sys.exit(__doc__)
