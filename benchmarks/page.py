"""How large the page of 10,000 cells is, how fast it loads, and how fast it responds.

    python -m benchmarks.page                  # ten landscapes of 1,000 cells, 20 epochs each
    python -m benchmarks.page --landscapes 4

It needs Chromium and its driver. A response is the time until everything in sight is drawn and the
browser has painted it. Each is measured 30 times.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.browser import Browser, browser
from tests.landscapes import Truth, measured, runs_of
from weightdecay.cli.report import page
from weightdecay.cli.sources import Source
from weightdecay.records import Run
from weightdecay.results import doubts, landscapes
from weightdecay.site import advised
from weightdecay.table import table

_CELLS, _EPOCHS, _RATES = 10_000, 20, 25
_TIMED = """
const [turn, done] = arguments, started = performance.now();
const painted = () => requestAnimationFrame(() => setTimeout(() => {
  if (document.querySelector('#panels[aria-busy=true]')) painted();
  else done(performance.now() - started);
}, 0));
%s;
painted();
"""
_KEY = (
    "document.querySelector('#panels .picture').dispatchEvent(new KeyboardEvent('keydown', {key}))"
)
# Each is done several times; `turn` says which time it is.
_ACTIONS = {
    "switch the split": "document.querySelectorAll('input[name=split]')[(turn + 1) % 3].click()",
    "switch the axis": "document.querySelectorAll('input[name=way]')[(turn + 2) % 3].click()",
    "switch the ridge": "document.querySelector('input[name=ridge]').click()",
    "move a learning rate": "const one = document.querySelector('.rate input');"
    "one.value = turn % 8; one.dispatchEvent(new Event('input'))",
    "point at a cell": f"const key = 'ArrowUp'; {_KEY}",
    "add a learning curve": f"const key = 'Enter'; {_KEY}",
}
_TURNS = 30


def _runs(count: int) -> list[Run]:
    runs = []
    for k in range(count):
        step = 2**0.25
        decays = _CELLS // count // _RATES
        truth = Truth(s=k / count, rates=_RATES, decays=decays, factor=step, decay_factor=step)
        splits = measured(truth.errors(), 1, np.random.default_rng(k))
        made = runs_of(truth, splits, model=f"mlp:width={10 + k}", epochs=_EPOCHS)
        runs += [_with_curve(run) for run in made]
    return runs


def _with_curve(run: Run) -> Run:
    last = run.last
    assert last.test_error is not None
    errors = np.minimum(1.0, last.test_error * np.linspace(3, 1, _EPOCHS))
    records = tuple(
        replace(last, epoch=at, updates=20 * at, test_error=float(error), train_error=float(error))
        for at, error in enumerate(errors, 1)
    )
    return replace(run, records=records)


def _written(runs: list[Run], file: Path) -> float:
    """Write the page, and return the seconds that it took, without reading and recommending."""
    doubtful = doubts(runs, [])
    found = advised(landscapes(runs), doubtful)
    started = time.perf_counter()
    text = page(found, Source(runs, [], []), doubtful, path=Path("cells"), command="–")
    file.write_text(text, "utf-8")
    return time.perf_counter() - started


def _loaded(shown: Browser, file: Path) -> float:
    """Return the seconds until the page is loaded and its first pictures are drawn."""
    started = time.perf_counter()
    shown.open(file)
    shown.settle()
    return time.perf_counter() - started


def _response(shown: Browser, script: str, turn: int) -> tuple[float, float]:
    """Return the milliseconds of a response: on the clock, and of the page's own thread."""
    before = _busy(shown)
    took = float(shown.driver.execute_async_script(_TIMED % script, turn))
    used = _busy(shown) - before
    for _ in range(3):
        shown.settle()
    return took, used


def _busy(shown: Browser) -> float:
    metrics = shown.command("Performance.getMetrics")["metrics"]
    return 1000.0 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landscapes", type=int, default=10)
    count, before = parser.parse_args().landscapes, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as shown:
        file = Path(name) / "page.html"
        seconds = _written(_runs(count), file)
        facts = [
            ("size", f"{file.stat().st_size / 1e6:.1f} MB"),
            ("write", f"{seconds:.0f} s"),
            ("load", f"{_loaded(shown, file):.2f} s"),
        ]
        shown.js("document.querySelector('#panels .picture').scrollIntoView()")
        for _ in range(5):
            shown.settle()
        shown.command("Performance.enable", timeDomain="threadTicks")
        rows = [("response", "median", "9 of 10 below", "CPU time, median")]
        for action, script in _ACTIONS.items():
            seen = [_response(shown, script, turn) for turn in range(_TURNS)]
            took, used = zip(*seen, strict=True)
            middle, most = np.quantile(took, [0.5, 0.9])
            cpu = float(np.median(used))
            rows.append((action, f"{middle:.0f} ms", f"{most:.0f} ms", f"{cpu:.0f} ms"))
        load = " to ".join(f"{one:.1f}" for one in sorted({before, os.getloadavg()[0]}))
        facts.append(("load average of the machine", load))
        assert shown.complaints() == []
    print(f"{table(facts)}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
