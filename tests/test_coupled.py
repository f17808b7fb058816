"""Any class of torch's kind, coupled: its own L2 regularization, under a schedule of ours."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cases import advance, each, parameter, set_gradients, third_party, weights
from tests.test_decouple import EVERY, every_class
from tests.toys import config, records_of, toy
from weightdecay import Adam, Cosine, WarmRestarts, decouple, explain
from weightdecay.records import Record, RunConfig
from weightdecay.runs import train_events
from weightdecay.runs.build import takes_rows
from weightdecay.runs.lanes import Lanes
from weightdecay.runs.separate import Separate
from weightdecay.runs.stacked import Stacked
from weightdecay.tasks import split

L2 = 0.3
Options = dict[str, Any]
COUPLED: dict[str, tuple[type[torch.optim.Optimizer], Options]] = {
    **{
        name: EVERY[name]
        for name in ("Adagrad", "RMSprop", "AMSGrad", "NAdam", "RAdam", "Adamax", "Adadelta", "SGD")
    },
    "Adam fused": (torch.optim.Adam, {"lr": 0.01, "fused": True}),
    "Adagrad maximizing": (torch.optim.Adagrad, {"lr": 0.05, "maximize": True}),
    "AdaBelief": (third_party("AdaBelief"), {"lr": 0.01, "weight_decouple": False}),
}
OTHERWISE: dict[str, tuple[type[torch.optim.Optimizer], Options]] = {
    **{
        name: EVERY[name] for name in ("AdamW", "NAdam decoupled", "Adafactor", "Lion", "AdaBelief")
    },
    "Adam decoupled": (torch.optim.Adam, {"lr": 0.01, "decoupled_weight_decay": True}),
    "RAdam decoupled": (torch.optim.RAdam, {"lr": 0.01, "decoupled_weight_decay": True}),
    "SparseAdam": (torch.optim.SparseAdam, {"lr": 0.01}),
}
every_coupled = each(COUPLED)


@every_coupled
def test_a_coupled_class_is_the_class_itself_under_our_schedule(
    cls: type[torch.optim.Optimizer], options: Options
) -> None:
    schedule = Cosine(12, low=0.2)
    ours = decouple(cls)([parameter()], l2=L2, schedule=schedule, **options)
    rates: Options = {"weight_decay": L2}
    theirs = cls([parameter()], **options, **rates)
    for t in range(1, 13):
        theirs.param_groups[0]["lr"] = options["lr"] * schedule(t - 1)
        for opt in (ours, theirs):
            set_gradients(opt, t)
            opt.step()
        assert torch.equal(*weights(ours), *weights(theirs))


def test_coupled_amsgrad_of_torch_is_ours() -> None:
    common: Options = {"lr": 0.01, "l2": L2, "schedule": Cosine(20), "amsgrad": True}
    ours = Adam([parameter()], **common)
    theirs = decouple(torch.optim.Adam)([parameter()], **common)
    advance(ours, 15)
    advance(theirs, 15)
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-12, atol=0.0)


@each(OTHERWISE)
def test_l2_is_refused_where_a_class_does_something_else(
    cls: type[torch.optim.Optimizer], options: Options
) -> None:
    with pytest.raises(ValueError, match=f"`l2` must be 0 for {cls.__name__}, got 1e-09: its own"):
        decouple(cls)([parameter()], l2=1e-9, **options)


@every_class
def test_without_decay_coupled_and_decoupled_are_one(
    cls: type[torch.optim.Optimizer], options: Options
) -> None:
    ends = []
    for decay in ({"l2": 0.0}, {"weight_decay": 0.0}):
        opt = decouple(cls)([parameter()], schedule=Cosine(9), **options, **decay)
        advance(opt, 6)
        ends += weights(opt)
    assert torch.equal(*ends)


def test_groups_decay_each_in_its_own_way() -> None:
    """As they would in an optimizer of their own; one that says nothing takes the optimizer's."""
    cls, ends = decouple(torch.optim.RMSprop), []
    told: list[Options] = [{"l2": L2}, {"weight_decay": 0.1}, {"l2": 0.5}]
    for decay in told:
        alone = cls([parameter()], lr=0.05, schedule=Cosine(9), **decay)
        advance(alone, 6)
        ends += weights(alone)
    groups: Any = [{"params": [parameter()]}, {"params": [parameter()], **told[1]}]
    opt = cls(groups, lr=0.05, l2=L2, schedule=Cosine(9))
    opt.add_param_group({"params": [parameter()], "l2": 0.5})
    opt.add_param_group({"params": [parameter()]})
    advance(opt, 6)
    assert all(map(torch.equal, weights(opt), [*ends, ends[0]]))
    assert [group.get("l2") for group in opt.param_groups] == [L2, None, 0.5, L2]
    assert ["weight_decay" in group for group in opt.param_groups] == [False, True, False, False]


