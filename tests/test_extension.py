"""Grids of methods that are compared are extended together, and stay equal in size."""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.landscapes import ended
from weightdecay.cli import stages
from weightdecay.records import Run, RunConfig
from weightdecay.studies import STUDIES, Panel, scale
from weightdecay.studies.committed import found_in
from weightdecay.studies.extension import extended, groups, together
from weightdecay.studies.findings import find, of_second_stage, unequal
from weightdecay.studies.registration import register
from weightdecay.studies.registration_file import FILE, read, write

pytestmark = pytest.mark.cpu("which cells are planned does not depend on the device")
RESULTS = Path(__file__).parents[1] / "results"
AXES: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "epochs": 2, "batch": 64, "seed": 0}
#: Where the best settings of methods lie, as powers of two.
Bests = Mapping[str, tuple[float, float]]
INSIDE = (-6.5, -6.5)


def panel(
    algorithm: str, *, lr: Any = "2^-8..2^-5", decay: Any = "2^-8..2^-5", **more: Any
) -> Panel:
    way = "weight_decay" if algorithm.endswith("w") else "l2"
    axes = {**AXES, "algorithm": algorithm, "lr": lr, way: decay, **more}
    return Panel(algorithm, algorithm, axes)


def decay_of(cell: RunConfig) -> float:
    return next(d for d in (cell.l2, cell.weight_decay, cell.normalized_decay) if d is not None)


def trained(cells: Iterable[RunConfig], bests: Bests) -> dict[str, Run]:
    found = {}
    for cell in cells:
        lr, decay = bests[cell.algorithm]
        away = (math.log2(cell.lr) - lr) ** 2
        away += (math.log2(decay_of(cell) or 2**-20) - decay) ** 2
        found[cell.identity] = ended(cell, validation_error=0.1 + 1e-3 * away, test_error=0.1)
    return found


def cells_of(panels: Iterable[Panel]) -> set[RunConfig]:
    return {cell for one in panels for cell in one.cells}


def grown(panels: Sequence[Panel], bests: Bests) -> tuple[list[Panel], dict[str, Run]]:
    """Extend panels until nothing is left to train; return them, and all runs."""
    found, runs = list(panels), dict[str, Run]()
    for _ in range(5):
        runs = trained(cells_of(found), bests)
        again = together(panels, runs)
        if cells_of(again) == cells_of(found):
            return again, runs
        assert cells_of(found) < cells_of(again)
        found = again
    raise AssertionError("it does not come to an end")


def knobs(one: Panel) -> tuple[list[float], list[float]]:
    """Return the exponents of a panel's learning rates, and of its decays above 0."""
    lrs = {math.log2(cell.lr) for cell in one.cells}
    decays = {math.log2(decay) for cell in one.cells if (decay := decay_of(cell))}
    return sorted(lrs), sorted(decays)


def sizes(panels: Iterable[Panel]) -> set[tuple[int, int]]:
    return {(len(lrs), len(decays)) for lrs, decays in map(knobs, panels)}


@pytest.mark.parametrize(
    ("best", "lrs"),
    [(-7, range(-10, -4)), (-6, range(-8, -2)), (-6.5, range(-10, -4))],
    ids=["nearer to the lowest", "nearer to the highest", "as near to both"],
)
def test_a_compared_grid_is_extended_at_the_end_nearer_to_its_own_best(
    best: float, lrs: Sequence[int]
) -> None:
    adam, adamw = grown(
        [panel("adam"), panel("adamw")], {"adam": (-4, -6.5), "adamw": (best, -6.5)}
    )[0]
    assert knobs(adam) == ([*range(-8, -2)], [*range(-8, -4)])
    assert knobs(adamw) == ([*lrs], [*range(-8, -4)])


def test_each_knob_gets_as_many_values_in_every_grid_that_is_compared() -> None:
    """One needs higher rates and the other lower decays."""
    bests = {"adam": (-4, -6.5), "adamw": (-6.5, -9), "sgd": INSIDE}
    found, _ = grown([panel(name) for name in bests], bests)
    assert sizes(found) == {(6, 6)}
    assert knobs(found[0])[0] == [*range(-8, -2)]
    assert knobs(found[1])[1] == [*range(-10, -4)]


def test_nothing_is_extended_if_no_best_lies_at_an_edge() -> None:
    panels = [panel("adam"), panel("adamw")]
    assert grown(panels, {"adam": INSIDE, "adamw": INSIDE})[0] == panels


