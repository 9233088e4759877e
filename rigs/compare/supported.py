# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a rig has of what scenarios may say, and the refusal of all else."""

from errors import BadInput
from marimo_parameters import MARIMO
from schemes import schemes_of
from values import canonical, plain, quantity

ANY = object()

# What scenarios may say: the values that a rig has, or `ANY` where it is told. All else would act on one side only. None is
# a key that is not there.
HOST = {
    # What it sets is each looked at below.
    "profile": [None, "linux"],
    "mtu": ANY,
    "rto_min": ANY,
    "ack_every": [1, 2],
    "ack_delay": ["40ms"],
    "quick_acks": [16],
    "echo": ["flag"],
    # HZ is 1000.
    "timer_tick": ["1ms"],
    "handshake": [True],
    "frames": {"header": ["66B"], "control": ["66B"], "min_size": ["60B"]},
    "lost_retransmission": ["same-recovery"],
    "pace_credit": ["half-packet"],
    "recovery": [None, "rack-tlp", "selective-repeat"], "prr": [None, False, True],
    "response_delay": ["0ps"],
    "notification_delay": ["0ps"],
    "control_first": [True],
    # As drawn (settings.py).
    "clock": {"offset": ANY, "drift_ppm": ANY, "noise": ["0ps"]},
}
SWITCH = {
    "buffer": {"per_port": ANY},
    "ecn": {"kind": ANY, "at": ANY},
    "ecn_at": ["enqueue"],
    # RED's `nodrop` (settings.py).
    "not_ect": [None, "pass"],
    "priorities": [1],
    "scheduler": ["strict"],
    "virtual_channels": [1],
    "pfc": ["off"],
    "credits": [False],
    "trim": [False],
    "agent": ["none"],
    "load_balancing": ["ecmp"],
    "ties": ["seeded"],
}
WORLD = {
    "profile": ["standard"],
    "warmup": ["0ps"],
    "event": [None],
    "wire": {"gap": ANY, "rounding": ["exact"]},
    "topology": {"kind": ANY, "hosts": ANY, "link": {"rate": ANY, "delay": ANY, "loss": [None, 0]}},
}
# Of acknowledgements that wait, which none does where each packet is answered.
WAITING = ["ack_delay", "quick_acks", "echo"]
SCHEME = {
    "law": ANY, "name": ANY, "by_class": ANY, "initial_window": ANY, "underlay": ANY,
    "priority": [0], "ack_priority": [0], "notification_priority": [0],
}


def laws(mtu, base_rtt):
    """Parameters of laws, as above. Of Linux's own laws a rig sets none: they are what the kernel has, or stand for it."""
    return {
        "marimo": {
            **{key: ANY for key in MARIMO},
            "table": ANY,
            "fractional": [False],
            # The module goes by the timeout, of which this is about one.
            "idle_after": [f"{max(10**9, 4 * base_rtt)}ps"],
        },
        "dctcp": {"gain": [0.0625], "initial_alpha": [1], "min_window": [f"{2 * mtu}B"], "whole_packets": [True],
                  "cwr": [None, False, True], "slow_start_limit": ["none"]},
        "cubic": {
            "ecn": ANY, "beta": [0.7], "steepness": [0.4], "fast_convergence": [True], "hystart": [True],
            "slow_start_limit": ["none"],
            "hystart_min_threshold": ["4ms"], "hystart_max_threshold": ["16ms"],
        },
        "bbr": {
            "initial_rtt": [f"{base_rtt}ps"], "min_window": [f"{4 * mtu}B"], "send_quantum": [f"{mtu}B"],
            "high_gain": [2.8853900817779268], "drain_gain": [0.75], "probe_gain": [1.25], "cwnd_gain": [2],
            "btlbw_window": [10], "rtprop_window": ["10s"], "probe_rtt_duration": ["200ms"],
            "full_pipe_growth": [1.25], "full_pipe_rounds": [3],
            "ack_aggregation": [False, True], "pacing_margin": [0, 0.01],
        },
    }


def underlay(run, mtu):
    """On-Ramp as hosts have it by default: the threshold is twice the least round trip and over the least delay, the spread a
    fifth of it; TCP hands over two segments of a connection (its small queues)."""
    link, base_rtt = run["scenario"]["topology"]["link"], run["base_rtt_ps"]
    frame = mtu + quantity("size", run["scenario"]["host"]["frames"]["header"], "header")
    frame += quantity("size", run["scenario"]["wire"]["gap"], "wire.gap")
    threshold = base_rtt * 5 // 2
    way = 2 * (quantity("time", link["delay"], "delay") + frame * 8 * 10**12 // quantity("rate", link["rate"], "rate"))
    return {
        "kind": ["onramp"], "scope": ["destination"], "reports": ["acks"], "rtt": ["stack"], "base_delay": ["path"],
        "profile": ["scaled"], "threshold": [f"{threshold}ps"], "spread": [f"{(threshold - way) // 5}ps"], "backlog": [2],
        "variant": ANY, "beta": ANY, "release": ["paced", "burst"], "reference": ANY, "max_hold": ANY,
        # Of other releases.
        "gain": ANY, "step": ANY, "quantum": ANY, "small_quantum": ANY,
    }


def check_supported(run, rows, mtu):
    scenario = run["scenario"]
    # `tcp_schedule_loss_probe` adds the least timeout.
    of_host = {**HOST, "max_ack_delay": [scenario["host"]["rto_min"]], **({key: ANY for key in WAITING} if scenario["host"]["ack_every"] == 1 else {})}
    only("", {key: scenario[key] for key in WORLD if key in scenario}, WORLD)
    only("host.", scenario["host"], of_host)
    only("switch.", scenario["switch"], SWITCH)
    known = laws(mtu, run["base_rtt_ps"])
    for name, (law, parameters) in schemes_of(run, rows).items():
        if law not in known:
            raise BadInput(f"scheme {run['scheme']}: found the law {law}; a rig has {', '.join(known)}")
        where = f"scheme {run['scheme']}, class {name}: "
        only(where, parameters, {**SCHEME, **known[law]})
        if parameters.get("underlay"):
            only(f"{where}underlay.", parameters["underlay"], underlay(run, mtu))


def only(where, found, allowed):
    """Refuses, by name, whatever a rig would not do."""
    for key, value in found.items():
        if key not in allowed:
            raise BadInput(f"{where}{key}: found {plain(value)}; a rig has nothing of the kind")
    for key, values in allowed.items():
        value = found.get(key)
        if isinstance(values, dict):
            only(f"{where}{key}.", value or {}, values)
        elif values is not ANY and canonical(value) not in [canonical(one) for one in values]:
            has = " or ".join(plain(one) for one in values if one is not None) or "nothing"
            raise BadInput(f"{where}{key}: found {'nothing' if value is None else plain(value)}; a rig has {has}")
