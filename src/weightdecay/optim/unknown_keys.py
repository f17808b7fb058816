"""Which names are refused: every unknown argument, and keys of a group that look like mistakes.

A group may have keys of the user's own (`lr_scale`, `group_name`). Refused are arguments of our
other classes, misspelt names, and arguments of torch's classes.
"""

from collections.abc import Iterable

from weightdecay import checks
from weightdecay.optim.rates import OURS

# The arguments of our classes, less those that only describe a schedule.
_NAMES = {"lr", "betas", "momentum", "eps", "l2", "weight_decay", "amsgrad", "nesterov"}
_NAMES |= {"maximize", "rounding", "state_dtype", "kernel", "schedule", "normalized_decay"}
# Keys that torch and this package add to a group.
_OF_A_GROUP = {"params", "param_names", "initial_lr", *OURS}
# Arguments of torch that choose its kernels, and arguments that change its results.
_TORCHS_KERNELS = {"fused", "foreach", "capturable", "differentiable"}
_TORCHS = {"dampening", "decoupled_weight_decay"}
# What to write instead of a name (the first) where a class has another (the second).
_INSTEAD = {
    ("weight_decay", "normalized_decay"): "Pass λ_norm as `normalized_decay`: a cycle of N updates "
    "has λ = λ_norm/√N. For the same λ in every cycle, use AdamW or SGDW with "
    "`schedule=WarmRestarts(first)`.",
    ("normalized_decay", "weight_decay"): "Pass `weight_decay=Normalized(λ_norm)`.",
    ("schedule", "first"): "Its schedule is `WarmRestarts(first)`. For another one, use AdamW or "
    "SGDW.",
}
_WAYS = (
    "L2 regularization is `l2` of SGD and Adam, decoupled decay is `weight_decay` of SGDW and "
    "AdamW."
)


def looks_wrong(key: str, known: Iterable[str]) -> bool:
    """Whether an unknown key is a mistake and not a key of the user's own.

    `known` are the names that the class has.
    """
    if key in _OF_A_GROUP:
        return False
    return key in _NAMES | _TORCHS | _TORCHS_KERNELS or _meant(key, known) is not None


def refuse(unknown: Iterable[str], *, owner: str, known: Iterable[str]) -> None:
    """Raise if there are unknown names, and say what to write instead."""
    names = sorted(unknown)
    if not names:
        return
    problem = f"{owner} has no {', '.join(f'`{name}`' for name in names)}"
    if any(name in _TORCHS_KERNELS for name in names):
        raise TypeError(
            f"{problem}. Leave it out: the fastest kernel is chosen; `kernel=` forces one."
        )
    listed = [name for name in known if name not in OURS]
    meant = [_meant(name, listed) for name in names]
    asked = ", ".join(f"`{name}`" for name in dict.fromkeys(meant) if name in listed)
    instead = [_INSTEAD[name, has] for name in names for has in listed if (name, has) in _INSTEAD]
    raise TypeError(
        f"{problem}.{f' Did you mean {asked}?' if asked else ''} It has "
        f"{', '.join(f'`{name}`' for name in listed)}. {' '.join(instead) or _WAYS}"
    )


def _meant(key: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant, unless the lengths differ by more than 2."""
    name = checks.nearest(key, {*_NAMES, *known} - {key}, cutoff=0.8)
    if name is None or key in checks.ALSO_CALLED:
        return name
    return name if abs(len(name) - len(key)) <= 2 else None
