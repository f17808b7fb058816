"""What the marks on a page's landscapes are, in words."""

from collections.abc import Sequence

from weightdecay.site.page_landscape import PageLandscape


def about_marks(found: Sequence[PageLandscape]) -> str:
    """Return where the setting to use comes from, and why the ridge may miss it."""
    known = [one for one in found if one.advice is not None]
    if not known:
        return ""
    ways = dict.fromkeys(map(_chosen, known))
    told = f"◆ is the setting to use: {', or '.join(ways)}."
    ridged = [one for one in known if one.advice and one.advice.shown_coupling.ridge]
    return f"{told} {_ridge(ridged[0])}" if ridged else told


def _chosen(one: PageLandscape) -> str:
    """Return how the setting to use was chosen."""
    if one.judged is not None:
        return "the one that was registered and that other seeds have judged"
    if one.advice is not None and one.advice.best_run:
        return "that of the best run"
    return "where all runs together predict the lowest error"


def _ridge(one: PageLandscape) -> str:
    """Return what the ridge is, by which errors."""
    tested, chosen = one.landscape.tested_on, one.landscape.chosen_on
    two = tested is not None and chosen is not None and tested != chosen
    by, why = (
        (f"the {tested} errors", f"◆ was chosen on {chosen}, so it")
        if two
        else ("the errors", "So ◆")
    )
    return (
        f"○ is the best λ at one α, by {by} around it at that α alone; the band is one standard "
        f"error. {why} need not lie on the ○ of its α."
    )
