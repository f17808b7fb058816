"""Anybody's runs become landscapes: tables are read as they come, or refused with the cure."""

import math
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, exact, runs_of
from weightdecay.records import Run, or_infinite
from weightdecay.results import (
    Landscape,
    Point,
    Points,
    coupling,
    doubts,
    landscapes,
    read_points,
)
from weightdecay.results.arrays import grid
from weightdecay.results.stencils import in_steps, usual_steps
from weightdecay.site import advised

#: As `study.trials_dataframe().to_csv()` writes it, pandas' index in the first column.
OPTUNA = """,number,value,datetime_start,datetime_complete,duration,params_dropout,params_lr,\
params_weight_decay,user_attrs_epochs,system_attrs_grid_id,state
0,0,0.91,2026-03-10 11:54:47.313529,2026-03-10 12:16:39.660893,0 days 00:21:52.347364,0.1,0.01,\
0.5,10,0.0,COMPLETE
1,1,0.87,2026-03-10 12:16:39.660893,2026-03-10 12:38:39.660893,0 days 00:22:00,0.3,0.001,0.05,10,\
1.0,COMPLETE
2,2,,2026-03-10 12:38:39.660893,2026-03-10 12:39:39.660893,0 days 00:01:00,0.2,0.1,0.5,10,2.0,FAIL
3,3,0.55,2026-03-10 12:39:39.660893,2026-03-10 12:40:39.660893,0 days 00:01:00,0.2,0.2,0.5,10,\
3.0,PRUNED
"""
#: As the button "Export CSV" of W&B's table of runs writes it: every cell in quotes.
WANDB = (
    '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","optimizer.lr",'
    '"optimizer.weight_decay","seed","model","epoch","lr-AdamW","train/learning_rate",'
    '"train/loss","val/acc","test/acc"\n'
    '"wise-sun-3","finished","-","ada","","2026-10-01T10:00:00.000Z","812","","0.001","0.1","0",'
    '"resnet","90","0","0","0.31","0.72","0.70"\n'
    '"calm-sea-2","finished","-","ada","","2026-10-01T09:00:00.000Z","811","","0.01","0.1","0",'
    '"resnet","90","0","0","0.35","0.66","0.68"\n'
    '"odd-fog-1","crashed","-","ada","","2026-10-01T08:00:00.000Z","11","","0.1","0.1","0",'
    '"resnet","2","0.1","0.1","","",""\n'
    '"red-fire-4","finished","-","ada","","2026-10-01T11:00:00.000Z","812","","1","0.1","0",'
    '"resnet","90","0","0","NaN","NaN","NaN"\n'
)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "runs.csv"
        path.write_bytes(text.encode())
        return path

    return write


def kinds(points: Points) -> dict[str, int]:
    return {remark.kind: remark.count for remark in points.remarks}


HAND_MADE = """lr,decay,error,seed,epochs
0.01,0.001,0.30,0,5
0.01,0.001,0.34,1,5
0.02,0.001,0.20,0,5
0.02,0.002,0.50,0,5
0.01,0.001,0.60,0,10
"""


def test_a_plain_table_becomes_its_landscapes(written: Callable[[str], Path]) -> None:
    short, long = landscapes(read_points(written(HAND_MADE), convention="paper"))
    assert (short.labels, long.labels) == ({"epochs": 5}, {"epochs": 10})
    assert (short.lrs, short.decays) == ((0.01, 0.02), (0.001, 0.002))
    assert short.cells[0.01, 0.001].seeds == (0, 1)
    assert short.cells[0.01, 0.001].tested == (0.30, 0.34)
    assert (short.best.lr, short.best.decay, short.best.mean) == (0.02, 0.001, 0.2)
    assert (short.way, short.convention, short.of) == ("weight_decay", "paper", "error")
    assert (short.tested_on, short.chosen_on) == (None, None)
    assert [cell.mean for cell in long.cells.values()] == [0.6]


def test_the_order_of_rows_changes_nothing(written: Callable[[str], Path]) -> None:
    head, *rows = HAND_MADE.splitlines()
    ordered = landscapes(read_points(written(HAND_MADE), convention="paper"))
    random.Random(0).shuffle(rows)
    shuffled = landscapes(read_points(written("\n".join([head, *rows])), convention="paper"))
    assert sorted(shuffled, key=repr) == sorted(ordered, key=repr)


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\ufeff" + text.replace("\n", "\r\n") + "\r\n\r\n",
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", ";").replace(".", ","),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",", ", "),
    ],
    ids=["CRLF", "BOM", "Excel's", "semicolons", "decimal commas", "tabs", "spaces"],
)
def test_how_a_file_is_written_changes_nothing(
    written: Callable[[str], Path], changed: Callable[[str], str]
) -> None:
    plain = read_points(written(HAND_MADE), convention="paper")
    assert read_points(written(changed(HAND_MADE)), convention="paper") == plain


def test_the_convention_has_no_default_and_the_error_says_what_each_means(
    written: Callable[[str], Path],
) -> None:
    with pytest.raises(ValueError, match=r"got nothing\. There is no default") as error:
        read_points(written(HAND_MADE))
    assert all(f"{name!r}: " in str(error.value) for name in ("paper", "torch", "l2", "normalized"))
    assert "lr * decay" in str(error.value)
    with pytest.raises(ValueError, match=r"`convention` must say how .* got 'adamw'"):
        read_points(written(HAND_MADE), convention="adamw")


def test_torchs_decay_is_read_as_the_learning_rate_times_it(
    written: Callable[[str], Path],
) -> None:
    text = "lr,weight_decay,error\n0.001,0.1,0.2\n0.01,0.01,0.3\n0.003,0.1,0.4\n0.1,0,0.5\n"
    points = read_points(written(text), convention="torch")
    # 0.003 * 0.1 is 0.00030000000000000003 in binary: products are those of the decimals.
    assert [point.decay for point in points] == [0.0001, 0.0001, 0.0003, 0.0]
    assert {point.way for point in points} == {"weight_decay"}
    [landscape] = landscapes(points)
    assert landscape.decays == (0.0, 0.0001, 0.0003)


def test_products_that_only_rounding_sets_apart_are_one_decay() -> None:
    rates = np.logspace(-4, -1, 7)
    table = {
        "lr": [float(lr) for lr in rates for _ in rates],
        "wd": [float(wd) for _ in rates for wd in rates],
        "err": [0.5] * 49,
    }
    [landscape] = landscapes(read_points(table, convention="torch"))
    assert len(landscape.decays) == 13


