"""Claims on a page: their intervals as a forest plot, and their words."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from weightdecay import checks
from weightdecay.colours import OUTCOMES
from weightdecay.site.parts import text

_PAPER = "https://arxiv.org/abs/1711.05101"
FOOTER = f"""<footer>
<p>The claims are those of I. Loshchilov and F. Hutter, <cite>Decoupled Weight Decay
Regularization</cite>, ICLR 2019, <a href="{_PAPER}" rel="noreferrer">arXiv:1711.05101</a>.</p>
</footer>
"""
_ABOUT = (
    "Each line is a 95 % interval, its dot the estimate. A claim holds if the whole line lies in "
    "the shaded range, and does not hold if it lies outside. Otherwise these runs do not decide "
    "it. An arrow says that an interval goes on."
)


@dataclass(frozen=True)
class PageInterval:
    """A measured number of a claim or of a part of it, with its interval.

    `unit` names the axis on which it is drawn. The claim, or part, holds if the whole interval lies
    between `above` and `below`, of which one may be infinite. `said` states the number.
    """

    part: str
    outcome: str
    unit: str
    value: float
    low: float
    high: float
    above: float
    below: float
    said: str


@dataclass(frozen=True)
class PageClaim:
    """The outcome of a claim, what decided it and the rule in words, and its intervals."""

    claim: str
    outcome: str
    because: str
    rule: str
    intervals: Sequence[PageInterval] = ()

    def __post_init__(self) -> None:
        checks.one_of("outcome", self.outcome, OUTCOMES)


def claims_data(claims: Sequence[PageClaim]) -> list[dict[str, Any]]:
    """Return the rows of the forest plot; a claim without an interval has none."""
    return [
        {
            "claim": one.claim,
            "rule": one.rule,
            "part": row.part,
            "outcome": row.outcome,
            "unit": row.unit,
            "ends": [_finite(end) for end in (row.value, row.low, row.high, row.above, row.below)],
            "said": row.said,
        }
        for one in claims
        for row in one.intervals
    ]


def tally(claims: Sequence[PageClaim]) -> str:
    """Return how many claims had each outcome, zeros included, as HTML; nothing without claims."""
    if not claims:
        return ""
    counts = Counter(one.outcome for one in claims)
    counted = ", ".join(_outcome(word, f"{counts[word]} {word}") for word in OUTCOMES)
    return (
        f'<p class="tally"><a href="#claims">The paper\'s claims about this figure</a>: {counted}'
        "</p>\n"
    )


def claims_section(claims: Sequence[PageClaim], note: str = "") -> str:
    """Return the plot's place and every claim in words, as HTML; nothing without claims.

    `note` says what cannot be judged yet.
    """
    more = f"<p>{text(note)}</p>\n" if note else ""
    if not claims:
        return f'<section id="claims">\n<h2>Claims</h2>\n{more}</section>\n' if note else ""
    drawn = any(one.intervals for one in claims)
    plot = f'<p class="hint">{_ABOUT}</p>\n<div id="forest"></div>\n' if drawn else ""
    listed = "\n".join(_claim(one, f"claim-{at}") for at, one in enumerate(claims, 1))
    state = "" if drawn else " open"
    return (
        f'<section id="claims">\n<h2>Claims</h2>\n{more}{plot}<details class="words"{state}>'
        f"<summary>Every claim in words, with its rule</summary>\n<ol>\n{listed}\n</ol></details>\n"
        "</section>\n"
    )


def _claim(one: PageClaim, key: str) -> str:
    rule = f'<p class="rule"><b>Rule</b> {text(one.rule)}</p>\n' if one.rule else ""
    return (
        f'<li id="{key}">\n<p class="verdict">{_outcome(one.outcome, one.outcome)}</p>\n'
        f"<div>\n<h3>{text(one.claim)}</h3>\n<p>{text(one.because)}</p>\n{rule}</div>\n</li>"
    )


def _outcome(word: str, said: str) -> str:
    return (
        f'<span class="outcome {word.replace(" ", "-")}"><span class="glyph" aria-hidden="true">'
        f"{OUTCOMES[word][0]}</span> {escape(said)}</span>"
    )


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
