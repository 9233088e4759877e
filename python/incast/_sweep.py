"""A scenario at many points."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from . import _incast, _progress
from ._errors import BusyError, Error, ResultsError, RunError, RunWarning, ScenarioWarning
from ._results import Results
from ._run import check_timeout, count, outcome
from ._scenario import Only, Scenario, conditions, to_json
from ._scenario import scenario as _scenario
from ._storage import Store, Temporary, is_url

Axes = Mapping[str, Sequence[Any]]

# What says which folders are a sweep's ends in this, and begins with the scenario's name.
SWEEP = ".sweep.json"


class Sweep(Results):
    """Results of a scenario at many points: each in a folder of its own, all in the same tables.

    Attributes:
        results: the results of each point that has any, in the order of the points.
        errors: points of which every run failed, with the exception.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        results: Sequence[tuple[dict[str, Any], Results]],
        errors: Sequence[tuple[dict[str, Any], Error]] = (),
        *,
        _name: str | None = None,
        _keep: object | None = None,
    ):
        super().__init__(folder, _keep=_keep)
        self._name = _name
        self.results = list(results)
        self.errors = list(errors)

    @cached_property
    def _facts(self) -> dict[str, Any]:
        if not self.results:
            raise ResultsError("every point of the sweep failed")
        all_facts = [(point, results._facts) for point, results in self.results]
        merged = dict(all_facts[0][1])
        merged["name"] = self._name or merged["name"]

        def at(point: dict[str, Any], items: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{**item, "grid": {**item["grid"], **point}} for item in items]

        for key in ("schemes", "classes"):
            merged[key] = list(dict.fromkeys(name for _, facts in all_facts for name in facts[key]))
        for key in ("rows", "runs", "claims"):
            merged[key] = [item for point, facts in all_facts for item in at(point, facts[key])]
        merged["failed"] = [item for _, facts in all_facts for item in facts["failed"]]
        merged["points"] = [{**own, **point} for point, facts in all_facts for own in facts["points"]]
        titles = (", ".join(f"{key} = {value}" for key, value in point.items()) for point, _ in all_facts)
        verdicts = zip(titles, (facts["verdict"] for _, facts in all_facts), strict=True)
        merged["verdict"] = "\n".join(f"{title}\n{verdict}" if title else verdict for title, verdict in verdicts)
        return merged

    def at(self, point: Mapping[str, Any] | None) -> tuple[Results, dict[str, Any]]:
        """See ``Results.at``: the results of one point of the sweep."""
        super().at(point)
        wanted = {**self.points[0], **self._by_axis(point)}
        for its_point, results in self.results:
            own = {axis: value for axis, value in wanted.items() if axis not in its_point}
            if all(wanted[axis] == value for axis, value in its_point.items()):
                return results.at(own)
        raise ResultsError("every run at this point failed")

    def __repr__(self) -> str:
        axes = ", ".join(dict.fromkeys(axis for point, _ in self.results for axis in point))
        failed = f", {len(self.errors)} failed" if self.errors else ""
        name = f" {self.name}" if self.results else ""
        return f"<incast.Sweep{name}: {len(self.results)} points of {axes or 'no axis'}{failed}, {len(self.runs)} runs in {self.folder}>"

    def _write(self, name: str) -> None:
        """Says in its folder which folders are its points, so that ``incast.open`` finds them."""
        named = [[point, results.folder.name] for point, results in self.results]
        text = json.dumps({"points": named, "failed": [[point, str(error)] for point, error in self.errors]}, indent=1)
        part = self.folder / f".{name}{SWEEP}.{uuid.uuid4().hex}"
        try:
            part.write_text(text + "\n")
            part.replace(self.folder / f"{name}{SWEEP}")
        except OSError as why:
            # Its results are there.
            warnings.warn(f"{name}{SWEEP}: cannot be written: {why}", RunWarning, stacklevel=3)
        finally:
            part.unlink(missing_ok=True)

    @staticmethod
    def _read(file: Path) -> Sweep:
        """The sweep that was written so."""
        try:
            facts = json.loads(file.read_text())
            results = [(point, Results(file.parent / name)) for point, name in facts["points"]]
            errors: list[tuple[dict[str, Any], Error]] = [(point, RunError(why)) for point, why in facts["failed"]]
        except (OSError, ValueError, KeyError, TypeError) as why:
            raise ResultsError(f"{file}: cannot be read: {why}") from why
        return Sweep(file.parent, results, errors, _name=file.name.removesuffix(SWEEP))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._keep is not None:
            super().__reduce__()
        return partial(Sweep, _name=self._name), (self.folder, self.results, self.errors)

    def _folders(self) -> list[tuple[os.PathLike[str], str]]:
        return [(results.folder, json.dumps(point)) for point, results in self.results]