@pytest.mark.parametrize("convention", ["paper", "torch", "l2"])
def test_settings_that_only_rounding_sets_apart_are_one(convention: str) -> None:
    rates, decays = (0.1, 0.3, 0.9), (0.001, 0.002, 0.004)
    table = {
        "lr": [lr * (1 + 1e-10 * seed) for lr in rates for _ in decays for seed in range(2)],
        "wd": [wd * (1 - 1e-10 * seed) for _ in rates for wd in decays for seed in range(2)],
        "seed": [seed for _ in rates for _ in decays for seed in range(2)],
        "loss": [0.5 + 0.1 * place for place in range(18)],
    }
    [landscape] = landscapes(read_points(table, convention=convention))
    assert [cell.seeds for cell in landscape.cells.values()] == [(0, 1)] * 9
    assert len(landscape.lrs) == 3


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-10])
def test_cells_that_only_rounding_sets_apart_have_the_steps_of_their_grid(off: float) -> None:
    cells = [(lr, decay) for lr in (0.1, 0.1 * (1 + off), 0.2, 0.4) for decay in (0.01, 0.02, 0.04)]
    assert usual_steps(cells) == pytest.approx((1.0, 1.0), abs=1e-6)
    assert all(math.isfinite(place) for pair in in_steps(cells) for place in pair)


def test_spellings_of_a_label_are_one_and_that_is_said() -> None:
    table = {
        "lr": [0.1, 0.2, 0.4],
        "wd": [0.1] * 3,
        "scheduler": ["cosine", "Cosine ", "constant"],
        "kind": ["a", "A", "a"],
        "error": [0.1, 0.2, 0.3],
    }
    points = read_points(table, convention="l2")
    assert [point.labels["schedule"] for point in points] == ["cosine", "cosine", "constant"]
    [text] = [remark.text for remark in points.remarks if remark.kind == "spelling"]
    assert text == "'Cosine ' in column 'scheduler' is read as 'cosine'."
    # A column that the caller named may mean what it says.
    named = read_points(table, convention="l2", labels=["kind"])
    assert [point.labels["kind"] for point in named] == ["a", "A", "a"]


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_loss_too_large_to_square_has_diverged(share: float) -> None:
    table = {
        "lr": [0.1 * 2**a for a in range(4) for _ in range(4)],
        "wd": [0.1 * 2**b for _ in range(4) for b in range(4)],
        "loss": [-1e200 if at % 2 else 1.7e308 for at in range(16)],
    }
    table["loss"] = [
        loss if at < 16 * share else 0.5 + 0.01 * at for at, loss in enumerate(table["loss"])
    ]
    points = read_points(table, convention="l2")
    lost = sum(point.diverged for point in points)
    assert lost == math.ceil(16 * share)
    [text] = [remark.text for remark in points.remarks if remark.kind == "diverged"]
    assert "infinite or above 1e+100" in text
    [one] = advised(landscapes(points), doubts([]))
    assert (one.advice is None) == (share == 1)
    with pytest.raises(
        ValueError, match=r"`abs\(tested\)` must be in .*1e\+100.*unless it diverged"
    ):
        Point(lr=0.1, decay=0.1, way="l2", of="loss", tested=1e200)


def of_optimizers(*names: str) -> dict[str, list[Any]]:
    count = len(names)
    return {
        "optimizer": list(names),
        "lr": [0.01] * count,
        "wd": [0.1] * count,
        "error": [0.5] * count,
    }


@pytest.mark.parametrize(
    "coupled",
    [
        *("Adam", "sgd", "torch.optim.SGD", "sgd_momentum", "RMSprop", "SGD (momentum 0.9)"),
        *("SGD with momentum", "SGD w/ momentum", "sgd-m", "Adam (amsgrad)"),
        "torch.optim.Adam(betas=(0.9, 0.95), decoupled_weight_decay=False)",
    ],
)
def test_torchs_decay_of_an_optimizer_with_l2_is_its_factor_and_that_is_said(coupled: str) -> None:
    points = read_points(of_optimizers(coupled, "AdamW"), convention="torch")
    assert [(point.way, point.decay) for point in points] == [("l2", 0.1), ("weight_decay", 0.001)]
    [remark] = [remark for remark in points.remarks if remark.kind == "optimizer"]
    assert remark.text.startswith(f"1 row of {coupled!r} is read as L2: ")
    assert len(landscapes(points)) == 2


@pytest.mark.parametrize(
    "name",
    [
        *("AdamW", "adamw_torch_fused", "Lion", "adam decoupled", "Adam-W", "AdamW (amsgrad)"),
        *("Muon + AdamW", "Adam(decoupled_weight_decay=True)"),
    ],
)
def test_torchs_decay_of_a_decoupled_optimizer_is_multiplied_by_the_learning_rate(
    name: str,
) -> None:
    points = read_points(of_optimizers(name), convention="torch")
    assert [(point.way, point.decay) for point in points] == [("weight_decay", 0.001)]
    assert "optimizer" not in kinds(points)


@pytest.mark.parametrize("name", ["Adam-mini", "FusedAdam", "SGD, then AdamW", "x"])
def test_an_optimizer_that_is_not_known_is_read_as_decoupled_and_named(name: str) -> None:
    points = read_points(of_optimizers(name, "AdamW", name), convention="torch")
    assert {(point.way, point.decay) for point in points} == {("weight_decay", 0.001)}
    [remark] = [remark for remark in points.remarks if remark.kind == "optimizer"]
    assert remark.count == 2
    assert remark.text.startswith(f"2 rows of {name!r} are read as decoupled, ")
    assert "optimizer" not in kinds(read_points(of_optimizers(name), convention="paper"))


@pytest.mark.parametrize(
    ("convention", "name"), [("paper", "Adam"), ("normalized", "SGD"), ("l2", "AdamW")]
)
def test_a_convention_that_torchs_optimizer_does_not_have_is_kept_and_remarked_on(
    convention: str, name: str
) -> None:
    points = read_points(of_optimizers(name, "other"), convention=convention)
    assert {point.decay for point in points} == {0.1}
    assert len({point.way for point in points}) == 1
    [remark] = [remark for remark in points.remarks if remark.kind == "optimizer"]
    assert f"1 row of {name!r} " in remark.text
    assert remark.text.endswith("pass convention='torch'.")


@pytest.mark.parametrize(("convention", "way"), [("l2", "l2"), ("normalized", "normalized_decay")])
def test_other_conventions_are_kept_as_they_are(
    written: Callable[[str], Path], convention: str, way: str
) -> None:
    [one, *_] = landscapes(read_points(written(HAND_MADE), convention=convention))
    assert (one.way, one.convention, one.decays) == (way, convention, (0.001, 0.002))


def test_a_decay_that_removes_more_than_a_weight_is_refused() -> None:
    table = {"lr": [0.1], "wd": [1.0], "error": [0.5]}
    with pytest.raises(ValueError, match=r"Row 1: `decay` must be below 1, got 1\.0.*torch's"):
        read_points(table, convention="paper")


@pytest.mark.parametrize(
    ("name", "values", "errors"),
    [
        ("error", [0.25, 0.5], [0.25, 0.5]),
        ("error", [25, 50], [0.25, 0.5]),
        ("test_err", ["25%", "50%"], [0.25, 0.5]),
        ("error (%)", [0.25, 50], [0.0025, 0.5]),
        ("accuracy", [0.75, 0.5], [0.25, 0.5]),
        ("test/acc", [75, 50], [0.25, 0.5]),
        ("eval_accuracy_pct", [0.75, 50], [0.9925, 0.5]),
        ("testAcc", [75, 0], [0.25, 1.0]),
    ],
)
def test_errors_and_accuracies_in_fractions_and_percent_are_the_same_points(
    name: str, values: list[float], errors: list[float]
) -> None:
    points = read_points({"lr": [0.1, 0.2], "wd": [0, 0], name: values}, convention="l2")
    assert [point.tested for point in points] == pytest.approx(errors, abs=1e-15)


