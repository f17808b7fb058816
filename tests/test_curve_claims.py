"""Claims on long runs and restarts: each is held, not held and not decided on runs made so."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from tests.landscapes import record
from tests.worlds import AT, Trained, easier, seen_in, verdict_on
from weightdecay.labels import method
from weightdecay.records import DECAYS, Run, RunConfig, packed
from weightdecay.studies import STUDIES, Evidence, scale
from weightdecay.studies.curve_claims import less
from weightdecay.studies.differences import paired, weighed
from weightdecay.studies.formats import because, rule
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.reasons import Difference
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

LONG = long_of(AT)
ENDS = (12, 36, 84, 180)
#: Curves have a point every so many epochs; a doubling off the best setting costs so much error.
STEP, STEEP = 12, 0.03
NOISY = 0.15
STAGES = pytest.mark.parametrize("stages", [pytest.param(1, marks=pytest.mark.slow), 2])
Shape = Callable[[int], float]


def straight(begin: float, end: float) -> Shape:
    """Return errors that fall evenly over the epochs."""
    return lambda epoch: begin + (end - begin) * epoch / LONG.epochs


@dataclass(frozen=True)
class Curve:
    """What a method does at its best setting, by epoch; with others errors are higher.

    `best` is log2 of the decay that is best, over the middle of its grid, at each epoch.
    """

    error: Shape = lambda epoch: 0.6 - 0.3 * epoch / LONG.epochs
    loss: Shape = lambda epoch: 2.0 - 1.5 * epoch / LONG.epochs
    best: Shape = lambda _: 0.0


def test_the_cycles_are_those_that_are_tried_here() -> None:
    assert (LONG.epochs, LONG.first_cycle, LONG.restarted) == (ENDS[-1], ENDS[0], ENDS[-1])


def middle(cells: list[RunConfig], of: Callable[[RunConfig], float]) -> float:
    values = sorted({of(cell) for cell in cells})
    return values[len(values) // 2]


def decay_of(cell: RunConfig) -> float:
    return float(next(value for way in DECAYS if (value := getattr(cell, way)) is not None))


def trained_as(figure: str, curves: Mapping[str, Curve], noise: float) -> Trained:
    """Return how cells train; noise is a run's and an epoch's, and less in what chooses."""
    groups: dict[str, list[RunConfig]] = {}
    for cell in STUDIES[figure].cells(AT):
        groups.setdefault(method(cell.algorithm, cell.schedule), []).append(cell)
    best = {
        name: (middle(cells, lambda cell: cell.lr), middle(cells, decay_of))
        for name, cells in groups.items()
    }

    def train(cell: RunConfig) -> Run:
        name = method(cell.algorithm, cell.schedule)
        own, (lr, decay) = curves.get(name, Curve()), best[name]
        draw = np.random.default_rng(int(cell.identity[-12:], 16))
        shift, x = noise * draw.normal(), math.log2(cell.lr / lr)
        off = 2.0 if decay_of(cell) == 0 else math.log2(decay_of(cell) / decay)
        records = []
        for epoch in range(STEP, cell.epochs + 1, STEP):
            away = abs(off - own.best(epoch)) + abs(x)
            error = own.error(epoch) + STEEP * away
            test, validation = (error + each * draw.normal() / 2 for each in (noise, noise / 5))
            records.append(
                record(
                    cell,
                    epoch=epoch,
                    test_error=max(0.001, test + shift),
                    validation_error=max(0.001, validation),
                    train_loss=own.loss(epoch) * math.exp(5 * shift + 0.3 * away),
                    cycle_ended=name.endswith("r") and epoch in ENDS,
                )
            )
        return Run(cell, tuple(records))

    return train


def judged(
    words: str, figure: str, curves: Mapping[str, Curve], *, stages: int = 1, noise: float = 0.0005
) -> Verdict:
    seen = seen_in(figure, trained_as(figure, curves, noise), stages=stages)
    return verdict_on(words, figure, seen)


LATE = Curve(error=lambda epoch: 0.6 if epoch < 150 else 0.3)


def at_ends(*errors: float) -> Shape:
    """Return errors at the ends of the cycles, each until the next; before them they are 0.6."""
    return lambda epoch: next(
        (error for end, error in reversed([*zip(ENDS, errors, strict=True)]) if epoch >= end), 0.6
    )


#: Curves that noise can turn into those of any case.
NEARLY = {
    "adamw": LATE,
    "adamwr": Curve(error=at_ends(0.59, 0.59, 0.59, 0.3), best=lambda epoch: float(epoch <= 12)),
}
#: Claims on the figures: for which curves they are held, and for which not.
CASES: dict[tuple[str, str], tuple[dict[str, Curve], dict[str, Curve]]] = {
    ("figure-3", "Curves of Adam and AdamW often coincide"): (
        {"adamw": Curve(error=lambda epoch: straight(0.6, 0.3)(epoch) - 0.02 * (epoch > 90))},
        {"adamw": Curve(error=straight(0.3, 0.2))},
    ),
    ("figure-3", "AdamW's best has a lower training loss"): (
        {"adamw": Curve(loss=straight(2.0, 0.3))},
        {"adamw": Curve(loss=straight(2.0, 0.7))},
    ),
    ("figure-3", "At α = 0.001, AdamW's error is 15 % lower"): (
        {"adamw": Curve(error=straight(0.6, 0.25))},
        {"adamw": Curve(error=straight(0.6, 0.29))},  # lower, but by 3 %
    ),
    ("figure-4", "AdamWR is up to 10 times as fast"): (
        {"adamw": LATE, "adamwr": Curve(error=at_ends(0.4, 0.35, 0.32, 0.3))},
        {"adamwr": Curve(error=at_ends(0.57, 0.5, 0.4, 0.3))},
    ),
    ("figure-4", "AdamWR ends as well as AdamW, and is better"): (
        {"adamwr": Curve(error=at_ends(0.5, 0.4, 0.35, 0.3))},
        {"adamwr": Curve(error=at_ends(0.5, 0.56, 0.35, 0.3))},
    ),
    ("figure-4", "AdamW and AdamWR close most"): (
        {
            "adam": Curve(error=straight(0.6, 0.4)),
            "adamw": Curve(error=straight(0.6, 0.32)),
            "adamwr": Curve(error=straight(0.6, 0.34)),
        },
        {
            "adam": Curve(error=straight(0.6, 0.4)),
            "adamw": Curve(error=straight(0.6, 0.38)),
        },
    ),
    ("figure-4", "With L2, Adam with restarts beats Adam"): (
        {"adamr": Curve(error=at_ends(0.5, 0.45, 0.4, 0.38))},
        {"adamr": Curve(error=at_ends(0.5, 0.45, 0.4, 0.25))},  # better than SGDWR's 0.3
    ),
    ("figure-4", "One λ_norm serves"): (
        {},
        {"adamwr": Curve(best=lambda epoch: 1.0 if epoch <= 12 else 0.0)},
    ),
    ("figure-4", "The Adam variants lower training loss faster"): (
        {name: Curve(loss=straight(1.5, 0.5)) for name in ("adamw", "adamwr")},
        {name: Curve(loss=straight(1.5, 0.5)) for name in ("sgdw", "sgdwr")},
    ),
    ("figure-4", "Restart variants generalize better"): (
        {name: Curve(error=straight(0.6, 0.27)) for name in ("adamwr", "sgdwr")},
        {"sgdwr": Curve(error=straight(0.6, 0.33))},
    ),
}


@STAGES
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_a_claim_on_curves_is_held_where_it_is_so_and_not_where_it_is_not(
    case: tuple[str, str], stages: int
) -> None:
    figure, words = case
    for curves, outcome in zip(CASES[case], (HELD, NOT_HELD), strict=True):
        verdict = judged(words, figure, curves, stages=stages)
        assert verdict.outcome == outcome, because(verdict)


@STAGES
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_a_claim_on_curves_is_not_decided_by_noise(case: tuple[str, str], stages: int) -> None:
    figure, words = case
    verdict = judged(words, figure, NEARLY, stages=stages, noise=NOISY)
    assert verdict.outcome == NOT_DECIDED, because(verdict)
    told = "would have been told apart" if "coincide" in words else "would have been seen"
    assert told in because(verdict)
    assert "seeds would decide it" in because(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 1 / 64])
def test_what_a_reused_decay_costs_does_not_depend_on_how_large_errors_are(factor: float) -> None:
    curves = {"adamwr": Curve(best=lambda epoch: 1.0 if epoch <= 12 else 0.0)}
    train = easier(trained_as("figure-4", curves, 0.0005), factor)
    verdict = verdict_on("One λ_norm serves", "figure-4", seen_in("figure-4", train))
    assert verdict.outcome == NOT_HELD, because(verdict)


def test_a_speed_up_is_how_long_the_other_takes_to_the_same_error() -> None:
    """AdamW falls evenly from 0.6 to 0.3: to 0.5 in 60 epochs, which AdamWR has after 12."""
    curves = {"adamwr": Curve(error=at_ends(0.5, 0.45, 0.4, 0.3))}
    verdict = judged("AdamWR is up to 10 times", "figure-4", curves, noise=0.0)
    assert "over 12: 5.00 times [5.00, 5.00] (held); epoch 36" in because(verdict)
    assert "over 36: 2.50 times" in because(verdict)
    assert "over 180" not in because(verdict)
    assert rule(verdict).startswith("One part must hold, by its interval of 1 − 0.05/parts.")
    assert "nearer to the paper's 10.00 times than to no effect" in rule(verdict)


def test_an_error_that_is_never_reached_takes_all_epochs() -> None:
    curves = {"adamwr": Curve(error=at_ends(0.2, 0.2, 0.2, 0.2))}
    verdict = judged("AdamWR is up to 10 times", "figure-4", curves, noise=0.0)
    assert verdict.outcome == HELD
    assert "over 12: 15.00 times" in because(verdict)


@pytest.mark.parametrize("figure", ["figure-3", "figure-4"])
def test_the_order_in_which_runs_ended_does_not_matter(figure: str) -> None:
    """A sweep's log has them in another order for each seed."""
    study, train = STUDIES[figure], trained_as(figure, NEARLY, 0.005)
    runs = [train(cell) for cell in study.cells(AT)]
    shuffled = [runs[at] for at in np.random.default_rng(0).permutation(len(runs))]
    one, other = (study.evidence(AT, each, planned=False) for each in (runs, shuffled))
    assert [*map(because, study.verdicts(other))] == [*map(because, study.verdicts(one))]


