"""The paper's figures as declarations: what is trained for each is what the paper describes."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.landscapes import Truth, measured, record, runs_of
from weightdecay.records import Run, RunConfig, Spec
from weightdecay.schedules import WarmRestarts, cycles
from weightdecay.studies import (
    STUDIES,
    Evidence,
    NotAtThisScaleError,
    Study,
    scale,
    scales,
    studies_at,
)
from weightdecay.studies.study import titled

SCALES = list(scales._SCALES.values())
DECLARED = [(study, at) for at in SCALES for study in studies_at(at)]
NAMES = [f"{study.name} {at.folder}" for study, at in DECLARED]


IDENTITIES: dict[str, str] = json.loads(Path(__file__).with_name("studies.json").read_text("utf-8"))


def test_every_study_trains_the_same_configurations_as_when_its_results_were_made() -> None:
    """Another hash would leave recorded runs behind: change a scale only knowing that."""
    found = {}
    for (study, at), name in zip(DECLARED, NAMES, strict=True):
        identities = sorted(cell.identity for cell in study.cells(at))
        found[name] = hashlib.sha256("\n".join(identities).encode()).hexdigest()[:20]
    assert found == IDENTITIES


def paper(figure: str) -> list[RunConfig]:
    return STUDIES[figure].cells(scale("cifar10", "paper"))


def panels(cells: list[RunConfig]) -> Counter[tuple[object, ...]]:
    """Count the cells of each panel: what differs in rate, decay and seed alone is one."""
    return Counter(
        (c.task, c.model, c.algorithm, c.schedule, c.epochs, c.l2 is None, c.weight_decay is None)
        for c in cells
    )


@pytest.mark.parametrize(("study", "at"), DECLARED, ids=NAMES)
def test_a_study_declares_every_run_once_on_its_task_or_the_second(
    study: Study, at: scales.Scale
) -> None:
    cells = study.cells(at)
    assert all(isinstance(cell, RunConfig) for cell in cells)
    assert len(set(cells)) == len(cells)
    assert bool(cells) == (study.name != "supplement-1")
    assert {cell.task for cell in cells} <= {at.task, at.second}


@pytest.mark.parametrize("at", SCALES, ids=[at.folder for at in SCALES])
def test_a_second_task_has_the_same_scale(at: scales.Scale) -> None:
    assert at.second is None or (at.second, at.name) in scales._SCALES


def test_two_cores_have_every_study_on_both_small_tasks() -> None:
    for task in ("mnist1d", "text"):
        assert studies_at(scale(task, "small")) == list(STUDIES.values())


@pytest.mark.parametrize("name", ["supplement-4", "supplement-6", "exponents"])
def test_a_scale_without_what_a_study_needs_says_so(name: str) -> None:
    at = scale("cifar10", "small")
    assert STUDIES[name] not in studies_at(at)
    with pytest.raises(NotAtThisScaleError, match=r"`scale` must .* cifar10-small"):
        STUDIES[name].cells(at)


COUNTS = {
    "figure-1": 6 * 10 * 11,
    "figure-2": 4 * 10 * 11 + 24,
    "figure-3": 12 + 7,
    "figure-4": 5,
    "supplement-1": 0,
    "supplement-2": 4 * 4 + 10 * 11,
    "supplement-3": 3 * 8 * (11 + 10 + 10 + 10),
    "supplement-4": 12 + 7,
    "supplement-5": 5,
    "supplement-6": 5,
}


@pytest.mark.parametrize("figure", COUNTS)
def test_the_paper_s_own_size(figure: str) -> None:
    assert len(paper(figure)) == COUNTS[figure]


def test_figures_1_and_2_are_panels_of_ten_rates_and_eleven_decays() -> None:
    first = panels(paper("figure-1"))
    second = panels([cell for cell in paper("figure-2") if cell.epochs == 100])
    assert set(first.values()) == set(second.values()) == {110}
    assert [Spec.parse("schedule", key[3]).name for key in first] == [
        *("constant", "drops", "cosine"),
        *("constant", "drops", "cosine"),
    ]
    assert [key[2] for key in second] == ["sgd", "sgdw", "adam", "adamw"]


def test_figures_1_and_2_share_their_panels_with_cosine_annealing() -> None:
    cosine = {cell for cell in paper("figure-1") if cell.schedule == "cosine"}
    assert len(cosine) == 2 * 110
    assert cosine < set(paper("figure-2"))


NAMED: dict[str, Callable[[RunConfig], bool]] = {
    "SGD's top left circle": lambda c: (c.algorithm, c.lr, c.l2) == ("sgd", 1 / 2, 1 / 8 * 0.001),
    "a rate of SGDW not well tuned yet": lambda c: (
        (c.algorithm, c.lr, c.weight_decay) == ("sgdw", 1 / 1024, 1 / 4 * 0.001)
    ),
    "Adam without L2": lambda c: (c.algorithm, c.l2) == ("adam", 0),
}


@pytest.mark.parametrize("named", NAMED)
def test_a_setting_that_the_text_names_is_in_the_grid(named: str) -> None:
    assert any(map(NAMED[named], paper("figure-2")))


def test_drops_come_at_30_60_and_80_percent() -> None:
    for at in SCALES:
        cells = STUDIES["figure-1"].cells(at)
        [drops] = {c.schedule for c in cells if c.schedule.startswith("drops")}
        places = Spec.parse("schedule", drops).options["at"]
        assert places == pytest.approx([0.3 * at.epochs, 0.6 * at.epochs, 0.8 * at.epochs])


def test_pairs_of_one_epoch_lose_as_much_of_a_weight_in_an_update() -> None:
    """With η = 1 the coupled forms take α · λ′ of it, the decoupled ones λ."""
    cells = [cell for cell in paper("figure-2") if cell.epochs == 1]
    names = ("sgd,momentum=0", "sgdw,momentum=0", "adam", "adamw")
    assert Counter(cell.algorithm for cell in cells) == dict.fromkeys(names, 6)
    for coupled, decoupled in (("sgd,momentum=0", "sgdw,momentum=0"), ("adam", "adamw")):
        ones = {(c.lr, c.lr * c.l2) for c in cells if c.algorithm == coupled and c.l2 is not None}
        assert ones == {(c.lr, c.weight_decay) for c in cells if c.algorithm == decoupled}


def test_figure_3_has_one_learning_rate() -> None:
    for at in SCALES:
        assert {cell.lr for cell in STUDIES["figure-3"].cells(at)} == {0.001}
    assert panels(paper("figure-3")) == {
        ("cifar10", "shakeshake26,width=96", "adam", "cosine", 1800, False, True): 12,
        ("cifar10", "shakeshake26,width=96", "adamw", "cosine", 1800, True, True): 7,
    }


def test_figure_4_restarts_where_the_schedule_s_figure_does() -> None:
    pytest.importorskip("matplotlib")
    cells = paper("figure-4")
    [restarts] = {c.schedule for c in cells if c.schedule.startswith("restarts")}
    options = Spec.parse("schedule", restarts).options
    schedule = WarmRestarts(int(str(options["first"])), factor=int(str(options["factor"])))
    ends = [100, 300, 700, 1500]
    assert [cycle.end for cycle in cycles(schedule, 1500)] == ends
    drawn = STUDIES["supplement-1"].draw(Evidence(scale("cifar10", "paper"), []), "")
    assert [*drawn.axes[0].get_xticks()] == [0, *ends]
    assert drawn.axes[0].get_xlabel() == "epochs"
    assert [(c.algorithm, c.schedule == restarts) for c in cells] == [
        *(("adam", False), ("adamw", False), ("sgdw", False)),
        *(("adamw", True), ("sgdw", True)),
    ]


def test_runs_with_restarts_end_with_a_cycle() -> None:
    for at in SCALES:
        own = [c for c in STUDIES["figure-4"].cells(at) if c.schedule.startswith("restarts")]
        [epochs] = {cell.epochs for cell in own}
        assert [cycle.end for cycle in cycles(WarmRestarts(at.first_cycle, factor=2), epochs)][
            -1
        ] == epochs
        assert epochs <= at.long < 2 * epochs + at.first_cycle


def test_small_runs_with_restarts_have_four_cycles() -> None:
    for at in (scale("mnist1d", "small"), scale("text", "small")):
        ends = [cycle.end for cycle in cycles(WarmRestarts(at.first_cycle, factor=2), at.long)]
        assert len(ends) == 4
        assert ends[-1] == at.long


def test_standard_adam_is_long_and_at_a_fixed_rate() -> None:
    own = [cell for cell in paper("supplement-2") if cell.algorithm == "adam"]
    assert {(c.schedule, c.epochs, c.model) for c in own} == {
        ("constant", 1800, "shakeshake26,width=96")
    }
    assert (len({c.lr for c in own}), len({c.l2 for c in own})) == (4, 4)
    assert set(paper("supplement-2")) - set(own) < set(paper("figure-2"))


def test_supplement_3_has_four_rows_of_three_budgets() -> None:
    landscapes = panels(paper("supplement-3"))
    assert Counter((task, algorithm, other) for task, _, algorithm, *_, other in landscapes) == {
        ("cifar10", "adamw", False): 3,
        ("cifar10", "adamw", True): 3,
        ("imagenet32", "adamw", True): 3,
        ("imagenet32", "sgdw", True): 3,
    }


def test_the_supplement_repeats_figures_on_the_second_task() -> None:
    here, there = scale("mnist1d", "small"), scale("text", "small")
    assert STUDIES["supplement-4"].cells(here) == STUDIES["figure-3"].cells(there)
    assert STUDIES["supplement-5"].cells(here) == STUDIES["figure-4"].cells(here)
    assert STUDIES["supplement-6"].cells(here) == STUDIES["figure-4"].cells(there)


def test_landscapes_of_a_cpu_are_evaluated_at_their_end_and_curves_all_along() -> None:
    for at in SCALES:
        for study in studies_at(at):
            own = {c.evaluate_every for c in study.cells(at) if c.task == at.task}
            on_a_gpu = at.common.get("precision") == "bfloat16"  # where it costs a tenth
            assert own <= ({at.drawn} if study.curves else {1} if on_a_gpu else {0})


def seen_of(*, seeds: int = 3, **truth: float) -> Evidence:
    """Evidence of one landscape, of AdamW at mnist1d's small scale."""
    at = scale("mnist1d", "small")
    hidden = Truth(**truth)  # type: ignore[arg-type]
    splits = measured(hidden.errors(), seeds, np.random.default_rng(0))
    return Evidence(at, runs_of(hidden, splits, epochs=at.epochs, batch=64))


