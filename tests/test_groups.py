"""Who decays is decided by module type and name, and shown."""

from typing import Any

import pytest
import torch
from torch import nn

from weightdecay import AdamW, Normalized, parameter_groups
from weightdecay.optim import NO_DECAY


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(2, 2))


def model() -> nn.Sequential:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 4), nn.LayerNorm(4), Scale()
    )
    net.add_module("last", nn.Linear(4, 2, bias=False))
    return net


def names(groups: Any) -> list[set[str]]:
    return [{name for name, _ in group["params"]} for group in groups]


def test_norms_and_biases_are_left_out() -> None:
    groups = parameter_groups(model(), weight_decay=0.1)
    assert names(groups) == [
        {"0.weight", "2.weight", "4.gain", "last.weight"},
        {"0.bias", "1.weight", "1.bias", "2.bias", "3.weight", "3.bias"},
    ]
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]


def test_one_may_add_types_and_names() -> None:
    groups = parameter_groups(model(), weight_decay=0.1, skip=[*NO_DECAY, Scale, "last.*"])
    assert names(groups)[0] == {"0.weight", "2.weight"}


def test_the_papers_way_is_to_decay_everything() -> None:
    groups = parameter_groups(model(), weight_decay=0.1, skip=())
    assert len(groups) == 1
    assert len(groups[0]["params"]) == 10


def test_the_table_says_what_was_decided_and_why() -> None:
    lines = str(parameter_groups(model(), weight_decay=0.1)).splitlines()
    assert lines[0].split() == ["parameter", "module", "shape", "decays", "because"]
    assert lines[1].split() == [
        "0.weight",
        "Conv2d",
        "4×3×3×3",
        "yes",
        "no",
        "rule",
        "exempts",
        "it",
    ]
    assert lines[2].split() == ["0.bias", "Conv2d", "4", "no", "name", '"*bias"']
    assert lines[3].split() == ["1.weight", "BatchNorm2d", "4", "no", "in", "BatchNorm"]
    assert len(lines) == 11


def test_the_groups_go_straight_into_an_optimizer() -> None:
    net = model()
    groups = parameter_groups(net, weight_decay=Normalized(0.1, steps=100))
    opt = AdamW(groups, lr=0.1)
    assert [group["weight_decay"] for group in opt.param_groups] == [0.01, 0.0]
    assert opt.param_groups[0]["param_names"] == ["0.weight", "2.weight", "4.gain", "last.weight"]
    norm = net.get_parameter("1.weight")
    before = norm.detach().clone()
    for param in net.parameters():
        param.grad = torch.zeros_like(param)
    opt.step()
    assert torch.equal(norm, before)


def test_frozen_parameters_can_be_unfrozen() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).requires_grad_(False)
    opt = AdamW(parameter_groups(net, weight_decay=0.1), lr=0.1)
    before = net.get_parameter("0.weight").detach().clone()
    for frozen in (True, False):
        net.get_submodule("1").requires_grad_(True)
        net.get_submodule("0").requires_grad_(not frozen)
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
        assert torch.equal(net.get_parameter("0.weight").detach(), before) is frozen


def test_a_shared_parameter_is_there_once_and_left_out_if_any_name_is() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    net[1].weight = net[0].weight
    groups = parameter_groups(net, weight_decay=0.1)
    assert names(groups) == [{"0.weight"}, {"0.bias", "1.bias"}]
    groups = parameter_groups(net, weight_decay=0.1, skip=["1.weight"])
    assert names(groups) == [{"0.bias", "1.bias"}, {"0.weight"}]


def test_recurrent_and_attention_biases_do_not_decay() -> None:
    for net in (nn.LSTM(2, 3), nn.MultiheadAttention(4, 2, add_bias_kv=True)):
        decaying = names(parameter_groups(net, weight_decay=0.1))[0]
        assert not [name for name in decaying if "bias" in name]


def test_a_parametrized_parameter_is_its_modules() -> None:
    net = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4))
    nn.utils.parametrizations.weight_norm(net[0], dim=0)
    nn.utils.parametrizations.weight_norm(net[1])
    groups = parameter_groups(net, weight_decay=0.1)
    prefix = "1.parametrizations.weight.original"
    assert names(groups)[0] == {f"{prefix}0", f"{prefix}1"}


def test_it_looks_at_modules_not_shapes() -> None:
    """After flattening every parameter is a vector; the decision must be the same."""
    net = model()
    before = names(parameter_groups(net, weight_decay=0.1))
    for module in net.modules():
        for name, param in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(param.detach().flatten()))
    assert names(parameter_groups(net, weight_decay=0.1)) == before


@pytest.mark.parametrize(
    ("skip", "error", "text"),
    [
        (
            ["*.scale"],
            ValueError,
            r'must match a parameter, got name "\*\.scale", which matches none',
        ),
        ([nn.Bilinear], ValueError, "must match a parameter, got in Bilinear, which matches none"),
        ("*bias", TypeError, "`skip` must be a list of module types and name patterns"),
        (nn.Linear, TypeError, "`skip` must be a list of module types and name patterns"),
        ([3], TypeError, "`skip` must list module types and name patterns, got 3"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(skip: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        parameter_groups(model(), weight_decay=0.1, skip=skip)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`model` must be a torch\.nn\.Module, got generator"):
        parameter_groups(model().parameters(), weight_decay=0.1)  # type: ignore[arg-type]


def test_a_default_rule_that_meets_nothing_is_no_error() -> None:
    net = nn.Linear(2, 2, bias=False)
    assert names(parameter_groups(net, weight_decay=0.1)) == [{"weight"}]
    assert names(parameter_groups(net, weight_decay=0.1, skip=NO_DECAY)) == [{"weight"}]


class LlamaRMSNorm(nn.Module):
    """As transformers has it: no subclass of nn.RMSNorm."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class T5LayerNorm(LlamaRMSNorm):
    """Its parent's name ends in Norm too."""


class LayerNorm2d(LlamaRMSNorm):
    pass


class MambaRMSNormGated(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class OddlyNamed(LlamaRMSNorm):
    pass


class NormalizedLinear(nn.Module):
    """No normalization layer, whatever its name begins with."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


@pytest.mark.parametrize(
    "norm", [LlamaRMSNorm, T5LayerNorm, LayerNorm2d, MambaRMSNormGated, OddlyNamed]
)
def test_a_models_own_normalization_layer_is_known_by_its_class_name(norm: Any) -> None:
    groups = parameter_groups(nn.Sequential(nn.Linear(4, 4), norm(4)), weight_decay=0.1)
    assert names(groups) == [{"0.weight"}, {"0.bias", "1.weight"}]
    [decision] = [d for d in groups.decisions if d.name == "1.weight"]
    assert decision.reason.startswith('class "*Norm')


def test_a_vector_decays_unless_it_is_a_normalization_layers_or_a_bias() -> None:
    """Shapes say nothing: a sharded matrix may be flat."""
    [decaying] = parameter_groups(nn.Sequential(NormalizedLinear(4), Scale()), weight_decay=0.1)
    assert {name for name, _ in decaying["params"]} == {"0.weight", "1.gain"}
