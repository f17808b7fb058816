"""The paper's figures, each a short declaration: a grid, a picture, the claims it stands for."""

from weightdecay.studies.beyond import CONJECTURE, EXPONENTS
from weightdecay.studies.curve_figures import FIGURE_3, FIGURE_4
from weightdecay.studies.landscape_figures import FIGURE_1, FIGURE_2
from weightdecay.studies.scales import TASKS, Scale, scale
from weightdecay.studies.study import Evidence, Study
from weightdecay.studies.supplement import (
    SUPPLEMENT_1,
    SUPPLEMENT_2,
    SUPPLEMENT_3,
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

__all__ = ["STUDIES", "TASKS", "Evidence", "Scale", "Study", "scale"]
