"""What the system refuses is no cell's failure: the sweep stops, and goes on after the cure."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import pytest

from tests.test_sweeps import CELLS, Scripted, done, lines_of, names, swept
from weightdecay import files
from weightdecay.cli import main
from weightdecay.records import Notice
from weightdecay.runs import pack
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.sweeps import Store, sweep_events
from weightdecay.sweeps.engine import Failed, Job, Message
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.sweeps.local import Local

pytestmark = pytest.mark.cpu("what the system refuses has no device")
Output = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_a_checkpoint_folder_that_cannot_be_made_stops_the_sweep_and_fails_no_cell(
    tmp_path: Path,
) -> None:
    swept(CELLS[:2], tmp_path)
    shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(
        OSError, match=r"could not write its files: .*checkpoints.* to continue with all of them"
    ):
        swept(CELLS, tmp_path, Local(2, "cpu"))
    assert lines_of(tmp_path, "failure") == []
    (tmp_path / "checkpoints").unlink()
    swept(CELLS, tmp_path, InProcess("cpu"))
    assert done(tmp_path) == names(CELLS)


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOTDIR, "remove what is in its place"),
        (errno.EACCES, "change the folder's permissions"),
        (errno.EROFS, "use a folder that is not read-only"),
        (errno.EIO, "solve this problem"),
        (errno.ENOSPC, "free space or inodes there"),
    ],
)
def test_the_cure_is_that_of_the_error(
    number: int, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(run: RunFiles) -> NoReturn:
        raise OSError(number, os.strerror(number), str(run.lock))

    monkeypatch.setattr(RunFiles, "held", refused)
    with pytest.raises(OSError, match=f"No cell counts as failed: {cure}, then run the same"):
        swept(CELLS, tmp_path, InProcess("cpu"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_under_a_task_stops_the_sweep_and_fails_no_cell(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str) -> NoReturn:
        raise OSError(number, "No space", f"/elsewhere/{name}")

    with monkeypatch.context() as patch:
        patch.setattr("weightdecay.tasks.catalogue.load", full)
        with pytest.raises(
            OSError, match=r"could not write its files: .*No space.* free space or inodes"
        ):
            swept(CELLS, tmp_path, InProcess("cpu"))
    assert lines_of(tmp_path, "failure") == []
    swept(CELLS, tmp_path, InProcess("cpu"))
    assert done(tmp_path) == names(CELLS)


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOSPC, "free space or inodes there"),
        (errno.EDQUOT, "free space or inodes there, or ask for a larger quota"),
    ],
)
def test_a_full_disk_names_the_file_and_the_cure(
    number: int, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = sweep_events(CELLS, folder=tmp_path, engine=Scripted())
    next(events)

    def full(file: int) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    log, plan = tmp_path / "log" / "000001.jsonl", tmp_path / "plan.jsonl"
    with pytest.raises(OSError, match=f"; {cure}: '{log}'$"):
        list(events)
    with pytest.raises(OSError, match=f"; {cure}: '{plan}'$"):
        sweep_events(CELLS, folder=tmp_path, engine=Scripted())


def test_a_disk_without_inodes_names_no_file_that_nobody_has_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(path: Path, *how: Any, **options: Any) -> IO[bytes]:
        if path.name.endswith(".unfinished"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return cast("IO[bytes]", opened(path, *how, **options))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=f"free space or inodes there: '{tmp_path}/plan.jsonl'$"):
        sweep_events(CELLS, folder=tmp_path, engine=Scripted())


def test_a_file_system_without_locks_is_named_and_fails_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*request: Any) -> NoReturn:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    cure = "; keep the folder on a file system that supports locks, such as a local disk: "
    events = sweep_events(CELLS, folder=tmp_path, engine=InProcess("cpu"))
    next(events)
    with monkeypatch.context() as patch:
        patch.setattr("fcntl.fcntl", refused)
        with pytest.raises(OSError, match=f"{cure}'{tmp_path}/claims/..'$"):
            next(events)
        patch.undo()
        patch.setattr("fcntl.flock", refused)
        with pytest.raises(OSError, match=f"{cure}'{tmp_path}/claims/plan'$"):
            sweep_events(CELLS, folder=tmp_path, engine=InProcess("cpu"))
    events = sweep_events(CELLS, folder=tmp_path, engine=InProcess("cpu"))
    next(events)
    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(
        OSError, match=f"could not write its files: .*{cure}'{tmp_path}/checkpoints/.*/lock'"
    ):
        list(events)
    assert lines_of(tmp_path, "failure") == []


def test_a_file_that_a_task_misses_elsewhere_still_fails_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No such file", f"/elsewhere/{name}")

    monkeypatch.setattr("weightdecay.tasks.catalogue.load", missing)
    swept(CELLS, tmp_path, InProcess("cpu"))
    assert sorted(line["run"] for line in lines_of(tmp_path, "failure")) == names(CELLS)


def test_too_many_open_files_halve_the_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, left = RunFiles.held, [2]

    @contextmanager
    def limited(files: RunFiles, **how: Any) -> Iterator[None]:
        if not left[0]:
            raise OSError(errno.EMFILE, "Too many open files", str(files.folder / "lock"))
        left[0] -= 1
        try:
            with held(files, **how):
                yield
        finally:
            left[0] += 1

    monkeypatch.setattr(RunFiles, "held", limited)
    swept(CELLS, tmp_path, InProcess("cpu"))
    assert done(tmp_path) == names(CELLS)


def test_a_full_disk_is_said_once_and_not_for_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, state: dict[str, Any]) -> NoReturn:
        del state
        raise OSError(errno.ENOSPC, "No space left on device", f"{path}.1f2e.unfinished")

    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr("weightdecay.runs.checkpoints.write", full)
    events = swept(CELLS, tmp_path, InProcess("cpu"))
    said = [event.text for event in events if isinstance(event, Notice)]
    where = (tmp_path / "checkpoints").absolute()
    assert said == [
        f"No checkpoint could be written to {where} (No space left on device); training continues."
    ]


def test_reasons_that_differ_by_a_path_are_one(tmp_path: Path, capsys: Output) -> None:
    def script(job: Job) -> list[Message]:
        reason = f"OSError: [Errno 5] Input/output error: '/data/{job.cells[0].identity}/x'"
        return [Failed(reason, "", memory=False)]

    swept(CELLS, tmp_path, Scripted(script, lanes=1))
    assert main(["status", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.count("Failed, ") == 1
    assert f"/{CELLS[0].identity}/x' (with other paths in the others)\n" in said
    assert "and 5 more, listed by --failures" in said


def test_asking_who_trains_a_cell_lets_go_of_no_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a lock is the process's, as on macOS, closing a file drops all that it has in it."""
    monkeypatch.setattr(files, "_OF_OPEN_FILES", False)
    mine, other = [f"{n:015x}000aa" for n in (1, 2)], f"{3:015x}000aa"  # of one file
    program = (
        "import sys; from weightdecay import files; from weightdecay.sweeps import Store; "
        "files._OF_OPEN_FILES = False; folder, *cells = sys.argv[1:]\n"
        "with Store(folder).claiming() as claims: print(*filter(claims.take, cells))"
    )
    command = [sys.executable, "-c", program, str(tmp_path), *mine, other]
    store = Store(tmp_path)
    with store.claiming() as claims:
        assert all(map(claims.take, mine))
        assert store.running([*mine, other]) == mine
        assert Store(tmp_path).running([*mine, other]) == mine
        assert subprocess.check_output(command, text=True).split() == [other]
    assert subprocess.check_output(command, text=True).split() == [*mine, other]


def test_another_process_sees_claims_that_are_the_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_OF_OPEN_FILES", False)
    cells = names(CELLS)
    program = (
        "import sys; from weightdecay import files; from weightdecay.sweeps import Store; "
        "files._OF_OPEN_FILES = False; folder, *cells = sys.argv[1:]\n"
        "print(*Store(folder).running(cells))"
    )
    command = [sys.executable, "-c", program, str(tmp_path), *cells]
    with Store(tmp_path).claiming() as claims:
        for run in cells[:3]:
            claims.take(run)
        for _ in range(2):  # to be seen takes nothing
            assert subprocess.check_output(command, text=True).split() == cells[:3]
