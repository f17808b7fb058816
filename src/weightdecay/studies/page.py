"""The page of a study: what to use, the paper's claims, the landscapes, and all numbers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weightdecay import files
from weightdecay.results import TransferRegret
from weightdecay.results.judging import mean_of
from weightdecay.site import (
    Advised,
    JudgedSetting,
    PageLandscape,
    PageTable,
    Picture,
    advise,
    interactive,
    page_landscapes,
)
from weightdecay.site import doubts as said
from weightdecay.site.answers import QUESTION
from weightdecay.studies.costs import cost_of
from weightdecay.studies.findings import (
    Findings,
    command,
    further_tables,
    of_second_stage,
    undecided,
    undrawn,
    warning,
    write_verdicts,
)
from weightdecay.studies.landscape_numbers import is_grid
from weightdecay.studies.own_scale import OWN
from weightdecay.studies.page_claims import page_claim
from weightdecay.studies.panel import Measurement
from weightdecay.studies.study import Evidence
from weightdecay.studies.tables import table_of

_OF_CURVES = (
    "Medians over seeds; a band holds the middle 60 % of them. If a curve shows the best of "
    "several settings, each seed uses the one that the other seeds choose."
)
_OF_LANDSCAPES = (
    "Each cell is the mean {tested} over seeds, λ along x and α upward. s says how the best "
    "decay moves with the learning rate, λ* ∝ α⁻ˢ: 0 means two separate knobs, 1 a diagonal."
)
_WORDS = """\
A basin is where the error is low: diagonal if its best decay falls as the learning rate grows.
Transfer regret is what it costs to tune the decay at one learning rate and carry it to another, a \
factor of 4 away, by a rule λ ∝ α⁻ˢ. Of rules that cost the same up to noise, the simplest is \
named. Without a second stage, each seed judges the decays that the others choose, by errors \
interpolated between the measured decays.
Settings are tied if noise explains their difference from the best. Regret is the loss from tuning \
one knob after the other instead of both together, on average over starting points and at worst.
Sensitivity to α is the average loss of a learning rate of the grid, at its best decay. \
Interaction is the share of the variance in the basin that the two knobs do not explain separately.
Differences are judged by seeds that did not choose the settings, so they need not equal the \
differences of the numbers in the picture.
A difference "would have been seen" if such data show it in 80 % of cases. The seeds that would \
decide a claim are so many that they show it in 80 % of cases, if its number is what was measured, \
and if its noise falls with the root of the number of seeds.""".splitlines()


def tell(found: Findings, seen: Evidence, folder: Path, *, drawn: bool = True) -> Path:
    """Write verdicts.json and the page, with the picture if one was `drawn`."""
    write_verdicts(found, folder)
    path = folder / "report.html"
    with files.written(path) as file:
        file.write(_page(found, seen, _pictures(found, folder) if drawn else []).encode())
    return path


def _page(found: Findings, seen: Evidence, pictures: Sequence[Picture]) -> str:
    tables: list[tuple[str, Sequence[Sequence[str]]]] = [
        ("Landscapes", table_of(found.numbers)),
        *further_tables(found, pairs=True),
        ("Cells that stand out from their neighbours", said.rows(found.doubts)),
    ]
    notes = [undecided(found.study, found.scale), "" if pictures else undrawn(found)]
    return interactive(
        found.study.title,
        _landscapes(found, seen),
        lead=" ".join([_lead(found), *(line.strip() for line in warning(found))]),
        command=command(found.study, found.scale),
        claims=[page_claim(one) for one in found.verdicts],
        # Landscapes are on the page already.
        pictures=pictures if found.study.curves or not found.numbers else (),
        tables=[PageTable(title, rows) for title, rows in tables if rows],
        notes=[
            *filter(None, notes),
            found.small_print,
            *([cost_of(found)] if found.runs else []),
            *of_second_stage(found),
            *(() if found.doubts else said.lines(found.doubts)),
            *filter(None, [" ".join(line.strip() for line in said.bounds(found.doubts))]),
            *_WORDS,
        ],
    )


def _lead(found: Findings) -> str:
    at = found.scale.name
    size = "over the usual grids" if at == OWN else f"at {at} scale"
    asked = f"{QUESTION} " * bool(found.numbers)
    return f"{asked}{_name(found)} of the paper, on {found.scale.task}, {size}."


def _name(found: Findings) -> str:
    return found.study.name.replace("-", " ").capitalize()


def _pictures(found: Findings, folder: Path) -> list[Picture]:
    svg = (folder / "figure.svg").read_text("utf-8")
    caption = _OF_CURVES if found.study.curves else _OF_LANDSCAPES.format(tested=found.tested)
    return [Picture(_name(found), svg, caption)]


def _landscapes(found: Findings, seen: Evidence) -> list[PageLandscape]:
    """Return the panels. Those that are no grid only have cells and curves to look at."""
    fresh = {} if seen.second is None else seen.second.regrets
    shown = [_advised(one, fresh.get(name)) for name, one in seen.panels.items()]
    pages = page_landscapes(shown, seen.runs, found.doubts)
    return [
        replace(one, answered=is_grid(one.landscape), judged=_judged(seen, name))
        for name, one in zip(seen.panels, pages, strict=True)
    ]


def _judged(seen: Evidence, name: str) -> JudgedSetting | None:
    """Return a panel's registered setting, if fresh seeds have judged it."""
    if seen.second is None or seen.registration is None or name not in seen.second.runs:
        return None
    errors = seen.second.errors(name)
    if len(errors) < 2:
        return None
    choice = seen.registration.methods[name].choice
    return JudgedSetting(choice.lr, choice.decay, mean_of(np.array(errors)), len(errors))


def _advised(one: Measurement, fresh: TransferRegret | None) -> Advised:
    if is_grid(one.landscape):
        return advise(one.panel.title, one.landscape, fresh)
    return Advised(one.panel.title, one.landscape, None)
