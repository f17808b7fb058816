"""What a number must be, said the same way everywhere: requirement, value, cure."""

import math
import numbers
from collections.abc import Collection


def number(
    name: str,
    value: object,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    cure: str = "",
) -> float:
    """Return `value` as a float, or say what it should have been; NaN and infinity never pass."""
    # What it nearly always is stands first: an abstract class is slow to ask, at every update.
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
    """Return `value` as an int of at least `at_least`, or say what it should have been."""
    if isinstance(value, bool) or not isinstance(value, (int, numbers.Integral)):
        raise TypeError(_message(name, "a whole number", value, cure))
    integer = int(value)
    if integer < at_least:
        raise ValueError(_message(name, f"at least {at_least}", value, cure))
    return integer


def text(name: str, value: object) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str):
        raise TypeError(_message(name, "text", value, ""))
    return value


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        error = ValueError if isinstance(value, str) else TypeError
        raise error(_message(name, f"one of {listed}", value, ""))
    return value


def flag(name: str, value: object) -> bool:
    """Return `value` if it is a bool: 0, 1 and "no" are not."""
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