def test_grids_are_extended_three_times_at_most() -> None:
    found, _ = grown([panel("adam"), panel("adamw")], {"adam": (-40, -40), "adamw": (0, -6.5)})
    assert sizes(found) == {(4 + 3 * 2, 4 + 3 * 2)}


def test_what_grids_were_declared_to_differ_by_is_kept() -> None:
    """A knob with one value is not searched, and stays as it is."""
    panels = [panel("adam", lr="2^-9..2^-5"), panel("adamw", decay=[2**-6]), panel("sgd")]
    bests = {"adam": (-4, -4), "adamw": (-6.5, -6), "sgd": INSIDE}
    found, _ = grown(panels, bests)
    assert [(len(lrs), len(decays)) for lrs, decays in map(knobs, found)] == [
        (7, 6),
        (6, 1),
        (6, 6),
    ]


@pytest.mark.parametrize(
    ("highest", "decays"),
    [(-1, range(-6, 0)), (-2, range(-6, 0)), (-3, range(-6, 0))],
)
def test_no_weight_is_removed_whole_for_the_sake_of_equal_sizes(
    highest: int, decays: Sequence[int]
) -> None:
    """AdamW's best is near its highest decay, beyond which λ = 1 comes: the other end grows."""
    panels = [panel("adam"), panel("adamw", decay=f"2^{highest - 3}..2^{highest}")]
    found, _ = grown(panels, {"adam": (-6.5, -4), "adamw": (-6.5, highest - 1)})
    assert sizes(found) == {(4, 6)}
    assert knobs(found[1])[1] == [*decays]


def test_a_best_decay_that_cannot_be_exceeded_asks_nothing_of_others() -> None:
    panels = [panel("adam"), panel("adamw", decay="2^-4..2^-1")]
    assert grown(panels, {"adam": INSIDE, "adamw": (-6.5, 0)})[0] == panels


@pytest.mark.parametrize("every", [1000, 2], ids=["all but one", "half"])
def test_an_interrupted_extension_is_planned_again(every: int) -> None:
    """Whichever cells of the last round are missing, the plan is the same."""
    panels = [panel("adam"), panel("adamw")]
    bests = {"adam": (-11, -6.5), "adamw": (-6.5, -4)}
    planned = panels
    for _ in range(3):
        before = trained(cells_of(planned), bests)
        planned = together(panels, before)
        new = [*trained(cells_of(planned), bests).items()]
        added = [one for one in new if one[0] not in before]
        there = {**before, **dict(added[::every])}
        assert together(panels, there) == planned


places = st.tuples(st.integers(-14, 0), st.integers(-14, 0))


@settings(max_examples=40)
@given(places, places, places, st.integers(0, 2**32))
def test_grids_come_out_equal_and_fewer_runs_plan_nothing_else(
    one: tuple[int, int], other: tuple[int, int], third: tuple[int, int], seed: int
) -> None:
    bests = {"adam": one, "adamw": other, "sgdw": third}
    panels = [panel(name) for name in bests]
    found, runs = grown(panels, bests)
    assert len(sizes(found)) == 1
    assert all(max(knobs(own)[1]) < 0 for own in found[1:])
    kept = {name: run for place, (name, run) in enumerate(runs.items()) if (seed >> place % 32) & 1}
    for some in (kept, {n: r for n, r in runs.items() if r.config.algorithm != "adam"}):
        assert cells_of(together(panels, some)) <= cells_of(found)


def test_pairs_join_panels_also_by_way_of_others() -> None:
    joined = groups("abcde", [("a", "b"), ("d", "e"), ("b", "c")])
    assert sorted(map(sorted, joined)) == [["a", "b", "c"], ["d", "e"]]
    assert groups([], []) == []


# Figure 2 compares every two of its methods, some by way of others.
FIGURE = STUDIES["figure-2"]
AT = replace(
    scale("mnist1d", "small"),
    seeds=[0],
    lrs=dict.fromkeys(("sgd", "adam"), "2^-8..2^-5"),
    l2=dict.fromkeys(("sgd", "adam"), (0, "2^-8..2^-5")),
    decays=dict.fromkeys(("sgd", "adam"), (0, "2^-8..2^-5")),
)
BESTS = {"sgd": INSIDE, "sgdw": (-7, -7), "adam": (-10, -6.5), "adamw": INSIDE}


def trained_by(cells: Iterable[RunConfig], bests: Bests = BESTS) -> list[Run]:
    known = {**bests, "sgd,momentum=0": INSIDE, "sgdw,momentum=0": INSIDE}
    return [*trained(cells, known).values()]


