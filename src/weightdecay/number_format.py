"""How figures, pages and the terminal write numbers: percent, powers of two, intervals."""

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from weightdecay import checks, notation
from weightdecay.table import shown

_SIGNS = {"at least": "≥", "at most": "≤"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_BASES = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001)


class Measured(Protocol):
    """An exponent with its interval, or a bound on it, or the reason for neither."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def bound(self) -> str | None: ...
    @property
    def why(self) -> str: ...


class HasMetric(Protocol):
    """Something with errors, or with numbers of a named metric."""

    @property
    def metric(self) -> str | None: ...


class Reported(HasMetric, Protocol):
    """Something with errors or numbers of a metric, which are of one split if that is known."""

    @property
    def of(self) -> str: ...
    @property
    def tested_on(self) -> str | None: ...


def steady(value: float) -> float:
    """Return a value without its last bits, so that it rounds alike wherever it was computed.

    They depend on how a sum was vectorized: 0.285 may be a little more here and less there.
    """
    return round(value, 9)


def percent(fraction: float, *, digits: int = 2) -> str:
    """Return a fraction in percent, without a line break; a dash if it is not finite."""
    return (
        f"{steady(100 * fraction):.{digits}f}\N{NO-BREAK SPACE}%"
        if math.isfinite(fraction)
        else "–"
    )


def measured(value: float, metric: str | None, *, digits: int = 2) -> str:
    """Return an error in percent, or a number of a task's own `metric` as it is."""
    if metric is None:
        return percent(value, digits=digits)
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "–"


def in_units(value: float, metric: str | None) -> float:
    """Return an error in the unit of pictures: percent, or the unit of a task's own metric."""
    return 100 * value if metric is None else value


def metric_words(measured: Iterable[HasMetric], *, unit: str = "") -> str:
    """Return what is measured: "error" with its unit, or the names of the tasks' own metrics."""
    names = (f"error{unit}" if one.metric is None else one.metric for one in measured)
    return " or ".join(dict.fromkeys(names))


def reported(landscapes: Iterable[Reported], *, unit: str = "") -> str:
    """Return what is reported: "test error", "top-5 test error", "validation loss" or "error"."""
    landscapes = list(landscapes)
    splits = {one.tested_on for one in landscapes}
    split = splits.pop() if len(splits) == 1 else None
    top = "top-5" if all(one.of == "error_top5" for one in landscapes) else None
    return " ".join(filter(None, (top, split, metric_words(landscapes, unit=unit))))


def noun(landscapes: Iterable[Reported]) -> str:
    """Return what is measured, in a word: a loss if it is that in all landscapes, or an error."""
    return "loss" if {one.of for one in landscapes} == {"loss"} else "error"


def number(value: float, *, digits: int = 2) -> str:
    """Return a number with `digits` decimals and a typographic minus sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{steady(value):.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def power(value: float, *, base: float = 1.0) -> str:
    """Return a value as a power of two, times a base other than 1; other values in digits.

    power(0.125) is 2⁻³, and power(0.000125, base=0.001) is 0.001·2⁻³.
    """
    exponent = _exponent(value, base)
    if exponent is None:
        return f"{value:.3g}".replace("-", "−")
    raised = "2" + str(exponent).translate(_SUPERSCRIPTS)
    return raised if base == 1 else f"{base:g}·{raised}"


def shared_base(values: Iterable[float]) -> float | None:
    """Return the base of which all values are powers of two: 1, 0.1, 0.01 and so on, or None."""
    values = [value for value in values if value]
    for candidate in _BASES:
        if all(_exponent(value, candidate) is not None for value in values):
            return candidate
    return None


def typed(value: float) -> str:
    """Return a number as a TOML grid has it: 2^-6, 0.05, or 0.001*2^-9 instead of many digits."""
    digits, base = shown(value), shared_base([value])
    if base is None or not 0 < value < 1 or (base != 1 and float(digits) == value):
        return digits
    written = f"{base:g}*2^{round(math.log2(value / base))}".removeprefix("1*")
    return written if notation.number(written) == value else digits


def between(low: str, high: str) -> str:
    """Return the ends of a 95 % interval, as every text has them: [0.81, 1.05]."""
    return f"[{low}, {high}]"


def interval(exponent: Measured, *, symbol: str = "s", reason: bool = True) -> str:
    """Return an exponent in words: s = 0.93 [0.81, 1.05], s ≥ 0.4 or s unknown, with the reason.

    A missing interval is left out, and an open end is infinite. The reason is optional.
    """
    if exponent.value is None or math.isnan(exponent.value):
        said = f"{symbol} unknown"
    elif exponent.bound is not None:
        sign = _SIGNS[checks.one_of("bound", exponent.bound, _SIGNS)]
        said = f"{symbol} {sign} {number(exponent.value)}"
    else:
        said = f"{symbol} = {number(exponent.value)}"
        if not (math.isnan(exponent.low) or math.isnan(exponent.high)):
            said += f" {between(number(exponent.low), number(exponent.high))}"
    why = exponent.why.strip().rstrip(".") if reason else ""
    return f"{said}: {why}" if why else said


def _exponent(value: float, base: float) -> int | None:
    """Return the exponent if value/base is a whole power of two, up to decimal rounding."""
    if not (math.isfinite(value) and value > 0):
        return None
    exponent = math.log2(value / base)
    near = round(exponent)
    return near if abs(exponent - near) < 1e-6 else None


def joined(words: Sequence[str], *, last: str = "and") -> str:
    """Return words as a sentence lists them: a, b and c."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
