"""Running scenarios."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from . import _incast, _progress
from ._errors import RunError, RunWarning, ScenarioWarning, in_python
from ._results import Results
from ._scenario import Only, Scenario, conditions
from ._scenario import scenario as _scenario
from ._storage import Store, Temporary, is_url


def run(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    only: Only = None,
    jobs: int | None = None,
    threads: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    run_timeout: float | None = None,
    progress: bool | _progress.Progress | None = None,
) -> Results:
    """Runs a scenario, as ``incast run`` does, and returns its results.

    Other threads of Python go on meanwhile. Ctrl-C, or a notebook's stop, ends it within a second; runs that are finished
    by then are kept in ``out``. What cannot be stopped in that time, as the making of very many flows, ends by itself behind
    it; until then the folder is in use.

    Args:
        scenario: a scenario, or what one is made of.
        out: folder of all results, in which the scenario gets one of its name; or a URL that fsspec knows, such as
            ``s3://bucket/results``. Default: a temporary folder that is removed with the returned object.
        seeds: so many seeds, the scenario's first ones, continued upwards.
        only: which runs: ``{"scheme": "marimo", "workload.background.load": 0.4}``, or texts as ``--only`` has them.
        jobs: runs at once. Default: cores / threads.
        threads: threads of each simulation. Results do not depend on it.
        resume: keep the finished runs of an earlier call or command.
        overwrite: remove results that ``out`` holds.
        run_timeout: a run that takes longer, in seconds, has failed; the others go on.
        progress: ``True`` or ``False``; or a function of the part that is done, from 0 to 1, and a line of text. Default:
            shown in terminals and notebooks.

    Raises:
        ScenarioError: the scenario cannot be simulated.
        BusyError: another process or thread writes to the same folder.
        RunError: nothing was started, every run failed, or the results could not be written.

    Warns:
        ScenarioWarning: what to look at before the results are trusted.
        RunWarning: some runs failed; the others are in the results.
    """
    scenario = _scenario(scenario)
    if resume and overwrite:
        raise ValueError("found resume and overwrite, allowed is one of them")
    seeds, jobs, threads = count("seeds", seeds), count("jobs", jobs), count("threads", threads) or 1
    check_timeout(run_timeout)
    for warning in scenario.warnings:
        warnings.warn(f"{scenario.name}: {warning}", ScenarioWarning, stacklevel=2)
    if is_url(out):
        store, keep = Store(out, write=True), Temporary()
    else:
        store, keep = None, Temporary() if out is None else None
    if store and keep and not overwrite:
        store.fetch(scenario.name, Path(keep.folder))
    show, done = _progress.reporter(progress)
    try:
        with store.behind(keep) if store and keep else nullcontext():
            text = _incast.run(
                scenario._inner,
                out=keep.folder if keep else os.fspath(out or "."),
                seeds=seeds,
                only=conditions(only),
                runs=None,
                jobs=jobs,
                threads=threads,
                existing="resume" if resume else "overwrite" if overwrite else "refuse",
                run_timeout=run_timeout,
                progress=show,
                stop=_incast.Stop(),
            )
    except KeyboardInterrupt:
        if store and keep and not overwrite:
            store.push_or_keep(scenario.name, keep)
        raise
    finally:
        done()
    if store and keep:
        if overwrite:
            store.remove(scenario.name)
        store.push_or_keep(scenario.name, keep)
    return outcome(scenario.name, json.loads(text), keep)


def count(name: str, number: int | None) -> int | None:
    """A number of something, as an int."""
    try:
        whole = None if number is None else operator.index(number)
    except TypeError:
        whole = 0
    if whole is not None and whole < 1:
        raise ValueError(f"{name}: found {number!r}, allowed is a whole number from 1")
    return whole


def check_timeout(run_timeout: float | None) -> None:
    """Refuses what is no time that runs may take."""
    if run_timeout is not None and not 0 < run_timeout < 1e9:
        raise ValueError(f"run_timeout: found {run_timeout!r}, allowed are seconds above 0")


def outcome(name: str, finished: dict[str, Any], keep: object | None) -> Results:
    """The results of runs that have ended, if any of them went well."""
    failures = [f"{run}: {in_python(why)}" for run, why in finished["failures"]]
    if failures and not finished["done"]:
        raise RunError("every run failed:\n" + "\n".join(failures))
    for failure in failures:
        warnings.warn(f"{name}/{failure}", RunWarning, stacklevel=3)
    return Results(finished["folder"], _keep=keep)
