# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests share: a run of the simulator as run.json has it, and its flows."""


def row(flow, source=1, size=100_000, start_ps=5_000_400, law="dctcp", name="incast"):
    return {"flow": str(flow), "src": f"h{source}", "dst": "h0", "size_bytes": str(size), "start_ps": str(start_ps),
            "law": law, "class": name}


# Parameters of laws as run.json has them.
LAWS = {
    "marimo": {
        "beta": 0.5, "decrease_above": 1.0, "decrease_from": "memory", "forget": True, "fractional": False,
        "idle_after": "2101.12us", "increase": 1.0, "increase_below": 0.9, "loss_decrease": 0.5, "loss_load": 1.2,
        "max_decrease": 0.5, "max_increase": 1.0, "min_epoch": 2, "rule": "paper", "settle": 0, "slow_start": "epoch",
        "table": "calibrated", "target": 0.95,
    },
    "dctcp": {"gain": 0.0625, "initial_alpha": 1.0, "min_window": "2.896KB", "whole_packets": True,
             "slow_start_limit": "none"},
    "cubic": {
        "beta": 0.7, "ecn": False, "fast_convergence": True, "hystart": True, "hystart_max_threshold": "16ms",
        "hystart_min_threshold": "4ms", "slow_start_limit": "none", "steepness": 0.4,
    },
    "bbr": {
        "ack_aggregation": False, "btlbw_window": 10, "cwnd_gain": 2.0, "drain_gain": 0.75, "full_pipe_growth": 1.25,
        "full_pipe_rounds": 3, "high_gain": 2.8853900817779268, "initial_rtt": "525.28us", "min_window": "5.792KB",
        "pacing_margin": 0.0, "probe_gain": 1.25, "probe_rtt_duration": "200ms", "rtprop_window": "10s",
        "send_quantum": "1.448KB",
    },
}


def scheme(law, **changes):
    return {"law": law, "priority": 0, "ack_priority": 0, "notification_priority": 0, "initial_window": "14.48KB",
            **LAWS[law], **changes}


def run_of(**changes):
    scenario = {
        "profile": "standard",
        "duration": "60ms",
        "drain": "3s",
        "warmup": "0ps",
        "topology": {"kind": "single-switch", "hosts": 5, "link": {"rate": "1Gbps", "delay": "125us"}},
        "wire": {"gap": "0B", "rounding": "exact"},
        "switch": {
            "agent": "none", "buffer": {"per_port": "150KB"}, "credits": False, "ecn": {"kind": "step", "at": "30280B"},
            "ecn_at": "enqueue", "load_balancing": "ecmp", "pfc": "off", "priorities": 1, "scheduler": "strict",
            "ties": "seeded", "trim": False,
            "virtual_channels": 1,
        },
        "host": {
            "ack_delay": "40ms", "max_ack_delay": "10ms", "ack_every": 2, "response_delay": "0ps", "control_first": True,
            "clock": {"drift_ppm": 0.0, "noise": "0ps", "offset": "0ps"}, "echo": "flag",
            "frames": {"control": "66B", "header": "66B", "min_size": "60B"}, "handshake": True, "mtu": "1448B",
            "lost_retransmission": "same-recovery", "pace_credit": "half-packet",
            "notification_delay": "0ps", "quick_acks": 16, "rto_min": "10ms", "timer_tick": "1ms",
        },
        "scheme": [scheme("dctcp")],
    }
    for path, value in changes.items():
        place, keys = scenario, path.split("__")
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
    return {"scheme": "dctcp", "seed": 3, "grid": {}, "base_rtt_ps": 525_280_000, "scenario": scenario}
