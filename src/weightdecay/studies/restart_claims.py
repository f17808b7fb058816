"""The paper's claims about warm restarts, judged by curves."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from weightdecay.labels import NAMES
from weightdecay.records import Run
from weightdecay.results import Estimate, Landscape, equal_loss, landscapes
from weightdecay.results.estimate import UNKNOWN, Array, student
from weightdecay.results.moving import reused
from weightdecay.studies import verdicts
from weightdecay.studies.curve_claims import less, mean_within, of_loss, value_at
from weightdecay.studies.differences import better, no_worse, unless_at_edge, weighed
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.panel import Measurement
from weightdecay.studies.reasons import Size
from weightdecay.studies.samples import of_grids, of_judges
from weightdecay.studies.study import Claim, Evidence, NotMeasuredError
from weightdecay.studies.verdicts import Verdict

#: How many times as fast restarts are in the paper, at most.
FASTER = 10


def claims_on_restarts() -> list[Claim]:
    """Return the claims on restarts: how early they are as good, and how good they are."""
    return [
        Claim(f"AdamWR is up to {FASTER} times as fast as AdamW", _faster),
        Claim("AdamWR ends as well as AdamW, and is better at any time before", _anytime),
        Claim("AdamW and AdamWR close most of Adam's gap to SGDWR", _close_the_gap),
        Claim("With L2, Adam with restarts beats Adam at any time, but not SGDWR", _with_l2),
        Claim("One λ_norm serves the short and the long cycles", _one_decay_serves),
        Claim("The Adam variants lower training loss faster than those of SGD", _lower_sooner),
        Claim("Restart variants generalize better at equal training loss", _fitter_by_restarts),
    ]


def _fitter_by_restarts(claim: str, seen: Evidence) -> Verdict:
    what = "its test {error} minus that without restarts, at equal training loss"
    parts = []
    for name in ("adamw", "sgdw"):
        found, own = equal_loss(seen.landscape(f"{name}r"), seen.landscape(name)), NAMES[f"{name}r"]
        if math.isnan(found.low):
            why = "too few settings of both have the same training loss: train more"
            parts.append(verdicts.unseen(own, why))
        else:
            by = of_grids(seen, f"{name}r", name)
            parts.append(verdicts.better(own, found, what, metric=seen.metric, by=by))
    return verdicts.all_of(claim, parts)


def cycle_ends(runs: Sequence[Run]) -> list[int]:
    """Return the epochs at which a cycle of some run ends."""
    return sorted({record.epoch for run in runs for record in run.records if record.cycle_ended})


def _ends(seen: Evidence, name: str) -> list[int]:
    ends = cycle_ends(list(seen.fresh(name).values()))
    if not ends:
        raise NotMeasuredError("No cycle has finished.")
    return ends


def _faster(claim: str, seen: Evidence) -> Verdict:
    """Judge how long AdamW takes to have the error that AdamWR has at the end of each cycle."""
    restarted, plain = seen.fresh("adamwr"), seen.fresh("adamw")
    seeds, error = sorted(restarted.keys() & plain.keys()), f"test_{seen.scale.error}"
    epochs = sorted({record.epoch for seed in seeds for record in plain[seed].records})
    curves = np.array([[value_at(plain[seed], epoch, error) for epoch in epochs] for seed in seeds])
    parts = []
    for end in _ends(seen, "adamwr"):
        if end < long_of(seen.scale).epochs:
            there = np.array([value_at(restarted[seed], end, error) for seed in seeds])
            what = f"AdamW's epochs to AdamWR's {{error}} there, over {end}"
            found = _log_speed_up(there, curves, epochs, end)
            size = Size(what, found, FASTER, seen.metric, of_judges(seen, "adamwr", "adamw"))
            parts.append(verdicts.sized(f"epoch {end}", size))
    if not parts:
        raise NotMeasuredError("No cycle has finished before the last.")
    verdict = verdicts.any_of(claim, parts)
    return unless_at_edge(verdict, seen, "adamwr", "adamw")


def _log_speed_up(errors: Array, curves: Array, epochs: Sequence[int], end: int) -> Estimate:
    """Estimate ln of the epochs that curves take to some errors, over `end`.

    Errors and curves have one row per seed. The curves have the errors where the mean of what they
    are above them is 0. The interval is from where they may have them, to where they surely do.
    """
    count, above = len(errors), curves - errors[:, None]
    if count < 2 or not np.isfinite(above).all():
        return UNKNOWN
    half = student(count - 1) * above.std(0, ddof=1) / math.sqrt(count)
    value, low, high = (
        math.log(_needed(above.mean(0) + sign * half, epochs) / end) for sign in (0, -1, 1)
    )
    return Estimate(value, low, high, count - 1)


def _needed(curve: Array, epochs: Sequence[int]) -> float:
    """Return how many epochs a curve takes to 0; all of them if it never is there.

    Between evaluations it is taken to fall evenly.
    """
    for place, value in enumerate(curve):
        if value <= 0:
            begin, before = (epochs[place - 1], curve[place - 1]) if place else (epochs[0], 1.0)
            return float(epochs[place] - value / (value - before) * (epochs[place] - begin))
    return float(epochs[-1])


def _anytime(claim: str, seen: Evidence) -> Verdict:
    *before, _ = _ends(seen, "adamwr")
    last = no_worse(
        "in the end",
        "AdamWR's best {error} minus AdamW's",
        seen,
        one="adamwr",
        rival="adamw",
    )
    return verdicts.all_of(claim, [*_before(seen, "adamwr", "adamw", before), last])


def _before(seen: Evidence, one: str, rival: str, epochs: Sequence[int]) -> list[Verdict]:
    """Judge whether the error of one is lower than its rival's at each of these epochs."""
    error, parts = f"test_{seen.scale.error}", []
    for epoch in epochs:
        found = less(seen, one, rival, partial(value_at, epoch=epoch, of=error))
        what = f"{NAMES[one]}'s {{error}} minus {NAMES[rival]}'s then"
        by = of_judges(seen, one, rival)
        verdict = verdicts.better(f"epoch {epoch}", found, what, metric=seen.metric, by=by)
        parts.append(unless_at_edge(verdict, seen, one, rival))
    return parts


