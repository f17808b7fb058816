"""Adam with L2 regularization, and AdamW: two ways to shrink the weights.

Algorithm 2 of Loshchilov & Hutter, 2019 (arXiv:1711.05101); a comment `# line 12` names its line.

    θ  param    g  grad        α  lr            λ  l2, weight_decay    ε  eps
    m  exp_avg  v  exp_avg_sq  η  multiplier    t  step                β₁, β₂  betas
"""

from typing import overload

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.decay import Normalized
from weightdecay.optim.arguments import documented
from weightdecay.optim.elementwise import Elementwise
from weightdecay.optim.kernels import foreach, fused
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import State, TensorLists
from weightdecay.optim.rates import Group
from weightdecay.optim.scheduled import AnySchedule, Groups, Parameters


def adam_(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    *,
    step: float,
    multiplier: float,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    l2: float = 0.0,
    weight_decay: float = 0.0,
) -> None:
    """Lines 6 to 12, in place; `step` is line 4's t, `grad` line 5's, `multiplier` line 11's η.

    t counts this parameter's own updates, from 1.
    """
    beta1, beta2 = betas
    if l2:
        grad = grad + l2 * param  # line 6
    exp_avg.lerp_(grad, 1 - beta1)  # line 7
    exp_avg_sq.lerp_(grad.square(), 1 - beta2)  # line 8
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        # Not in the paper: AMSGrad keeps the largest second moment so far.
        second = torch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
    mean = exp_avg / (1 - beta1**step)  # line 9
    square = second / (1 - beta2**step)  # line 10
    direction = mean / (square.sqrt() + eps)
    param -= multiplier * (lr * direction + weight_decay * param)  # line 12


def _reference(param: Tensor, grad: Tensor, state: State, group: Group, multiplier: float) -> None:
    adam_(
        param,
        grad,
        state["exp_avg"],
        state["exp_avg_sq"],
        state["max_exp_avg_sq"] if group["amsgrad"] else None,
        step=state["step"].item(),
        multiplier=multiplier,
        lr=group["base"],
        betas=group["betas"],
        eps=group["eps"],
        l2=group.get("l2", 0.0),
        weight_decay=group.get("weight_decay", 0.0),
    )


def _foreach(lists: TensorLists, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Lines 6 to 12, with multi-tensor operations."""
    params, exp_avgs = lists.params, lists.states["exp_avg"]
    exp_avg_sqs = lists.states["exp_avg_sq"]
    beta1, beta2 = group["betas"]
    counts = [step.item() for step in lists.steps]
    grads = foreach.regularized(params, grads, group)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)  # line 7
    squares = torch._foreach_mul(grads, grads)
    torch._foreach_lerp_(exp_avg_sqs, squares, 1 - beta2)  # line 8
    if group["amsgrad"]:
        exp_avg_sqs = lists.states["max_exp_avg_sq"]
        torch._foreach_maximum_(exp_avg_sqs, lists.states["exp_avg_sq"])
    directions = torch._foreach_div(exp_avgs, [1 - beta1**t for t in counts])  # line 9
    scales = torch._foreach_div(exp_avg_sqs, [1 - beta2**t for t in counts])  # line 10
    torch._foreach_sqrt_(scales)
    torch._foreach_add_(scales, group["eps"])
    torch._foreach_div_(directions, scales)
    foreach.decay(params, group, multiplier)
    torch._foreach_add_(params, directions, alpha=-multiplier * group["base"])  # line 12


def _fused(lists: TensorLists, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Lines 6 to 12, by torch's fused kernel, which decays by lr · weight_decay."""
    lr = multiplier * group["base"]
    decoupled = "weight_decay" in group
    decay = group["weight_decay"] if decoupled else group["l2"]
    if decoupled and decay:
        decay = (1 - fused.factor(lists, group, multiplier)) / lr if lr else 0.0
    step = torch._fused_adamw_ if decoupled else torch._fused_adam_
    step(
        lists.params,
        grads,
        lists.states["exp_avg"],
        lists.states["exp_avg_sq"],
        lists.states.get("max_exp_avg_sq", []),
        lists.steps,
        lr=lr,
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=decay,
        eps=group["eps"],
        amsgrad=group["amsgrad"],
        maximize=group["maximize"],
    )


def _numbers(group: Group, step: float) -> tuple[float, ...]:
    # Powers are computed by Python, since numpy's may differ in the last bit.
    beta1, beta2 = group["betas"]
    corrections = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    return 1 - beta1, 1 - beta2, group["eps"], *corrections


def _check(group: Group) -> None:
    if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
        raise TypeError(f"`betas` must be a pair of numbers, got {group['betas']!r}.")
    group["betas"] = tuple(
        checks.number("betas", beta, at_least=0, below=1) for beta in group["betas"]
    )
    group["eps"] = checks.number("eps", group["eps"], at_least=0)
    checks.flag("amsgrad", group["amsgrad"])


ALGORITHM_2 = Algorithm(
    name="Adam",
    options=("betas", "eps", "amsgrad"),
    check=_check,
    variant=lambda group: "amsgrad" if group["amsgrad"] else "adam",
    states={
        "adam": ("exp_avg", "exp_avg_sq"),
        "amsgrad": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
    },
    counts=True,
    reference=_reference,
    foreach=_foreach,
    fused=_fused,
    numbers=_numbers,
)


@documented()
class Adam(Elementwise):
    """Adam with L2 regularization (Algorithm 2): `l2 * θ` is added to the gradient and adapted.

    `torch.optim.Adam` calls `l2` `weight_decay`. Weights with large typical gradients are
    regularized less than others, which is the paper's reason for AdamW.
    """

    algorithm = ALGORITHM_2

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        l2: float = 0.0,
        amsgrad: bool = False,
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
            betas=betas,
            eps=eps,
            l2=l2,
            amsgrad=amsgrad,
            maximize=maximize,
            rounding=rounding,
            state_dtype=state_dtype,
        )


@documented()
class AdamW(Elementwise):
    """Adam with decoupled weight decay (Algorithm 2).

    Each step shrinks the weights by `weight_decay`, whatever `lr` is; a schedule scales both.
    `torch.optim.AdamW` shrinks them by `lr * weight_decay`: to get the same, pass
    `weight_decay = lr * its_weight_decay`. A number that is at least 0.01 and at least `3 * lr`
    was probably meant as torch's and triggers a warning; a `Normalized` never does.
    `weight_decay` is required, unless every group has its own.
    """

    algorithm = ALGORITHM_2

    @overload
    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = ...,
        *,
        betas: tuple[float, float] = ...,
        eps: float = ...,
        weight_decay: float | Normalized,
        amsgrad: bool = ...,
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
        lr: float | Tensor = ...,
        *,
        betas: tuple[float, float] = ...,
        eps: float = ...,
        weight_decay: float | Normalized | None = ...,
        amsgrad: bool = ...,
        maximize: bool = ...,
        schedule: AnySchedule = ...,
        kernel: str | None = ...,
        rounding: str = ...,
        state_dtype: str = ...,
    ) -> None: ...

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | Normalized | None = None,
        amsgrad: bool = False,
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
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            rounding=rounding,
            state_dtype=state_dtype,
        )
