"""Numbers as people type them: a single one, or a range.

0.05, 2^-9, 1/4*0.001    a number
2^-12..2^-5              all powers from 2^-12 to 2^-5, both ends included
0.001*2^-3..2^3          the same, each times 0.001
0..4                     whole numbers from 0 to 4
"""

import math
import re

#: How many numbers a range may have.
LONGEST = 10_000
_FORMS = "2^-12..2^-5, 0.001*2^-3..2^3 or 0..4"
_POWER = re.compile(r"(?:(?P<factor>.+)\*)?(?P<base>[^*/^]+)\^(?P<exponent>[^*/^]+)")


def number(text: str) -> float:
    """Read 0.05, 2^-9, 1/4*0.001."""
    parts = re.split(r"([*/])", text)
    value = 1.0
    try:
        for operator, factor in zip(["*", *parts[1::2]], parts[::2], strict=True):
            base, caret, exponent = factor.partition("^")
            power = math.pow(_finite(base), _finite(exponent) if caret else 1)
            value = value * power if operator == "*" else value / power
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number") from None
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def whole(text: str) -> int:
    """Read 60000, 2^10, 5e4."""
    value = number(text)
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number")
    return int(value)


def numbers(text: str) -> list[float]:
    """Read a number, or a range of them such as 2^-12..2^-5, 0.001*2^-3..2^3 or 0..4."""
    low, dots, high = text.partition("..")
    if not dots:
        return [number(text)]
    values = _powers(text, low, high) if "^" in text else _wholes(text, low, high)
    if len(set(values)) < len(values):
        raise _mistake(text, "have different numbers", "Choose another base, or other ends.")
    return values


def _wholes(text: str, low: str, high: str) -> list[float]:
    if "*" in text or "/" in text:
        raise _mistake(text, f"be written like {_FORMS}", "Only powers may have a factor.")
    return [float(value) for value in _rising(text, low, high)]


def _powers(text: str, low: str, high: str) -> list[float]:
    first, last = _POWER.fullmatch(low), _POWER.fullmatch(high)
    if first is None or last is None or last["factor"]:
        raise _mistake(text, f"be written like {_FORMS}", "Write the factor once, in front.")
    base = number(first["base"])
    if not base > 0 or base != number(last["base"]):
        cure = f"Write it as powers of one base, as in {_FORMS}."
        raise _mistake(text, "have one base, above 0", cure)
    exponents = _rising(text, first["exponent"], last["exponent"])
    factor = number(first["factor"] or "1")
    try:
        values = [factor * math.pow(base, exponent) for exponent in exponents]
    except OverflowError:
        values = [math.inf]
    if not all(value and math.isfinite(value) for value in values):
        raise _mistake(text, "have finite numbers other than 0", "Choose smaller exponents.")
    return values


def _rising(text: str, low: str, high: str) -> range:
    try:
        first, last = whole(low), whole(high)
    except ValueError as error:
        raise _mistake(
            text, f"have whole ends or exponents, as in {_FORMS}", f"One end is wrong: {error}."
        ) from None
    if first > last:
        raise _mistake(text, "go from low to high", "Swap its ends.")
    length = last - first + 1
    if length > LONGEST:
        cure = f"It has {length:,}: bring its ends closer together."
        raise _mistake(text, f"have at most {LONGEST:,} numbers", cure)
    return range(first, last + 1)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # otherwise 1/inf would be 0, and nan^0 would be 1
        raise OverflowError
    return value


def _mistake(text: str, requirement: str, cure: str) -> ValueError:
    return ValueError(f"A range must {requirement}, got {text!r}. {cure}")
