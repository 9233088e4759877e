"""Searching for settings."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _incast, _progress
from ._errors import Error, RunWarning, ScenarioWarning
from ._results import Results
from ._run import check_timeout, count
from ._scenario import Only, Scenario, conditions
from ._scenario import scenario as _scenario
from ._storage import Temporary

# Seconds that an interrupted search waits for what the cluster is doing.
PATIENCE = 30.0


class Tuning(Results):
    """What a search found, and the results of all its runs.

    Attributes:
        found: what ``tune.json`` holds, a dict for each scheme in ``found["schemes"]``.
        scenarios: files of scenarios with the settings that were found; none where nothing helps.
    """

    def __init__(
        self, folder: str | os.PathLike[str], found: dict[str, Any], scenarios: Sequence[str], *, _keep: object | None = None
    ):
        super().__init__(folder, _keep=_keep)
        self.found = found
        self.scenarios = [Path(path) for path in scenarios]

    @property
    def advised(self) -> dict[str, dict[str, Any]]:
        """The settings to use, by scheme: those from which the search started where nothing helps."""
        return {scheme["scheme"]: scheme["advised"] for scheme in self.found["schemes"]}

    def __str__(self) -> str:
        return "\n".join(
            "\n".join([f"{scheme['scheme']}: {self.found['subject']}", *(f"  {line}" for line in scheme["said"])])
            for scheme in self.found["schemes"]
        )


def tune(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    objective: str,
    over: Mapping[str, str | Sequence[Any]],
    *,
    within: Mapping[str, str] | None = None,
    schemes: Sequence[str] = (),
    budget: int = 60,
    vary: float = 0.2,
    only: Only = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    threads: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    run_timeout: float | None = None,
    progress: bool | _progress.Progress | None = None,
    executor: Literal["ray"] | None = None,
) -> Tuning:
    """Searches for the values of a few keys that are best in one number, as ``incast tune`` does.

    Args:
        scenario: a scenario, or what one is made of; the search starts from its values.
        objective: the number that is to be good, as ``"class:metric"``, or a metric of all flows.
        over: one to five keys, each with a range such as ``"0.02..0.5"`` or ``"10KB..200KB"``, or a list of values.
        within: numbers that may get worse by so much: ``{"incast:fct_us.p99": "+10%"}``.
        schemes: which schemes, each on its own. Default: those of the keys, or all.
        budget: full runs that each scheme may cost.
        vary: by which part load, buffer and round trip are varied at the end; 0 for not at all.
        only: which grid point.
        out: folder of all results, in which the search gets one of its name. Default: a temporary folder that is removed
            with the returned object.
        jobs: runs at once. Default: cores / threads.
        threads: threads of each simulation. Results do not depend on it.
        resume: keep the finished runs of an earlier call or command.
        overwrite: remove results that ``out`` holds.
        run_timeout: a run that takes longer, in seconds, has failed.
        progress: ``True`` or ``False``; or a function of the part that is done of the runs that go on, from 0 to 1, and a
            line of text. Default: shown in terminals and notebooks.
        executor: ``"ray"`` has the runs done on a Ray cluster, as ``incast.sweep`` does, a batch of the search at a time. The first run,
            and what the cluster does not do, are done here.

    Raises:
        Error: a range or list that is none.
        ScenarioError: the scenario cannot be simulated.
        RunError: the question has a mistake, or the results could not be written.
    """
    scenario = _scenario(scenario)
    if resume and overwrite:
        raise ValueError("found resume and overwrite, allowed is one of them")
    if executor not in (None, "ray"):
        raise ValueError(f"executor: found {executor!r}, allowed is 'ray' or None")
    if not 0 <= vary < 1:
        raise ValueError(f"vary: found {vary!r}, allowed is a part from 0 to below 1")
    for key, values in over.items():
        if isinstance(values, str) and ".." not in values and "," not in values:
            raise Error(f'over: {key}: found {values!r}, allowed is a range such as "0.02..0.5", or a list of values')
    for number, part in (within or {}).items():
        if not isinstance(part, str):
            raise Error(f'within: {number}: found {part!r}, allowed is a part such as "+5%"')
    check_timeout(run_timeout)
    for warning in scenario.warnings:
        warnings.warn(f"{scenario.name}: {warning}", ScenarioWarning, stacklevel=2)
    keep = Temporary() if out is None else None
    if executor:
        from ._ray import connect

        connect()
    folder = Path(keep.folder if keep else os.fspath(out or "."))
    show, done = _progress.reporter(progress)
    stop = _incast.Stop()
    cluster = _Cluster(scenario, folder, stop, show, jobs=jobs, threads=threads, run_timeout=run_timeout) if executor else None
    try:
        text = _incast.tune(
            scenario._inner,
            objective=objective,
            over=[(key, json.dumps(values if isinstance(values, str) else list(values))) for key, values in over.items()],
            within=[f"{number}={part}" for number, part in (within or {}).items()],
            schemes=[schemes] if isinstance(schemes, str) else list(schemes),
            budget=count("budget", budget) or 1,
            vary=vary,
            only=conditions(only),
            out=folder,
            jobs=count("jobs", jobs),
            threads=count("threads", threads) or 1,
            existing="resume" if resume else "overwrite" if overwrite else "refuse",
            run_timeout=run_timeout,
            # What runs elsewhere is shown by what runs it.
            progress=None if cluster else show,
            stop=stop,
            elsewhere=cluster,
        )
    except BaseException:
        if cluster:
            cluster.end()
        raise
    finally:
        done()
    finished = json.loads(text)
    return Tuning(finished["folder"], finished["found"], finished["scenarios"], _keep=keep)


class _Cluster:
    """Does runs of a search on a Ray cluster."""

    def __init__(self, scenario: Scenario, folder: Path, stop: _incast.Stop, show: _progress.Progress | None, **how: Any):
        self.scenario, self.folder, self.stop, self.show, self.how = scenario, folder, stop, show, how
        self.made: dict[str, _incast.Scenario] = {}
        self.busy = threading.Lock()
        # It has lost a whole batch: what is left is done here.
        self.is_given_up = False

    def __call__(self, sets: list[tuple[str, str]], name: str, seeds: list[int], runs: list[str]) -> None:
        """Does runs, by their folders, of what the values in ``sets`` make of the scenario.

        Raises:
            Error: they cannot be done; what is done is in the results.
        """
        from ._ray import Driver, Part

        def joined(name: str, found: dict[str, Any] | Error) -> None:
            if isinstance(found, Error):
                raise found
            for run, why in list(found["lost"].items())[:1]:
                self.is_given_up = len(found["lost"]) == len(runs)
                rest = ", and so is the rest of the search" if self.is_given_up else ""
                warnings.warn(f"{name}/{run}: {why}; it is done here{rest}", RunWarning, stacklevel=2)

        with self.busy:
            if self.stop.is_set() or self.is_given_up:
                return
            if name not in self.made:
                self.made[name] = self.scenario._inner.possible(sets, name, seeds)
            part = Part((sets, name, seeds), self.made[name], runs)
            only = {"seeds": None, "only": None, "show": self.show, "joined": joined}
            Driver({name: self.scenario}, self.folder, part=part, stop=self.stop, **only, **self.how).run()

    def end(self) -> None:
        """Has what runs cancelled, and waits until what is done is in the results."""
        self.stop.set()
        if self.busy.acquire(timeout=PATIENCE):
            self.busy.release()