def test_only_the_first_half_says_whether_curves_coincide() -> None:
    words = "Curves of Adam and AdamW often coincide"
    shapes = straight(0.6, 0.3), straight(0.3, 0.2)
    later = Curve(error=lambda epoch: shapes[epoch > 90](epoch))
    assert judged(words, "figure-3", {"adamw": later}).outcome == HELD
    sooner = Curve(error=lambda epoch: shapes[epoch <= 90](epoch))
    assert judged(words, "figure-3", {"adamw": sooner}).outcome == NOT_HELD


def test_a_gap_in_a_third_is_not_made_up_for_by_another() -> None:
    turned = Curve(error=lambda epoch: 0.5 + 0.2 * (epoch <= 30) - 0.2 * (60 < epoch <= 90))
    curves = {"adam": Curve(error=lambda _: 0.5), "adamw": turned}
    assert judged("Curves of Adam and AdamW", "figure-3", curves).outcome == NOT_HELD


def test_curves_are_those_of_fresh_seeds_where_there_are_some() -> None:
    train = trained_as("figure-4", {}, noise=0.0)
    first, both = (seen_in("figure-4", train, stages=stages) for stages in (1, 2))
    assert both.registration is not None
    for name in first.panels:
        assert [*both.fresh(name)] == [*both.registration.judges]
        assert first.fresh(name) == first[name].fresh
        assert len(first.fresh(name)) == 3


