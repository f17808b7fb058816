"""From an algorithm's few lines of maths to an optimizer over any parameters.

`sgd.py` and `adam.py` say what happens to one float tensor. Here that is done to every parameter
that has a gradient: complex ones as pairs of real numbers, 16-bit ones in float32 with stochastic
rounding at the end, so that the decay is inside the rounded quantity.
"""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from weightdecay import checks
from weightdecay.optim.rounding import SIXTEEN_BIT, round_into
from weightdecay.optim.scheduled import Group, Multiplier, ScheduledOptimizer

State = dict[str, Any]

# Keys that a group may have beside its optimizer's own: torch's, and what identifies it to a user.
_ALLOWED = {"params", "param_names", "name", "initial_lr"}
_OURS = {"base", "updates", "scheduled", "normalized"}


class Elementwise(ScheduledOptimizer):
    """An optimizer whose update of an element needs that element alone."""

    @abstractmethod
    def _new_state(self, param: Tensor, group: Group) -> State:
        """Return the state of a parameter before its first update."""

    @abstractmethod
    def _advance(
        self, param: Tensor, grad: Tensor, state: State, group: Group, multiplier: float
    ) -> None:
        """Update a float tensor and its state in place."""

    def _check(self, group: Group) -> None:
        super()._check(group)
        unknown = sorted(set(group) - set(self.defaults) - _ALLOWED - _OURS)
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no {', '.join(f'`{key}`' for key in unknown)}; it has "
                f"{', '.join(f'`{key}`' for key in self.defaults if key not in _OURS)}. "
                "L2 regularization is `l2` of SGD and Adam, decoupled decay is `weight_decay` of "
                "SGDW and AdamW."
            )
        checks.flag("maximize", group["maximize"])
        if "l2" in group:
            group["l2"] = checks.number("l2", group["l2"], at_least=0)

    def _update(self, multipliers: list[Multiplier]) -> None:
        params = (
            (param, group, multiplier)
            for group, multiplier in zip(self.param_groups, multipliers, strict=True)
            for param in group["params"]
        )
        for number, (param, group, multiplier) in enumerate(params):
            if param.grad is not None:
                self._update_one(param, group, multiplier, number)

    def _update_one(self, param: Tensor, group: Group, multiplier: Multiplier, number: int) -> None:
        grad = param.grad
        assert grad is not None
        if grad.is_sparse:
            raise RuntimeError(
                f"{type(self).__name__} must be given dense gradients, got a sparse one. Decay and "
                "momentum move every row: use sparse=False, or param.grad.to_dense()."
            )
        state = self.state[param]
        if not state:
            state.update(self._new_state(param, group))
        if multiplier is None:
            return
        if param.is_complex():
            param, grad = torch.view_as_real(param), torch.view_as_real(grad)
            state = {key: _real(value) for key, value in state.items()}
        if group["maximize"]:
            grad = -grad
        if param.dtype in SIXTEEN_BIT:
            value = param.float()
            self._advance(value, grad.float(), state, group, multiplier)
            round_into(param, value, update=group["updates"], tensor=number)
        else:
            self._advance(param, grad, state, group, multiplier)


def zeros(param: Tensor) -> Tensor:
    """Return a zero state for a parameter: float32 where the parameter has 16 bits."""
    dtype = torch.float32 if param.dtype in SIXTEEN_BIT else param.dtype
    return torch.zeros_like(param, dtype=dtype)


def _real(value: Any) -> Any:
    return torch.view_as_real(value) if torch.is_tensor(value) and value.is_complex() else value