def of_figure() -> list[Run]:
    """Return the runs of Figure 2, trained until no grid is extended."""
    cells = {*FIGURE.cells(AT)}
    while not cells >= (more := {*FIGURE.grown(AT, trained_by(cells))}):
        cells |= more
    return trained_by(cells)


def of_each_alone() -> list[Run]:
    """Return its runs as they were when a grid was extended without those it is compared with."""
    panels = FIGURE.panels(AT)
    cells = {*FIGURE.cells(AT)}
    while not cells >= (more := cells_of(_alone(panels, trained_by(cells)))):
        cells |= more
    return trained_by(cells)


def _alone(panels: Sequence[Panel], runs: Iterable[Run]) -> list[Panel]:
    there = {run.config.identity: run for run in runs}
    return [together([one], there)[0] for one in panels]


def registered_with(runs: Sequence[Run], panels: Sequence[Panel], folder: Path) -> Any:
    there = {run.config.identity: run for run in runs}
    seen = replace(
        FIGURE.evidence(AT, runs),
        panels={one.name: found for one in panels if (found := one.measured(there))},
    )
    made = register(
        FIGURE.entrants(seen),
        seen.runs,
        date="2026-11-18",
        seeds=2,
        carry=0,
        compare=FIGURE.pairs(AT),
        at_edge=True,
    )
    (folder / FIGURE.name).mkdir()
    write(made, folder / FIGURE.name)
    return made


def told(runs: Sequence[Run], made: Any) -> str:
    return " ".join(of_second_stage(find(FIGURE, AT, runs, registration=made)[0]))


def test_methods_of_a_figure_are_searched_over_grids_of_equal_size(tmp_path: Path) -> None:
    runs = of_figure()
    panels = {name: one.panel for name, one in FIGURE.evidence(AT, runs).panels.items()}
    assert sizes(panels.values()) == {(8, 4)}
    assert min(knobs(panels["adam"])[0]) == -12
    made = registered_with(runs, [*panels.values()], tmp_path)
    assert "unequal" not in told(runs, made)
    assert {*stages._grown([FIGURE], AT, runs, tmp_path)} <= {run.config for run in runs}


def test_what_was_registered_when_each_grid_was_extended_alone_stays_so(tmp_path: Path) -> None:
    runs = of_each_alone()
    alone = _alone(FIGURE.panels(AT), runs)
    assert sizes(alone) == {(4, 4), (8, 4)}
    assert not {*FIGURE.grown(AT, runs)} <= {run.config for run in runs}
    made = registered_with(runs, alone, tmp_path)
    seen = FIGURE.evidence(AT, runs, registration=made)
    assert {name: one.panel for name, one in seen.panels.items()} == {p.name: p for p in alone}
    planned = stages._grown([FIGURE], AT, runs, tmp_path)
    assert {*planned} == cells_of(alone)
    assert "unequal numbers of settings: AdamW 20; Adam 40; SGD 20." in told(runs, made)


def test_whatever_the_claims_of_figure_4_compare_is_extended_together() -> None:
    """AdamW and AdamWR kept 20 settings where those of their rivals grew to 50."""
    figure = STUDIES["figure-4"]
    panels = {one.name for one in figure.panels(AT)}
    assert groups(panels, figure.compared) == [panels]


def test_grids_of_methods_that_a_claim_compares_without_a_registered_pair_are_named(
    tmp_path: Path,
) -> None:
    """When text's runs were registered first, two of the pairs were not among those compared."""
    [found] = [one for one, _ in found_in(RESULTS, only=["figure-4"]) if one.scale.task == "text"]
    assert "unequal" not in " ".join(of_second_stage(found))
    shutil.copy(RESULTS / "text-medium" / "figure-4-registered.toml", tmp_path / FILE)
    first = read(tmp_path)
    assert unequal(first) == ""
    told = " ".join(of_second_stage(replace(found, registration=first)))
    assert "settings: AdamW 20; SGDW 50; AdamWR 20; SGDWR 50." in told


def test_panels_that_nothing_is_compared_with_are_left_as_they_are() -> None:
    panels = [panel("adam"), panel("adamw"), panel("sgd")]
    runs = trained(cells_of(panels), {"adam": (-11, -6.5), "adamw": INSIDE, "sgd": (-11, -11)})
    assert extended(panels, [], runs) == panels
    assert extended(panels, [("adam", "adamw")], runs) == [*together(panels[:2], runs), panels[2]]
