"""From numbers to pictures: heat maps, curves and schedules. Nothing is computed here."""

try:
    import matplotlib as _  # noqa: F401 - asked for here, once, for every drawing below
except ImportError:
    raise ImportError(
        "Figures need matplotlib to draw them: pip install 'weightdecay[figures]'"
    ) from None

from weightdecay.figures.charts import Curves, Scatter, Settings, Trace
from weightdecay.figures.curves import curves
from weightdecay.figures.heatmaps import heatmaps
from weightdecay.figures.saving import save
from weightdecay.figures.schedule import multipliers
from weightdecay.figures.sheet import NothingToDrawError

__all__ = [
    "Curves",
    "NothingToDrawError",
    "Scatter",
    "Settings",
    "Trace",
    "curves",
    "heatmaps",
    "multipliers",
    "save",
]
