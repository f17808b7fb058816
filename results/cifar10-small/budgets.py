"""How the best decay moves with the budget, and which rule carries λ from one budget to another.

    python results/cifar10-small/budgets.py

reads the stores `budgets` and, for 8 epochs of all examples in batches of 128, `figure-2`; it
writes `budgets.md` and `budgets.png`.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from weightdecay.colours import MUTED, shades, stroke
from weightdecay.figures import curves, save
from weightdecay.figures.charts import Chart
from weightdecay.labels import NAMES
from weightdecay.number_format import power
from weightdecay.records import Run
from weightdecay.results import (
    BudgetRegret,
    Estimate,
    Exponent,
    Landscape,
    budget_exponents,
    budget_regret,
    compare_powers,
    landscapes,
    pairs_over,
)
from weightdecay.results.budget import best_decays, varied_alone
from weightdecay.results.budget_transfer import POWERS
from weightdecay.results.choosing import choose
from weightdecay.results.coupling import RidgePoint, point_of
from weightdecay.studies.findings import UNREGISTERED
from weightdecay.sweeps import Store, read_study

HERE = Path(__file__).parent
METHODS = ("adamw", "sgdw")
FACTORS = {"epochs": "λ* ∝ epochs^−e", "data": "λ* ∝ examples^−d", "batch": "λ* ∝ batch^c"}
WORDS = {"epochs": "epochs", "data": "examples", "batch": "batch size"}
RULES = {0.0: "λ kept", 0.5: "λ√N kept (λ_norm)", 1.0: "λ·N kept"}
TITLE = f"""\
# CIFAR-10: the best decay over budgets

A small conv net. Epochs (2, 8, 32), examples (11,250, 22,500, 45,000) and batch sizes (32, 128,
512) are varied one at a time, around 8 epochs of 45,000 examples in batches of 128. Each method has
three learning rates. Around the best decay at each there are half steps with three seeds (five over
32 epochs), and beyond these whole steps with one. λ is the fraction of a weight that one update
removes at the full learning rate, and N the number of updates. `budgets.py` writes this page.

{UNREGISTERED}
"""
PARTLY = """\
**This is not complete yet**: {done} of the {planned} half steps are trained. Where a budget has
fewer than three seeds, they both choose and judge, and there is no interval.
"""
PICTURE = "![The best decay over epochs, examples and batch size](budgets.png)\n"
EXPONENTS = """
## Exponents

