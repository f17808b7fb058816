"""Which of two methods is better at chosen settings, judged by seeds that did not choose them.

Errors are compared seed by seed, as ratios and in points. Seeds show how much training varies. They
share one test set, which is a sample too. How much its choice of examples could have moved the
difference is estimated from the examples that each run missed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weightdecay.records import Run, unpacked
from weightdecay.results.estimate import (
    Array,
    Estimate,
    safely_summed,
    seeds_needed,
    shown_by,
    student,
    within,
)

#: The error of a run that diverged: that of guessing among ten classes.
CHANCE = 0.9
#: One method is as good as another if its error is at most this many times the other's.
MARGIN = 1.03
#: How many neighbouring test examples may be alike: at least the tokens of a sequence.
BLOCK = 64
#: With fewer blocks, their variance is not known well enough.
FEWEST = 20
#: Blocks count as one example each if they vary by more standard errors than this.
CERTAIN = 3.0


@dataclass(frozen=True)
class Judgement:
    """One method against another, over fresh seeds at their chosen settings.

    `ratio` estimates the mean of ln(error / other error), `points` that of error − other error.
    `of_test_set` has the parts of their two variances that come from the shared test set; None if
    they are unknown, and the intervals are those of the seeds alone.
    """

    seeds: int
    ratio: Estimate
    points: Estimate
    of_test_set: tuple[float, float] | None

    @property
    def better(self) -> bool:
        """Whether the first has the lower error over the whole interval."""
        return self.ratio.high < 0

    @property
    def as_good(self) -> bool:
        """Whether the first is at most 3 % worse over the whole interval."""
        return self.ratio.high < math.log(MARGIN)

    @property
    def detectable(self) -> float:
        """Return the smallest ln(error / other error) that this many seeds show in 80 % of cases.

        It is (t.975 + t.8) times the standard error, of the seeds and of the test set apart.
        """
        own, shared = self._variances
        seen = shown_by(self.seeds - 1) ** 2 * own, shown_by(math.inf) ** 2 * shared
        return math.sqrt(sum(seen))

    def needed(self, ratio: float, *, level: float = 0.975, power: float = 0.8) -> float:
        """Return how many seeds would show such a ln(error / other error); infinite if none would.

        More seeds do not change what the sample of test examples leaves uncertain. The interval
        ends at `level`, and they show it in this share of cases, `power`.
        """
        own, shared = self._variances
        kept = {"shared": shared, "level": level, "power": power}
        return seeds_needed(ratio, own, self.seeds - 1, seeds=self.seeds, **kept)

    @property
    def _variances(self) -> tuple[float, float]:
        """Return the variances of the ratio that come from the seeds and from the test set."""
        shared = 0.0 if self.of_test_set is None else self.of_test_set[0]
        half = (self.ratio.high - self.ratio.low) / 2
        own = max(0.0, half**2 - student(math.inf) ** 2 * shared)
        return own / student(self.seeds - 1) ** 2, shared


def judged(one: Sequence[Run], other: Sequence[Run], *, chance: float = CHANCE) -> Judgement:
    """Compare the runs of one setting with those of another, seed by seed.

    The interval is Student's over seeds, widened by the sampling error of the test set. The latter
    rests on thousands of examples, so it is not multiplied by the seeds' t. It is unknown, and
    missing, if the runs did not keep which examples they missed: train them with `keep_missed`.
    """
    return combined([(1, one), (-1, other)], chance=chance)


def contrasted(
    first: tuple[Sequence[Run], Sequence[Run]],
    second: tuple[Sequence[Run], Sequence[Run]],
    *,
    chance: float = CHANCE,
) -> Judgement:
    """Compare one comparison with another: the first ratio of errors over the second."""
    (one, other), (another, last) = first, second
    return combined([(1, one), (-1, other), (-1, another), (1, last)], chance=chance)


def combined(signed: Sequence[tuple[float, Sequence[Run]]], *, chance: float = CHANCE) -> Judgement:
    """Judge a weighted sum of the errors of several settings in the same way; weights sum to 0."""
    signs, runs, errors = _errors(signed, chance)
    if not (errors > 0).all():
        raise ValueError(
            f"Errors to compare must be above 0, since their ratios are compared, got "
            f"{errors.min():g}. Use more test examples, or compare another metric."
        )
    missed = _missed(runs, chance)
    ratios, points, seeds = signs @ np.log(errors), signs @ errors, errors.shape[1]
    if missed is None:
        return Judgement(seeds, _mean(ratios, 0.0), _mean(points, 0.0), None)
    shared = (
        shared_variance(np.tensordot(signs / errors.mean(1), missed, 1)),
        shared_variance(np.tensordot(signs, missed, 1)),
    )
    return Judgement(seeds, _mean(ratios, shared[0]), _mean(points, shared[1]), shared)


def summed(signed: Sequence[tuple[float, Sequence[Run]]], *, chance: float = CHANCE) -> Estimate:
    """Estimate such a weighted sum alone, also of errors of 0, which have no ratios."""
    signs, runs, errors = _errors(signed, chance)
    missed = _missed(runs, chance)
    shared = 0.0 if missed is None else shared_variance(np.tensordot(signs, missed, 1))
    return _mean(signs @ errors, shared)


def _errors(
    signed: Sequence[tuple[float, Sequence[Run]]], chance: float
) -> tuple[Array, list[list[Run]], Array]:
    """Return the weights, and runs and errors by sides × seeds, of the seeds that all share."""
    sides = [_by_seed(runs) for _, runs in signed]
    signs: Array = np.array([sign for sign, _ in signed], dtype=np.float64)
    seeds = sorted(set.intersection(*(set(side) for side in sides)))
    if len(seeds) < 2:
        raise ValueError(f"Runs to compare must share at least two seeds, got {len(seeds)}.")
    runs = [[side[seed] for seed in seeds] for side in sides]
    errors = np.array([[error_of(run, chance) for run in side] for side in runs])
    return signs, runs, errors


def _by_seed(runs: Sequence[Run]) -> dict[int, Run]:
    found = {run.config.seed: run for run in runs}
    if len(found) < len(runs):
        raise ValueError(
            f"Runs to compare must be of one setting, each with a seed of its own, got {len(runs)} "
            f"runs of {len(found)} seeds."
        )
    return found


def shared_variance(per_example: Array) -> float:
    """Return the variance that the sample of examples gives to the mean over seeds × examples.

    Neighbours may be alike, as the tokens of a sequence are. Where blocks of them vary by more than
    independent examples would by chance, each block counts as one example.
    """
    alone, _ = _between(per_example)
    seeds, examples = map(int, per_example.shape)
    blocks = examples // BLOCK
    if blocks < FEWEST:
        return alone
    whole = per_example[:, : blocks * BLOCK].reshape(seeds, blocks, BLOCK)
    together, chance = _between(whole.mean(2))
    return together if together > alone + CERTAIN * chance else alone


def _between(per_example: Array) -> tuple[float, float]:
    """Return the variance of the mean over independent examples, and its standard error.

    The examples' means vary by their own difficulty and by the noise of each seed and example. The
    noise is estimated from the residuals after effects of seeds and examples, and subtracted.
    """
    seeds, examples = map(int, per_example.shape)
    of_examples = per_example.mean(0)
    left = per_example - of_examples - per_example.mean(1, keepdims=True) + per_example.mean()
    noise = float((left**2).sum()) / ((seeds - 1) * (examples - 1))
    spread = float(of_examples.var(ddof=1))
    between = (spread - noise / seeds) / examples
    return max(0.0, between), spread * math.sqrt(2 / (examples - 1)) / examples


def _mean(values: Array, shared: float) -> Estimate:
    count = len(values)
    if count < 2:
        return Estimate(float(values.mean()), math.nan, math.nan)
    parts = (float(values.var(ddof=1)) / count, count - 1), (shared, math.inf)
    return within(float(values.mean()), *safely_summed(*parts))


def error_of(run: Run, chance: float = CHANCE) -> float:
    """Return the test error of a run's last epoch; a run that diverged counts as chance."""
    last = run.records[-1]
    return chance if last.diverged or last.test_error is None else last.test_error


