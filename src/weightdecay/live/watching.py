"""Watches a source that grows, for any number of viewers, and tells each what is new to it.

A view is the data of a page at some moment, under a version. What has come since is sent cell by
cell. Every now and then a new view is computed in the background, since a recommendation needs all
cells: the longer that takes, the rarer it is done. Without viewers, nothing is done.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from weightdecay.live.planned import Cell, Key, Plan, planned, titles, with_planned
from weightdecay.live.reading import Reading, has_begun, not_begun
from weightdecay.records import Run
from weightdecay.results import by_split, cell_runs, landscapes
from weightdecay.results.grouping import apart
from weightdecay.site import PageClaim, PageLandscape
from weightdecay.site.answers import answers
from weightdecay.site.claims import claims_data, claims_section, tally

_SOON = 2.0  # seconds between two views, at least
_SHARE = 50.0  # a view may take this part of the time
_STATUS, _RAREST = 1.0, 5.0  # seconds for which a status is good, at least and at most
_LOOKS = 100.0  # reading what is new may take this part of the time
_FOLLOWS = "The recommendation is being computed and appears here soon."
_LATER = "Waiting for the first result. A recommendation appears here when cells are done."


@dataclass(frozen=True)
class Analysis:
    """All that a page shows of a source: its landscapes, notes for the small print, and claims.

    `to_judge` says which claims cannot be judged yet. `top` is what the page says first of all.
    """

    pages: Sequence[PageLandscape]
    notes: Sequence[str]
    claims: Sequence[PageClaim] = ()
    to_judge: str = ""
    top: Sequence[str] = ()


@dataclass(frozen=True)
class View:
    """The data of a page, and where each cell is in it. An empty one has no result yet."""

    version: str
    empty: bool
    data: Mapping[str, Any] = field(repr=False)
    where: Mapping[Cell, tuple[int, int]] = field(repr=False)

    @cached_property
    def text(self) -> bytes:
        """Return the data as JSON."""
        return as_json(self.data)


class Watched:
    """A source and its viewers.

    `analyse` reads the source and recommends settings. It raises an error if there is nothing to
    show yet. `began` tells this server from an earlier one. `fixed` are more data for the page.
    A source that is not there yet is a folder that is waited for.
    """

    def __init__(
        self,
        path: Path,
        analyse: Callable[[], Analysis],
        *,
        began: str,
        fixed: Mapping[str, Any],
        of: str = "error",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._analyse, self._of = path, analyse, of
        self._began, self._fixed, self._clock = began, fixed, clock
        self._lock = threading.RLock()
        self._reading = None if path.is_file() else self._new_reading()
        self._begun = has_begun(path)
        self._gone = False
        self._stamp: object = None  # of a table
        self._views = 0
        self._seen: object = None
        self._waiting = ""
        self._checked = self._next = self._ended = -float("inf")
        self._rest = _STATUS
        self._worker: threading.Thread | None = None
        # Why the source could not be read, and why no new view could be made.
        self._unread = self._trouble = ""
        self._look()
        self._view, self._seen = self._made(self._reading, thorough=self._reading is None)

    def _new_reading(self) -> Reading:
        return Reading(self._path, of=self._of, clock=self._clock)

    @property
    def view(self) -> View:
        """Return the newest view."""
        return self._view

    def news(self, version: str, after: int) -> dict[str, Any]:
        """Return the status, and the cells that have changed after a place in the order of news.

        Viewers of another version get none: they need the whole view.
        """
        with self._lock:
            self._try_to_look()
            view, reading = self._view, self._reading
            told: list[list[Any]] = []
            running: list[list[int]] = []
            if reading is not None and version == view.version:
                told = [
                    [*view.where[cell], *reading.row(cell)]
                    for cell in reading.changed(after)
                    if cell in view.where
                ]
                running = [
                    [*view.where[cell], seeds]
                    for cell, seeds in reading.running().items()
                    if cell in view.where
                ]
            self._work()
            return {
                "version": view.version,
                "after": 0 if reading is None else reading.sequence,
                "cells": told,
                "running": running,
                "status": self._status(),
            }

    def finish(self) -> None:
        """Wait for the view that is being computed, if there is one."""
        worker = self._worker
        if worker is not None:
            worker.join()

    def _status(self) -> dict[str, Any]:
        """Return what stands above the page: progress, what cannot be read, what is to come."""
        trouble, note = self._unread or self._trouble, self._waiting
        stages = [] if self._reading is None or note else self._reading.status["stages"]
        if not (note or trouble or self._view.data["answers"]):
            computed = self._reading is not None and self._reading.sequence
            note = _FOLLOWS if computed else _LATER
        return {"stages": stages, "trouble": trouble, "note": note}

    def _try_to_look(self) -> None:
        """Read what is new, at most once in a while, however many viewers ask.

        In a large source, asking for the locks of all waiting cells takes a while.
        """
        started = self._clock()
        if started - self._checked < self._rest:
            return
        try:
            self._look()
            self._show_first()
            self._unread = ""
        except (OSError, ValueError) as error:
            self._unread = str(error)
        self._rest = min(_RAREST, max(_STATUS, _LOOKS * (self._clock() - started)))

    def _look(self) -> None:
        self._checked = self._clock()
        if self._reading is None:
            if not self._path.exists():
                raise _no_longer_there(self._path)
            found = self._path.stat()
            self._stamp = found.st_mtime_ns, found.st_size
            return
        if not has_begun(self._path):
            if self._begun:
                self._gone = True
                raise _no_longer_there(self._path)
            self._reading.look()
            self._waiting = not_begun(self._path)
            return
        self._begun, self._waiting = True, ""
        if self._gone or not self._reading.is_current():
            self._begin_again()
        else:
            self._reading.look()

    def _show_first(self) -> None:
        """Show the first results at once. Until then nothing tells what their colours mean."""
        reading = self._reading
        if reading is not None and reading.sequence and self._view.empty:
            self._view, self._seen = self._made(reading, thorough=False)
            self._next = -float("inf")

    def _begin_again(self) -> None:
        """Read all anew and show that: what was read is no longer there."""
        fresh = self._new_reading()
        fresh.look()
        self._view, self._seen = self._made(fresh, thorough=False)
        self._reading, self._gone, self._trouble = fresh, False, ""
        self._next = self._ended = -float("inf")

    def _work(self) -> None:
        """Begin a new view if something has changed and the last one is old enough.

        Once all is trained, nobody is slowed down any more.
        """
        reading = self._reading
        if self._unread or (self._worker is not None and self._worker.is_alive()):
            return
        if self._stamp_of(reading) == self._seen:
            self._trouble = ""  # the source is again what is shown
            return
        over = reading is not None and reading.over
        if self._clock() < (self._ended + _SOON if over else self._next):
            return
        self._worker = threading.Thread(target=self._renew, args=[reading], daemon=True)
        self._worker.start()

    def _renew(self, reading: Reading | None) -> None:
        started, made, trouble = self._clock(), None, ""
        try:
            made = self._made(reading, thorough=True)
        except (OSError, ValueError) as error:
            trouble = str(error)
        except Exception as error:  # noqa: BLE001 - the page must say so, and not try at every look
            trouble = f"The recommendation failed: {type(error).__name__}: {error}."
        with self._lock:
            if reading is not self._reading:
                return  # it is about files that are gone
            self._trouble = trouble
            if made is not None:
                self._view, self._seen = made
            self._ended = self._clock()
            self._next = self._ended + max(_SOON, _SHARE * (self._ended - started))

    def _stamp_of(self, reading: Reading | None) -> object:
        """Return what changes when the source does."""
        return self._stamp if reading is None else reading.stamp()

    def _made(self, reading: Reading | None, *, thorough: bool) -> tuple[View, object]:
        """Return a view, and the stamp of what it shows."""
        with self._lock:
            stamp = self._stamp_of(reading)
            after = 0 if reading is None else reading.sequence
            plan: Plan = {} if reading is None else reading.plan()
            there = [] if reading is None else reading.runs()
            self._views += 1
            version = f"{self._began}-{self._views}"
        early = reading is not None and not there
        found = self._analyse() if thorough and not early else self._glance(there)
        every = {**planned(run.config for run in there), **plan}
        pages = [_titled(page, titles(every)) for page in found.pages]
        data, where = with_planned(pages, every)
        told = {
            "answers": f"{answers(pages, found.top)}{tally(found.claims)}",
            "judged": claims_section(found.claims, found.to_judge),
            "claims": claims_data(found.claims),
            "notes": list(found.notes),
        }
        live = {"version": version, "after": after}
        view = View(version, early, {**data, **self._fixed, **told, "live": live}, where)
        # A first view leaves out what takes long: the next one is due at once.
        return view, stamp if thorough else None

    def _glance(self, runs: Sequence[Run]) -> Analysis:
        """Return landscapes with their errors alone, for a first view that is there soon."""
        scapes = landscapes(runs, of=self._of)
        return Analysis(
            [
                PageLandscape("", None, _FOLLOWS, by_split(scape, own), answered=False)
                for scape, own in zip(scapes, cell_runs(scapes, runs), strict=True)
            ],
            [],
        )


def _no_longer_there(path: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"{path} is no longer there. This page shows what was read before, and goes on by itself "
        "when it is back."
    )


def _titled(page: PageLandscape, named: Mapping[Key, str]) -> PageLandscape:
    """Return a landscape with its title among all that are planned."""
    config = page.landscape.run_config
    if config is None:
        return page
    return replace(page, title=named.get(apart(config), page.title))


def as_json(values: Mapping[str, Any]) -> bytes:
    """Return plain values as JSON."""
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
