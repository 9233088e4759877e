#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plays a plan of flows on hosts of one user-mode Linux kernel whose time is virtual.

usage: rig.py RIG.json FOLDER [--kasan [--probe]] [--real-time] [--module FILE.ko] [--keep] [--wall-limit SECONDS]
       rig.py --fingerprint [--kasan] [--module FILE.ko]

RIG.json is described in README.md. FOLDER gets FLOWS.csv, queue.csv, raw counters (tc-*.json, nstat-*.txt, link-*.json),
uname.txt, srcversion.txt, dmesg.txt, trace.txt if the kernel traced, and result.json with a digest of all of these.
--fingerprint prints a hash of all that a result depends on besides RIG.json and the files that it names.
Exit codes: 0 played; 1 something failed; 2 bad input; 3 what it needs is not on this machine; 4 played, but flows were
not done at the deadline: the results are complete.
"""

import argparse
import contextlib
import csv
import ctypes
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = pathlib.Path(os.environ.get("RIG_CACHE", ROOT / "target/rigs/virtual-time"))
MODULE = ROOT / "deploy/linux/tcp_marimo"

HEADER = "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"
# Commands of the guest and where Debian has them.
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "nstat": "iproute2", "ethtool": "ethtool"}
APPLETS = ["sh", "mount", "mkdir", "cat", "echo", "dmesg", "poweroff", "uname", "insmod", "rmmod", "lsmod", "sleep", "cp"]

# What rig-traffic, and with it the guest, ends with if nothing is wrong but that flows were late.
UNFINISHED = 4

# Lines of a kernel's log that say that something went wrong.
TROUBLE = re.compile(
    r"BUG|WARNING|Oops|KASAN|UBSAN|Call Trace|lockdep|INFO: |unable to handle|refcount_t|Kernel panic|segfault|htb: |"
    r"quantum of class|too many events",
)


class BadInput(Exception):
    """What the user gave is wrong."""


class Failed(Exception):
    """The run failed."""


class Missing(Exception):
    """This machine lacks something."""


# ---------------------------------------------------------------------------------------------------------------------
# RIG.json


def whole(least, most):
    def check(value):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return f"a whole number from {least} to {most}"
        return None

    return check


def boolean(value):
    return None if isinstance(value, bool) else "true or false"


def text(value):
    return None if isinstance(value, str) and value else "a text"


def name(value):
    return None if isinstance(value, str) and re.fullmatch(r"[a-z0-9_]{1,15}", value) else "a name, as of a module"


def share(value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if number and 0 < value <= 1 else "a number above 0, at most 1"


def percent(value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if number and 0 <= value <= 100 else "a number from 0 to 100"


def one_of(*names):
    return lambda value: None if value in names else " or ".join(names)


def sysctls(value):
    if not isinstance(value, dict):
        return "an object"
    for key, entry in value.items():
        if not re.fullmatch(r"net\.[a-z0-9_.]+", key):
            return f"an object whose keys are sysctls below net.; found {key!r}"
        if isinstance(entry, bool) or not isinstance(entry, (int, str)) or not re.fullmatch(r"[\w .-]+", str(entry)):
            return f"an object of numbers and words; {key} is {entry!r}"
    return None


def words(value):
    sound = isinstance(value, dict) and all(re.fullmatch(r"[\w-]+", f"{key}{entry}") for key, entry in value.items())
    return None if sound else "an object of words"


REQUIRED = object()

RED = {
    "min": (whole(1, 1 << 30), REQUIRED),
    "max": (whole(2, 1 << 30), REQUIRED),
    "probability": (share, 1.0),
    "limit": (whole(1, 1 << 31), REQUIRED),
    "avpkt": (whole(1, 65535), 1000),
    "burst": (whole(1, 1 << 20), None),
    "ecn": (boolean, True),
    "nodrop": (boolean, False),
}
ROUTE = {
    "rto_min_us": (whole(1000, 10**7), None),
    "initcwnd": (whole(1, 1000), None),
    "quickack": (boolean, False),
}
# What the way from the switch to a host does to packets, by netem; "ce" sets CE on every packet, "ect" takes ECN away.
FAULTS = {
    "loss_percent": (percent, 0),
    "reorder_percent": (percent, 0),
    "duplicate_percent": (percent, 0),
    "ecn": (one_of("kept", "stripped", "ce"), "kept"),
}
CHURN = {
    "connections": (whole(1, 20000), REQUIRED),
    "seconds": (whole(1, 3600), REQUIRED),
    "bytes": (whole(1, 1 << 30), 65536),
}
SETTINGS = {
    "hosts": (whole(2, 200), REQUIRED),
    "bottleneck_rate_bps": (whole(10**5, 10**11), REQUIRED),
    "host_rate_bps": (whole(10**5, 10**11), REQUIRED),
    "rtt_ns": (whole(0, 10**10), REQUIRED),
    "red": (RED, None),
    "buffer_bytes": (whole(1500, 1 << 31), REQUIRED),
    "frame_overhead_bytes": (whole(0, 255), 0),
    "congestion": (name, REQUIRED),
    "receiver_congestion": (name, None),
    "plan": (text, None),
    "churn": (CHURN, None),
    "seed": (whole(0, (1 << 63) - 1), None),
    "mtu": (whole(576, 65535), 1500),
    "offloads": (boolean, False),
    "sysctls": (sysctls, {}),
    "route": (ROUTE, {}),
    "faults": (FAULTS, {}),
    "socket_buffer_bytes": (whole(4096, 1 << 29), None),
    "queue_sample_us": (whole(1, 10**9), 100),
    "deadline_s": (whole(1, 10**6), 600),
    "ecn_check": (boolean, False),
    "trace": (boolean, True),
    "table": (text, None),
    "parameters": (words, {}),
}


def parse(value, schema, where):
    """`value` with every key of `schema`, defaults filled in."""
    if not isinstance(value, dict):
        raise BadInput(f"{where or 'the file'}: expected an object")
    for key in value:
        if key not in schema:
            raise BadInput(f"{where}{key}: unknown key; there are {', '.join(schema)}")
    result = {}
    for key, (check, default) in schema.items():
        found = value.get(key)
        if found is None:
            if default is REQUIRED:
                raise BadInput(f"{where}{key}: missing")
            result[key] = parse({}, check, f"{where}{key}.") if default == {} and isinstance(check, dict) else default
        elif isinstance(check, dict):
            result[key] = parse(found, check, f"{where}{key}.")
        else:
            fault = check(found)
            if fault:
                raise BadInput(f"{where}{key}: expected {fault}; found {json.dumps(found)}")
            result[key] = found
    return result


def settings_of(path):
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from None
    if isinstance(value, dict) and isinstance(value.get("congestion"), dict):
        raise BadInput("congestion: expected a name; flows that differ have theirs in the plan's column `congestion`")
    settings = parse(value, SETTINGS, "")
    if (settings["plan"] is None) == (settings["churn"] is None):
        raise BadInput("plan, churn: one of them is wanted")
    red = settings["red"]
    if red:
        if red["max"] <= red["min"]:
            raise BadInput(f"red.max: expected more than red.min, {red['min']}; found {red['max']}")
        if red["limit"] <= red["max"]:
            raise BadInput(f"red.limit: expected more than red.max, {red['max']}; found {red['limit']}")
        # The shortest memory of the average that tc can express: a weight of 1/2.
        least = red["min"] // red["avpkt"] + 1
        if red["burst"] is None:
            red["burst"] = least
        if red["burst"] * red["avpkt"] < red["min"]:
            raise BadInput(f"red.burst: expected at least red.min / red.avpkt, {least}; found {red['burst']}")
    if (settings["route"]["rto_min_us"] or 1000) % 1000:
        raise BadInput("route.rto_min_us: expected whole milliseconds, which is what routes hold")
    return settings


def flows_of(settings, folder):
    """The rows of the plan; rig-traffic checks them in full."""
    if settings["plan"] is None:
        return "", [{"source_namespace": "h1", "destination_namespace": "h0"}]
    path = folder / settings["plan"]
    try:
        plan = path.read_text()
    except OSError as error:
        raise BadInput(f"{path}: {error}") from None
    rows = list(csv.DictReader(plan.splitlines()))
    if not plan.startswith(HEADER) or not rows:
        raise BadInput(f"{path}: expected the header {HEADER}[,congestion] and rows")
    hosts = {f"h{index}": address(index) for index in range(settings["hosts"])}
    for line, row in enumerate(rows, 2):
        for end in ("source", "destination"):
            host = row[f"{end}_namespace"]
            if host not in hosts:
                raise BadInput(f"{path}: line {line}: {end}_namespace is h0 to h{settings['hosts'] - 1}; found {host!r}")
            if row[end] != hosts[host]:
                raise BadInput(f"{path}: line {line}: the address of {host} is {hosts[host]}; found {row[end]!r}")
    return plan, rows


def address(host):
    return f"10.0.{host // 250}.{host % 250 + 1}"


def mac(host):
    return f"02:00:00:00:{host // 256:02x}:{host % 256:02x}"


# ---------------------------------------------------------------------------------------------------------------------
# The kernel, its module, its programs


def output(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode == 3:
        raise Missing(f"{command[0]} could not be made here")
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def kernel(kasan):
    lines = output([HERE / "build.sh", *(["--kasan"] if kasan else [])]).strip().splitlines()
    build = pathlib.Path(lines[-1])
    used(build)
    return build


def digest_of(paths):
    """Of the content of files, with their names."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return total.hexdigest()


