"""The page on choosing says what the committed records and the package say."""

import math
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from tests import choosing
from weightdecay import SGD, AdamW
from weightdecay.decay import convert
from weightdecay.results import Landscape
from weightdecay.tune import Tuner

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "choosing.md"
TEXT = PAGE.read_text("utf-8")
#: λ, λ_norm and torch's weight_decay of the page's example.
EXAMPLE = (0.0007, 0.0759, 0.35)
FOLDER = ROOT / "results" / "cifar10-small"
committed = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="a source distribution has no committed results"
)


@committed
def test_the_tables_are_those_of_the_records_and_of_the_package() -> None:
    """`make book` writes them again."""
    pytest.importorskip("pyarrow")
    assert choosing.written(TEXT) == TEXT


@committed
def test_the_page_names_the_sweeps_that_its_table_leaves_out() -> None:
    pytest.importorskip("pyarrow")
    out = [
        (one.config.algorithm, one.config.task, one.config.epochs)
        for one in choosing.committed()
        if one.config.task != "text" and math.isnan(choosing.cost(one))
    ]
    assert sorted(out) == [("adam", "mnist1d", 180), ("sgdw", "mnist1d", 180)]
    said = "Two sweeps of mnist1d over 180 epochs, of SGDW and of Adam, are left out"
    assert said in " ".join(TEXT.split())


@committed
def test_a_tuner_looks_for_factors_of_l2_where_the_best_ones_were() -> None:
    pytest.importorskip("pyarrow")
    sweeps = [one for one in choosing.committed() if one.way == "l2"]
    assert {one.config.algorithm for one in sweeps} == {"adam", "sgd"}
    for one in sweeps:
        epochs, best = one.config.epochs, one.best
        per_epoch = choosing.updates(one) // epochs
        name = f"{one.config.algorithm}w"
        tuner = Tuner(epochs, updates_per_epoch=per_epoch, algorithm=name, convention="l2")
        low, *_, high = (at / best.lr / math.sqrt(epochs * per_epoch) for at in tuner.space.decays)
        assert 2 * low < best.decay < high / 2, (name, one.config.task)


@committed
def test_a_start_value_has_a_cost_in_every_sweep_and_the_limit_is_needed() -> None:
    pytest.importorskip("pyarrow")
    sweeps = [
        one
        for one in choosing.committed()
        if one.config.task != "text" and one.config.algorithm == "adamw"
    ]
    costs = [choosing.cost(one) for one in sweeps]
    unlimited = [choosing.cost(one, largest=math.inf) for one in sweeps]
    assert not any(math.isnan(cost) for cost in costs)
    assert f"costs up to {max(unlimited):.0f} points on mnist1d" in TEXT
    assert max(costs) < max(unlimited) / 2


@committed
def test_the_best_product_varies_less_than_the_best_normalized_decay() -> None:
    pytest.importorskip("pyarrow")
    long = [
        one
        for one in choosing.committed()
        if choosing.updates(one) >= choosing.FEW
        and one.config.algorithm != "adam"
        and (one.config.task != "text" or one.config.algorithm == "adamw")
    ]
    products = [choosing.constant(one, one.best) for one in long]
    normalized = [choosing.normalized(one, one.best) for one in long]
    said = " ".join(TEXT.split())
    assert (
        f"From {choosing.FEW} updates on, the best λ·n·√T stays between {min(products):.1f} and "
        f"{max(products):.1f} in these sweeps, while the best λ_norm goes from "
        f"{min(normalized):.2g} to {max(normalized):.2g}." in said
    )


@committed
def test_with_few_updates_the_start_decays_in_proportion_to_them() -> None:
    """It is then √T/400, and costs less where decay matters, on fresh networks too."""
    pytest.importorskip("pyarrow")
    assert choosing.START / choosing.FEW == 1 / 400
    saved = {
        name: fmean(
            choosing.cost(one, few=0, lr=one.best.lr) - choosing.cost(one, lr=one.best.lr)
            for one in some
        )
        for name, some in choosing.short().items()
    }
    assert min(saved["text"], saved["text-wide"]) > 5
    assert min(saved.values()) > -0.5
    for some in choosing.short().values():
        for one in some:
            lr, decay = choosing.start(one, largest=math.inf, lr=0.002)
            assert decay == pytest.approx(choosing.stated(one, one.config.epochs**0.5 / 400, lr))


