# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run, from RIG.json to result.json."""

import hashlib
import json

from emulated import Emulated
from cache import digest_of
from errors import BadInput, Failed
from leftovers import sweep
from outcome import outcome, packets, troubles, unfinished
from places import CACHE, HERE
from plan import flows_of
from scripts import scripts
from settings import settings_of
from usermode import UserMode

# Of the rig's own files, those that a result depends on besides what the kernel, its module and the guest are made of.
SOURCES = ["boot.py", "emulated.py", "host.c", "kernel.py", "network.py", "outcome.py", "plan.py", "play.py",
           "scripts.py", "settings.py", "usermode.py"]


def play(arguments):
    settings = settings_of(arguments.rig)
    machine = machine_of(arguments)
    machine.adapt(settings)
    plan, rows = flows_of(settings, arguments.rig.resolve().parent)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    controls = {settings["congestion"], settings["receiver_congestion"], *(row.get("congestion") or "" for row in rows)}
    CACHE.mkdir(parents=True, exist_ok=True)
    sweep(CACHE)
    binaries = machine.binaries("marimo" in controls)
    if "marimo" in controls and settings["table"]:
        binaries["marimo.table"] = arguments.rig.resolve().parent / settings["table"]
    texts = scripts(settings, plan, rows, "marimo" in controls)
    code, files, seconds = machine.boot(texts, binaries, settings["seed"])
    log = files["dmesg.txt"].decode(errors="replace").splitlines()
    trouble = troubles(log)
    total = hashlib.sha256()
    for key, value in files.items():
        total.update(f"{key}\0{len(value)}\0".encode() + value)
    if arguments.probe and not any("KASAN: slab-out-of-bounds in probe_init" in line for line in trouble):
        raise Failed("the kernel did not notice that the probe reads beyond its memory")
    result = {
        "digest": total.hexdigest(),
        "wall_seconds": round(seconds[0], 2),
        "cpu_seconds": round(seconds[1], 2),
        "kernel": machine.name,
        "fingerprint": fingerprint(machine),
        "packets": packets(files) if "tc-switch.json" in files else None,
        "status": code,
        "outcome": outcome(code, trouble and not arguments.probe),
        "unfinished": unfinished(files),
        "deadline_s": settings["deadline_s"],
        "log_trouble": trouble,
    }
    for key, value in files.items():
        (arguments.folder / key).write_bytes(value)
    (arguments.folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    if result["outcome"] == "broke":
        said = files.get("console.txt", b"").decode(errors="replace").strip().splitlines()[-5:]
        raise Failed("\n".join([f"the guest ended with {code}", *said, *trouble[:10]]))
    return result


def machine_of(arguments):
    """What the kernel runs on."""
    if arguments.form != "edt" and not arguments.emulated:
        raise BadInput(f"--form: found {arguments.form}, allowed is edt without --emulated")
    return Emulated(arguments) if arguments.emulated else UserMode(arguments)


def fingerprint(machine):
    """Of what a result depends on besides its input: kernel, module, guest and this program."""
    parts = [machine.stamp(), digest_of([HERE / name for name in SOURCES])]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