def _missed(runs: Sequence[Sequence[Run]], chance: float) -> Array | None:
    """Return 1 for each missed example, by sides × seeds × examples; None if no run kept them.

    A run that diverged misses every example by chance.
    """
    ends = [run.records[-1] for side in runs for run in side]
    kept = {id(end): _bits(end.missed) for end in ends if end.missed and not end.diverged}
    if not kept:
        return None
    lost = sum(end.diverged for end in ends)
    if len(kept) + lost < len(ends):
        raise ValueError(
            "Runs to compare must all keep which test examples they missed, or none of them, got "
            f"{len(kept)} of {len(ends) - lost} runs that did. Train the others with `keep_missed`."
        )
    guessed = np.full(len(next(iter(kept.values()))), chance)
    rows = [[kept.get(id(run.records[-1]), guessed) for run in side] for side in runs]
    return np.array(rows, dtype=np.float64)


@lru_cache(maxsize=1024)
def _bits(text: str) -> NDArray[np.bool_]:
    """Return unpacked bits; a run enters several comparisons."""
    return np.array(unpacked(text))


@dataclass(frozen=True)
class Carried:
    """A decay that was best at one learning rate, used at another: λ ∝ α^(−s)."""

    tuned_at: float
    used_at: float
    s: float
    decay: float


def transfer_regret(
    errors: Mapping[tuple[float, float], Mapping[int, float]],
    best: Mapping[float, float],
    carried: Sequence[Carried],
) -> Array:
    """Return, per seed, the cost of carried decays: their errors minus those of the best decays.

    `errors` has the errors by seed for each learning rate and decay, and `best` the best decay of
    each learning rate. The mean over the carried decays is taken within a seed.
    """
    pairs = [
        (errors[one.used_at, one.decay], errors[one.used_at, best[one.used_at]]) for one in carried
    ]
    seeds = sorted(set.intersection(*(set(side) for pair in pairs for side in pair)))
    cost: Array = np.array([[moved[seed] - own[seed] for seed in seeds] for moved, own in pairs])
    return np.asarray(cost.mean(0))


def mean_of(values: Array) -> Estimate:
    """Estimate the mean of one number per seed."""
    return _mean(values, 0.0)
