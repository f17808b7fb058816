"""The results of a study: its verdicts and numbers, and the files that show them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from weightdecay import files
from weightdecay.records import Run
from weightdecay.results import Doubts, doubts
from weightdecay.results.choosing import chosen_otherwise
from weightdecay.site import doubts as said
from weightdecay.studies.budget_numbers import (
    BUDGETS,
    CARRIED,
    BudgetNumbers,
    budget_numbers,
    budget_table,
    carried_table,
)
from weightdecay.studies.landscape_numbers import Numbers, is_grid, numbers_of
from weightdecay.studies.own_scale import OWN, options_of
from weightdecay.studies.registered_when import when
from weightdecay.studies.registration import Registration
from weightdecay.studies.samples import worker_of
from weightdecay.studies.scales import Scale, scale, values
from weightdecay.studies.second_stage import UNCHANGED, Judged
from weightdecay.studies.study import Evidence, Study, is_part
from weightdecay.studies.tables import CARRYING, JUDGED, carrying_table, judged_table, titled
from weightdecay.studies.verdict_json import as_json
from weightdecay.studies.verdicts import Verdict

#: Said of results without a second stage.
UNREGISTERED = "Nothing was registered for these results, and no fresh seeds judge them."


#: The seconds that a run trained, if they are known, and on what: a core or a GPU.
Spent: TypeAlias = tuple[float | None, str]


@dataclass(frozen=True)
class Findings:
    """A study's verdicts, the numbers of its landscapes, and doubts about its runs.

    `budgets` are the exponents of landscapes that differ in their budgets, if the study is about
    these.

    `runs` are the identities of the runs that it was judged by. `spent` has these and those of its
    second stage, each with the seconds that a worker trained it, or None, and what that is.
    `tested` names what is measured on the test set. `registration` and `second` are those of a
    second stage, if there is one, and `otherwise` has for each of its methods how many resampled
    seeds choose otherwise.
    """

    study: Study
    scale: Scale
    runs: frozenset[str]
    verdicts: tuple[Verdict, ...]
    numbers: tuple[Numbers, ...]
    budgets: tuple[BudgetNumbers, ...]
    small_print: str
    doubts: Doubts
    spent: Mapping[str, Spent]
    tested: str = "test error"
    registration: Registration | None = None
    second: Judged | None = None
    otherwise: Mapping[str, float | None] = field(default_factory=dict)


def command(study: Study, at: Scale) -> str:
    """Return the command that makes a study."""
    return f"weightdecay reproduce {study.name} {options_of(at)}"


def find(
    study: Study,
    at: Scale,
    runs: Iterable[Run],
    repeats: Iterable[Run] = (),
    *,
    registration: Registration | None = None,
    second: Sequence[Run] = (),
    planned: bool = True,
    costs: Mapping[str, float] | None = None,
) -> tuple[Findings, Evidence]:
    """Judge a study by its own runs, picked out of any; `repeats` are second trainings of them.

    If it is registered, the runs of its second stage are picked out of `second`. `planned` is as in
    `Study.evidence`. `costs` are the seconds that runs of both stages took, where the runs
    themselves do not say them.
    """
    runs = list(runs)
    known = {run.config.identity: run.seconds for run in (*runs, *second)}
    seen = study.evidence(at, runs, planned=planned, registration=registration)
    timed = {name: seconds for name, seconds in known.items() if seconds is not None}
    seen = replace(seen, costs={**timed, **(costs or {})})
    own = list({run.config.identity: run for run in (*seen.runs, *_twins(seen))}.values())
    otherwise, judges = {}, list[Run]()
    if registration is not None:
        otherwise = {
            name: chosen_otherwise(scape, registration.methods[name].choice)
            for name, scape in study.entrants(seen).items()
            if name in registration.methods
        }
        wanted = {cell.identity for cell in registration.cells()}
        judges = [run for run in second if run.config.identity in wanted]
        seen = study.judged(seen, registration, judges)
    fresh = {} if seen.second is None else seen.second.regrets
    found = Findings(
        study=study,
        scale=at,
        runs=frozenset(run.config.identity for run in own),
        verdicts=tuple(study.verdicts(seen)),
        numbers=tuple(
            numbers_of(one, task=at.task, fresh=fresh.get(one.panel.name))
            for one in seen.panels.values()
            if is_grid(one.landscape)
        ),
        budgets=tuple(budget_numbers(one.landscape for one in seen.panels.values()))
        if study.budgets
        else (),
        small_print=_small_print(study, at, own, seen),
        doubts=doubts(own, repeats, of=at.error),
        spent={
            run.config.identity: (seen.costs.get(run.config.identity), worker_of(run))
            for run in (*own, *judges)
        },
        tested=seen.tested,
        registration=seen.registration,
        second=seen.second,
        otherwise=otherwise,
    )
    return found, seen


def of_second_stage(found: Findings) -> list[str]:
    """Return when the second stage was registered, and what has changed since, in sentences."""
    if found.registration is None or found.second is None:
        return [UNREGISTERED] if found.runs else []
    said = (
        f"{when(found.registration)} What is judged is the difference at settings chosen in this "
        f"way.{_shares(found.otherwise)}"
    )
    compared = (*found.registration.compared, *found.study.pairs(found.scale))
    if apart := unequal(found.registration, compared):
        said += f" {apart}"
    return [said, *(found.second.changed or [UNCHANGED])]


def _shares(otherwise: Mapping[str, float | None]) -> str:
    told = [f"{name} {100 * share:.0f} %" for name, share in otherwise.items() if share is not None]
    if not told:
        return ""
    return (
        " Of resampled seeds, so many choose another learning rate, or a decay more than half a "
        f"doubling away: {'; '.join(told)}."
    )


def unequal(registration: Registration, compared: Iterable[tuple[str, str]] = ()) -> str:
    """Return the sizes of the grids that chose, if methods that are compared have unequal ones.

    Pairs of methods are those that were registered, or those given; one of an unregistered method
    is passed over. That λ = 0 is one decay alone, and other decays are many, is meant to be so.
    """
    sizes = {name: method.settings for name, method in registration.methods.items()}
    differ = {
        name: sizes[name]
        for pair in compared or registration.compared
        for name in pair
        if len({sizes.get(one) for one in pair} - {None}) > 1 and not any(map(is_part, pair))
    }
    if not differ:
        return ""
    told = "; ".join(f"{titled(name)} {size}" for name, size in differ.items())
    return (
        f"Methods that are compared were searched over unequal numbers of settings: {told}. The "
        "larger grid has had more chances to find a low error."
    )


def further_tables(found: Findings, *, pairs: bool = False) -> list[tuple[str, list[list[str]]]]:
    """Return the tables beside that of the landscapes, with titles, if they have rows.

    They are of the budget exponents, of decays carried over budgets, of the judged settings and of
    decays carried over learning rates.
    """
    tables = [
        (BUDGETS, budget_table(found.budgets)),
        (CARRIED, carried_table(found.budgets)),
        (JUDGED, judged_table(found.registration, found.second)),
        (CARRYING, carrying_table(found.numbers, pairs=pairs)),
    ]
    return [(title, rows) for title, rows in tables if rows]


def _twins(seen: Evidence) -> list[Run]:
    return [run for pairs in seen.twins.values() for pair in pairs for run in pair]


def _is_varied(seen: Evidence) -> bool:
    """Whether some panel has several settings to choose from."""
    return any(len(one.landscape.cells) > 1 for one in seen.panels.values())


def _small_print(study: Study, at: Scale, runs: Sequence[Run], seen: Evidence) -> str:
    if not runs:
        return command(study, at)
    tasks = sorted({run.config.task for run in runs})
    lengths = sorted({run.config.epochs for run in runs})
    epochs = ", ".join(str(length) for length in lengths if length > 1 or len(lengths) == 1)
    paired = (
        " (one for the runs that are compared in pairs)"
        if len(lengths) > 1 and 1 in lengths
        else ""
    )
    examples = sorted({run.config.data for run in runs if run.config.data is not None})
    data = f" ({', '.join(map(str, examples))} examples)" if examples else ""
    seeds = sorted({run.config.seed for run in runs})
    sown = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]} alone"
    models = sorted({run.config.model for run in runs})
    way = sorted({"test" if r.config.validation == "test" else "validation" for r in runs})
    error = seen.tested.replace("test ", "", 1)
    chosen = f"chosen by {' and '.join(way)} {error}" if _is_varied(seen) else "fixed beforehand"
    return (
        f"{len(runs)} runs of {' and '.join(models)} on {' and '.join(tasks)}{data}; {epochs} "
        f"epochs{paired}; {sown}; settings {chosen}, {seen.tested} of the "
        f"last epoch shown. {'' if study.curves else _in_titles(seen)}{command(study, at)}"
    )


def _in_titles(seen: Evidence) -> str:
    """Return what the titles of landscapes say, if a second stage has judged them."""
    if seen.registration is None or seen.second is None or not any(seen.second.runs.values()):
        return ""
    told = f"In titles: the {seen.tested} of {len(seen.registration.judges)} other seeds"
    if any(own.costs for own in seen.second.regrets.values()):
        told += ", and what it costs to keep λ when α becomes 4 times as large or small"
    return f"{told}. "


def undecided(study: Study, at: Scale) -> str:
    """Return a note that one seed decides little, and the cure; nothing if there are more seeds."""
    if len({cell.seed for cell in study.cells(at)}) != 1:
        return ""
    stated, cure = f"--scale {at.name}", f"No scale of {at.task} has more seeds."
    with suppress(ValueError):
        seeds = len(values(scale(at.task, "medium").seeds))
        cure = f"`--scale medium` has {seeds} seeds."
    if at.name == OWN:
        stated, cure = "--seeds 1", "Choose at least two."
    lost = "s no interval: claims about s" if at.judges else "no interval: claims that need one"
    return f"`{stated}` has one seed, which gives {lost} are not decided. {cure}"


def draw(
    found: Findings,
    seen: Evidence,
    folder: Path,
    *,
    formats: Sequence[str] = ("png", "svg", "pdf"),
) -> list[Path]:
    """Draw a study's picture from the runs there are; without any, draw nothing."""
    from weightdecay.figures import NothingToDrawError, save

    try:
        figure = found.study.draw(seen, "\n".join([*warning(found), found.small_print]))
    except NothingToDrawError:
        return []
    return save(figure, folder / "figure", formats=formats)


def warning(found: Findings) -> list[str]:
    """Return the doubts as lines for the picture; none if there are no doubts."""
    return said.lines(found.doubts) if found.doubts else []


def write_verdicts(found: Findings, folder: Path) -> None:
    """Write the verdicts as JSON, each with its text and its numbers."""
    rows = [as_json(verdict) for verdict in found.verdicts]
    with files.written(folder / "verdicts.json") as file:
        file.write(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def undrawn(found: Findings) -> str:
    """Return why there is nothing to draw."""
    count = len(found.study.cells(found.scale))
    if not found.runs:
        return f"There is nothing to draw: none of the {count} runs finished."
    return (
        f"There is nothing to draw: {len(found.runs)} of the {count} runs finished, and the "
        "picture needs the others."
    )
