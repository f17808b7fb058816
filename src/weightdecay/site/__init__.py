"""Plain data into one page that opens anywhere: nothing is computed, fetched or run in it."""

from weightdecay.site.report import Picture, Ruling, Sheet, report

__all__ = ["Picture", "Ruling", "Sheet", "report"]
