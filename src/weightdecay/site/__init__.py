"""Text, pictures and landscapes into one HTML page that needs no network."""

from weightdecay.site.interactive import interactive
from weightdecay.site.page_data import PageLandscape
from weightdecay.site.report import PageTable, PageVerdict, Picture, report

__all__ = ["PageLandscape", "PageTable", "PageVerdict", "Picture", "interactive", "report"]
