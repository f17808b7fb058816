"""The page on carrying λ says what the committed records say, and rules cost what they must."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import carrying
from tests.budgets import VARIED, landscape
from tests.choosing import updates
from tests.landscapes import QUADRATIC, exact, landscape_of
from weightdecay.decay import NORMALIZED, TIMESCALE, BudgetExponents
from weightdecay.records import Spec, read
from weightdecay.results import (
    Estimate,
    Landscape,
    TransferRegret,
    budget_exponents,
    budget_regret,
    landscapes,
    measure_transfer,
    pairs_over,
)
from weightdecay.results.budget_moves import budget_moves
from weightdecay.results.budget_transfer import POWERS
from weightdecay.results.proposed import (
    CHANGES,
    PROPOSALS,
    Outcome,
    Proposal,
    followed,
    over_budgets,
    over_rates,
    total,
)
from weightdecay.sweeps import read_study

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "carrying.md").read_text("utf-8")
committed = pytest.mark.skipif(
    not carrying.RESULTS.is_dir(), reason="a source distribution has no committed results"
)
SAME_DRAWS = f"numpy=={np.__version__}" in (ROOT / "constraints.txt").read_text("utf-8").split()
#: A fine grid, so that the line between two decays is the truth itself.
FINE = replace(QUADRATIC, s=0.0, rates=5, decays=49, decay_factor=2**0.25, level=0.01)
#: The squared doublings by which α, and the factors in `VARIED`, change: means over all pairs.
SQUARED = {"alpha": 4.0, "batch": 2.0, "data": 2.0, "epochs": 14 / 3}
BY_NAME = {rule.name.split(" (")[0]: rule for rule in PROPOSALS}
COMPLETE = [rule for rule in PROPOSALS if rule.powers.keys() == {*CHANGES}]


def group_of(law: Mapping[str, float]) -> carrying.Group:
    """Return landscapes over all budgets, whose best decay moves by these powers."""
    budgets = BudgetExponents(epochs=law["epochs"], data=law["data"], batch=law["batch"])
    scapes = [
        landscape(budgets, truth=FINE, **{factor: amount})
        for factor, amounts in VARIED.items()
        for amount in amounts
    ]
    unique = {tuple(one.labels.items()): one for one in scapes}
    tilted = replace(FINE, s=law["alpha"])
    transfer = measure_transfer(landscape_of(tilted, exact(tilted.errors())))
    return carrying.Group("adamw", "planted", transfer, tuple(unique.values()))


@pytest.mark.parametrize("true", COMPLETE, ids=lambda rule: rule.name)
def test_only_the_true_rule_is_free_and_every_other_costs_what_its_decays_cost(
    true: Proposal,
) -> None:
    found = carrying.outcomes(group_of(true.powers))
    for rule in PROPOSALS:
        own = followed(rule, found)
        assert own.keys() == rule.powers.keys()
        for change, one in own.items():
            off = true.powers[change] - rule.powers[change]
            cost = FINE.curvature * SQUARED[change] * off**2
            assert one.cost.value == pytest.approx(cost, abs=2e-3)
            assert (one.best, one.beyond) == (off == 0, False)
    summed = total(true, found)
    assert summed is not None
    assert summed.mean == pytest.approx(0, abs=2e-3)
    for rule in COMPLETE:
        other = total(rule, found)
        assert other is not None
        assert rule is true or other.mean > summed.mean + 2e-3
    assert total(BY_NAME["λ ∝ √α"], found) is None


def test_the_table_shows_costs_in_points_and_counts_where_rules_are_best() -> None:
    """If the paper is right, torch's habit costs 100·0.0075·(4 + ½ + ½ + 7/6) points in all."""
    rows = carrying.rule_rows([group_of(BY_NAME["λ_norm"].powers)])
    assert rows[1] == [
        *("**AdamW, planted**", "α × or ÷ 4", "N × 2 to 4", "N × 2 to 4", "N × 2 to 8", "", "")
    ]
    shown = {row[0]: row[1:] for row in rows[2:10]}
    paper, torchs = shown["λ_norm (Loshchilov & Hutter)"], shown["torch's `weight_decay` unchanged"]
    assert all(cell.startswith("**0.0") for cell in paper[:4])
    values = [float(cell.split(" ")[0]) for cell in torchs[:4]]
    assert values == pytest.approx(
        [100 * FINE.curvature * each for each in (4, 0.5, 0.5, 7 / 6)], abs=0.1
    )
    assert torchs[4:] == [f"{sum(values) / 4:.1f}", f"{max(values):.1f}"]
    assert shown["λ ∝ batch (Bergsma et al.)"][2:] == ["–"] * 4
    assert rows[10] == ["*best or tied*", "keep λ", *["keep λ√N"] * 3, "", ""]
    counted = {row[0]: row[1:6] for row in rows[12:]}
    assert counted["λ_norm (Loshchilov & Hutter)"] == [*["1 of 1"] * 4, "4 of 4"]
    assert counted["torch's `weight_decay` unchanged"] == [*["0 of 1"] * 4, "0 of 4"]
    assert counted["equilibrium (Kosson et al.)"] == ["1 of 1", "–", "–", "–", "1 of 1"]