def test_a_loss_stays_as_it_is_and_may_be_above_one() -> None:
    table = {"lr": [0.1, 0.2], "wd": [0.1, 0.1], "val_loss": [3.25, 120.0]}
    [landscape] = landscapes(read_points(table, convention="l2"))
    assert (landscape.of, landscape.best.mean, landscape.chosen_on) == ("loss", 3.25, "validation")
    assert [cell.mean for cell in landscape.ranked] == [3.25, 120.0]


def test_choices_are_made_on_validation_where_there_is_one() -> None:
    table = {"lr": [0.1, 0.2], "wd": [0, 0], "val_error": [0.1, 0.2], "test_error": [0.4, 0.3]}
    points = read_points(table, convention="l2")
    [ours], [papers] = landscapes(points), landscapes(points, choose_on="test")
    assert (ours.chosen_on, ours.best.lr, ours.best.mean) == ("validation", 0.1, 0.4)
    assert (papers.chosen_on, papers.best.lr, papers.best.mean) == ("test", 0.2, 0.3)


TWO = {"lr": [0.1, 0.2], "wd": [0.1, 0.2]}


@pytest.mark.parametrize(
    ("names", "options", "splits"),
    [
        (["error"], {}, (None, None)),
        (["test_error"], {}, ("test", "test")),
        (["val_loss"], {}, ("validation", "validation")),
        (["test_acc", "val_acc"], {}, ("test", "validation")),
        (["error", "val_error"], {}, (None, "validation")),
        (["final"], {"columns": {"error": "final"}, "metric": "error"}, (None, None)),
        (["test_error"], {"columns": {"validation_error": "test_error"}}, ("test", "test")),
        (["val_error"], {"columns": {"error": "val_error"}}, ("validation", "validation")),
    ],
)
def test_the_splits_are_those_of_the_columns_that_were_read(
    names: list[str], options: dict[str, Any], splits: tuple[str | None, str | None]
) -> None:
    table = TWO | {name: [0.1, 0.2] for name in names}
    [landscape] = landscapes(read_points(table, convention="l2", **options))
    assert (landscape.tested_on, landscape.chosen_on) == splits


MIXED = {
    "lr": [0.1, 0.2],
    "weight_decay": [0.01, 0.02],
    "val_acc": [0.9, 0.8],
    "test_error": [0.1, 0.2],
}


def test_a_validation_metric_of_another_kind_is_not_used_and_that_is_said() -> None:
    points = read_points(MIXED, convention="paper")
    assert {point.chosen_on for point in points} == {"test"}
    [said] = [remark.text for remark in points.remarks if remark.kind == "unused"]
    assert said == (
        "Column 'val_acc' (accuracy) is not used, and settings are chosen on 'test_error' (error). "
        "To choose on validation, give both the same kind of metric."
    )


def test_metrics_of_two_kinds_are_not_mixed() -> None:
    """An accuracy was read as an error, and the worst setting recommended."""
    columns = {"error": "test_error", "validation_error": "val_acc"}
    with pytest.raises(ValueError, match=r"same kind, got 'test_error' \(error\) and 'val_acc' \("):
        read_points(MIXED, convention="paper", columns=columns)


def test_choices_cannot_be_made_on_a_test_set_that_is_not_there() -> None:
    points = read_points(TWO | {"val_error": [0.1, 0.2]}, convention="l2")
    with pytest.raises(ValueError, match=r'must be "validation" for runs that only have a valid'):
        landscapes(points, choose_on="test")


def test_a_top_5_error_is_read_if_it_is_named_and_never_reported_as_another() -> None:
    table = TWO | {"test_error": [0.1, 0.2], "test_acc_top5": [0.9, 0.99]}
    with pytest.raises(ValueError, match=r'`of` must be "error" for runs made elsewhere'):
        landscapes(read_points(table, convention="l2"), of="error_top5")
    points = read_points(table, convention="l2", columns={"error": "test_acc_top5"})
    [landscape] = landscapes(points, of="error_top5")
    assert (landscape.of, landscape.tested_on) == ("error_top5", "test")
    assert landscape.best.mean == pytest.approx(0.01)


def test_the_columns_that_were_read_are_said() -> None:
    table = TWO | {"test/acc": [75, 50], "val/acc": [74, 51], "optimizer": ["x", "x"]}
    points = read_points(table, convention="l2")
    assert points.columns == {
        "lr": "lr",
        "decay": "wd",
        "error": "test/acc",
        "validation_error": "val/acc",
        "algorithm": "optimizer",
    }
    assert points.remarks[0].text == (
        "Columns used: lr=lr, decay=wd, error=test/acc (accuracy, in percent), "
        "validation_error=val/acc (accuracy, in percent), algorithm=optimizer; no seed."
    )


REFUSED: list[tuple[dict[str, list[Any]], dict[str, Any], str]] = [
    (TWO | {"value": [0.1, 0.2]}, {}, "Column 'value' must be known to be .* Pass metric='error'"),
    (TWO | {"values_0": [1, 2]}, {}, r"must have a column with an error.* columns=\{'error'"),
    (TWO | {"error": [0.5, 30]}, {}, r"got both 0\.5 and 30.* Pass unit='percent'"),
    (TWO | {"error": [0.1, "12%"]}, {}, r"in every cell or in none, got '12%' and 0\.1\."),
    (TWO | {"error": [0.5, 130]}, {}, "between 0 and 100, got 130.* pass metric='loss'"),
    (TWO | {"error": [0.5, -1]}, {}, "between 0 and 100, got -1"),
    (TWO | {"error": [0.5, 1.5]}, {"unit": "fraction"}, "between 0 and 1, got 1.5"),
    (TWO | {"loss": [0.5, 1.5]}, {"unit": "percent"}, "`unit` must be left out for a loss"),
    (TWO | {"loss": [1, 2], "val_loss": [3, 4]}, {}, "told from training's, got 'loss' beside"),
    (
        TWO | {"learning_rate": [0.1, 0.4], "error": [0.1, 0.2]},
        {},
        "One column must be the lr, got 'lr', 'learning_rate', which differ. Name the right one",
    ),
    ({"lr": [0.1], "error": [0.1]}, {}, r"a column with the decay.*columns=\{'decay': …\}"),
    (
        {"learnig_rate": [0.1], "weight_decy": [0.1], "error": [0.1]},
        {},
        r"and a column with the .* them: columns=\{'lr': 'learnig_rate', 'decay': 'weight_decy'\}",
    ),
    (
        TWO | {"val_error": [80, 90]},
        {"metric": "accuracy"},
        r"is an accuracy, got 'val_error', .* columns=\{'accuracy': 'val_error'\}",
    ),
    (TWO | {"train_loss": [1, 2]}, {"metric": "accuracy"}, "a column with an error, an accuracy"),
    (TWO | {"error": [0.1, 0.2]}, {"columns": {"rate": "lr"}}, "`columns` must use lr, decay,"),
    (TWO | {"error": [0.1, 0.2]}, {"columns": {"lr": "lrs"}}, "'lrs', got .* Did you mean 'lr'"),
    (TWO | {"error": [0.1, 0.2]}, {"labels": ["width"]}, "must have the column 'width'"),
    (TWO | {"error": [0.1, "bad"]}, {}, "Row 2 of the metric must be a number, got 'bad'"),
    (TWO | {"lr": [0.1, "1e"], "error": [1, 0]}, {}, "Row 2 of column 'lr' must be a number"),
    (TWO | {"error": [0.1, 0.2], "seed": [0, "a"]}, {}, "Row 2: `seed` must be a whole number"),
    (TWO | {"error": [None, None]}, {}, "must have a row with .* got none. .*2 rows left out"),
    (TWO | {"error": [0.1, 0.2]}, {"metric": "f1"}, "`metric` must be one of 'error'"),
]


