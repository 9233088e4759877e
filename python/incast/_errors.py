"""What can go wrong, as exceptions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_KEYWORDS = {"resume": "resume=True", "force": "overwrite=True", "short": "short=True"}


def in_python(message: str) -> str:
    """A message of the command, with arguments in place of its options. Whole commands stay as they are."""

    def keyword(option: re.Match[str]) -> str:
        return _KEYWORDS.get(option[1], option[1].replace("-", "_"))

    return re.sub(r"(?<!run )--([a-z][a-z-]*)", keyword, message)


class Error(Exception):
    """Anything that incast refuses or that fails in it."""

    def __init__(self, message: str = ""):
        super().__init__(in_python(message))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario.

    Attributes:
        key: path of the key, such as ``switch.ecn.kind``; empty if it is about the file as a whole.
        found: what was found there, as a phrase.
        allowed: what is allowed there, if that can be said.
        nearest: the valid name that is nearest to the one found.
        file: the file at fault; ``None`` for a value that was given in Python.
        line: its line, from 1.
    """

    key: str
    found: str
    allowed: str | None = None
    nearest: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        text = f"{place}{self.key}: {self.found}" if self.key else f"{place}{self.found}"
        if self.allowed:
            text += f", allowed is {self.allowed}"
        if self.nearest:
            text += f' (did you mean "{self.nearest}"?)'
        return text


class ScenarioError(Error, ValueError):
    """A scenario cannot be simulated.

    Attributes:
        problems: all that is wrong with it, in the order of their places.
    """

    def __init__(self, problems: Sequence[Problem | dict]):
        self.problems = [it if isinstance(it, Problem) else _problem(it) for it in problems]
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self):
        return type(self), (self.problems,)


def _problem(facts: dict) -> Problem:
    """Of the extension. The text of a document given in Python is ours: nobody knows its lines."""
    if (facts["file"] or "").endswith("(dict)"):
        facts = {**facts, "file": None, "line": None}
    return Problem(**facts)


class RunError(Error):
    """Runs did not start, all of them failed, or their results could not be written."""


class BusyError(RunError):
    """Another process, or another thread, writes results to the same folder."""


class ResultsError(Error):
    """Results are missing, damaged, or of something else than is asked for."""


class ScenarioWarning(UserWarning):
    """Look at this before you trust the results: a value without effect, or one that is plainly degenerate."""


class RunWarning(UserWarning):
    """Some runs failed; the others are there."""
