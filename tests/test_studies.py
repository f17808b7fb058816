"""The paper's figures as declarations: what is trained for each is what the paper describes."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.landscapes import ended, record
from weightdecay.records import Run, RunConfig, Spec
from weightdecay.schedules import WarmRestarts, cycles
from weightdecay.studies import (
    STUDIES,
    Evidence,
    NotAtThisScaleError,
    Panel,
    scale,
    scales,
    studies_at,
)
from weightdecay.studies.findings import find
from weightdecay.studies.formats import because
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.panel import restated, titled
from weightdecay.tasks import catalogue

SCALES = list(scales._SCALES.values())
DECLARED = [(study, at) for at in SCALES for study in studies_at(at)]
NAMES = [f"{study.name} {at.folder}" for study, at in DECLARED]


FOLDERS = {at.folder: at for at in SCALES}
IMAGES = [
    *("cifar10-small", "cifar100-small", "fashion-mnist-small"),
    *("cifar10-medium", "cifar10-paper", "imagenet32-paper"),
]
IDENTITIES: dict[str, str] = json.loads(Path(__file__).with_name("studies.json").read_text("utf-8"))


@cache
def cells_of(name: str) -> list[RunConfig]:
    """Return the cells of a study at a scale, which take a while to make."""
    study, at = DECLARED[NAMES.index(name)]
    return study.cells(at)


@pytest.mark.slow
def test_every_study_trains_the_same_configurations_as_when_its_results_were_made() -> None:
    """Another hash would leave recorded runs behind: change a scale only knowing that."""
    found = {}
    for name in NAMES:
        identities = sorted(cell.identity for cell in cells_of(name))
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


@pytest.mark.parametrize("name", NAMES)
def test_a_study_declares_every_run_once_on_its_task_or_the_second(name: str) -> None:
    study, at = DECLARED[NAMES.index(name)]
    panels, twins = study.panels(study.place(at)), study.twins(at)
    assert len({panel.name for panel in panels}) == len(panels)
    cells = cells_of(name)
    pairs = 2 * sum(map(len, twins.values()))
    assert sum(len(panel.cells) for panel in panels) + pairs == len(cells) == len(set(cells))
    assert bool(cells) == (study.name != "supplement-1")
    assert {cell.task for cell in cells} <= {at.task, at.second}


@pytest.mark.parametrize("at", SCALES, ids=[at.folder for at in SCALES])
def test_a_second_task_has_the_same_scale(at: scales.Scale) -> None:
    assert at.second is None or (at.second, at.name) in scales._SCALES


def test_two_cores_have_every_study_on_both_small_tasks() -> None:
    """On the second, what repeats a figure on another task would only train the first again."""
    first, second = scale("mnist1d", "small"), scale("text", "small")
    assert studies_at(first) == list(STUDIES.values())
    assert first.second == second.task
    repeated = {"supplement-4", "supplement-6"}
    assert {one.name for one in studies_at(second)} == STUDIES.keys() - repeated


SMALL = [name for name in NAMES if name.endswith(("mnist1d-small", "text-small"))]


@pytest.mark.parametrize("name", SMALL)
def test_methods_that_are_compared_are_searched_over_grids_of_equal_size(name: str) -> None:
    study, at = DECLARED[NAMES.index(name)]
    panels = {panel.name: panel for panel in study.panels(study.place(at))}
    sizes = {
        pair: [len(panels[one].cells) for one in pair]
        for pair in study.pairs(at)
        if not any(", λ" in one for one in pair)
    }
    assert all(one == other for one, other in sizes.values()), sizes


def test_both_small_tasks_have_two_stages() -> None:
    for task in ("mnist1d", "text"):
        at = scale(task, "small")
        assert len(scales.values(at.seeds)) == 2
        assert at.judges >= 10
        assert at.carriers >= 3


def test_every_built_in_task_has_a_scale_and_the_models_that_its_studies_name() -> None:
    assert set(scales.tasks()) == set(catalogue.NAMES)
    for name in NAMES:
        for task, model in {(cell.task, cell.model) for cell in cells_of(name)}:
            assert Spec.parse("model", model).name in catalogue._ENTRIES[task].models


@pytest.mark.parametrize("task", ["cifar100", "fashion-mnist"])
def test_other_images_of_32_pixels_or_less_are_trained_as_cifar10_is(task: str) -> None:
    at, cifar10 = scale(task, "small"), scale("cifar10", "small")
    assert studies_at(at) == studies_at(cifar10)
    for study in studies_at(at):
        alike = [replace(cell, task=task) for cell in cells_of(f"{study.name} {cifar10.folder}")]
        assert cells_of(f"{study.name} {at.folder}") == alike


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
    "figure-4": 2 * 11 + 4,
    "supplement-1": 0,
    "supplement-2": 4 * 4 + 10 * 11,
    "supplement-3": 3 * 8 * (11 + 10 + 10 + 10),
    "supplement-4": 12 + 7,
    "supplement-5": 2 * 11 + 4,
    "supplement-6": 2 * 11 + 4,
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


@pytest.mark.parametrize("name", IMAGES[3:])
@pytest.mark.parametrize("figure", ["figure-3", "supplement-3"])
def test_normalized_decays_of_images_hold_the_two_that_the_paper_names(
    figure: str, name: str
) -> None:
    decays: dict[tuple[str, str], set[float]] = {}
    for cell in STUDIES[figure].cells(FOLDERS[name]):
        if cell.normalized_decay is not None:
            decays.setdefault((cell.task, cell.algorithm), set()).add(cell.normalized_decay)
    assert decays
    assert all({0.025, 0.05} < own for own in decays.values())


def test_figure_4_restarts_where_the_schedule_s_figure_does() -> None:
    pytest.importorskip("matplotlib")
    cells = paper("figure-4")
    [restarts] = {c.schedule for c in cells if c.schedule.startswith("restarts")}
    options = Spec.parse("schedule", restarts).options
    schedule = WarmRestarts(int(str(options["first"])), factor=int(str(options["factor"])))
    ends = [100, 300, 700, 1500]
    assert [cycle.end for cycle in cycles(schedule, 1500)] == ends
    drawn = STUDIES["supplement-1"].draw(Evidence(scale("cifar10", "paper"), {}), "")
    assert [*drawn.axes[0].get_xticks()] == [0, *ends]
    assert drawn.axes[0].get_xlabel() == "epochs"
    assert [*dict.fromkeys((c.algorithm, c.schedule == restarts) for c in cells)] == [
        *(("adam", False), ("adamw", False), ("sgdw", False)),
        *(("adam", True), ("adamw", True), ("sgdw", True)),
    ]


def test_figure_4_chooses_adam_s_l2_factor_on_every_task() -> None:
    for at in SCALES:
        adam = [cell for cell in STUDIES["figure-4"].cells(at) if cell.algorithm == "adam"]
        for restarts in (False, True):
            own = {c.l2 for c in adam if c.schedule.startswith("restarts") == restarts}
            assert len(own) >= 3, at.folder


def test_figure_4_has_fresh_seeds_for_each_of_its_curves() -> None:
    for at in SCALES:
        study = STUDIES["figure-4"]
        entrants = {name for pair in study.pairs(at) for name in pair}
        assert entrants == {panel.name for panel in study.panels(at)}


def test_long_runs_on_imagenet32_have_150_epochs_and_a_first_cycle_of_ten() -> None:
    at = scale("imagenet32", "paper")
    long = {(c.epochs, c.schedule) for c in STUDIES["figure-4"].cells(at)}
    assert long == {(150, "cosine"), (150, "restarts,factor=2,first=10")}
    assert {c.epochs for c in STUDIES["figure-3"].cells(at)} == {150}


def test_runs_with_restarts_end_with_a_cycle() -> None:
    for at in SCALES:
        own = [c for c in STUDIES["figure-4"].cells(at) if c.schedule.startswith("restarts")]
        [epochs] = {cell.epochs for cell in own}
        long = long_of(at)
        ends = [cycle.end for cycle in cycles(WarmRestarts(long.first_cycle, factor=2), epochs)]
        assert ends[-1] == epochs
        assert epochs <= long.epochs < 2 * epochs + long.first_cycle


def test_small_runs_with_restarts_have_four_cycles() -> None:
    for at in (scale("mnist1d", "small"), scale("text", "small")):
        long = long_of(at)
        schedule = WarmRestarts(long.first_cycle, factor=2)
        ends = [cycle.end for cycle in cycles(schedule, long.epochs)]
        assert len(ends) == 4
        assert ends[-1] == long.epochs


def test_standard_adam_is_long_and_at_a_fixed_rate() -> None:
    own = [cell for cell in paper("supplement-2") if cell.algorithm == "adam"]
    assert {(c.schedule, c.epochs, c.model) for c in own} == {
        ("constant", 1800, "shakeshake26,width=96")
    }
    assert (len({c.lr for c in own}), len({c.l2 for c in own})) == (4, 4)
    assert set(paper("supplement-2")) - set(own) < set(paper("figure-2"))


def width(model: str) -> float:
    """Return the width of a network; if its name does not say, the usual one of our networks."""
    return float(str(Spec.parse("model", model).options.get("width", 64)))


@pytest.mark.parametrize("name", FOLDERS)
def test_standard_adam_has_18_times_the_epochs_and_a_larger_network(name: str) -> None:
    at, study = FOLDERS[name], STUDIES["supplement-2"]
    sizes = {(c.algorithm, c.epochs, c.model) for c in study.cells(at)}
    (_, long, larger), (_, short, smaller) = sorted(sizes)  # Adam's, then AdamW's
    times = 6 if at.task == "text" else 18  # text would take too long on two cores
    assert long == times * short
    assert width(larger) == 1.5 * width(smaller)
    [claim] = study.claims(at)
    said = f"Standard Adam, {times} times as long in a larger network, at best"
    assert claim.words.startswith(said)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_conjecture_is_tried_on_rmsprop_too(name: str) -> None:
    at, study = FOLDERS[name], STUDIES["conjecture"]
    cells = [c for c in cells_of(f"conjecture {name}") if c.algorithm == "torch.optim:RMSprop"]
    assert [claim.words for claim in study.claims(at)] == [
        f"The same holds for {optimizer}" for optimizer in ("AMSGrad", "AdaGrad", "RMSProp")
    ]
    assert {c.lr for c in cells} == {*scales.values(at.lrs["rmsprop"])}
    assert {c.l2 for c in cells} == {None, *scales.values(at.l2["rmsprop"])}
    assert {c.weight_decay for c in cells} == {None, *scales.values(at.decays["rmsprop"])}


@pytest.mark.parametrize("task", ["mnist1d", "text"])
@pytest.mark.parametrize("figure", ["supplement-3", "exponents"])
def test_budgets_have_three_seeds_however_few_the_scale_has(figure: str, task: str) -> None:
    """No second stage follows, and leaving one seed out takes three."""
    at = replace(scale(task, "small"), seeds="0..1")
    seeds: dict[tuple[object, ...], set[int]] = {}
    for cell in STUDIES[figure].cells(at):
        budget = cell.task, cell.algorithm, cell.epochs, cell.data, cell.batch
        seeds.setdefault(budget, set()).add(cell.seed)
    assert min(map(len, seeds.values())) >= 3


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


@pytest.mark.slow
def test_landscapes_of_a_cpu_are_evaluated_at_their_end_and_curves_all_along() -> None:
    for at in SCALES:
        for study in studies_at(at):
            cells = cells_of(f"{study.name} {at.folder}")
            own = {c.evaluate_every for c in cells if c.task == at.task}
            on_a_gpu = at.common.get("precision") == "bfloat16"  # where it costs a tenth
            assert own <= ({long_of(at).every} if study.curves else {1} if on_a_gpu else {0})


AXES: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "epochs": 3, "batch": 64, "seed": "0..1"}


def panel(**axes: Any) -> Panel:
    """Return a panel of nine settings, of AdamW where nothing else is said."""
    own: dict[str, Any] = {"algorithm": "adamw", "lr": "2^-9..2^-7"}
    own |= {"weight_decay": [0, "2^-9..2^-8"]}
    return Panel("adamw", "AdamW", {**AXES, **own, **axes})


def found(*cells: RunConfig) -> dict[str, Run]:
    """Return a run of each cell, by its identity."""
    return {cell.identity: ended(cell) for cell in cells}


def test_a_panel_yields_its_cells_and_they_are_one_landscape() -> None:
    own = panel()
    assert len(own.cells) == 3 * 3 * 2
    measured = own.measured(found(*own.cells))
    assert measured is not None
    landscape = measured.landscape
    assert len(landscape.cells) == 9
    assert all(cell.seeds == (0, 1) for cell in landscape.cells.values())
    title, drawn, coupling = measured.picture
    assert (title, drawn) == ("AdamW", landscape)
    assert coupling is measured.coupling


def test_a_panel_takes_exactly_the_runs_of_its_own_cells() -> None:
    """Larger landscapes of the same runs, and those that differ in a field alone, are others'."""
    own = panel()
    others = (
        panel(lr="2^-12..2^-4"),
        panel(weight_decay="2^-12..2^-4"),
        panel(seed="0..7"),
        panel(evaluate_every=0),
        panel(data=1000),
    )
    strangers = [cell for other in others for cell in other.cells]
    measured = own.measured(found(*strangers, *own.cells))
    assert measured is not None
    assert {run.config for run in measured.runs} == set(own.cells)
    assert len(measured.runs) == len(own.cells)


