# SPDX-License-Identifier: MIT OR Apache-2.0
"""The root of the guest: what it runs, from this machine."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from cache import digest_of, once
from command import output
from errors import Missing
from places import CACHE, HERE, ROOT

# Commands of the guest and where Debian has them.
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "nstat": "iproute2", "ethtool": "ethtool"}

APPLETS = ["sh", "mount", "mkdir", "cat", "echo", "dmesg", "poweroff", "uname", "insmod", "rmmod", "lsmod", "sleep", "cp"]


def guest():
    """The tree that is the root of the guest: busybox, iproute2, ethtool, rig-traffic and their libraries."""
    files = {"bin/busybox": program("busybox", "busybox-static"), "bin/rig-traffic": traffic(), "init": HERE / "init"}
    for command, package in PROGRAMS.items():
        files[f"bin/{command}"] = program(command, package)
    for path in list(files.values()):
        done = subprocess.run(["ldd", path], capture_output=True, text=True)
        for library in re.findall(r"(/\S+) \(0x", done.stdout):
            files[library.lstrip("/")] = pathlib.Path(os.path.realpath(library))
    stamp = digest_of([path for _, path in sorted(files.items())])
    stamp = hashlib.sha256((stamp + " ".join([*sorted(files), *APPLETS])).encode()).hexdigest()[:16]

    def make(work):
        for place, path in files.items():
            (work / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, work / place)
        for applet in APPLETS:
            (work / "bin" / applet).symlink_to("busybox")
        for folder in ("proc", "sys", "dev", "run", "tmp", "in", "out", "etc"):
            (work / folder).mkdir(exist_ok=True)
        (work / "init").chmod(0o755)

    return once(CACHE / f"guest-{stamp}", make)


def program(command, package):
    output([ROOT / "scripts/debian.sh", command, package, "a real kernel under virtual time"])
    found = shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin")
    if not found:
        raise Missing(f"there is no {command}")
    return pathlib.Path(os.path.realpath(found))


def traffic():
    """rig-traffic, linked statically."""
    given = os.environ.get("RIG_TRAFFIC")
    if given:
        return pathlib.Path(given)
    target = "x86_64-unknown-linux-gnu"
    # Where rigs/vm builds it in the same way.
    folder = ROOT / "target/rigs/traffic"
    environment = {**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(folder)}
    output([os.environ.get("CARGO", "cargo"), "build", "--quiet", "--release", "--locked", "-p", "rig-traffic",
            "--target", target], cwd=ROOT, env=environment)
    return folder / target / "release/rig-traffic"
