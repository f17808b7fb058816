"""What figures and pages share: one colour and one spelling for every algorithm and number.

An algorithm is known by a word: `adamw`, or `adamwr` with warm restarts. Families differ in hue
(SGD blue, Adam orange) and in dashes, their members in lightness, from L2 regularization to
decoupled decay to restarts: a print in grey and a colour-blind reader lose nothing.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from weightdecay import checks, notation
from weightdecay.records import COUPLED, DECAYS, RunConfig, Spec
from weightdecay.table import shown

#: The colour map of errors: bright is good. Its lightness falls evenly, in grey too.
COLOURS_OF_ERRORS = "viridis_r"
INK = "#1a1a1a"
MUTED = "#666666"
FAINT = "#c8c8c8"
PAPER = "#ffffff"


@dataclass(frozen=True)
class Stroke:
    """How an algorithm's line and points are drawn.

    `dashes` are lengths on and off, in widths of the line. `mark` is the shape of a point: "o",
    "s", "^" or "D", hollow for L2 regularization.
    """

    colour: str
    dashes: tuple[float, ...] = ()
    mark: str = "o"
    hollow: bool = False


_DASHED, _DOTTED, _DASH_DOTTED, _LONG = (3.6, 1.6), (1.0, 1.4), (6.0, 1.4, 1.4, 1.4), (9.0, 1.8)
STROKES = {
    "sgd": Stroke("#7fbce6", _DOTTED, "s", hollow=True),
    "sgdw": Stroke("#2b8cce", _DASH_DOTTED, "s"),
    "sgdwr": Stroke("#0b3c68", _DASH_DOTTED, "s"),
    "adam": Stroke("#f2a93b", _DASHED, hollow=True),
    "adamw": Stroke("#d9590b"),
    "adamwr": Stroke("#7a1f05"),
    "adagrad": Stroke("#5fbf9a", (5.0, 1.4, 1.4, 1.4, 1.4, 1.4), "^", hollow=True),
    "adagradw": Stroke("#17805c", _LONG, "^"),
    "amsgrad": Stroke("#cf8fc4", (1.4, 1.4, 3.6, 1.4), "D", hollow=True),
    "amsgradw": Stroke("#6f2a69", _LONG, "D"),
}
_OTHER = Stroke("#555555", (2.0, 1.2), "D")
NAMES = {
    "sgd": "SGD",
    "sgdw": "SGDW",
    "sgdwr": "SGDWR",
    "adam": "Adam",
    "adamw": "AdamW",
    "adamwr": "AdamWR",
    "adagrad": "AdaGrad",
    "adagradw": "AdaGradW",
    "amsgrad": "AMSGrad",
    "amsgradw": "AMSGradW",
}
SCHEDULES = {
    "constant": "fixed learning rate",
    "drops": "step-drop",
    "cosine": "cosine annealing",
    "restarts": "warm restarts",
}
#: What each way to state a decay is called on an axis: its words, and its symbol.
AXES = {
    "weight_decay": ("weight decay", "λ"),
    "normalized_decay": ("normalized weight decay", "λ_norm"),
    "l2": ("L₂ factor", "λ"),
}
assert set(AXES) == set(DECAYS)
#: What became of a claim: a shape for whoever sees no colour, and a colour on white and one on ink.
OUTCOMES = {
    "held": ("●", "#14704f", "#62c79c"),
    "not held": ("○", "#ad3c08", "#f0965e"),
    "not decided": ("◐", "#5c5a70", "#b3b1c6"),
}


class Measured(Protocol):
    """An exponent with its interval, or a bound on it, or why there is neither."""

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
    """What has errors, or numbers of a metric that it names."""

    @property
    def metric(self) -> str | None: ...


def word(algorithm: str, schedule: str = "cosine") -> str:
    """Return the word for a configuration's algorithm: `adamw` under restarts is `adamwr`.

    A class of another library was decoupled, so that `torch.optim:Adagrad` is `adagradw`.
    """
    spec = Spec.parse("algorithm", algorithm)
    name = spec.name
    if spec.options.get("amsgrad") is True:
        name = name.replace("adam", "amsgrad")
    if ":" in name:
        name = name.rpartition(":")[2].rpartition(".")[2] + "w"
    restarts = Spec.parse("schedule", schedule).name == "restarts"
    key = name.lower() + "r" * restarts
    return key if key in NAMES else name + "r" * restarts


def word_of(config: RunConfig, way: str) -> str:
    """Return the word for a landscape's algorithm; a class of another library with L2 has no w."""
    known = word(config.algorithm, config.schedule)
    foreign = Spec.parse("algorithm", config.algorithm).name not in COUPLED
    return known.removesuffix("w") if way == "l2" and foreign else known


def name(algorithm: str) -> str:
    """Return an algorithm's name as the paper spells it; one unknown to it ends in capitals."""
    if algorithm in NAMES:
        return NAMES[algorithm]
    body = algorithm.rstrip("wr")
    return body + algorithm[len(body) :].upper()


