"""Draw Figures 1 to 3 from the first stages, with what second stages came to in the titles.

    python results/cifar10-small/draw.py

reads the stores and the registrations, and writes `figure-1.png` to `figure-3.png`.
"""

from dataclasses import replace
from statistics import fmean

from judge import (
    evidence_of_figure_3,
    judges_of_figure_1,
    judges_of_figure_2,
    regrets_of,
    settings_of,
)
from register import HERE, first_stage
from register_figure_1 import panels

from weightdecay.figures import heatmaps, save
from weightdecay.labels import NAMES, SCHEDULES
from weightdecay.number_format import percent
from weightdecay.records import Run
from weightdecay.results import Landscape, landscapes
from weightdecay.studies import STUDIES
from weightdecay.studies.formats import points
from weightdecay.sweeps import Store
from weightdecay.sweeps.grids import read_study

FIGURE_2 = """\
CIFAR-10, a small conv net, 8 epochs, bfloat16, one H200. Cells are the mean test error of the \
first stage: one seed, three in the basins. In the titles: the test error of 24 other seeds at the \
registered setting; and what it costs 8 others to go to an α four times as large, or a quarter of \
it, and to keep λ."""
FIGURE_1 = """\
CIFAR-10, a small conv net, 8 epochs, bfloat16, one H200. Cells are the mean test error of the \
first stage: one seed, three in the basins. In the titles: the test error of 24 other seeds at the \
registered setting."""

FIGURE_3 = "CIFAR-10, a small conv net, 60 epochs, α = 0.001, bfloat16, one H200. Three seeds."


def main() -> None:
    """Draw the three figures."""
    first, further = Store(HERE / "store").runs(), Store(HERE / "figure-1").runs()
    of, at = first_stage(first), settings_of(Store(HERE / "judging").runs())
    judges = judges_of_figure_2(of, at)
    scapes = drawn(first, "figure-2-grid.toml")
    titled = []
    for name in ("sgd", "sgdw", "adam", "adamw"):
        cost = regrets_of(name, of[name], at)[0.0]
        assert cost is not None
        title = f"{NAMES[name]}: {error_of(judges[name])}; λ kept: {points(cost.value)}"
        titled.append((title, scapes[name, "cosine"], None))
    save(heatmaps(titled, columns=2, small_print=FIGURE_2), HERE / "figure-2", formats=("png",))

    scapes |= drawn(further, "figure-1-grid.toml")
    judges |= judges_of_figure_1(panels())
    judges |= {f"{name} cosine": judges[name] for name in ("adam", "adamw")}
    titled = [
        (
            f"{NAMES[name]}, {SCHEDULES[schedule]}: {error_of(judges[f'{name} {schedule}'])}",
            scapes[name, schedule],
            None,
        )
        for name in ("adam", "adamw")
        for schedule in ("constant", "drops", "cosine")
    ]
    save(heatmaps(titled, columns=3, small_print=FIGURE_1), HERE / "figure-1", formats=("png",))

    drawn_3 = STUDIES["figure-3"].draw(evidence_of_figure_3(), FIGURE_3)
    save(drawn_3, HERE / "figure-3", formats=("png",))


def drawn(runs: list[Run], study: str) -> dict[tuple[str, str], Landscape]:
    """Return the landscapes of a study's grid, without half steps, by algorithm and schedule."""
    grid = {replace(cell, seed=0) for cell in read_study(HERE / study)}
    found = landscapes([run for run in runs if replace(run.config, seed=0) in grid])
    return {(scape.config.algorithm, scape.config.schedule.split(",")[0]): scape for scape in found}


def error_of(runs: list[Run]) -> str:
    """Return the mean test error of runs."""
    return percent(fmean(run.last.test_error for run in runs))


if __name__ == "__main__":
    main()
