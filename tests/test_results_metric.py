"""A landscape of a task's own metric: numbers of any size, named, and none of them in percent."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, ended, measured, runs_of
from weightdecay.cli.summary import best_settings
from weightdecay.records import Run, RunConfig
from weightdecay.results import coupling, doubts, landscapes, outliers
from weightdecay.results.arrays import grid
from weightdecay.results.separability import interaction_share, regret, sensitivity
from weightdecay.site import doubts as said
from weightdecay.studies import STUDIES, scale
from weightdecay.studies.findings import find
from weightdecay.studies.formats import because, rule
from weightdecay.studies.tables import COLUMNS, table_of
from weightdecay.table import table

#: What a metric's unit is, in the fractions that the truth has.
SCALE = 500.0
TRUTH = Truth()


def runs(scale: float = 1.0, metric: str | None = None) -> list[Run]:
    """Return a landscape in some unit, in which everything at the largest rate has diverged."""
    found = runs_of(TRUTH, measured(TRUTH.errors(), 3, np.random.default_rng(1)))
    return [_in_units(run, scale, metric) for run in found]


def _in_units(run: Run, scale: float, metric: str | None) -> Run:
    last = run.last
    assert last.validation_error is not None
    assert last.test_error is not None
    lost = run.config.lr == TRUTH.lrs[-1]
    values: dict[str, Any] = {
        "validation_error": None if lost else scale * last.validation_error,
        "test_error": None if lost else scale * last.test_error,
        "train_error": None,
        "validation_error_top5": None,
        "test_error_top5": None,
    }
    return Run(run.config, (replace(last, **values, metric=metric, diverged=lost),))


def test_a_metrics_unit_changes_no_conclusion() -> None:
    [in_fractions], [scape] = (landscapes(runs(*unit)) for unit in ((), (SCALE, "squared error")))
    assert (in_fractions.metric, scape.metric) == (None, "squared error")
    assert [(c.lr, c.decay) for c in scape.ranked] == [(c.lr, c.decay) for c in in_fractions.ranked]
    assert len(scape.tied) == len(in_fractions.tied)
    assert grid(scape).best == grid(in_fractions).best
    one, other = (coupling(each).exponent for each in (scape, in_fractions))
    assert one.value == pytest.approx(other.value)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    for found in (lambda s: regret(s).mean, sensitivity):
        assert found(scape).value == pytest.approx(SCALE * found(in_fractions).value)
    assert interaction_share(scape).value == pytest.approx(interaction_share(in_fractions).value)
    assert [(o.lr, o.decay, o.seed) for o in outliers(scape)] == [
        (o.lr, o.decay, o.seed) for o in outliers(in_fractions)
    ]


def test_a_setting_of_which_a_seed_diverged_is_never_the_best_whatever_the_unit() -> None:
    """The seeds that are left of it may be better than any other setting."""
    made = runs(SCALE, "squared error")
    lucky = {(run.config.lr, run.config.weight_decay) for run in made[:1]}
    for place, run in enumerate(made):
        if (run.config.lr, run.config.weight_decay) in lucky:
            gone = run.config.seed == 0
            error = None if gone else 1e-3
            last = replace(
                run.last, validation_error=error, test_error=error, train_loss=None, diverged=gone
            )
            made[place] = Run(run.config, (last,))
    [scape] = landscapes(made)
    assert {(scape.best.lr, scape.best.decay)}.isdisjoint(lucky)
    laid = grid(scape)
    rate, decay = laid.best
    assert {(float(laid.lrs[rate]), float(laid.decays[decay]))}.isdisjoint(lucky)
    assert np.isnan(scape.cells[next(iter(lucky))].standard_error)  # type: ignore[index]


def test_tables_and_pictures_say_the_metric_and_its_number() -> None:
    pytest.importorskip("matplotlib", reason="pictures need it")
    from matplotlib.text import Text  # noqa: PLC0415

    from weightdecay.figures import heatmaps  # noqa: PLC0415

    [scape] = landscapes(runs(SCALE, "squared error"))
    number = f"{scape.best.mean:.4g}"
    told = table(best_settings(runs(SCALE, "squared error")).rows)
    assert "test squared error" in told
    assert number in told
    figure = heatmaps([("AdamW", scape, coupling(scape))], columns=1)
    written = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    assert "test squared error" in written
    assert any(f"best {number}" in text for text in written)
    assert "%" not in "".join([told, *written])


def test_doubts_are_said_in_the_metrics_numbers() -> None:
    made = runs(SCALE, "squared error")
    wrong = made[len(made) // 2]
    assert wrong.last.test_error is not None
    for run in made:
        if (run.config.lr, run.config.weight_decay) == (wrong.config.lr, wrong.config.weight_decay):
            last = replace(run.last, test_error=3 * wrong.last.test_error)
            made[made.index(run)] = Run(run.config, (last,))
    told = said.lines(doubts(made))
    assert any("where its neighbours say" in line for line in told)
    assert "%" not in "".join(told)
    [head, *_] = said.rows(doubts(made))
    assert head[1] == "test squared error"


def bowl(cell: RunConfig) -> Run:
    """Return a run whose squared error, far above 1, is a bowl over learning rate and decay."""
    ways = (cell.l2, cell.weight_decay, cell.normalized_decay)
    decay = next(value for value in ways if value is not None)
    off = (math.log2(cell.lr) + 7) ** 2 + (math.log2(decay + 2**-16) + 8) ** 2
    error = 40 + 0.5 * off + 0.1 * cell.seed
    made = ended(cell, test_error=error, validation_error=error, cycle_ended=True)
    return Run(cell, (replace(made.last, metric="squared error"),))


@pytest.mark.parametrize("name", ["figure-2", "figure-3", "figure-4", "supplement-5"])
def test_a_study_of_a_tasks_own_metric_writes_no_percent(name: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures need it")
    from matplotlib.axes import Axes  # noqa: PLC0415

    study, at = STUDIES[name], scale("mnist1d", "small")
    found, seen = find(study, at, [bowl(cell) for cell in study.cells(at)])
    shares = [column for column in COLUMNS if column != "interaction"]  # a share stays in percent
    table = table_of(found.numbers, shares)
    told = [text for row in table for text in row]
    told += [text for one in found.verdicts for text in (because(one), rule(one))]
    told = [text for text in told if "relative to the latter" not in text]  # and so does a ratio
    told = [text.replace("(3 % of", "") for text in told]  # and the margin
    assert not [text for text in told if "point" in text or "%" in text]
    assert not table or "test squared error there" in table[0]
    assert "squared error" in found.small_print
    figure = study.draw(seen, found.small_print)
    axes = [one for one in figure.axes if isinstance(one, Axes)]
    labels = {one.get_ylabel() for one in axes} - {"training loss", "learning rate α", ""}
    assert labels == {"test squared error"}
    lines = [line for one in axes if one.get_ylabel() in labels for line in one.get_lines()]
    heights = [np.asarray(line.get_ydata(), dtype=np.float64).max(initial=0) for line in lines]
    assert all(height < 400 for height in heights)  # 100 times that, if taken for a fraction


def test_losses_below_0_have_the_same_noise_and_ties() -> None:
    truth = replace(TRUTH, rates=5, decays=5)
    errors = measured(truth.errors(), 3, np.random.default_rng(0), spread=0.02)
    [above] = landscapes(runs_of(truth, errors))
    lowered = {
        place: replace(
            cell,
            chosen=tuple(one - 5 for one in cell.chosen),
            tested=tuple(one - 5 for one in cell.tested),
        )
        for place, cell in above.cells.items()
    }
    below = replace(above, cells=lowered, metric="loss")
    assert grid(below).noise()[0] == pytest.approx(grid(above).noise()[0], rel=0.5)
    assert not grid(below).wild.any()
    assert len(below.tied) == pytest.approx(len(above.tied), abs=2)
    assert len(above.tied) > 4
