"""Judge the chosen settings of Figures 1 to 3 by the registered seeds, and what carrying costs.

    python results/cifar10-small/judge.py

reads the stores and the registrations, and writes `judged.md`. Estimates and rules are those that
were registered; nothing is chosen here. Figure 3 has its first stage alone: three seeds, which also
chose the settings.
"""

import math
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import fmean, stdev
from typing import Any, TypeAlias

from register import HERE, METHODS, carried, chosen, first_stage
from register_figure_1 import panels

from weightdecay.records import DECAYS, Run
from weightdecay.results.choosing import SLOPES, Column
from weightdecay.results.estimate import Estimate
from weightdecay.results.judging import error_of, judged, mean_of, transfer_regret
from weightdecay.studies import STUDIES, Evidence, scale
from weightdecay.studies.formats import because
from weightdecay.sweeps import Store

JUDGES, CARRIERS = range(1000, 1024), range(2000, 2008)
#: Runs by algorithm, learning rate and decay.
Settings: TypeAlias = dict[tuple[str, float, float], list[Run]]


def main() -> None:
    """Write the page of what was judged."""
    of = first_stage(Store(HERE / "store").runs())
    at = settings_of(Store(HERE / "judging").runs())
    of_figure_1 = panels()
    figure_2, figure_1 = judges_of_figure_2(of, at), judges_of_figure_1(of_figure_1)
    cosine = {f"{name} cosine": figure_2[name] for name in ("adam", "adamw")}
    text = "\n".join(
        [
            "# CIFAR-10, judged\n\n## Figure 2\n",
            *settings(figure_2),
            *compared(registered("registered.toml")["judging"], figure_2),
            *regrets(of, at),
            "\n## Figure 1\n\nThe runs under cosine annealing are Figure 2's.\n",
            *settings(figure_1 | cosine),
            *compared(registered("figure-1-registered.toml")["judging"], figure_1 | cosine),
            *figure_3(),
        ]
    )
    (HERE / "judged.md").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


def registered(file: str) -> dict[str, Any]:
    """Return what was written down before the second stage."""
    return tomllib.loads((HERE / file).read_text(encoding="utf-8"))


def settings_of(runs: Iterable[Run]) -> Settings:
    """Return runs by their setting."""
    at: Settings = defaultdict(list)
    for run in runs:
        name = run.config.algorithm
        at[name, run.config.lr, getattr(run.config, METHODS[name])].append(run)
    return at


def judges_of_figure_2(of: dict[str, dict[float, Column]], at: Settings) -> dict[str, list[Run]]:
    """Return the fresh seeds' runs of each method, at the setting that was registered for it."""
    chose = registered("registered.toml")["chosen"]
    found = {}
    for name, seen in of.items():
        best = chosen(seen)
        assert (chose[name]["lr"], chose[name][METHODS[name]]) == (best.lr, best.decay)
        found[name] = [run for run in at[name, best.lr, best.decay] if run.config.seed in JUDGES]
    return found


def judges_of_figure_1(of: dict[tuple[str, str], dict[float, Column]]) -> dict[str, list[Run]]:
    """Return the fresh seeds' runs of each panel, at the setting that was registered for it."""
    runs = Store(HERE / "figure-1-judging").runs()
    found = {}
    for setting in registered("figure-1-registered.toml")["chosen"]:
        name, schedule = setting["algorithm"], setting["schedule"]
        best = chosen(of[name, schedule])
        assert (setting["lr"], setting[METHODS[name]]) == (best.lr, best.decay)
        found[f"{name} {schedule.split(',')[0]}"] = [
            run for run in runs if (run.config.algorithm, run.config.schedule) == (name, schedule)
        ]
    return found


def evidence_of_figure_3() -> Evidence:
    """Return the runs of Figure 3's two panels."""
    return STUDIES["figure-3"].evidence(scale("cifar10", "small"), Store(HERE / "figure-3").runs())