def points(grid: Axes | None, zip: Axes | Sequence[Axes] | None) -> list[dict[str, Any]]:  # noqa: A002
    """All combinations: axes of ``zip`` advance together, those of ``grid`` each by itself, the first slowest.

    Raises:
        ValueError: an axis without values or given twice, or axes of ``zip`` of different lengths.
    """
    groups: list[list[dict[str, Any]]] = []
    tables = [] if zip is None else [zip] if isinstance(zip, Mapping) else list(zip)
    for axis, values in [pair for table in [grid or {}, *tables] for pair in table.items()]:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ValueError(f"{axis}: found {values!r}, allowed is a list of values")
    for table in tables:
        lengths = {axis: len(values) for axis, values in table.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"zip: found lists of {lengths}, allowed are lists of one length")
        count = next(iter(lengths.values()), 0)
        groups.append([{axis: table[axis][place] for axis in table} for place in range(count)])
    for axis, values in (grid or {}).items():
        groups.append([{axis: value} for value in values])
    axes = [axis for group in groups for axis in (group[0] if group else {})]
    if any(not group for group in groups):
        raise ValueError("found an axis without values, allowed is at least one")
    if twice := {axis for axis in axes if axes.count(axis) > 1}:
        raise ValueError(f"found {twice.pop()} twice, allowed is once")
    return [{key: value for part in parts for key, value in part.items()} for parts in itertools.product(*groups)]


