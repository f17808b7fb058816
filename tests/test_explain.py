"""`explain` says beforehand what a run then does."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from tests.cases import parameter, start, weights, zero_gradients
from weightdecay import (
    SGD,
    AdamW,
    Constant,
    Cosine,
    Normalized,
    StepDrop,
    WarmRestarts,
    Warmup,
    explain,
    parameter_groups,
)


@pytest.mark.parametrize(
    ("decay", "schedule"),
    [
        (0.02, None),
        (0.02, Constant()),
        (0.02, StepDrop(at=(7, 20))),
        (Normalized(0.2), Cosine(30, low=0.1)),
        (Normalized(0.2), WarmRestarts(5)),
        (Normalized(0.2), WarmRestarts(5, factor=1)),
        (Normalized(0.2), Warmup(4, WarmRestarts(5, high=(1, 0.5)))),
        (Normalized(0.2), Warmup(90, WarmRestarts(5))),
        (Normalized(0.2, steps=60), lambda t: 1 / (1 + t)),
    ],
)
def test_the_total_decay_is_what_a_run_then_does(decay, schedule) -> None:  # type: ignore[no-untyped-def]
    opt = AdamW([parameter()], 0.01, weight_decay=decay, schedule=schedule)
    told = explain(opt, steps=50).groups[0].stretches
    for _ in range(50):
        zero_gradients(opt)
        opt.step()
    np.testing.assert_allclose(weights(opt)[0], start() * told[-1].left, rtol=1e-10)
    assert (told[0].start, told[-1].end) == (0, 50)
    assert all(one.end == other.start for one, other in pairwise(told))


def test_it_says_where_restarts_fall_and_whether_a_cycle_is_cut_short() -> None:
    opt = AdamW([parameter()], 1e-3, weight_decay=Normalized(0.05), schedule=WarmRestarts(100))
    [whole] = explain(opt, steps=1500).groups
    assert whole.restarts == (100, 300, 700)
    assert whole.unfinished is None
    [cut] = explain(opt, steps=1000).groups
    assert cut.unfinished is not None
    assert (cut.unfinished.start, cut.unfinished.length) == (700, 800)
    assert "ends in the middle of a cycle, after 300 of its 800 updates" in str(
        explain(opt, steps=1000)
    )


def test_every_number_of_the_table() -> None:
    opt = AdamW([parameter()], 1e-3, weight_decay=Normalized(0.05), schedule=WarmRestarts(100))
    header, first, second, ending, pointer = str(explain(opt, steps=300)).splitlines()
    assert header.split() == [
        *("group", "parameters", "lr", "updates", "λ", "λ_norm"),
        *("torch's", "weight_decay", "half-life", "left"),
    ]
    assert first.split() == ["0", "7", "0.001", "0–99", "0.005", "0.05", "5", "138.3", "0.776"]
    assert second.split()[3:7] == ["100–299", "0.003536", "0.05", "3.536"]
    assert ending == "all groups: restarts at 100; no cycle is cut short"
    assert pointer == "docs/choosing.md says which decay to start with, and when to change it"


def test_a_group_without_decay_and_one_with_another_schedule() -> None:
    groups = [
        {"params": [parameter()], "weight_decay": 0.0},
        {"params": [parameter()], "schedule": Cosine(40)},
    ]
    opt = AdamW(groups, 1e-3, weight_decay=0.1, schedule=WarmRestarts(10))
    told = explain(opt, steps=30)
    assert told.groups[0].stretches[0].decay is None
    assert told.groups[0].stretches[-1].left == 1
    assert "group 1: no restarts; the run ends in the middle of a cycle" in str(told)


def test_l2_is_shown_as_torchs_number_and_decays_nothing() -> None:
    opt = SGD([parameter()], 0.1, l2=0.25)
    told = explain(opt, steps=30)
    assert told.groups[0].l2 == 0.25
    row = str(told).splitlines()[1].split()
    assert row == ["0", "7", "0.1", "0–29", "–", "–", "0.25", "–", "1"]
    assert "no weightdecay schedule; η is assumed to be 1 throughout" in str(told)


def test_cycles_that_decay_alike_share_a_row() -> None:
    schedule = WarmRestarts(2, factor=1)
    opt = AdamW([parameter()], weight_decay=Normalized(0.1), schedule=schedule)
    assert len(explain(opt, steps=10_000).groups[0].stretches) == 1


def test_it_does_not_change_the_optimizer() -> None:
    opt = AdamW([parameter()], weight_decay=Normalized(0.1), schedule=WarmRestarts(5))
    before = str(opt.state_dict())
    explain(opt, steps=100)
    assert str(opt.state_dict()) == before


def test_it_says_where_a_schedule_has_nothing_more_to_say() -> None:
    opt = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(10))
    assert "the last cycle ends at 10, η stays low" in str(explain(opt, steps=50))


def test_it_knows_a_warm_up_that_is_longer_than_the_run() -> None:
    opt = AdamW([parameter()], weight_decay=0.1, schedule=Warmup(90, WarmRestarts(5)))
    assert "all groups: the run ends within the warm-up\n" in str(explain(opt, steps=50))


def test_normalized_decay_is_relative_to_the_steps_it_was_told() -> None:
    opt = AdamW([parameter()], weight_decay=Normalized(0.2, steps=60), schedule=Cosine(30))
    decay = explain(opt, steps=30).groups[0].stretches[0].decay
    assert decay is not None
    assert decay.normalized == pytest.approx(0.2)


def test_it_refuses_what_the_optimizer_would_refuse() -> None:
    opt = AdamW([parameter()], weight_decay=0.5, schedule=lambda t: 1 if t < 2 else 3)
    with pytest.raises(ValueError, match=r"must be below 1, got 1\.5 at update 2"):
        explain(opt, steps=5)


def test_bad_input() -> None:
    opt = AdamW([parameter()], weight_decay=0.1)
    with pytest.raises(ValueError, match="`steps` must be at least 1, got 0"):
        explain(opt, steps=0)
    with pytest.raises(TypeError, match=r"`steps` must be a whole number, got 1\.5"):
        explain(opt, steps=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`optimizer` must be a weightdecay optimizer, or torch's"):
        explain(torch.optim.RMSprop([parameter()]), steps=10)
    with pytest.raises(TypeError, match=r"a torch\.nn\.Module, got 10\. Pass .* `steps=`"):
        explain(opt, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [False, True])
def test_torchs_adamw_is_explained_in_our_terms(groups: bool) -> None:
    params: Any = [{"params": [parameter()]}] if groups else [parameter()]
    theirs = torch.optim.AdamW(params, lr=3e-4, weight_decay=0.1)
    ours = AdamW([parameter()], lr=3e-4, weight_decay=3e-4 * 0.1)
    assert explain(theirs, steps=1000) == explain(ours, steps=1000)
    torch.optim.lr_scheduler.LinearLR(theirs)  # which lowers lr, not λ at η = 1
    assert explain(theirs, steps=1000) == explain(ours, steps=1000)


@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.SGD])
def test_what_torch_couples_is_called_l2(cls: Any) -> None:
    told = explain(cls([parameter()], lr=0.1, weight_decay=0.25, maximize=True), steps=30)
    assert told.groups[0].l2 == 0.25
    assert told.groups[0].stretches[0].decay is None
    assert "L2 regularization is added to the gradient" in str(told)
    assert "L2" not in str(explain(cls([parameter()], lr=0.1), steps=30))


def test_without_steps_it_is_the_first_cycle_or_one_update() -> None:
    ours = AdamW([parameter()], 0.1, weight_decay=0.1, schedule=Warmup(5, Cosine(20)))
    assert explain(ours).steps == 25
    assert not explain(ours).open_ended
    told = explain(torch.optim.AdamW([parameter()], lr=0.1, weight_decay=1.0))
    _, row, ending, note, _ = str(told).splitlines()
    assert row.split() == ["0", "7", "0.1", "0", "0.1", "–", "1", "6.579", "0.9"]
    assert ending.startswith("all groups: no weightdecay schedule")
    assert note == "only the first update is shown; pass steps= to see a whole run"


def test_a_run_of_unknown_length_is_not_said_to_end() -> None:
    opt = AdamW([parameter()], 0.1, weight_decay=0.1, schedule=Warmup(3, Constant()))
    assert "the run ends" not in str(explain(opt))
    assert "the run ends within the warm-up" in str(explain(opt, steps=1))


class Net(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


def test_with_the_model_it_names_the_normalization_layers_and_biases_that_decay() -> None:
    net = Net()
    for opt in (
        AdamW(net.parameters(), 0.1, weight_decay=0.1),
        torch.optim.AdamW(net.parameters(), weight_decay=0.1),
        torch.optim.SGD(net.parameters(), weight_decay=0.1),
    ):
        told = explain(opt, net)
        assert told.unusual == ("0.bias", "1.weight", "1.bias", "2.bias")
        assert "biases that decay: 0.bias, 1.weight, 1.bias, 2.bias; parameter_groups" in str(told)
    for opt in (
        AdamW(parameter_groups(net, weight_decay=0.1), 0.1),
        torch.optim.SGD(net.parameters()),
    ):
        assert explain(opt, net).unusual == ()
        assert "no normalization layer or bias decays" in str(explain(opt, net))
    assert explain(opt).unusual is None


def test_names_beyond_ten_are_counted() -> None:
    deep = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(1234)))
    told = str(explain(AdamW(deep.parameters(), 0.1, weight_decay=0.1), deep))
    assert "8.bias, 9.bias and 1,224 more;" in told
