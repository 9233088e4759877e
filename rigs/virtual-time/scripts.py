# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guest does: the files of its /in."""

import struct

from network import commands, network, receivers_of, sysctl
from outcome import UNFINISHED
from plan import address

TRACING = "/sys/kernel/tracing"
# The route of each host to all others (network.py), and a port that nobody else has.
ROUTE, PROBED = "10.0.0.0/16", 7


def scripts(settings, plan, rows, with_module):
    """The files of the guest's /in."""
    make_switch, make_hosts = commands(settings)
    files = network(settings, rows)
    files["run.sh"] = [
        "export PATH=/bin",
        *make_switch,
        *(sysctl(key, value) for key, value in settings["sysctls"].items() if not key.startswith("net.ipv4.")),
        *make_hosts,
        *(load(settings) if with_module else []),
        *(hold(settings, rows) if settings["onramp"] is not None else []),
        "failed=0",
        f"{traffic(settings, rows)} --congestion {settings['congestion']} || failed=$?",
        *counters(settings),
        *(held(rows) if settings["onramp"] is not None else []),
        *(unload(settings) if with_module else []),
        "if [ -e /in/probe.ko ]; then insmod /in/probe.ko; fi",
        "exit $failed",
    ]
    texts = {key: "\n".join(lines) + "\n" for key, lines in files.items()}
    texts["plan.csv"] = plan
    if settings["clocks"]:
        # By which rigs/vm/play.sh knows what to build.
        texts["clocks"] = ""
    return texts


def load(settings):
    """The module with its parameters and its table, and its trace."""
    words = " ".join(f"{key}={value}" for key, value in settings["parameters"].items())
    lines = [f"insmod /in/tcp_marimo.ko {words}".rstrip(), "cat /sys/module/tcp_marimo/srcversion >/out/srcversion.txt"]
    if settings["table"]:
        lines.append("cat /in/marimo.table >/sys/module/tcp_marimo/table")
    if settings["trace"]:
        lines += [
            f"echo 131072 >{TRACING}/buffer_size_kb",
            f"echo mono >{TRACING}/trace_clock",
            f"echo 1 >{TRACING}/events/tcp_marimo/enable",
            f"echo 1 >{TRACING}/tracing_on",
        ]
    return lines


def hold(settings, rows):
    """On-Ramp: the receivers stamp in microseconds, by one clock; then senders hold what they send to them."""
    given = " ".join(f"--set {name}={value}" for name, value in settings["onramp"].items())
    peers = " ".join(f"--peer {address(host)}:{PROBED}" for host in receivers_of(rows))
    lines = ["mkfifo /tmp/quiet"]
    for host in receivers_of(rows):
        lines += [f"/bin/ip netns exec h{host} /bin/sh -c 'echo 2 >/proc/sys/net/ipv4/tcp_timestamps'",
                  f"{onrampctl(host)} enable --stamps-only {ROUTE}",
                  # What a probe connects to.
                  f"/bin/ip netns exec h{host} /bin/sh -c 'while nc -l -p {PROBED} <>/tmp/quiet; do :; done' >/dev/null 2>&1 &"]
    lines.append("sleep 1")
    for host in senders_of(rows):
        if settings["form"] == "qdisc":
            lines.append(f"/bin/tc -n h{host} qdisc del dev eth0 root")
        lines.append(f"{onrampctl(host)} load --form {settings['form']} {given} eth0")
        lines += skew(*(settings["clocks"] or {}).get(f"h{host}", []))
        lines.append(f"{onrampctl(host)} enable {peers} {ROUTE}")
    return lines


def skew(*wrong):
    """What the host that was loaded last finds wrong of its peer's clock: deploy/linux/onramp/skew.bpf.c."""
    if not wrong:
        return []
    offset, billionths = wrong
    octets = struct.pack("<qq", offset, round(billionths * 2**30 / 10**9)).hex(" ")
    return ["skew=$(/bin/bpftool map show | sed -n 's/^\\([0-9]*\\): .* name \\.data\\.skew .*/\\1/p' | tail -n 1)",
            f"/bin/bpftool map update id $skew key hex 00 00 00 00 value hex {octets}"]


def held(rows):
    return [f"{onrampctl(host)} status --json >/out/onramp-h{host}.json" for host in senders_of(rows)]


def onrampctl(host):
    # `ip netns exec` would hide where BPF's objects are.
    return f"nsenter --net=/run/netns/h{host} /bin/onrampctl"


def senders_of(rows):
    return sorted({int(row["source_namespace"][1:]) for row in rows})


def traffic(settings, rows):
    """The call of rig-traffic: a plan of flows, or churn."""
    churn = settings["churn"]
    if churn:
        call = (f"/bin/rig-traffic churn --connections {churn['connections']} --seconds {churn['seconds']} --bytes "
                f"{churn['bytes']} --source-namespace h1 --source {address(1)} --destination-namespace h0 "
                f"--destination {address(0)}")
    else:
        call = f"/bin/rig-traffic play --plan /in/plan.csv --out /out/FLOWS.csv --deadline {settings['deadline_s']}"
        call += f" --sample-queue switch:p{receivers_of(rows)[0]} --sample-interval-us {settings['queue_sample_us']}"
        call += " --samples /out/queue.csv" + (" --ecn-check" if settings["ecn_check"] else "")
    if settings["receiver_congestion"]:
        call += f" --receiver-congestion {settings['receiver_congestion']}"
    if settings["socket_buffer_bytes"]:
        call += f" --socket-buffer {settings['socket_buffer_bytes']}"
    return call


def counters(settings):
    lines = [
        # What is on its way (the last FIN, its acknowledgement) arrives before counters are read.
        "sleep 1",
        "/bin/uname -a >/out/uname.txt",
        "/bin/tc -n switch -s -j qdisc show >/out/tc-switch.json",
        "/bin/ip -n switch -s -j link show >/out/link-switch.json",
    ]
    for host in range(settings["hosts"]):
        lines += [f"/bin/tc -n h{host} -s -j qdisc show >/out/tc-h{host}.json",
                  f"/bin/ip netns exec h{host} /bin/nstat -asz >/out/nstat-h{host}.txt"]
    return lines


def unload(settings):
    lines = []
    if settings["trace"]:
        lines += [f"echo 0 >{TRACING}/tracing_on", f"cat {TRACING}/trace >/out/trace.txt"]
    # Connections that linger in a closing state may still hold it; that is what the log of a run would show.
    # What was cut off at the deadline takes its time: the sender hears of it when its data find nobody.
    lines += [
        "tries=0",
        "until rmmod tcp_marimo; do",
        f"tries=$((tries + 1)); if [ $failed != {UNFINISHED} ] || [ $tries = 120 ]; then exit 1; fi; sleep 1",
        "done",
    ]
    return lines
