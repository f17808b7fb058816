"""`weightdecay serve` in a real browser: cells appear as they finish, and a stop is said."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser, browser, needs_browser
from tests.test_cli_landscape import some_runs
from tests.test_live import finish, planned
from tests.test_page import HOSTILE, rows
from tests.test_so_far import COMMITTED, FOLDER, SCALE, STUDY, begun, of_panels
from weightdecay.records.codec import Failure
from weightdecay.records.tables import imported

pytest.importorskip("waitress")
pytestmark = [needs_browser(), pytest.mark.cpu("a browser draws without torch")]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def serving(*words: str, port: int = 0) -> Iterator[str]:
    """Serve a source in another process, and return its address."""
    command = [sys.executable, "-m", "weightdecay", "serve", *words, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("Open ").strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def visit(shown: Browser, address: str, width: int = 1280) -> None:
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    shown.command("Emulation.setDeviceMetricsOverride", **size)
    shown.driver.get("about:blank")  # the page of a server that has stopped still complains
    shown.driver.get_log("browser")
    shown.driver.get_log("performance")
    shown.driver.get(address)


def eventually(look: Callable[[], Any], *, seconds: float = 30) -> Any:
    """Return what is seen once it is true; it must be so in time."""
    ends = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.1)
    return found


def told(shown: Browser, place: str) -> str:
    return str(shown.js("return document.querySelector(arguments[0])?.textContent ?? ''", place))


def coloured(shown: Browser) -> int:
    """Return how many cells of the first picture have the colour of an error."""
    fills = shown.js(
        "return [...document.querySelectorAll('#panels .picture svg path[stroke=\"#ffffff\"]')]"
        ".map((one) => one.getAttribute('fill'))"
    )
    return sum(fill not in ("none", "#ffffff") for fill in fills)


def test_cells_appear_as_they_finish_and_then_the_answer(shown: Browser) -> None:
    runs = some_runs()
    store = planned(runs)
    with serving("sweep") as address:
        visit(shown, address)
        assert eventually(lambda: "0 of 168 cells done" in told(shown, "#stages"))
        assert shown.js("return document.querySelectorAll('figure').length") == 1
        empty = coloured(shown)
        finish(store, runs[:40])
        eventually(lambda: "40 of 168 cells done" in told(shown, "#stages"))
        some = eventually(lambda: coloured(shown) > empty and coloured(shown))
        assert "Best so far, AdamW" in told(shown, "#stages")
        finish(store, runs[40:])
        eventually(lambda: coloured(shown) > some)
        assert eventually(lambda: "Change α and leave λ? Yes." in told(shown, "#answers"))
        shown.keep("serve")
        asked = shown.requests()
        assert {one for one in asked if not one.startswith(("data:", "blob:"))} <= {
            one for one in asked if one.startswith(address)
        }
        assert shown.complaints() == []


def layer(shown: Browser, name: str) -> int:
    """Return how many marks of a kind the first picture has."""
    return int(
        shown.js(
            "const drawn = document.querySelector('#panels .picture');"
            "const roots = echarts.getInstanceByDom(drawn)?.getZr().storage.getRoots() ?? [];"
            "return roots.find((one) => one.name === arguments[0])?.childCount() ?? 0",
            name,
        )
    )


# How many cells are marked as being in training, whenever the browser paints.
_SAMPLED = """
window.seen = [];
const look = () => {
  const drawn = document.querySelector('#panels .picture');
  const roots = echarts.getInstanceByDom(drawn)?.getZr().storage.getRoots();
  if (roots) window.seen.push(roots.find((one) => one.name === 'running')?.childCount() ?? 0);
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def label(shown: Browser) -> str:
    """Return what the first picture says to screen readers."""
    script = "return document.querySelector('#panels .picture')?.getAttribute('aria-label') ?? ''"
    return str(shown.js(script))


def test_cells_in_training_are_marked_and_said(shown: Browser) -> None:
    from selenium.webdriver import Keys  # noqa: PLC0415 - it may not be installed

    runs = some_runs(seeds=1)
    store = planned(runs)
    with serving("sweep") as address:
        visit(shown, address)
        eventually(lambda: f"0 of {len(runs)} cells done" in told(shown, "#stages"))
        assert layer(shown, "running") == 0
        with store.writing(workers=2), store.claiming() as claims:
            for run in runs[:5]:
                claims.take(run.config.identity)
            eventually(lambda: layer(shown, "running") == 5)
            eventually(lambda: "5 running" in told(shown, "#stages"))
            assert "when the first pack of them ends" in told(shown, "#stages .early")
            rest = len(runs) - 5
            assert f"5 in training now and {rest} waiting" in label(shown)
            assert not shown.js("return document.getElementById('about-training').hidden")
            picture = shown.driver.find_element("css selector", "#panels .picture")
            picture.send_keys(Keys.ARROW_UP)
            assert "in training now, no result yet" in told(shown, "#live")
            for _ in range(9):
                picture.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
            assert "waiting, not trained yet" in told(shown, "#live")
            shown.keep("serve-training")
            shown.js(_SAMPLED)
            finish(store, runs[5:])  # which gives a new view
            eventually(lambda: "learning rate" in told(shown, "#answers"))
            assert min(shown.js("return window.seen")) == 5
        eventually(lambda: layer(shown, "running") == 0)
        finish(store, runs[:5])
        eventually(lambda: shown.js("return document.getElementById('about-training').hidden"))
        eventually(lambda: "waiting" not in label(shown))
        assert shown.complaints() == []


def test_claims_of_a_reproduction_appear_when_they_can_be_judged(shown: Browser) -> None:
    runs = {run.config.identity: run for run in imported(COMMITTED / "records.parquet")}
    figure = {cell.identity: runs[cell.identity] for cell in STUDY.cells(SCALE)}
    store = begun(figure)
    adam = of_panels(["adam"], figure)
    finish(store, adam)
    rows = "return echarts.getInstanceByDom(document.querySelector('#forest .picture'))"
    rows += "?.getOption().series.reduce((sum, one) => sum + one.data.length, 0) ?? 0"
    with serving(str(FOLDER)) as address:
        visit(shown, address)
        eventually(lambda: "claims cannot be judged before" in told(shown, "#claims"))
        before = eventually(lambda: shown.js(rows))
        assert "gains nothing from L2" in told(shown, "#claims")
        shown.js("document.querySelector('#claims details').open = true")
        finish(store, [run for run in figure.values() if run not in adam])
        eventually(lambda: "AdamW's best is better than Adam's" in told(shown, "#claims"))
        eventually(lambda: shown.js(rows) > before)
        assert shown.js("return document.querySelector('#claims details').open")
        assert "claims about this figure" in told(shown, "#first")
        shown.js("document.getElementById('claims').scrollIntoView()")
        shown.settle()
        shown.keep("serve-claims")
        assert shown.complaints() == []


def test_what_a_person_has_chosen_stays_when_news_come(shown: Browser) -> None:
    runs = some_runs()
    store = planned(runs)
    finish(store, runs[:60])
    with serving("sweep") as address:
        visit(shown, address)
        eventually(
            lambda: shown.js("return document.querySelectorAll('input[name=way]').length === 3")
        )
        eventually(lambda: "learning rate" in told(shown, "#answers"))
        shown.js("document.querySelectorAll('input[name=way]')[2].click()")
        shown.js("document.querySelector('input[name=ridge]').click()")
        shown.js("document.querySelector('#answers details').open = true")
        finish(store, runs[60:])
        eventually(lambda: "168 of 168 cells done" in told(shown, "#stages"))
        eventually(lambda: "Change α and leave λ? Yes." in told(shown, "#first"))
        assert shown.js("return document.querySelectorAll('input[name=way]')[2].checked")
        assert not shown.js("return document.querySelector('input[name=ridge]').checked")
        assert shown.js("return document.querySelector('#answers details').open")


def test_a_stopped_server_is_said_and_the_page_goes_on_when_it_is_back(shown: Browser) -> None:
    runs = some_runs(seeds=2)
    store = planned(runs)
    finish(store, runs[:40])
    with serving("sweep") as address:
        visit(shown, address)
        eventually(lambda: "40 of 112 cells done" in told(shown, "#stages"))
        assert told(shown, "#connection") == ""
    eventually(lambda: "No answer from the server since" in told(shown, "#connection"))
    shown.keep("serve-stopped")
    finish(store, runs[40:50])
    port = int(address.rstrip("/").rpartition(":")[2])
    with serving("sweep", port=port) as again:
        assert again == address
        eventually(lambda: "50 of 112 cells done" in told(shown, "#stages"))
        assert told(shown, "#connection") == ""


def test_failures_are_shown_as_text_with_the_command_that_tries_again(shown: Browser) -> None:
    runs = some_runs(seeds=2)
    store = planned(runs)
    with store.writing(workers=1) as writer:
        writer.failure(Failure(runs[0].config.identity, HOSTILE))
    with serving("sweep") as address:
        visit(shown, address)
        eventually(lambda: HOSTILE.partition("\u2028")[0] in told(shown, "#stages"))
        assert "weightdecay retry sweep" in told(shown, "#stages")
        assert shown.js("return document.querySelectorAll('img, #stages script').length") == 0
        assert shown.complaints() == []


def test_hostile_names_do_nothing_when_news_bring_them(shown: Browser) -> None:
    rows(["plain"])
    with serving("runs.csv", "--convention", "torch", "--label", "model") as address:
        visit(shown, address, width=500)
        eventually(lambda: shown.js("return document.querySelectorAll('figure').length === 1"))
        rows(["plain", HOSTILE])
        eventually(lambda: shown.js("return document.querySelectorAll('figure').length === 2"))
        eventually(lambda: HOSTILE.partition("\u2028")[0] in told(shown, "#first"))
        assert shown.js("return document.querySelectorAll('img, #first script').length") == 0
        assert shown.js("return document.documentElement.scrollWidth") <= 500
        assert shown.complaints() == []


def test_a_page_waits_for_a_sweep_and_says_what_is_to_come(shown: Browser) -> None:
    runs = some_runs(seeds=2)
    with serving("sweep") as address:
        visit(shown, address)
        eventually(lambda: "sweep does not exist yet" in told(shown, "#stages"))
        store = planned(runs)
        eventually(lambda: "Waiting for the first result. A recommend" in told(shown, "#stages"))
        eventually(lambda: shown.js("return document.querySelectorAll('figure').length === 1"))
        assert shown.js("return document.getElementById('scale').hidden")
        assert shown.js("return document.getElementById('loading').hidden")
        shown.keep("serve-waiting")
        assert shown.js("return document.getElementById('choose-marks').hidden")
        finish(store, runs)
        eventually(lambda: "Change α and leave λ?" in told(shown, "#answers"))
        eventually(lambda: "Best so far" not in told(shown, "#stages"))
        assert "112 of 112 cells done" in told(shown, "#stages")
        assert "per minute" not in told(shown, "#stages")
        assert "A recommendation appears here" not in told(shown, "#stages")
        assert not shown.js("return document.getElementById('choose-marks').hidden")
        assert not shown.js("return document.getElementById('scale').hidden")
        assert shown.complaints() == []


def test_a_source_that_is_gone_is_said_and_not_taken_for_a_stopped_server(shown: Browser) -> None:
    rows(["plain"])
    with serving("runs.csv", "--convention", "torch") as address:
        visit(shown, address)
        eventually(lambda: shown.js("return document.querySelectorAll('figure').length === 1"))
        Path("runs.csv").rename("away.csv")
        eventually(lambda: "runs.csv is no longer there" in told(shown, "#stages"))
        assert told(shown, "#connection") == ""
        assert shown.js("return document.querySelectorAll('figure').length") == 1
        Path("away.csv").rename("runs.csv")
        eventually(lambda: told(shown, "#stages") == "")