def test_curves_without_a_point_in_the_first_half_say_nothing() -> None:
    train = trained_as("figure-3", {}, noise=0.0)

    def ended(cell: RunConfig) -> Run:
        run = train(cell)
        return replace(run, records=run.records[-1:])

    verdict = verdict_on("Curves of Adam", "figure-3", seen_in("figure-3", ended))
    assert verdict.outcome == NOT_DECIDED


def test_if_a_seed_diverged_everywhere_it_is_unknown_whether_curves_coincide() -> None:
    """Without it, too few curves have the noise of a ratio: none coinciding is no measurement."""
    train = trained_as("figure-3", {}, noise=0.0005)

    def diverged(cell: RunConfig) -> Run:
        run = train(cell)
        if cell.seed or cell.algorithm != "adam":
            return run
        return replace(run, records=(replace(run.records[0], test_error=None, diverged=True),))

    verdict = verdict_on("Curves of Adam", "figure-3", seen_in("figure-3", diverged))
    assert verdict.outcome == NOT_DECIDED


def test_the_gap_that_fresh_seeds_see_may_be_one_of_the_test_set() -> None:
    """All seeds of AdamW and AdamWR miss the same few examples less than those of the others."""
    draw, examples = np.random.default_rng(0), 2000
    hard = draw.random(examples) < 0.3
    spared = hard & (draw.random(examples) < 0.1)
    missing = {"adam": hard, "adamr": hard, "adamw": hard & ~spared, "adamwr": hard & ~spared}
    train = trained_as("figure-4", {}, noise=0.0)

    def kept(cell: RunConfig, *, bits: bool) -> Run:
        run = train(cell)
        if cell.seed < 1000:
            return run
        missed = missing.get(method(cell.algorithm, cell.schedule), hard & ~spared)
        missed = missed ^ (np.random.default_rng(cell.seed).random(examples) < 0.002)
        end = replace(run.last, test_error=float(missed.mean()))
        return Run(
            cell,
            (*run.records[:-1], replace(end, missed=packed(missed.tolist()) if bits else None)),
        )

    parts = []
    for bits in (False, True):
        seen = seen_in("figure-4", partial(kept, bits=bits), stages=2)
        reason = verdict_on("AdamW and AdamWR close most", "figure-4", seen).reason
        assert isinstance(reason, tuple)
        assert isinstance(reason[1].reason, Difference)
        parts.append(reason[1].reason.found)
    of_seeds, both = parts
    assert of_seeds.value == pytest.approx(both.value)
    sampled = both.high - both.low, of_seeds.high - of_seeds.low
    assert sampled[0] > 2 * sampled[1]
    assert sampled[0] / 2 == pytest.approx(
        1.96 * 0.5 * math.sqrt(spared.mean() / examples), rel=0.15
    )


