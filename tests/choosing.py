"""Start values against the committed runs, and the decays of well-known recipes.

`python -m tests.choosing` prints both tables; with `--page docs/choosing.md` it writes those of
that page.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from tests.tables import all_inserted, tell
from weightdecay.decay import Decay, convert
from weightdecay.records import Run, read
from weightdecay.results import Cell, Landscape, landscapes
from weightdecay.results.interpolation import between
from weightdecay.sweeps import Store
from weightdecay.table import shown

RESULTS = Path(__file__).parents[1] / "results"
#: λ·n·√T that the page starts with, for n updates per epoch and T epochs.
START = 1.5
#: The largest λ/α that the page recommends for AdamW.
LARGEST = 3.0
MOMENTUM = 0.9
#: Runs with fewer updates are shown apart: they want less decay, in proportion to their updates.
FEW = 600
RATES = {"adamw": 0.002, "sgdw": 0.05, "sgd": 0.05, "adam": 0.00125}
NAMES = {"adamw": "AdamW", "sgdw": "SGDW", "sgd": "SGD with L2", "adam": "Adam with L2"}
#: The L2 factor that the page starts with for Adam, in which L2 amounts to no decay.
ADAM_L2 = 0.002
#: Tables of runs at several lengths, and what was trained there; a tuner was designed on the first
#: three, and so were the rules of the page.
TABLES = {
    "cifar10": "CIFAR-10, conv net",
    "mnist1d": "mnist1d, MLP",
    "text": "text, transformer",
    "cifar10-narrow": "CIFAR-10, narrow conv net",
    "mnist1d-few": "mnist1d, wide MLP, few examples",
    "text-wide": "text, wide transformer",
}
TASKS = {
    "cifar10": "CIFAR-10, conv net",
    "mnist1d": "mnist1d, MLP",
    "text": "text, transformer, at its own best α",
}


@cache
def committed() -> list[Landscape]:
    """Return the landscapes with cosine annealing of the committed runs."""
    runs: list[Run] = []
    for folder in ("figure-2", "budgets"):
        runs += Store(RESULTS / "cifar10-small" / folder).runs()
    for task in ("mnist1d", "text"):
        runs += read(RESULTS / f"{task}-medium" / "records.parquet")
    return [
        one
        for one in landscapes(runs)
        if one.config.algorithm in RATES
        and one.config.schedule == "cosine"
        and one.config.epochs > 1  # six cells that only say that L2 and decay differ
        and len(one.lrs) > 1
    ]


@cache
def short() -> dict[str, list[Landscape]]:
    """Return the landscapes of AdamW over few updates, by what was trained."""
    found: dict[str, list[Landscape]] = {name: [] for name in TABLES}
    for name in found:
        found[name] += landscapes(read(RESULTS / "tuning" / f"{name}.parquet"))
    for one in committed():
        if one.config.algorithm == "adamw":
            found[one.config.task].append(one)
    return {name: [one for one in some if updates(one) < FEW] for name, some in found.items()}


def updates(landscape: Landscape) -> int:
    """Return the number of updates in a run."""
    assert landscape.updates is not None
    return landscape.updates


def stated(landscape: Landscape, weight_decay: float, lr: float) -> float:
    """Return λ as the landscape states it; L2 reaches the weights through the momentum."""
    if landscape.way == "normalized_decay":
        return weight_decay * math.sqrt(updates(landscape))
    if landscape.way == "l2":
        return (1 - MOMENTUM) * weight_decay / lr
    return weight_decay


def start(
    landscape: Landscape, largest: float = LARGEST, *, few: int = FEW, lr: float | None = None
) -> tuple[float, float]:
    """Return the learning rate and the decay that the page starts with, stated as here.

    `few` are the updates below which it decays less; `lr` replaces the page's learning rate.
    """
    config = landscape.config
    if lr is None:
        lr = landscape.best.lr if config.task == "text" else RATES[config.algorithm]
    if config.algorithm == "adam":
        return lr, ADAM_L2
    weight_decay = START * math.sqrt(config.epochs) / max(updates(landscape), few)
    if config.algorithm == "adamw":
        weight_decay = min(weight_decay, largest * lr)
    return lr, stated(landscape, weight_decay, lr)


def error(landscape: Landscape, lr: float, decay: float) -> float:
    """Return the test error at a setting, read off between the settings that were run."""
    rates, errors = [], []
    for rate in landscape.lrs:
        column = [
            cell
            for (at, one), cell in sorted(landscape.cells.items())
            if at == rate and one > 0 and not cell.diverged
        ]
        value = _between([cell.decay for cell in column], [cell.mean for cell in column], decay)
        if not math.isnan(value):
            rates.append(rate)
            errors.append(value)
    return _between(rates, errors, lr)


def _between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    return float(between(np.log2(places), math.log2(place)) @ np.array(values))


def cost(landscape: Landscape, largest: float = LARGEST, **changed: Any) -> float:
    """Return the points of test error by which the start values miss the best setting."""
    return 100 * (error(landscape, *start(landscape, largest, **changed)) - landscape.best.mean)


def normalized(landscape: Landscape, cell: Cell) -> float:
    """Return λ_norm of a cell; of L2, that of the decay it amounts to."""
    weight_decay = cell.decay
    if landscape.way == "l2":
        weight_decay *= cell.lr / (1 - MOMENTUM)
    elif landscape.way == "normalized_decay":
        return weight_decay
    return weight_decay * math.sqrt(updates(landscape))


def constant(landscape: Landscape, cell: Cell) -> float:
    """Return λ·n·√T of a cell, which is λ_norm·√n."""
    return normalized(landscape, cell) * math.sqrt(updates(landscape) / landscape.config.epochs)


START_TITLES = (
    *("optimizer", "task", "updates", "sweeps", "cost on average", "at worst"),
    *("best λ_norm", "best λ·n·√T"),
)


def start_rows(found: Iterable[Landscape]) -> list[tuple[str, ...]]:
    """Return what it costs to start with the page's values, by optimizer, task and length."""
    kinds: dict[tuple[str, str, bool], list[Landscape]] = {}
    for one in found:
        if one.config.task == "text" and one.config.algorithm != "adamw":
            continue
        if math.isnan(cost(one)):  # the start lies outside of its grid
            continue
        kind = (one.config.algorithm, one.config.task, updates(one) < FEW)
        kinds.setdefault(kind, []).append(one)
    order = [(way, task, few) for way in NAMES for task in TASKS for few in (False, True)]
    rows: list[tuple[str, ...]] = []
    for way, task, few in order:
        if (way, task, few) not in kinds:
            continue
        group = kinds[way, task, few]
        costs = [cost(one) for one in group]
        best = _range(group, normalized, "{:.2g}"), _range(group, constant, "{:.1f}")
        rows.append(
            (
                *(NAMES[way], TASKS[task], _range(group, lambda one, _: updates(one), "{:,.0f}")),
                *(str(len(group)), points(fmean(costs)), points(max(costs))),
                *(("–", "–") if way == "adam" else best),
            )
        )
    return rows


