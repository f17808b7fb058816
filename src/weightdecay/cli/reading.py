"""What a person types: numbers such as 2^-9, and options as they are spelled."""

import argparse
import math
import re
from collections.abc import Container
from typing import TypeAlias

#: What `add_subparsers` returns: where a command adds itself.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

NUMBERS = "Numbers may be written 0.05, 2^-9 or 1/4*0.001."
_SPELLED = {"source": "--from"}


def option(name: str) -> str:
    """Return the option of a name: --half-life for half_life."""
    return _SPELLED.get(name) or f"--{name.replace('_', '-')}"


def as_options(message: str, names: Container[str]) -> str:
    """Say `half_life` as it is typed here, --half-life, where it is one of the names."""
    return re.sub(
        r"`(\w+)`", lambda found: option(found[1]) if found[1] in names else found[0], message
    )


def number(text: str) -> float:
    """Read 0.05, 2^-9, 1/4*0.001."""
    parts = re.split(r"([*/])", text.replace(" ", ""))
    value = 1.0
    for operator, factor in zip(["*", *parts[1::2]], parts[::2], strict=True):
        base, caret, exponent = factor.partition("^")
        try:
            power = float(base) ** (float(exponent) if caret else 1)
            value = value * power if operator == "*" else value / power
        except (ValueError, ZeroDivisionError, OverflowError):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def whole(text: str) -> int:
    """Read 60000, 2^10, 5e4."""
    value = number(text)
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def whole_or_test(text: str) -> int | str:
    """Read a whole number, or the word `test`."""
    try:
        return text if text == "test" else whole(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, nor the word test") from None
