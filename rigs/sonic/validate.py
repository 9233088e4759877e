#!/usr/bin/env python3
"""Validates tables of CONFIG_DB by SONiC's YANG models, with libyang's yanglint.

usage: validate.py FILE...      exit code 1 if a file is no instance of the models

CONFIG_DB has an object for each table, with entries by key, whose parts are joined by `|`; the models have a list TABLE_LIST
with the parts as leaves. In YANG's JSON (RFC 7951) numbers of up to 32 bits and booleans are no texts. Ports that tables
refer to, and what a device is, are added.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = pathlib.Path(__file__).parent / "models"

# Tables: the model and the leaves of the key.
TABLES = {
    "BUFFER_PG": ("sonic-buffer-pg", ["port", "pg_num"]),
    "BUFFER_POOL": ("sonic-buffer-pool", ["name"]),
    "BUFFER_PROFILE": ("sonic-buffer-profile", ["name"]),
    "BUFFER_QUEUE": ("sonic-buffer-queue", ["port", "qindex"]),
    "DSCP_TO_TC_MAP": ("sonic-dscp-tc-map", ["name"]),
    "MAP_PFC_PRIORITY_TO_QUEUE": ("sonic-pfc-priority-queue-map", ["name"]),
    "PFC_WD": ("sonic-pfcwd", ["ifname"]),
    "PORT": ("sonic-port", ["name"]),
    "PORT_QOS_MAP": ("sonic-port-qos-map", ["ifname"]),
    "QUEUE": ("sonic-queue", ["ifname", "qindex"]),
    "SCHEDULER": ("sonic-scheduler", ["name"]),
    "TC_TO_PRIORITY_GROUP_MAP": ("sonic-tc-priority-group-map", ["name"]),
    "TC_TO_QUEUE_MAP": ("sonic-tc-queue-map", ["name"]),
    "WRED_PROFILE": ("sonic-wred-profile", ["name"]),
}
# Entries that are a map themselves: the names of its two leaves.
MAPS = {
    "DSCP_TO_TC_MAP": ("dscp", "tc"),
    "MAP_PFC_PRIORITY_TO_QUEUE": ("pfc_priority", "qindex"),
    "TC_TO_PRIORITY_GROUP_MAP": ("tc", "pg"),
    "TC_TO_QUEUE_MAP": ("tc", "qindex"),
}
# Leaves of up to 32 bits.
NUMBERS = {
    "dynamic_th", "weight", "tc", "priority", "POLL_INTERVAL", "detection_time", "restoration_time", "speed",
}


def value(leaf: str, text: str) -> object:
    if leaf in NUMBERS:
        return int(text)
    return {"true": True, "false": False}.get(text, text) if leaf.endswith("_enable") and leaf.startswith("wred") else text


def instance(database: dict) -> dict:
    """The instance data of the models."""
    data: dict = {}
    ports = {key.split("|")[0] for table in ("QUEUE", "BUFFER_PG", "PORT_QOS_MAP") for key in database.get(table, {})}
    database.setdefault("PORT", {port: {"lanes": str(n), "speed": "100000"} for n, port in enumerate(sorted(ports))})
    data["sonic-device_metadata:sonic-device_metadata"] = {"DEVICE_METADATA": {"localhost": {"hostname": "switch"}}}
    for table, entries in database.items():
        if table == "SWITCH_TRIMMING":
            # One entry, a container, whose numbers are small.
            numbers = {key: {leaf: int(text) for leaf, text in fields.items()} for key, fields in entries.items()}
            data["sonic-trimming:sonic-trimming"] = {table: numbers}
            continue
        model, keys = TABLES[table]
        rows = []
        for key, fields in entries.items():
            row = dict(zip(keys, key.split("|"), strict=True))
            if table in MAPS:
                names = MAPS[table]
                row[table] = [{leaf: value(leaf, text) for leaf, text in zip(names, pair, strict=True)} for pair in fields.items()]
            else:
                row |= {leaf: value(leaf, text) for leaf, text in fields.items()}
            rows.append(row)
        data.setdefault(f"{model}:{model}", {})[table] = {f"{table}_LIST": rows}
    return data


def models(folder: pathlib.Path) -> list[pathlib.Path]:
    """The models; of the two that are templates the branch for Python."""
    for path in MODELS.glob("*.yang"):
        (folder / path.name).write_text(path.read_text())
    for path in MODELS.glob("*.yang.j2"):
        lines, keeps = [], True
        for line in path.read_text().splitlines():
            if "{%" in line:
                keeps = "cvl" not in line
            elif keeps:
                lines.append(line)
        (folder / path.stem).write_text("\n".join(lines) + "\n")
    return sorted(folder.glob("*.yang"))


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        known = [str(path) for path in models(folder)]
        for path in sys.argv[1:]:
            data = folder / "instance.json"
            data.write_text(json.dumps(instance(json.loads(pathlib.Path(path).read_text()))))
            command = ["yanglint", "-p", name, "-t", "config", *known, str(data)]
            run = subprocess.run(command, capture_output=True, text=True)
            wrong = [line for line in run.stderr.splitlines() if line.startswith("libyang err")]
            if run.returncode or wrong:
                failed += 1
                print(f"{path}: no instance of SONiC's models: {' '.join(wrong) or run.stderr}", file=sys.stderr)
            else:
                print(f"{path}: an instance of SONiC's models")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
