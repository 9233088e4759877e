# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests share: a sound RIG.json, and a row of its plan."""

GOOD = {
    "hosts": 3, "bottleneck_rate_bps": 10**9, "host_rate_bps": 10**9, "rtt_ns": 100_001, "buffer_bytes": 100_000,
    "congestion": "reno", "plan": "plan.csv", "red": {"min": 30_000, "max": 30_001, "limit": 100_000, "avpkt": 1500},
}
ROW = "1,h1,10.0.0.2,h0,10.0.0.1,5000,0,1000"