# How many kernels, modules and guests stay, and for how many seconds each does after its last use.
KEPT, KEPT_FOR = 4, 6 * 3600


def once(target, make):
    """`target`, made by `make` in a folder beside it unless it is there."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = pathlib.Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
        try:
            make(work)
            os.rename(work, target)
        except OSError:
            if not target.exists():
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
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


def module_sources():
    """The files of the module itself, and those that it includes."""
    if not MODULE.is_dir():
        raise Missing(f"there is no {MODULE.relative_to(ROOT)}")
    headers = [*MODULE.parent.glob("*.h"), *(ROOT / "deploy/core").glob("marimo*")]
    sources = [path for path in sorted(MODULE.rglob("*")) if path.is_file() and "test" not in path.parts]
    sources = [path for path in sources if path.suffix in (".c", ".h") or path.name in ("Kbuild", "Makefile")]
    return sources, sorted(headers)


def module_stamp(build):
    sources, headers = module_sources()
    return hashlib.sha256((digest_of([*sources, *headers]) + build.name).encode()).hexdigest()[:16]


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
    # Where deploy/rigs/vm builds it in the same way.
    folder = ROOT / "target/rigs/traffic"
    environment = {**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(folder)}
    output([os.environ.get("CARGO", "cargo"), "build", "--quiet", "--release", "--locked", "-p", "rig-traffic",
            "--target", target], cwd=ROOT, env=environment)
    return folder / target / "release/rig-traffic"


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


def fingerprint(build, tree, given):
    """Of what a result depends on besides its input: kernel, module, guest and this program."""
    parts = [build.name, digest_of([given]) if given else module_stamp(build), tree.name,
             digest_of([HERE / "rig.py", HERE / "host.c"])]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------------
# What the guest does


def rate(bps):
    return f"{bps}bit"


def htb(settings, device, bps, leaf):
    """A port: HTB as its wire, `leaf` as its queue."""
    mtu = settings["mtu"] + 14
    overhead = settings["frame_overhead_bytes"]
    # A bucket of nothing: each packet waits until the one before has been sent.
    wire = f"rate {rate(bps)} ceil {rate(bps)} burst 1 cburst 1 quantum {max(mtu, 1000)} mtu {max(mtu, 2047)}"
    if overhead:
        wire += f" overhead {overhead}"
    return [
        f"qdisc replace dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb {wire}",
        f"qdisc add dev {device} parent 1:1 handle 10: {leaf}",
    ]


def port_queue(settings, congested):
    red = settings["red"]
    if not red or not congested:
        return f"bfifo limit {settings['buffer_bytes']}"
    flags = (" ecn" if red["ecn"] else "") + (" nodrop" if red["nodrop"] else "")
    return (f"red limit {red['limit']} min {red['min']} max {red['max']} avpkt {red['avpkt']} burst {red['burst']} "
            f"probability {red['probability']} bandwidth {rate(settings['bottleneck_rate_bps'])}{flags}")


def way_in(settings):
    """What stands between the switch and a host: half of the round trip, and faults."""
    faults, words = settings["faults"], []
    if settings["rtt_ns"]:
        words += ["delay", f"{settings['rtt_ns'] / 2000}us"]
    for key in ("loss", "reorder", "duplicate"):
        if faults[f"{key}_percent"]:
            words += [key, f"{faults[f'{key}_percent']}%"]
    return "netem limit 1000000 " + " ".join(words)


# Type of service to `0x..` under a mask that spares the rest: the two lowest bits are ECN.
ECN_ACTION = {"stripped": "munge ip dsfield set 0x00 retain 0x03", "ce": "munge ip dsfield set 0x03 retain 0x03"}


def scripts(settings, plan, rows, with_module):
    """The files of the guest's /in."""
    hosts = range(settings["hosts"])
    receivers = sorted({int(row["destination_namespace"][1:]) for row in rows})
    pairs = sorted({(int(a), int(b)) for row in rows for a, b in
                    [(row["source_namespace"][1:], row["destination_namespace"][1:]),
                     (row["destination_namespace"][1:], row["source_namespace"][1:])]})
    mtu = settings["mtu"]
    # Segments are cut before they reach the host's own queue, as no NIC would see them otherwise.
    one = "" if settings["offloads"] else " gso_max_segs 1"
    links = ["netns add switch", *(f"netns add h{host}" for host in hosts)]
    for host in hosts:
        links.append(f"link add p{host} mtu {mtu} netns switch type veth "
                     f"peer name eth0 address {mac(host)} mtu {mtu} netns h{host}")
    switch = ["link add bridge type bridge stp_state 0 mcast_snooping 0", "link set bridge up"]
    fdb, switch_tc = [], []
    for host in hosts:
        switch += [f"link set p{host} master bridge", f"link set p{host} up{one}"]
        fdb.append(f"fdb replace {mac(host)} dev p{host} master static")
        switch_tc += htb(settings, f"p{host}", settings["bottleneck_rate_bps"], port_queue(settings, host in receivers))
    run = [
        "export PATH=/bin",
        "/bin/ip link set lo up",
        "/bin/ip -batch /in/links",
        "/bin/ip -n switch -batch /in/switch.ip",
        "/bin/bridge -n switch -batch /in/switch.fdb",
        "/bin/tc -n switch -batch /in/switch.tc",
    ]
    files = {"links": links, "switch.ip": switch, "switch.fdb": fdb, "switch.tc": switch_tc}
    everywhere = [(key, value) for key, value in settings["sysctls"].items() if not key.startswith("net.ipv4.")]
    here = [(key, value) for key, value in settings["sysctls"].items() if key.startswith("net.ipv4.")]
    for key, value in everywhere:
        run.append(f"echo '{value}' >/proc/sys/{key.replace('.', '/')}")
    route = settings["route"]
    metrics = ""
    if route["rto_min_us"]:
        metrics += f" rto_min {route['rto_min_us'] // 1000}ms"
    if route["initcwnd"]:
        metrics += f" initcwnd {route['initcwnd']}"
    if route["quickack"]:
        metrics += " quickack 1"
    settle = ["export PATH=/bin"]
    if not settings["offloads"]:
        # Those that the device lacks are no fault.
        settle.append("/bin/ethtool -K eth0 tso off gso off gro off tx off rx off >/dev/null 2>&1 || true")
    for key, value in here:
        settle.append(f"echo '{value}' >/proc/sys/{key.replace('.', '/')}")
    files["host.sh"] = settle
    ecn = settings["faults"]["ecn"]
    for host in hosts:
        lines = [
            "link set lo up",
            f"link set eth0 up{one}",
            f"link add delay mtu {mtu} type ifb",
            "link set delay up",
            f"addr add {address(host)}/16 dev eth0 noprefixroute",
            f"route add 10.0.0.0/16 dev eth0 src {address(host)}{metrics}",
        ]
        lines += [f"neigh replace {address(other)} lladdr {mac(other)} dev eth0 nud permanent"
                  for me, other in pairs if me == host]
        edit = ""
        if ecn != "kept":
            edit = f"action pedit ex {ECN_ACTION[ecn]} pipe action csum ip pipe "
        control = htb(settings, "eth0", settings["host_rate_bps"], "bfifo limit 1073741824") + [
            "qdisc add dev eth0 clsact",
            f"filter add dev eth0 ingress protocol ip matchall {edit}action mirred egress redirect dev delay",
            f"qdisc replace dev delay root {way_in(settings)}",
        ]
        files[f"h{host}.ip"] = lines
        files[f"h{host}.tc"] = control
        run += [f"/bin/ip -n h{host} -batch /in/h{host}.ip", f"/bin/ip netns exec h{host} /bin/sh -e /in/host.sh",
                f"/bin/tc -n h{host} -batch /in/h{host}.tc"]
    tracing = "/sys/kernel/tracing"
    if with_module:
        words = " ".join(f"{key}={value}" for key, value in settings["parameters"].items())
        run.append(f"insmod /in/tcp_marimo.ko {words}".rstrip())
        run.append("cat /sys/module/tcp_marimo/srcversion >/out/srcversion.txt")
        if settings["table"]:
            run.append("cat /in/marimo.table >/sys/module/tcp_marimo/table")
        if settings["trace"]:
            run += [
                f"echo 131072 >{tracing}/buffer_size_kb",
                f"echo mono >{tracing}/trace_clock",
                f"echo 1 >{tracing}/events/tcp_marimo/enable",
                f"echo 1 >{tracing}/tracing_on",
            ]
    play = f"/bin/rig-traffic play --plan /in/plan.csv --out /out/FLOWS.csv --deadline {settings['deadline_s']}"
    play += f" --sample-queue switch:p{receivers[0]} --sample-interval-us {settings['queue_sample_us']}"
    play += " --samples /out/queue.csv" + (" --ecn-check" if settings["ecn_check"] else "")
    churn = settings["churn"]
    if churn:
        play = (f"/bin/rig-traffic churn --connections {churn['connections']} --seconds {churn['seconds']} --bytes "
                f"{churn['bytes']} --source-namespace h1 --source {address(1)} --destination-namespace h0 "
                f"--destination {address(0)}")
    if settings["receiver_congestion"]:
        play += f" --receiver-congestion {settings['receiver_congestion']}"
    if settings["socket_buffer_bytes"]:
        play += f" --socket-buffer {settings['socket_buffer_bytes']}"
    run += [
        "failed=0",
        f"{play} --congestion {settings['congestion']} || failed=$?",
        # What is on its way (the last FIN, its acknowledgement) arrives before counters are read.
        "sleep 1",
        "/bin/uname -a >/out/uname.txt",
        "/bin/tc -n switch -s -j qdisc show >/out/tc-switch.json",
        "/bin/ip -n switch -s -j link show >/out/link-switch.json",
    ]
    for host in hosts:
        run += [f"/bin/tc -n h{host} -s -j qdisc show >/out/tc-h{host}.json",
                f"/bin/ip netns exec h{host} /bin/nstat -asz >/out/nstat-h{host}.txt"]
    if with_module:
        if settings["trace"]:
            run += [f"echo 0 >{tracing}/tracing_on", f"cat {tracing}/trace >/out/trace.txt"]
        # Connections that linger in a closing state may still hold it; that is what the log of a run would show.
        # What was cut off at the deadline takes its time: the sender hears of it when its data find nobody.
        run += [
            "tries=0",
            "until rmmod tcp_marimo; do",
            f"tries=$((tries + 1)); if [ $failed != {UNFINISHED} ] || [ $tries = 120 ]; then exit 1; fi; sleep 1",
            "done",
        ]
    run.append("if [ -e /in/probe.ko ]; then insmod /in/probe.ko; fi")
    run.append("exit $failed")
    files["run.sh"] = run
    texts = {key: "\n".join(lines) + "\n" for key, lines in files.items()}
    texts["plan.csv"] = plan
    return texts