@pytest.mark.parametrize(("table", "options", "told"), REFUSED)
def test_what_is_ambiguous_is_refused_with_the_cure(
    table: dict[str, list[Any]], options: dict[str, Any], told: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        read_points(table, convention="l2", **options)


def test_optunas_trials_are_read_as_they_come(written: Callable[[str], Path]) -> None:
    points = read_points(written(OPTUNA), convention="torch", metric="accuracy")
    assert [(point.lr, point.decay, round(point.tested, 12)) for point in points] == [
        (0.01, 0.005, 0.09),
        (0.001, 0.00005, 0.13),
    ]
    assert all(point.labels == {"epochs": 10} for point in points)
    texts = [remark.text for remark in points.remarks]
    assert "1 row left out: it has the state 'FAIL'." in texts
    assert "1 row left out: it has the state 'PRUNED'." in texts
    assert any(text.startswith("'params_dropout' varied too") for text in texts)
    apart = read_points(
        written(OPTUNA), convention="torch", metric="accuracy", labels=["params_dropout"]
    )
    assert len(landscapes(apart)) == 2


def test_an_objective_that_optuna_has_a_name_for_needs_no_word() -> None:
    table = {"params_lr": [0.1], "params_wd": [0.1], "value_test_accuracy": [0.9]}
    [point] = read_points(table, convention="l2")
    assert point.tested == pytest.approx(0.1)


def test_wandbs_table_of_runs_is_read_as_it_comes(written: Callable[[str], Path]) -> None:
    points = read_points(written(WANDB), convention="torch")
    assert [(point.lr, point.decay, point.seed, point.diverged) for point in points] == [
        (0.001, 0.0001, 0, False),
        (0.01, 0.001, 0, False),
        (1.0, 0.1, 0, True),
    ]
    assert [point.labels for point in points] == [{"model": "resnet"}] * 3
    assert [point.train_loss for point in points] == [0.31, 0.35, None]
    assert kinds(points) == {"columns": 0, "left out": 1, "diverged": 1}
    [landscape] = landscapes(points)
    assert landscape.best.lr == 0.001
    assert landscape.best.mean == pytest.approx(0.30)
    assert [cell.lr for cell in landscape.diverged] == [1.0]
    # A run that diverged without a number counts as the worst there is.
    assert landscape.diverged[0].mean == pytest.approx(0.32)


RUNS = [
    {
        "summary": {"val_acc": 0.8, "lr": 0.0, "_step": 100},
        "config": {"optim": {"lr": 0.1, "weight_decay": 1e-4}, "seed": 3},
        "name": "a",
    },
    {
        "summary": {"val_acc": math.nan, "lr": 0.0, "_step": 7},
        "config": {"optim": {"lr": 0.2, "weight_decay": 1e-4}, "seed": 3},
        "name": "b",
    },
]


def test_dictionaries_in_cells_are_read_as_columns(written: Callable[[str], Path]) -> None:
    """As W&B's guide makes a frame of `wandb.Api().runs`, and as that is saved as a CSV."""
    found = read_points(RUNS, convention="l2")
    assert [(point.lr, point.decay, point.seed) for point in found] == [
        (0.1, 1e-4, 3),
        (0.2, 1e-4, 3),
    ]
    assert [point.diverged for point in found] == [False, True]
    quoted = "".join(
        f'{at},"{row["summary"]}","{row["config"]}",{row["name"]}\n' for at, row in enumerate(RUNS)
    )
    again = read_points(written(",summary,config,name\n" + quoted), convention="l2")
    assert repr(again.points) == repr(found.points)


def test_what_is_logged_while_training_is_not_the_learning_rate() -> None:
    table = {"config.lr": [0.1], "summary.lr": [0.0], "train/lr": [0.0]}
    [point] = read_points(table | {"wd": [0.1], "test_error": [0.5]}, convention="l2")
    assert point.lr == 0.1


def test_other_names_are_given_by_the_mapping() -> None:
    table = {"eta": [0.1], "shrink": [0.2], "final": [12.0], "run": [4], "width": [64]}
    [point] = read_points(
        table,
        convention="l2",
        columns={"lr": "eta", "decay": "shrink", "error": "final", "seed": "run"},
        metric="loss",
        labels=["width"],
    )
    assert (point.lr, point.decay, point.tested, point.seed) == (0.1, 0.2, 12.0, 4)
    assert point.labels == {"width": 64}


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (("learning_rate", "weight_decay", "accuracy"), ("error", "test", 0.75)),
        (("base_lr", "wd", "val_loss"), ("loss", "validation", 0.25)),
        (("LR", "l2", "test_error"), ("error", "test", 0.25)),
        (("alpha", "lambda", "training_loss"), None),
    ],
)
def test_a_column_can_be_named_by_any_common_word_for_it(
    words: tuple[str, str, str], read: tuple[str, str, float] | None
) -> None:
    table = {"a": [0.1], "b": [0.2], "final": [0.25], "test_result": [0.25]}
    lr, decay, metric = words
    column = "test_result" if metric == "accuracy" else "final"
    columns = {lr: "a", decay: "b", metric: column}
    if read is None:
        [point] = read_points(
            table, convention="l2", columns=columns | {"error": "final"}, metric="error"
        )
        assert point.train_loss == 0.25
    else:
        [point] = read_points(table, convention="l2", columns=columns)
        assert (point.of, point.tested_on, point.tested) == read
    assert (point.lr, point.decay) == (0.1, 0.2)


def test_a_column_named_by_two_words_for_one_thing_is_refused() -> None:
    columns = {"lr": "lr", "learning_rate": "wd"}
    with pytest.raises(ValueError, match="one column for lr, got 'lr' and 'learning_rate'"):
        read_points(TWO | {"error": [0.1, 0.2]}, convention="l2", columns=columns)


