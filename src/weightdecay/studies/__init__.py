"""The paper's figures, each declared by its panels, its picture and its claims."""

from weightdecay.studies.budget_figures import EXPONENTS, SUPPLEMENT_3
from weightdecay.studies.curve_figures import FIGURE_3, FIGURE_4
from weightdecay.studies.landscape_figures import CONJECTURE, FIGURE_1, FIGURE_2
from weightdecay.studies.own_scale import own_scale
from weightdecay.studies.panel import Measurement, Panel
from weightdecay.studies.scales import Scale, scale
from weightdecay.studies.study import Claim, Evidence, NotAtThisScaleError, Study
from weightdecay.studies.supplement import (
    SUPPLEMENT_1,
    SUPPLEMENT_2,
    SUPPLEMENT_4,
    SUPPLEMENT_5,
    SUPPLEMENT_6,
)

#: All of them, by name.
STUDIES = {
    study.name: study
    for study in (
        *(FIGURE_1, FIGURE_2, FIGURE_3, FIGURE_4),
        *(SUPPLEMENT_1, SUPPLEMENT_2, SUPPLEMENT_3, SUPPLEMENT_4, SUPPLEMENT_5, SUPPLEMENT_6),
        *(CONJECTURE, EXPONENTS),
    )
}


def studies_at(at: Scale) -> list[Study]:
    """Return the studies that are possible at a scale."""
    return [study for study in STUDIES.values() if _possible(study, at)]


def _possible(study: Study, at: Scale) -> bool:
    try:
        study.cells(at)
    except NotAtThisScaleError:
        return False
    return True


__all__ = [
    "STUDIES",
    "Claim",
    "Evidence",
    "Measurement",
    "NotAtThisScaleError",
    "Panel",
    "Scale",
    "Study",
    "own_scale",
    "scale",
    "studies_at",
]