@pytest.mark.parametrize(
    ("decay", "message"),
    [
        ({"l2": 0.1, "weight_decay": 0.1}, "must have `weight_decay` or `l2`, got both"),
        ({"l2": -0.1}, "`l2` must be finite and at least 0, got -0.1"),
        ({"l2": float("nan")}, "`l2` must be finite and at least 0, got nan"),
    ],
)
def test_a_decay_is_stated_once_and_is_a_number(decay: Options, message: str) -> None:
    cls = decouple(torch.optim.RMSprop)
    with pytest.raises(ValueError, match=message):
        cls([parameter()], lr=0.01, **decay)
    opt = cls([parameter()], lr=0.01, weight_decay=0.1)
    with pytest.raises(ValueError, match=message):
        opt.add_param_group({"params": [parameter()], **decay})
    assert opt.defaults["weight_decay"] == 0.1


def test_a_coupled_class_is_explained_as_l2() -> None:
    [group] = explain(decouple(torch.optim.Adagrad)([parameter()], lr=0.01, l2=0.1), steps=7).groups
    assert group.l2 == 0.1
    assert group.stretches[0].decay is None


def _reloaded(opt: Any) -> Any:
    twin = decouple(torch.optim.Adagrad)(
        [parameter(weights(opt)[0].numpy())], lr=0.05, l2=L2, schedule=WarmRestarts(4)
    )
    twin.load_state_dict(copy.deepcopy(opt.state_dict()))
    return twin


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt)), _reloaded],
    ids=["copy", "pickle", "state"],
)
def test_a_duplicate_goes_on_alike(duplicate: Callable[[Any], Any]) -> None:
    opt = decouple(torch.optim.Adagrad)([parameter()], lr=0.05, l2=L2, schedule=WarmRestarts(4))
    advance(opt, 3)
    twin = duplicate(opt)
    advance(opt, 8, first=4)
    advance(twin, 8, first=4)
    assert torch.equal(*weights(opt), *weights(twin))


@pytest.mark.parametrize(("one", "other"), [("l2", "weight_decay"), ("weight_decay", "l2")])
def test_a_state_is_not_loaded_across_the_two_forms(one: str, other: str) -> None:
    cls = decouple(torch.optim.Adagrad)
    saved = cls([parameter()], lr=0.05, **{one: 0.1}).state_dict()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"have no .*'{other}'"):
        cls([parameter()], lr=0.05, **{other: 0.1}).load_state_dict(saved)  # type: ignore[arg-type]


ADAGRAD, AMSGRAD = "torch.optim:Adagrad", "torch.optim:Adam,amsgrad=true"
PANELS = [
    config(algorithm=ADAGRAD, l2=0.1, seed=1),
    config(algorithm=ADAGRAD, weight_decay=0.01, seed=1),
    config(algorithm=AMSGRAD, weight_decay=0.01, schedule="restarts,first=1", seed=2),
    config(algorithm=AMSGRAD, l2=0.1, schedule="drops,at=1.5", seed=2),
]


