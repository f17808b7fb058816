"""Draw Figure 2 from the first stage, with what the second stage came to in its titles.

    python results/cifar10-small/draw.py

reads `store`, `judging` and `registered.toml`, and writes `figure-2.png`.
"""

from dataclasses import replace
from statistics import fmean

from judge import JUDGES, regrets_of, settings_of
from register import HERE, chosen, first_stage

from weightdecay.figures import heatmaps, save
from weightdecay.labels import NAMES
from weightdecay.number_format import percent
from weightdecay.results import landscapes
from weightdecay.studies.verdicts import points
from weightdecay.sweeps import Store
from weightdecay.sweeps.grids import read_study

SMALL_PRINT = """\
CIFAR-10, a small conv net, 8 epochs, bfloat16, one H200. Cells are the mean test error of the \
first stage: one seed, three in the basins. In the titles: the test error of 24 other seeds at the \
registered setting; and what it costs 8 others to go to an α four times as large, or a quarter of \
it, and to keep λ."""


def main() -> None:
    """Draw the four panels."""
    first = Store(HERE / "store").runs()
    of, at = first_stage(first), settings_of(Store(HERE / "judging").runs())
    grid = {replace(cell, seed=0) for cell in read_study(HERE / "figure-2-grid.toml")}
    whole = [run for run in first if replace(run.config, seed=0) in grid]  # no half steps
    found = {scape.config.algorithm: scape for scape in landscapes(whole)}
    panels = []
    for name in ("sgd", "sgdw", "adam", "adamw"):
        best = chosen(of[name])
        runs = at[name, best.lr, best.decay]
        error = fmean(run.last.test_error for run in runs if run.config.seed in JUDGES)
        cost = regrets_of(name, of[name], at)[0.0]
        assert cost is not None
        title = f"{NAMES[name]}: {percent(error)}; λ kept: {points(cost.value)}"
        panels.append((title, found[name], None))
    figure = heatmaps(panels, columns=2, small_print=SMALL_PRINT)
    save(figure, HERE / "figure-2", formats=("png",))


if __name__ == "__main__":
    main()
