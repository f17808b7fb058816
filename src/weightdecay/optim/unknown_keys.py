"""Which names are refused: every unknown argument, and those keys of a group that look wrong.

A group may carry a user's own keys (`lr_scale`, `group_name`). These are not taken for one: a name
of ours that the class does not have, a misspelt name, and an argument of torch's.
"""

from collections.abc import Iterable

from weightdecay import checks
from weightdecay.optim.rates import OURS

# Every argument of ours.
_NAMES = {"lr", "betas", "momentum", "eps", "l2", "weight_decay", "amsgrad", "nesterov"}
_NAMES |= {"maximize", "rounding", "state_dtype", "kernel", "schedule"}
# What torch and we put into a group.
_OF_A_GROUP = {"params", "param_names", "initial_lr", *OURS}
# What torch chooses its kernels by, and what changes its results.
_TORCHS_KERNELS = {"fused", "foreach", "capturable", "differentiable"}
_TORCHS = {"dampening", "decoupled_weight_decay"}


def looks_wrong(key: str, known: Iterable[str]) -> bool:
    """Whether a key that a class does not have is surely not a user's own.

    `known` are the names that the class has.
    """
    if key in _OF_A_GROUP:
        return False
    return key in _NAMES | _TORCHS | _TORCHS_KERNELS or _meant(key, known) is not None


def refuse(unknown: Iterable[str], *, owner: str, known: Iterable[str]) -> None:
    """Raise if there are names that a class does not have, and say what to write instead."""
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
    raise TypeError(
        f"{problem}.{f' Did you mean {asked}?' if asked else ''} It has "
        f"{', '.join(f'`{name}`' for name in listed)}. L2 regularization is `l2` of SGD and Adam, "
        "decoupled decay is `weight_decay` of SGDW and AdamW."
    )


def _meant(key: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant; not for a longer one that begins with it."""
    name = checks.nearest(key, {*_NAMES, *known} - {key}, cutoff=0.8)
    if name is None or key in checks.ALSO_CALLED:
        return name
    return name if abs(len(name) - len(key)) <= 2 else None