def test_a_gap_is_judged_also_if_a_fresh_seed_has_no_error() -> None:
    """It is a difference, which needs no ratios."""
    train = trained_as("figure-4", {}, noise=0.002)

    def faultless(cell: RunConfig) -> Run:
        run = train(cell)
        if cell.seed != 1000 or method(cell.algorithm, cell.schedule) != "adamw":
            return run
        return Run(cell, (*run.records[:-1], replace(run.last, test_error=0.0)))

    reason = verdict_on(
        "AdamW and AdamWR close most", "figure-4", seen_in("figure-4", faultless, stages=2)
    ).reason
    assert isinstance(reason, tuple)
    kinds = [type(part.reason) for part in reason]
    assert kinds[1:] == [Difference, Difference], "the first is on the gap itself"


def test_a_fresh_seed_that_diverged_counts_with_the_highest_error_of_any_run() -> None:
    """It ended with an error of guessing, which no run of the task that was trained has."""
    train = trained_as("figure-4", {}, noise=0.0)

    def diverged(cell: RunConfig) -> Run:
        run = train(cell)
        if cell.seed != 1000 or cell.algorithm != "adamw":
            return run
        return replace(run, records=(replace(run.last, test_error=0.9, diverged=True),))

    seen = seen_in("figure-4", diverged, stages=2)
    assert seen.second is not None
    weights = {"adamw": 1.0, "adam": -0.5, "sgdwr": -0.5}
    ends = {name: [run.last.test_error for run in seen.fresh(name).values()] for name in weights}
    worst = max(
        run.last.test_error or 0.0
        for run in (*seen.runs, *seen.second.trained)
        if not run.last.diverged
    )
    assert ends["adamw"][0] == 0.9 != pytest.approx(worst)
    ends["adamw"][0] = worst
    sums = sum(weight * np.array(ends[name]) for name, weight in weights.items())
    assert weighed(seen, weights).value == pytest.approx(float(np.mean(sums)))


