"""Claims on landscapes: each is held, not held and not decided on runs that were made so."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.worlds import AT, Basin, easier, noisy, seen_in, verdict_on
from weightdecay.records import Run, RunConfig, Spec
from weightdecay.results import measure_transfer
from weightdecay.studies import STUDIES, Evidence
from weightdecay.studies.findings import find
from weightdecay.studies.formats import because, rule
from weightdecay.studies.reasons import Comparison, Difference, Missing
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Measures, Verdict

METHODS = ("sgd", "sgdw", "adam", "adamw")
SCHEDULES = ("constant", "drops", "cosine")
ROUND = Basin()
DIAGONAL = Basin(s=1.0)
STAGES = pytest.mark.parametrize("stages", [pytest.param(1, marks=pytest.mark.slow), 2])


def of_methods(
    basins: Mapping[str, Basin], *, noise: float = 0.001, stages: int = 1, factor: float = 1.0
) -> Evidence:
    """Return Figure 2's evidence; a method that is not named has a round basin.

    All errors are multiplied by `factor`.
    """

    def train(cell: RunConfig) -> Run:
        name = Spec.parse("algorithm", cell.algorithm).name
        return noisy(cell, basins.get(name, ROUND).error(cell), noise)

    return seen_in("figure-2", easier(train, factor), stages=stages)


def under_schedules(
    basins: Mapping[tuple[str, str], Basin], *, noise: float = 0.001, stages: int = 1
) -> Evidence:
    """Return Figure 1's evidence, by algorithm and schedule."""

    def train(cell: RunConfig) -> Run:
        place = cell.algorithm, Spec.parse("schedule", cell.schedule).name
        return noisy(cell, basins.get(place, ROUND).error(cell), noise)

    return seen_in("figure-1", train, stages=stages)


def on_methods(words: str, **of: Basin) -> Verdict:
    return verdict_on(words, "figure-2", of_methods(of))


NOISY = 0.15
#: Claims on methods: in which basins they are held, and in which not.
CASES: dict[str, tuple[dict[str, Basin], dict[str, Basin]]] = {
    "SGDW is more separable than SGD": ({"sgd": DIAGONAL}, {"sgdw": DIAGONAL}),
    "AdamW is more separable than Adam": ({"adam": DIAGONAL}, {"adamw": DIAGONAL}),
    "Adam's best is worse than SGD's": ({"sgd": Basin(low=0.15)}, {"adam": Basin(low=0.15)}),
    "L2 gains less in Adam than in SGD": (
        {"adam": Basin(without=0.01)},
        {"sgd": Basin(without=0.01)},
    ),
    "Decay gains as much in AdamW as in SGDW": ({}, {"adamw": Basin(low=0.15)}),
    "AdamW's basin is broader than Adam's": (
        {"adam": Basin(across=0.03)},
        {"adamw": Basin(across=0.03)},
    ),
    "A decay tuned at the lowest α": ({"sgd": DIAGONAL}, {"sgdw": DIAGONAL}),
    "At SGD's top left circle": ({"sgd": Basin(s=1.0, along=0.002, across=0.02)}, {}),
}


@pytest.mark.slow
@STAGES
@pytest.mark.parametrize("words", CASES)
def test_a_claim_on_methods_is_held_where_it_is_so_and_not_where_it_is_not(
    words: str, stages: int
) -> None:
    for basins, outcome in zip(CASES[words], (HELD, NOT_HELD), strict=True):
        seen = of_methods(basins, stages=stages)
        verdict = verdict_on(words, "figure-2", seen)
        assert verdict.outcome == outcome, because(verdict)


@STAGES
@pytest.mark.parametrize("words", CASES)
def test_a_claim_on_methods_is_not_decided_by_noise(words: str, stages: int) -> None:
    verdict = verdict_on(words, "figure-2", of_methods({}, noise=NOISY, stages=stages))
    assert verdict.outcome == NOT_DECIDED, because(verdict)
    assert "would have been seen" in because(verdict)
    assert "seeds would decide it" in because(verdict)


@pytest.mark.parametrize(
    "basins",
    [{"sgdw": DIAGONAL}, {"sgd": DIAGONAL, "adamw": Basin(low=0.21)}],
    ids=["dear to keep", "a little worse"],
)
def test_a_claim_on_methods_does_not_depend_on_how_large_errors_are(
    basins: dict[str, Basin],
) -> None:
    """A margin in points would call everything equal where all errors are small."""
    hard, easy = (STUDIES["figure-2"].verdicts(of_methods(basins, factor=k)) for k in (1, 1 / 64))
    assert [one.outcome for one in easy] == [one.outcome for one in hard]