def sweep(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    grid: Axes | None = None,
    *,
    zip: Axes | Sequence[Axes] | None = None,  # noqa: A002
    out: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    only: Only = None,
    jobs: int | None = None,
    threads: int = 1,
    run_timeout: float | None = None,
    executor: Literal["ray"] | None = None,
    progress: bool | _progress.Progress | None = None,
) -> Sweep:
    """Runs a scenario at every point of a grid, on all cores or on a cluster.

    A point is a scenario of its own, in the folder ``NAME-ID`` of ``out``, where the id is of the scenario's hash and of the
    version of incast. So a second sweep does no run again that is there, whatever its grid is; and what was interrupted goes
    on. Each folder is one that ``incast run`` could have written. ``incast.open(out)`` opens the sweep again, by
    ``NAME.sweep.json``, where ``out`` is no URL.

    Args:
        scenario: a scenario, or what one is made of.
        grid: paths of keys, each with its values: ``{"switch.ecn.at": ["0.1bdp", "1bdp"]}``. Every combination is run.
        zip: the same, where the lists advance together; or several such.
        out: folder of all results; or a URL that fsspec knows, such as ``s3://bucket/results``. Default: a temporary folder
            that is removed with the returned object.
        seeds: so many seeds of each, the scenario's first ones, continued upwards.
        only: which runs of each; see ``run``.
        jobs: runs at once. Default: cores / threads.
        threads: threads of each simulation.
        run_timeout: a run that takes longer, in seconds, has failed; the others go on.
        executor: ``"ray"`` runs on the Ray cluster that there is (``ray.init()`` or ``RAY_ADDRESS``), or else on one that is
            started on this machine. What its nodes lose is tried again; ``jobs`` is the number of its tasks at once.
        progress: as for ``run``.

    Raises:
        ScenarioError: the scenario cannot be simulated at some point; nothing was started.
        ValueError: axes that are no grid.
        RunError: every run failed.

    Warns:
        ScenarioWarning: what to look at before the results are trusted.
        RunWarning: some runs failed; the others are in the results.
    """
    scenario = _scenario(scenario)
    seeds, jobs, threads = count("seeds", seeds), count("jobs", jobs), count("threads", threads) or 1
    check_timeout(run_timeout)
    if executor not in (None, "ray"):
        raise ValueError(f"executor: found {executor!r}, allowed is 'ray' or None")
    if twice := [axis for axis in [*(grid or {}), *_axes(zip)] if axis in scenario.axes]:
        raise ValueError(f"found {twice[0]}, which the scenario's own grid varies; allowed are other axes")
    all_points = [json.loads(to_json(point, "")) for point in points(grid, zip)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        scenarios = list(pool.map(lambda point: _at(scenario, point), all_points))
    for warning in dict.fromkeys(warning for one in scenarios for warning in one.warnings):
        warnings.warn(f"{scenario.name}: {warning}", ScenarioWarning, stacklevel=2)
    store = Store(out, write=True) if is_url(out) else None
    keep = Temporary() if out is None or store else None
    folder = Path(keep.folder if keep else out or ".")
    results: dict[str, Results] = {}
    errors: dict[str, Error] = {}
    # Points that come to the same are done once.
    distinct = {of.name: of for of in scenarios}

    def fetch(name: str) -> None:
        if store:
            store.fetch(name, folder)

    def joined(name: str, found: dict[str, Any] | Error) -> None:
        try:
            if isinstance(found, Error):
                raise found
            if store and keep:
                store.push_or_keep(name, keep)
            results[name] = outcome(name, found, keep)
        except Error as error:
            errors[name] = error

    how = {"seeds": seeds, "only": only, "jobs": jobs, "threads": threads, "run_timeout": run_timeout}
    show, done = _progress.reporter(progress)
    try:
        if executor == "ray":
            from ._ray import Driver

            with ThreadPoolExecutor(8) as pool:
                list(pool.map(fetch, distinct if store else []))
            Driver(distinct, folder, show=show, joined=joined, **how).run()
        else:
            _local(distinct, folder, show=show, fetch=fetch, joined=joined, **how)
    except KeyboardInterrupt:
        for name in distinct:
            if store and keep and name not in results and (folder / name).is_dir():
                store.push_or_keep(name, keep)
        raise
    finally:
        done()
    for name, error in errors.items():
        warnings.warn(f"{name}: {error}", RunWarning, stacklevel=2)
    if not results:
        raise RunError("\n".join(str(error) for error in errors.values()))
    named = [(point, of.name) for point, of in _pairs(all_points, scenarios)]
    found = [(point, results[name]) for point, name in named if name in results]
    swept = Sweep(folder, found, [(point, errors[name]) for point, name in named if name in errors], _name=scenario.name, _keep=keep)
    if not keep:
        swept._write(scenario.name)
    return swept


def _local(
    scenarios: dict[str, Scenario],
    folder: Path,
    *,
    seeds: int | None,
    only: Only,
    jobs: int | None,
    threads: int,
    run_timeout: float | None,
    show: _progress.Progress | None,
    fetch: Callable[[str], None],
    joined: Callable[[str, dict[str, Any] | Error], None],
) -> None:
    """Runs scenarios on the cores of this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    at_once = jobs or max(1, cores // threads)
    # Few points have runs to share the cores; the runs of many points follow one another.
    share = -(-at_once // len(scenarios))
    stop = _incast.Stop()

    def one(of: Scenario) -> dict[str, Any]:
        fetch(of.name)
        while True:
            try:
                text = _incast.run(
                    of._inner,
                    out=folder,
                    seeds=seeds,
                    only=conditions(only),
                    runs=None,
                    jobs=share,
                    threads=threads,
                    existing="resume",
                    run_timeout=run_timeout,
                    progress=None,
                    stop=stop,
                )
                return json.loads(text)
            except BusyError:
                # Another sweep does the same point: what it finishes need not be done again.
                if stop.is_set():
                    raise
                time.sleep(0.1)

    def finish(future: Future[dict[str, Any]], name: str) -> None:
        try:
            joined(name, future.result())
        except Error as error:
            joined(name, error)

    started = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        waiting: dict[Future[dict[str, Any]], str] = {pool.submit(one, of): name for name, of in scenarios.items()}
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    finish(future, waiting.pop(future))
                if show:
                    ended = len(scenarios) - len(waiting)
                    line = f"{ended}/{len(scenarios)} points" + _progress.pace(ended, len(scenarios), time.monotonic() - started)
                    show(ended / len(scenarios), line)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


# `zip` is an argument's name here.
_pairs = zip


def _axes(zipped: Axes | Sequence[Axes] | None) -> list[str]:
    tables = [] if zipped is None else [zipped] if isinstance(zipped, Mapping) else zipped
    return [axis for table in tables for axis in table]


def _at(scenario: Scenario, point: dict[str, Any]) -> Scenario:
    """The scenario at a point, named by what it comes to."""
    changed = scenario.with_(point) if point else scenario
    identity = hashlib.sha256(f"{changed.hash} {_incast.version}".encode()).hexdigest()[:12]
    # A name has at most 100 characters.
    return changed._renamed(f"{scenario.name[:87]}-{identity}")