def test_of_a_panel_those_runs_count_that_there_are() -> None:
    own = panel()
    few = own.measured(found(*own.cells[:3]))
    assert few is not None
    assert len(few.runs) == 3
    assert own.measured({}) is None
    assert own.measured(found(*panel(batch=32).cells)) is None


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"epochs": [3, 4]}, "several values of ['epochs']"),
        ({"schedule": ("cosine", "constant")}, "several values of ['schedule']"),
        ({"normalized_decay": 0}, "the decays ['weight_decay', 'normalized_decay']"),
    ],
)
def test_axes_that_are_no_single_landscape_are_refused(axes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"must be one landscape.*{re.escape(said)}"):
        panel(**axes)


def test_a_claim_that_needs_a_panel_without_runs_is_not_decided_and_names_it() -> None:
    at, study = scale("mnist1d", "small"), STUDIES["figure-2"]
    runs = [ended(cell) for cell in study.cells(at) if cell.algorithm == "adam"]
    seen = study.evidence(at, runs)
    assert list(seen.panels) == ["adam"]
    verdict = {one.claim: one for one in study.verdicts(seen)}["AdamW is more separable than Adam"]
    assert (verdict.outcome, because(verdict)) == ("not decided", "There are no runs of adamw.")


def test_imagenet32_is_shown_by_top_5_errors_as_in_the_paper() -> None:
    at, study = scale("imagenet32", "paper"), STUDIES["figure-2"]
    cell = next(c for c in study.cells(at) if c.algorithm == "adamw")
    run = Run(cell, (record(cell, epoch=cell.epochs, test_error=0.4, test_error_top5=0.2),))
    assert study.evidence(at, [run]).landscape("adamw").best.mean == 0.2