def test_a_rule_that_leads_out_of_the_grid_costs_at_least_what_the_last_decay_does() -> None:
    """The best decay moves from −2 to 1, of a grid from −3.5 to 3.5; λ·N is kept at −5."""
    narrow = replace(FINE, decays=29)
    law = BudgetExponents(epochs=-1, data=0, batch=0)
    scapes = [landscape(law, truth=narrow, epochs=epochs) for epochs in (4, 32)]
    one = over_budgets(scapes, "epochs")[1.0]
    assert one.beyond
    assert one.value == pytest.approx(FINE.curvature * 4.5**2, abs=2e-3)
    assert carrying._cell(one).startswith("≥ 15.")
    out = TransferRegret(
        costs={0.0: Estimate(0.01, 0.005, 0.015), 1.0: Estimate(0.2, 0.1, 0.3)},
        tied=(0.0, 1.0),
        beyond=(1.0,),
    )
    found = over_rates(out)
    assert [found[s].best for s in (0.0, 1.0)] == [True, False], "it may cost more than is known"
    assert found[1.0].value == 0.1


def test_without_intervals_no_rule_is_best_and_none_is_counted() -> None:
    lost = Estimate(0.01, math.nan, math.nan)
    found = over_rates(TransferRegret(costs={0.0: lost}))
    assert found[0.0].best is None
    assert carrying._cell(found[0.0]) == "1.0"
    assert carrying._count(found.values()) == "–"
    assert carrying._cell(Outcome(Estimate(0.01, -0.01, 0.03), beyond=True)) == "unknown"


def test_rules_that_the_package_has_are_the_same_here() -> None:
    names = {"λ_norm": NORMALIZED, "timescale in epochs": TIMESCALE}
    for name, rule in names.items():
        powers = BY_NAME[name].powers
        assert {factor: getattr(rule, factor) for factor in VARIED} == {
            factor: powers[factor] for factor in VARIED
        }
        assert powers["alpha"] == 0


@committed
@pytest.mark.slow
@pytest.mark.skipif(not SAME_DRAWS, reason="another numpy draws other noise for the intervals")
def test_the_tables_are_those_of_the_records() -> None:
    """`make book` writes them again."""
    pytest.importorskip("pyarrow")
    assert carrying.written(TEXT) == TEXT


@committed
def test_no_two_committed_grids_differ_in_the_width_alone() -> None:
    """So the page does not judge the rule on width; if it turns red, it can be judged."""
    pytest.importorskip("pyarrow")
    assert "No two of the committed grids differ in the width alone" in " ".join(TEXT.split())
    widths: dict[str, set[object]] = {}
    for path in carrying.RESULTS.glob("*/*.parquet"):
        for one in landscapes(read(path)):
            if min(len(one.lrs), len(one.decays)) > 2:
                model = Spec.parse("model", str(one.labels["model"]))
                rest = {k: v for k, v in model.options.items() if k != "width"}
                kept = {**one.labels, "model": (model.name, *sorted(rest.items()))}
                key = str(sorted(kept.items(), key=str))
                widths.setdefault(key, set()).add(model.options.get("width"))
    assert len(widths) > 20
    assert all(len(own) == 1 for own in widths.values())


def test_every_group_of_rows_has_every_rule() -> None:
    [table] = re.findall(r"<!-- rules: .*?<!-- /rules -->", TEXT, re.DOTALL)
    groups = re.findall(r"^\| \*\*", table, re.MULTILINE)
    for rule in PROPOSALS:
        rows = re.findall(rf"^\| {re.escape(rule.name)} \|", table, re.MULTILINE)
        assert len(rows) == len(groups)


def longer(pair: tuple[Landscape, Landscape]) -> float:
    """Return by how many times the updates of the second are more."""
    return updates(pair[1]) / updates(pair[0])