@pytest.mark.parametrize(("lost", "outcome"), [(1, HELD), (6, NOT_DECIDED)])
@pytest.mark.parametrize("algorithm", ["sgdw", "adamw"])
def test_a_fresh_seed_that_diverged_counts_with_the_highest_training_loss(
    algorithm: str, lost: int, outcome: str
) -> None:
    """It hid that AdamW's loss was lower, as if there had been too few runs."""
    curves = {name: Curve(loss=straight(1.5, 0.5)) for name in ("adamw", "adamwr")}
    train = trained_as("figure-4", curves, noise=0.0005)

    def diverged(cell: RunConfig) -> Run:
        run = train(cell)
        if not (1000 <= cell.seed < 1000 + lost and cell.algorithm == algorithm):
            return run
        end = replace(run.records[1], train_loss=None, test_error=1.0, diverged=True)
        return replace(run, records=(run.records[0], end))

    seen = seen_in("figure-4", diverged, stages=2)
    verdict = verdict_on("The Adam variants lower training loss", "figure-4", seen)
    assert verdict.outcome == outcome, because(verdict)
    assert ("so few runs" in because(verdict)) == (lost == 6), because(verdict)


def test_what_is_infinite_counts_as_the_highest_of_both_methods() -> None:
    """Of AdamW's six seeds the first is lost; the highest other number is one of SGDW's."""
    seen = seen_in("figure-4", trained_as("figure-4", {}, noise=0.0), stages=2)

    def number(run: Run) -> float:
        place = run.config.seed - 1000
        if run.config.algorithm == "adamw":
            return math.inf if place == 0 else 1.0 + place
        return 10.0 + place

    ours, theirs = np.array([15.0, 2, 3, 4, 5, 6]), 10.0 + np.arange(6)
    assert less(seen, "adamw", "sgdw", number) == paired([*(ours - theirs)])


def test_a_size_is_stated_in_percent_and_points_beside_the_paper_s() -> None:
    curves = {"adamw": Curve(error=straight(0.6, 0.24))}
    for stages in (1, 2):
        verdict = judged("At α = 0.001", "figure-3", curves, stages=stages)
        told = because(verdict)
        assert "relative to the latter: −20." in told or "−19." in told
        assert re.search(r"\], −(5\.[89]|6\.[01])\d* points \[−6\.", told)
        assert "the paper's −15.0 %" in rule(verdict)


@pytest.mark.parametrize("figure", ["figure-3", "figure-4"])
def test_without_runs_nothing_is_said_of_curves(figure: str) -> None:
    found = STUDIES[figure].verdicts(Evidence(AT, {}))
    assert {verdict.outcome for verdict in found} == {NOT_DECIDED}


def test_one_decay_alone_cannot_be_said_to_serve_all_cycles() -> None:
    """On images, the paper's λ_norm alone is trained."""
    figure, at = STUDIES["figure-4"], scale("cifar10", "small")
    cells = [cell for cell in figure.cells(at) if cell.schedule.startswith("restarts")]
    runs = [Run(cell, (record(cell, epoch=cell.epochs, cycle_ended=True),)) for cell in cells]
    verdict = verdict_on("One λ_norm serves", "figure-4", figure.evidence(at, runs))
    assert because(verdict) == "AdamWR was trained with one λ_norm only."
