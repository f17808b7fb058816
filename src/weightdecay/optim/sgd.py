"""SGD with L2 regularization, and SGDW: equal for plain SGD, but not with momentum or a schedule.

Algorithm 1 of Loshchilov & Hutter, 2019 (arXiv:1711.05101); a comment `# line 9` names its line.

    θ  param             g  grad        α  lr            λ  l2, weight_decay
    m  momentum_buffer   β₁ momentum    η  multiplier

The schedule is inside the momentum: m sums η·α·g, so each gradient keeps the step size of its own
update. `torch.optim.SGD` multiplies the whole buffer by the current lr instead. The two agree while
lr is constant.
"""

from typing import overload

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.decay import Normalized
from weightdecay.optim.arguments import documented
from weightdecay.optim.elementwise import Elementwise
from weightdecay.optim.kernels import foreach
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Slot, State, TensorLists
from weightdecay.optim.rates import Group
from weightdecay.optim.scheduled import AnySchedule, Groups, Parameters


def sgd_(
    param: Tensor,
    grad: Tensor,
    momentum_buffer: Tensor | None,
    *,
    multiplier: float,
    lr: float,
    momentum: float,
    nesterov: bool,
    l2: float = 0.0,
    weight_decay: float = 0.0,
) -> None:
    """Lines 6 to 9, in place; `grad` is line 5's, `multiplier` line 7's η.

    Without momentum there is no buffer: m is the step itself.
    """
    if l2:
        grad = grad + l2 * param  # line 6
    step = multiplier * lr * grad
    if momentum_buffer is not None:
        momentum_buffer.mul_(momentum).add_(step)  # line 8
        # Not in the paper: Nesterov's step is the buffer after one more update by the same g.
        step = step + momentum * momentum_buffer if nesterov else momentum_buffer
    param -= step + multiplier * weight_decay * param  # line 9


def _reference(param: Tensor, grad: Tensor, state: State, group: Group, multiplier: float) -> None:
    sgd_(
        param,
        grad,
        state.get("momentum_buffer"),
        multiplier=multiplier,
        lr=group["base"],
        momentum=group["momentum"],
        nesterov=group["nesterov"],
        l2=group.get("l2", 0.0),
        weight_decay=group.get("weight_decay", 0.0),
    )


def _foreach(lists: TensorLists, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Lines 6 to 9, with multi-tensor operations."""
    params, momentum = lists.params, group["momentum"]
    grads = foreach.regularized(params, grads, group)
    foreach.decay(params, group, multiplier)
    rate = multiplier * group["base"]
    if not momentum or group["nesterov"]:
        torch._foreach_add_(params, grads, alpha=-rate)
    if momentum:
        buffers = lists.states["momentum_buffer"]
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_add_(buffers, grads, alpha=rate)  # line 8
        torch._foreach_add_(params, buffers, alpha=-momentum if group["nesterov"] else -1.0)


def _fused(lists: TensorLists, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Lines 6 to 9, by torch's fused kernel; its `dampening` puts η·α inside the momentum.

    The decay is a step of plain SGD with the weights as gradients, at rate η·λ. A multi-tensor
    multiplication would be one call per tensor on the CPU, and with many tensors slower than all
    the rest.
    """
    rate, momentum = multiplier * group["base"], group["momentum"]
    if group.get("weight_decay"):
        torch._fused_sgd_(
            lists.params,
            lists.params,
            [],
            weight_decay=0.0,
            momentum=0.0,
            lr=multiplier * group["weight_decay"],
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )
    torch._fused_sgd_(
        lists.params,
        grads,
        lists.states.get("momentum_buffer", []),
        weight_decay=group.get("l2", 0.0),
        momentum=momentum,
        lr=1.0 if momentum else rate,
        dampening=1 - rate if momentum else 0.0,
        nesterov=False,
        maximize=group["maximize"],
        is_first_step=False,
    )


def _fused_unfit(slot: Slot, group: Group) -> str | None:
    if group["nesterov"]:
        return "momentum without nesterov, got nesterov=True"
    if group["momentum"] and slot.param.dtype is torch.float64:
        return "float32 parameters, got float64: 1 − dampening would lose digits of the rate"
    return None


def _variant(group: Group) -> str:
    if group["momentum"]:
        return "nesterov" if group["nesterov"] else "momentum"
    return "plain"


def _check(group: Group) -> None:
    group["momentum"] = checks.number("momentum", group["momentum"], at_least=0, below=1)
    if checks.flag("nesterov", group["nesterov"]) and not group["momentum"]:
        raise ValueError(
            "`momentum` must be above 0 with nesterov=True, got 0. Nesterov's step uses the "
            "momentum."
        )


ALGORITHM_1 = Algorithm(
    name="SGD",
    options=("momentum", "nesterov"),
    check=_check,
    variant=_variant,
    states={
        "plain": (),
        "momentum": ("momentum_buffer",),
        "nesterov": ("momentum_buffer",),
    },
    reference=_reference,
    foreach=_foreach,
    fused=_fused,
    fused_unfit=_fused_unfit,
    numbers=lambda group, _: (group["momentum"], 0.0, 0.0, 0.0, 0.0),
)


@documented()
class SGD(Elementwise):
    """SGD with L2 regularization (Algorithm 1): `l2 * θ` is added to the gradient.

    `torch.optim.SGD` calls `l2` `weight_decay`. Its effect is proportional to `lr`, so the two must
    be tuned together.
    """

    algorithm = ALGORITHM_1

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        *,
        momentum: float = 0.9,
        l2: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        schedule: AnySchedule = None,
        kernel: str | None = None,
        rounding: str = "stochastic",
        state_dtype: str = "float32",
    ) -> None:
        super().__init__(
            params,
            schedule=schedule,
            kernel=kernel,
            lr=lr,
            momentum=momentum,
            l2=l2,
            nesterov=nesterov,
            maximize=maximize,
            rounding=rounding,
            state_dtype=state_dtype,
        )


@documented()
class SGDW(Elementwise):
    """SGD with decoupled weight decay (Algorithm 1).

    Each step shrinks the weights by `weight_decay`, whatever `lr` is; a schedule scales both. torch
    has no SGDW: the `weight_decay` of `torch.optim.SGD` is the `l2` of our SGD. Only without
    momentum does `weight_decay = lr * its_weight_decay` do the same. A number that is at least 0.01
    and at least `3 * lr` triggers a warning, as in AdamW. `weight_decay` is required, unless every
    group has its own.
    """

    algorithm = ALGORITHM_1

    @overload
    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor,
        *,
        momentum: float = ...,
        weight_decay: float | Normalized,
        nesterov: bool = ...,
        maximize: bool = ...,
        schedule: AnySchedule = ...,
        kernel: str | None = ...,
        rounding: str = ...,
        state_dtype: str = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        params: Groups,
        lr: float | Tensor,
        *,
        momentum: float = ...,
        weight_decay: float | Normalized | None = ...,
        nesterov: bool = ...,
        maximize: bool = ...,
        schedule: AnySchedule = ...,
        kernel: str | None = ...,
        rounding: str = ...,
        state_dtype: str = ...,
    ) -> None: ...

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        *,
        momentum: float = 0.9,
        weight_decay: float | Normalized | None = None,
        nesterov: bool = False,
        maximize: bool = False,
        schedule: AnySchedule = None,
        kernel: str | None = None,
        rounding: str = "stochastic",
        state_dtype: str = "float32",
    ) -> None:
        super().__init__(
            params,
            schedule=schedule,
            kernel=kernel,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            rounding=rounding,
            state_dtype=state_dtype,
        )
