# SPDX-License-Identifier: MIT OR Apache-2.0
"""Folders of the cache that belong to one process, and what processes that were killed left behind."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import sys
import tempfile

# What the folders are for: a run, or something that is on its way into the cache. Whoever made one holds its lock.
RUN, MAKING = "run-", "making-"


@contextlib.contextmanager
def own(cache, prefix, keep=False):
    """A new folder that no sweep takes while this process lives. At the end it goes; with `keep` it stays for good."""
    folder, lock = locked_folder(cache, "kept-" if keep else prefix)
    try:
        yield folder
    finally:
        if keep:
            print(f"kept {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def locked_folder(cache, prefix):
    while True:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
        # Until it is locked it looks like one that was left behind, and a sweep may take it.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def sweep(cache):
    """Deletes what no living process uses."""
    for prefix in (RUN, MAKING):
        for folder in cache.glob(f"{prefix}*"):
            with if_free(folder) as free:
                if free:
                    shutil.rmtree(folder, ignore_errors=True)
    # build.sh holds this lock for as long as it unpacks and compiles.
    with if_free(cache / "lock") as free:
        if free:
            sweep_kernels(cache)


def sweep_kernels(cache):
    """Deletes kernels that were never finished, and sources that no kernel is of: modules need them."""
    kernels = [folder for folder in cache.glob("kernel-*") if not folder.is_symlink()]
    for kernel in kernels:
        if not (kernel / "complete").exists():
            shutil.rmtree(kernel, ignore_errors=True)
    wanted = {(kernel / "source").resolve() for kernel in cache.glob("kernel-*")}
    for source in cache.glob("source-*"):
        if source.resolve() not in wanted:
            shutil.rmtree(source, ignore_errors=True)


@contextlib.contextmanager
def if_free(path):
    """Whether nobody holds the lock of a file or a folder; if so, it is held for the while."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except OSError:
        # It is gone, or another user's.
        yield False
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(lock)
