"""Loading a saved state without changing its values.

torch casts float32 states to a 16-bit parameter's dtype, and replaces tensors that other code may
refer to. Here a state keeps its dtype, values are copied into the existing tensors, and loading an
optimizer's own state changes nothing.
"""

from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import Tensor

from weightdecay import checks
from weightdecay.optim.rates import Group, checked_lr, normalized_of, parts, write_rates
from weightdecay.optim.rounding import unwrapped

if TYPE_CHECKING:
    from weightdecay.optim.scheduled import ScheduledOptimizer

# Keys that say how this run computes. They are not loaded.
_NOT_LOADED = ("scheduled", "rounding", "state_dtype")
# Keys that every group has in addition to the optimizer's arguments.
_KEPT = ("updates", "scheduled", "normalized")


def load_into(optimizer: "ScheduledOptimizer", state_dict: dict[str, Any]) -> None:
    """Copy `state_dict` into `optimizer`, and call torch's hooks before and after.

    Everything is checked before anything is changed.
    """
    check_form(state_dict)
    state_dict = state_dict.copy()
    for before in optimizer._optimizer_load_state_dict_pre_hooks.values():
        state_dict = before(optimizer, state_dict) or state_dict
    check_form(state_dict)
    groups, saved_groups = optimizer.param_groups, state_dict["param_groups"]
    _check_groups(optimizer, saved_groups)
    try:
        values = [_values(optimizer, *pair) for pair in zip(groups, saved_groups, strict=True)]
        rates = [checked_lr(saved["lr"]) for saved in saved_groups]
        owner_of = _owners(groups, saved_groups)
        for name, (param, number) in owner_of.items():
            state = _checked_dict(state_dict["state"].get(name, {}))
            optimizer._check_state(param, state, {**groups[number], **values[number]})
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{type(optimizer).__name__} cannot continue from this state: {error} Nothing was "
            "loaded. Load the state as it was saved."
        ) from error

    loaded = {}
    for name, saved in state_dict["state"].items():
        if name in owner_of:
            param, number = owner_of[name]
            kept = optimizer.state.get(param, {})  # other code may refer to this dict
            merged = _merged(dict(kept), saved, param, groups[number])
            kept.clear()
            kept.update(merged)
            loaded[param] = kept
        else:  # state that belongs to no parameter, kept as torch does
            loaded[name] = deepcopy(saved)
    optimizer.state.clear()
    optimizer.state.update(loaded)
    for group, new in zip(groups, values, strict=True):
        group.update(new)
    write_rates(groups, rates)

    for after in optimizer._optimizer_load_state_dict_post_hooks.values():
        after(optimizer)


def check_form(state_dict: object) -> None:
    """Raise unless this looks like what an optimizer's state_dict() returns."""
    if not isinstance(state_dict, dict):
        found = f"{state_dict!r:.80}"
    elif lacking := {"state", "param_groups"} - state_dict.keys():
        found = f"a dict without {' and '.join(map(repr, sorted(lacking)))}"
    elif not isinstance(state_dict["state"], dict):
        found = "one whose 'state' is not a dict"
    elif not isinstance(state_dict["param_groups"], (list, tuple)) or not all(
        isinstance(group, dict) and "params" in group for group in state_dict["param_groups"]
    ):
        found = "one whose 'param_groups' is not a list of dicts with 'params'"
    else:
        return
    raise TypeError(
        f"`state_dict` must be what an optimizer's state_dict() returns, got {found}. If a "
        "checkpoint has several parts, pass the optimizer's."
    )


def _check_groups(optimizer: "ScheduledOptimizer", saved_groups: list[Group]) -> None:
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
                f"A state loaded into {name} must come from weightdecay, got one whose groups have "
                "no 'base'. To load a state of torch.optim.AdamW, Adam or SGD into our class of "
                "that name, convert it first: weightdecay.from_torch(state_dict)."
            )
        own = [key for key in (*optimizer.defaults, *_KEPT) if key in group]
        missing = sorted({*own, "scheduled"} - {"rounding", "state_dtype"} - saved.keys())
        if missing:
            raise ValueError(
                f"A state loaded into {name} must have been saved by {name}, got one whose groups "
                f"have no {', '.join(map(repr, missing))}."
            )
        if saved["scheduled"] and not group["scheduled"]:
            raise ValueError(
                "A state saved with a schedule must be loaded into an optimizer with one, got "
                f"{name} without: lr would never change. Build it with the same `schedule`."
            )
        _check_names(group, saved)


def _check_names(group: Group, saved: Group) -> None:
    """Raise if both sides have names, and a state would go to a parameter of another name."""
    pairs = zip(group.get("param_names", ()), saved.get("param_names", ()), strict=False)
    for number, (name, saved_name) in enumerate(pairs):
        if unwrapped(name) != unwrapped(saved_name):
            raise ValueError(
                "A state must be loaded into parameters in the order in which it was saved, got "
                f"{name!r} at place {number} of a group where {saved_name!r} was saved. Pass the "
                "parameters in that order. If they were only renamed, remove 'param_names' from "
                "the groups of the state."
            )


def _owners(groups: list[Group], saved_groups: list[Group]) -> dict[Any, tuple[Tensor, int]]:
    """Return the parameter that each saved name refers to, and the number of its group."""
    owners = [(param, n) for n, group in enumerate(groups) for param in group["params"]]
    saved_names = chain.from_iterable(group["params"] for group in saved_groups)
    return dict(zip(saved_names, owners, strict=True))


def _checked_dict(state: object) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise TypeError(f"the state of a parameter must be a dict, got {state!r:.80}.")
    return state


def _values(optimizer: "ScheduledOptimizer", group: Group, saved: Group) -> Group:
    """Return the values that a group takes from a saved one, checked like those of a new group."""
    values: Group = {}
    for key, value in saved.items():
        if key in ("params", "lr", *_NOT_LOADED):
            continue
        if isinstance(value, Tensor):
            values[key] = value.item() if key in group else value.detach().clone()
        else:
            values[key] = deepcopy(value)
    values["base"] = checks.number("base", values["base"], at_least=0)
    values["updates"] = checks.whole("updates", values["updates"], at_least=0)
    if values.get("normalized") is not None:
        if not isinstance(values["normalized"], (tuple, list)) or len(values["normalized"]) != 3:
            raise TypeError(
                f"`normalized` must be a value, a power and steps, got {values['normalized']!r}."
            )
        values["normalized"] = parts(normalized_of(values))
        checks.number("weight_decay", values["weight_decay"], at_least=0)
    whole = {**group, **values}
    # Only our own keys are checked: torch's schedulers, for example, keep numbers in groups too.
    ours = {key: whole[key] for key in (*optimizer.defaults, *_KEPT) if key in whole}
    optimizer._check(ours)
    return values | {key: ours[key] for key in values.keys() & ours.keys()}


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
    # torch's rule: a count of steps stays on the host unless a kernel reads it on the device.
    on_host = key == "step" and not (group.get("capturable") or group.get("fused"))
    return saved.detach().to(saved.device if on_host else param.device, copy=True)
