"""Which congestion control should a datacenter run?

>>> import incast
>>> results = incast.run("first-light", seeds=1)
>>> print(results.verdict)  # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import _incast
from ._errors import BusyError, Error, Problem, ResultsError, RunError, RunWarning, ScenarioError, ScenarioWarning
from ._open import open
from ._results import Results, Table
from ._run import run
from ._scenario import Check, PlannedRun, Scenario
from ._sweep import Sweep, sweep
from ._tune import Tuning, tune

if TYPE_CHECKING:
    from . import plot as plot

__version__: str = _incast.version
"""Release and hash of the sources that decide results, by PEP 440: what results have as their version."""

__build__: str = _incast.build
"""What ``incast --version`` prints behind the name: the version, then commit, profile and target."""


def __getattr__(name: str) -> Any:
    # `incast.plot` is imported when it is first used: it needs matplotlib.
    if name == "plot":
        return importlib.import_module("incast.plot")
    raise AttributeError(f"module 'incast' has no attribute {name!r}")


def bundled() -> list[str]:
    """Names of the bundled scenarios."""
    return _incast.bundled()


__all__ = [
    "BusyError",
    "Check",
    "Error",
    "PlannedRun",
    "Problem",
    "Results",
    "ResultsError",
    "RunError",
    "RunWarning",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Sweep",
    "Table",
    "Tuning",
    "__build__",
    "__version__",
    "bundled",
    "open",
    "run",
    "sweep",
    "tune",
]
