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
from weightdecay.optim.elementwise import Elementwise, zeros
from weightdecay.optim.kernels.slot import State
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
        # Not in the paper: AMSGrad never lets the second moment fall.
        second = torch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
    mean = exp_avg / (1 - beta1**step)  # line 9
    square = second / (1 - beta2**step)  # line 10
    direction = mean / (square.sqrt() + eps)
    param -= multiplier * (lr * direction + weight_decay * param)  # line 12


class _Adam(Elementwise):
    def _check(self, group: Group) -> None:
        super()._check(group)
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise TypeError(f"`betas` must be a pair of numbers, got {group['betas']!r}.")
        group["betas"] = tuple(
            checks.number("betas", beta, at_least=0, below=1) for beta in group["betas"]
        )
        group["eps"] = checks.number("eps", group["eps"], at_least=0)
        checks.flag("amsgrad", group["amsgrad"])

    def _keys(self, group: Group) -> set[str]:
        keys = {"step", "exp_avg", "exp_avg_sq"}
        return keys | {"max_exp_avg_sq"} if group["amsgrad"] else keys

    def _new_state(self, param: Tensor, group: Group) -> State:
        state = {
            "step": torch.tensor(0.0, dtype=torch.float32, device="cpu"),
            "exp_avg": zeros(param, group),
            "exp_avg_sq": zeros(param, group),
        }
        return {**state, "max_exp_avg_sq": zeros(param, group)} if group["amsgrad"] else state

    def _advance(
        self, param: Tensor, grad: Tensor, state: State, group: Group, multiplier: float
    ) -> None:
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


@documented()
class Adam(_Adam):
    """Algorithm 2 with L2 regularization: `l2` · θ is added to the gradient, and adapted with it.

    `l2` is what `torch.optim.Adam` calls `weight_decay`. Weights with large typical gradients are
    regularized less than the others: the paper's reason for AdamW.
    """

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
class AdamW(_Adam):
    """Algorithm 2 with decoupled weight decay.

    Weights shrink by `weight_decay` a step, whatever `lr` is, and a schedule scales both.
    `torch.optim.AdamW` shrinks them by `lr * weight_decay`: to reproduce it, pass
    `weight_decay = lr * its_weight_decay`. A number of at least 0.01 and ten times `lr` was
    probably meant as torch's, and is warned about; a `Normalized` never is.
    """

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
