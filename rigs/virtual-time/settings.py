# SPDX-License-Identifier: MIT OR Apache-2.0
"""RIG.json."""

import json
import re

from errors import BadInput


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
    sound = isinstance(value, dict) and all(re.fullmatch(r"[\w.-]+", f"{key}{entry}") for key, entry in value.items())
    return None if sound else "an object of words"


def clocks(value):
    sound = isinstance(value, dict) and all(
        re.fullmatch(r"h[0-9]+", key) and isinstance(entry, list) and len(entry) == 2 and
        not any(whole(-(1 << 40), 1 << 40)(number) for number in entry) for key, entry in value.items())
    return None if sound else "an object of hosts, each with nanoseconds and parts in 10^9"


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
    "onramp": (words, None),
    "clocks": (clocks, None),
}


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
