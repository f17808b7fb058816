"""Figures 1 and 2: landscapes of the error over learning rate and decay."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from weightdecay.records import RunConfig
from weightdecay.results import Landscape, contrast
from weightdecay.studies import rulings
from weightdecay.studies.differences import compared, gains_nothing, same_steps, unless_at_edge
from weightdecay.studies.rulings import Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence, Study, family_cells, titled
from weightdecay.sweeps import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: A family's landscapes, with L2 regularization and with decoupled decay.
Pair: TypeAlias = tuple[Landscape, Landscape]


def drops(at: Scale) -> str:
    """Return the step-drop schedule: a tenth at 30 %, 60 % and 80 % of the epochs."""
    return f"drops,at={'/'.join(repr(round(part * at.epochs, 6)) for part in (0.3, 0.6, 0.8))}"


def _first(at: Scale) -> list[RunConfig]:
    return family_cells(at, "adam", schedules=("constant", drops(at), "cosine"))


def _draw_first(seen: Evidence, small_print: str) -> "Figure":
    found = [
        seen.pair("adam", schedule=schedule)
        for schedule in ("constant", drops(seen.scale), "cosine")
    ]
    panels = [pair[row] for row in (0, 1) for pair in found]
    return draw_landscapes(seen, panels, small_print, columns=3, schedule=True)


def draw_landscapes(
    seen: Evidence,
    panels: "list[Landscape | None]",
    small_print: str,
    *,
    columns: int,
    schedule: bool = False,
    epochs: bool = False,
) -> "Figure":
    """Draw those landscapes that there are, with what couples their knobs."""
    from weightdecay.figures import heatmaps

    there = [panel for panel in panels if panel is not None]
    drawn = [
        (
            ", ".join([titled(panel, schedule=schedule, epochs=epochs), *told]),
            panel,
            seen.coupling(panel),
        )
        for panel, told in zip(there, _varied(there), strict=True)
    ]
    return heatmaps(drawn, columns=columns, small_print=small_print)


def _varied(panels: Sequence[Landscape]) -> list[list[str]]:
    """Return of each panel what else tells it from the others: its task, or its data and batch."""
    configs = [panel.config for panel in panels]
    if len({config.task for config in configs}) > 1:
        return [[config.task] for config in configs]
    told: list[list[str]] = [[] for _ in configs]
    for name, words in (("data", "{} examples"), ("batch", "batch {}")):
        values = [getattr(config, name) for config in configs]
        usual = max(set(values), key=values.count) if values else None
        for own, value in zip(told, values, strict=True):
            own.extend([words.format(value)] if value != usual else [])
    return told


def _rule_first(seen: Evidence) -> list[Ruling]:
    pairs = {
        name: seen.pair("adam", schedule=schedule)
        for name, schedule in (
            ("a fixed rate", "constant"),
            ("step-drop", drops(seen.scale)),
            ("cosine", "cosine"),
        )
    }
    whole = {
        name: (coupled, decoupled)
        for name, (coupled, decoupled) in pairs.items()
        if coupled is not None and decoupled is not None
    }
    better = "Decoupled decay is better than L2 under every schedule"
    larger = "It gains more under better schedules than at a fixed rate"
    best = "Cosine annealing is the best of the schedules"
    if len(whole) < 3:
        return [
            rulings.unseen(claim, "Not all landscapes are there.")
            for claim in (better, larger, best)
        ]
    minus = "AdamW's best error minus Adam's"
    every = [
        compared(rulings.better, f"with {name}", minus, one=own, rival=other)
        for name, (other, own) in whole.items()
    ]
    more = [
        _gains_more(name, whole[name], whole["a fixed rate"]) for name in ("step-drop", "cosine")
    ]
    _, cosine = whole["cosine"]
    others = [
        compared(
            rulings.better,
            f"than with {name}",
            "AdamW's best error with cosine minus that",
            one=cosine,
            rival=own,
        )
        for name, (_, own) in whole.items()
        if name != "cosine"
    ]
    return [
        rulings.all_of(better, every),
        rulings.all_of(larger, more),
        rulings.all_of(best, others),
    ]


def _gains_more(name: str, here: Pair, fixed: Pair) -> Ruling:
    """Rule on whether decoupling gains more under a schedule than at a fixed rate."""
    (adam, adamw), (fixed_adam, fixed_adamw) = here, fixed
    found = contrast((adamw, adam), (fixed_adamw, fixed_adam))
    what = "AdamW's best error minus Adam's, less the same at a fixed rate"
    ruling = rulings.better(f"with {name}", found, what)
    return unless_at_edge(ruling, ones=[adamw, fixed_adam], rivals=[adam, fixed_adamw])


FIGURE_1 = Study(
    "figure-1",
    "Adam and AdamW under a fixed learning rate, step-drops and cosine annealing",
    _first,
    _draw_first,
    _rule_first,
)


def _second(at: Scale) -> list[RunConfig]:
    return [*family_cells(at, "sgd"), *family_cells(at, "adam"), *_twins(at)]


def _twins(at: Scale) -> list[RunConfig]:
    """Return one epoch of runs in pairs, λ′ = λ/α: the same for SGD, which has no momentum here."""
    axes = {**at.common, "task": at.task, "epochs": 1, "seed": 0, "schedule": "cosine"}
    cells = []
    for lr in (2**-7, 2**-5, 2**-3):
        for decay in (2**-9, 2**-7):
            cells += grid(algorithm="sgd,momentum=0", lr=lr, l2=decay / lr, **axes)
            cells += grid(algorithm="sgdw,momentum=0", lr=lr, weight_decay=decay, **axes)
            cells += grid(algorithm="adam", lr=lr / 8, l2=8 * decay / lr, **axes)
            cells += grid(algorithm="adamw", lr=lr / 8, weight_decay=decay, **axes)
    return cells


def _draw_second(seen: Evidence, small_print: str) -> "Figure":
    panels = [*seen.pair("sgd"), *seen.pair("adam")]
    return draw_landscapes(seen, panels, small_print, columns=2)


def _rule_second(seen: Evidence) -> list[Ruling]:
    (sgd, sgdw), (adam, adamw) = seen.pair("sgd"), seen.pair("adam")
    found = [same_steps(seen)]
    shapes = (
        ("SGD's basin lies on a diagonal", rulings.diagonal, sgd),
        ("SGDW's basin stands upright", rulings.upright, sgdw),
        ("Adam's basin lies on a diagonal", rulings.diagonal, adam),
        ("AdamW's basin stands upright", rulings.upright, adamw),
    )
    for claim, rule, landscape in shapes:
        if landscape is None:
            found.append(rulings.unseen(claim, "Its landscape is not there."))
        else:
            found.append(rule(claim, seen.coupling(landscape).exponent))
    nothing = "Adam gains nothing from L2 over λ = 0"
    better = "AdamW's best is better than Adam's"
    rivals = "AdamW's best rivals SGD's and SGDW's"
    if sgd is None or sgdw is None or adam is None or adamw is None:
        missing = "Not all landscapes are there."
        return [*found, *(rulings.unseen(claim, missing) for claim in (nothing, better, rivals))]
    against = [
        compared(
            rulings.no_worse,
            f"against {name}",
            f"AdamW's best error minus {name}'s",
            one=adamw,
            rival=other,
        )
        for name, other in (("SGD", sgd), ("SGDW", sgdw))
    ]
    return [
        *found,
        gains_nothing(nothing, adam),
        compared(rulings.better, better, "AdamW's best error minus Adam's", one=adamw, rival=adam),
        rulings.all_of(rivals, against),
    ]


FIGURE_2 = Study(
    "figure-2",
    "SGD, SGDW, Adam and AdamW over learning rate and decay",
    _second,
    _draw_second,
    _rule_second,
)
