"""The paper's claims about long runs of Adam and AdamW, judged by curves.

A curve is that of a setting that its seed did not choose: of the second stage where there is one.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from weightdecay.records import Record, Run, RunConfig
from weightdecay.results import Estimate, equal_loss
from weightdecay.results.estimate import UNKNOWN, Array, student, within
from weightdecay.results.noise import Flags
from weightdecay.studies import verdicts
from weightdecay.studies.differences import better, lower_by, paired
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.panel import Measurement
from weightdecay.studies.reasons import Quantity, Sample
from weightdecay.studies.samples import of_grids, of_judges
from weightdecay.studies.study import Claim, Evidence
from weightdecay.studies.verdicts import AS_GOOD, Verdict

#: How much lower AdamW's error is in the paper.
LOWER = 0.15


def claims_on_settings(lr: float) -> list[Claim]:
    """Return the claims on Adam and AdamW at one learning rate."""
    what = "AdamW's best {error} minus Adam's"
    sides = {"one": "adamw", "rival": "adam"}
    return [
        Claim("Curves of Adam and AdamW often coincide in the first half", _coincide),
        Claim("AdamW's best has a lower training loss than Adam's", _lower_loss),
        Claim("AdamW generalizes better than Adam at equal training loss", _fitter),
        Claim(
            f"AdamW's best is better than Adam's at α = {lr:g}",
            lambda claim, seen: better(claim, what, seen, **sides),
        ),
        Claim(
            f"At α = {lr:g}, AdamW's error is {100 * LOWER:g} % lower than Adam's",
            lambda claim, seen: lower_by(
                claim, f"{what}, relative to the latter", seen, **sides, share=LOWER
            ),
        ),
    ]


def _coincide(claim: str, seen: Evidence) -> Verdict:
    """Judge whether most curves coincide with one of the other method."""
    what = "the share of curves that coincide with one of the other method"
    found, apart = _coinciding(seen["adam"], seen["adamw"], epochs=long_of(seen.scale).epochs)
    by = of_grids(seen, "adam", "adamw")
    return verdicts.judged(claim, Quantity(what, found, above=0.5, by=by, apart=apart))


def _coinciding(
    one: Measurement, other: Measurement, *, epochs: int
) -> tuple[Estimate, Estimate | None]:
    """Estimate the share of curves that coincide with one of the other method in the first half.

    Two curves coincide if in each third of it, the mean ratio of their errors over seeds is within
    the margin. The interval ends with those that surely do, and with those that may. The noise of a
    ratio is that of the usual pair: its variance comes from their median. The second estimate is
    that of ln of the ratio where it is noisiest, for a pair that coincides.
    """
    sides = [_thirds(side, epochs) for side in (one, other)]
    seeds = sorted(set.intersection(*(set(side) for side in sides)))
    count, margin = len(seeds), math.log(AS_GOOD)
    if count < 2:
        return UNKNOWN, None
    logs = [np.log([side[seed] for seed in seeds]) for side in sides]
    first, second = (np.where(np.isfinite(side), side, np.nan) for side in logs)
    apart: Array = first[:, :, None] - second[:, None]
    whole: Flags = np.logical_and.reduce(np.isfinite(apart), axis=0)
    if not whole.any((0, 1)).all():  # in some third, no pair has the errors of all seeds
        return UNKNOWN, None
    freedom, settings = count - 1, len(first[0]) + len(second[0])
    usual = np.nanmedian(apart.var(0, ddof=1), axis=(0, 1)) / (1 - 2 / (9 * freedom)) ** 3
    noise = within(0.0, float(usual.max()) / count, settings * freedom)
    half = student(settings * freedom) * np.sqrt(usual / count)

    def share(allowed: Array) -> float:
        same: Flags = np.logical_and.reduce(np.abs(apart.mean(0)) < margin + allowed, axis=2)
        return float(np.concatenate([same.any(0), same.any(1)]).mean())

    return Estimate(share(0 * half), share(-half), share(half)), noise


def _thirds(measured: Measurement, epochs: int) -> dict[int, list[list[float]]]:
    """Return the mean errors of the thirds of the first half, by seed and setting.

    Thirds are long enough to be certain, and so short that opposite gaps do not cancel. Seeds have
    their settings in the same order; those that have not run all of them are left out.
    """
    ends = [round(epochs * part / 6) for part in range(4)]
    parts = [(begin, end) for begin, end in pairwise(ends) if begin < end]
    error = f"test_{measured.panel.error}"
    found: dict[int, dict[RunConfig, list[float]]] = {}
    for run in measured.runs:
        means = [mean_within(run, *part, error) for part in parts]
        found.setdefault(run.config.seed, {})[replace(run.config, seed=0)] = means
    settings = max(found.values(), key=len)
    return {
        seed: [own[setting] for setting in settings]
        for seed, own in found.items()
        if own.keys() == settings.keys()
    }


def mean_within(run: Run, begin: int, end: int, of: str) -> float:
    """Return the mean of a field over the epochs from `begin` + 1 to `end`."""
    held = [value_at(run, epoch, of) for epoch in range(begin + 1, end + 1)]
    known = [value for value in held if not math.isnan(value)]
    return fmean(known) if known else math.nan


def value_at(run: Run, epoch: int, of: str) -> float:
    """Return a field at an epoch; NaN before the first evaluation.

    An epoch that was not evaluated, or after a run diverged, has the last value before it. A value
    that was not finite is infinite here.
    """
    until: list[Record] = [record for record in run.records if record.epoch <= epoch]
    if not until:
        return math.nan
    value = getattr(until[-1], of)
    return math.inf if value is None else float(value)


def _lower_loss(claim: str, seen: Evidence) -> Verdict:
    end = long_of(seen.scale).epochs
    found = less(seen, "adamw", "adam", lambda run: value_at(run, end, "train_loss"))
    what = "AdamW's {error} minus Adam's, at their best settings"
    return of_loss(claim, what, found, by=of_judges(seen, "adamw", "adam"))


def of_loss(claim: str, what: str, found: Estimate, *, by: Sample) -> Verdict:
    """Judge whether a training loss is lower; losses near 0 are compared by their difference."""
    return verdicts.better(claim, found, what, metric="training loss", by=by)


def less(seen: Evidence, one: str, rival: str, of: Callable[[Run], float]) -> Estimate:
    """Estimate a number of one's runs minus that of its rival's, seed by seed.

    If it is infinite, as is the training loss of a run that diverged, it counts as the highest of
    the others. If it is for all runs of either, nothing is known.
    """
    sides = seen.fresh(one), seen.fresh(rival)
    seeds = sorted(sides[0].keys() & sides[1].keys())
    found = [[of(side[seed]) for seed in seeds] for side in sides]
    finite = [[value for value in side if value < math.inf] for side in found]
    highest = max(map(max, finite)) if all(finite) else math.inf
    ours, theirs = ([min(value, highest) for value in side] for side in found)
    return paired([value - other for value, other in zip(ours, theirs, strict=True)])


def _fitter(claim: str, seen: Evidence) -> Verdict:
    adamw, adam = seen.landscape("adamw"), seen.landscape("adam")
    what = "AdamW's test {error} minus Adam's at equal training loss"
    by = of_grids(seen, "adamw", "adam")
    return verdicts.better(claim, equal_loss(adamw, adam), what, metric=adam.metric, by=by)