def test_a_landscape_that_is_asked_for_again_is_not_measured_again() -> None:
    seen = seen_of(s=1.0)
    first, again = (seen.landscape("adamw", "weight_decay") for _ in range(2))
    assert first is not None
    assert again is not None
    assert first is not again
    assert seen.coupling(first) is seen.coupling(again)


def test_a_landscape_at_fewer_rates_is_another() -> None:
    seen = seen_of(s=1.0)
    coarse = seen.at_coarse_rates("adam").landscape("adamw", "weight_decay")
    whole = seen.landscape("adamw", "weight_decay")
    assert coarse is not None
    assert whole is not None
    assert coarse.lrs == tuple(2.0**power for power in (-10, -9, -8, -7, -6))
    assert len(whole.lrs) == 7
    assert seen.coupling(coarse) is not seen.coupling(whole)


def test_a_landscape_that_no_run_is_of_is_not_there() -> None:
    assert seen_of().landscape("sgdw", "weight_decay") is None
    assert seen_of().landscape("adamw", "normalized_decay") is None
    assert seen_of().pair("adam")[0] is None


def test_imagenet32_is_shown_by_top_5_errors_as_in_the_paper() -> None:
    at = scale("imagenet32", "paper")
    cell = next(c for c in STUDIES["figure-2"].cells(at) if c.algorithm == "adamw")
    run = Run(cell, (record(cell, epoch=cell.epochs, test_error=0.4, test_error_top5=0.2),))
    landscape = Evidence(at, [run]).landscape("adamw", "weight_decay")
    assert landscape is not None
    assert landscape.best.mean == 0.2


def test_panels_are_called_by_their_algorithm() -> None:
    landscape = seen_of().landscape("adamw", "weight_decay")
    assert landscape is not None
    assert titled(landscape) == "AdamW"
    assert titled(landscape, schedule=True, epochs=True) == "AdamW, cosine annealing, 48 epochs"


@pytest.mark.parametrize(
    ("task", "name", "said"),
    [
        ("mnist", "small", "`task` must be .*mnist1d.*text.*cifar10.*imagenet32.*'mnist'"),
        ("mnist1d", "large", "`scale` must be small or medium for mnist1d, got 'large'"),
        ("imagenet32", "small", "`scale` must be paper for imagenet32, got 'small'"),
    ],
)
def test_what_is_unknown_is_an_error_that_names_the_known(task: str, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        scale(task, name)
