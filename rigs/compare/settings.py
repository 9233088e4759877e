# SPDX-License-Identifier: MIT OR Apache-2.0
"""`rig.json`: the scenario as a rig reads it."""

from errors import BadInput
from onramp_parameters import onramp
from schemes import initial_window, speaks_ecn
from supported import check_supported
from values import quantity

# Segments of a TCP connection are at most this without its header and time stamps.
HEADERS = 20 + 20 + 12
ETHERNET = 14


def rig_settings(run, rows):
    """`rig.json`: the scenario of a run as a rig of real hosts has it. What a rig cannot do is refused by name."""
    scenario = run["scenario"]
    topology, switch, host = scenario["topology"], scenario["switch"], scenario["host"]
    if topology["kind"] != "single-switch":
        raise BadInput(f"topology.kind: found {topology['kind']!r}, a rig has one switch: \"single-switch\"")
    if switch["ecn"]["kind"] != "step":
        raise BadInput(f"switch.ecn: found {switch['ecn']['kind']!r}, a rig marks as \"step\" does")
    per_port = switch["buffer"].get("per_port")
    if per_port is None:
        raise BadInput("switch.buffer: a rig's port has a buffer of its own: { per_port = … }")
    receivers = sorted({row["dst"] for row in rows})
    if receivers != ["h0"]:
        raise BadInput(f"flows go to {', '.join(receivers)}; a rig has one congested port, that to h0")
    rate = quantity("rate", topology["link"]["rate"], "topology.link.rate")
    delay = quantity("time", topology["link"]["delay"], "topology.link.delay")
    mtu = quantity("size", host["mtu"], "host.mtu")
    at = quantity("size", switch["ecn"]["at"], "switch.ecn.at")
    rto_min = quantity("time", host["rto_min"], "host.rto_min")
    if rto_min < 10**9 or rto_min % 10**9:
        raise BadInput(f"host.rto_min: found {host['rto_min']!r}; routes hold whole milliseconds, at least 1ms")
    gap = quantity("size", scenario["wire"]["gap"], "wire.gap")
    check_supported(run, rows, mtu)
    settings = {
        "hosts": topology["hosts"],
        "bottleneck_rate_bps": rate,
        "host_rate_bps": rate,
        # Four links: there and back.
        "rtt_ns": 4 * delay // 1000,
        # The marks of a step: everything above `min`, with the shortest memory that `tc` can give the average. What is not
        # ECN-capable is not dropped for it (nodrop), as in the simulator.
        "red": {
            "min": at,
            "max": at + 1,
            "probability": 1.0,
            "limit": quantity("size", per_port, "switch.buffer.per_port"),
            "avpkt": mtu + HEADERS + ETHERNET,
            "burst": -(-at // (mtu + HEADERS + ETHERNET)),
            "ecn": True,
            "nodrop": True,
        },
        "buffer_bytes": quantity("size", per_port, "switch.buffer.per_port"),
        "frame_overhead_bytes": gap,
        # Where classes differ, each row of the plan has its own.
        "congestion": rows[0]["law"],
        "plan": "plan.csv",
        # As long as the simulation, in the rig's whole seconds.
        "deadline_s": -(-end_ps(run) // 10**12),
        "seed": run["seed"],
        "mtu": mtu + HEADERS,
        "offloads": False,
        "trace": False,
        "onramp": onramp(run, rows),
        "clocks": clocks(run, rows),
        "queue_sample_us": queue_sample_us(scenario),
        "sysctls": {
            # Windows of receivers must not be what limits a flow.
            "net.ipv4.tcp_rmem": "4096 4194304 16777216",
            "net.ipv4.tcp_wmem": "4096 4194304 16777216",
            "net.ipv4.tcp_ecn": "1" if speaks_ecn(run, rows) else "0",
            "net.ipv4.tcp_no_metrics_save": "1",
            "net.ipv4.tcp_slow_start_after_idle": "1",
        },
        "route": {"rto_min_us": rto_min // 10**6, "initcwnd": initial_window(run, mtu), "quickack": host["ack_every"] == 1},
    }
    return settings


def clocks(run, rows):
    """By how much each sender finds h0's clock ahead at the start (ns), and faster (parts in 10^9), as the simulator has drawn it;
    None where no clock is read, or none is wrong."""
    drawn = run.get("clocks")
    if not drawn or not onramp(run, rows):
        return None
    found = {}
    for row in rows:
        own, peer = drawn[int(row["src"].removeprefix("h"))], drawn[0]
        found[row["src"]] = [round((peer["offset_ps"] - own["offset_ps"]) / 1000), round((peer["drift_ppm"] - own["drift_ppm"]) * 1000)]
    return found


def queue_sample_us(scenario):
    """As often as the simulator looks at the port."""
    ports = scenario.get("measure", {}).get("ports")
    return max(1, quantity("time", ports["every"], "measure.ports.every") // 10**6) if ports else 100


def end_ps(run):
    """When a simulation ends, finished or not."""
    return sum(quantity("time", run["scenario"][key], key) for key in ("duration", "drain"))
