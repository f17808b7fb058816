"""A recommendation in words: the setting, how certain it is, and a rule for the two knobs."""

import math
from collections.abc import Iterable, Sequence

from weightdecay.labels import AXES, NAMES, SCHEDULES, method_of, name, titled
from weightdecay.number_format import between, in_units, interval, measured, noun, number, typed
from weightdecay.records import RunConfig, Spec
from weightdecay.results import (
    Coupling,
    Estimate,
    Extension,
    Landscape,
    Range,
    Recommendation,
    Repeat,
)
from weightdecay.site import rule_costs, rules
from weightdecay.table import shown

_GRID = (
    "In parentheses: values at which the expected {error} is at most 2 % above the lowest, the "
    "other of α and λ unchanged. In brackets:"
)
# As docs/landscape.md has it: beside a cliff, ranges hold the best λ less often than others.
PROBABLY = "where the best values probably lie (they did in 76 to 100 % of simulations)"
_SCATTERED = f"In parentheses: {PROBABLY}. In brackets:"
_ALIKE = (
    "the settings do not differ by more than noise, so any of them will do. To see a difference, "
    "train more seeds, or learning rates and decays that are further apart"
)
_SYMBOLS = (
    "95 % intervals. α is the learning rate, λ the decay, and λ ∝ α^(−s) at the best. Regret is "
    "the {error} that it costs to tune λ at one α and carry it, by a rule, to one 4 times higher "
    "or lower."
)

#: What torch's number is called.
TORCH = "torch's weight_decay"


def legend(landscapes: Iterable[Landscape]) -> str:
    """Return the meaning of the numbers in parentheses and in brackets."""
    every = [*landscapes]
    kinds = {not landscape.in_columns for landscape in every}
    if kinds == {True, False}:
        said = f"{_GRID} {_SYMBOLS} For scattered runs, parentheses hold {PROBABLY}."
    else:
        said = f"{_SCATTERED if kinds == {True} else _GRID} {_SYMBOLS}"
    return said.format(error=noun(every))


def title(landscape: Landscape, varied: Sequence[str] = ()) -> str:
    """Return a landscape's title; `varied` are the settings in which it differs from others."""
    if landscape.run_config is None:
        return titled(landscape.labels)
    return config_title(landscape.run_config, landscape.way, varied)


def config_title(config: RunConfig, way: str, varied: Sequence[str] = ()) -> str:
    """Return the title of the landscape that a configuration belongs to."""
    known = method_of(config, way)
    schedule = SCHEDULES[Spec.parse("schedule", config.schedule).name]
    parts = [NAMES.get(known, name(known)), schedule]
    if way == "normalized_decay":
        parts.insert(1, "normalized decay")
    told = {"algorithm", "schedule"}
    return ", ".join(
        [*parts, *(f"{one} {title_value(config, one)}" for one in varied if one not in told)]
    )


def title_value(config: RunConfig, name: str) -> object:
    """Return a setting for a title; without a number of examples, it is all of them."""
    value = getattr(config, name)
    return "all" if name == "data" and value is None else value


def block(advice: Recommendation) -> list[tuple[str, str]]:
    """Return the lines about a landscape, each with its label."""
    kind = noun([advice.landscape])
    told = [("use", _setting(advice)), *_conventions(advice), (kind, _error(advice))]
    told += [("ties", said)] if (said := ties(advice)) else []
    told += [("s", exponent(advice)), *_slopes(advice.coupling)]
    told += [
        ("regret", rule_costs.costs(advice.knobs.regret, advice.landscape.metric)),
        ("knobs", rules.sentence(advice)),
    ]
    return [*told, *(("add", line) for line in additions(advice))]


def ties(advice: Recommendation) -> str:
    """Return how many settings are as good as the best; nothing if one seed cannot tell."""
    if advice.differ is False:
        return _ALIKE
    if advice.tied is None:
        return ""
    count = len(advice.landscape.cells)
    if advice.tied == 1:
        return f"of {count} settings, the best is alone: no other is as good, up to noise"
    return f"of {count} settings, {advice.tied} are as good as the best, up to noise"


def knobs(advice: Recommendation) -> dict[str, str]:
    """Return the two settings to use, each with its range, by their symbols."""
    name, decay = own_decay(advice)
    return {"α": _range(advice.lr), name: _range(decay)}


def own_decay(advice: Recommendation) -> tuple[str, Range]:
    """Return the name and the range of the decay, as the table states it that the runs are from."""
    if advice.landscape.told_in_torch and advice.decays.torch is not None:
        return TORCH, advice.decays.torch
    return symbol(advice.landscape), advice.decay


def symbol(landscape: Landscape) -> str:
    """Return the symbol of a landscape's decay, with a word for that of L2 regularization."""
    return f"{'L2 factor ' * (landscape.way == 'l2')}{AXES[landscape.way][1]}"


def _setting(advice: Recommendation) -> str:
    said = ", ".join(f"{symbol} = {value}" for symbol, value in knobs(advice).items())
    return f"{said}: the best run, as no surface could be fitted" if advice.best_run else said


