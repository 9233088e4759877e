#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plays a plan of flows on hosts of one user-mode Linux kernel whose time is virtual.

usage: rig.py RIG.json FOLDER [--kasan [--probe]] [--real-time] [--module FILE.ko] [--emulated [--form edt|qdisc]]
              [--keep] [--wall-limit SECONDS]
       rig.py --fingerprint [--kasan] [--module FILE.ko] [--emulated]

RIG.json is described in README.md. FOLDER gets FLOWS.csv, queue.csv, raw counters (tc-*.json, nstat-*.txt, link-*.json),
uname.txt, srcversion.txt, dmesg.txt, trace.txt if the kernel traced, and result.json with a digest of all of these.
--fingerprint prints a hash of all that a result depends on besides RIG.json and the files that it names.
Exit codes: 0 played; 1 something failed; 2 bad input; 3 what it needs is not on this machine; 4 played, but flows were
not done at the deadline: the results are complete.
"""

import argparse
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
from errors import BadInput, Failed, Missing  # noqa: E402
from outcome import UNFINISHED  # noqa: E402
from play import fingerprint, machine_of, play  # noqa: E402


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rig", type=pathlib.Path, metavar="RIG.json", nargs="?")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", nargs="?")
    parser.add_argument("--fingerprint", action="store_true", help="what a result depends on besides its input")
    parser.add_argument("--kasan", action="store_true", help="a kernel that checks every access of memory")
    parser.add_argument("--real-time", action="store_true", help="let time pass as on the host")
    parser.add_argument("--module", type=pathlib.Path, metavar="FILE.ko", help="this build of tcp_marimo")
    parser.add_argument("--probe", action="store_true", help="with --kasan: show that the kernel checks its memory")
    parser.add_argument("--emulated", action="store_true",
                        help="Debian's newest kernel in an emulated machine, for what user-mode Linux lacks")
    parser.add_argument("--form", choices=["edt", "qdisc"], default="edt", help="of On-Ramp, with --emulated")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    parser.add_argument("--wall-limit", type=int, default=600, metavar="SECONDS")
    arguments = parser.parse_args(words)
    if arguments.fingerprint != (arguments.rig is None) or arguments.fingerprint != (arguments.folder is None):
        parser.error("RIG.json and FOLDER, or --fingerprint without them")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if arguments.module and not arguments.module.is_file():
            raise BadInput(f"--module: there is no file {arguments.module}")
        if arguments.fingerprint:
            print(fingerprint(machine_of(arguments)))
            return 0
        result = play(arguments)
    except BadInput as error:
        print(f"rig.py: {error}", file=sys.stderr)
        return 2
    except Missing as error:
        print(f"rig.py: {error}", file=sys.stderr)
        return 3
    except Failed as error:
        print(f"rig.py: {error}", file=sys.stderr)
        return 1
    print(f"{result['packets']} packets in {result['wall_seconds']} s ({result['cpu_seconds']} s of CPU), "
          f"digest {result['digest'][:16]}")
    if result["outcome"] == "unfinished":
        print(f"rig.py: {result['unfinished']} flows were not done after {result['deadline_s']} s", file=sys.stderr)
        return UNFINISHED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
