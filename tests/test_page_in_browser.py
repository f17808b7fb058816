"""The page of `weightdecay report` in a real browser: it does what it says, and nothing else."""

import csv
import io
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.browser import Browser, browser, needs_browser
from tests.landscapes import Truth, measured, runs_of
from tests.pages import embedded_in
from tests.test_cli_landscape import stored
from tests.test_page import HOSTILE, rows, sweep, with_twins
from weightdecay.cli import main
from weightdecay.site.parts import Picture
from weightdecay.site.parts import picture as still_picture

pytestmark = [needs_browser(), pytest.mark.cpu("a browser draws without torch")]
SWEEP = Path(__file__).parents[1] / "results" / "cifar10-small" / "figure-2"
ADAM, ADAMW = 0, 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def shown(folder: Path) -> Iterator[Browser]:
    with browser(folder) as found:
        yield found


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    """Return the page of a real sweep: Figure 2 on CIFAR-10, four landscapes."""
    file = folder / "page.html"
    assert main(["report", str(SWEEP), "--out", str(file), "--quiet"]) == 0
    return file


@pytest.fixture(scope="module")
def data(page: Path) -> dict[str, Any]:
    return embedded_in(page.read_text("utf-8"))


def picture(shown: Browser, at: int) -> Any:
    """Return a landscape's picture, drawn and in the middle of the window."""
    found = shown.driver.find_elements("css selector", "#panels .picture")[at]
    shown.js("arguments[0].scrollIntoView({block: 'center'})", found)
    shown.settle()
    shown.settle()
    return found


def point_at(shown: Browser, drawn: Any, x: float, y: float, *, click: bool = False) -> None:
    """Move the mouse to a place on a picture's axes."""
    place = "return echarts.getInstanceByDom(arguments[0]).convertToPixel({gridIndex: 0}, [%r, %r])"
    left, top = shown.js(place % (x, y), drawn)
    around = drawn.rect
    from selenium.webdriver import ActionChains  # noqa: PLC0415 - it may not be installed

    moved = ActionChains(shown.driver, duration=0).move_to_element_with_offset(
        drawn, round(left - around["width"] / 2), round(top - around["height"] / 2)
    )
    (moved.click() if click else moved).perform()
    shown.settle()


def cell_of(scape: dict[str, Any]) -> tuple[int, float, float]:
    """Return a cell near the recommended one, and its place on the picture's axes."""
    cells, (lr, decay) = scape["cells"], (scape["advice"][k][0] for k in ("lr", "decay"))
    places = [
        (math.log2(d or 1e-30), math.log2(scape["lrs"][i]))
        for i, d in zip(cells["lr"], cells["decay"], strict=True)
    ]
    wanted = math.log2(decay), math.log2(lr)
    at = min(range(len(places)), key=lambda k: math.dist(places[k], wanted))
    return at, *places[at]


def text(shown: Browser, selector: str, at: int = 0) -> str:
    found = shown.driver.find_elements("css selector", selector)[at]
    return str(shown.js("return arguments[0].textContent", found))


def click(shown: Browser, selector: str) -> None:
    shown.js("document.querySelector(arguments[0]).click()", selector)
    shown.settle()


def marks_of(shown: Browser, drawn: Any) -> set[str]:
    """Return the marks of a picture, those on top of it included."""
    chart = "const chart = echarts.getInstanceByDom(arguments[0]);"
    top = "chart.getZr().storage.getRoots().map((one) => one.name)"
    script = f"{chart} return [...chart.getOption().series.map((one) => one?.id), ...{top}]"
    return set(shown.js(script, drawn))


def press(shown: Browser, at: int, button: str) -> None:
    """Press a button below a landscape."""
    found = "[...document.querySelectorAll('figure')[arguments[0]].querySelectorAll('button')]"
    shown.js(f"{found}.find((one) => one.textContent === arguments[1]).click()", at, button)


def saved(shown: Browser, at: int, button: str, name: str) -> bytes:
    """Press a button, and return the file that it saves."""
    file = shown.downloads / name
    file.unlink(missing_ok=True)
    press(shown, at, button)
    until = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < until, f"{name} was not saved"
        time.sleep(0.05)
    return file.read_bytes()