def _conventions(advice: Recommendation) -> list[tuple[str, str]]:
    """Return the same decay in the conventions that the line above does not use."""
    decays = advice.decays
    if advice.landscape.way == "l2":
        return [("", "L2 regularization: the same number in torch's SGD and Adam, not in AdamW")]
    every = {"λ": decays.weight_decay, "λ_norm": decays.normalized, TORCH: decays.torch}
    del every[own_decay(advice)[0]]
    said = [
        f"{what}{' λ/α' * (what == TORCH)} = {_range(one) if what == 'λ' else shown(one.value, 3)}"
        for what, one in every.items()
        if one is not None
    ]
    return [("", f"the same decay: {', '.join(said)}")] if said else []


def _range(one: Range) -> str:
    if one.low == one.high:
        return shown(one.value, 3)
    return f"{shown(one.value, 3)} ({shown(one.low, 3)} to {shown(one.high, 3)})"


def expected(advice: Recommendation) -> tuple[str, str]:
    """Return the error to expect, and its interval in brackets, which is empty if unknown."""
    return error_words(advice.error, advice.landscape.metric)


def error_words(found: Estimate, metric: str | None) -> tuple[str, str]:
    """Return an error, and its interval in brackets, which is empty if unknown."""
    ends = ""
    if math.isfinite(found.low):
        low, high = (_end(end, metric) for end in (found.low, found.high))
        ends = between(low, high)
    return measured(found.value, metric), ends


def _end(end: float, metric: str | None) -> str:
    """Return an end of an error's interval, in percent or with the digits of a task's metric."""
    return number(in_units(end, None)) if metric is None else measured(end, metric)


def _error(advice: Recommendation) -> str:
    found, landscape = advice.error, advice.landscape
    value, ends = expected(advice)
    top = " top-5" if landscape.of == "error_top5" else ""
    where = "" if landscape.tested_on is None else f" on the {landscape.tested_on} set"
    said = f"{value}{top}{where}{f' {ends}' if ends else ''}"
    said += f", chosen on {landscape.chosen_on or 'the same numbers'}"
    if advice.no_interval:
        said += f"; no interval: {advice.no_interval}"
    none = advice.without_decay
    if none is not None:
        no_worse = "no worse " * (none.mean <= found.value)
        there = f"{measured(none.mean, landscape.metric)} at α = {typed(none.lr)}"
        said += f"; {no_worse}without decay: {there}"
    return said


def exponent(advice: Recommendation) -> str:
    """Return s with its interval, and a note if it comes from the fitted surface.

    The reason why it is unknown is left out if the line about the knobs has it.
    """
    knobs = advice.knobs
    told = knobs.exponent.value is None and rules.undecided(advice)
    said = interval(knobs.exponent, reason=not told)
    return f"{said}, from the fitted surface" if knobs.fitted else said


def _slopes(measured: Coupling) -> list[tuple[str, str]]:
    """Return s on each side of the best learning rate, and by the second estimator.

    If s is known on one side alone, the reason is said for the other.
    """
    best = "the best α"
    known = [
        f"{interval(found, reason=False)} {where}"
        for found, where in (
            (measured.below, f"below {best}"),
            (measured.above, f"above {best if measured.below.value is None else 'it'}"),
            (measured.check, "by the second estimator"),
        )
        if found.value is not None and found.bound is None
    ]
    told = [("", ", ".join(known))] if known else []
    sides = ((measured.below, "below"), (measured.above, "above"))
    if any(found.value is not None for found, _ in sides):
        told += [
            ("", f"s unknown {where} {best}: {found.why.rstrip('.')}")
            for found, where in sides
            if found.value is None
        ]
    return told


def additions(advice: Recommendation) -> list[str]:
    """Return which cells to train next, one line each."""
    # A study states a decay by its field's name. Tables may state it in torch's convention.
    way, ours = advice.landscape.way, advice.landscape.run_config is not None
    decay = way if ours or way == "l2" else AXES[way][1]
    told = [_extension(one, decay) for one in advice.add]
    return [*told, _repeat(advice.repeat, decay)] if advice.repeat is not None else told


def _extension(one: Extension, decay: str) -> str:
    knob = {"lr": "lr", "torch": TORCH}.get(one.knob, decay)
    added = ", ".join(map(typed, one.values))
    if one.end == "between":
        return f"{knob} = {added}: between those trained, which are too far apart"
    beyond = "below the lowest" if one.end == "lowest" else "above the highest"
    if one.edge or one.others:
        others = " at other learning rates" * one.others
        return f"{knob} = {added}: {beyond} of the grid, where the best may be{others}"
    few, at = ("learning rates", "decay") if one.knob == "lr" else ("decays", "learning rate")
    return f"{knob} = {added}: {beyond} at the best {at}, where fewer than three {few} are"


def _repeat(one: Repeat, decay: str) -> str:
    seeds = " and ".join(map(str, one.seeds))
    decay = TORCH if one.knob == "torch" else decay
    lrs, decays = (
        typed(min(knob)) if len(knob) == 1 else f"from {typed(min(knob))} to {typed(max(knob))}"
        for knob in (one.lrs, one.decays)
    )
    return f"seeds {seeds} for lr {lrs} and {decay} {decays}"
