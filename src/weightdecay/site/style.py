"""The colours of pages: black on white, or white on black in dark mode."""

from weightdecay.colours import FAINT, INK, MUTED, OUTCOMES, PAPER

_NAMES = [word.replace(" ", "-") for word in OUTCOMES]
_LIGHT = {"paper": PAPER, "card": PAPER, "ink": INK, "muted": MUTED, "faint": FAINT}
_LIGHT |= zip(_NAMES, (on_white for _, on_white, _ in OUTCOMES.values()), strict=True)
_DARK = {"paper": INK, "card": PAPER, "ink": "#e9e7e2", "muted": "#a5a29b", "faint": "#47463f"}
_DARK |= zip(_NAMES, (on_ink for _, _, on_ink in OUTCOMES.values()), strict=True)


def _colours(named: dict[str, str]) -> str:
    return ":root { " + " ".join(f"--{name}: {colour};" for name, colour in named.items()) + " }"


#: The colours of both modes, for any page.
COLOURS = f"""\
{_colours(_LIGHT)}
@media screen and (prefers-color-scheme: dark) {{ {_colours(_DARK)} }}
{" ".join(f".{name} {{ color: var(--{name}); }}" for name in _NAMES)}
"""