def test_fresh_seeds_say_what_keeping_a_decay_costs_and_the_others_may_disagree() -> None:
    """The second stage is made to say that AdamW's λ is dear to keep; the grid says otherwise."""
    words, both = "AdamW is more separable than Adam", of_methods({"adam": DIAGONAL}, stages=2)
    assert verdict_on(words, "figure-2", both).outcome == HELD
    assert both.second is not None
    kept = both.second.regrets["adamw"]
    dear = {pair: {0.0: tuple(0.5 + one for one in own[0.0])} for pair, own in kept.by_seed.items()}
    regrets = {**both.second.regrets, "adamw": replace(kept, by_seed=dear)}
    verdict = verdict_on(
        words, "figure-2", replace(both, second=replace(both.second, regrets=regrets))
    )
    assert isinstance(verdict.reason, Measures)
    assert [part.outcome for part in verdict.reason.parts] == [NOT_HELD, HELD, HELD]
    assert verdict.outcome == NOT_DECIDED
    assert because(verdict).endswith("these disagree")


def test_a_finer_grid_is_no_broader_basin() -> None:
    """AdamW's decays are in half steps, and both basins are the same."""
    halves = [0, *(2.0 ** (-9 + step / 2) for step in range(9))]
    at = replace(AT, decays={**AT.decays, "adam": halves})
    seen = seen_in("figure-2", lambda cell: noisy(cell, ROUND.error(cell), 0.003), at=at)
    verdict = verdict_on("AdamW's basin is broader", "figure-2", seen)
    assert verdict.outcome == NOT_DECIDED, because(verdict)


def test_the_exponents_stand_beside_the_measures_of_separability() -> None:
    verdict = on_methods("AdamW is more separable than Adam", adam=DIAGONAL)
    assert "; s of AdamW = 0.0" in because(verdict)
    assert "; s of Adam = 1.0" in because(verdict)
    assert rule(verdict).startswith("The first measure decides, unless another says the opposite")


def test_a_gain_over_no_decay_is_compared_as_a_ratio_by_fresh_seeds() -> None:
    seen = of_methods({"adam": Basin(without=0.01)}, stages=2)
    said = because(verdict_on("L2 gains less in Adam than in SGD", "figure-2", seen))
    assert "less the same for Adam: −3" in said  # 0.2 / 0.3 over 0.2 / 0.21
    assert said.endswith("6 seeds")


@pytest.mark.slow
def test_gains_that_differ_by_less_than_three_percent_are_alike() -> None:
    words = "Decay gains as much in AdamW as in SGDW"
    for low, outcome in ((0.204, HELD), (0.212, NOT_HELD), (0.188, NOT_HELD)):
        seen = of_methods({"adamw": Basin(low=low)}, noise=0.0002, stages=2)
        assert verdict_on(words, "figure-2", seen).outcome == outcome


BETTER = {(name, "cosine"): Basin(low=0.1) for name in ("adam", "adamw")} | {
    (name, "drops"): Basin(low=0.15) for name in ("adam", "adamw")
}


@pytest.mark.slow
@STAGES
def test_cosine_must_be_the_best_schedule_for_both(stages: int) -> None:
    words = "Cosine annealing is the best schedule"
    assert verdict_on(words, "figure-1", under_schedules(BETTER, stages=stages)).outcome == HELD
    alone = BETTER | {("adam", "cosine"): Basin(low=0.16)}
    assert verdict_on(words, "figure-1", under_schedules(alone, stages=stages)).outcome == NOT_HELD
    noise = under_schedules({}, noise=NOISY, stages=stages)
    assert verdict_on(words, "figure-1", noise).outcome == NOT_DECIDED


GAINS = "Decoupled decay gains more"


def at_best(adam: Sequence[float], adamw: Sequence[float]) -> dict[tuple[str, str], Basin]:
    """Return basins with these best errors at a fixed rate, with step-drops and with cosine."""
    return {
        (method, schedule): Basin(low=low)
        for method, lows in (("adam", adam), ("adamw", adamw))
        for schedule, low in zip(SCHEDULES, lows, strict=True)
    }


GROWING = at_best((0.26, 0.23, 0.20), (0.255, 0.215, 0.17))


