"""A decay that only makes sense in torch's convention is warned about; one of ours never is."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.cases import parameter
from weightdecay import (
    SGD,
    SGDW,
    Adam,
    AdamW,
    AdamWR,
    Cosine,
    Normalized,
    decouple,
    from_torch,
)
from weightdecay.records import RunConfig
from weightdecay.runs.build import optimizer_of


@pytest.fixture(autouse=True)
def every_warning_counts() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    ("lr", "weight_decay", "half_life", "meant"),
    [
        (1e-3, 0.01, "69", "1e-05"),  # the defaults of torch.optim.AdamW
        (3e-4, 0.1, "6.6", "3e-05"),
        (6e-4, 0.1, "6.6", "6e-05"),
        (1e-3, 0.05, "14", "5e-05"),
        (2e-5, 0.01, "69", "2e-07"),
        (3e-3, 0.01, "69", "3e-05"),
        (1e-2, 0.05, "14", "0.0005"),
        (torch.tensor(1e-4, dtype=torch.float64), 0.3, "1.9", "3e-05"),
    ],
)
@pytest.mark.parametrize("cls", [AdamW, SGDW, decouple(torch.optim.NAdam)])
def test_torchs_number_is_noticed_and_converted(
    cls: Any, lr: Any, weight_decay: float, half_life: str, meant: str
) -> None:
    said = rf"looks like torch's.*every {half_life} updates.*lr \* {weight_decay:g} = {meant}\."
    with pytest.warns(UserWarning, match=said) as caught:
        cls([parameter()], lr=lr, weight_decay=weight_decay, schedule=Cosine(10_000))
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    "build",
    [
        lambda p: AdamW(p, 1e-3, weight_decay=1e-4),
        lambda p: AdamW(p, 1e-3, weight_decay=0.005),  # the landscapes' best at lr = 2^-8
        lambda p: AdamW(p, 2e-5, weight_decay=0.005),  # a smaller lr leaves λ alone
        lambda p: AdamW(p, 2**-8, weight_decay=2**-7),  # the best of mnist1d-medium
        lambda p: AdamW(p, 2**-5, weight_decay=2**-6),  # the best of text-medium
        lambda p: AdamW(p, 2**-6, weight_decay=2**-6),  # with twice the epochs
        lambda p: AdamW(p, 0.02, weight_decay=0.004),
        lambda p: AdamW(p, 1e-3, weight_decay=0.0),
        lambda p: AdamW(p, 0.0, weight_decay=0.0),
        lambda p: AdamW(p, 1e-4, weight_decay=Normalized(0.1, steps=4)),
        lambda p: AdamWR(p, 1e-4, first=4, normalized_decay=0.1),
        lambda p: SGDW(p, 0.1, weight_decay=5e-4),
        lambda p: SGDW(p, 0.05, weight_decay=0.04),
        lambda p: SGD(p, 1e-3, l2=0.1),
        lambda p: Adam(p, 1e-3, l2=0.1),
        lambda p: decouple(torch.optim.NAdam)(p, lr=1e-3, l2=0.1),
    ],
)
def test_our_own_numbers_pass_in_silence(build: Any) -> None:
    build([parameter()])


def test_it_is_said_once_for_an_optimizer_and_looks_at_each_groups_own_numbers() -> None:
    groups: Any = [{"params": [parameter()], "weight_decay": decay} for decay in (0, 0.1, 0.2)]
    with pytest.warns(UserWarning, match=r"looks like torch's: 0\.1 with lr 0\.001") as caught:
        opt = AdamW(groups, 1e-3)
    assert len(caught) == 1
    opt.add_param_group({"params": [parameter()], "weight_decay": 0.3})
    mild = AdamW([parameter()], 0.1, weight_decay=0.1)
    with pytest.warns(UserWarning, match=r"0\.1 with lr 0\.0001"):
        mild.add_param_group({"params": [parameter()], "lr": 1e-4})


def test_what_torch_began_goes_on_in_silence() -> None:
    begun = torch.optim.AdamW([parameter()], lr=3e-4, weight_decay=0.1)
    opt = AdamW([parameter()], lr=3e-4, weight_decay=3e-5)
    opt.load_state_dict(from_torch(begun.state_dict()))


@pytest.mark.parametrize("algorithm", ["adamw", "sgdw", "torch.optim:NAdam"])
def test_a_landscape_has_large_decays_on_purpose(algorithm: str) -> None:
    config = RunConfig(
        task="mnist1d",
        model="mlp",
        algorithm=algorithm,
        lr=2**-12,
        weight_decay=2**-4,
        epochs=1,
        batch=8,
    )
    optimizer_of(algorithm, [(config, [parameter()], Cosine(9))])
    with pytest.warns(UserWarning, match="looks like torch's"):  # and says so to others after it
        AdamW([parameter()], 2**-12, weight_decay=2**-4)