def test_a_path_to_somebody_elses_table_is_refused_with_the_call_that_reads_it(
    written: Callable[[str], Path],
) -> None:
    path = written(HAND_MADE)
    with pytest.raises(ValueError, match=r"was not written by `weightdecay export`\.") as caught:
        landscapes(path)
    call = f"landscapes(read_points({str(path)!r}, convention='torch'))"
    assert call in str(caught.value)
    assert "Export it again" not in str(caught.value)
    names = {"landscapes": landscapes, "read_points": read_points}
    assert len(eval(call, names)) == 2


def test_empty_cells_nan_and_infinity_are_told_apart(written: Callable[[str], Path]) -> None:
    text = "lr,wd,loss\n1,1,2.5\n2,1,NaN\n3,1,inf\n4,1,\n5,1,-Infinity\n,1,3\n7,,3\n0,1,3\n8,-1,3\n"
    points = read_points(written(text), convention="l2")
    assert [(point.lr, point.diverged) for point in points] == [
        (1, False),
        (2, True),
        (3, True),
        (5, True),
    ]
    told = {remark.text: remark.count for remark in points.remarks if remark.kind == "left out"}
    assert told == {
        "1 row left out: it has no metric.": 1,
        "2 rows left out: each has no learning rate or no decay.": 2,
        "1 row left out: it has a learning rate that is 0, negative or infinite.": 1,
        "1 row left out: it has a decay that is negative or infinite.": 1,
    }
    assert kinds(points)["diverged"] == 3


def test_a_metric_named_against_its_columns_name_is_not_called_unused() -> None:
    table = TWO | {"val_error": [80, 90]}
    points = read_points(table, convention="l2", columns={"accuracy": "val_error"})
    assert [point.tested for point in points] == pytest.approx([0.2, 0.1])
    assert "unused" not in kinds(points)


@pytest.mark.parametrize(
    ("convention", "decays", "models", "told"),
    [
        ("paper", [0.1, 1e-4], "aa", True),
        ("paper", [1e-4, 0.1], "aa", False),
        ("paper", [1e-4, 0.1], "ab", True),
        ("torch", [0.1, 1e-4], "aa", False),
        ("l2", [0.1, 1e-4], "aa", False),
    ],
)
def test_a_best_decay_that_looks_like_torchs_is_remarked_on(
    convention: str, decays: list[float], models: str, told: bool
) -> None:
    table = {"lr": [1e-3, 2e-3], "weight_decay": decays, "error": [0.1, 0.2], "model": [*models]}
    remarks = read_points(table, convention=convention).remarks
    texts = [remark.text for remark in remarks if remark.kind == "convention"]
    assert len(texts) == told
    if told:
        assert "λ = 0.1 with lr 0.00" in texts[0]
        assert "remove 10 % of every weight" in texts[0]
        assert texts[0].endswith("pass convention='torch'.")


@pytest.mark.parametrize("column", ["schedule", "seed", "updates"])
def test_nan_is_an_empty_cell_also_in_labels_and_seeds(
    column: str, written: Callable[[str], Path]
) -> None:
    """No NaN equals another: as labels, they would make a landscape of every run."""
    rows = [f"0.1,{decay},0.2,nan" for decay in (0.01, 0.02, 0.04)]
    path = written("\n".join([f"lr,decay,error,{column}", *rows]))
    points = read_points(path, convention="paper")
    assert all(column not in point.labels and point.seed == 0 for point in points)
    [landscape] = landscapes(points)
    assert len(landscape.cells) == 3


def test_a_repeat_of_setting_and_seed_is_left_out_and_told() -> None:
    table = {
        "lr": [0.1] * 5,
        "wd": [0.1] * 5,
        "seed": [0, 0, 0, 1, 1],
        "error": [0.2, 0.2, 0.3, 0.4, 0.4],
    }
    points = read_points(table, convention="l2")
    assert [(point.seed, point.tested) for point in points] == [(0, 0.2), (1, 0.4)]
    [remark] = [remark for remark in points.remarks if remark.kind == "repeated"]
    assert remark.count == 3
    assert remark.text.endswith("; 1 of them came to another result.")


def test_without_seeds_repeats_of_a_setting_are_numbered_and_copies_left_out() -> None:
    table = {"lr": [0.1] * 3, "wd": [0.1] * 3, "error": [0.2, 0.3, 0.2], "id": [1, 2, 1]}
    points = read_points(table, convention="l2")
    assert [(point.seed, point.tested) for point in points] == [(0, 0.2), (1, 0.3)]
    assert (kinds(points)["repeated"], kinds(points)["numbered"]) == (1, 1)
    [left] = [one.text for one in points.remarks if one.kind == "repeated"]
    assert left.endswith("A `seed` column would tell runs from copies.")


def logged(*runs: tuple[str, int, list[Any]], rate: float = 0.1) -> dict[str, list[Any]]:
    """Return one row per epoch of runs, each with its name, seed and errors."""
    rows = [(n, s, at, error) for n, s, errors in runs for at, error in enumerate(errors, 1)]
    names, seeds, epochs, errors = (list(column) for column in zip(*rows, strict=True))
    same = {"lr": [rate] * len(rows), "wd": [0.01] * len(rows)}
    return same | {"run": names, "seed": seeds, "epoch": epochs, "error": errors}


PER_EPOCH = logged(("a", 0, [0.9, 0.5, 0.3]), ("b", 1, [0.8, 0.4, 0.2]))


@pytest.mark.parametrize("without", [(), ("run",), ("seed",)])
@pytest.mark.parametrize("column", ["epoch", "trainer/global_step", "summary._step"])
def test_of_a_run_with_one_row_per_epoch_the_last_row_counts(
    column: str, without: tuple[str, ...]
) -> None:
    table = {name: values for name, values in PER_EPOCH.items() if name not in without}
    table[column] = table.pop("epoch")
    points = read_points(table, convention="l2")
    assert [(point.seed, point.tested) for point in points] == [(0, 0.3), (1, 0.2)]
    [remark] = [remark for remark in points.remarks if remark.kind == "earlier"]
    assert remark.count == 4
    assert f"4 rows left out: by {column!r}, each is an earlier row of a run." in remark.text


@pytest.mark.parametrize("column", ["scheduler.step", "config.step", "params_iter"])
def test_a_step_that_is_part_of_the_configuration_is_not_how_far_a_row_is(column: str) -> None:
    table = {"lr": [0.1] * 3, "wd": [0.1] * 3, "error": [0.3, 0.2, 0.1], column: [10, 20, 30]}
    points = read_points(table, convention="l2")
    assert [point.tested for point in points] == [0.3, 0.2, 0.1]


def test_the_name_of_an_optimizer_is_its_label_and_not_a_runs_name() -> None:
    table = of_optimizers("SGD", "AdamW")
    table["config.optimizer.name"] = table.pop("optimizer")
    points = read_points(table, convention="torch")
    assert [(point.way, point.labels) for point in points] == [
        ("l2", {"algorithm": "SGD"}),
        ("weight_decay", {"algorithm": "AdamW"}),
    ]
    uneven = {name: PER_EPOCH[name][:-1] for name in ("lr", "wd", "epoch", "error")}
    with pytest.raises(ValueError, match="must be told apart"):
        read_points(uneven | {"optimizer.name": ["SGD"] * 5}, convention="l2")


