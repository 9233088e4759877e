# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is made once and kept: a folder for each, with what it is made of in its name."""

import contextlib
import hashlib
import os
import shutil
import time

from leftovers import MAKING, own

# How many kernels, modules and guests stay, and for how many seconds each does after its last use.
KEPT, KEPT_FOR = 4, 6 * 3600


def once(target, make):
    """`target`, made by `make` in a folder beside it unless it is there."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with own(target.parent, MAKING) as work:
            try:
                make(work)
                os.rename(work, target)
            except OSError:
                if not target.exists():
                    raise
    used(target)
    return target


def used(folder):
    """Notes that a folder of the cache is in use, and drops those of its kind that have not been for long."""
    os.utime(folder)
    kind = folder.name.rpartition("-")[0]
    ages = []
    for path in folder.parent.glob(f"{kind}-*"):
        # Another run may be dropping it, too.
        with contextlib.suppress(FileNotFoundError):
            if path.name.rpartition("-")[0] == kind:
                ages.append((time.time() - path.stat().st_mtime, path))
    for age, path in sorted(ages)[KEPT:]:
        if age > KEPT_FOR:
            if path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)


def digest_of(paths):
    """Of the content of files, with their names."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return total.hexdigest()
