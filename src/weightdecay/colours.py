"""The colours, dashes and marks that figures and pages share.

Families differ in hue (SGD blue, Adam orange) and in dashes. Their members differ in lightness:
L2 regularization is the lightest, then decoupled decay, then restarts. So figures are readable in
grey and for colour-blind readers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from weightdecay import checks

#: The colour map of errors: bright is good. Its lightness falls evenly, in grey too.
COLOURS_OF_ERRORS = "viridis_r"
#: The same colours at equal steps, for pages.
STOPS_OF_ERRORS = (
    *("#fde725", "#d5e21a", "#aadc32", "#81d34d", "#5cc863", "#3dbc74"),
    *("#27ad81", "#1f9f88", "#21908d", "#26818e", "#2c718e", "#33628d"),
    *("#3b518b", "#423f85", "#472c7a", "#481769", "#440154"),
)
INK = "#1a1a1a"
MUTED = "#666666"
FAINT = "#c8c8c8"
PAPER = "#ffffff"
#: The mark of a recommended setting, unlike any colour of errors.
RECOMMENDED = "#d6281f"


@dataclass(frozen=True)
class Stroke:
    """How an algorithm's line and points are drawn.

    `dashes` are the lengths of dashes and gaps, in line widths. `mark` is the shape of a point:
    "o", "s", "^", "v" or "D", hollow for L2 regularization.
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
    "adamr": Stroke("#998a3d", (4.5, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4), hollow=True),
    "adamw": Stroke("#d9590b"),
    "adamwr": Stroke("#7a1f05"),
    "adagrad": Stroke("#5fbf9a", (5.0, 1.4, 1.4, 1.4, 1.4, 1.4), "^", hollow=True),
    "adagradw": Stroke("#17805c", _LONG, "^"),
    "amsgrad": Stroke("#cf8fc4", (1.4, 1.4, 3.6, 1.4), "D", hollow=True),
    "amsgradw": Stroke("#6f2a69", _LONG, "D"),
    "rmsprop": Stroke("#b9b04a", (1.0, 1.4, 1.0, 3.0), "v", hollow=True),
    "rmspropw": Stroke("#6b6414", (2.0, 1.4), "v"),
}
_OTHER = Stroke("#555555", (2.0, 1.2), "D")
#: Outcomes of claims: a shape that needs no colour, a colour on white, and a colour on black.
OUTCOMES = {
    "held": ("●", "#14704f", "#62c79c"),
    "not held": ("○", "#ad3c08", "#f0965e"),
    "not decided": ("◐", "#5c5a70", "#b3b1c6"),
}


def stroke(algorithm: str) -> Stroke:
    """Return how an algorithm is drawn in every figure."""
    return STROKES.get(algorithm, _OTHER)


def shades(algorithm: str, count: int) -> list[str]:
    """Return `count` shades of an algorithm's colour, from light to dark."""
    checks.whole("count", count, at_least=1)
    if count == 1:
        return [stroke(algorithm).colour]
    places = [2 * place / (count - 1) - 1 for place in range(count)]
    return [_mixed(stroke(algorithm).colour, place) for place in places]


def error_range(*landscapes: Iterable[float]) -> tuple[float, float, bool]:
    """Return where the colour scale of errors begins and ends, and whether some lie beyond it.

    It begins at the lowest error. It ends four times as far from it as the first quartile, or at
    the worst error if that is nearer. So a round bowl fits, and a plateau of failures does not use
    up the range. The best of a harder landscape has as long a range of its own, up to its first
    quartile, so that it can be told apart too.
    """
    parts = [sorted(own) for errors in landscapes if (own := [*errors])]
    errors = sorted(chain.from_iterable(parts))
    if not errors:
        return 0.0, 100.0, False
    best, worst = errors[0], errors[-1]
    quartile = _quartile(errors)
    end = min(worst, best + 4 * (quartile - best)) if quartile > best else worst
    end = max(end, *(min(_quartile(own), own[0] + end - best) for own in parts))
    return best, end if end > best else best + 1, worst > end


def _quartile(ordered: Sequence[float]) -> float:
    return ordered[(len(ordered) - 1) // 4]


def luminance(colour: str) -> float:
    """Return the luminance of a colour, between 0 and 1: the Y of WCAG and sRGB."""
    linear = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in _parts(colour)
    )
    return sum(map(math.prod, zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _mixed(colour: str, place: float) -> str:
    """Mix a colour with white (place −1, two thirds of it) or with black (place 1, a half)."""
    target, share = (1.0, -place * 2 / 3) if place < 0 else (0.0, place / 2)
    mixed = (part + (target - part) * share for part in _parts(colour))
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)
