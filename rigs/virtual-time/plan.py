# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plan of flows, and the addresses of its hosts."""

import csv

from errors import BadInput

HEADER = "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"


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