def figure_3() -> Iterator[str]:
    """Yield what Figure 3's first stage came to."""
    seen = evidence_of_figure_3()
    best = {name: seen[name].landscape.best for name in ("adam", "adamw")}
    runs = {name: seen[name].runs_at(cell.lr, cell.decay) for name, cell in best.items()}
    yield """
## Figure 3

60 epochs at α = 0.001. The three seeds also chose the settings, on the validation split; the
intervals are those of seeds alone. For AdamW, λ is λ_norm.
"""
    yield from settings(runs)
    yield from compared({"compared": ["adamw - adam"]}, runs)
    yield ""
    for verdict in STUDIES["figure-3"].verdicts(seen):
        yield f"- {verdict.claim}: **{verdict.outcome}**. {because(verdict)}."


def settings(judges: dict[str, list[Run]]) -> Iterator[str]:
    """Yield a table of the settings and the errors of their fresh seeds."""
    yield "| method | α | λ | seeds | test error (%) |\n| --- | --- | --- | --- | --- |"
    for name, runs in judges.items():
        config = runs[0].config
        decay = next(getattr(config, way) for way in DECAYS if getattr(config, way) is not None)
        errors = [100 * run.records[-1].test_error for run in runs]
        error = f"{fmean(errors):.2f} ± {stdev(errors):.2f}"
        yield f"| {name} | {config.lr:g} | {decay:g} | {len(errors)} | {error} |"


def compared(registered: dict[str, Any], judges: dict[str, list[Run]]) -> Iterator[str]:
    """Yield a table of the registered pairs."""
    yield "\n| compared | relative (%) | points | better | as good |"
    yield "| --- | --- | --- | --- | --- |"
    for pair in registered["compared"]:
        one, other = pair.split(" - ")
        found = judged(judges[one], judges[other])
        numbers = f"{percent(found.ratio, ratio=True)} | {percent(found.points)}"
        verdicts = " | ".join("yes" if held else "no" for held in (found.better, found.as_good))
        yield f"| {one} − {other} | {numbers} | {verdicts} |"


def regrets(of: dict[str, dict[float, Column]], at: Settings) -> Iterator[str]:
    """Yield what it costs to carry each method's decay to another learning rate, by each rule."""
    yield "\nRegret in points of λ ∝ α^(−s):\n"
    yield "| method | " + " | ".join(f"s = {s:g}".replace("-", "−") for s in SLOPES) + " |"
    yield "| --- |" + " --- |" * len(SLOPES)
    for name, seen in of.items():
        row = regrets_of(name, seen, at).values()
        told = ("not trained yet" if regret is None else percent(regret) for regret in row)
        yield f"| {name} | " + " | ".join(told) + " |"


def regrets_of(name: str, seen: dict[float, Column], at: Settings) -> dict[float, Estimate | None]:
    """Return a method's regret by each rule; None where its runs are not all there."""
    errors = {
        (lr, decay): {run.config.seed: error_of(run) for run in runs}
        for (algorithm, lr, decay), runs in at.items()
        if algorithm == name and {run.config.seed for run in runs} == {*CARRIERS}
    }
    best = {column.lr: column.decay for column in seen.values()}
    found: dict[float, Estimate | None] = {}
    for s in SLOPES:
        moved = [one for one in carried(seen) if one.s == s]
        there = all(
            (one.used_at, decay) in errors
            for one in moved
            for decay in (one.decay, best[one.used_at])
        )
        found[s] = mean_of(transfer_regret(errors, best, moved)) if there else None
    return found


def percent(estimate: Estimate, *, ratio: bool = False) -> str:
    """Return an estimate in points, or as what a ratio of errors is above 1."""
    ends = estimate.value, estimate.low, estimate.high
    value, low, high = (100 * (math.expm1(end) if ratio else end) for end in ends)
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


if __name__ == "__main__":
    main()