def costs_at(lr: float, pair: tuple[Landscape, Landscape]) -> dict[float, float]:
    """Return what each power costs over a pair of budgets, at one learning rate."""
    one, other = (
        replace(scape, cells={at: cell for at, cell in scape.cells.items() if at[0] == lr})
        for scape in pair
    )
    return {power: budget_regret([(one, other)], power).cost.value for power in POWERS}


@committed
@pytest.mark.slow
def test_the_sentences_about_the_rules_say_what_the_tables_say() -> None:
    """Each sentence stands beside its rule; if new records change one, rewrite that sentence."""
    pytest.importorskip("pyarrow")
    groups = carrying.varied(carrying.committed())
    found = {(one.method, one.place.split()[0]): carrying.outcomes(one) for one in groups}
    best = {
        place: {change: {p for p, one in own[change].items() if one.best} for change in CHANGES}
        for place, own in found.items()
    }
    cifar10 = [("adamw", "cifar10"), ("sgdw", "cifar10")]
    mnist1d, text = ("adamw", "mnist1d"), ("adamw", "text")
    assert {*found} == {*cifar10, mnist1d, text}

    def lowest(place: tuple[str, str]) -> str:
        totals = {rule.name: total(rule, found[place]) for rule in COMPLETE}
        return min(totals, key=lambda name: one.mean if (one := totals[name]) else math.inf)

    def dearest(place: tuple[str, str]) -> tuple[str, float]:
        costs = {
            (at, p): found[place][at][p]
            for at in CHANGES
            for p in (-1.0, 0.0, 0.5, 1.0)
            if p in found[place][at] and any(rule.powers.get(at) == p for rule in PROPOSALS)
        }
        return max(costs, key=lambda at: costs[at].value or 0)

    def wrong(change: str, power: float) -> set[tuple[str, str]]:
        return {place for place in found if power not in best[place][change]}

    [whole] = [one for one in groups if (one.method, one.place.split()[0]) == mnist1d]
    exponents = budget_exponents(whole.scapes)["data"].rates
    powers = {lr: one.value for lr, one in sorted(exponents.items()) if one.value is not None}
    widest = max(pairs_over(whole.scapes, "data"), key=longer)
    rates = {lr: costs_at(lr, widest) for lr in powers}
    counts = {
        rule.name: sum(
            bool(one.best) for own in found.values() for one in followed(rule, own).values()
        )
        for rule in PROPOSALS
    }
    said = {
        "**Another batch size: make λ proportional to the batch**": all(
            best[place]["batch"] == {1.0} for place in (*cifar10, mnist1d)
        ),
        "keeping λ_norm or λ costs less than λ·N": best[text]["batch"] == {0.0, 0.5},
        "**More data: keep λ_norm, as the paper says.** That is best or tied on all three": all(
            0.5 in own["data"] for own in best.values()
        ),
        "Leaving λ alone costs several points on mnist1d and on text.": all(
            found[place]["data"][0.0].cost.low > 0.03 for place in (mnist1d, text)
        ),
        "On mnist1d, e grows with α (below)": [*powers.values()] == sorted(powers.values()),
        "λ_norm costs less than λ·N up to the best α, 2⁻⁸, and more above it": (
            [rates[2.0**k][0.5] < rates[2.0**k][1.0] for k in (-9, -8)] == [True, True]
            and [rates[2.0**k][0.5] < rates[2.0**k][1.0] for k in (-7, -6)] == [False, False]
        ),
        "**More epochs: keep λ_norm on CIFAR-10, as the paper says.**": all(
            best[place]["epochs"] == {0.5} for place in cifar10
        ),
        "leaving λ alone costs least of the three": all(
            best[place]["epochs"] == {0.0} for place in (mnist1d, text)
        ),
        "The paper's λ_norm is most often best or tied": [
            name for name in counts if counts[name] == max(counts.values())
        ]
        == ["λ_norm (Loshchilov & Hutter)"],
        "but wrong over the batch on CIFAR-10 and mnist1d, and over epochs and α on mnist1d and": (
            wrong("batch", 0.5) == {*cifar10, mnist1d}
            and wrong("epochs", 0.5) == wrong("alpha", 0.0) == {mnist1d, text}
        ),
        "is wrong over epochs on CIFAR-10, over the batch on text, and over data but for SGDW": (
            wrong("epochs", 0.0) == {*cifar10}
            and wrong("batch", 1.0) == {text}
            and wrong("data", 1.0) == {*found} - {("sgdw", "cifar10")}
        ),
        "λ·N is never best over epochs": not any(1.0 in own["epochs"] for own in best.values()),
        "λ_norm wins with AdamW on CIFAR-10 and on text**, the timescale in epochs on mnist1d": [
            lowest(place).split(" (")[0] for place in (*cifar10, mnist1d, text)
        ]
        == ["λ_norm", "timescale as a share of training", "timescale in epochs", "λ_norm"],
        "**The most expensive mistake on CIFAR-10 is to leave λ, or torch's": all(
            dearest(place) == ("batch", 0.0) for place in cifar10
        ),
        "On mnist1d it is to leave torch's when α": dearest(mnist1d) == ("alpha", -1.0),
        "and on text to leave either when the data changes": dearest(text) == ("data", 0.0),
        "and that is right on CIFAR-10 alone": [
            place for place in found if 0.0 in best[place]["alpha"]
        ]
        == cifar10,
        "λ ∝ √α is right on mnist1d and on text": all(
            best[place]["alpha"] == {-0.5} for place in (mnist1d, text)
        ),
    }
    words = " ".join(TEXT.split())
    assert not [sentence for sentence in said if sentence not in words]
    assert not [sentence for sentence, true in said.items() if not true]