@pytest.mark.slow
@STAGES
def test_gains_must_grow_with_each_better_schedule(stages: int) -> None:
    cases = [
        (GROWING, HELD),
        (at_best((0.26, 0.23, 0.20), (0.255, 0.19, 0.185)), NOT_HELD),  # with cosine, less
        (at_best((0.23, 0.26, 0.20), (0.22, 0.255, 0.17)), HELD),  # step-drops are the worst
        (at_best((0.23, 0.26, 0.20), (0.225, 0.24, 0.17)), NOT_HELD),  # and gain most but for one
    ]
    for basins, outcome in cases:
        verdict = verdict_on(GAINS, "figure-1", under_schedules(basins, stages=stages))
        assert verdict.outcome == outcome, because(verdict)
    noise = under_schedules(GROWING, noise=NOISY, stages=stages)
    assert verdict_on(GAINS, "figure-1", noise).outcome == NOT_DECIDED


def test_a_schedule_is_better_only_if_it_is_for_both_methods() -> None:
    apart = under_schedules(at_best((0.26, 0.23, 0.20), (0.24, 0.17, 0.18)))
    verdict = verdict_on(GAINS, "figure-1", apart)
    assert verdict.outcome == NOT_DECIDED
    assert because(verdict) == "Adam and AdamW do not agree on which schedule is better."


def separable(fixed: float, scheduled: float, *, of: str = "adam") -> dict[tuple[str, str], Basin]:
    return {
        (of, schedule): Basin(s=fixed if schedule == "constant" else scheduled)
        for schedule in SCHEDULES
    }


@pytest.mark.slow
@STAGES
def test_separability_is_judged_under_each_schedule_and_then_between_them(stages: int) -> None:
    every, more = "AdamW is more separable than Adam under every", "AdamW gains more separability"
    cases = [
        (every, separable(0.5, 1.0), HELD),
        (more, separable(0.5, 1.0), HELD),
        (more, separable(1.0, 0.5), NOT_HELD),
        (every, separable(1.0, 1.0, of="adamw"), NOT_HELD),
    ]
    for words, basins, outcome in cases:
        verdict = verdict_on(words, "figure-1", under_schedules(basins, stages=stages))
        assert verdict.outcome == outcome, because(verdict)
    noise = under_schedules({}, noise=NOISY, stages=stages)
    for words in (every, more):
        assert verdict_on(words, "figure-1", noise).outcome == NOT_DECIDED


def test_a_cost_of_keeping_a_decay_that_is_unknown_says_whose_and_why() -> None:
    """Nothing can be carried where the best decays lie at the edges of the grid."""
    seen = under_schedules({("adam", "constant"): Basin(across=-0.002)})
    for words in ("AdamW is more separable than Adam under every", "AdamW gains more separability"):
        said = because(verdict_on(words, "figure-1", seen))
        assert "Adam: No two learning rates near the best" in said
        assert "so few runs" not in said


def test_a_kept_decay_that_leads_out_of_the_grid_is_not_taken_to_be_cheap() -> None:
    """AdamW was trained only beside its ridge, which is steeper than Adam's."""
    whole = of_methods({"adam": DIAGONAL, "adamw": Basin(s=2.0)})
    near = [
        run
        for run in whole.runs
        if run.config.algorithm != "adamw"
        or abs(math.log2(run.config.weight_decay or 1) + 7 + 2 * (math.log2(run.config.lr) + 7)) < 2
    ]
    seen = STUDIES["figure-2"].evidence(AT, near)
    assert 0.0 in measure_transfer(seen.landscape("adamw")).beyond
    verdict = verdict_on("AdamW is more separable than Adam", "figure-2", seen)
    assert isinstance(verdict.reason, Measures)
    kept = verdict.reason.parts[0]
    assert kept.outcome == NOT_DECIDED
    assert because(kept) == "AdamW: Keeping λ leads beyond the trained decays."


def test_sweeps_are_compared_over_the_changes_of_the_rate_that_both_have() -> None:
    """Keeping λ is as dear for both, but AdamW was not trained where it is dearest."""
    steep = replace(DIAGONAL, across=0.04)

    def train(cell: RunConfig) -> Run:
        basin = steep if cell.lr == 2**-5 else DIAGONAL
        return noisy(cell, basin.error(cell), 0.0005)

    whole = [train(cell) for cell in STUDIES["figure-2"].cells(AT)]
    some = [one for one in whole if one.config.algorithm != "adamw" or one.config.lr < 2**-5]
    for runs, moves in ((whole, ""), (some, ", over 3 of 4 changes of α")):
        seen = STUDIES["figure-2"].evidence(AT, runs)
        verdict = verdict_on("AdamW is more separable than Adam", "figure-2", seen)
        assert isinstance(verdict.reason, Measures)
        kept = verdict.reason.parts[0].reason
        assert isinstance(kept, Difference)
        assert kept.what.endswith(f"for AdamW minus that for Adam{moves}")
        assert abs(kept.found.value) < 0.01


