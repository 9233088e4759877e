"""Runs of a sweep on a Ray cluster.

A task is a list of runs, long ones first and short ones at the end, and says what it needs: cores and memory. It knows
scenarios and the files that they name by their content, so that it can be done anywhere, and twice: equal runs have equal
results. What it did comes back through Ray's object store, or stays in the results' folder where its node sees that. Then the
runs of each point are joined as ``incast gather`` joins those of shards.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import random
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _incast
from ._errors import BusyError, Error, RunError
from ._progress import Progress
from ._scenario import Only, Scenario, again, conditions

# A task that its node loses is tried so many times more.
RETRIES = 3
# Seconds of CPU that a task is expected to take: short ones are a loss, and long ones are lost with a node.
SHORTEST, LONGEST = 0.5, 30.0
# Of what is left for each core a task is one part in so many: large ones first, and small ones so that all end together.
PARTS = 4
# Seconds between two looks at the nodes, and after which a task is given up that no node could do.
LOOK_EVERY, PATIENCE = 5.0, 30.0
# Bytes of the object store of a cluster of our own, which is this machine.
OBJECT_STORE = 128 << 20
# Memory of a worker that simulates nothing, in bytes.
BASE_MEMORY = 128 << 20
# Whether tasks may write to the results' folder, where their nodes see it.
SHARES_FOLDERS = True
# In the folder of all results, until their runs are joined.
STAGING = ".shards"


@dataclass(frozen=True)
class Portable:
    """A scenario as a worker takes it: files that it names are known by a hash of their content."""

    document: str | Path | tuple[Path, str]
    changes: list[tuple[str, str]]
    short: bool
    name: str
    hash: str
    files: dict[str, str]
    # Of a search: the values that it sets, the name that it has, and its seeds.
    search: tuple[list[tuple[str, str]], str, list[int]] | None = None

    def load(self, scratch: Path, contents: dict[str, bytes]) -> Scenario:
        """The scenario in a folder so deep below an empty one that no file of it is beside that."""
        folder = scratch.joinpath(*["below"] * max((Path(name).parts.count("..") for name in self.files), default=0))
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents[content])
        document = self.document
        if isinstance(document, tuple):
            document = (folder / document[0].name, document[1])
        scenario = again(document, self.changes, self.short, str(folder))
        if scenario.hash != self.hash:
            raise RunError(f"{self.name}: a file that it names by its whole path is another one on {os.uname().nodename}")
        if self.search:
            scenario._inner = scenario._inner.possible(*self.search)
        return scenario


@dataclass
class Task:
    """Runs that are done together."""

    runs: list[tuple[str, list[str]]] = field(default_factory=list)
    cpu_s: float = 0.0
    memory: int = 0
    tries: int = 0
    fitted: float = field(default_factory=time.monotonic)


def divide(single: list[Task], cores: float) -> list[Task]:
    """Tasks of several runs each, of tasks of one: runs of one scenario stay together, the most expensive come first."""
    most_expensive: dict[str, float] = {}
    for task in single:
        name = task.runs[0][0]
        most_expensive[name] = max(most_expensive.get(name, 0.0), task.cpu_s)
    left = sum(task.cpu_s for task in single)
    wanted = 0.0
    tasks: list[Task] = []
    for one in sorted(single, key=lambda task: -most_expensive[task.runs[0][0]]):
        ((name, (run,)),) = one.runs
        if not tasks or tasks[-1].cpu_s + one.cpu_s > wanted:
            wanted = min(max(left / (PARTS * cores), SHORTEST), LONGEST)
            tasks.append(Task())
        left -= one.cpu_s
        task = tasks[-1]
        if not task.runs or task.runs[-1][0] != name:
            task.runs.append((name, []))
        task.runs[-1][1].append(run)
        task.cpu_s += one.cpu_s
        task.memory = max(task.memory, one.memory)
    return tasks


@dataclass(frozen=True)
class How:
    """How all tasks run."""

    version: str
    seeds: int | None
    only: list[str]
    threads: int
    run_timeout: float | None
    staging: str
    token: str | None


@dataclass(frozen=True)
class Done:
    """What a task did: why not all of it, on which node, and the files of runs, unless these are where the driver sees them."""

    error: str | None
    node: str
    runs: list[tuple[str, str, dict[str, bytes]]]


def work(how: How, scenarios: list[tuple[Portable, list[str]]], contents: dict[str, bytes]) -> Done:
    """Does runs on a node. What is wrong with the node is an error that comes back: another node may do them."""
    import ray  # pyright: ignore[reportMissingImports]

    node, host = ray.get_runtime_context().get_node_id(), os.uname().nodename
    if _incast.version != how.version:
        return Done(f"incast on {host} is {_incast.version}, and here {how.version}", node, [])
    done: list[tuple[str, str, dict[str, bytes]]] = []
    try:
        with tempfile.TemporaryDirectory(prefix="incast-") as scratch:
            shared = _shared(how)
            out = shared or Path(scratch) / "out"
            for place, (portable, runs) in enumerate(scenarios):
                scenario = portable.load(Path(scratch) / str(place), contents)
                text = _incast.run(
                    scenario._inner,
                    out=out,
                    seeds=how.seeds,
                    only=how.only,
                    runs=runs,
                    jobs=1,
                    threads=how.threads,
                    existing="resume",
                    run_timeout=how.run_timeout,
                    progress=None,
                    stop=_incast.Stop(),
                )
                for run in runs:
                    folder = out / portable.name / run
                    if not (folder / "run.json").is_file():
                        # It could not be written.
                        why = dict(json.loads(text)["failures"]).get(run, "it was not done")
                        return Done(f"{host}: {why}", node, done)
                    if not shared:
                        done.append((portable.name, run, {file.name: file.read_bytes() for file in folder.iterdir()}))
    except (Error, OSError) as why:
        return Done(f"{host}: {why}", node, done)
    return Done(None, node, done)


def _shared(how: How) -> Path | None:
    """A new folder beside the results, if this node sees them and can write there."""
    staging = Path(how.staging)
    if how.token is None or _text(staging / "token") != how.token:
        return None
    own = staging / uuid.uuid4().hex
    try:
        own.mkdir()
    except OSError:
        return None
    return own


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def connect() -> Any:
    """Ray, on the cluster that there is, or else on a small one of this machine.

    Raises:
        RunError: it is not installed, or a cluster cannot be reached.
    """
    # Before it is imported, of a cluster that this starts: no usage statistics; a worker that takes too much memory is not
    # tried without end.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise RunError("executor: it takes Ray: pip install 'incast[ray]'") from missing
    if ray.is_initialized():
        return ray
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if _is_gone():
            raise ConnectionError("Could not find any running Ray")
        ray.init(address="auto", **quiet)
    except ConnectionError as why:
        if os.environ.get("RAY_ADDRESS") or "Could not find any running Ray" not in str(why):
            raise RunError(f"Ray: {why}") from why
        cores = len(os.sched_getaffinity(0))
        ray.init(address="local", num_cpus=cores, include_dashboard=False, object_store_memory=OBJECT_STORE, **quiet)
    return ray


def _is_gone() -> bool:
    """Whether the cluster that was last started on this machine is there no more. Ray would wait minutes for it."""
    if os.environ.get("RAY_ADDRESS"):
        return False
    try:
        address = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster").read_text()  # noqa: S108
        host, port = address.strip().rsplit(":", 1)
        socket.create_connection((host, int(port)), timeout=2).close()
    except (FileNotFoundError, ValueError):
        return False
    except OSError:
        return True
    return False


@dataclass(frozen=True)
class Part:
    """Some runs of what a search makes of its scenario; there is no summary of them."""

    search: tuple[list[tuple[str, str]], str, list[int]]
    inner: _incast.Scenario
    runs: list[str]


class Driver:
    """Divides the runs of some scenarios into tasks and joins what they did."""

    def __init__(
        self,
        scenarios: dict[str, Scenario],
        folder: Path,
        *,
        seeds: int | None,
        only: Only,
        jobs: int | None,
        threads: int,
        run_timeout: float | None,
        show: Progress | None,
        joined: Callable[[str, dict[str, Any] | Error], None],
        part: Part | None = None,
        stop: _incast.Stop | None = None,
    ):
        self.ray = connect()
        self.part, self.stop = part, stop
        self.scenarios, self.folder, self.jobs, self.show = scenarios, folder, jobs, show
        self.joined = joined
        self.staging = folder.absolute() / STAGING / uuid.uuid4().hex
        token = uuid.uuid4().hex if SHARES_FOLDERS else None
        self.how = How(_incast.version, seeds, conditions(only), threads, run_timeout, str(self.staging), token)
        self.selection = {"seeds": seeds, "only": conditions(only)}
        # Nodes that could not do a task; what others left is theirs as long as they are there.
        self.bad: set[str] = set()
        self.left: list[Path] = []
        # Runs of each scenario that are not there; why those are not that nobody could do; scenarios that are not joined.
        self.open: dict[str, set[str]] = {}
        self.lost: dict[str, dict[str, str]] = {name: {} for name in scenarios}
        self.unjoined: list[str] = list(scenarios)
        self.total = self.ended = 0
        self.nodes: list[dict[str, Any]] = []
        self.nodes_at = float("-inf")

    def run(self) -> None:
        """Does all of it.

        Raises:
            RunError: results are of something else, or somebody writes there.
        """
        # Locked before it has its name: another sweep would take it for one that was left.
        unnamed = self.staging.with_name("." + self.staging.name)
        unnamed.mkdir(parents=True)
        lock = os.open(unnamed, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if self.how.token:
            (unnamed / "token").write_text(self.how.token)
        unnamed.rename(self.staging)
        self.left = [folder for folder in self.staging.parent.glob("[!.]*") if folder != self.staging and _is_left(folder)]
        waiting: dict[Any, Task] = {}
        joins: dict[Future[list[str]], str] = {}
        killed = False
        with ThreadPoolExecutor(2) as pool:
            try:
                self._run(pool, waiting, joins)
            except BaseException:
                # What is done is kept.
                finished, _ = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=0) if waiting else ([], [])
                for reference in waiting:
                    if reference not in finished:
                        self.ray.cancel(reference, force=True)
                        killed = True
                for reference in finished:
                    self._take(reference, waiting[reference])
                pool.shutdown(cancel_futures=True)
                for name in [*self.unjoined, *joins.values()]:
                    if self._sources(name):
                        self._join(name)
                raise
            finally:
                for folder in [self.staging, *self.left]:
                    shutil.rmtree(folder, ignore_errors=True)
                # A worker that is being killed may make it anew.
                for _ in range(20 if killed else 0):
                    time.sleep(0.1)
                    if self.staging.exists():
                        shutil.rmtree(self.staging, ignore_errors=True)
                os.close(lock)
                with contextlib.suppress(OSError):
                    self.staging.parent.rmdir()

    def _run(self, pool: ThreadPoolExecutor, waiting: dict[Any, Task], joins: dict[Future[list[str]], str]) -> None:
        def missing(name: str) -> list[str]:
            if self.part:
                return self.part.runs
            inner, sources = self.inner(name), self._sources(name)
            return _incast.missing(inner, out=self.folder, sources=sources, **self.selection)

        def ask(name: str) -> list[Task]:
            return self._ask(name, missing(name))

        single = [task for tasks in pool.map(ask, self.scenarios) for task in tasks]
        todo = divide(single, max(1.0, self.ray.cluster_resources().get("CPU", 1.0)))
        remote = self.ray.remote(max_retries=RETRIES, num_cpus=self.how.threads)(work)
        portables, contents = self._portables()
        looked = time.monotonic()
        while todo or waiting or joins or self.unjoined:
            if self.stop and self.stop.is_set():
                raise RunError("stopped")
            while todo and (self.jobs is None or len(waiting) < self.jobs):
                task = todo.pop(0)
                runs = [(portables[name], runs) for name, runs in task.runs]
                options = {"memory": task.memory, **self._elsewhere(task)}
                waiting[remote.options(**options).remote(self.how, runs, contents)] = task
            for name in [name for name in self.unjoined if not self.open[name]]:
                self.unjoined.remove(name)
                joins[pool.submit(self._join, name)] = name
            if waiting:
                finished, _ = self.ray.wait(list(waiting), num_returns=min(len(waiting), 64), timeout=0.1)
                for reference in finished:
                    todo += self._take(reference, waiting.pop(reference))
            if time.monotonic() - looked > LOOK_EVERY:
                looked = time.monotonic()
                self._give_up(waiting)
            for join in [join for join in joins if join.done()] or ([] if waiting else list(joins)[:1]):
                name = joins.pop(join)
                if wanted := join.result():
                    # Seeds that inconclusive claims ask for.
                    todo += self._ask(name, wanted)
                    self.unjoined.append(name)
            if self.show:
                self.show(self.ended / max(1, self.total), f"{self.ended}/{self.total} runs, {len(waiting)} tasks in the cluster")

    def inner(self, name: str) -> _incast.Scenario:
        """What is run."""
        return self.part.inner if self.part else self.scenarios[name]._inner

    def _sources(self, name: str) -> list[str]:
        """Folders of a scenario's results that tasks left, of an earlier call that was killed, too."""
        return [str(path) for folder in [self.staging, *self.left] for path in folder.glob(f"*/{name}")]

    def _ask(self, name: str, runs: list[str]) -> list[Task]:
        """Has runs to be done: a task for each. A run that no node can do is given up."""
        self.open[name] = set(runs)
        self.total += len(runs)
        if not runs:
            return []
        tasks: list[Task] = []
        for run, cpu_s, memory in self.inner(name).costs(runs, self.how.seeds, self.how.threads):
            task = Task([(name, [run])], cpu_s, memory + BASE_MEMORY)
            if why := self._misfit(task):
                self._lose(name, run, why)
            else:
                tasks.append(task)
        return tasks

    def _nodes(self) -> list[dict[str, Any]]:
        """Nodes that are alive, as they were a moment ago."""
        if time.monotonic() - self.nodes_at > 1:
            self.nodes_at, self.nodes = time.monotonic(), [node for node in self.ray.nodes() if node["Alive"]]
        return self.nodes

    def _misfit(self, task: Task) -> str | None:
        """Why no node can do a task, if none can."""
        nodes = [node["Resources"] for node in self._nodes()]
        threads = self.how.threads
        if any(node.get("memory", 0) >= task.memory and node.get("CPU", 0) >= threads for node in nodes):
            return None
        most = {what: max((node.get(what, 0) for node in nodes), default=0) for what in ("memory", "CPU")}
        return (
            f"it needs {task.memory / 1e6:.0f} MB of memory and {threads} cores on one node; the largest of {len(nodes)} nodes "
            f"have {most['memory'] / 1e6:.0f} MB and {most['CPU']:.0f} cores"
        )

    def _give_up(self, waiting: dict[Any, Task]) -> None:
        """Gives up tasks that no node could do for some time: those that could are gone."""
        for reference, task in list(waiting.items()):
            why = self._misfit(task)
            if why is None:
                task.fitted = time.monotonic()
            elif time.monotonic() - task.fitted > PATIENCE:
                del waiting[reference]
                self.ray.cancel(reference, force=True)
                self._lose_all(task, why)

    def _elsewhere(self, task: Task) -> dict[str, Any]:
        """Options for a task that some node could not do: a node that has done none badly, if there is one."""
        if not task.tries:
            return {}
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

        good = [
            node["NodeID"]
            for node in self._nodes()
            if node["NodeID"] not in self.bad and node["Resources"].get("CPU", 0) >= self.how.threads
        ]
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(random.choice(good), soft=True)} if good else {}

    def _lose_all(self, task: Task, why: str) -> None:
        for name, runs in task.runs:
            for run in runs:
                if run in self.open[name]:
                    self._lose(name, run, why)

    def _lose(self, name: str, run: str, why: str) -> None:
        self.lost[name][run] = why
        self.open[name].discard(run)
        self.ended += 1

    def _portables(self) -> tuple[dict[str, Portable], Any]:
        """Scenarios for workers, and the content of all files that they name, once, in Ray's object store."""
        contents: dict[str, bytes] = {}
        portables: dict[str, Portable] = {}
        for name, scenario in self.scenarios.items():
            files: dict[str, str] = {}
            # Of a search both what it is made of and what it runs.
            for file, path in dict([*scenario._inner.files(), *self.inner(name).files()]).items():
                if os.path.isabs(file):
                    # Every node has it at its place, or the scenario's hash says that it has not.
                    continue
                content = Path(path).read_bytes()
                files[file] = hashlib.sha256(content).hexdigest()
                contents[files[file]] = content
            search = self.part and self.part.search
            portables[name] = Portable(scenario._document, scenario._changes, scenario._short, name, scenario.hash, files, search)
        return portables, self.ray.put(contents)

    def _take(self, reference: Any, task: Task) -> list[Task]:
        """Keeps what a task did; what of it another node is to try."""
        try:
            done: Done = self.ray.get(reference)
        except self.ray.exceptions.RayError as why:
            told = getattr(why, "cause", None) or why
            self._lose_all(task, f"{type(told).__name__}: {told}".strip().splitlines()[0])
            return []
        for name, run, files in done.runs:
            place = self.staging / "store" / name / run
            partial = place.with_name(run + ".partial")
            partial.mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                (partial / file).write_bytes(content)
            if not place.exists():
                partial.rename(place)
        if done.error is None:
            for name, runs in task.runs:
                self.open[name] -= set(runs)
                self.ended += len(runs)
            return []
        self.bad.add(done.node)
        if task.tries == RETRIES:
            self._lose_all(task, done.error)
            return []
        task.tries += 1
        return [task]

    def _join(self, name: str) -> list[str]:
        """Joins the runs of a scenario that are done; those that inconclusive claims ask for."""
        while True:
            try:
                if self.part:
                    _incast.adopt(self.inner(name), out=self.folder, sources=self._sources(name), runs=self.part.runs)
                    self.joined(name, {"lost": self.lost[name]})
                    return []
                text = _incast.gather(self.inner(name), out=self.folder, sources=self._sources(name), **self.selection)
                break
            except BusyError:
                # Another sweep does the same point.
                if self.stop and self.stop.is_set():
                    return []
                time.sleep(0.1)
            except Error as error:
                self.joined(name, error)
                return []
        gathered: dict[str, Any] = json.loads(text)
        lost = self.lost[name]
        gathered["failures"] += [(run, lost.get(run, "it was not done")) for run in gathered["missing"]]
        if gathered["wanted"] and not lost:
            return gathered["wanted"]
        self.joined(name, gathered)
        return []


def _is_left(folder: Path) -> bool:
    """Whether a folder of tasks is of a process that is gone."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True
