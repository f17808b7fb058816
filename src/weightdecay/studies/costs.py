"""What a decided claim costs on each task, in runs and in minutes: now, and earlier."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weightdecay.studies.findings import Findings, minutes_of
from weightdecay.studies.verdicts import NOT_DECIDED


@dataclass(frozen=True)
class State:
    """The runs of a task that chose and that judged, and how many of its claims they decided.

    `minutes` are those of one worker for all runs; None if the records do not have them.
    """

    what: str
    choosing: int
    judging: int
    decided: int
    claims: int
    minutes: float | None = None
    worker: str = "core"


#: Earlier states by task: runs from the tables of each commit, and verdicts from its README. The
#: minutes of the last one were noted when it was trained.
EARLIER: Mapping[str, Sequence[State]] = {
    "mnist1d": [
        State("one stage, five seeds (36df238)", 7817, 0, 11, 26),
        State("the same runs, with the new intervals of s (a2abcbc)", 7817, 0, 6, 25),
        State("two stages, five of the studies (fc634e8)", 3258, 1320, 13, 29, 38.0),
    ],
    "text": [
        State("one stage (36df238)", 3273, 0, 5, 26),
        State("the same runs, with the new intervals of s (a2abcbc)", 3273, 0, 4, 25),
    ],
}
HEAD = ["task", "state", "runs that choose", "that judge", "decided"]
HEAD += ["runs per decided claim", "minutes per decided claim"]


def states(
    found: Mapping[str, Sequence[Findings]], outcomes: Mapping[str, Counter[str]]
) -> dict[str, list[State]]:
    """Return the states of each task, the last of which is that of its findings."""
    known = {}
    for task, own in found.items():
        first = frozenset[str]().union(*(one.runs for one in own))
        spent = {run: seconds for one in own for run, seconds in one.spent.items()}
        claims, left = outcomes[task].total(), outcomes[task][NOT_DECIDED]
        stages = len(first), len(spent) - len(first)
        now = State("now", *stages, claims - left, claims, minutes_of(spent), own[0].worker)
        known[task] = [*EARLIER.get(task, ()), now]
    return known


def rows(known: Mapping[str, Sequence[State]]) -> list[list[str]]:
    """Return the states as rows of text under a header."""
    return [HEAD, *([task, *_row(one)] for task, own in known.items() for one in own)]


def _row(one: State) -> list[str]:
    each, minutes = "–", "–"
    if one.decided:
        each = f"{(one.choosing + one.judging) / one.decided:,.0f}"
        if one.minutes is not None:
            minutes = f"{one.minutes / one.decided:.1f} of one {one.worker}"
    counts = f"{one.choosing:,}", f"{one.judging:,}", f"{one.decided} of {one.claims}"
    return [one.what, *counts, each, minutes]