@committed
def test_fresh_seeds_have_trained_exactly_what_each_rule_carries_over_budgets() -> None:
    pytest.importorskip("pyarrow")
    folder = carrying.RESULTS / "mnist1d-budgets"
    planned = read_study(folder / "carry.toml")
    runs = read(folder / "carried.parquet").runs
    assert {run.config for run in runs} == {*planned}
    assert {cell.seed for cell in planned} == {*range(3000, 3012)}
    [group] = [
        one for one in carrying.committed() if (one.method, one.place) == ("adamw", "mnist1d")
    ]
    needed = set()
    for factor in ("epochs", "data", "batch"):
        for move in budget_moves(pairs_over(group.scapes, factor)):
            longer = updates(move.used) / updates(move.tuned)
            for power in POWERS:
                # λ_norm is λ·√N, so that it is kept by a power of ½.
                kept = move.carried[0.5] * longer ** (0.5 - power)
                assert move.carried[power] == pytest.approx(kept, rel=2e-3)
            decays = (move.best, *move.carried.values())
            needed |= {move.cell(decay, seed) for decay in decays for seed in range(3000, 3012)}
    assert needed == {*planned}


@committed
def test_the_sentences_about_fresh_seeds_say_what_they_found() -> None:
    pytest.importorskip("pyarrow")
    [group] = [
        one for one in carrying.committed() if (one.method, one.place) == ("adamw", "mnist1d")
    ]
    fresh = carrying.carried(group)
    best = {factor: {*found.tied} for factor, found in fresh.items()}
    before = {factor: over_budgets(group.scapes, factor) for factor in fresh}

    def cost(factor: str, power: float, pair: tuple[float, float] | None = None) -> float:
        found = fresh[factor]
        return 100 * (found.costs if pair is None else found.pairs[pair])[power].value

    quartered, halves = (720.0, 2976.0), ((720.0, 1488.0), (1488.0, 2976.0))
    said = {
        "No rule that they call best is beaten by another": all(
            {p for p, one in before[factor].items() if one.best} <= best[factor] for factor in fresh
        ),
        "all costs agree within 0.6 points": all(
            abs(one.cost.value * 100 - cost(factor, p)) < 0.6
            for factor, own in before.items()
            for p, one in own.items()
            if not one.beyond
        ),
        "**Over epochs, leaving λ alone costs nothing**": fresh["epochs"].costs[0.0].high < 0.001
        and best["epochs"] == {0.0},
        "The paper's λ_norm costs 2.5 points.": round(cost("epochs", 0.5), 1) == 2.5,
        "**Over data, λ_norm is right**, and leaving λ alone costs 5.0 points": (
            best["data"] == {0.5} and round(cost("data", 0.0), 1) == 5.0
        ),
        "λ_norm and λ·N are tied**, where the seeds that chose favoured λ·N": (
            best["batch"] == {0.5, 1.0}
            and {p for p, one in before["batch"].items() if one.best} == {1.0}
        ),
        "If the batch is halved, λ_norm costs no more.": all(
            cost("batch", 0.5, pair) < cost("batch", 1.0, pair) + 0.05 for pair in halves
        ),
        "quartered, λ·N costs 0.7 points less": round(
            cost("batch", 0.5, quartered) - cost("batch", 1.0, quartered), 1
        )
        == 0.7,
    }
    words = " ".join(TEXT.split())
    assert not [sentence for sentence in said if sentence not in words]
    assert not [sentence for sentence, true in said.items() if not true]
