#!/usr/bin/env python3
"""What Python costs (docs/performance.md): ns per packet-hop beside the command's, rows a second into each library, sweeps and
shards beside `incast run`. Run it with the Python of an environment that has the wheel, polars, pyarrow and pandas, such as
target/python/all/bin/python after scripts/python.sh. Pairs alternate, and the least of each counts.
usage: python-bench.py [hops] [rows] [sweep] [shard] [ray]
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import incast

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = pathlib.Path(sys.executable).parent / "incast"
PERMUTATION = incast.Scenario(ROOT / "scripts/instruction-gate.toml", workload=[{"kind": "permutation", "size": "3MB"}])


def folder():
    return pathlib.Path(tempfile.mkdtemp(prefix="incast-bench-"))


def by_command(scenario, *arguments):
    """Runs a scenario by the program; its results and the seconds that it took."""
    out = folder()
    (out / "it.toml").write_text(scenario.check().effective_toml)
    started = time.perf_counter()
    program = ROOT / "target/release/incast"
    subprocess.run([program, "run", out / "it.toml", "--out", out, "--quiet", *arguments], check=True, capture_output=True)
    took = time.perf_counter() - started
    return incast.open(out / scenario.name), took, out


def hops():
    """Of the program and of the extension, the least of seven."""
    ns = {"program": [], "Python": []}
    for _ in range(7):
        results, _, out = by_command(PERMUTATION, "--jobs", "1")
        ns["program"].append(results.runs[0]["cost"]["ns_per_packet_hop"])
        shutil.rmtree(out)
        ns["Python"].append(incast.run(PERMUTATION, jobs=1, progress=False).runs[0]["cost"]["ns_per_packet_hop"])
    least = {who: min(all_of) for who, all_of in ns.items()}
    print(f"ns per packet-hop: program {least['program']:.1f}, Python {least['Python']:.1f}, "
          f"{least['Python'] / least['program'] - 1:+.1%}")


def rows():
    """Of a table of ten million flows, all columns."""
    import polars
    import pyarrow
    import pyarrow.parquet

    out = folder()
    results = incast.run(PERMUTATION, out=out, progress=False)
    (file,) = results.folder.glob("*/flows.parquet")
    few = pyarrow.parquet.read_table(file)
    many = pyarrow.concat_tables([few] * (10_000_000 // len(few)))
    pyarrow.parquet.write_table(many, file, row_group_size=1 << 20, compression="zstd")
    count = len(many)
    del many
    for name, take in (
        ("pyarrow", lambda: pyarrow.table(results.flows)),
        ("polars", lambda: polars.DataFrame(results.flows)),
        ("pandas", lambda: results.flows.to_pandas()),
        ("pyarrow, two columns", lambda: pyarrow.table(results.flows.select("scheme", "slowdown"))),
    ):
        least = min(timed(take) for _ in range(3))
        print(f"{name}: {count / least / 1e6:.1f} million rows a second")
    shutil.rmtree(out)


def timed(what):
    started = time.perf_counter()
    held = what()
    took = time.perf_counter() - started
    del held
    return took


def scenario_of_sweeps():
    """A run of about 100 ms of CPU, and an axis of so many points."""
    link = {"rate": "100Gbps", "delay": "1us"}
    return incast.Scenario(
        name="sweep",
        duration="2500us",
        topology={"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 8, "host_link": link, "fabric_link": link},
        switch={"buffer": {"total": "4MB", "alpha": 1.0}, "ecn": {"kind": "step", "at": "0.2bdp"}},
        host={"mtu": "4096B"},
        workload=[{"class": "web", "kind": "poisson", "sizes": "websearch", "load": 0.5}],
        scheme=[{"law": "dctcp"}],
    )


def sweep():
    """Of 400 points, beside one grid of the program, in turns."""
    scenario = scenario_of_sweeps()
    axis = {"switch.ecn.at": [f"{10 + part}KB" for part in range(400)]}
    least = {"program": float("inf"), "Python": float("inf")}
    for _ in range(3):
        results, took, out = by_command(scenario.with_(grid=axis))
        cpu = sum(run["cost"]["cpu_s"] for run in results.runs) / len(results.runs)
        least["program"] = min(least["program"], took)
        shutil.rmtree(out)
        out = folder()
        least["Python"] = min(least["Python"], timed(lambda: incast.sweep(scenario, axis, out=out, progress=False)))
        again = timed(lambda: incast.sweep(scenario, axis, out=out, progress=False))
        shutil.rmtree(out)
    print(f"400 runs of {1e3 * cpu:.0f} ms of CPU: program {least['program']:.2f} s, Python {least['Python']:.2f} s, "
          f"{least['Python'] / least['program'] - 1:+.1%}; all found again in {again:.2f} s")


def ray():
    """1,000 points on Ray clusters of this machine, of one node with one core up to a node for each core, in turns with the
    program with as many runs at once; the figure of docs/clusters.md. The environment needs ray and matplotlib."""
    import os

    import ray
    from matplotlib import pyplot
    from ray.cluster_utils import Cluster

    scenario = scenario_of_sweeps()
    axis = {"switch.ecn.at": [f"{10 + part}KB" for part in range(1_000)]}
    took = {"incast run --jobs": {}, "Ray, nodes of one core": {}}
    for nodes in range(1, len(os.sched_getaffinity(0)) + 1):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20})
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        # Nodes have started, and workers have read the package.
        incast.sweep(scenario, {"switch.ecn.at": ["1KB", "2KB", "3KB", "4KB"]}, progress=False, executor="ray")
        for _ in range(3):
            _, program, out = by_command(scenario.with_(grid=axis), "--jobs", str(nodes))
            shutil.rmtree(out)
            out = folder()
            on_ray = timed(lambda out=out: incast.sweep(scenario, axis, out=out, progress=False, executor="ray"))
            shutil.rmtree(out)
            print(f"1,000 runs, {nodes} at once: program {program:.1f} s, Ray {on_ray:.1f} s, {on_ray / program - 1:+.1%}", flush=True)
            for times, seconds in zip(took.values(), (program, on_ray), strict=True):
                times[nodes] = min(seconds, times.get(nodes, seconds))
        ray.shutdown()
        cluster.shutdown()
        program, on_ray = (times[nodes] for times in took.values())
        print(f"least, {nodes} at once: program {program:.1f} s, Ray {on_ray:.1f} s, {on_ray / program - 1:+.1%}", flush=True)
    figure, axes = pyplot.subplots(figsize=(3.4, 2.4), layout="constrained")
    for (name, times), style in zip(took.items(), ("o--", "s-"), strict=True):
        axes.plot(list(times), [1_000 / seconds for seconds in times.values()], style, label=name)
    axes.set(xlabel="runs at once", ylabel="runs a second", xticks=list(times), ylim=(0, None))
    axes.legend()
    figure.savefig(ROOT / "docs/gallery/ray-nodes.png", dpi=200)


def shard():
    """What a shard costs beside its runs: a run of a scenario by itself, and the same run as a shard."""
    scenario = scenario_of_sweeps().with_(seeds=list(range(1, 101)))
    for name, arguments in (("run", ["--seeds", "1"]), ("shard of 100", ["--shard", "1/100"])):
        least = float("inf")
        for _ in range(5):
            out = folder()
            (out / "it.toml").write_text(scenario.check().effective_toml)
            program = [ROOT / "target/release/incast", "run", out / "it.toml", "--out", out, "--quiet", *arguments]
            least = min(least, timed(lambda: subprocess.run(program, check=True, capture_output=True)))
            shutil.rmtree(out)
        print(f"{name}: {1e3 * least:.0f} ms")


PARTS = {"hops": hops, "rows": rows, "sweep": sweep, "ray": ray, "shard": shard}
for part in sys.argv[1:] or ["hops", "rows", "sweep", "shard"]:
    PARTS[part]()
