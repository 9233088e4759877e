# SPDX-License-Identifier: MIT OR Apache-2.0
"""`plan.csv`: the flows of a run as a rig plays them."""

PORT_BASE = 10000


def plan(rows):
    """`plan.csv`: the flows as the rig's traffic program reads them. Hosts are namespaces of their names; h5 is 10.0.5.1."""
    mixed = len({row["law"] for row in rows}) > 1
    lines = ["flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes"]
    lines[0] += ",congestion" if mixed else ""
    for row in rows:
        source, destination = (int(row[end].removeprefix("h")) for end in ("src", "dst"))
        lines.append(
            f"{row['flow']},{row['src']},{address(source)},{row['dst']},{address(destination)},"
            f"{PORT_BASE + int(row['flow'])},{round(int(row['start_ps']) / 1000)},{row['size_bytes']}"
            + (f",{row['law']}" if mixed else "")
        )
    return "\n".join(lines) + "\n"


def address(host):
    return f"10.0.{host // 250}.{host % 250 + 1}"