def trained(configs: list[RunConfig], **options: Any) -> dict[str, list[Record]]:
    return records_of(train_events(configs, device="cpu", **options))


def test_that_a_class_may_be_coupled_moves_no_identity() -> None:
    """They name folders that people keep."""
    decoupled = config(algorithm=ADAGRAD, weight_decay=1e-3)
    assert decoupled.identity == "7646e55e2db343bae0a8"
    assert config(algorithm=AMSGRAD).identity == "d2c6b210db843a2f7e89"
    assert config(algorithm="adam", l2=1e-3).identity == "adb290637b0f1cf5f96e"
    assert config(algorithm=ADAGRAD, l2=1e-3).identity != decoupled.identity


def test_both_forms_of_a_class_are_lanes_of_one_pack_and_neither_notices() -> None:
    together = trained(PANELS)
    for some in (PANELS[:2], PANELS[::-1], PANELS[::2], PANELS[1::2]):
        assert trained(some) == {one.identity: together[one.identity] for one in some}
    for one in PANELS:
        [alone] = trained([one]).values()
        ours = together[one.identity]
        assert [r.weight_norm for r in ours] == pytest.approx([r.weight_norm for r in alone], 2e-5)
        assert [(r.lr, r.decay) for r in ours] == [(r.lr, r.decay) for r in alone]
    norms = [records[-1].weight_norm for records in together.values()]
    assert len(set(norms)) == len(norms)


def test_a_record_of_a_coupled_class_has_its_l2_times_eta() -> None:
    [records] = trained(PANELS[3:]).values()
    assert [record.decay for record in records] == pytest.approx([0.1, 0.01, 0.01])


@pytest.mark.slow
def test_coupled_lanes_that_were_stopped_end_with_the_same_bits(tmp_path: Path) -> None:
    whole = trained(PANELS)
    for epoch in (1, 2):
        events = train_events(PANELS, folder=tmp_path / str(epoch), device="cpu")
        while not (isinstance(event := next(events), Record) and event.epoch == epoch + 1):
            pass
        events.close()  # type: ignore[attr-defined]
        assert trained(PANELS, folder=tmp_path / str(epoch)) == whole


def test_a_run_that_cannot_be_coupled_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`l2` must be 0 for AdamW"):
        train_events(config(algorithm="torch.optim:AdamW", l2=1e-3), folder=tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())
    trained([config(algorithm="torch.optim:AdamW", l2=0.0)])


ROWS = [
    *("Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "NAdam", "RAdam"),
    *("RMSprop,centered=true,momentum=0.5", "SGD,momentum=0.9", "SGD"),
]


@pytest.mark.parametrize("name", ROWS)
def test_what_looks_at_elements_alone_may_see_a_lane_as_a_row(name: str) -> None:
    """It does what it does to parameters one by one, and its state is of those."""
    algorithm = f"torch.optim:{name}"
    assert takes_rows(algorithm)
    lanes = [config(algorithm=algorithm, weight_decay=0.01, seed=seed) for seed in (1, 2)]
    task = split(toy(), validation=None, data=None)
    kinds: list[type[Lanes]] = [Stacked, Separate]
    for kind in kinds:
        whole = kind(lanes, task, torch.device("cpu"))
        whole.advance(4)
        states = [whole.state(n) for n in range(2)]
        whole.advance(5)
        for other in kinds:
            taken_up = other(lanes, task, torch.device("cpu"))
            taken_up.load(states)
            taken_up.advance(5)
            for ours, theirs in zip(
                taken_up.solution(1).values(), whole.solution(1).values(), strict=True
            ):
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
                assert other is not kind or torch.equal(ours, theirs)


@pytest.mark.parametrize("algorithm", ["torch.optim:Adafactor", "pytorch_optimizer:Lamb"])
def test_what_may_look_at_shapes_is_shown_them(algorithm: str) -> None:
    pytest.importorskip(algorithm.partition(":")[0])
    assert not takes_rows(algorithm)
    assert takes_rows("adamw,amsgrad=true")
