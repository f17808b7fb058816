"""From runs of any origin to numbers: landscapes, recommendations, exponents, ties, curves."""

from weightdecay.results.agreement import Agreement, Doubts, Pair, agreement, doubts
from weightdecay.results.budget import BudgetExponent, budget_exponents
from weightdecay.results.budget_transfer import (
    BudgetRegret,
    PowerCosts,
    budget_regret,
    compare_powers,
    pairs_over,
)
from weightdecay.results.carrying import Knobs
from weightdecay.results.comparison import (
    chosen_by_others,
    contrast,
    difference,
    equal_loss,
    with_and_without,
)
from weightdecay.results.coupling import Coupling, Exponent, Line, RidgePoint, coupling
from weightdecay.results.curves import Curve, against_training_loss, anytime, curve
from weightdecay.results.estimate import Estimate
from weightdecay.results.grouping import landscapes
from weightdecay.results.judging import Judgement, judged, transfer_regret
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.next_runs import Extension, Repeat
from weightdecay.results.outliers import Outlier, outliers
from weightdecay.results.points import Point, Points, Remark
from weightdecay.results.ranges import Range
from weightdecay.results.recommendation import Decays, Recommendation, recommend
from weightdecay.results.scatter import SurfaceFit, fit_surface
from weightdecay.results.separability import Regret, interaction_share, regret, sensitivity
from weightdecay.results.splits import by_split, cell_curves, cell_runs
from weightdecay.results.table_points import read_points
from weightdecay.results.transfer import Move, TransferRegret, measure_moves, measure_transfer

__all__ = [
    "Agreement",
    "BudgetExponent",
    "BudgetRegret",
    "Cell",
    "Coupling",
    "Curve",
    "Decays",
    "Doubts",
    "Estimate",
    "Exponent",
    "Extension",
    "Judgement",
    "Knobs",
    "Landscape",
    "Line",
    "Move",
    "Outlier",
    "Pair",
    "Point",
    "Points",
    "PowerCosts",
    "Range",
    "Recommendation",
    "Regret",
    "Remark",
    "Repeat",
    "RidgePoint",
    "SurfaceFit",
    "TransferRegret",
    "against_training_loss",
    "agreement",
    "anytime",
    "budget_exponents",
    "budget_regret",
    "by_split",
    "cell_curves",
    "cell_runs",
    "chosen_by_others",
    "compare_powers",
    "contrast",
    "coupling",
    "curve",
    "difference",
    "doubts",
    "equal_loss",
    "fit_surface",
    "interaction_share",
    "judged",
    "landscapes",
    "measure_moves",
    "measure_transfer",
    "outliers",
    "pairs_over",
    "read_points",
    "recommend",
    "regret",
    "sensitivity",
    "transfer_regret",
    "with_and_without",
]