# ---------------------------------------------------------------------------------------------------------------------
# A run


def boot(build, tree, texts, binaries, seed, limit, real_time, keep):
    """Boots once; what the guest ended with, the files that it left, and seconds of wall and of CPU time."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    try:
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
    finally:
        if keep:
            print(f"kept {work}", file=sys.stderr)
        else:
            shutil.rmtree(work, ignore_errors=True)


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


def troubles(log):
    """Lines of the kernel's log that say that something went wrong."""
    found, position = [], 0
    while position < len(log):
        # User-mode Linux 6.1 walks its programs' mappings without the lock that lockdep wants: no word on what is tested.
        if "suspicious RCU usage" in log[position] and "lib/maple_tree.c" in " ".join(log[position:position + 4]):
            while position < len(log) and not log[position].endswith("Call Trace:"):
                position += 1
            position += 1
            while position < len(log) and "  [<" in log[position]:
                position += 1
            continue
        if TROUBLE.search(log[position]):
            found.append(log[position])
        position += 1
    return found


def packets(files):
    """Packets that the congested ports sent."""
    return sum(entry.get("packets", 0) for entry in json.loads(files["tc-switch.json"])
               if entry["kind"] == "htb" and entry.get("root"))


def outcome(code, trouble):
    """`played`, `unfinished` (all results are there, flows were not done at the deadline) or `broke`."""
    if trouble or code not in (0, UNFINISHED):
        return "broke"
    return "unfinished" if code == UNFINISHED else "played"