SHORT_TITLES = (
    *("network", "updates", "sweeps", "best λ·n·√T", "cost of 1.5/(n·√T) on average", "at worst"),
    *("cost of √T/400 on average", "at worst"),
)


def short_rows(found: Mapping[str, Sequence[Landscape]]) -> list[tuple[str, ...]]:
    """Return what the rule for few updates saves, at the best learning rate of each sweep."""
    rows = []
    for name, group in found.items():
        both = [[cost(one, few=few, lr=one.best.lr) for one in group] for few in (0, FEW)]
        shown_costs = [points(of(costs)) for costs in both for of in (fmean, max)]
        rows.append(
            (
                *(TABLES[name], _range(group, lambda one, _: updates(one), "{:,.0f}")),
                *(str(len(group)), _range(group, constant, "{:.2g}"), *shown_costs),
            )
        )
    return rows


def points(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _range(group: Sequence[Landscape], value: Callable[[Landscape, Cell], float], form: str) -> str:
    values = [value(one, one.best) for one in group]
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A public recipe, as the file at `source` states it; `lr` is the highest learning rate.

    `batch` and `data` are counted alike, in examples or in tokens. `steps` replaces `epochs`.
    """

    name: str
    source: str
    optimizer: str
    lr: float
    decay: float
    way: str = "torch"
    momentum: float = 0.0
    batch: float | None = None
    data: float | None = None
    epochs: float | None = None
    steps: float | None = None

    @property
    def converted(self) -> Decay:
        """Return its decay; L2 reaches the weights 1/(1 − momentum) times, through the momentum."""
        return convert(
            lr=self.lr / (1 - self.momentum),
            batch=self.batch,
            data=self.data,
            epochs=self.epochs,
            steps=self.steps,
            **{self.way: self.decay},
        )

    @property
    def constant(self) -> float | None:
        """Return λ·n·√T, which is λ_norm·√n; None if the epochs are unknown."""
        decay = self.converted
        if decay.normalized is None or decay.run.updates_per_epoch is None:
            return None
        return decay.normalized * math.sqrt(decay.run.updates_per_epoch)


_IMAGENET = 1_281_167  # examples
_TORCHVISION = "pytorch/vision/blob/main/references/classification/README.md"
RECIPES = (
    Recipe(
        name="`torch.optim.AdamW`, its defaults",
        source="pytorch/pytorch/blob/main/torch/optim/adamw.py",
        optimizer="AdamW",
        lr=1e-3,
        decay=0.01,
    ),
    Recipe(
        name="the paper's Shake-Shake, CIFAR-10",
        source="loshchil/AdamW-and-SGDW/blob/master/README.md",
        optimizer="AdamW",
        lr=1e-3,
        way="normalized",
        decay=0.025,
        batch=128,
        data=50_000,
        epochs=1500,
    ),
    Recipe(
        name="pytorch-cifar, CIFAR-10",
        source="kuangliu/pytorch-cifar/blob/master/main.py",
        optimizer="SGD",
        momentum=0.9,
        lr=0.1,
        decay=5e-4,
        batch=128,
        data=50_000,
        epochs=200,
    ),
    Recipe(
        name="torchvision ResNet-50",
        source=_TORCHVISION,
        optimizer="SGD",
        momentum=0.9,
        lr=0.1,
        decay=1e-4,
        batch=8 * 32,
        epochs=90,
        data=_IMAGENET,
    ),
    Recipe(
        name="timm ResNeXt-50",
        source="huggingface/pytorch-image-models/blob/main/hfdocs/source/training_script.mdx",
        optimizer="SGD",
        momentum=0.9,
        lr=0.6,
        decay=1e-4,
        batch=8 * 192,
        epochs=240,
        data=_IMAGENET,
    ),
    Recipe(
        name="torchvision ViT-B/16",
        source=_TORCHVISION,
        optimizer="AdamW",
        lr=3e-3,
        decay=0.3,
        batch=8 * 512,
        epochs=300,
        data=_IMAGENET,
    ),
    Recipe(
        name="DeiT-S",
        source="facebookresearch/deit/blob/main/README_deit.md",
        optimizer="AdamW",
        lr=5e-4 * 1024 / 512,
        decay=0.05,
        batch=4 * 256,
        epochs=300,
        data=_IMAGENET,
    ),
    Recipe(
        name="ConvNeXt-T",
        source="facebookresearch/ConvNeXt/blob/main/TRAINING.md",
        optimizer="AdamW",
        lr=4e-3,
        decay=0.05,
        batch=4096,
        epochs=300,
        data=_IMAGENET,
    ),
    Recipe(
        name="MAE ViT-L, pre-training",
        source="facebookresearch/mae/blob/main/PRETRAIN.md",
        optimizer="AdamW",
        lr=1.5e-4 * 4096 / 256,
        decay=0.05,
        batch=4096,
        epochs=800,
        data=_IMAGENET,
    ),
    Recipe(
        name="BERT, pre-training",
        source="google-research/bert/blob/master/optimization.py",
        optimizer="AdamW",
        lr=1e-4,
        decay=0.01,
        steps=1_000_000,
    ),
    Recipe(
        name="BERT, fine-tuning on MRPC",
        source="google-research/bert/blob/master/README.md",
        optimizer="AdamW",
        lr=2e-5,
        decay=0.01,
        steps=343,
    ),
    Recipe(
        name="nanoGPT, GPT-2 124M",
        source="karpathy/nanoGPT/blob/master/config/train_gpt2.py",
        optimizer="AdamW",
        lr=6e-4,
        decay=0.1,
        batch=12 * 1024 * 5 * 8,
        data=9_035_582_198,
        steps=600_000,
    ),
)
RECIPE_TITLES = (
    *("recipe", "optimizer", "peak α", "torch's `weight_decay`", "λ", "λ_norm"),
    *("timescale in updates", "in epochs", "updates", "λ·n·√T"),
)


def recipe_row(recipe: Recipe) -> tuple[str, ...]:
    """Return the row of the table about one recipe."""
    decay = recipe.converted
    return (
        f"[{recipe.name}](https://github.com/{recipe.source})",
        recipe.optimizer,
        *(shown(value, digits=3) for value in (recipe.lr, decay.torch, decay.weight_decay)),
        shown(decay.normalized, digits=2),
        _whole(decay.timescale),
        shown(decay.timescale_epochs, digits=2),
        _whole(decay.run.updates),
        shown(recipe.constant, digits=2),
    )


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{float(f'{value:.2g}'):,.0f}"


def tables() -> dict[str, list[tuple[str, ...]]]:
    """Return the page's tables by the names of their marks."""
    return {
        "start": [START_TITLES, *start_rows(committed())],
        "short": [SHORT_TITLES, *short_rows(short())],
        "recipes": [RECIPE_TITLES, *(recipe_row(recipe) for recipe in RECIPES)],
    }


def written(page: str) -> str:
    """Return the page with its tables made anew."""
    return all_inserted(page, tables(), "tests.choosing", "docs/choosing.md")


if __name__ == "__main__":
    tell("Start values, and the decays of recipes.", tables, written)
