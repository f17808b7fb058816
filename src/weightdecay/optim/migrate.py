"""Convert checkpoints of `torch.optim` to ours, and back.

Adam and AdamW: always exact. torch's AdamW decays by lr · weight_decay in every step, ours by η · λ
with η = lr/base. So with λ = base · weight_decay the decay is the same, whatever `base` is.

SGD: exact if lr was constant. torch's buffer sums gradients, Algorithm 1's sums η·α times the
gradients, so one is lr times the other only if lr never changed. A state that shows a change of lr
is refused. A change does not show if lr was set by hand or by ReduceLROnPlateau, or if a torch
schedule happens to be back at its start.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weightdecay.decay import checked_weight_decay
from weightdecay.optim.loading import check_form
from weightdecay.optim.rates import OURS
from weightdecay.optim.rounding import KEY

Group = dict[str, Any]
StateDict = dict[str, Any]

# Keys that say how torch computes, not what. A torch optimizer needs them in a state it loads.
_TORCH_ONLY: Group = {"foreach": None, "differentiable": False, "fused": None}
_SHARED = ("params", "param_names", "lr", "maximize")
# What a torch optimizer itself puts into a group. Schedulers and users may have added other keys.
_TORCH = {
    *("lr", "betas", "eps", "weight_decay", "amsgrad", "decoupled_weight_decay"),
    *("momentum", "dampening", "nesterov", "maximize", "capturable", *_TORCH_ONLY),
}
# What our optimizers put into a group.
_OURS = {
    *("lr", "betas", "eps", "weight_decay", "l2", "amsgrad", "momentum", "nesterov", "maximize"),
    *("rounding", "state_dtype", "kernel", *OURS),
}
_MOMENTUM = "momentum_buffer"


def from_torch(state_dict: StateDict, *, decoupled: bool | None = None) -> StateDict:
    """Convert a state of `torch.optim.AdamW`, `Adam` or `SGD` for our class of the same name.

    `decoupled` says whether it was AdamW (True) or Adam (False). It is needed only for states saved
    before torch 2.7, which do not say.
    """
    return _converted(state_dict, lambda group: _group_from_torch(group, decoupled), _from_buffer)


def to_torch(state_dict: StateDict) -> StateDict:
    """Convert a state of our AdamW, Adam or SGD for torch's class of the same name.

    λ is converted at its current value: the schedule and a `Normalized` decay are lost.
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
        if state.get(_MOMENTUM, state) is None:  # how torch marks a buffer that has no value yet
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
    """Return the largest known lr of a torch group: a base that its scheduler will not exceed."""
    return max(float(group.get(key, 0.0)) for key in ("lr", "initial_lr", "max_lr"))


def _group_from_torch(group: Group, decoupled: bool | None) -> Group:
    if "base" in group:
        raise ValueError("`state_dict` must come from torch.optim, got one from weightdecay.")
    lr, decay = float(group["lr"]), float(group.get("weight_decay", 0.0))
    base = largest_lr(group)
    converted = {key: group[key] for key in group if key in _SHARED or key not in _TORCH}
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
                f"`lr` must be above 0 to convert torch's weight_decay {decay:g}, got {lr:g}: λ is "
                "their product. Convert a state saved before lr fell to 0."
            )
        weight_decay = checked_weight_decay(base * decay)
        return {**converted, **kept, "weight_decay": weight_decay, "normalized": None}
    return {**converted, **kept, "l2": decay}


def _group_to_torch(group: Group) -> Group:
    if "base" not in group:
        raise ValueError("`state_dict` must come from weightdecay, got one from torch.optim.")
    base = group["base"]
    converted = {key: group[key] for key in group if key in _SHARED or key not in _OURS}
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
            "a schedule. torch keeps lr outside the buffer, Algorithm 1 has it inside. Reset the "
            "momentum by emptying state_dict['state'], or convert before the schedule starts."
        )
    return lr
