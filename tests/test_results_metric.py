"""A landscape of a task's own metric: numbers of any size, named, and none of them in percent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, measured, runs_of
from weightdecay.cli.summary import best_settings
from weightdecay.records import Run
from weightdecay.results import coupling, doubts, landscapes, outliers
from weightdecay.results.arrays import grid
from weightdecay.results.separability import interaction_share, regret, sensitivity
from weightdecay.site import doubts as said

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
    told = best_settings(runs(SCALE, "squared error"))
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
