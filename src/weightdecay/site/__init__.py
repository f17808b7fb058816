"""Text and pictures into one HTML page that needs no network and no script."""

from weightdecay.site.report import PageTable, PageVerdict, Picture, report

__all__ = ["PageTable", "PageVerdict", "Picture", "report"]
