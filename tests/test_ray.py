"""On Ray a sweep comes to the same bytes as anywhere else, whoever is killed on the way."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import torch
from torch import nn

from tests.disturbed import MARK
from tests.toys import config, toy
from weightdecay.records import Notice, Progress, RunConfig
from weightdecay.runs import pack
from weightdecay.sweeps import CellFailed, Store, SweepEvent, Working, sweep_events
from weightdecay.sweeps.engine import Died, Ended, Engine, Job, Message
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.tasks import Task
from weightdecay.tune import Tuning

pytest.importorskip("ray")
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import AuthenticationError

from weightdecay.sweeps.ray_engine import OnRay, _writable

pytestmark = pytest.mark.cpu("its clusters have CPUs alone")
# A node that dies is missed in a second, instead of half a minute.
IMPATIENT = {"health_check_period_ms": 200, "health_check_failure_threshold": 3}
IMPATIENT |= {"health_check_initial_delay_ms": 0, "health_check_timeout_ms": 500}

MODELS = ("mlp", "dropping")


@pytest.fixture(scope="session", autouse=True)
def place() -> Iterator[Path]:
    """Give clusters a folder of their own: in Ray's, each would put its address over a user's."""
    with pytest.MonkeyPatch.context() as patch:
        place = Path(tempfile.mkdtemp(prefix="ray"))  # a short path: sockets are in it
        patch.setenv("RAY_TMPDIR", str(place))
        yield place
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def started() -> Iterator[Any]:
    """Give a cluster whose one node has one CPU."""
    head = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False, "_system_config": IMPATIENT}
    found = Cluster(initialize_head=True, head_node_args=head)
    yield found
    found.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with started() as found:
        yield found


@pytest.fixture
def node(cluster: Any) -> Iterator[Any]:
    """Give a second node, with one CPU, which the test may remove."""
    found = cluster.add_node(num_cpus=1, num_gpus=0, include_dashboard=False)
    yield found
    if found in cluster.worker_nodes:
        cluster.remove_node(found)


def swept(folder: Path, cells: list[RunConfig], engine: Engine) -> list[str]:
    for _ in sweep_events(cells, folder=folder, engine=engine):
        pass
    return list(Store(folder).results())


def slow_cells() -> list[RunConfig]:
    """Return two packs of one cell that take a few seconds, and save all the time."""
    return [config(task="tests.toys:hasty", model=model, epochs=40) for model in MODELS]


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what the slow cells come to where nobody disturbs them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CHECKPOINT_EVERY", "PROGRESS_EVERY"):  # the task changes them
            patch.setattr(pack, name, getattr(pack, name))
        return swept(tmp_path_factory.mktemp("whole"), slow_cells(), InProcess("cpu"))


def begins(event: SweepEvent) -> bool:
    """Whether a pack begins; a worker that was slow to start is heard of again, and begins none."""
    return isinstance(event, Working) and event.progress is None and not event.unheard


def workers_of(node: Any) -> list[int]:
    """Return the processes of a node that train."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for word in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has gone meanwhile
            if b"_Worker.do" in Path(f"/proc/{word}/cmdline").read_bytes():
                found.append(int(word))
    return found


