"""What decided claims cost in runs and minutes: those of a figure, and of each task till now."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weightdecay.studies.findings import Findings, Spent
from weightdecay.studies.reasons import Missing
from weightdecay.studies.verdicts import NOT_DECIDED


@dataclass(frozen=True)
class State:
    """The runs of a task that chose and that judged, and how many of its claims they decided.

    `minutes` are those of a core or a GPU for all runs; None if the records do not have them.
    """

    what: str
    choosing: int
    judging: int
    decided: int
    claims: int
    minutes: Mapping[str, float] | None = None


#: Earlier states by task: runs from the tables of each commit, and verdicts from its README. The
#: minutes of fc634e8 were noted when it was trained.
EARLIER: Mapping[str, Sequence[State]] = {
    "mnist1d": [
        State("one stage, five seeds (36df238)", 7817, 0, 11, 26),
        State("the same runs, with the new intervals of s (a2abcbc)", 7817, 0, 6, 25),
        State("two stages, five of the studies (fc634e8)", 3258, 1320, 13, 29, {"core": 38.0}),
        State("two stages, two seeds choose (66f5d20)", 5100, 1752, 22, 42),
    ],
    "text": [
        State("one stage (36df238)", 3273, 0, 5, 26),
        State("the same runs, with the new intervals of s (a2abcbc)", 3273, 0, 4, 25),
        State("two stages, two seeds choose (66f5d20)", 2520, 1052, 22, 41),
    ],
}
HEAD = ["task", "state", "runs that choose", "that judge", "decided"]
HEAD += ["runs per decided claim", "minutes per decided claim"]


def cost_of(found: Findings) -> str:
    """Return how many runs a figure has, how long they trained, and both per decided claim."""
    runs, spent = len(found.spent), minutes_of(found.spent)
    decided = sum(verdict.outcome != NOT_DECIDED for verdict in found.verdicts)
    told, each = f"Cost: {runs:,} runs", f"{runs / max(1, decided):.0f} runs"
    if spent is not None:
        told += f" and {words_of(spent, unit=' minutes')}"
        each += f" and {words_of(spent, each=max(1, decided), unit=' minutes')}"
    told += f"; {decided} of {len(found.verdicts)} claims are decided"
    return f"{told}, {each} each." if decided else f"{told}."


def minutes_of(spent: Mapping[str, Spent]) -> dict[str, float] | None:
    """Return how long runs trained in all on each kind of worker; None if that is not known."""
    known: dict[str, list[float]] = {}
    for seconds, worker in spent.values():
        if seconds is None:
            return None
        known.setdefault(worker, []).append(seconds / 60)
    return {one: math.fsum(known[one]) for one in ("core", "GPU") if one in known} or None


def words_of(minutes: Mapping[str, float], *, each: int = 1, unit: str = "") -> str:
    """Return the minutes of each kind of worker in words, in all or for each of some claims."""
    (first, amount), *rest = minutes.items()
    others = (f" and {other / each:.1f} of one {worker}" for worker, other in rest)
    return f"{amount / each:.1f}{unit} of one {first}{''.join(others)}"


def states(
    found: Mapping[str, Sequence[Findings]], outcomes: Mapping[str, Counter[str]]
) -> dict[str, list[State]]:
    """Return the states of each task, the last of which is that of its findings."""
    known = {}
    for task, own in found.items():
        now = [_state("now", own, outcomes[task])]
        timed = [one for one in own if one.spent and minutes_of(one.spent) is not None]
        if timed and now[0].minutes is None:
            names = ", ".join(one.study.name for one in timed)
            now.append(_state(f"of these, {names}", timed, sum(map(outcomes_of, timed), Counter())))
        known[task] = [*EARLIER.get(task, ()), *now]
    return known


def outcomes_of(one: Findings) -> Counter[str]:
    """Return how many claims of a figure came out in each way, without those not measured."""
    judged = (verdict for verdict in one.verdicts if not isinstance(verdict.reason, Missing))
    return Counter(verdict.outcome for verdict in judged)


def _state(what: str, own: Sequence[Findings], outcomes: Counter[str]) -> State:
    first = frozenset[str]().union(*(one.runs for one in own))
    spent = {run: seconds for one in own for run, seconds in one.spent.items()}
    claims, left = outcomes.total(), outcomes[NOT_DECIDED]
    stages = len(first), len(spent) - len(first)
    return State(what, *stages, claims - left, claims, minutes_of(spent))


def rows(known: Mapping[str, Sequence[State]]) -> list[list[str]]:
    """Return the states as rows of text under a header."""
    return [HEAD, *([task, *_row(one)] for task, own in known.items() for one in own)]


def _row(one: State) -> list[str]:
    each, minutes = "–", "–"
    if one.decided:
        each = f"{(one.choosing + one.judging) / one.decided:,.0f}"
        if one.minutes is not None:
            minutes = words_of(one.minutes, each=one.decided)
    counts = f"{one.choosing:,}", f"{one.judging:,}", f"{one.decided} of {one.claims}"
    return [one.what, *counts, each, minutes]
