"""Results that are there."""

from __future__ import annotations

import os
from pathlib import Path

from ._errors import ResultsError
from ._results import Results
from ._storage import Temporary, is_url, split
from ._sweep import SWEEP, Sweep


def open(folder: str | os.PathLike[str]) -> Results:  # noqa: A001
    """The results in a folder, such as ``results/first-light``, or a sweep's: the folder that it was written to, or its
    ``NAME.sweep.json`` there. Read lazily.

    Those behind a URL, such as ``s3://bucket/results/first-light``, are copied to a temporary folder first.

    Raises:
        ResultsError: it holds none, or damaged ones, or several sweeps.
        RunError: the URL cannot be reached.
    """
    if is_url(folder):
        store, name = split(folder)
        keep = Temporary()
        store.fetch(name, Path(keep.folder))
        results = Results(os.path.join(keep.folder, name), _keep=keep)
        with store.behind(keep):
            results._facts
        return results
    path = Path(folder)
    sweeps = [path] if path.name.endswith(SWEEP) else sorted(path.glob(f"*{SWEEP}"))
    if len(sweeps) > 1:
        raise ResultsError(f"{path}: found several sweeps, open one: {', '.join(sweep.name for sweep in sweeps)}")
    results = Sweep._read(sweeps[0]) if sweeps else Results(path)
    results._facts
    return results
