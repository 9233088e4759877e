# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's newest kernel in an emulated machine whose clock counts instructions (rigs/vm/play.sh)."""

import shutil
import subprocess
import time

from boot import cpu_seconds, die_with_parent, end_group, tail
from command import output
from errors import BadInput, Failed
from leftovers import RUN, own
from places import CACHE, ROOT

PLAY = ROOT / "rigs/vm/play.sh"


class Emulated:
    name = "newest of Debian, emulated"

    def __init__(self, arguments):
        for key in ("kasan", "probe", "real_time", "module"):
            if getattr(arguments, key):
                raise BadInput(f"--{key.replace('_', '-')}: it is of user-mode Linux; found --emulated, too")
        self.arguments = arguments

    def stamp(self):
        return output([PLAY, "--fingerprint"]).strip().splitlines()[-1]

    def adapt(self, settings):
        # It keeps what is held; the wire is behind it.
        settings["host_queue"] = "fq"
        settings["form"] = self.arguments.form

    def binaries(self, _):
        # play.sh builds the module for its kernel.
        return {}

    def boot(self, texts, binaries, seed):
        """Boots once; what the guest ended with, the files that it left, and seconds of wall and of CPU time."""
        with own(CACHE, RUN, self.arguments.keep) as work:
            (work / "in").mkdir()
            for key, value in texts.items():
                (work / "in" / key).write_text(value)
            for key, path in binaries.items():
                shutil.copy(path, work / "in" / key)
            start, used = time.monotonic(), cpu_seconds()
            limit = self.arguments.wall_limit
            with open(work / "boot.txt", "wb") as log:
                process = subprocess.Popen([PLAY, work / "in", work / "out", str(seed or 0), str(limit)],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                           start_new_session=True, preexec_fn=die_with_parent)
                try:
                    ended = process.wait()
                finally:
                    end_group(process)
            seconds = time.monotonic() - start, cpu_seconds() - used
            status = work / "out/status"
            if ended != 0 or not status.exists():
                raise Failed("the machine did not come to its end\n" + tail(work / "boot.txt"))
            files = {path.name: path.read_bytes() for path in sorted((work / "out").iterdir())
                     if path.suffix in (".csv", ".json", ".txt")}
            return int(status.read_text()), files, seconds