def test_top_5_errors_are_called_so_wherever_they_are_shown() -> None:
    at, study = scale("imagenet32", "paper"), STUDIES["figure-3"]
    cells = [cell for cell in study.cells(at) if cell.algorithm == "adamw"]
    runs = [Run(cell, (record(cell, epoch=cell.epochs),)) for cell in cells]
    found, seen = find(study, at, runs)
    assert seen.tested == found.tested == "top-5 test error"
    said = "settings chosen by test top-5 error, top-5 test error of the last epoch shown"
    assert said in found.small_print


def test_landscapes_are_called_by_their_algorithm() -> None:
    measured = panel().measured(found(*panel().cells))
    assert measured is not None
    assert titled(measured.landscape) == "AdamW"
    told = "AdamW, cosine annealing, 3 epochs, λ, batch 64"
    assert restated(measured.landscape, "mnist1d") == told
    assert restated(measured.landscape, "text") == f"{told}, mnist1d"


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


def test_a_scale_of_top_5_errors_has_no_second_stage_which_would_judge_by_others() -> None:
    at = scale("imagenet32", "paper")
    assert (at.error, at.judges) == ("error_top5", 0)
    with pytest.raises(ValueError, match="`judges` must be 0 for a scale of error_top5, got 8"):
        replace(at, judges=8)
