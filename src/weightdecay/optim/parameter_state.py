"""The state of one parameter: created before its first update, checked when it is loaded."""

import torch
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import State
from weightdecay.optim.rates import Group
from weightdecay.optim.rounding import KEY, ROUNDED, SIXTEEN_BIT

#: The dtypes that the states of 16-bit parameters may have.
STATE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def complete(
    state: State, param: Tensor, group: Group, algorithm: Algorithm, *, rounding_key: int
) -> None:
    """Add what a state needs for the next update and does not have yet."""
    if not algorithm.keys(group) <= state.keys():
        new = _new(param, group, algorithm)
        state |= {key: value for key, value in new.items() if key not in state}
    _set_compensation(param, state, group)
    if any(tensor.dtype in ROUNDED for tensor in (param, *_checked_tensors(param, state))):
        state.setdefault(KEY, rounding_key)


def check(param: Tensor, state: State, group: Group, algorithm: Algorithm) -> None:
    """Raise unless training can continue from a saved state."""
    keys = algorithm.keys(group)
    missing = keys - state.keys()
    if state.keys() - {KEY} and missing:  # an empty state is fine, an incomplete one is not
        raise ValueError(
            f"the state of a parameter must have {_quoted(keys)}, and "
            f"{_quoted(missing)} is missing."
        )
    for name in keys & state.keys():
        if not isinstance(state[name], Tensor):
            raise TypeError(f"`{name}` must be a tensor, got {state[name]!r}.")
    _checked_tensors(param, state)


def _new(param: Tensor, group: Group, algorithm: Algorithm) -> State:
    dtype = STATE_DTYPES[group["state_dtype"]] if param.dtype in SIXTEEN_BIT else param.dtype
    names = algorithm.states[algorithm.variant(group)]
    zeros = {name: torch.zeros_like(param, dtype=dtype) for name in names}
    step = {"step": torch.tensor(0.0, dtype=torch.float32, device="cpu")}
    return {**step, **zeros} if algorithm.counts else zeros


def _set_compensation(param: Tensor, state: State, group: Group) -> None:
    """Create the compensation if the group asks for one; otherwise add it to the parameter."""
    found = state.get("compensation")
    wanted = param.dtype in SIXTEEN_BIT and group["rounding"] == "compensated"
    if found is not None and not (wanted and found.dtype == param.dtype):
        param.add_(state.pop("compensation").to(param.dtype))
        found = None
    if wanted and found is None:
        state["compensation"] = torch.zeros_like(param)


def _checked_tensors(param: Tensor, state: State) -> list[Tensor]:
    """Return the tensors of a state, without its count of updates; raise if a shape is wrong."""
    tensors = {k: v for k, v in state.items() if isinstance(v, Tensor) and k != "step"}
    for name, value in tensors.items():
        if value.shape != param.shape:
            raise ValueError(
                f"`{name}` must have its parameter's shape {tuple(param.shape)}, got "
                f"{tuple(value.shape)}: the state belongs to another model."
            )
    return list(tensors.values())


def _quoted(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
