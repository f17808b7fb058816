"""The claims on budgets, judged on landscapes whose best decay moves as it was made to."""

import math
from dataclasses import replace
from functools import partial

import pytest

from tests.landscapes import ended
from tests.worlds import easier
from weightdecay.records import Run, RunConfig
from weightdecay.results import Estimate, PowerCosts
from weightdecay.results.budget_transfer import BudgetRegret
from weightdecay.results.estimate import UNKNOWN
from weightdecay.results.exponent import unknown
from weightdecay.studies import STUDIES, Evidence, scale
from weightdecay.studies.budget_numbers import BUDGETS, CARRIED, budget_table, carried_table
from weightdecay.studies.docs_writer import chapters
from weightdecay.studies.findings import find, further_tables
from weightdecay.studies.verdicts import HELD, NOT_HELD, Verdict

AT = scale("mnist1d", "small")


def run_of(config: RunConfig, *, epochs: float, data: float, batch: float) -> Run:
    """Return a run whose error rises with the distance from the best decay, which moves so."""
    assert config.data is not None
    updates = config.epochs * (config.data // config.batch)
    moved = -epochs * math.log2(config.epochs / 48) - data * math.log2(config.data / 2000)
    moved += batch * math.log2(config.batch / 64)
    raw = config.weight_decay
    if config.normalized_decay is not None:
        raw = config.normalized_decay / math.sqrt(updates)
    off = math.log2(raw) + 7.5 - moved if raw else -6.0
    error = 0.3 + 0.04 * min(off**2, 12.0) + 0.005 * (math.log2(config.lr) + 8.5) ** 2
    # Seeds that differ a little, so that there is noise.
    error += 1e-4 * math.sin(37 * config.seed + 11 * off)
    return ended(config, updates=updates, validation_error=error, test_error=error)


def verdicts(
    study: str, *, epochs: float, data: float, batch: float, factor: float = 1.0
) -> dict[str, Verdict]:
    seen = trained(study, epochs=epochs, data=data, batch=batch, factor=factor)
    return {one.claim: one for one in STUDIES[study].verdicts(seen)}


def trained(
    study: str, *, epochs: float, data: float, batch: float, factor: float = 1.0
) -> Evidence:
    own = replace(AT, second=None) if study == "supplement-3" else AT
    cells = [cell for cell in STUDIES[study].cells(own) if cell.data is not None]
    train = easier(partial(run_of, epochs=epochs, data=data, batch=batch), factor)
    return STUDIES[study].evidence(own, [train(cell) for cell in cells])


@pytest.mark.parametrize(
    ("power", "smaller", "alike", "worse"),
    [(0.5, HELD, HELD, HELD), (0.85, HELD, NOT_HELD, HELD), (0.0, None, NOT_HELD, NOT_HELD)],
)
def test_over_epochs_claims_are_judged_by_the_power_and_by_what_carrying_costs(
    power: float, smaller: str | None, alike: str, worse: str
) -> None:
    found = verdicts("supplement-3", epochs=power, data=0.5, batch=0.5)
    if smaller is not None:
        assert found["Longer budgets want a smaller λ"].outcome == smaller
    assert found["The best λ_norm is alike over budgets"].outcome == alike
    assert found["Over epochs, keeping λ is much worse than keeping λ_norm"].outcome == worse


def test_much_worse_does_not_depend_on_how_large_errors_are() -> None:
    words = "Over epochs, keeping λ is much worse than keeping λ_norm"
    for factor in (1, 1 / 64):
        found = verdicts("supplement-3", epochs=0.5, data=0.5, batch=0.5, factor=factor)
        assert found[words].outcome == HELD


def test_over_data_and_batch_each_is_judged_apart() -> None:
    found = verdicts("exponents", epochs=0.0, data=0.5, batch=1.0)
    assert found["The paper's square root: λ* ∝ data^−e, e = ½"].outcome == HELD
    assert found["The paper's square root: λ* ∝ batch^e, e = ½"].outcome == NOT_HELD
    assert found["Over data, keeping λ is much worse than keeping λ_norm"].outcome == HELD


def test_the_exponents_at_a_fixed_rate_and_along_the_ridge_stand_in_a_table_of_their_own() -> None:
    """In every run, the best learning rate is the same: there, the two are the same number."""
    powers = {"epochs": 0.25, "data": 0.5, "batch": 1.0}
    seen = trained("exponents", **powers)
    found, _ = find(STUDIES["exponents"], seen.scale, seen.runs)
    for one in found.budgets:
        for exponent in (one.exponent.fixed, one.exponent.ridge):
            assert exponent.value == pytest.approx(powers[one.factor], abs=0.02)
            assert exponent.low <= powers[one.factor] <= exponent.high
    (title, [head, *rows]), *_ = further_tables(found)
    assert (title, head[-2:]) == (BUDGETS, ["e at a fixed α", "e along the ridge"])
    assert [row[:3] for row in rows] == [
        ["AdamW", "mnist1d", law] for law in ("λ* ∝ epochs^−e", "λ* ∝ data^−e", "λ* ∝ batch^e")
    ]
    page = chapters([found], "")
    for row in rows:
        assert f"| {' | '.join(row)} |" in page
        assert all(" [" in cell for cell in row[-2:])


def test_what_carrying_a_decay_over_budgets_costs_stands_in_a_table_of_its_own() -> None:
    """A rule that leads too far costs at least so much, and is neither best nor tied."""
    seen = trained("exponents", epochs=0.5, data=0.5, batch=0.5)
    found, _ = find(STUDIES["exponents"], seen.scale, seen.runs)
    tables = dict(further_tables(found))
    head, *rows = tables[CARRIED]
    assert head == ["method", "task", "over", "keep λ", "keep λ√N", "keep λ·N", "best or tied"]
    assert [row[2] for row in rows] == ["epochs", "data", "batch"]
    assert {row[-1] for row in rows} == {"λ√N"}
    [row, *_] = found.budgets
    known = {power: BudgetRegret(Estimate(0.01, 0.008, 0.012)) for power in (0.0, 0.5)}
    beyond = BudgetRegret(UNKNOWN, beyond=1.5, least=Estimate(0.05, 0.04, 0.06))
    costs = PowerCosts({**known, 1.0: beyond}, tied=(0.0, 0.5))
    told = carried_table([replace(row, costs=costs)])[1]
    assert told[3:] == ["1.00 [0.80, 1.20]", "1.00 [0.80, 1.20]", "≥ 4.0", "λ, λ√N"]
    nowhere = BudgetRegret(UNKNOWN, why="Nothing was measured.")
    lost = PowerCosts(dict.fromkeys((0.0, 0.5, 1.0), nowhere))
    assert carried_table([replace(row, costs=lost)]) == []


def test_an_exponent_that_is_unknown_says_why() -> None:
    seen = trained("exponents", epochs=0.5, data=0.5, batch=0.5)
    found, _ = find(STUDIES["exponents"], seen.scale, seen.runs)
    [row, *_] = found.budgets
    why = "The basin is flat."
    lost = replace(row, exponent=replace(row.exponent, ridge=unknown(why)))
    assert budget_table([lost])[1][-1] == "e unknown: The basin is flat"
    assert budget_table([]) == []


def test_a_study_that_is_not_about_budgets_has_no_such_table() -> None:
    assert {name for name, study in STUDIES.items() if study.budgets} == {
        "exponents",
        "supplement-3",
    }
