"""The style of the report page: black on white, or white on black in dark mode.

It uses fonts of the reader's machine. Only pictures and outcomes are coloured.
"""

from weightdecay.colours import FAINT, INK, MUTED, OUTCOMES, PAPER

_NAMES = [word.replace(" ", "-") for word in OUTCOMES]
_LIGHT = {"paper": PAPER, "card": PAPER, "ink": INK, "muted": MUTED, "faint": FAINT}
_LIGHT |= zip(_NAMES, (on_white for _, on_white, _ in OUTCOMES.values()), strict=True)
_DARK = {"paper": INK, "card": PAPER, "ink": "#e9e7e2", "muted": "#a5a29b", "faint": "#47463f"}
_DARK |= zip(_NAMES, (on_ink for _, _, on_ink in OUTCOMES.values()), strict=True)


def _colours(named: dict[str, str]) -> str:
    return ":root { " + " ".join(f"--{name}: {colour};" for name, colour in named.items()) + " }"


_RULES = """\
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 58rem; padding: 0 1.25rem; overflow-wrap: break-word;
  background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 Charter, "Bitstream Charter", "Iowan Old Style", Palatino,
    "Palatino Linotype", Cambria, Georgia, "Liberation Serif", serif; }
h1, h2, h3 { font-weight: 600; line-height: 1.2; text-wrap: balance; }
h1 { margin: 0; font-size: clamp(2.1rem, 6vw, 3.25rem); letter-spacing: -0.015em; }
h2 { margin: 0 0 2rem; padding-top: 0.8rem; border-top: 1px solid var(--ink); font-size: 1.5rem; }
h3 { margin: 0 0 0.5rem; font-size: 1.1875rem; }
p { margin: 0 0 0.5rem; max-width: 42rem; text-wrap: pretty; }
a { color: inherit; text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
code { font: 0.85em ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
:focus-visible { outline: 2px solid var(--held); outline-offset: 3px; }
header { padding: clamp(2.5rem, 9vw, 6rem) 0 0; }
section { margin-top: 4.5rem; }
.lead { margin: 1.5rem 0; font-size: 1.3125rem; line-height: 1.5; }
.tally { margin: 0 0 2rem; font-size: 1.3125rem; }
.tally > span { white-space: nowrap; }
.outcome { font-weight: 600; }
.glyph { font-family: "DejaVu Sans", "Segoe UI Symbol", "Apple Symbols", sans-serif; }
nav, .verdict, .rule, table, footer, #small-print p { font-size: 0.9375rem; }
ol, nav ul { margin: 0; padding: 0; list-style: none; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; }
nav a { color: var(--muted); }
figure { margin: 0 0 3.5rem; }
figcaption, .rule, footer, #small-print p { color: var(--muted); }
figcaption { max-width: 42rem; margin-top: 0.75rem; text-wrap: pretty; }
svg { display: block; max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
figure .wide { width: fit-content; max-width: 100%; background: var(--card); }
li[id] { display: grid; grid-template-columns: 9rem 1fr; padding: 1.5rem 0 1rem;
  border-top: 1px solid var(--faint); }
li[id]:first-child { padding-top: 0; border: 0; }
.verdict { margin: 0; line-height: 1.6; }
.rule b { margin-right: 0.4em; font-weight: 600; }
table { margin: 0 0 3rem; border-collapse: collapse;
  font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: 0.45rem 1.75rem 0.45rem 0; border-bottom: 1px solid var(--faint);
  text-align: left; vertical-align: baseline; white-space: nowrap; font-weight: 400; }
thead th { border-color: var(--ink); color: var(--muted); }
tbody th { font-weight: 600; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; }
footer { margin-top: 4.5rem; padding: 1rem 0 4rem; border-top: 1px solid var(--ink); }
@media screen and (prefers-color-scheme: dark) {
  figure .wide { margin: 0.75rem 0 1rem; padding: 1rem; border-radius: 6px; }
}
@media screen and (max-width: 44rem) {
  svg { min-width: calc(0.75 * var(--width)); }
  figure .wide { width: auto; max-width: none; margin: 0 -1.25rem; padding: 0.5rem 1.25rem;
    border-radius: 0; }
  li[id] { display: block; }
  section { margin-top: 3.5rem; }
}
footer p { max-width: none; }
@page { margin: 18mm; }
@media print {
  html { font-size: 9pt; }
  body { max-width: none; padding: 0; }
  h1 { font-size: 2.25rem; }
  h2 { margin-bottom: 1rem; }
  .lead, .tally { margin: 0.75rem 0; font-size: 1.1875rem; }
  section, footer { margin-top: 2rem; }
  figure { margin-bottom: 2rem; }
  svg { max-width: 85%; }  /* the first picture stands on the first page */
  nav { display: none; }
  header, footer { padding-bottom: 0; padding-top: 0; border: 0; }
  h2, h3 { break-after: avoid; }
  figure, li, table { break-inside: avoid; }
  .wide { overflow: visible; }
}
"""

#: The colours of both modes, for any page.
COLOURS = f"""\
{_colours(_LIGHT)}
@media screen and (prefers-color-scheme: dark) {{ {_colours(_DARK)} }}
{" ".join(f".{name} {{ color: var(--{name}); }}" for name in _NAMES)}
"""
STYLE = f"{COLOURS}{_RULES}"