def _close_the_gap(claim: str, seen: Evidence) -> Verdict:
    """Judge whether the errors of AdamW and AdamWR are nearer to SGDWR's than to Adam's."""
    what = "SGDWR's best {error} minus Adam's"
    parts = [better("there is a gap", what, seen, one="sgdwr", rival="adam")]
    for name in ("adamw", "adamwr"):
        found = weighed(seen, {name: 1.0, "adam": -0.5, "sgdwr": -0.5})
        told = f"{NAMES[name]}'s {{error}} minus the middle of Adam's and SGDWR's"
        by = of_judges(seen, name, "adam", "sgdwr")
        verdict = verdicts.better(NAMES[name], found, told, metric=seen.metric, by=by)
        parts.append(unless_at_edge(verdict, seen, name, "adam", "sgdwr"))
    return verdicts.all_of(claim, parts)


def _with_l2(claim: str, seen: Evidence) -> Verdict:
    what = "SGDWR's best {error} minus that of Adam with restarts"
    loses = better("in the end, against SGDWR", what, seen, one="sgdwr", rival="adamr")
    return verdicts.all_of(
        claim, [*_before(seen, "adamr", "adam", _ends(seen, "adamr")[:-1]), loses]
    )


def _one_decay_serves(claim: str, seen: Evidence) -> Verdict:
    """Judge what the last cycle's best λ_norm costs at the ends of the shorter cycles."""
    parts = []
    for name in ("adamwr", "sgdwr"):
        measured = seen[name]
        if len([decay for decay in measured.landscape.decays if decay > 0]) < 2:
            raise NotMeasuredError(f"{NAMES[name]} was trained with one λ_norm only.")
        for end in cycle_ends(measured.runs)[:-1]:
            there = _until(measured, end)
            what = "the cost in {error} of the last cycle's best λ_norm"
            cost, best = reused(there, measured.landscape), there.best.mean
            told, by = f"{NAMES[name]}, epoch {end}", of_grids(seen, name)
            part = verdicts.no_worse(told, cost, what, rival=best, metric=seen.metric, by=by)
            parts.append(part)
    if not parts:
        raise NotMeasuredError("No cycle has finished before the last.")
    return verdicts.all_of(claim, parts)


def _until(measured: Measurement, epoch: int) -> Landscape:
    """Return the landscape that a panel's runs had at an epoch."""
    runs = [
        replace(run, records=tuple(one for one in run.records if one.epoch <= epoch))
        for run in measured.runs
    ]
    [landscape] = landscapes(runs, of=measured.panel.error)
    return landscape


def _lower_sooner(claim: str, seen: Evidence) -> Verdict:
    what = "its mean {error} over all epochs minus that of SGD's variant"
    parts = []
    for name in ("adamw", "adamwr"):
        rival = name.replace("adam", "sgd")
        found = less(
            seen, name, rival, lambda run: mean_within(run, 0, run.config.epochs, "train_loss")
        )
        parts.append(of_loss(NAMES[name], what, found, by=of_judges(seen, name, rival)))
    return verdicts.all_of(claim, parts)
