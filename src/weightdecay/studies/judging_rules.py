"""The rules that choose and judge, in words: a registration states them, and pages compare them.

If the computation of a rule changes, its words must change here. Pages of earlier registrations
then say so.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from weightdecay.results.choosing import PAIRS, REACH, SCALE, SLOPES
from weightdecay.results.judging import BLOCK, CERTAIN, FEWEST, MARGIN

#: Rules by name: their words, or a list of values.
Rules: TypeAlias = Mapping[str, str | Sequence[Any]]
_AROUND, _LONGEST = 4, 40  # words that are shown around a change, and at most


def _at(factor: float) -> str:
    """Return a multiple of the chosen learning rate, a."""
    return "a" if factor == 1 else f"{factor:g}a" if factor > 1 else f"a/{1 / factor:g}"


RULES: Rules = {
    "choice": (
        "In a column (one learning rate), with m its lowest mean error, an error e becomes "
        f"1 - exp(-(e/m - 1)/{SCALE:g}). A parabola in log2 of the decay, weighted by the number "
        f"of seeds, is fitted to the settings within {REACH:g} doublings of the lowest; its vertex "
        "is the column's decay, to three digits, or the lowest setting if fewer than three are "
        "near, or the parabola has no vertex among them. The chosen column has the lowest error "
        "there. A run that diverged counts as the worst."
    ),
    "left_out": (
        "A decay of 0 is chosen only if there is no other. A learning rate at which every run "
        "diverged is not chosen."
    ),
    "edge": "a comparison with a setting at an edge of its grid is withdrawn",
    "error": (
        "Test error after the last epoch. A run that diverged counts as the highest test error of "
        "the other runs of the tasks that are compared, in either stage."
    ),
    "estimate": "mean over seeds of ln(error / other error), seed by seed",
    "interval": (
        "95 %, Student's t over seeds. To the square of its half width is added that of 1.96 "
        "standard errors of the test set, which all seeds share, from the examples that each run "
        "missed."
    ),
    "test_set": (
        f"If there are at least {FEWEST} blocks of {BLOCK} neighbouring test examples, and they "
        f"vary by {CERTAIN:g} standard errors more than independent examples would, each block "
        "counts as one example. The interval of a task's own metric is that of the seeds alone."
    ),
    "better": "the upper end is below 0",
    "as_good": f"the upper end is below ln {MARGIN}",
    "regret": (
        "Test error at another learning rate with the decay that is carried there, "
        "lambda ~ alpha^(-s), minus that with its own best decay; the mean over pairs of learning "
        "rates within a seed, then over seeds."
    ),
    "regret_interval": "95 %, Student's t over seeds, without the test set's part",
    "carried": (
        "A decay is carried if both learning rates have their best decays inside the grid, and "
        "only to where an update does not remove whole weights."
    ),
    "slopes": [*SLOPES],
    "pairs": [f"{_at(tuned)} to {_at(used)}" for tuned, used in PAIRS],
}


#: The rules that files stated before they had a hash.
UNSEALED = frozenset(
    ["choice", "estimate", "interval", "better", "as_good", "regret", "slopes", "pairs"]
)


def as_said(rules: Mapping[str, Any]) -> Rules:
    """Return the rules of a file with the line breaks taken out of their words."""
    for name, rule in rules.items():
        if not isinstance(rule, str | list):
            raise TypeError(f"the rule `{name}` must be a text or a list, got {rule!r}")
    return {
        name: " ".join(rule.split()) if isinstance(rule, str) else rule
        for name, rule in rules.items()
    }


def changes(registered: Rules, *, edited: bool = False) -> list[str]:
    """Return how the rules of today differ from those that were registered, in sentences.

    If the file was edited, nobody knows what it said: it may have said what judges.
    """
    said = []
    for name, rule in RULES.items():
        if name in registered and registered[name] != rule:
            stated, judging = _apart(_words(registered[name]), _words(rule))
            said.append(
                f'The edited file states the rule `{name}` as: "{stated}". What judges is: '
                f'"{judging}".'
                if edited
                else f'The rule `{name}` has changed. It was: "{stated}". It is now: "{judging}".'
            )
    if unsaid := [name for name in RULES if name not in registered]:
        said.append(f"The registration does not state these rules: {', '.join(unsaid)}.")
    if gone := [name for name in registered if name not in RULES]:
        said.append(f"These registered rules are not used any more: {', '.join(gone)}.")
    return said


def _words(rule: str | Sequence[Any]) -> list[str]:
    return rule.split() if isinstance(rule, str) else [f"{one}," for one in rule]


def _apart(one: list[str], other: list[str]) -> tuple[str, str]:
    """Return what differs between two texts, with a few words around it."""
    ahead = _common(one, other)
    behind = min(_common(one[::-1], other[::-1]), min(len(one), len(other)) - ahead)
    return _between(one, ahead, behind), _between(other, ahead, behind)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _between(words: list[str], ahead: int, behind: int) -> str:
    first, last = max(0, ahead - _AROUND), len(words) - max(0, behind - _AROUND)
    last = min(last, first + _LONGEST)
    shown = " ".join(words[first:last]).strip(",.")
    return f"{'… ' * (first > 0)}{shown}{' …' * (last < len(words))}"
