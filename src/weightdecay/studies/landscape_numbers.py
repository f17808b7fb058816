"""The numbers of a landscape, which are the rows of every table."""

from dataclasses import dataclass

from weightdecay.results import (
    Cell,
    Estimate,
    Exponent,
    Knobs,
    Landscape,
    Regret,
    TransferRegret,
    coupling,
    interaction_share,
    measure_transfer,
    regret,
    sensitivity,
)
from weightdecay.studies.panel import Measurement, restated


@dataclass(frozen=True)
class Numbers:
    """A landscape's numbers; `panel` is the name of its panel and `label` its name in a table.

    `in_torch` is the exponent of the same runs with λ stated as torch states it, which is greater
    by 1. It is None for L2 regularization, whose factor is the same number in both. `check` is the
    second estimator's exponent; `below` and `above` are those on either side of the best learning
    rate. `knobs` says by which rule to carry a decay to another learning rate, and `regret` is the
    cost of tuning one knob at a time. `metric` is the name of the task's own metric, if it has one.
    """

    panel: str
    label: str
    in_torch: Exponent | None
    check: Exponent
    below: Exponent
    above: Exponent
    best: Cell
    knobs: Knobs
    regret: Regret
    sensitivity: Estimate
    interaction: Estimate
    tied: int
    settings: int
    metric: str | None = None

    @property
    def exponent(self) -> Exponent:
        """Return the coupling exponent."""
        return self.knobs.exponent

    @property
    def transfer(self) -> TransferRegret:
        """Return the cost of carrying a decay to another learning rate."""
        return self.knobs.regret


def numbers_of(measured: Measurement, *, task: str, fresh: TransferRegret | None) -> Numbers:
    """Measure a landscape; its label names its task where that is not `task`.

    `fresh` is the transfer regret of a second stage, if one has measured it.
    """
    scape, found = measured.landscape, measured.coupling
    decoupled = scape.way != "l2"
    knobs = Knobs(found.exponent, fitted=False, regret=measure_transfer(scape), bent=found.bent)
    return Numbers(
        panel=measured.panel.name,
        label=restated(scape, task),
        in_torch=coupling(scape, convention="torch").exponent if decoupled else None,
        check=found.check,
        below=found.below,
        above=found.above,
        best=scape.best,
        knobs=knobs.judged(fresh) if fresh is not None and fresh.costs else knobs,
        regret=regret(scape),
        sensitivity=sensitivity(scape),
        interaction=interaction_share(scape),
        tied=len(scape.tied),
        settings=len(scape.cells),
        metric=scape.metric,
    )


def is_grid(scape: Landscape) -> bool:
    """Whether a landscape is a grid, large enough to have such numbers."""
    size = len(scape.lrs) * len(scape.decays)
    return min(len(scape.lrs), len(scape.decays)) > 2 and 2 * len(scape.cells) > size