@committed
def test_the_page_says_which_learning_rates_and_decays_were_best_over_few_updates() -> None:
    pytest.importorskip("pyarrow")
    said = " ".join(TEXT.split())
    short = choosing.short()
    for task, name in (("cifar10", "CIFAR-10"), ("mnist1d", "mnist1d"), ("text", "text")):
        rates = [one.best.lr for at, some in short.items() if at.startswith(task) for one in some]
        low, high = (
            f"{at:g}" if task == "cifar10" else f"{at:.1g}"
            for at in sorted(rates)[:: len(rates) - 1]
        )
        assert f"{low} to {high} on {name}" in said
    text = [*short["text"], *short["text-wide"]]
    shortest = [one for one in text if choosing.updates(one) <= 256]
    less = [
        choosing.constant(one, one.best) < choosing.START * choosing.updates(one) / choosing.FEW / 2
        for one in shortest
    ]
    assert (
        f"in {sum(less)} of {len(less)} sweeps of at most 256 updates, the best λ is less" in said
    )
    worst = max(choosing.cost(one, few=0, lr=one.best.lr) for one in text)
    assert f"would cost up to {worst:.0f} points" in said
    for task, gain, loss in (("cifar10", "0.2", "0.5"), ("mnist1d", "2.3", "2.4")):
        gains = [
            choosing.cost(one, few=0, lr=one.best.lr) - choosing.cost(one, lr=one.best.lr)
            for name, some in short.items()
            if name.startswith(task)
            for one in some
        ]
        assert (f"{max(gains):.1f}", f"{-min(gains):.1f}") == (gain, loss)
    assert "the rule gains 0.2 points at most, and costs up to 0.5. On mnist1d it gains up" in said
    assert "gains up to 2.3 points, and costs 2.4 with 500 examples" in said


@committed
def test_the_page_says_where_the_start_fails_on_text() -> None:
    """All sweeps that tried it, also the one where it does well."""
    said = " ".join(TEXT.split())
    at = {
        name: {choosing.updates(one): choosing.points(choosing.cost(one)) for one in some}
        for name, some in tried_on_text().items()
    }
    *failed, (longest, good) = at["sgdw"].items()
    counts, costs = (", ".join(map(str, own[:-1])) for own in zip(*failed, strict=True))
    assert f"at {counts} and {failed[-1][0]} updates, the page's decay costs {costs} and" in said
    assert f"and {failed[-1][1]} points, and at {longest:,} updates, where" in said
    best = max(tried_on_text()["sgdw"], key=choosing.updates)
    assert f"where the best λ·n·√T is {choosing.constant(best, best.best):.1f}, {good}." in said
    assert at["sgd"] == {384: "35.3"}
    assert "SGD's costs 35.3 points there, at 384 updates" in said
    assert at["adam"] == {384: "1.3", 1440: "0.8"}
    assert "and Adam's L2 factor 1.3 and 0.8 at 384 and 1,440." in said


@committed
def test_the_page_says_what_its_learning_rate_costs_on_text() -> None:
    """None of these sweeps has SGDW's, so its lowest stands for it."""
    said = " ".join(TEXT.split())
    adam, sgdw = (max(tried_on_text()[name], key=choosing.updates) for name in ("adam", "sgdw"))
    assert choosing.updates(adam) == choosing.updates(sgdw) == 1440
    costs = [choosing.points(choosing.cost(adam, lr=choosing.RATES["adam"]))]
    lowest = min(sgdw.lrs)
    assert lowest > choosing.RATES["sgdw"]
    costs.append(choosing.points(choosing.cost(sgdw, lr=lowest)))
    assert f"at 1,440 updates, Adam costs {costs[0]} points there, and SGDW {costs[1]} at" in said
    assert f"SGDW {costs[1]} at {lowest:g}, the lowest α that was tried" in said
    best = {
        name: {choosing.start(one)[0] for one in some} for name, some in tried_on_text().items()
    }
    assert {name: (min(own), max(own)) for name, own in best.items()} == {
        "sgd": (0.5, 0.5),
        "sgdw": (0.25, 0.5),
        "adam": (2**-5, 2**-5),
    }
    assert "0.25 to 0.5 for SGD and SGDW and 0.03 for Adam" in said


def tried_on_text() -> dict[str, list[Landscape]]:
    """Return the landscapes on text that tried the start, by algorithm and length."""
    found = sorted(choosing.committed(), key=choosing.updates)
    return {
        name: [
            one
            for one in found
            if (one.config.algorithm, one.config.task) == (name, "text")
            and not math.isnan(choosing.cost(one))
        ]
        for name in ("sgd", "sgdw", "adam")
    }


