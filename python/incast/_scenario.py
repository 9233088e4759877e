"""Scenarios: what is simulated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _incast
from ._errors import Problem, ScenarioError, in_python

_TYPES = "a text, a number, true or false, a list or a mapping"


def to_json(value: Any, key: str) -> str:
    """A value as JSON. Numbers of NumPy and the like are numbers, and paths are texts."""
    problems: list[Problem] = []

    def plain(value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            for name in value:
                if not isinstance(name, str):
                    problems.append(Problem(key, f"found the key {name!r}", "texts as keys"))
            return {str(name): plain(item, f"{key}.{name}" if key else str(name)) for name, item in value.items()}
        if isinstance(value, (list, tuple, range)):
            return [plain(item, f"{key}[{place}]") for place, item in enumerate(value)]
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if not isinstance(value, (str, int, float, bool)) and hasattr(value, "tolist"):
            return plain(value.tolist(), key)
        if isinstance(value, (str, bool, int)) or (isinstance(value, float) and value - value == 0):
            return value
        problems.append(Problem(key, f"found {value!r} ({type(value).__name__})", _TYPES))
        return None

    text = json.dumps(plain(value, key))
    if problems:
        raise ScenarioError(problems)
    return text


@dataclass(frozen=True)
class PlannedRun:
    """One run of a scenario.

    Attributes:
        folder: name of its folder in the results.
        scheme: what is compared.
        seed: the seed.
        grid: value of each axis of the grid.
        packet_hops: link traversals that it is expected to take.
        cpu_s: seconds of CPU that it is expected to take.
        same_as: folder of the run whose simulation it shares, as nothing that its packets depend on differs; None of one that is
            simulated.
        memory_bytes: at most, about.
        nominal_load: of the most loaded link; None where no workload has a mean rate.
        is_too_short: it ends before it can be in a steady state.
        id: what it is known by on any machine: runs of equal ids have equal results.
    """

    folder: str
    scheme: str
    seed: int
    grid: dict[str, Any]
    packet_hops: float
    cpu_s: float
    same_as: str | None
    memory_bytes: int
    nominal_load: float | None
    is_too_short: bool
    id: str


@dataclass(frozen=True)
class Check:
    """What a scenario comes to, without running it.

    Attributes:
        effective: every value, with defaults spelled out and formulas evaluated, at the first grid point.
        effective_toml: the same as a TOML document.
        runs: the selected runs, in their order.
        warnings: what to look at before the results are trusted.
        packet_hops: expected link traversals of all simulations.
        cpu_s: expected CPU seconds of all simulations.
        memory_bytes: of the largest run, at most, about.
        cores: cores that this process may use.
    """

    effective: dict[str, Any] = field(repr=False)
    effective_toml: str = field(repr=False)
    runs: list[PlannedRun] = field(repr=False)
    warnings: list[str]
    packet_hops: float
    cpu_s: float
    memory_bytes: int
    cores: int

    def __str__(self) -> str:
        cores = max(1, min(self.cores, len(self.runs)))
        lines = [f"{len(self.runs)} runs, {self.packet_hops:.2g} packet-hops"]
        lines.append(f"{self.cpu_s:.1f} s of CPU, {self.cpu_s / cores:.1f} s on {cores} cores")
        lines.append(f"{self.memory_bytes / 1e6:.0f} MB of memory for the largest run")
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])


class Scenario:
    """Fabric, traffic and the schemes that are compared, checked as the command checks them.

    Args:
        document: path of a TOML file; name of a bundled scenario (``incast.bundled()``); or a mapping with the keys of a
            scenario file.
        short: the short form, where the scenario has one.
        folder: folder to which paths of files in a mapping are relative. Default: the current one.
        keys: top-level keys of the scenario, which replace those of ``document``.

    Raises:
        ScenarioError: with all that is wrong with it.

    >>> Scenario("first-light").schemes
    ['dctcp', 'cubic']
    """

    # Of a document: its text as JSON; of a file: its path and its text, so that a copy is one of what was read; of a bundled
    # scenario: its name.
    __slots__ = ("_inner", "_document", "_changes", "_short", "_folder", "_facts")
    _document: str | Path | tuple[Path, str]

    def __init__(
        self,
        document: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        short: bool = False,
        folder: str | os.PathLike[str] = ".",
        **keys: Any,
    ):
        if document is None:
            document, keys = keys, {}
        if isinstance(document, Mapping):
            self._document = to_json(document, "")
        elif isinstance(document, (str, os.PathLike)):
            path = Path(document)
            self._document = path.absolute() if path.is_file() else path
        else:
            raise TypeError(f"found {type(document).__name__}, expected a path, a bundled name or a mapping")
        self._short = bool(short)
        self._folder = os.path.abspath(folder)
        self._load([(key, to_json(value, key)) for key, value in keys.items()])

    def _load(self, changes: list[tuple[str, str]]) -> None:
        self._changes = changes
        if isinstance(self._document, Path):
            self._inner = _incast.Scenario.load(self._document, changes, self._short)
            if self._document.is_absolute():
                self._document = (self._document, self._inner.text())
        elif isinstance(self._document, tuple):
            self._inner = _incast.Scenario.again(*self._document, changes, self._short)
        else:
            self._inner = _incast.Scenario.parse(self._document, self._folder, changes, self._short)
        self._facts: dict[str, Any] = json.loads(self._inner.facts())

    def with_(self, changes: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """A copy with changes.

        Args:
            changes: paths of keys and their values, as ``--set`` has them: ``{"switch.ecn.at": "0.2bdp"}``.
            keys: the same for top-level keys: ``duration="1ms"``.

        Raises:
            ScenarioError: with all that is wrong with the copy.
        """
        copy = object.__new__(type(self))
        copy._document, copy._short, copy._folder = self._document, self._short, self._folder
        pairs = [*(changes or {}).items(), *keys.items()]
        copy._load([*self._changes, *((key, to_json(value, key)) for key, value in pairs)])
        return copy

    def _renamed(self, name: str) -> Scenario:
        """A copy of another name, which is not checked: cheaper than ``with_``, which reads everything again."""
        copy = object.__new__(type(self))
        copy._document, copy._short, copy._folder = self._document, self._short, self._folder
        copy._changes = [*self._changes, ("name", json.dumps(name))]
        copy._inner = self._inner.renamed(name)
        copy._facts = json.loads(copy._inner.facts())
        return copy

    def check(self, *, seeds: int | None = None, only: Only = None) -> Check:
        """Effective values, runs and expected cost, without running anything.

        Args:
            seeds: so many seeds, the scenario's first ones, continued upwards.
            only: which runs; see ``run``.

        Raises:
            RunError: ``only`` names nothing.
        """
        facts = json.loads(self._inner.check(seeds, conditions(only)))
        runs = [PlannedRun(**run) for run in facts["runs"]]
        return Check(
            effective=self.effective,
            effective_toml=self._inner.effective_toml(),
            runs=runs,
            warnings=[*self.warnings, *facts["remarks"]],
            packet_hops=facts["packet_hops"],
            cpu_s=facts["cpu_s"],
            memory_bytes=max((run.memory_bytes for run in runs), default=0),
            cores=facts["cores"],
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes it as a TOML file that the command takes, with its changes. Every value of a run is in its ``run.json``.

        Files that it names have their whole paths there. Returns the path.

        Raises:
            RunError: the file cannot be written.
        """
        self._inner.save(Path(path))
        return Path(path)

    @property
    def name(self) -> str:
        """Its name, which is that of its results folder."""
        return self._facts["name"]

    @property
    def describe(self) -> str:
        """What it shows."""
        return self._facts["describe"]

    @property
    def source(self) -> str:
        """What it follows: paper, table or figure."""
        return self._facts["source"]

    @property
    def hash(self) -> str:
        """Hash of its effective values and of the files that it names; the one that ``incast run`` writes."""
        return self._facts["hash"]

    @property
    def schemes(self) -> list[str]:
        """Names of what is compared."""
        return self._facts["schemes"]

    @property
    def axes(self) -> list[str]:
        """Paths of the keys that its grid varies."""
        return self._facts["axes"]

    @property
    def seeds(self) -> list[int]:
        """One run for each."""
        return self._facts["seeds"]

    @property
    def warnings(self) -> list[str]:
        """What to look at before the results are trusted."""
        return [in_python(warning) for warning in self._facts["warnings"]]

    @property
    def effective(self) -> dict[str, Any]:
        """Every value, with defaults spelled out and formulas evaluated, at the first grid point."""
        return self._facts["effective"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return (self.name, self.hash, self.seeds) == (other.name, other.hash, other.seeds)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self):
        return again, (self._document, self._changes, self._short, self._folder)

    def __repr__(self) -> str:
        return f"<incast.Scenario {self.name}: {', '.join(self.schemes)}; {len(self.axes)} axes, {len(self.seeds)} seeds>"


Only = Mapping[str, Any] | Sequence[str] | None


def again(document: str | Path | tuple[Path, str], changes: list[tuple[str, str]], short: bool, folder: str) -> Scenario:
    """A copy of a scenario, of what it was made of."""
    copy = object.__new__(Scenario)
    copy._document, copy._short, copy._folder = document, short, folder
    copy._load(changes)
    return copy


def conditions(only: Only) -> list[str]:
    """Conditions as ``--only`` has them."""
    if only is None:
        return []
    if isinstance(only, str):
        return [only]
    if isinstance(only, Mapping):
        return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in only.items()]
    return list(only)


def scenario(given: Scenario | str | os.PathLike[str] | Mapping[str, Any]) -> Scenario:
    """A scenario, or what one is made of."""
    return given if isinstance(given, Scenario) else Scenario(given)
