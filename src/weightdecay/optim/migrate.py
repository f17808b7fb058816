"""From a checkpoint of `torch.optim` to one of ours, and back.

What is exact: Adam and AdamW, always. torch's AdamW decays by lr · weight_decay at every step; ours
by η · λ with η = lr/base, so λ = base · weight_decay is the same number whatever `base` is taken.

SGD, while lr is constant: torch's buffer gathers gradients, Algorithm 1's gathers η·α times them,
so one is the other times lr only if lr has always been the same. A state in which it visibly has
not been is refused. What cannot be seen: an lr set by hand, by ReduceLROnPlateau, or by a schedule
of torch's that is just back at its start.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weightdecay.decay import checked_weight_decay
from weightdecay.optim.loading import check_form
from weightdecay.optim.rounding import KEY

Group = dict[str, Any]
StateDict = dict[str, Any]

# Keys that say how torch computes, not what; a torch optimizer wants them in what it loads.
_TORCH_ONLY: Group = {"foreach": None, "differentiable": False, "fused": None}
_SHARED = ("params", "param_names", "lr", "maximize")
_MOMENTUM = "momentum_buffer"


def from_torch(state_dict: StateDict, *, decoupled: bool | None = None) -> StateDict:
    """Turn a state of `torch.optim.AdamW`, `Adam` or `SGD` into one that our class so named loads.

    `decoupled` says whether it was AdamW (True) or Adam, where the state itself does not: before
    torch 2.7 both saved the same keys.
    """
    return _converted(state_dict, lambda group: _group_from_torch(group, decoupled), _from_buffer)


def to_torch(state_dict: StateDict) -> StateDict:
    """Turn a state of our AdamW, Adam or SGD into one that torch's class so named loads.

    λ is taken as it stands: the schedule and a `Normalized` decay stay behind.
    """
    return _converted(state_dict, _group_to_torch, _to_buffer)


def _converted(
    state_dict: StateDict,
    group_of: Callable[[Group], Group],
    buffer_of: Callable[[Group, Tensor], Tensor],
) -> StateDict:
    check_form(state_dict)
    states = {name: dict(state) for name, state in state_dict["state"].items()}
    for state in states.values():
        state.pop(KEY, None)
        if state.get(_MOMENTUM, state) is None:  # torch's mark for a buffer not yet begun
            del state[_MOMENTUM]
        if "step" in state:  # older torches saved a number
            state["step"] = torch.tensor(float(state["step"]), dtype=torch.float32, device="cpu")
    for group in state_dict["param_groups"]:
        for state in (states[name] for name in group["params"] if name in states):
            if _MOMENTUM in state:
                state[_MOMENTUM] = buffer_of(group, state[_MOMENTUM])
    updates = max((int(state.get("step", 0)) for state in states.values()), default=0)
    groups = [group_of(group) for group in state_dict["param_groups"]]
    for group in groups:
        if "updates" in group:
            group["updates"] = updates
    return {"state": states, "param_groups": groups}


def largest_lr(group: Group) -> float:
    """Return the largest lr in sight of a torch group: a base that its scheduler can go on from."""
    return max(float(group.get(key, 0.0)) for key in ("lr", "initial_lr", "max_lr"))


def _group_from_torch(group: Group, decoupled: bool | None) -> Group:
    if "base" in group:
        raise ValueError("`state_dict` must be one of torch's, got one of weightdecay's.")
    lr, decay = float(group["lr"]), float(group.get("weight_decay", 0.0))
    base = largest_lr(group)
    converted = {key: group[key] for key in _SHARED if key in group}
    converted |= {"base": base, "updates": 0, "scheduled": False}
    if "dampening" in group:
        if group["dampening"]:
            raise ValueError(
                f"`dampening` must be 0, as in Algorithm 1, got {group['dampening']!r}."
            )
        kept = {key: group[key] for key in ("momentum", "nesterov")}
        return {**converted, **kept, "l2": decay}
    if "betas" not in group or "amsgrad" not in group:
        raise ValueError(
            "`state_dict` must come from torch.optim.AdamW, Adam or SGD, got groups with "
            f"{', '.join(sorted(group))}."
        )
    kept = {key: group[key] for key in ("betas", "eps", "amsgrad")}
    if decoupled is None:
        decoupled = group.get("decoupled_weight_decay")
    if decoupled is None:
        raise ValueError(
            "`decoupled` must be given, since this state does not say whether AdamW or Adam saved "
            "it. Pass decoupled=True for AdamW, False for Adam."
        )
    if decoupled:
        if decay and not base:
            raise ValueError(
                f"`lr` must be above 0 to convert torch's weight_decay {decay:g}, got {lr:g}: "
                "their product is λ. Convert a state saved before lr fell to 0."
            )
        weight_decay = checked_weight_decay(base * decay)
        return {**converted, **kept, "weight_decay": weight_decay, "normalized": None}
    return {**converted, **kept, "l2": decay}


def _group_to_torch(group: Group) -> Group:
    if "base" not in group:
        raise ValueError("`state_dict` must be one of weightdecay's, got one of torch's.")
    base = group["base"]
    converted = {key: group[key] for key in _SHARED if key in group}
    converted |= {**_TORCH_ONLY, "initial_lr": base}
    if "amsgrad" in group:
        decoupled = "weight_decay" in group
        return {
            **converted,
            **{key: group[key] for key in ("betas", "eps", "amsgrad")},
            "capturable": False,
            "decoupled_weight_decay": decoupled,
            "weight_decay": group["weight_decay"] / (base or 1.0) if decoupled else group["l2"],
        }
    if "nesterov" not in group:
        raise ValueError(
            "`state_dict` must come from AdamW, Adam or SGD, got groups with "
            f"{', '.join(sorted(group))}."
        )
    if "l2" not in group:
        raise ValueError(
            "`state_dict` must come from AdamW, Adam or SGD, got SGDW's. torch has no SGDW: its "
            "SGD passes decay through the momentum."
        )
    kept = {key: group[key] for key in ("momentum", "nesterov")}
    return {**converted, **kept, "dampening": 0, "weight_decay": group["l2"]}


def _from_buffer(group: Group, buffer: Tensor) -> Tensor:
    return buffer * _constant_lr(
        group, changed="initial_lr" in group and _differs(group, "initial_lr")
    )


def _to_buffer(group: Group, buffer: Tensor) -> Tensor:
    return buffer / _constant_lr(group, changed=group["scheduled"] or _differs(group, "base"))


def _differs(group: Group, key: str) -> bool:
    return float(group[key]) != float(group["lr"])


def _constant_lr(group: Group, *, changed: bool) -> float:
    lr = float(group["lr"])
    if changed or lr == 0:
        raise ValueError(
            f"`lr` must have been constant and above 0 to convert SGD's momentum, got {lr:g} under "
            "a schedule. torch keeps lr outside the buffer, Algorithm 1 has it inside: begin the "
            "momentum anew by emptying state_dict['state'], or convert before the schedule starts."
        )
    return lr
