"""What the tests of sweeps on several machines share."""

import csv
import json
import pathlib
import subprocess
import sys

import pytest

from incast._sweep import SWEEP

COMMAND = str(pathlib.Path(sys.executable).parent / "incast")

SMALL = """
name = "small"
duration = "200us"
seeds = [1, 2, 3]
topology = { kind = "single-switch", hosts = 8, link = { rate = "100Gbps", delay = "1us" } }
switch = { buffer = { total = "4MB", alpha = 1.0 }, ecn = { kind = "step", at = "0.2bdp" } }
host = { mtu = "4096B" }
workload = [{ class = "web", kind = "poisson", sizes = { file = "sizes.csv" }, load = 0.4 }]
scheme = [{ law = "dctcp" }, { law = "cubic" }]
measure = { ports = { every = "5us", which = ["s0->*"] } }
"""
# Of all numbers in results: what runs cost, where they were done, and checksums of files that say so.
LEFT_OUT = ("cost", "host", "cpu_s", "wall_s", "ns_per_packet_hop", "peak_rss_bytes", "sha256")
SIZES = "size_bytes,cdf\n1000,0.0\n40000,0.6\n100000,1.0\n"


@pytest.fixture
def small(tmp_path):
    """The scenario, which names a file, and its folder."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    (folder / "sizes.csv").write_text(SIZES)
    (folder / "small.toml").write_text(SMALL)
    return folder / "small.toml"


def command(*arguments, code=0, **options):
    """Runs the program; what it said."""
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def contents(folder):
    """Files of results, without what differs between machines and times."""

    def plain(value):
        if isinstance(value, dict):
            # The checksums of runs in a summary; in rows it is their number.
            left_out = (*LEFT_OUT, "runs") if isinstance(value.get("runs"), dict) else LEFT_OUT
            return {key: plain(item) for key, item in value.items() if not key.startswith(left_out)}
        return [plain(item) for item in value] if isinstance(value, list) else value

    def table(text):
        rows = list(csv.DictReader(text.splitlines()))
        return json.dumps([{key: cell for key, cell in row.items() if not key.startswith(LEFT_OUT)} for row in rows])

    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        # The report draws what the others have; which folders are a sweep's is said where it is no URL.
        if path.is_file() and path.suffix != ".html" and not path.name.endswith(SWEEP):
            read = {".json": lambda text: json.dumps(plain(json.loads(text))), ".csv": table}.get(path.suffix)
            found[str(path.relative_to(folder))] = read(path.read_text()) if read else path.read_bytes()
    return found


@pytest.fixture
def tmpfs(tmp_path):
    """Makes small file systems, which are full soon or cannot be written."""
    mounted = []

    def mount(name, *options):
        place = tmp_path / name
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", *options, "none", place], check=False, capture_output=True).returncode:
            pytest.skip("only root may mount, and not everywhere")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=True)