def test_a_real_sweeps_page_draws_without_complaints_or_requests(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    for at, scape in enumerate(data["landscapes"]):
        drawn = picture(shown, at)
        count = "return arguments[0].querySelectorAll('svg path').length"
        assert shown.js(count, drawn) >= len(scape["cells"]["decay"])
        assert scape["words"] in drawn.get_attribute("aria-label")
    shown.keep("report")
    assert shown.complaints() == []
    assert {one.partition(":")[0] for one in shown.requests()} <= {"file", "data", "blob"}


def test_a_page_says_that_it_is_loading_until_its_scripts_have_run(
    shown: Browser, page: Path
) -> None:
    script = "return document.getElementById('loading').checkVisibility()"
    shown.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown.open(page, scripts=False)
        shown.keep("page-without-scripts")
    finally:
        shown.command("Emulation.setScriptExecutionDisabled", value=False)
    assert shown.js(script)
    assert not shown.open(page).js(script)


def test_pointing_at_a_cell_shows_its_numbers_and_its_curve(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    scape = data["landscapes"][ADAMW]
    at, x, y = cell_of(scape)
    drawn = picture(shown, ADAMW)
    point_at(shown, drawn, x, y)
    told = text(shown, "#tip-text")
    for split in ("test", "validation", "training"):
        assert scape["splits"][split]["texts"][at] in told
    assert scape["cells"]["texts"]["weight_decay"][at] in told
    assert f"{scape['cells']['seeds'][at]} seed" in told
    assert shown.js("return document.querySelectorAll('#tip-curve svg path').length") > 0
    point_at(shown, drawn, x, math.log2(scape["lrs"][0]) - 0.9)
    assert shown.js("return document.getElementById('tip').hidden")


def test_clicking_a_cell_adds_its_curve_and_clicking_again_removes_it(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    scape = data["landscapes"][ADAMW]
    label = "document.querySelector('#curve-picture .picture').getAttribute('aria-label')"
    assert str(shown.js(f"return {label}")).startswith("Learning curves of 4 cells.")
    click(shown, "#clear-curves")
    assert "No curve is chosen." in text(shown, "#curve-words")
    at, x, y = cell_of(scape)
    drawn = picture(shown, ADAMW)
    point_at(shown, drawn, x, y, click=True)
    told = str(shown.js(f"return {label}"))
    assert told.startswith("Learning curves of 1 cell. AdamW")
    assert scape["cells"]["texts"]["weight_decay"][at] in told
    point_at(shown, drawn, x, y, click=True)
    assert "No curve is chosen." in text(shown, "#curve-words")


def test_a_switch_of_the_split_changes_colours_scale_and_numbers(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    drawn = picture(shown, ADAMW)
    fills = (
        "return [...arguments[0].querySelectorAll('svg path')].map((p) => p.getAttribute('fill'))"
    )
    before = shown.js(fills, drawn)
    shown.js("document.querySelectorAll('input[name=split]')[2].click()")
    shown.settle()
    assert shown.js(fills, drawn) != before
    assert data["scales"]["training"][""]["texts"][0] in text(shown, "#scale")
    assert "The picture shows training error" in drawn.get_attribute("aria-label")


def test_torchs_axis_raises_s_by_one_before_ones_eyes(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    adam, adamw = (data["landscapes"][at]["advice"]["s"] for at in (ADAM, ADAMW))
    drawn = picture(shown, ADAMW)
    assert [text(shown, "figure .s", at) for at in (ADAM, ADAMW)] == [adam["paper"], adamw["paper"]]
    boxes = "return arguments[0].querySelector('svg path:nth-of-type(20)').getAttribute('d')"
    before = shown.js(boxes, drawn)
    shown.js("document.querySelectorAll('input[name=way]')[2].click()")
    shown.settle()
    # L2 regularization is the same number in torch.
    assert [text(shown, "figure .s", at) for at in (ADAM, ADAMW)] == [adam["paper"], adamw["torch"]]
    assert shown.js(boxes, drawn) != before
    axis = "return echarts.getInstanceByDom(arguments[0]).getOption().xAxis[0].name"
    assert shown.js(axis, drawn) == "torch's weight_decay λ/α"


def test_marks_can_be_left_out_and_come_back(shown: Browser, page: Path) -> None:
    shown.open(page)
    drawn = picture(shown, ADAMW)
    marks = {"recommended", "ridge", "ties", "rules"}
    assert marks <= marks_of(shown, drawn)
    # This sweep has no outliers, so there is nothing to switch.
    assert shown.js("return document.querySelector('input[name=outliers]')") is None
    for mark in marks:
        click(shown, f"input[name={mark}]")
        assert mark not in marks_of(shown, drawn)
    click(shown, "input[name=ridge]")
    assert marks_of(shown, drawn) & marks == {"ridge"}


def test_a_moved_learning_rate_shows_what_each_rule_makes_of_the_decay_and_its_cost(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    from selenium.webdriver import ActionChains, Keys  # noqa: PLC0415 - it may not be installed

    shown.open(page)
    drawn = picture(shown, ADAMW)
    scape = data["landscapes"][ADAMW]
    tuned = scape["moves"][0]["tuned"]
    assert "λ was tuned here" in text(shown, ".moved", ADAMW)
    ends = "const c = echarts.getInstanceByDom(arguments[0]); const x = c.getOption().xAxis[0].max;"
    ends += "return arguments[1].map((lr) => c.convertToPixel({gridIndex: 0}, [x, Math.log2(lr)]))"
    start, end = shown.js(ends, drawn, [tuned, 4 * tuned])
    box = drawn.rect
    ActionChains(shown.driver, duration=0).move_to_element_with_offset(
        drawn, round(start[0] + 6 - box["width"] / 2), round(start[1] - box["height"] / 2)
    ).click_and_hold().move_by_offset(0, round(end[1] - start[1])).release().perform()
    shown.settle()
    [move] = [one for one in scape["moves"] if math.isclose(one["used"], 4 * tuned, rel_tol=1e-4)]
    told = text(shown, ".moved", ADAMW)
    assert "then α multiplied by 4." in told
    for decay, cost in zip(move["texts"]["weight_decay"], move["costTexts"], strict=True):
        assert f"{decay}{cost}" in told
    assert "then α multiplied by 4." in text(shown, ".moved", ADAM)
    slider = shown.driver.find_elements("css selector", ".rate input")[ADAMW]
    slider.send_keys(Keys.ARROW_LEFT)
    shown.settle()
    assert "then α multiplied by 2." in text(shown, ".moved", ADAMW)
    assert shown.complaints() == []


def test_cells_can_be_visited_and_chosen_by_keyboard(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    from selenium.webdriver import Keys  # noqa: PLC0415 - it may not be installed

    shown.open(page)
    drawn = picture(shown, ADAMW)
    scape = data["landscapes"][ADAMW]
    at, *_ = cell_of(scape)
    drawn.send_keys(Keys.ARROW_UP)
    assert scape["splits"]["test"]["texts"][at] in text(shown, "#live")
    drawn.send_keys(Keys.ARROW_UP)
    above = scape["lrTexts"][scape["cells"]["lr"][at] + 1]
    assert f"α = {above}," in text(shown, "#live")
    drawn.send_keys(Keys.ENTER)
    assert "Added the curve of AdamW" in text(shown, "#live")
    drawn.send_keys(Keys.ESCAPE)
    assert shown.js("return document.getElementById('tip').hidden")


def test_a_picture_gives_its_files_and_its_command(
    shown: Browser, page: Path, data: dict[str, Any]
) -> None:
    shown.open(page)
    picture(shown, ADAM)
    scape = data["landscapes"][ADAM]
    table = saved(shown, ADAM, "CSV", "landscape-1.csv").decode()
    cells = list(csv.DictReader(io.StringIO(table)))
    assert [float(row["l2"]) for row in cells] == scape["cells"]["decay"]
    assert [float(row["test"]) for row in cells] == scape["splits"]["test"]["values"]
    assert saved(shown, ADAM, "PNG", "landscape-1.png").startswith(b"\x89PNG")
    root = ElementTree.fromstring(saved(shown, ADAM, "SVG", "landscape-1.svg"))
    assert "Adam, cosine annealing: test error" in "".join(root.itertext())
    assert "◆ is the setting to use" in "".join(root.itertext())
    assert text(shown, "#about-marks") == data["aboutMarks"]
    press(shown, ADAM, "Command")
    assert text(shown, "figure .files code") == data["command"]


def test_a_picture_that_is_not_drawn_by_scripts_gives_its_files_too(
    shown: Browser, page: Path, data: dict[str, Any], tmp_path: Path
) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt" viewBox="0 0 72 36">'
    still = still_picture(
        Picture("A bowl", f'{svg}<path d="M 0 0 L 9 9"/></svg>', "."), "picture-1"
    )
    with_still = tmp_path / "still.html"
    with_still.write_text(page.read_text("utf-8").replace("</main>", f"{still}</main>"), "utf-8")
    shown.open(with_still)
    last = len(data["landscapes"])
    rows = list(csv.DictReader(io.StringIO(saved(shown, last, "CSV", "figure-1.csv").decode())))
    curves = [scape["curves"] for scape in data["landscapes"]]
    assert len(rows) == sum(
        len(one["epochs"]) for one in curves for own in one["rows"].values() for row in own if row
    )
    png = saved(shown, last, "PNG", "figure-1.png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 2 * 96  # 72 points are 96 pixels
    root = ElementTree.fromstring(saved(shown, last, "SVG", "figure-1.svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    press(shown, last, "Command")
    assert text(shown, "figure.still .files code") == data["command"]
    assert shown.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_window_needs_no_sideways_scrolling(
    shown: Browser, page: Path, dark: bool
) -> None:
    shown.open(page, width=500, dark=dark)
    drawn = picture(shown, ADAMW)
    assert shown.js("return document.documentElement.scrollWidth") <= 500
    assert drawn.rect["width"] <= 500
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert (shown.js(ground) == "rgb(26, 26, 26)") is dark
    shown.keep(f"report-narrow{'-dark' * dark}")
    label = "return echarts.getInstanceByDom(arguments[0]).getOption().xAxis[0].axisLabel.color"
    assert (shown.js(label, drawn) == "#e9e7e2") is dark


def test_a_slider_over_budgets_shows_one_of_them(shown: Browser, folder: Path) -> None:
    runs = [run for epochs in (10, 40) for run in sweep(seeds=2, epochs=epochs)]
    page = folder / "budgets.html"
    store = stored(runs, folder / "sweep")
    assert main(["report", str(store), "--out", str(page), "--quiet"]) == 0
    shown.open(page)
    seen = "return [...document.querySelectorAll('figure')].filter((f) => !f.hidden).length"
    assert shown.js(seen) == 2
    move = "const s = document.querySelector('input[name=epochs]'); s.value = arguments[0];"
    move += "s.dispatchEvent(new Event('input'))"
    shown.js(move, 0)
    assert shown.js(seen) == 1
    assert "epochs 10" in text(shown, "figure:not([hidden]) h3")
    shown.js(move, 2)
    assert shown.js(seen) == 2
    assert shown.complaints() == []


@pytest.fixture(scope="module")
def many(folder: Path) -> Path:
    """Return the page of 750 cells, which are drawn on a canvas."""
    truth = Truth(rates=25, decays=30, factor=2**0.25, decay_factor=2**0.25)
    runs = runs_of(truth, measured(truth.errors(), 2, np.random.default_rng(0)), epochs=2)
    curved = [
        replace(run, records=(replace(run.last, epoch=1, updates=200), run.last)) for run in runs
    ]
    page = folder / "many.html"
    store = stored(curved, folder / "many")
    assert main(["report", str(store), "--out", str(page), "--quiet"]) == 0
    return page


CHART = "const chart = echarts.getInstanceByDom(arguments[0]);"
_COUNTED = f"""{CHART}
window.updates = 0;
const own = chart.setOption.bind(chart);
chart.setOption = (...given) => {{ window.updates += 1; own(...given); }};
"""


@pytest.mark.parametrize(("name", "choices"), [("split", (2, 0)), ("way", (2, 0))])
def test_many_cells_look_as_before_after_a_switch_there_and_back(
    shown: Browser, many: Path, name: str, choices: tuple[int, int]
) -> None:
    shown.open(many)
    drawn = picture(shown, 0)
    seen = [shown.js(f"{CHART} return chart.getDataURL()", drawn)]
    for choice in choices:
        switch = "document.querySelectorAll(`input[name=${arguments[0]}]`)[arguments[1]].click()"
        shown.js(switch, name, choice)
        shown.settle()
        seen.append(shown.js(f"{CHART} return chart.getDataURL()", drawn))
    assert seen[0] != seen[1]
    assert seen[0] == seen[2]
    shown.keep(f"report-many-{name}")


def test_a_switch_of_many_cells_draws_only_what_it_changes(shown: Browser, many: Path) -> None:
    shown.open(many, height=500)
    drawn = picture(shown, 0)
    curves = shown.driver.find_element("css selector", "#curve-picture .picture")
    for one in (drawn, curves):
        shown.js(_COUNTED, one)
    for control in ("input[name=split]:not(:checked)", "input[name=ridge]"):
        click(shown, control)
        assert shown.js("return window.updates") == 0  # neither axes nor curves out of sight
    assert "ridge" not in marks_of(shown, drawn)
    told = "return arguments[0].getAttribute('aria-label')"
    assert "The picture shows validation error" in shown.js(told, drawn)
    shown.js("arguments[0].scrollIntoView()", curves)
    shown.settle()
    shown.settle()
    assert shown.js("return window.updates") == 1
    click(shown, "input[name=way]:not(:checked)")
    shown.js("arguments[0].scrollIntoView()", drawn)
    shown.settle()
    assert shown.js("return window.updates") > 1
    assert shown.js("return document.getElementById('panels').getAttribute('aria-busy')") == "false"


def test_the_border_of_ties_has_no_line_between_two_of_them(shown: Browser, many: Path) -> None:
    shown.open(many)
    drawn = picture(shown, 0)
    lines = shown.js(
        f"{CHART} const named = (one) => one.name === 'ties';"
        "return chart.getZr().storage.getRoots().find(named).childAt(0).shape.lines",
        drawn,
    )
    [scape] = embedded_in(many.read_text("utf-8"))["landscapes"]
    tied = np.reshape(scape["cells"]["tied"], (25, 30))
    upright = sum(abs(x - other) < 1e-3 for (x, _), (other, _) in lines)
    assert upright == np.abs(np.diff(np.pad(tied, 1), axis=1)).sum()


def test_hostile_names_do_nothing_and_injected_code_does_not_run(
    shown: Browser, folder: Path
) -> None:
    rows([HOSTILE, "=1+1"], path=str(folder / "hostile.csv"))
    page = folder / "hostile.html"
    words = ["--convention", "torch", "--label", "model", "--out", str(page), "--quiet"]
    assert main(["report", str(folder / "hostile.csv"), *words]) == 0
    shown.open(page)
    picture(shown, 0)
    picture(shown, 1)
    assert shown.js("return document.querySelectorAll('img, figure script').length") == 0
    titles = [text(shown, "figure h3", at) for at in (0, 1)]
    assert any(HOSTILE in title for title in titles)
    assert titles[1] == "=1+1"
    assert saved(shown, 1, "CSV", "landscape-2.csv").decode().splitlines()[1].startswith("'=1+1,")
    assert shown.complaints() == []
    shown.js(
        "document.body.insertAdjacentHTML('beforeend', arguments[0])",
        '<img src="data:," onerror="window.ran = 1">',
    )
    shown.js(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 2';"
        "document.body.append(s)"
    )
    shown.settle()
    assert shown.js("return window.ran") is None
    assert any("Content Security Policy" in one for one in shown.complaints())


def test_twins_can_be_left_out_and_their_difference_is_in_the_tip(
    shown: Browser, folder: Path
) -> None:
    page = folder / "twins.html"
    store = stored(with_twins(), folder / "twins")
    assert main(["report", str(store), "--out", str(page), "--quiet"]) == 0
    shown.open(page)
    drawn = picture(shown, ADAM)
    assert "twins" in marks_of(shown, drawn)
    option = "return echarts.getInstanceByDom(arguments[0]).getOption()"
    left = float(shown.js(f"{option}.xAxis[0].min", drawn))
    bottom = float(shown.js(f"{option}.yAxis[0].min", drawn))
    point_at(shown, drawn, left + 0.3, bottom + 0.3)
    assert "has a twin: 0.00 points apart" in text(shown, "#tip-text")
    click(shown, "input[name=twins]")
    assert "twins" not in marks_of(shown, drawn)
    assert shown.complaints() == []