def test_the_order_in_which_epochs_were_logged_changes_nothing() -> None:
    order = [3, 0, 5, 2, 4, 1]
    table = {name: [values[at] for at in order] for name, values in PER_EPOCH.items()}
    points = read_points(table, convention="l2")
    assert {(point.seed, point.tested) for point in points} == {(0, 0.3), (1, 0.2)}


def test_a_last_epoch_that_was_not_evaluated_is_no_result_and_one_that_diverged_is() -> None:
    table = logged(("a", 0, [0.9, 0.5, 0.3]), ("b", 1, [0.8, math.nan]))
    table["error"][2] = None
    first, second = read_points(table, convention="l2")
    assert (first.tested, first.diverged, second.diverged) == (0.5, False, True)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_run_that_goes_on_without_a_metric_where_others_have_one_has_diverged(
    missing: Any,
) -> None:
    table = logged(
        ("a", 0, [0.9, 0.5, 0.3, 0.2]),
        ("b", 1, [0.4, 0.1, missing, missing]),
        ("c", 2, [0.9, 0.6]),
        ("d", 3, [missing, missing]),
    )
    points = read_points(table, convention="l2")
    found = [(point.seed, point.diverged) for point in points]
    assert found == [(0, False), (1, True), (2, False), (3, True)]
    assert [point.tested for point in points if not point.diverged] == [0.2, 0.6]
    [text] = [remark.text for remark in points.remarks if remark.kind == "diverged"]
    assert text.startswith("2 rows diverged: ")
    assert "goes on without a metric where other runs have one" in text


@pytest.mark.parametrize("missing", [None, math.nan])
def test_rows_between_evaluations_are_no_results_and_no_divergence(missing: Any) -> None:
    # The first two are evaluated every third step, the others every second.
    table = logged(
        ("a", 0, [0.9, missing, missing, 0.5, missing, missing, 0.3, missing, missing]),
        ("b", 1, [0.9, missing, missing, 0.4, missing]),
        ("c", 2, [0.9, missing, 0.7, missing, 0.5, missing, 0.6, missing, 0.6]),
        ("d", 3, [0.9, missing, 0.7, missing, missing, missing]),
    )
    points = read_points(table, convention="l2")
    assert [(point.seed, point.diverged) for point in points] == [
        (0, False),
        (1, False),
        (2, False),
        (3, True),
    ]
    assert [point.tested for point in points][:3] == [0.3, 0.4, 0.6]
    assert kinds(points)["left out"] == 13


def test_a_run_with_a_validation_metric_but_no_test_has_not_diverged() -> None:
    table = logged(("a", 0, [None, None, 0.3]), ("b", 1, [None, None, None]))
    table["test_error"] = table.pop("error")
    table["val_error"] = [0.5] * 6
    assert [(p.seed, p.diverged) for p in read_points(table, convention="l2")] == [(0, False)]


def test_a_column_of_words_says_nothing_of_how_far_a_row_is() -> None:
    table = PER_EPOCH | {"step": ["early", "mid", "late"] * 2}
    [text] = [r.text for r in read_points(table, convention="l2").remarks if r.count]
    assert text.startswith("4 rows left out: by 'epoch', each is an earlier row")
    del table["epoch"]
    assert "earlier" not in kinds(read_points(table, convention="l2"))


def test_runs_that_end_at_different_epochs_are_remarked_on() -> None:
    table = logged(("a", 0, [0.9, 0.5, 0.3]), ("b", 1, [0.8]))
    [text] = [r.text for r in read_points(table, convention="l2").remarks if r.kind == "earlier"]
    assert text.endswith("The last row of each run counts; they end at 'epoch' 1 to 3.")
    [text] = [r.text for r in read_points(PER_EPOCH, convention="l2").remarks if r.count]
    assert text.endswith("The last row of each run counts.")


def test_runs_with_one_row_each_that_stopped_at_different_epochs_all_count() -> None:
    table = logged(("a", 0, [0.5]), ("b", 0, [0.4])) | {"epoch": [10, 7]}
    del table["seed"]
    assert [point.tested for point in read_points(table, convention="l2")] == [0.5, 0.4]


@pytest.mark.parametrize("further", [{}, {"name": ["baseline"] * 12}])
@pytest.mark.parametrize("epochs", [(31, 28, 40), (5, 28, 40)])
def test_repeats_without_seeds_that_stopped_at_different_epochs_all_count(
    epochs: tuple[int, ...], further: dict[str, Any]
) -> None:
    table = {
        "lr": [lr for lr in (0.1, 0.2, 0.3, 0.4) for _ in epochs],
        "wd": [0.01] * 12,
        "epoch": [*epochs, 22, 35, 31, 17, 44, 40, 33, 29, 30],
        "error": [0.01 * at for at in range(12)],
    }
    points = read_points(table | further, convention="l2")
    assert len(points) == 12
    [text] = [remark.text for remark in points.remarks if remark.kind == "numbered"]
    assert "'epoch', which is read as where each run stopped" in text
    as_log = read_points(table | further, convention="l2", columns={"epoch": "epoch", "run": "wd"})
    assert len(as_log) == 4


def test_a_setting_that_was_run_again_is_no_log_among_settings_with_one_row() -> None:
    table = {"lr": [0.1, 0.1, 0.2, 0.3], "wd": [0.1] * 4, "epoch": [10, 25, 25, 22]}
    assert len(read_points(table | {"error": [0.4, 0.3, 0.2, 0.1]}, convention="l2")) == 4


@pytest.mark.parametrize("epochs", [(0, 1, 2), (1, 2, 4), (10, 20, 25), (8, 9, 10), (50, 100)])
def test_without_seeds_and_names_a_log_is_known_by_its_epochs(epochs: tuple[int, ...]) -> None:
    table = {
        "lr": [lr for lr in (0.1, 0.2, 0.3) for _ in epochs],
        "wd": [0.01] * 3 * len(epochs),
        "step": [*epochs] * 3,
        "error": [1 / (1 + epoch) for epoch in epochs] * 3,
        "name": ["baseline"] * 3 * len(epochs),
    }
    points = read_points(table, convention="l2")
    assert [point.tested for point in points] == [1 / (1 + epochs[-1])] * 3


def test_runs_that_end_after_the_first_epoch_do_not_hide_a_log() -> None:
    table = {"lr": [0.1, 0.1, 0.1, 0.2, 0.3], "wd": [0.1] * 5, "epoch": [1, 2, 4, 1, 1]}
    points = read_points(table | {"error": [0.5, 0.4, 0.3, 0.6, 0.7]}, convention="l2")
    assert [point.tested for point in points] == [0.3, 0.6, 0.7]


