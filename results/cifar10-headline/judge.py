"""Compare the methods of the long runs by the registered rules.

    python results/cifar10-headline/judge.py

reads the store `long` and writes `long.md` and `long.png`, and so does `make book`.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import variance

from weightdecay.figures import Curves, Trace, curves, save
from weightdecay.labels import NAMES
from weightdecay.number_format import percent
from weightdecay.records import Run
from weightdecay.results import Estimate, curve
from weightdecay.results.estimate import within
from weightdecay.results.judging import CHANCE, error_of, judged
from weightdecay.studies.differences import paired
from weightdecay.studies.formats import points_of
from weightdecay.sweeps import Store

HERE = Path(__file__).parent
TITLE = """\
# The headline's long runs

Shake-Shake 26 2x64d on all 50,000 images of CIFAR-10, 100 epochs, cosine annealing, at the decays
that [choose.py](choose.py) chose. [registered.toml](registered.toml) has the rules; it was
committed before any of these runs. `judge.py` writes this page.
"""
ERRORS = """
![Test error and training loss over 100 epochs](long.png)

## Test errors after the last epoch

| | seeds | each seed's error | mean |
| --- | --- | --- | --- |
"""
COMPARED = """
## Comparisons

Each seed compares two methods by ln(error / other error). The first interval is Student's t over
seeds; the second one also has the sampling error of the test set, and decides. Both are 95 %
intervals. *Better* needs the whole interval below 0, and *as good* the whole interval below 3 %.
The second interval has had another form since 18 November 2026, after these rules were registered:
the seeds' t no longer multiplies the sampling error of the test set.
The last column was not registered and decides nothing: two seeds may agree by chance, so it takes
the spread of a run from the seeds of all methods together, without the test set's error.

| | seeds | relative, seeds alone | relative, with the test set | in points | | pooled spread |
| --- | --- | --- | --- | --- | --- | --- |
"""
PARTLY = "\n**Not complete yet**: {done} of {planned} registered runs are trained.\n"
FEW = "| {pair} | {seeds} of {planned} | – | – | – | not trained yet | – |\n"
SMALL_PRINT = "Shake-Shake 26 2x64d, batch 128, cosine annealing; the median over seeds"


def main() -> None:
    """Write the page and its picture."""
    methods = by_method(Store(HERE / "long").runs())
    (HERE / "long.md").write_text("".join(page(methods)), encoding="utf-8")
    panels = [
        Curves("Test error", traces(methods, "test_error"), limits=(0, 30)),
        Curves(
            "Training loss",
            traces(methods, "train_loss"),
            upward="training loss",
            percent=False,
            log_y=True,
        ),
    ]
    save(curves(panels, small_print=SMALL_PRINT), HERE / "long", formats=("png",))


def registered() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the number of registered seeds of each method, and the methods to compare."""
    rules = tomllib.loads((HERE / "registered.toml").read_text("utf-8"))["judging"]
    ends = {name: map(int, seeds.split("..")) for name, seeds in rules["seeds"].items()}
    counts = {name: 1 - first + last for name, (first, last) in ends.items()}
    return counts, [tuple(pair.split(" - ")) for pair in rules["compared"]]


def by_method(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each method, by seed."""
    counts, _ = registered()
    ordered = sorted(runs, key=lambda run: run.config.seed)
    return {name: [run for run in ordered if run.config.algorithm == name] for name in counts}


def page(methods: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Yield the page: the errors of each method, then each registered comparison."""
    counts, pairs = registered()
    done, planned = sum(map(len, methods.values())), sum(counts.values())
    yield TITLE
    if done < planned:
        yield PARTLY.format(done=done, planned=planned)
    yield ERRORS
    for name, runs in methods.items():
        errors = [error_of(run, CHANCE) for run in runs]
        each = ", ".join(percent(error) for error in errors) or "–"
        mean = f"**{percent(sum(errors) / len(errors))}**" if errors else "not trained yet"
        yield f"| {NAMES[name]} | {len(runs)} of {counts[name]} | {each} | {mean} |\n"
    yield COMPARED
    for pair in pairs:
        yield compared(pair, methods, min(counts[name] for name in pair))


def compared(pair: tuple[str, str], methods: Mapping[str, Sequence[Run]], planned: int) -> str:
    """Return the row of a comparison; it has numbers from two shared seeds on."""
    one, other = ({run.config.seed: run for run in methods[name]} for name in pair)
    seeds = sorted(one.keys() & other.keys())
    told = " against ".join(NAMES[name] for name in pair)
    if len(seeds) < 2:
        return FEW.format(pair=told, seeds=len(seeds), planned=planned)
    found = judged([one[seed] for seed in seeds], [other[seed] for seed in seeds])
    errors = [(error_of(one[seed], CHANCE), error_of(other[seed], CHANCE)) for seed in seeds]
    alone = paired([math.log(error / rival) for error, rival in errors])
    outcome = "better" if found.better else "as good" if found.as_good else "not decided"
    cells = (
        *(relative(alone), relative(found.ratio), points_of(found.points), f"**{outcome}**"),
        relative(pooled(alone.value, len(seeds), methods)),
    )
    return f"| {told} | {len(seeds)} of {planned} | {' | '.join(cells)} |\n"


def pooled(value: float, seeds: int, methods: Mapping[str, Sequence[Run]]) -> Estimate:
    """Return a mean ln(error / other error) with an interval by the spread of every method."""
    logs = [[math.log(error_of(run, CHANCE)) for run in runs] for runs in methods.values()]
    many = [own for own in logs if len(own) > 1]
    freedom = sum(len(own) - 1 for own in many)
    spread = sum((len(own) - 1) * variance(own) for own in many) / freedom
    return within(value, 2 * spread / seeds, freedom)


def relative(found: Estimate) -> str:
    """Return a mean ln(error / other error) as a change in percent, with its interval."""
    value, low, high = (
        f"{100 * math.expm1(end):+.1f}".replace("-", "−")
        for end in (found.value, found.low, found.high)
    )
    return f"{value} % [{low}, {high}]"


def traces(methods: Mapping[str, Sequence[Run]], what: str) -> list[Trace]:
    """Return a curve for each method that has runs."""
    return [Trace(curve(list(runs), what), name) for name, runs in methods.items() if runs]


if __name__ == "__main__":
    main()
