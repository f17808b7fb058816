"""A page that fills in: it tells each viewer what is new, only reads, and lets nobody else in."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from tests.pages import embedded_in
from tests.test_cli_landscape import some_runs
from tests.test_page import HOSTILE, rows
from weightdecay.cli import main, serve
from weightdecay.cli import parser as command_line
from weightdecay.live import Analysis, App, Watched, watching
from weightdecay.live.reading import Reading
from weightdecay.live.watching import as_json
from weightdecay.progress import duration
from weightdecay.records import Run
from weightdecay.records.codec import Cost, Failure
from weightdecay.site.interactive import fixed_data, live_page
from weightdecay.studies.so_far import SoFar
from weightdecay.sweeps import Store
from weightdecay.sweeps.progress_file import RunningPack, SweepProgress

pytestmark = pytest.mark.cpu("a page of finished runs does not depend on the device")
HERE = "127.0.0.1:8642"
ROOT = Path(__file__).parents[1]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(runs: list[Run], folder: Path = Path("sweep")) -> Store:
    store = Store(folder)
    store.ask_for({run.config.identity: run.config for run in runs})
    return store


def finish(store: Store, runs: list[Run]) -> None:
    with store.writing(workers=2) as writer:
        writer.results([(run, Cost(run.config.identity, 1.0, 10, 100)) for run in runs])


def options(*words: str) -> Any:
    return command_line().parse_args(["serve", *words])


def watched(*words: str, clock: Callable[[], float] = time.monotonic) -> Watched:
    given = options(*words)
    so_far = SoFar(given.source)
    return Watched(
        given.source,
        lambda: serve.analysis(given, so_far),
        began="b",
        fixed=fixed_data("weightdecay serve"),
        clock=clock,
    )


def values_of(data: Any) -> dict[tuple[str, float, float], Any]:
    """Return what a page shows of each cell."""
    return {
        (scape["title"], scape["lrs"][row], decay): [
            scape["cells"]["seeds"][at],
            scape["cells"]["diverged"][at],
            {
                split: [own[name][at] for name in ("values", "texts", "spreads")]
                for split, own in scape["splits"].items()
                if own["values"][at] is not None
            },
        ]
        for scape in data["landscapes"]
        for at, (row, decay) in enumerate(
            zip(scape["cells"]["lr"], scape["cells"]["decay"], strict=True)
        )
    }


def test_cells_are_told_when_they_finish_and_only_once() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    finish(store, runs[:30])
    found = watched("sweep", clock=clock)
    version, after = found.view.version, found.view.data["live"]["after"]
    assert found.news(version, after)["cells"] == []
    finish(store, runs[30:40])
    clock.now += 2
    news = found.news(version, after)
    new = {(run.config.lr, run.config.weight_decay) for run in runs[30:40]}
    assert len(news["cells"]) == len(new)
    assert news["status"]["stages"][0]["done"] == 40
    assert found.news(version, news["after"])["cells"] == []


def test_all_news_together_give_what_a_new_page_shows() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    finish(store, runs[:100])
    found = watched("sweep", clock=clock)
    data = json.loads(found.view.text)
    version, after = data["live"].values()
    for at in range(100, len(runs), 17):
        finish(store, runs[at : at + 17])
        clock.now += 2
        found._next = float("inf")  # no new view in between
        news = found.news(version, after)
        after = news["after"]
        for scape, cell, seeds, diverged, errors in news["cells"]:
            one = data["landscapes"][scape]
            one["cells"]["seeds"][cell], one["cells"]["diverged"][cell] = seeds, diverged
            for split, texts in errors.items():
                for name, value in zip(("values", "texts", "spreads"), texts, strict=True):
                    one["splits"][split][name][cell] = value
    assert values_of(data) == values_of(watched("sweep").view.data)


def test_a_plan_without_results_is_shown_with_a_place_for_every_cell() -> None:
    runs = some_runs()
    planned(runs)
    data = watched("sweep").view.data
    [scape] = data["landscapes"]
    places = {(run.config.lr, run.config.weight_decay) for run in runs}
    assert len(scape["cells"]["decay"]) == len(places)
    assert set(scape["cells"]["seeds"]) == {0}


def test_colours_have_no_meaning_before_the_first_result_and_get_it_at_once() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)
    first = found.view
    assert first.data["scales"] == {"test": {}}
    assert found.news("", 0)["status"]["note"].startswith("Waiting for the first result.")
    finish(store, runs[:2])
    clock.now += 2
    news = found.news(first.version, 0)  # not after a recommendation, which may take long
    assert news["version"] != first.version
    found.finish()
    found._worker = None
    scales = found.view.data["scales"]
    assert set(scales) == set(found.view.data["splits"])
    assert all(scale[""]["low"] < scale[""]["high"] for scale in scales.values())


def test_cells_in_training_are_told_until_they_are_done() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)
    scape = found.view.data["landscapes"][0]
    alone, *_, shared = runs
    beside = [
        run
        for run in runs
        if (run.config.lr, run.config.weight_decay)
        == (shared.config.lr, shared.config.weight_decay)
    ]

    def running() -> dict[tuple[float, float], int]:
        clock.now += 2
        found.news("", 0)  # the first result brings a new view
        found.finish()  # a view that comes between the next two calls would have another version
        cells = scape["cells"]
        return {
            (scape["lrs"][cells["lr"][at]], cells["decay"][at]): seeds
            for _, at, seeds in found.news(found.view.version, 0)["running"]
        }

    def place(run: Run) -> tuple[float, float]:
        lr, decay = run.config.lr, run.config.weight_decay
        assert decay is not None
        return float(f"{lr:.6g}"), float(f"{decay:.6g}")

    assert running() == {}
    with store.writing(workers=2) as writer, store.claiming() as claims:
        for run in (alone, *beside):
            claims.take(run.config.identity)
        assert running() == {place(alone): 1, place(shared): len(beside)}
        writer.results([(alone, Cost(alone.config.identity, 1.0, 10, 100))])
        claims.free(alone.config.identity)
        assert running() == {place(shared): len(beside)}
        assert found.news("another", 0)["running"] == []
    assert running() == {}


def test_before_the_first_result_the_time_left_is_that_of_the_packs_in_training() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)
    epochs = runs[0].config.epochs

    def stage() -> Any:
        clock.now += 10
        return found.news("", 0)["status"]["stages"][0]

    assert (stage()["left"], stage()["early"]) == ("", "")
    with store.writing(workers=2) as writer, store.claiming() as claims:
        for run in runs:
            claims.take(run.config.identity)
        first = "the first results come when the first pack of them ends"
        assert stage()["left"] == "not known yet"
        assert stage()["early"].endswith(f"{first}.")
        # Two packs of all cells, one at a quarter and one at half of its epochs.
        trained = [share * epochs * len(runs) / 2 for share in (0.25, 0.5)]
        packs = [
            RunningPack(runs[0].config.identity, trained[0], 0.1, 90.0),
            RunningPack(runs[1].config.identity, trained[1], 0.1, 60.0),
        ]
        writer.progress.write(SweepProgress(packs=2, running=tuple(packs)))
        now = stage()
        assert now["left"] == duration(max(90.0, 0.1 * (len(runs) * epochs - sum(trained)) / 2))
        assert now["early"].endswith(f"{first}, in about 1:00.")
        assert now["trained"] == pytest.approx(0.375 * len(runs))
        writer.results([(runs[0], Cost(runs[0].config.identity, 1.0, 10, 100))])
        assert stage()["early"] == ""
    assert stage()["left"] == ""  # what a sweep that is gone has said does not count


def test_a_new_view_has_the_recommendation_and_an_older_viewer_is_told_to_fetch_it() -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs)
    found = watched("sweep", clock=clock)
    before = found.view
    assert before.data["landscapes"][0]["advice"] is None
    found.news(before.version, 0)
    found.finish()
    assert found.view.data["landscapes"][0]["advice"] is not None
    assert "Change α and leave λ? Yes." in found.view.data["answers"]
    news = found.news(before.version, 0)
    assert news["version"] == found.view.version != before.version
    assert news["cells"] == []


def test_a_view_that_takes_long_is_made_rarely_and_none_if_nothing_has_changed() -> None:
    runs, clock, made = some_runs(), Clock(), []
    store = planned(runs)
    finish(store, runs[:50])
    given = options("sweep")

    def slow() -> Analysis:
        made.append(clock.now)
        clock.now += 3
        return serve.analysis(given, SoFar(given.source))

    found = Watched(Path("sweep"), slow, began="b", fixed={}, clock=clock)
    for _ in range(600):
        clock.now += 1
        found.news("", 0)
        found.finish()
    assert len(made) == 1
    for at in range(50, 100):
        finish(store, runs[at : at + 1])
        for _ in range(20):
            clock.now += 1
            found.news("", 0)
            found.finish()
    assert len(made) > 4
    assert min(np.diff(made[1:])) >= watching._SHARE * 3
    finish(store, runs[100:])
    clock.now += 2
    found.news("", 0)
    found.finish()
    assert made[-1] == clock.now - 3  # all is trained, so at once


def test_ten_viewers_read_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, clock, reads = some_runs(), Clock(), []
    finish(planned(runs), runs)
    found = watched("sweep", clock=clock)
    refresh = Store.refresh

    def counted(store: Store) -> Any:
        reads.append(store)
        return refresh(store)

    monkeypatch.setattr(Store, "refresh", counted)
    counts = []
    for viewers in (1, 10):
        clock.now += 5
        reads.clear()
        for _ in range(viewers):
            found.news(found.view.version, 0)
        counts.append(len(reads))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(("takes", "seconds"), [(0.0, 1.0), (0.02, 2.0), (3.0, 5.0)])
def test_a_source_that_takes_long_to_read_is_read_more_rarely(
    takes: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs)
    found = watched("sweep", clock=clock)
    looks, look = [], Reading.look

    def slow(reading: Reading) -> None:
        looks.append(clock.now)
        clock.now += takes
        look(reading)

    monkeypatch.setattr(Reading, "look", slow)
    for _ in range(4000):
        clock.now += 0.01
        found.news("", 0)
    found.finish()
    # Until the first look, nothing is known of how long it takes.
    assert np.allclose(np.diff(looks[1:]), seconds, atol=0.05)


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_watching_changes_nothing_and_a_sweep_can_begin_meanwhile() -> None:
    runs = some_runs()
    store = planned(runs)
    finish(store, runs[:50])
    before = files_of(Path("sweep"))
    found = watched("sweep")
    found.news("", 0)
    found.finish()
    assert files_of(Path("sweep")) == before
    finish(store, runs[50:])  # takes the locks that a sweep needs
    assert len(Store("sweep").runs()) == len(runs)


@pytest.mark.slow
def test_memory_is_flat_over_an_hour_of_news() -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs)
    found = watched("sweep", clock=clock)

    def minutes(count: int) -> None:
        for _ in range(60 * count):
            clock.now += 1
            as_json(found.news(found.view.version, 0))
            found.finish()

    minutes(3)
    tracemalloc.start()
    try:
        minutes(1)
        before, _ = tracemalloc.get_traced_memory()
        minutes(60)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_failures_are_told_with_their_reason_and_the_command_that_tries_again() -> None:
    runs = some_runs()
    store = planned(runs)
    with store.writing(workers=1) as writer:
        for at, run in enumerate(runs[:3]):
            writer.failure(Failure(run.config.identity, f"No file '/data/{at}'."))
    [stage] = watched("sweep").news("", 0)["status"]["stages"]
    assert stage["failed"] == 3
    [failure] = stage["failures"]
    assert (failure["cells"], failure["reason"]) == (3, "No file '/data/0'.")
    assert stage["retry"] == "weightdecay retry sweep"


def test_a_tuners_folder_which_has_no_plan_is_shown_from_its_first_trial_on() -> None:
    folder, clock = Path("tuning"), Clock()
    folder.mkdir()
    (folder / "tuner.json").write_text("{}", "utf-8")
    serve._check(folder)
    found = watched("tuning", clock=clock)
    assert found.view.data["landscapes"] == []
    runs = some_runs()
    for at in (0, 20, 40):
        finish(Store(folder), runs[at : at + 20])
        clock.now += 100
        [stage] = found.news("", 0)["status"]["stages"]
        found.finish()
        assert (stage["planned"], stage["done"]) == (None, at + 20)
        assert found.news("", 0)["status"]["trouble"] == ""
    [scape] = found.view.data["landscapes"]
    assert sum(scape["cells"]["seeds"]) == 60


def test_a_reproduction_shows_both_its_stages_and_what_fresh_seeds_found() -> None:
    folder = ROOT / "results" / "cifar10-small" / "figure-2"
    found = watched(str(folder))
    stages = found.news("", 0)["status"]["stages"]
    assert [stage["name"] for stage in stages] == ["", "judging"]
    assert [stage["done"] for stage in stages] == [stage["planned"] for stage in stages]
    found.finish()
    assert "judged by 8 fresh seeds" in found.view.data["answers"]
    notes = " ".join(found.view.data["notes"])
    assert "These settings were registered in figure-2-registered.toml (2026-11-16" in notes
    assert "The rule `interval` has changed." in notes, "every page lists what has changed"


def test_a_table_is_shown_again_when_it_changes() -> None:
    rows(["a"])
    clock = Clock()
    found = watched("runs.csv", "--convention", "torch", "--label", "model", clock=clock)
    assert len(found.view.data["landscapes"]) == 1
    rows(["a", "b"])
    clock.now += 10
    found.news("", 0)
    found.finish()
    assert len(found.view.data["landscapes"]) == 2


def test_a_table_that_cannot_be_read_just_now_is_told_and_the_page_stays() -> None:
    rows(["a"])
    clock = Clock()
    found = watched("runs.csv", "--convention", "torch", clock=clock)
    Path("runs.csv").write_text("lr\n", "utf-8")
    clock.now += 10
    found.news("", 0)
    found.finish()
    assert "must have a row of names" in found.news("", 0)["status"]["trouble"]
    assert len(found.view.data["landscapes"]) == 1


def later(found: Watched, clock: Clock, seconds: float = 100) -> Any:
    """Return what a viewer is told some time later, once a new view is there."""
    clock.now += seconds
    found.news("", 0)
    found.finish()
    return found.news(found.view.version, 0)


def test_an_analysis_that_fails_is_told_and_not_tried_at_every_look() -> None:
    runs, clock, tried = some_runs(), Clock(), []

    def analyse() -> Any:
        tried.append(clock.now)
        clock.now += 1
        return 1 / 0

    finish(planned(runs), runs[:-1])
    found = Watched(Path("sweep"), analyse, began="b", fixed=fixed_data("serve"), clock=clock)
    clock.now += 100
    for _ in range(5):
        told = found.news("", 0)
        found.finish()
        clock.now += 3
    assert len(tried) == 1
    assert "ZeroDivisionError" in told["status"]["trouble"]


def test_a_deleted_folder_is_told_and_the_page_stays() -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs)
    found = watched("sweep", clock=clock)
    assert later(found, clock)["status"]["trouble"] == ""
    before = found.view
    shutil.rmtree("sweep")
    status = later(found, clock)["status"]
    assert "sweep is no longer there" in status["trouble"]
    assert found.view is before
    assert "Change α and leave λ?" in found.view.data["answers"]


@pytest.mark.parametrize("noticed", [True, False])
def test_a_folder_that_is_made_again_is_read_from_its_beginning(noticed: bool) -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs[:5])
    found = watched("sweep", clock=clock)
    old = later(found, clock)["version"]
    shutil.rmtree("sweep")
    if noticed:
        later(found, clock)
    other = runs[100:]
    finish(planned(other), other[:20])  # its file is larger than what was read
    clock.now += 100
    assert found.news(old, 0)["version"] != old
    news = later(found, clock)
    [stage] = news["status"]["stages"]
    assert (stage["planned"], stage["done"]) == (len(other), 20)
    assert news["status"]["trouble"] == ""
    assert values_of(found.view.data) == values_of(watched("sweep").view.data)


def test_a_log_file_that_is_deleted_or_shorter_is_no_longer_counted() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    finish(store, runs[:30])
    finish(store, runs[30:40])
    found = watched("sweep", clock=clock)
    for name, done in (("000002.jsonl", 30), ("000001.jsonl", 0)):
        (Path("sweep/log") / name).unlink()
        assert later(found, clock)["status"]["stages"][0]["done"] == done
    finish(store, runs[:2])
    assert later(found, clock)["status"]["stages"][0]["done"] == 2
    [file] = Path("sweep/log").iterdir()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    assert later(found, clock)["status"]["stages"][0]["done"] == 1


def test_a_file_that_grows_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)
    monkeypatch.setattr(Watched, "_begin_again", lambda _: pytest.fail("it began again"))
    with store.writing(workers=2) as writer:
        for run in runs[:40]:
            writer.results([(run, Cost(run.config.identity, 1.0, 10, 100))])
            clock.now += 2
            found.news("", 0)
    assert found.news("", 0)["status"]["stages"][0]["done"] == 40


def test_a_table_that_is_moved_away_is_told_and_the_page_goes_on_when_it_is_back() -> None:
    rows(["a"])
    clock = Clock()
    found = watched("runs.csv", "--convention", "torch", clock=clock)
    Path("runs.csv").rename("away.csv")
    assert "runs.csv is no longer there" in later(found, clock)["status"]["trouble"]
    Path("away.csv").rename("runs.csv")
    assert later(found, clock)["status"]["trouble"] == ""


def test_a_plan_that_cannot_be_read_just_now_is_told_and_the_page_stays() -> None:
    runs, clock = some_runs(), Clock()
    finish(planned(runs), runs[:40])
    found = watched("sweep", clock=clock)
    plan = Path("sweep/plan.jsonl")
    whole = plan.read_bytes()
    plan.write_bytes(whole[:-30])
    status = later(found, clock)["status"]
    assert "must have one cell per line" in status["trouble"]
    assert status["stages"][0]["done"] == 40
    plan.write_bytes(whole)
    assert later(found, clock)["status"]["trouble"] == ""


def test_a_folder_is_waited_for_until_a_sweep_begins_in_it() -> None:
    runs, clock = some_runs(), Clock()
    serve._check(Path("sweep"))
    found = watched("sweep", clock=clock)
    status = later(found, clock)["status"]
    assert (status["stages"], status["trouble"]) == ([], "")
    assert status["note"].startswith("sweep does not exist yet.")
    Path("sweep").mkdir()
    serve._check(Path("sweep"))
    assert later(found, clock)["status"]["note"].startswith("sweep is empty so far.")
    finish(planned(runs), runs)
    status = later(found, clock)["status"]
    assert (status["stages"][0]["done"], status["note"]) == (len(runs), "")
    assert "Change α and leave λ?" in found.view.data["answers"]


def test_a_reproduction_that_has_yet_to_plan_its_runs_is_served() -> None:
    folder = Path("toys.hasty-own")
    folder.mkdir()
    (folder / "scale.json").write_text("{}")
    serve._check(folder)
    found = watched(str(folder))
    assert found.news("", 0)["status"]["note"].startswith("Waiting for the first result.")


def test_a_folder_with_sweeps_inside_it_names_them() -> None:
    clock = Clock()
    found = watched("all", clock=clock)
    planned(some_runs(), Path("all/first"))
    assert "It contains sweep folders: all/first" in later(found, clock)["status"]["trouble"]


@pytest.mark.parametrize("failed", [True, False])
def test_a_log_without_any_result_is_served(failed: bool) -> None:
    Path("tuning/log").mkdir(parents=True)
    if failed:
        with Store("tuning").writing(workers=1) as writer:
            writer.failure(Failure(some_runs()[0].config.identity, "No memory."))
    clock = Clock()
    found = watched("tuning", clock=clock)
    status = later(found, clock)["status"]
    assert found.view.data["landscapes"] == []
    assert (status["stages"][0]["failed"], status["trouble"]) == (int(failed), "")


def test_a_speed_is_told_only_while_something_trains() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)

    def speed() -> Any:
        clock.now += 30
        return found.news("", 0)["status"]["stages"][0]["speed"]

    with store.writing(workers=2) as writer:
        for at in (0, 10):
            some = runs[at : at + 10]
            writer.results([(run, Cost(run.config.identity, 1.0, 10, 100)) for run in some])
            told = speed()
        assert told == "20 cells per minute"
    assert speed() == ""
    finish(store, runs[20:])
    assert speed() == ""


def test_that_a_recommendation_is_coming_is_told_until_it_is_there() -> None:
    runs, clock = some_runs(), Clock()
    store = planned(runs)
    found = watched("sweep", clock=clock)
    assert "when cells are done" in found.news("", 0)["status"]["note"]
    finish(store, runs)
    found = watched("sweep", clock=clock)
    found._next, found._ended = float("inf"), float("inf")
    assert "is being computed" in found.news("", 0)["status"]["note"]
    found._next, found._ended = 0, -10
    assert later(found, clock)["status"]["note"] == ""


def test_the_command_that_tries_again_can_be_pasted_for_any_folder() -> None:
    store = planned(some_runs(), Path("my sweep"))
    [stage] = watched("my sweep").news("", 0)["status"]["stages"]
    assert shlex.split(stage["retry"]) == ["weightdecay", "retry", str(store.folder)]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no dual stack")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    with serve._listening("::", 0) as listening:
        port = listening.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=5).close()


def answer(
    app: App, path: str, *, method: str = "GET", host: str = HERE, query: str = "", cookie: str = ""
) -> SimpleNamespace:
    told: list[Any] = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
    environ |= {"HTTP_HOST": host, "HTTP_COOKIE": cookie}
    body = b"".join(app(environ, lambda status, headers: told.append((status, dict(headers)))))
    [(status, headers)] = told
    return SimpleNamespace(status=int(status[:3]), headers=headers, body=body.decode())


def app(token: str | None = None, names: tuple[str, ...] = ()) -> App:
    rows([HOSTILE, "plain"])
    found = watched("runs.csv", "--convention", "torch", "--label", "model")
    return App(
        found,
        lambda: live_page("Runs", found.view.data, command="weightdecay serve"),
        names=names,
        token=token,
    )


@pytest.mark.parametrize(
    "path",
    [
        *("/../../etc/passwd", "/runs.csv", "//etc/passwd", "/data/../runs.csv", "/data/", ""),
        *("/%2e%2e/runs.csv", "/news\x00", "/favicon.ico", "/log/000001.jsonl", "/./"),
    ],
)
def test_no_file_can_be_read(path: str) -> None:
    found = answer(app(), path)
    assert found.status == 404
    assert "weight_decay" not in found.body


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((one, 200) for one in (HERE, "127.0.0.1", "localhost:8642", "LOCALHOST", "[::1]:8642")),
        *((one, 200) for one in ("10.1.2.3:80", "trainer:8642")),
        *(
            (one, 421)
            for one in ("evil.example", "evil.example:8642", "", "127.0.0.1.evil.example")
        ),
        *((one, 421) for one in ("localhost.evil.example:8642", "trainer.evil.example", "[::1")),
    ],
)
def test_only_requests_that_name_this_server_are_answered(host: str, status: int) -> None:
    one = app(names=("trainer",))
    for path in ("/", "/data", "/news"):
        assert answer(one, path, host=host).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_only_reading_is_answered(method: str) -> None:
    assert answer(app(), "/news", method=method).status == 405


def test_a_head_has_no_body() -> None:
    found = answer(app(), "/news", method="HEAD")
    assert (found.status, found.body) == (200, "")


def test_elsewhere_nothing_is_told_without_the_token() -> None:
    one = app(token="secret")
    for path in ("/", "/data", "/news", "/other"):
        for query in ("", "token=wrong", "token="):
            found = answer(one, path, query=query)
            assert found.status == 403
            assert "secret" not in found.body
        assert answer(one, path, cookie="weightdecay-8642=wrong").status == 403
        assert answer(one, path, cookie="weightdecay-8642=\x01; =;").status == 403
    assert answer(one, "/data", query="token=secret").status == 403
    opened = answer(one, "/", query="token=secret")
    assert (opened.status, opened.headers["Location"]) == (303, "/")
    kept = opened.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in kept.split(";")}
    for path in ("/", "/data", "/news"):
        found = answer(one, path, cookie=kept.partition(";")[0])
        assert found.status == 200
        assert "secret" not in found.body


def test_two_servers_on_one_host_keep_their_viewers_apart() -> None:
    ports = ("8642", "8643")
    apps = {port: app(token=f"secret{port}") for port in ports}
    jar = {}
    for port, one in apps.items():
        opened = answer(one, "/", host=f"10.1.2.3:{port}", query=f"token=secret{port}")
        name, _, value = opened.headers["Set-Cookie"].partition(";")[0].partition("=")
        jar[name] = value  # a browser keeps one cookie of a name per host
    sent = "; ".join(f"{name}={value}" for name, value in jar.items())
    for port, one in apps.items():
        assert answer(one, "/data", host=f"10.1.2.3:{port}", cookie=sent).status == 200


def test_every_answer_is_guarded_and_the_page_may_ask_its_own_server_alone() -> None:
    one = app()
    for path in ("/", "/data", "/news", "/other"):
        headers = answer(one, path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', answer(one, "/").body)
    rules = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert (rules["default-src"], rules["connect-src"]) == ("'none'", "'self'")
    assert "unsafe" not in rules["script-src"]


def test_hostile_names_are_text_in_the_page_its_data_and_its_answers() -> None:
    one = app()
    page = answer(one, "/").body
    assert HOSTILE not in page
    assert page.count("<script>") == 2
    data = json.loads(answer(one, "/data").body)
    assert embedded_in(page)["landscapes"][0]["title"] == data["landscapes"][0]["title"]
    assert "<script" not in data["answers"]
    assert answer(one, "/data").headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=9" * 40, "version=%00&after=", "&&="]
)
def test_an_odd_question_gets_an_ordinary_answer(query: str) -> None:
    assert answer(app(), "/news", query=query).status == 200


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((one, True) for one in ("127.0.0.1", "127.8.8.8", "::1", "localhost")),
        *((one, False) for one in ("0.0.0.0", "::", "192.168.1.4", "trainer")),
    ],
)
def test_only_this_machines_own_addresses_need_no_token(host: str, here: bool) -> None:
    assert serve.is_loopback(host) is here


def test_a_port_in_use_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("waitress")
    rows(["a"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["runs.csv", "--convention", "torch", "--port", str(port)]
        assert main(["serve", *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"cannot listen on port {port} of 127.0.0.1: Address already in use" in said
    assert "--port 0 takes a free one" in said


def test_without_the_server_library_the_cure_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("waitress", "waitress.server"):
        monkeypatch.setitem(sys.modules, name, None)
    rows(["a"])
    assert main(["serve", "runs.csv", "--convention", "torch"]) == 2
    assert "pip install 'weightdecay[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("none.csv", "none.csv does not exist. Give the folder of a sweep"),
        ("none/inside", "inside does not exist. Give the folder of a sweep"),
        (".", "no plan.jsonl"),
    ],
)
def test_a_source_that_is_none_is_refused(
    source: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("waitress")
    Path("other").mkdir()
    assert main(["serve", source]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


PLAN = "got study.toml, which plans runs. Train them with `weightdecay sweep study.toml --out FOLD"


@pytest.mark.parametrize("command", ["serve", "report", "landscape"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study.toml"], PLAN),
        (["sweep", "--convention", "torch"], "--convention must be left out for the folder"),
        (["sweep", "--label", "model"], "--label must be left out for the folder of a sweep"),
        (["sweep", "--column", "lr=rate"], "got lr=rate: its runs say what they are."),
    ],
)
def test_a_plan_is_not_runs_and_a_folder_takes_no_options_of_tables(
    command: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("waitress")
    runs = some_runs(seeds=1)
    finish(planned(runs), runs)
    Path("study.toml").write_text('task = "mnist1d"\n')
    port = ["--port", "0"] * (command == "serve")
    assert main([command, *words, *port]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_is_still_to_come_takes_no_options_of_tables_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("waitress")
    assert main(["serve", "sweep", "--convention", "torch"]) == 2
    assert "--convention must be left out for the folder" in capsys.readouterr().err


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a sweep in another process, and return that and the address it prints."""
    pytest.importorskip("waitress")
    runs = some_runs()
    finish(planned(runs), runs[:60])
    words = [sys.executable, "-m", "weightdecay", "serve", "sweep", "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().removeprefix("Open ").strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_server_answers_until_it_is_stopped_and_ends_cleanly(
    server: tuple[subprocess.Popen[str], str], sign: signal.Signals
) -> None:
    process, address = server
    assert address.startswith("http://127.0.0.1:")
    with urlopen(f"{address}news?version=&after=0") as answered:
        news = json.load(answered)
    assert news["status"]["stages"][0]["done"] == 60
    process.send_signal(sign)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.endswith("Stopped. The runs go on.\n")