def test_unnamed_runs_of_one_setting_count_if_their_rows_can_be_told_apart() -> None:
    table = {name: PER_EPOCH[name] for name in ("lr", "wd", "epoch", "error")}
    assert [point.tested for point in read_points(table, convention="l2")] == [0.3, 0.2]
    uneven = {name: values[:-1] for name, values in table.items()}
    with pytest.raises(ValueError, match=r"must be told apart, got some .*columns=\{'run': …\}"):
        read_points(uneven, convention="l2")


def test_a_learning_rate_that_a_schedule_changed_is_refused() -> None:
    table = PER_EPOCH | {"lr": [0.1, 0.05, 0.0125] * 2}
    with pytest.raises(
        ValueError, match=r"one learning rate, got 0\.0125 to 0\.1 in the rows of a"
    ):
        read_points(table, convention="l2")
    points = read_points(table | {"base": [0.1] * 6}, convention="l2", columns={"lr": "base"})
    assert [point.tested for point in points] == [0.3, 0.2]


def test_a_scheduled_learning_rate_is_refused_without_names_of_runs_too() -> None:
    rows = [(lr, wd, at) for lr in (0.1, 0.2, 0.4) for wd in (1e-4, 2e-4) for at in range(5)]
    table = {
        "lr": [lr * (1 + math.cos(math.pi * at / 5)) / 2 for lr, _, at in rows],
        "wd": [wd for _, wd, _ in rows],
        "epoch": [at for _, _, at in rows],
        "val_loss": [2 - at / 10 + lr for lr, _, at in rows],
    }
    for further in ({}, {"seed": [0] * 30}, {"name": ["baseline"] * 30}):
        with pytest.raises(ValueError, match=r"nearly every rate occurs at one 'epoch' only\."):
            read_points(table | further, convention="l2")
    started = {"base": [lr for lr, _, _ in rows]}
    points = read_points(table | started, convention="l2", columns={"lr": "base"})
    assert [point.tested for point in points] == pytest.approx([1.7, 1.7, 1.8, 1.8, 2.0, 2.0])


@pytest.mark.parametrize(
    ("decays", "epochs"),
    [
        ([0.1] * 6, [31, 28, 40, 35, 22, 30]),
        ([0.1] * 6, [6, 7, 8, 9, 10, 6]),
        ([0.1] * 6, [90] * 6),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_runs_that_each_have_a_rate_and_an_end_of_their_own_are_read(
    decays: list[float], epochs: list[int]
) -> None:
    table = {"lr": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "wd": decays, "epoch": epochs}
    assert len(read_points(table | {"error": [0.1] * 6}, convention="l2")) == 6


def test_runs_with_names_may_have_rates_that_occur_at_one_epoch_each() -> None:
    table = {"lr": [0.1, 0.2, 0.4], "wd": [0.1] * 3, "epoch": [1, 2, 3], "error": [0.1] * 3}
    with pytest.raises(ValueError, match=r"add a column with a name per run: columns=\{'run': …\}"):
        read_points(table, convention="l2")
    assert len(read_points(table | {"run": ["a", "b", "c"]}, convention="l2")) == 3


def test_a_search_whose_runs_share_a_name_and_stopped_at_different_steps_is_read() -> None:
    table = {
        "lr": [0.1, 0.2, 0.1, 0.3],
        "wd": [0.1, 0.3, 0.2, 0.4],
        "name": ["old", "old", "new", "new"],
        "step": [10, 12, 17, 9],
        "error": [0.5, 0.4, 0.3, 0.2],
    }
    assert len(read_points(table, convention="l2")) == 4


def test_epochs_can_be_told_by_a_column_of_any_name_and_set_apart_by_a_label() -> None:
    table = PER_EPOCH | {"epochs": PER_EPOCH["epoch"]}
    del table["epoch"]
    assert len(landscapes(read_points(table, convention="l2"))) == 3
    points = read_points(table, convention="l2", columns={"epoch": "epochs"})
    assert [point.tested for point in points] == [0.3, 0.2]
    apart = read_points(PER_EPOCH, convention="l2", labels=["epoch"])
    assert len(landscapes(apart)) == 3


def test_thousands_of_rows_are_read(written: Callable[[str], Path]) -> None:
    rows = [f"{lr},{wd},{seed},0.{lr}" for lr in range(1, 41) for wd in range(50) for seed in "01"]
    text = "lr,wd,seed,error\n" + "\n".join(rows)
    [landscape] = landscapes(read_points(written(text), convention="l2"))
    assert (len(landscape.lrs), len(landscape.decays), len(landscape.cells)) == (40, 50, 2000)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must have a row of names and rows of values"),
        ("lr,wd,error\n", "must have a row of names and rows of values"),
        ("lr,lr,error\n1,2,3\n", "a name of its own, got 'lr' twice"),
        ("lr,wd,error\n0,1,0,1,0,2\n", "Line 2 of .* must have 3 cells.*got 6.*decimal comma"),
    ],
)
def test_a_file_that_is_no_table_is_refused(
    written: Callable[[str], Path], text: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        read_points(written(text), convention="l2")


@pytest.mark.parametrize(
    "text",
    [
        "lr\twd\terror\n0,1\t0,1\t0,2\n",  # which may be thousands: 1,234
        "lr;wd;error\n0,1;0,1;0.2\n",
        "lr;wd;error\n0.1;0.1;0,2\n",
        'lr,wd,error\n"0,1","0,1","0,2"\n',
    ],
)
def test_commas_that_may_mean_something_else_are_refused(
    written: Callable[[str], Path], text: str
) -> None:
    with pytest.raises(
        ValueError, match=r"must be a number, got '0,.'\. Correct it, with a decimal point"
    ):
        read_points(written(text), convention="l2")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes("lr,wd,größe\n".encode("latin-1"))
    with pytest.raises(ValueError, match="must be a CSV file in UTF-8"):
        read_points(path, convention="l2")


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "runs.parquet"
    path.write_text("hello")
    with pytest.raises(ValueError, match=r"runs.parquet must be a Parquet file: .* Write it agai"):
        read_points(path, convention="torch")


def test_parquet_is_read_as_a_csv_is(tmp_path: Path, written: Callable[[str], Path]) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet is an extra")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet is an extra")
    table = pyarrow.table(
        {
            "lr": [0.01, 0.01, 0.02, 0.02, 0.01],
            "decay": [0.001, 0.001, 0.001, 0.002, 0.001],
            "error": [0.30, 0.34, 0.20, 0.50, 0.60],
            "seed": [0, 1, 0, 0, 0],
            "epochs": [5, 5, 5, 5, 10],
        }
    )
    parquet.write_table(table, tmp_path / "runs.parquet")
    plain = read_points(written(HAND_MADE), convention="paper")
    assert read_points(tmp_path / "runs.parquet", convention="paper") == plain
    assert read_points(table, convention="paper") == plain


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_goes_in_and_comes_out(library: str) -> None:
    module = pytest.importorskip(library, reason="neither library is needed")
    values = {"lr": [0.1, 0.2], "wd": [0.01, 0.01], "error": [0.5, None], "seed": [1, 1]}
    points = read_points(module.DataFrame(values), convention="l2")
    assert (len(points), kinds(points)) == (1, {"columns": 0, "left out": 1})
    [landscape] = landscapes(points)
    frame = landscape.to_frame(library)
    assert isinstance(frame, module.DataFrame)
    assert {name: list(frame[name]) for name in list(frame.columns)[:4]} == {
        "alpha": [0.1],
        "l2": [0.01],
        "seed": [1],
        "chosen_error": [0.5],
    }


