# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot of the kernel."""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import time

from errors import Failed
from leftovers import RUN, own
from places import CACHE


def boot(build, tree, texts, binaries, seed, limit, real_time, keep):
    """Boots once; what the guest ended with, the files that it left, and seconds of wall and of CPU time."""
    with own(CACHE, RUN, keep) as work:
        (work / "in").mkdir()
        (work / "out").mkdir()
        (work / "root").symlink_to(tree)
        for key, value in texts.items():
            (work / "in" / key).write_text(value)
        for key, path in binaries.items():
            shutil.copy(path, work / "in" / key)
        # Nothing of this machine, and nothing of the place of the run, is in arguments or environment: the kernel mixes
        # its command line into its randomness.
        words = ["linux", "mem=1G", "root=/dev/root", "rootfstype=hostfs", "rootflags=/root", "hostfs=.", "rw",
                 "init=/init", "umid=incast", "con=null", "con0=null,fd:1", "random.trust_cpu=on", "panic=-1",
                 "oops=panic", "loglevel=4", "log_buf_len=4M"]
        environment = {"HOME": ".", "LD_PRELOAD": str(build / "host.so"),
                       "TMPDIR": memory_folder()}
        if not real_time:
            words += ["time-travel=inf-cpu", "time-travel-start=1767225600000000000"]
        if seed is not None:
            words.append(f"seed={seed}")
            environment["RIG_SEED"] = str(seed)
        start, used = time.monotonic(), cpu_seconds()
        with open(work / "boot.txt", "wb") as log:
            process = subprocess.Popen(["setarch", "x86_64", "-R", build / "linux", *words[1:]], cwd=work,
                                       env={"PATH": "/usr/bin:/bin", **environment}, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=die_with_parent)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                raise Failed(f"still running after {limit} s of wall time\n" + tail(work / "boot.txt")) from None
            finally:
                end_group(process)
        seconds = time.monotonic() - start, cpu_seconds() - used
        status = work / "out/status"
        if not status.exists():
            raise Failed("the kernel ended before its first process\n" + tail(work / "boot.txt")
                         + tail(work / "out/console.txt"))
        code = int(status.read_text())
        files = {path.name: path.read_bytes() for path in sorted((work / "out").iterdir()) if path.name != "status"}
        return code, files, seconds


def memory_folder():
    """Where the guest's memory is a file: in memory if there is room, which containers may not have."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return "/tmp"
    return "/dev/shm" if room.f_bavail * room.f_frsize > 1 << 30 else "/tmp"


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end_group(process):
    """Ends what is left of a kernel: its processes are in a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            continue


def tail(path):
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").strip().splitlines()[-15:]) + "\n"