@pytest.mark.slow
def test_on_ray_results_are_those_of_this_process(
    cluster: Any, node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"elsewhere{uuid4().hex}"
    (tmp_path / f"{module}.py").write_text("from tests.toys import toy as task\n")
    monkeypatch.syspath_prepend(tmp_path)
    cells = [
        *(config(algorithm=name, seed=seed) for name in ("adamw", "sgdw") for seed in range(3)),
        config(algorithm="sgdw", lr=1e30, weight_decay=0.0),  # diverges
        config(model="dropping"),
        config(task=f"{module}:task"),
    ]
    engine = OnRay(cluster.address)
    assert engine.workers == 2
    found = swept(tmp_path / "ray", cells, engine)
    assert len(found) == len(cells)
    assert found == swept(tmp_path / "here", cells, InProcess("cpu"))
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_tuning_on_ray_recommends_what_one_in_this_process_does(
    cluster: Any, node: Any, tmp_path: Path
) -> None:
    found, results = [], []
    engines: dict[str, Engine] = {"ray": OnRay(cluster.address), "here": InProcess("cpu")}
    for name, engine in engines.items():
        tuning = Tuning(
            tmp_path / name,
            task="tests.toys:toy",
            model="linear",
            epochs=8,
            batch=10,
            spend=2,
            at_once=2,
            shortest=1,
            lr=(0.004, 0.5),
        )
        found.append(tuning.run(engine=engine, progress=False))
        results.append(list(Store(tmp_path / name).results()))
    assert found[0] == found[1]
    assert results[0] == results[1]
    assert found[0].learned > 1


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(
    cluster: Any, node: Any, tmp_path: Path, expected: list[str]
) -> None:
    begun = 0
    killed: list[int] = []
    for event in sweep_events(slow_cells(), folder=tmp_path, engine=OnRay(cluster.address)):
        begun += begins(event)
        if not killed and isinstance(event, Working) and event.progress is not None:
            killed = workers_of(cluster.head_node)
            for worker in killed:
                os.kill(worker, signal.SIGKILL)
        assert not isinstance(event, CellFailed)
    assert killed
    assert begun == len(MODELS) + len(killed)
    assert list(Store(tmp_path).results()) == expected


@pytest.mark.slow
def test_a_killed_node_changes_nothing(
    cluster: Any, node: Any, tmp_path: Path, expected: list[str]
) -> None:
    begun = 0
    for event in sweep_events(slow_cells(), folder=tmp_path, engine=OnRay(cluster.address)):
        begun += begins(event)
        if node in cluster.worker_nodes and workers_of(node):
            cluster.remove_node(node, allow_graceful=False)
        assert not isinstance(event, CellFailed)
    assert node not in cluster.worker_nodes
    assert begun == len(MODELS) + 1
    assert list(Store(tmp_path).results()) == expected


@pytest.mark.slow
def test_a_cluster_of_the_tests_keeps_to_its_own_folder(cluster: Any, place: Path) -> None:
    assert (place / "ray" / "ray_current_cluster").read_text() == cluster.address


def until(engine: OnRay, kind: type[Message]) -> tuple[int, Message]:
    """Wait for a message of a kind, and return it with its job's number."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for number, message in engine.wait(0.5):
            if isinstance(message, kind):
                return number, message
    raise TimeoutError(kind)


@pytest.mark.slow
def test_a_death_is_told_in_words(cluster: Any, tmp_path: Path) -> None:
    with contextlib.closing(OnRay(cluster.address, device="cpu")) as engine:
        engine.begin(Job(7, tuple(slow_cells()[:1]), tmp_path))
        until(engine, Progress)
        [worker] = workers_of(cluster.head_node)
        os.kill(worker, signal.SIGKILL)
        number, died = until(engine, Died)
        assert number == 7
        assert isinstance(died, Died)
        assert died.reason.startswith("Its worker at ")
        assert "Ray says: The actor is dead because its worker process has died" in died.reason
        assert "\n" not in died.reason
        assert "actor_id" not in died.reason


@pytest.mark.slow
def test_a_death_is_told_though_a_forked_process_lives_on(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not keep the connection by which Ray knows the worker."""
    monkeypatch.setenv(MARK, str(tmp_path / "s"))
    (tmp_path / "s.fork").touch()
    one = config(task="tests.disturbed:leaving", epochs=400)
    told: list[Message] = []
    with contextlib.closing(OnRay(cluster.address, device="cpu")) as engine:
        engine.begin(Job(1, (one,), tmp_path / "s"))
        answer, limit = tmp_path / "s.forked", time.monotonic() + 60
        while not (answer.exists() and answer.read_text().endswith("\n")):
            engine.wait(0.1)
            assert time.monotonic() < limit
        worker, child = map(int, answer.read_text().split())
        os.kill(worker, signal.SIGKILL)
        limit = time.monotonic() + 30
        while not any(isinstance(said, Died) for said in told) and time.monotonic() < limit:
            told += [message for _, message in engine.wait(0.1)]
    os.kill(child, signal.SIGKILL)  # it was alive
    assert any(isinstance(said, Died) for said in told)


@pytest.mark.slow
def test_a_job_that_waits_for_a_place_can_be_stopped(cluster: Any, tmp_path: Path) -> None:
    first, second = slow_cells()[:2]
    with contextlib.closing(OnRay(cluster.address, workers=2)) as engine:
        engine.begin(Job(1, (first,), tmp_path))
        until(engine, Progress)
        engine.begin(Job(2, (second,), tmp_path))
        engine.ask_to_stop()
        assert until(engine, Ended) == (2, Ended())
        assert until(engine, Ended) == (1, Ended())


@pytest.mark.slow
def test_two_sweeps_of_one_folder_share_a_cluster_of_one_cpu(cluster: Any, tmp_path: Path) -> None:
    """An idle worker of the one must not hold the CPU that a cell of the other waits for."""
    cells = [config(model=model) for model in MODELS]
    ray.init(cluster.address, log_to_driver=False)
    try:
        going = [sweep_events(cells, folder=tmp_path, engine=OnRay(workers=1)) for _ in range(2)]
        for events in going:
            next(event for event in events if isinstance(event, Working))  # it has claimed a cell
        limit = time.monotonic() + 120
        while going and time.monotonic() < limit:
            going = [events for events in going if next(events, None) is not None]
        assert not going
    finally:
        ray.shutdown()
    assert len(Store(tmp_path).runs()) == len(cells)


@pytest.mark.slow
def test_where_ray_itself_dies_the_sweep_ends_and_says_so(tmp_path: Path) -> None:
    """Otherwise it would wait for a place for ever."""

    def sweep_and_kill() -> None:
        for event in sweep_events(slow_cells()[:1], folder=tmp_path, engine=OnRay(doomed.address)):
            if isinstance(event, Working) and event.progress is not None:
                doomed.head_node.all_processes["raylet"][0].process.kill()

    with started() as doomed, pytest.raises(ConnectionError, match="All recorded results are safe"):
        sweep_and_kill()
    assert not ray.is_initialized()


def test_where_the_folder_cannot_be_another_is_used(tmp_path: Path) -> None:
    assert _writable(tmp_path / "shared" / "runs") == tmp_path / "shared" / "runs"
    (tmp_path / "file").touch()
    elsewhere = _writable(tmp_path / "file" / "runs")
    assert elsewhere.parent == Path(tempfile.gettempdir())


def raising() -> Task:
    """Return the toy with a model that cannot be built, and leaves a mark for every try."""
    whole = toy()
    return Task("raising", whole.train, whole.test, whole.classes, {"mlp": _marked})


def _marked(generator: torch.Generator, *, marks: str) -> nn.Module:
    (Path(marks) / uuid4().hex).touch()
    raise RuntimeError("raised on purpose")


@pytest.mark.slow
def test_a_job_that_raises_fails_once_with_its_reason(cluster: Any, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    bad = config(task="tests.test_ray:raising", model=f"mlp,marks={marks}")
    events = list(sweep_events([bad, config()], folder=tmp_path, engine=OnRay(cluster.address)))
    [failed] = [event for event in events if isinstance(event, CellFailed)]
    assert failed.config == bad
    assert failed.failure.reason == "RuntimeError: raised on purpose"
    assert "_marked" in failed.failure.trace
    assert len(list(marks.iterdir())) == 1
    assert len(list(Store(tmp_path).results())) == 1


#: A sweep with a cluster of its own that stops at Ctrl-C as the command line does.
STOPPABLE = """
import signal, sys
from contextlib import closing
from tests.test_ray import long_cells
from weightdecay.sweeps import Working, sweep_events
from weightdecay.sweeps.ray_engine import OnRay

asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(True))
with closing(sweep_events(long_cells(), folder="swept", engine=OnRay(workers=1))) as events:
    for event in events:
        if isinstance(event, Working) and event.progress is not None:
            print("training", flush=True)
        if asked:
            break
print("stopped", flush=True)
"""


def long_cells() -> list[RunConfig]:
    """Return a pack that takes some seconds, and by itself would save after half a minute."""
    return [config(epochs=150, seed=seed) for seed in range(2)]


@pytest.mark.slow
def test_ctrl_c_saves_what_is_trained_and_leaves_no_process(tmp_path: Path) -> None:
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), *sys.path]))
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPABLE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    os.killpg(process.pid, signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert set(said.split()) <= {"training", "stopped"}
    assert said.endswith("stopped\n")
    assert errors == ""
    assert not _of_session(process.pid)
    folder = tmp_path / "swept"
    assert not list(Store(folder).results())
    events = list(sweep_events(long_cells(), folder=folder, engine=InProcess("cpu")))
    assert any(isinstance(e, Notice) and e.text.startswith("Resumed at") for e in events)
    found = list(Store(folder).results())
    assert found == swept(tmp_path / "whole", long_cells(), InProcess("cpu"))


def _of_session(number: int) -> list[str]:
    """Return the processes that are left of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            if int(words[3]) == number and words[0] != "Z":
                found.append(path.parent.name)
    return found


BAD: list[tuple[tuple[Any, ...], str]] = [
    ((None, 0), "`workers` must be at least 1, got 0"),
    ((None, 1.5), "`workers` must be a whole number, got 1.5"),
    ((None, None, "tpu"), "`device` must be one of 'cpu', 'cuda', got 'tpu'"),
    (("ray://there:10001",), "`address` must be that of a cluster, such as auto or host:6379"),
    (("127.0.0.1:1",), "`address` must be that of a running Ray cluster, got '127.0.0.1:1'"),
    (("nonsense",), "`address` must be that of a running Ray cluster, got 'nonsense'"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[str(case[0]) for case in BAD])
def test_a_cluster_that_cannot_be_used_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises((ConnectionError, TypeError, ValueError), match=said):
        OnRay(*arguments)
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_cluster_without_what_is_asked_for_is_refused(cluster: Any) -> None:
    with pytest.raises(ValueError, match="The cluster must have a GPU, but has none now"):
        OnRay(cluster.address, device="cuda")
    assert not ray.is_initialized()


def test_without_ray_the_rest_works_and_the_cure_is_said() -> None:
    script = (
        "import sys; sys.modules['ray'] = None\n"
        "import weightdecay.sweeps.coordinator\n"
        "import weightdecay.sweeps.ray_engine\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Sweeps on Ray need Ray: pip install 'weightdecay[ray]'"
    )


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def init(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(ray, "init", init)


REFUSALS = [ConnectionError("Failed to connect."), AuthenticationError("No token was found")]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_where_a_cluster_listens_and_lets_nobody_in_its_token_is_named(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Without its token, Ray tries for 20 seconds, and then says that it could not connect."""
    refuse(monkeypatch, error)
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"got '{address}': .*set RAY_AUTH_MODE=token"):
            OnRay(address)


def test_where_ray_cannot_start_here_its_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept in the home folder, which some machines have none of."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    refuse(monkeypatch, FileNotFoundError(2, "No such file or directory", "/home/nobody"))
    with pytest.raises(
        ConnectionError, match=r"^Ray did not start .*nobody.*\. Ray stores a token"
    ):
        OnRay(workers=1, device="cpu")