def test_without_a_library_of_frames_the_cure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    [landscape] = landscapes(read_points(TWO | {"error": [0, 1]}, convention="l2"))
    with pytest.raises(ImportError, match=r"needs pandas or polars, .* pip install pandas"):
        landscape.to_frame()
    fake = types.ModuleType("polars")
    monkeypatch.setattr(fake, "DataFrame", dict, raising=False)
    monkeypatch.setitem(sys.modules, "polars", fake)
    assert landscape.to_frame() == landscape.to_columns()
    with pytest.raises(ValueError, match="`library` must be one of 'pandas', 'polars'"):
        landscape.to_frame("dask")


def runs(way: str = "weight_decay") -> list[Run]:
    truth = Truth(rates=3, decays=4)
    return runs_of(truth, exact(truth.errors(), 2), way=way)


def of_points(runs: list[Run], way: str) -> list[Point]:
    return [
        Point(
            lr=run.config.lr,
            decay=getattr(run.config, way),
            way=way,
            seed=run.config.seed,
            tested=or_infinite(run.last.test_error),
            chosen=run.last.validation_error,
            chosen_on="validation",
            train_loss=run.last.train_loss,
            labels={"algorithm": "theirs"},
        )
        for run in runs
    ]


@pytest.mark.parametrize("way", ["weight_decay", "normalized_decay", "l2"])
def test_points_have_the_landscape_of_the_runs_they_stand_for(way: str) -> None:
    [ours], [theirs] = landscapes(runs(way)), landscapes(of_points(runs(way), way))
    assert (theirs.lrs, theirs.decays, theirs.cells) == (ours.lrs, ours.decays, ours.cells)
    assert (theirs.way, theirs.chosen_on, theirs.tied) == (ours.way, ours.chosen_on, ours.tied)
    assert coupling(theirs) == coupling(ours)
    both = landscapes([*of_points(runs(way), way), *runs(way)])
    assert both == [theirs, ours]


def test_labels_are_what_all_runs_of_a_landscape_have_in_common() -> None:
    [landscape] = landscapes(runs())
    assert landscape.labels["algorithm"] == "adamw"
    assert landscape.labels["epochs"] == 10
    assert not {"lr", "seed", "weight_decay", "l2"} & set(landscape.labels)


def test_foreign_points_have_no_configuration_and_the_error_says_what_they_have() -> None:
    [landscape] = landscapes(of_points(runs(), "weight_decay"))
    with pytest.raises(ValueError, match=r"of points from elsewhere\. .* `labels`"):
        _ = landscape.config


def test_a_label_updates_is_the_number_of_updates() -> None:
    table = TWO | {"error": [0.1, 0.2], "max_steps": [1000, 1000]}
    [landscape] = landscapes(read_points(table, convention="l2"))
    assert landscape.updates == 1000


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"lr": 0.0}, "`lr` must be finite and above 0"),
        ({"decay": -1.0}, "`decay` must be finite and at least 0"),
        ({"tested": math.nan}, "`tested` must be finite, got nan. .* unless it diverged"),
        ({"way": "torch"}, "`way` must be one of"),
        ({"of": "accuracy"}, "`of` must be one of 'error', 'error_top5', 'loss'"),
    ],
)
def test_a_point_is_checked(changed: dict[str, Any], told: str) -> None:
    values: dict[str, Any] = {"lr": 0.1, "decay": 0.1, "way": "l2", "tested": 0.5}
    with pytest.raises(ValueError, match=told):
        Point(**values | changed)


def test_only_runs_and_points_are_gathered() -> None:
    with pytest.raises(TypeError, match=r"must hold runs or points, got 3\. .*read_points"):
        landscapes([3])  # type: ignore[list-item]


def test_columns_have_no_name_that_means_two_things() -> None:
    [landscape] = landscapes(runs())
    columns = landscape.to_columns()
    assert "lr" not in columns
    assert {"alpha", "weight_decay", "chosen_error", "tested_error", "algorithm"} <= set(columns)
    assert {len(values) for values in columns.values()} == {24}
    labelled = Point(lr=1, decay=1, way="l2", tested=0, labels={"seed": "x"})
    [other] = landscapes([labelled])
    assert (other.to_columns()["seed"], other.to_columns()["label_seed"]) == ([0], ["x"])


def test_a_landscape_is_said_in_a_line_and_drawn_in_a_notebook() -> None:
    [landscape] = landscapes(of_points(runs(), "weight_decay"))
    line = repr(landscape)
    assert line == (
        "<Landscape algorithm='theirs': 3 lr × 4 decays, weight_decay, 24 runs, "
        f"best error {landscape.best.mean:.4g}>"
    )
    drawn = landscape._repr_html_()
    assert drawn.count("<td") == 12
    assert drawn.count("outline:2px") == 1
    assert "&lt;Landscape" in drawn


def test_a_search_is_scattered_and_a_grid_is_not() -> None:
    def scape(places: list[tuple[float, float]]) -> Landscape:
        [one] = landscapes(Point(lr=lr, decay=d, way="l2", tested=0.5) for lr, d in places)
        return one

    grid = [(2.0**-i, 2.0**-j) for i in range(5) for j in range(6)]
    assert not scape(grid).scattered
    assert not scape([(lr, lr * decay) for lr, decay in grid]).scattered
    assert not scape([(lr, 0.1) for lr in (0.1, 0.2, 0.3)]).scattered
    draws = np.random.default_rng(0).uniform(0.1, 1, (40, 2))
    search = scape([(float(lr), float(decay)) for lr, decay in draws])
    assert search.scattered
    assert search._repr_html_().count("<tr") == 11
    assert "scattered" in repr(search)


def test_a_cell_that_diverged_comes_last_among_losses_too() -> None:
    """Errors are at most 1 apart; losses may be further."""
    losses = {(0.1, 0.1): 5.0, (0.2, 0.1): 2.0, (0.1, 0.2): 6.0, (0.2, 0.2): 0.5}
    [landscape] = landscapes(
        Point(lr=lr, decay=decay, way="l2", tested=loss, of="loss", diverged=loss < 1)
        for (lr, decay), loss in losses.items()
    )
    assert grid(landscape).best == (1, 0)


def test_a_metric_of_another_kind_is_not_offered_where_it_is_asked_for() -> None:
    """The loss to report cannot be told from training's, which is no matter for an accuracy."""
    table = {"lr": [0.1], "weight_decay": [0.1], "loss": [1.0], "val_loss": [1.1]}
    with pytest.raises(ValueError, match="A table must have a column with an error, an acc"):
        read_points(table, convention="paper", metric="accuracy")
