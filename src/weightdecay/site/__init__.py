"""Text, pictures and landscapes into one HTML page that needs no network."""

from weightdecay.site.advised import Advised, advise, advised, page_landscapes
from weightdecay.site.claims import PageClaim, PageInterval
from weightdecay.site.interactive import interactive
from weightdecay.site.page_landscape import JudgedSetting, PageLandscape
from weightdecay.site.parts import PageTable, Picture

__all__ = [
    "Advised",
    "JudgedSetting",
    "PageClaim",
    "PageInterval",
    "PageLandscape",
    "PageTable",
    "Picture",
    "advise",
    "advised",
    "interactive",
    "page_landscapes",
]
