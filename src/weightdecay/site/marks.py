"""What the marks on a page's landscapes are, in words."""

from collections.abc import Sequence

from weightdecay.site.page_landscape import PageLandscape

_RIDGE = (
    "○ is the best λ at one α, by the runs at that α alone; the band is one standard error. So ◆ "
    "need not lie on the ○ of its α."
)


def about_marks(found: Sequence[PageLandscape]) -> str:
    """Return where the setting to use comes from, and why the ridge may miss it."""
    ways = dict.fromkeys(_chosen(one) for one in found if one.advice is not None)
    if not ways:
        return ""
    ridge = any(one.advice is not None and one.advice.shown_coupling.ridge for one in found)
    return f"◆ is the setting to use: {', or '.join(ways)}. {_RIDGE if ridge else ''}".strip()


def _chosen(one: PageLandscape) -> str:
    """Return how the setting to use was chosen."""
    if one.judged is not None:
        return "the trained setting that was registered and that other seeds have judged"
    if one.advice is not None and one.advice.best_run:
        return "that of the best run"
    return "where all runs together predict the lowest error"
