"""An interrupted download resumes; a file that is not right is never put in place."""

import hashlib
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import Served, serving
from weightdecay import files
from weightdecay.tasks import Downloaded, UnreachableError, cache
from weightdecay.tasks.fetch import download

CONTENT = bytes(range(256)) * 5_000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def get(served: Served, path: Path, *, md5: str = MD5, largest: int = 1 << 24) -> list[Downloaded]:
    return list(download(served.url(path.name), path, md5=md5, largest=largest))


def test_a_download_says_how_far_it_is(tmp_path: Path) -> None:
    with serving(Served(CONTENT)) as served:
        progress = get(served, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert progress[0] == Downloaded("file", 0, len(CONTENT))
    assert progress[-1] == Downloaded("file", len(CONTENT), len(CONTENT))
    assert [step.done for step in progress] == sorted(step.done for step in progress)
    assert len(progress) > 3


def test_a_connection_that_breaks_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    with serving(Served(CONTENT, cuts=[300_000, 100_000])) as served:
        get(served, tmp_path / "file")
    assert served.asked == [None, "bytes=300000-", "bytes=400000-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_download_that_was_stopped_goes_on_another_day(tmp_path: Path) -> None:
    with serving(Served(CONTENT)) as served:
        progress = download(served.url("file"), tmp_path / "file", md5=MD5, largest=1 << 24)
        for _ in range(3):
            stopped = next(progress).done
        progress.close()  # type: ignore[attr-defined]
        assert [path.name for path in tmp_path.iterdir()] == ["file.part"]
        again = get(served, tmp_path / "file")
    assert served.asked == [None, f"bytes={stopped}-"]
    assert again[0].done == stopped > 0
    assert (tmp_path / "file").read_bytes() == CONTENT


BADLY = {
    "ignores ranges": Served(CONTENT, ranges=False),
    "ignores ranges and breaks off": Served(CONTENT, ranges=False, cuts=[700_000]),
    "does not say the length": Served(CONTENT, says_length=False),
}


@pytest.mark.parametrize("name", BADLY)
def test_a_poor_server_still_gives_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    with serving(BADLY[name]) as served:
        get(served, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_partial_file_longer_than_the_whole_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    with serving(Served(CONTENT)) as served:
        get(served, tmp_path / "file")
    assert served.asked == [f"bytes={len(CONTENT) + 4}-", None]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_always_breaks_off_at_one_place_is_given_up(tmp_path: Path) -> None:
    cuts = [500] * 100
    with (
        serving(Served(CONTENT, ranges=False, cuts=cuts)) as served,
        pytest.raises(UnreachableError, match="broke after 500 of 1,280,000 bytes") as error,
    ):
        get(served, tmp_path / "file")
    assert "resumes after the 500 bytes that were received" in str(error.value)
    assert len(served.asked) == 2
    assert not (tmp_path / "file").exists()


def test_a_range_that_was_not_asked_for_is_not_joined_on(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    with (
        serving(Served(CONTENT, shift=1)) as served,
        pytest.raises(
            UnreachableError, match="asked for bytes from 1000 on, but sent 'bytes 1001-"
        ),
    ):
        get(served, tmp_path / "file")
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:1000]


def test_altered_bytes_are_refused_by_name_and_thrown_away(tmp_path: Path) -> None:
    found = hashlib.md5(CONTENT[::-1]).hexdigest()
    with (
        serving(Served(CONTENT[::-1])) as served,
        pytest.raises(ValueError, match=f"file must have MD5 {MD5}, found {found}.*Run the same"),
    ):
        get(served, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_beginning_is_found_out_and_the_next_try_is_whole(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"x" * 1000)
    with serving(Served(CONTENT)) as served:
        with pytest.raises(ValueError, match="file must have MD5"):
            get(served, tmp_path / "file")
        get(served, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("says_length", [True, False])
def test_a_file_that_is_far_too_long_is_refused_while_it_comes(
    tmp_path: Path, says_length: bool
) -> None:
    done: list[int] = []
    with serving(Served(CONTENT, says_length=says_length)) as served:
        progress = download(served.url("file"), tmp_path / "file", md5=MD5, largest=300_000)
        with pytest.raises(ValueError, match="file must have at most 300,000 bytes"):
            done.extend(step.done for step in progress)
    assert 0 < max(done) <= 300_000
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_and_right_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    with serving(Served(CONTENT)) as served:
        assert get(served, tmp_path / "file") == []
    assert served.asked == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_is_told_with_its_reason(tmp_path: Path, status: int) -> None:
    with (
        serving(Served(CONTENT, status=status)) as served,
        pytest.raises(UnreachableError, match=rf"file cannot be reached: HTTP Error {status}"),
    ):
        get(served, tmp_path / "file")


def test_nobody_listening_is_told(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        with pytest.raises(UnreachableError, match=f"{re.escape(url)} cannot be reached"):
            list(download(url, tmp_path / "file", md5=MD5, largest=1))


@given(cuts=st.lists(st.integers(1, 400_000), max_size=6))
def test_however_it_breaks_the_file_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    with serving(Served(CONTENT, cuts=cuts)) as served:
        get(served, path)
    assert path.read_bytes() == CONTENT


def test_a_file_is_put_in_place_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    cache.place(path, b"first")

    def fail() -> None:
        with files.written(path) as file:
            file.write(b"second")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]