@pytest.mark.parametrize("trained", [0, 2, 5])
def test_a_second_stage_decides_nothing_before_all_of_its_seeds_are_trained(trained: int) -> None:
    """Who looks after every seed finds what chance shows by then."""

    def train(cell: RunConfig) -> Run:
        better = Basin(low=0.15) if cell.algorithm == "adamw" else ROUND
        return noisy(cell, better.error(cell), 0.001)

    whole = seen_in("figure-2", train, stages=2)
    made = whole.registration
    assert made is not None
    there = made.judges[:trained]
    judges = [train(cell) for cell in made.cells() if cell.seed in there]
    some = STUDIES["figure-2"].judged(whole, made, judges)
    for words, seen, outcome in (
        ("AdamW's best is better than Adam's", whole, HELD),
        ("AdamW's best is better than Adam's", some, NOT_DECIDED),
        ("AdamW's best rivals SGD's", some, NOT_DECIDED),
    ):
        assert verdict_on(words, "figure-2", seen).outcome == outcome
    gains = verdict_on("Decay gains as much in AdamW", "figure-2", some)
    assert not isinstance(gains.reason, Comparison)


def test_a_second_stage_that_lacks_a_run_leaves_what_needs_it_open() -> None:
    """A run of those that carry AdamW's decay failed; those with other rules are all there."""

    def train(cell: RunConfig) -> Run:
        return noisy(cell, ROUND.error(cell), 0.001)

    whole = seen_in("figure-2", train, stages=2)
    made = whole.registration
    assert made is not None
    method = made.methods["adamw"]
    kept = next(one for one in method.carried() if one.s == 0)
    failed = method.at(kept.used_at, kept.decay, made.carriers[0])
    judges = [train(cell) for cell in made.cells() if cell != failed]
    some = STUDIES["figure-2"].judged(whole, made, judges)
    assert some.second is not None
    assert 0.0 not in (costs := some.second.regrets["adamw"].costs)
    assert costs
    verdict = verdict_on("AdamW is more separable than Adam", "figure-2", some)
    assert isinstance(verdict.reason, Measures)
    assert because(verdict.reason.parts[0]) == "AdamW: The seeds that carry its decay are missing."


def test_an_error_of_0_leaves_the_claims_that_need_ratios_open() -> None:
    def train(cell: RunConfig) -> Run:
        run = noisy(cell, ROUND.error(cell), 0.001)
        fresh = cell.seed >= 1000
        return Run(cell, (replace(run.last, test_error=0.0),)) if fresh else run

    seen = seen_in("figure-2", train, stages=2)
    for words in ("AdamW's best is better than Adam's", "L2 gains less in Adam than in SGD"):
        verdict = verdict_on(words, "figure-2", seen)
        assert verdict.outcome == NOT_DECIDED
        assert isinstance(verdict.reason, Missing)
    assert "Errors to compare must be above 0" in because(verdict)


@pytest.mark.parametrize("error", [0.9, None])
def test_a_method_that_always_diverges_leaves_the_figure_and_enters_no_second_stage(
    error: float | None,
) -> None:
    def train(cell: RunConfig) -> Run:
        run = noisy(cell, ROUND.error(cell), 0.001)
        if cell.algorithm != "sgd" or cell.l2 == 0:
            return run
        lost = replace(run.last, diverged=True, test_error=error, validation_error=error)
        return Run(cell, (lost,))

    study = STUDIES["figure-2"]
    found, seen = find(study, AT, [train(cell) for cell in study.cells(AT)])
    assert study.entrants(seen) == {}
    [verdict] = [one for one in found.verdicts if one.claim.startswith("SGD's basin")]
    assert verdict.outcome == NOT_DECIDED
    assert {row.panel for row in found.numbers} == {*METHODS}


@pytest.mark.parametrize("figure", [pytest.param("figure-2", marks=pytest.mark.slow), "figure-3"])
def test_titles_say_what_fresh_seeds_came_to_where_there_are_titles(figure: str) -> None:
    """A figure of curves has none for each method, and its small print does not speak of them."""
    study = STUDIES[figure]

    def train(cell: RunConfig) -> Run:
        return noisy(cell, Basin().error(cell), 0.002)

    made = seen_in(figure, train, stages=2)
    assert made.registration is not None
    judges = [train(cell) for cell in made.registration.cells()]
    found, _ = find(study, AT, made.runs, registration=made.registration, second=judges)
    assert ("In titles: the test error of 6 other seeds" in found.small_print) is not study.curves