At a fixed α, and along the ridge: at each budget's own best α. Brackets hold 95 % intervals
([how they are measured](../../docs/exponents.md#budget-exponents)).
"""
DECAYS = """
## Best decays

log2 λ* at each learning rate, ± its standard error, and in parentheses the validation error that is
expected there.
"""
TRANSFER = """
## Transfer

Points of test error that it costs to tune λ on one budget and to carry it to another with more
updates, over that budget's own best λ. Where there are three seeds or more, each judges what the
others chose. Errors are interpolated between measured decays. If a carried λ is outside of these,
its distance in doublings is shown instead. The last column compares two rules on the runs that have
both, so it need not be the difference of their columns. A negative cost means that the carried λ
happened to be better than the one that was chosen.

- **λ kept** keeps the timescale 1/λ in updates. Over epochs, that keeps it in epochs too (Wang and
  Aitchison), and so does torch's `weight_decay` at the same learning rate.
- **λ√N kept** keeps the paper's λ_norm.
- **λ·N kept** keeps the timescale as a share of training. Over examples and batch sizes, that keeps
  it in epochs too (Wang and Aitchison; Bergsma et al. for the batch).
"""
SMALL_PRINT = """\
CIFAR-10, a small conv net, bfloat16, one H200. Points: the best decay at each of three learning \
rates, light to dark from the smallest, and its standard error. Grey lines through the middle: \
decays that keep λ, λ√N and λ·N."""


@dataclass(frozen=True)
class Decays(Chart):
    """The best decays over a factor of the budget, and lines that keep λ·N^p."""

    title: str
    along: str
    rows: Sequence[tuple[str, str, Sequence[tuple[float, RidgePoint]]]]
    sign: int

    def draw(self, axes: Axes) -> None:
        """Draw on empty axes."""
        every = [point for _, _, points in self.rows for point in points]
        places = sorted({math.log2(amount) for amount, _ in every})
        middle = places[len(places) // 2]
        level = [math.log2(one.decay) for amount, one in every if math.log2(amount) == middle]
        for p in POWERS:
            line = [sum(level) / len(level) + self.sign * p * (x - middle) for x in places]
            axes.plot(places, line, color=MUTED, linewidth=0.6, zorder=1)
        for algorithm, colour, points in self.rows:
            axes.errorbar(
                [math.log2(amount) for amount, _ in points],
                [math.log2(one.decay) for _, one in points],
                [one.standard_error for _, one in points],
                color=colour,
                marker=stroke(algorithm).mark,
                markersize=4.5,
                linewidth=1.1,
                elinewidth=0.9,
            )
        amounts = sorted({amount for amount, _ in every})
        axes.set_xticks(places, [f"{amount:,.0f}" for amount in amounts])
        low, high = (round(end) for end in axes.get_ylim())
        axes.set_yticks(range(low, high + 1), [power(2.0**y) for y in range(low, high + 1)])
        axes.set_xlabel(self.along, labelpad=2)
        axes.set_ylabel("best decay λ", labelpad=3)
        axes.grid(visible=True, axis="y")
        axes.tick_params(length=2.5)

    def handles(self) -> list[Line2D]:
        """Return the entries for the legend."""
        names = dict.fromkeys(algorithm for algorithm, _, _ in self.rows)
        return [
            Line2D([], [], color=stroke(one).colour, marker=stroke(one).mark, label=NAMES[one])
            for one in names
        ]


def main() -> None:
    """Write the page and its picture."""
    runs = [*Store(HERE / "budgets").runs(), *Store(HERE / "figure-2").runs()]
    scapes = measured(runs)
    text = "\n".join([*head(runs), *page(scapes)])
    (HERE / "budgets.md").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    panels = [*charts(scapes)]
    if panels:
        drawn = curves(panels, columns=3, small_print=SMALL_PRINT)
        save(drawn, HERE / "budgets", formats=("png",))


def head(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the beginning of the page; it says if not all of the planned half steps are trained."""
    yield TITLE
    planned = {*read_study(HERE / "budgets-basin.toml")}
    done = planned.intersection(run.config for run in runs)
    if done < planned:
        yield PARTLY.format(done=len(done), planned=len(planned))
    yield PICTURE


def measured(runs: Sequence[Run]) -> dict[str, list[Landscape]]:
    """Return the landscapes of each method, with fewer updates first.

    If a cell was trained twice, the first counts.
    """
    scapes = landscapes([run for run in runs if run.config.algorithm in METHODS])
    scapes.sort(key=lambda one: (one.updates or 0, one.config.epochs, one.config.batch))
    return {name: [one for one in scapes if one.config.algorithm == name] for name in METHODS}


def page(scapes: dict[str, list[Landscape]]) -> Iterator[str]:
    """Yield what was measured."""
    yield from conclusions(scapes)
    yield EXPONENTS
    yield from exponents(scapes)
    yield TRANSFER
    for best_rate, words in ((False, "the same α, mean over α"), (True, "each budget's best α")):
        yield from regrets(scapes, words, best_rate=best_rate)
    yield DECAYS
    yield from decays(scapes)


def conclusions(scapes: dict[str, list[Landscape]]) -> Iterator[str]:
    """Yield, for each method and factor, which rules carry λ."""
    for name, own in scapes.items():
        for factor in FACTORS:
            pairs = pairs_over(own, factor)
            found = compare_powers(pairs)
            best = found.least
            if best is None:
                continue
            rivals = [RULES[p] for p in found.tied if p != best]
            told = f"- {NAMES[name]}, over {WORDS[factor]}: **{RULES[best]}** costs least, "
            told += f"{points(found.inside[best])} points."
            told += f" {' and '.join(rivals)} may cost as little." if rivals else ""
            costs = found.costs.items()
            far = [f" {RULES[p]} leads {beyond(one)}." for p, one in costs if one.beyond]
            yield told + "".join(far)


def exponents(scapes: dict[str, list[Landscape]]) -> Iterator[str]:
    """Yield a table of the exponents."""
    yield "| | law | at each α | at a fixed α | along the ridge | λ√N kept | timescale in epochs |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, own in scapes.items():
        found = budget_exponents(own)
        for factor, law in FACTORS.items():
            if factor not in found:
                continue
            one = found[factor]
            each = "; ".join(f"{lr:.3g}: {value(at)}" for lr, at in one.rates.items())
            fixed, along = (value(each) for each in (one.fixed, one.ridge))
            timescale = "0" if factor == "epochs" else "1"
            cells = f"{each or '–'} | **{fixed}** | {along} | ½ | {timescale}"
            yield f"| {NAMES[name]} | {law} | {cells} |"


def regrets(scapes: dict[str, list[Landscape]], words: str, *, best_rate: bool) -> Iterator[str]:
    """Yield a table of what each rule costs, for each pair of budgets and over all of a factor."""
    yield f"\nAt {words}:\n"
    rules = " | ".join(RULES.values())
    yield f"| | carried over | from, to | {rules} | λ kept minus λ√N kept |"
    yield "| --- |" + " --- |" * (len(RULES) + 3)
    for name, own in scapes.items():
        for factor in FACTORS:
            pairs = pairs_over(own, factor)
            rows = [([pair], " → ".join(amount(one, factor) for one in pair)) for pair in pairs]
            for carried, told in [*rows, (pairs, "**all**")] if len(pairs) > 1 else rows:
                costs = [budget_regret(carried, p, best_rate=best_rate) for p in POWERS]
                apart = budget_regret(carried, 0.0, instead=0.5, best_rate=best_rate)
                cells = " | ".join(cost(one) for one in (*costs, apart))
                yield f"| {NAMES[name]} | {WORDS[factor]} | {told} | {cells} |"


def decays(scapes: dict[str, list[Landscape]]) -> Iterator[str]:
    """Yield a table of the best decays."""
    for name, own in scapes.items():
        rates = sorted({lr for _, points in located(own) for lr in points})
        yield f"\n{NAMES[name]}:\n"
        yield "| epochs | examples | batch | " + " | ".join(f"α = {lr:.4g}" for lr in rates) + " |"
        yield "| --- | --- | --- |" + " --- |" * len(rates)
        for landscape, points in located(own):
            told = [amount(landscape, factor) for factor in FACTORS]
            columns = choose(landscape).columns
            for lr in rates:
                one, column = points.get(lr), columns.get(lr)
                if one is None or column is None:
                    told.append("–")
                    continue
                error = "" if math.isnan(one.standard_error) else f" ± {one.standard_error:.2f}"
                off = f"{math.log2(one.decay):.2f}{error}"
                told.append(f"{off} ({100 * column.error:.2f} %)".replace("-", "−"))
            yield "| " + " | ".join(told) + " |"


def located(own: Sequence[Landscape]) -> list[tuple[Landscape, dict[float, RidgePoint]]]:
    """Return the best decays by learning rate, for each landscape, where they can be located.

    With one seed, they are those that it would choose, and have no standard error.
    """
    found = []
    for landscape in own:
        best = best_decays(landscape)
        if isinstance(best, str):
            columns = [one for one in choose(landscape).columns.values() if one.inside]
            points = [RidgePoint(one.lr, one.decay, math.nan) for one in columns]
        else:
            points = [point_of(best.found, at) for at in range(len(best.found.lrs))]
        found.append((landscape, {one.lr: one for one in points}))
    return found


def charts(scapes: dict[str, list[Landscape]]) -> Iterator[Decays]:
    """Yield a panel for each factor; only learning rates that all its budgets have."""
    for factor, words in WORDS.items():
        rows = []
        for name, own in scapes.items():
            for group in varied_alone(own, factor):
                points = {
                    count_of(one, factor): at for one, at in located([one for _, one in group])
                }
                rates = sorted(set.intersection(*(set(at) for at in points.values())))
                for lr, colour in zip(rates, shades(name, max(len(rates), 1)), strict=False):
                    line = [(float(count), points[count][lr]) for count in sorted(points)]
                    rows.append((name, colour, line))
        if rows:
            yield Decays(words[0].upper() + words[1:], words, rows, 1 if factor == "batch" else -1)


def count_of(landscape: Landscape, factor: str) -> int:
    """Return a landscape's epochs, examples or batch size."""
    count: int | None = getattr(landscape.config, factor)
    return 45_000 if count is None else count


def amount(landscape: Landscape, factor: str) -> str:
    """Return a landscape's epochs, examples or batch size as text."""
    return f"{count_of(landscape, factor):,}"


def value(found: Exponent) -> str:
    """Return an exponent with its interval, or that it is unknown."""
    if found.value is None:
        return "unknown"
    bound = f"{found.bound} " if found.bound else ""
    ends = "" if found.bound else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{bound}{found.value:.2f}{ends}".replace("-", "−")


def cost(found: BudgetRegret) -> str:
    """Return a cost in points, or that it is unknown."""
    if found.why:
        return "–"
    return beyond(found) if found.beyond else points(found.cost)


def beyond(found: BudgetRegret) -> str:
    """Return where a carried decay leads."""
    side = "above" if found.beyond > 0 else "below"
    return f"{abs(found.beyond):.1f} doublings {side} the grid"


def points(found: Estimate) -> str:
    """Return an estimate in points."""
    told = f"{100 * found.value:+.2f}"
    if not math.isnan(found.low):
        told += f" [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"
    return told.replace("-", "−")


if __name__ == "__main__":
    main()
