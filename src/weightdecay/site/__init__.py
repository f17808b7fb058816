"""Plain data into one page that opens anywhere: nothing is computed, fetched or run in it."""

from weightdecay.site.report import PageTable, Picture, Verdict, report

__all__ = ["PageTable", "Picture", "Verdict", "report"]
