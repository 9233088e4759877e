# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kernel, and the modules that are compiled for it."""

import hashlib
import pathlib
import shutil
import subprocess

from cache import digest_of, once, used
from command import output
from errors import Failed, Missing
from places import CACHE, HERE, ROOT

MODULE = ROOT / "deploy/linux/tcp_marimo"


def kernel(kasan):
    lines = output([HERE / "build.sh", *(["--kasan"] if kasan else [])]).strip().splitlines()
    build = pathlib.Path(lines[-1])
    used(build)
    return build


def module(build):
    """tcp_marimo, compiled for the kernel in `build`."""
    sources, headers = module_sources()

    def make(work):
        # The same places relative to each other, so that includes work.
        for path in [*sources, *headers]:
            to = work / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
        where = work / MODULE.relative_to(ROOT)
        log = subprocess.run(["make", "-C", build, f"M={where}", "ARCH=um", "modules"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if log.returncode != 0 or not (where / "tcp_marimo.ko").exists():
            raise Failed(f"tcp_marimo does not build for user-mode Linux\n{log.stdout}")
        shutil.copy(where / "tcp_marimo.ko", work / "tcp_marimo.ko")

    return once(CACHE / f"module-{module_stamp(build)}", make) / "tcp_marimo.ko"


def module_stamp(build):
    sources, headers = module_sources()
    return hashlib.sha256((digest_of([*sources, *headers]) + build.name).encode()).hexdigest()[:16]


def module_sources():
    """The files of the module itself, and those that it includes."""
    if not MODULE.is_dir():
        raise Missing(f"there is no {MODULE.relative_to(ROOT)}")
    headers = [*MODULE.parent.glob("*.h"), *(ROOT / "deploy/core").glob("marimo*")]
    sources = [path for path in sorted(MODULE.rglob("*")) if path.is_file() and "test" not in path.parts]
    sources = [path for path in sources if path.suffix in (".c", ".h") or path.name in ("Kbuild", "Makefile")]
    return sources, sorted(headers)


def probe(build):
    """A module that reads beyond its memory, compiled for the kernel in `build`."""
    sources = sorted((HERE / "probe").iterdir())
    stamp = hashlib.sha256((digest_of(sources) + build.name).encode()).hexdigest()[:16]

    def make(work):
        for path in sources:
            shutil.copy(path, work)
        log = subprocess.run(["make", "-C", build, f"M={work}", "ARCH=um", "modules"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if log.returncode != 0:
            raise Failed(f"the probe does not build\n{log.stdout}")

    return once(CACHE / f"probe-{stamp}", make) / "probe.ko"
