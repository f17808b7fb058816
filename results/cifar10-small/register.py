"""Choose Figure 2's settings from the first stage, and write down how the second will judge them.

    python results/cifar10-small/register.py

reads `store`, and writes `registered.toml` and the studies of the second stage. Only validation
errors are read. It is run, and what it wrote is committed, before the second stage begins.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from weightdecay.records import Run
from weightdecay.results import landscapes
from weightdecay.results.choosing import Choice, Column, choose
from weightdecay.results.judging import Carried
from weightdecay.sweeps import Store

HERE = Path(__file__).parent
METHODS = {"adamw": "weight_decay", "adam": "l2", "sgdw": "weight_decay", "sgd": "l2"}
COMMON = """\
task = "cifar10"
model = "convnet"
epochs = 8
batch = 128
validation = 5000
precision = "bfloat16"
keep_missed = true
"""
REGISTERED = """\
# Figure 2 on CIFAR-10, second stage: written by register.py before any of its runs.
date = {date}
first_stage = {{ runs = {runs}, sha256 = "{digest}" }}

[choosing]
error = "mean validation error over the seeds of the first stage; a diverged run counts 0.9"
decay = \"\"\"
In a column (one α), with m its least error, e becomes 1 - exp(-(e/m - 1)/0.1). A parabola in
log2 λ, weighted by the number of seeds, is fitted to the settings within 1.5 doublings of the
least; its vertex is λ*(α), to three digits. Where these are fewer than three, or it opens
downwards, or its vertex is outside of them, λ*(α) is the least setting.\"\"\"
lr = "the column with the least error at its λ*, read off that parabola"
edge = "a column whose least setting or λ* is at the end of its decays carries nothing"

[judging]
study = "figure-2-judge.toml"
seeds = "1000..1023"  # they chose nothing
error = "test error after the last epoch; a diverged run counts 0.9"
compared = ["adamw - adam", "adamw - sgd", "adamw - sgdw", "sgdw - sgd", "adam - sgd"]
estimate = "mean over seeds of ln(e_A / e_B), the same seed for both"
interval = \"\"\"
95 %, Student's t over seeds; the variance that all seeds share because the test set is a sample
(that of the mean difference per test example, less what seeds put into it, over the number of
examples) is added.\"\"\"
better = "the upper end is below 0"
as_good = "the upper end is below ln 1.03"

[carrying]
studies = [{studies}]
seeds = "2000..2007"
rules = [-1, -0.5, 0, 0.5, 1]  # s of λ ∝ α^(-s): -1 keeps λ/α, 0 keeps λ, 1 keeps λ·α
pairs = ["α*/2 to 2α*", "2α* to α*/2", "α* to 4α*", "α* to α*/4"]
regret = "test error at the new α with the carried λ, less that with the new α's λ*, seed by seed"
estimate = "the mean over pairs within a seed, then over seeds"
interval = "95 %, Student's t over seeds; rules are compared by paired differences"
"""


def columns(runs: Sequence[Run]) -> dict[float, Column]:
    """Return each learning rate's column, from the mean validation error of its settings."""
    [landscape] = landscapes(runs)
    return dict(choose(landscape).columns)


def first_stage(runs: Sequence[Run]) -> dict[str, dict[float, Column]]:
    """Return the columns of every method."""
    return {
        name: columns([run for run in runs if run.config.algorithm == name]) for name in METHODS
    }


def chosen(seen: Mapping[float, Column]) -> Column:
    """Return the column with the least error at its best decay."""
    return min(seen.values(), key=lambda column: column.error)


def carried(seen: Mapping[float, Column]) -> Iterator[Carried]:
    """Yield each pair of columns × rule, where both have their best decay inside the grid."""
    best = chosen(seen)
    yield from Choice(best.lr, best.decay, best.error, seen, ()).carried()


def needed(seen: Mapping[float, Column]) -> Iterator[tuple[float, float]]:
    """Yield the settings, each learning rate × decay, that the regret of carrying needs."""
    for one in carried(seen):
        yield one.used_at, seen[one.used_at].decay
        yield one.used_at, one.decay


def listed(seen: dict[float, Column]) -> str:
    """Return columns as they are written down."""
    rows = (
        f"    [{one.lr!r}, {one.decay!r}, {one.error:.4f}, {str(one.inside).lower()}],\n"
        for one in seen.values()
    )
    title = "columns = [  # α, λ*, validation error there, whether it is inside the grid\n"
    return "".join([title, *rows, "]\n"])


def study(seeds: str, settings: Sequence[tuple[str, float, float]]) -> str:
    """Return a study of such settings, each an algorithm, a learning rate and a decay."""
    tables = (
        f'\n[[grid]]\nalgorithm = "{algorithm}"\nlr = {lr!r}\n{METHODS[algorithm]} = {decay!r}\n'
        for algorithm, lr, decay in dict.fromkeys(settings)
    )
    return "".join(chain([COMMON, f'seed = "{seeds}"\n'], tables))


def main() -> None:
    """Write down what is registered, and the studies that will judge it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--store", type=Path, default=HERE / "store")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    runs = Store(options.store).runs()
    logs = sorted((options.store / "log").glob("*.jsonl"))
    of = first_stage(runs)
    files = {
        "figure-2-judge.toml": study(
            "1000..1023", [(name, chosen(of[name]).lr, chosen(of[name]).decay) for name in METHODS]
        )
    }
    for name in METHODS:
        settings = [(name, lr, decay) for lr, decay in needed(of[name])]
        files[f"figure-2-carry-{name}.toml"] = study("2000..2007", settings)
    text = REGISTERED.format(
        date=datetime.now(UTC).date(),
        runs=len(runs),
        digest=hashlib.sha256(b"".join(log.read_bytes() for log in logs)).hexdigest(),
        studies=", ".join(f'"{file}"' for file in files if "carry" in file),
    )
    for name, seen in of.items():
        best = chosen(seen)
        text += f"\n[chosen.{name}]\nlr = {best.lr!r}\n{METHODS[name]} = {best.decay!r}\n"
        text += listed(seen)
    for file, content in {"registered.toml": text, **files}.items():
        (options.out / file).write_text(content, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
