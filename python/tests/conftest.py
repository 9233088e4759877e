"""What the tests share: a small scenario, and its results."""

import pytest

import incast

SMALL = {
    "name": "small",
    "duration": "200us",
    "seeds": [1, 2, 3],
    "topology": {"kind": "single-switch", "hosts": 8, "link": {"rate": "100Gbps", "delay": "1us"}},
    "switch": {"buffer": {"total": "4MB", "alpha": 1.0}, "ecn": {"kind": "step", "at": "0.2bdp"}},
    "host": {"mtu": "4096B"},
    "workload": [
        {"class": "web", "kind": "poisson", "sizes": {"fixed": "40KB"}, "load": 0.4},
        {"class": "incast", "kind": "incast", "fan_in": 6, "size": "64KB", "every": "50us"},
    ],
    "scheme": [{"law": "dctcp"}, {"law": "cubic"}, {"law": "swift"}],
    "measure": {"ports": {"every": "5us", "which": ["s0->*"]}, "rates": {"every": "5us", "flows": "all"}, "traces": True},
}


def without_cost(rows):
    """Rows without what differs from run to run."""
    cost = ("cpu_s", "wall_s", "ns_per_packet_hop", "peak_rss_bytes", "ci95")
    return [{key: value for key, value in row.items() if key not in cost} for row in rows]


@pytest.fixture
def small():
    return incast.Scenario(SMALL)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    return incast.run(SMALL, out=tmp_path_factory.mktemp("results"), progress=False)
