"""Where results are, if not in a folder of somebody's own: in a temporary one, or behind a URL that fsspec knows."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard

from ._errors import Error, ResultsError, RunError, ScenarioError


def is_url(out: str | os.PathLike[str] | None) -> TypeGuard[str]:
    """Whether results are behind a URL, not in a folder."""
    return isinstance(out, str) and "://" in out


# An object that is written and removed.
PROBE = ".incast-probe"


class Store:
    """Folders of scenarios' results behind a URL.

    An object store renames nothing and shows each object whole. So a run's ``run.json`` is written last: a run without it is
    not there.
    """

    def __init__(self, url: str, *, write: bool = False):
        try:
            import fsspec  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise RunError(f"{url}: it takes fsspec: pip install 'incast[remote]'") from missing
        self.url = url.rstrip("/")
        with self._named():
            self._files, root = fsspec.core.url_to_fs(self.url)
            self._root = str(root).rstrip("/")
            # What cannot be reached, or not be written, is known before anything runs.
            if write:
                self._files.makedirs(self._root, exist_ok=True)
                self._put(PROBE, b"")
                self._files.rm_file(f"{self._root}/{PROBE}")
            else:
                self._files.exists(self._root)
        # Records that are there, by their place: those that were fetched.
        self._records: dict[str, bytes] = {}

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Whatever fsspec or a library below it raises, as an error that names the URL."""
        try:
            yield
        except Error:
            raise
        except Exception as why:
            raise RunError(f"{self.url}: {type(why).__name__}: {why}") from why

    def _runs(self, name: str) -> list[str]:
        """Names of the runs of a scenario that are there."""
        found: list[Any] = self._files.glob(f"{self._root}/{name}/*/run.json")
        return [str(path).split("/")[-2] for path in found]

    def fetch(self, name: str, folder: Path) -> None:
        """Copies a scenario's runs and summary into ``folder``, where they are not there."""
        with self._named():
            self._files.invalidate_cache()
            for run in self._runs(name):
                self._fetch_folder(f"{name}/{run}", folder, last="run.json")
                self._records[f"{name}/{run}"] = (folder / name / run / "run.json").read_bytes()
            self._fetch_folder(name, folder, last="summary.json")

    def _fetch_folder(self, path: str, folder: Path, last: str) -> None:
        """Copies the files of one folder, ``last`` at the end."""
        if (folder / path / last).exists() or not self._files.isdir(f"{self._root}/{path}"):
            return
        entries = self._files.ls(f"{self._root}/{path}", detail=True)
        names = [str(entry["name"]).split("/")[-1] for entry in entries if entry["type"] == "file"]
        for file in sorted(names, key=lambda file: file == last):
            place = folder / path / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.with_name(file + ".tmp").write_bytes(self._files.cat_file(f"{self._root}/{path}/{file}"))
            place.with_name(file + ".tmp").rename(place)

    def push(self, name: str, folder: Path) -> None:
        """Copies a scenario's runs that are not there, or that failed there, and its summary, which is written anew."""
        with self._named():
            for record in sorted(folder.glob(f"{name}/*/run.json")):
                place, content = f"{name}/{record.parent.name}", record.read_bytes()
                if self._records.get(place) == content:
                    continue
                if place in self._records:
                    # Until it is replaced it is not there.
                    self._files.rm_file(f"{self._root}/{place}/run.json")
                self._push_files(record.parent, place, last="run.json")
                self._records[place] = content
            self._push_files(folder / name, name, last="summary.json")

    def _push_files(self, folder: Path, path: str, last: str) -> None:
        """Writes the files of one folder, each whole, ``last`` at the end."""
        files = [file for file in folder.iterdir() if file.is_file() and file.suffix != ".tmp"]
        self._files.makedirs(f"{self._root}/{path}", exist_ok=True)
        for file in sorted(files, key=lambda file: (file.name == last, file.name)):
            self._put(f"{path}/{file.name}", file.read_bytes())

    def _put(self, path: str, content: bytes) -> None:
        """Writes a file whole."""
        self._files.pipe_file(f"{self._root}/{path}", content)

    def remove(self, name: str) -> None:
        """Removes a scenario's results."""
        with self._named():
            if self._files.exists(f"{self._root}/{name}"):
                self._files.rm(f"{self._root}/{name}", recursive=True)
            self._records = {place: content for place, content in self._records.items() if not place.startswith(f"{name}/")}

    @contextmanager
    def behind(self, keep: Temporary) -> Iterator[None]:
        """Errors of what happens in a temporary folder, with the URL in its place; what could not be written stays in it."""
        try:
            yield
        except ScenarioError:
            raise
        except Error as why:
            raise type(why)(str(why).replace(keep.folder, self.url)) from why

    def push_or_keep(self, name: str, keep: Temporary) -> None:
        """Like `push`; if that fails, the temporary folder stays and is named."""
        try:
            self.push(name, Path(keep.folder))
        except RunError as why:
            keep.stay()
            raise RunError(f"{why}; the results are in {keep.folder}/{name}") from why


def split(url: str) -> tuple[Store, str]:
    """The store that a scenario's results are in, and the scenario's name.

    Raises:
        ResultsError: the URL names no folder in another.
    """
    parent, _, name = url.rstrip("/").rpartition("/")
    if not name or parent.endswith(":/"):
        raise ResultsError(f"{url}: expected the URL of a scenario's results, such as s3://bucket/results/first-light")
    return Store(parent), name


class Temporary:
    """A temporary folder that goes with this object, in the process that made it."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="incast-")
        self._remover = weakref.finalize(self, _remove, self.folder, os.getpid())

    def stay(self) -> None:
        """It is not removed."""
        self._remover.detach()


def _remove(folder: str, made_in: int) -> None:
    # A forked child has a copy of this object, not a folder of its own.
    if os.getpid() == made_in:
        shutil.rmtree(folder, ignore_errors=True)
