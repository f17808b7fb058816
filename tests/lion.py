"""Lion with decoupled weight decay: an algorithm that the package does not have, in one module.

Chen et al., 2023 (arXiv:2302.06675). Its step is the sign of an interpolation between momentum and
gradient, which the momentum itself then forgets at another rate.
"""

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.decay import Normalized
from weightdecay.optim.arguments import documented
from weightdecay.optim.elementwise import Elementwise
from weightdecay.optim.kernels import foreach
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import State, TensorLists
from weightdecay.optim.rates import Group
from weightdecay.optim.scheduled import AnySchedule


def _reference(param: Tensor, grad: Tensor, state: State, group: Group, multiplier: float) -> None:
    (beta1, beta2), exp_avg = group["betas"], state["exp_avg"]
    direction = torch.lerp(exp_avg, grad, 1 - beta1).sign()
    param -= multiplier * (group["base"] * direction + group["weight_decay"] * param)
    exp_avg.lerp_(grad, 1 - beta2)


def _foreach(lists: TensorLists, grads: list[Tensor], group: Group, multiplier: float) -> None:
    (beta1, beta2), exp_avgs = group["betas"], lists.states["exp_avg"]
    grads = foreach.regularized(lists.params, grads, group)
    directions = torch._foreach_lerp(exp_avgs, grads, 1 - beta1)
    torch._foreach_sign_(directions)
    foreach.decay(lists.params, group, multiplier)
    torch._foreach_add_(lists.params, directions, alpha=-multiplier * group["base"])
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta2)


def _check(group: Group) -> None:
    betas = (checks.number("betas", beta, at_least=0, below=1) for beta in group["betas"])
    group["betas"] = tuple(betas)


@documented(betas="β₁ of the step and β₂ of the momentum")
class Lion(Elementwise):
    """Lion with decoupled weight decay."""

    algorithm = Algorithm(
        name="Lion",
        options=("betas",),
        check=_check,
        variant=lambda group: "lion",
        states={"lion": ("exp_avg",)},
        reference=_reference,
        foreach=_foreach,
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float | Normalized | None = None,
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
            weight_decay=weight_decay,
            maximize=maximize,
            rounding=rounding,
            state_dtype=state_dtype,
        )
