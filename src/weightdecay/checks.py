"""Checks of numbers and names, with one form of error everywhere: requirement, value, cure."""

import difflib
import functools
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: Names that other libraries use, and ours for the same thing.
ALSO_CALLED = {
    "lambda": "weight_decay",
    "wd": "weight_decay",
    "alpha": "lr",
    "learning_rate": "lr",
    "epsilon": "eps",
    "beta1": "betas",
    "beta2": "betas",
    "optimizer": "algorithm",
    "dataset": "task",
    "gpu": "cuda",
    "t_max": "steps",
    "total_iters": "steps",
    "t_0": "first",
    "t_mult": "factor",
    "milestones": "at",
    "gamma": "drop",
}


def number(
    name: str,
    value: object,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    cure: str = "",
) -> float:
    """Return `value` as a float, or raise; NaN and infinity are always refused."""
    # float comes first: checking an abstract class is slow, and this runs in every update.
    if isinstance(value, bool) or not isinstance(value, (float, numbers.Real)):
        raise TypeError(_message(name, "a number", value, cure))
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not (at_least <= real < below and real > above):
        raise ValueError(_message(name, _interval(at_least, above, below), value, cure))
    return real


def whole(name: str, value: object, *, at_least: int, cure: str = "") -> int:
    """Return `value` as an int, or raise unless it is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, (int, numbers.Integral)):
        raise TypeError(_message(name, "a whole number", value, cure))
    integer = int(value)
    if integer < at_least:
        raise ValueError(_message(name, f"at least {at_least}", value, cure))
    return integer


def text(name: str, value: object) -> str:
    """Return `value`, or raise unless it is text."""
    if not isinstance(value, str):
        raise TypeError(_message(name, "text", value, ""))
    return value


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value`, or raise unless it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        if not isinstance(value, str):
            raise TypeError(_message(name, f"one of {listed}", value, ""))
        raise ValueError(_message(name, f"one of {listed}", value, did_you_mean(value, choices)))
    return value


def options(
    owner: str, given: Iterable[str], known: Collection[str], required: Iterable[str] = ()
) -> None:
    """Raise if a given option is unknown, or a required one is missing.

    `owner` is the name that has the options: `mlp` in `mlp,width=32`.
    """
    given = list(given)
    has = f"Its options are {', '.join(known)}." if known else "It has no options."
    for option in given:
        if option not in known:
            problem = (
                f"Unknown option `{option}` for {owner}. {did_you_mean(option, known)}".rstrip()
            )
            raise ValueError(f"{problem} {has}")
    for option in required:
        if option not in given:
            raise ValueError(f"{owner} needs the option `{option}`. {has}")


def nearest(name: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the choice that a misspelt name probably means, or None."""
    by_lower_case = {choice.lower(): choice for choice in choices}
    known_as = by_lower_case.get(ALSO_CALLED.get(name.lower(), ""))
    if known_as is not None:
        return known_as
    found = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=cutoff)
    return by_lower_case[found[0]] if found else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return "Did you mean …?" with the nearest choice; empty if none is near."""
    meant = nearest(name, choices)
    return "" if meant is None else f"Did you mean `{meant}`?"


def arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a method so that an unknown argument is refused with the name that was meant."""
    _, *known = inspect.signature(function).parameters
    owner = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in known:
                problem = f"{owner} has no `{name}`. {did_you_mean(name, known)}".rstrip()
                has = f"It has {', '.join(f'`{each}`' for each in known)}." if known else ""
                raise TypeError(f"{problem} {has}".rstrip())
        return function(*args, **named)

    return checked


def constructor(cls: type[T]) -> type[T]:
    """Wrap the constructor of a class like `arguments`; for dataclasses, whose own is generated."""
    cls.__init__ = arguments(cls.__init__)  # type: ignore[method-assign]
    return cls


def flag(name: str, value: object) -> bool:
    """Return `value`, or raise unless it is a bool: 0, 1 and "no" are refused."""
    if not isinstance(value, bool):
        raise TypeError(_message(name, "True or False", value, ""))
    return value


def _interval(at_least: float, above: float, below: float) -> str:
    if not math.isinf(below):
        return f"in [{at_least:g}, {below:g})"
    if above > at_least:
        return f"finite and above {above:g}"
    return "finite" if math.isinf(at_least) else f"finite and at least {at_least:g}"


def _message(name: str, requirement: str, value: object, cure: str) -> str:
    return f"`{name}` must be {requirement}, got {value!r}. {cure}".rstrip()
