"""Loading a state without changing what it holds.

torch casts float32 states to a 16-bit parameter's dtype, and puts new tensors in place of those
that others may hold. Here a state keeps its dtype, values are copied into the tensors that are
there, and loading one's own state changes nothing.
"""

from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from weightdecay.optim.rates import Group, write_rates

# What says how this run computes, whatever computed the state.
_OF_THIS_RUN = ("scheduled", "rounding", "state_dtype")


def load_into(optimizer: torch.optim.Optimizer, state_dict: dict[str, Any]) -> None:
    """Copy `state_dict` into `optimizer`, with torch's hooks around it."""
    state_dict = state_dict.copy()
    for before in optimizer._optimizer_load_state_dict_pre_hooks.values():
        state_dict = before(optimizer, state_dict) or state_dict
    groups, saved_groups = optimizer.param_groups, state_dict["param_groups"]
    _check(optimizer, saved_groups)

    saved_names = chain.from_iterable(group["params"] for group in saved_groups)
    owners = [(param, group) for group in groups for param in group["params"]]
    owner_of = dict(zip(saved_names, owners, strict=True))
    loaded = {}
    for name, saved in state_dict["state"].items():
        if name in owner_of:
            param, group = owner_of[name]
            kept = optimizer.state.get(param, {})  # which others may hold
            merged = _merged(dict(kept), saved, param, group)
            kept.clear()
            kept.update(merged)
            loaded[param] = kept
        else:  # state of no parameter, as torch keeps it
            loaded[name] = deepcopy(saved)
    optimizer.state.clear()
    optimizer.state.update(loaded)
    for group, saved in zip(groups, saved_groups, strict=True):
        _load_group(group, saved)
    write_rates(groups, [float(saved["lr"]) for saved in saved_groups])

    for after in optimizer._optimizer_load_state_dict_post_hooks.values():
        after(optimizer)


def _check(optimizer: torch.optim.Optimizer, saved_groups: list[Group]) -> None:
    groups = optimizer.param_groups
    sizes, saved_sizes = ([len(group["params"]) for group in g] for g in (groups, saved_groups))
    if sizes != saved_sizes:
        raise ValueError(
            f"A state must be loaded into groups of the sizes it was saved with, {saved_sizes}, "
            f"got {sizes}."
        )
    name = type(optimizer).__name__
    for group, saved in zip(groups, saved_groups, strict=True):
        if "base" not in saved:
            raise ValueError(
                f"A state loaded into {name} must be one of weightdecay's, got one whose groups "
                "have no 'base'. One saved by torch.optim.AdamW, Adam or SGD can be loaded into "
                "ours of that name after weightdecay.from_torch(state_dict)."
            )
        if saved["scheduled"] and not group["scheduled"]:
            raise ValueError(
                f"A state saved under a schedule must be loaded into a {name} with one, got none: "
                "lr would stay where it was. Build with the same `schedule`."
            )
        own = [key for key in optimizer.defaults if key in group and key not in _OF_THIS_RUN]
        missing = sorted(key for key in own if key not in saved)
        if missing:
            raise ValueError(
                f"A state loaded into {name} must have been saved by {name}, got one whose groups "
                f"have no {', '.join(map(repr, missing))}."
            )


def _merged(existing: Any, saved: Any, param: Tensor, group: Group, key: Any = None) -> Any:
    if isinstance(saved, dict):
        kept = existing if isinstance(existing, dict) else {}
        return {k: _merged(kept.get(k), v, param, group, k) for k, v in saved.items()}
    if isinstance(saved, (list, tuple)):
        same = isinstance(existing, (list, tuple)) and len(existing) == len(saved)
        pairs = zip(existing if same else [None] * len(saved), saved, strict=True)
        return type(saved)(_merged(old, new, param, group) for old, new in pairs)
    if not isinstance(saved, Tensor):
        return deepcopy(saved)
    if (
        isinstance(existing, Tensor)
        and existing.shape == saved.shape
        and existing.dtype == saved.dtype
    ):
        return existing.copy_(saved)
    # torch's own rule: a count of steps stays on the host unless a kernel reads it on the device.
    on_host = key == "step" and not (group.get("capturable") or group.get("fused"))
    return saved.detach().to(saved.device if on_host else param.device, copy=True)


def _load_group(group: Group, saved: Group) -> None:
    for key, value in saved.items():
        if key in ("params", "lr", *_OF_THIS_RUN):
            continue
        if isinstance(value, Tensor):
            group[key] = value.item() if key in group else value.detach().clone()
        else:
            group[key] = deepcopy(value)