def titled(labels: Mapping[str, object]) -> str:
    """Return what a landscape's labels say: names as they are, numbers with what they count."""
    said = [
        value if isinstance(value, str) else f"{name} {value}" for name, value in labels.items()
    ]
    return ", ".join(said) or "all runs"


def stroke(algorithm: str) -> Stroke:
    """Return how an algorithm is drawn, in every figure the same."""
    return STROKES.get(algorithm, _OTHER)


def shades(algorithm: str, count: int) -> list[str]:
    """Return an algorithm's colour in so many lightnesses, from light to dark."""
    checks.whole("count", count, at_least=1)
    if count == 1:
        return [stroke(algorithm).colour]
    places = [2 * place / (count - 1) - 1 for place in range(count)]
    return [_mixed(stroke(algorithm).colour, place) for place in places]


def luminance(colour: str) -> float:
    """Return how bright a colour is in grey, between 0 and 1: the Y of WCAG and of sRGB."""
    linear = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in _parts(colour)
    )
    return sum(map(math.prod, zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def percent(fraction: float, *, digits: int = 2) -> str:
    """Return a fraction in percent, which no line break parts; a dash where it is not a number."""
    return f"{100 * fraction:.{digits}f}\N{NO-BREAK SPACE}%" if math.isfinite(fraction) else "–"


def measured(value: float, metric: str | None, *, digits: int = 2) -> str:
    """Return an error in percent; of a `metric` that a task has of its own, the number as it is."""
    if metric is None:
        return percent(value, digits=digits)
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "–"


def in_units(value: float, metric: str | None) -> float:
    """Return an error as a picture has it: in percent, or as it is for a metric of one's own."""
    return 100 * value if metric is None else value


def metric_words(measured: Iterable[HasMetric], *, unit: str = "") -> str:
    """Return what landscapes are of: "error", with its unit, or the names of tasks' own metrics."""
    names = (f"error{unit}" if one.metric is None else one.metric for one in measured)
    return " or ".join(dict.fromkeys(names))


def number(value: float, *, digits: int = 2) -> str:
    """Return a number with so many decimals, and with a minus sign that is as wide as a plus."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def power(value: float, *, base: float = 1.0) -> str:
    """Return a value as a power of two, times a base that is not 1; 0, and no power, as they are.

    power(0.125) is 2⁻³, and power(0.000125, base=0.001) is 0.001·2⁻³.
    """
    exponent = _exponent(value, base)
    if exponent is None:
        return f"{value:.3g}".replace("-", "−")
    raised = "2" + str(exponent).translate(_SUPERSCRIPTS)
    return raised if base == 1 else f"{base:g}·{raised}"


def shared_base(values: Iterable[float]) -> float | None:
    """Return what all values are a power of two times: 1, 0.1, 0.01, 0.001, …; None if nothing."""
    values = [value for value in values if value]
    for candidate in _BASES:
        if all(_exponent(value, candidate) is not None for value in values):
            return candidate
    return None


def typed(value: float) -> str:
    """Return a number as a study has it: 2^-6, 0.05, and 0.001*2^-9 where digits would be many."""
    digits, base = shown(value), shared_base([value])
    if base is None or not 0 < value < 1 or (base != 1 and float(digits) == value):
        return digits
    written = f"{base:g}*2^{round(math.log2(value / base))}".removeprefix("1*")
    return written if notation.number(written) == value else digits


def interval(exponent: Measured, *, symbol: str = "s", reason: bool = True) -> str:
    """Return an exponent in words: s = 0.93 [0.81, 1.05], s ≥ 0.4 or s unknown, with the reason.

    An interval that could not be had is left out; one end that is open is said as infinite. Where
    there is no room for a `reason`, it is left out too.
    """
    if exponent.value is None or math.isnan(exponent.value):
        said = f"{symbol} unknown"
    elif exponent.bound is not None:
        sign = _SIGNS[checks.one_of("bound", exponent.bound, _SIGNS)]
        said = f"{symbol} {sign} {number(exponent.value)}"
    else:
        said = f"{symbol} = {number(exponent.value)}"
        if not (math.isnan(exponent.low) or math.isnan(exponent.high)):
            said += f" [{number(exponent.low)}, {number(exponent.high)}]"
    why = exponent.why.strip().rstrip(".") if reason else ""
    return f"{said}: {why}" if why else said


_SIGNS = {"at least": "≥", "at most": "≤"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_BASES = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001)


def _exponent(value: float, base: float) -> int | None:
    """Return the whole power of two that value/base is, to the rounding of a decimal number."""
    if not (math.isfinite(value) and value > 0):
        return None
    exponent = math.log2(value / base)
    near = round(exponent)
    return near if abs(exponent - near) < 1e-6 else None


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _mixed(colour: str, place: float) -> str:
    """Mix a colour with white (place −1, two thirds of it) or with black (place 1, a half)."""
    target, share = (1.0, -place * 2 / 3) if place < 0 else (0.0, place / 2)
    mixed = (part + (target - part) * share for part in _parts(colour))
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)