def unfinished(files):
    """How many flows did not arrive; nothing if there are no results."""
    if "FLOWS.csv" not in files:
        return None
    return sum(row["ok"] != "1" for row in csv.DictReader(files["FLOWS.csv"].decode().splitlines()))


def play(arguments):
    settings = settings_of(arguments.rig)
    plan, rows = flows_of(settings, arguments.rig.resolve().parent)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    controls = {settings["congestion"], settings["receiver_congestion"], *(row.get("congestion") or "" for row in rows)}
    build = kernel(arguments.kasan)
    binaries = {}
    if "marimo" in controls:
        binaries["tcp_marimo.ko"] = arguments.module or module(build)
        if settings["table"]:
            binaries["marimo.table"] = arguments.rig.resolve().parent / settings["table"]
    if arguments.probe:
        binaries["probe.ko"] = probe(build)
    texts = scripts(settings, plan, rows, "tcp_marimo.ko" in binaries)
    CACHE.mkdir(parents=True, exist_ok=True)
    tree = guest()
    code, files, seconds = boot(build, tree, texts, binaries, settings["seed"], arguments.wall_limit,
                                arguments.real_time, arguments.keep)
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
        "kernel": build.name,
        "fingerprint": fingerprint(build, tree, arguments.module),
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


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rig", type=pathlib.Path, metavar="RIG.json", nargs="?")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", nargs="?")
    parser.add_argument("--fingerprint", action="store_true", help="what a result depends on besides its input")
    parser.add_argument("--kasan", action="store_true", help="a kernel that checks every access of memory")
    parser.add_argument("--real-time", action="store_true", help="let time pass as on the host")
    parser.add_argument("--module", type=pathlib.Path, metavar="FILE.ko", help="this build of tcp_marimo")
    parser.add_argument("--probe", action="store_true", help="with --kasan: show that the kernel checks its memory")
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
            print(fingerprint(kernel(arguments.kasan), guest(), arguments.module))
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