@committed
def test_every_number_of_the_text_is_measured_or_a_start_value() -> None:
    """Numbers with a decimal point, to as many digits as are shown."""
    pages = ("docs/reproduction.md", "results/cifar10-small/budgets.md", "docs/landscape.md")
    known = {
        float(number)
        for page in pages
        for number in re.findall(r"\d+\.\d+", (ROOT / page).read_text("utf-8"))
    }
    known |= {choosing.START, choosing.MOMENTUM, 1 - choosing.MOMENTUM, choosing.ADAM_L2}
    known |= {*choosing.RATES.values(), *EXAMPLE}
    known |= {number for recipe in choosing.RECIPES for number in (recipe.decay, recipe.lr)}
    for some in tried_on_text().values():
        known |= {abs(choosing.cost(one)) for one in some}
        known |= {choosing.start(one)[0] for one in some} | {min(one.lrs) for one in some}
        for one in some:
            known |= {choosing.cost(one, lr=lr) for lr in (choosing.RATES["adam"], min(one.lrs))}
    tables = re.findall(r"<!-- (\w+): .*?<!-- /\1 -->", TEXT, re.DOTALL)
    assert tables == ["start", "short", "recipes"]
    prose, made = TEXT, ""
    for part in re.findall(r"<!-- \w+: .*?<!-- /\w+ -->", TEXT, re.DOTALL):
        prose, made = prose.replace(part, ""), made + part
    known |= {float(number) for number in re.findall(r"\d+\.\d+", made)}
    shown = re.findall(r"\d+\.\d+", prose)
    assert len(shown) > 30
    for number in shown:
        digits = len(number.partition(".")[2])
        assert float(number) in {round(one, digits) for one in known}, number


@committed
def test_what_doing_nothing_cost_is_what_the_page_on_budgets_says() -> None:
    page = (FOLDER / "budgets.md").read_text("utf-8")

    def kept(method: str, over: str, pair: str) -> str:
        row = rf"^\| {method} \| {over} \| {pair} \| \+([\d.]+)"
        found = re.search(row, page, re.MULTILINE)  # the first table: at the same α
        assert found is not None, row
        return found[1]

    assert f"| {kept('AdamW', 'epochs', '8 → 32')} points (AdamW, from 8 to 32 epochs) |" in TEXT
    assert f"| {kept('AdamW', 'batch size', '512 → 128')} points (AdamW, from 512 to 128" in TEXT
    examples = [kept(method, "examples", "11,250 → 45,000") for method in ("AdamW", "SGDW")]
    assert f"| {examples[0]} points with AdamW, {examples[1]} with SGDW" in TEXT


def chosen(method: str) -> list[tuple[float, float]]:
    """Return α and λ of a method's settings that fresh seeds judged, on CIFAR-10 and mnist1d."""
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    found = re.findall(rf"^\| {method} \| ([\d.]+) \| (?:λ|L2) ([\d.]+) \|", page, re.MULTILINE)
    return [(float(lr), float(decay)) for lr, decay in found]


def test_the_best_l2_factors_are_nearly_the_best_decays_in_the_terms_of_the_page() -> None:
    """On CIFAR-10, mnist1d and text."""
    ratios = [
        f"{lr * factor / (1 - choosing.MOMENTUM) / decay:.1f}"
        for (lr, factor), (_, decay) in zip(chosen("SGD"), chosen("SGDW"), strict=True)
    ]
    said = "{} times SGDW's best λ on CIFAR-10, {} times on mnist1d, and {} times on text"
    assert said.format(*ratios) in TEXT


def test_l2_in_sgd_decays_as_if_the_learning_rate_were_divided_by_one_minus_the_momentum() -> None:
    param = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    opt = SGD([param], lr=0.05, momentum=choosing.MOMENTUM, l2=0.003)
    logs = []
    for _ in range(2000):
        param.grad = torch.zeros_like(param)
        opt.step()
        logs.append(math.log(param.item()))
    per_update = (logs[500] - logs[-1]) / (len(logs) - 501)
    assert per_update == pytest.approx(0.05 * 0.003 / (1 - choosing.MOMENTUM), rel=0.02)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_adamw_holds_a_weight_below_the_learning_rate_over_the_decay(scale: float) -> None:
    param = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    opt = AdamW([param], lr=0.002, weight_decay=choosing.LARGEST * 0.002)
    for _ in range(2000):
        param.grad = torch.full_like(param, -scale)
        opt.step()
    assert param.item() == pytest.approx(1 / choosing.LARGEST, rel=1e-3)


def test_the_example_is_computed_as_the_table_says() -> None:
    [block] = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(block, names)
    decay = convert(
        weight_decay=names["decay"],
        lr=names["alpha"],
        batch=names["batch"],
        data=names["examples"],
        epochs=names["epochs"],
    )
    assert (decay.weight_decay, decay.normalized, decay.torch) == pytest.approx(EXAMPLE, rel=0.01)
    assert decay.normalized == pytest.approx(choosing.START / names["n"] ** 0.5)
    said = "λ is {}, λ_norm {} and torch's `weight_decay` {}".format(*EXAMPLE)
    assert said in " ".join(TEXT.split())


def test_the_defaults_of_torch_are_those_of_this_torch() -> None:
    defaults = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))]).defaults
    assert choosing.RECIPES[0].lr == defaults["lr"]
    assert choosing.RECIPES[0].decay == defaults["weight_decay"]
