"""Watches a source that grows, for any number of viewers, and tells each what is new to it.

A view is the data of a page at some moment, under a version. What has come since is sent cell by
cell. Every now and then a new view is computed in the background, since a recommendation needs all
cells: the longer that takes, the rarer it is done. Without viewers, nothing is done.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from weightdecay.live.planned import Key, Place, Plan, planned, titles, with_planned
from weightdecay.live.standing import Standing
from weightdecay.records import Run
from weightdecay.results import by_split, cell_runs, landscapes
from weightdecay.results.grouping import apart
from weightdecay.site import PageLandscape
from weightdecay.site.answers import answers
from weightdecay.site.page_data import errors_of
from weightdecay.sweeps import Store

_SOON = 2.0  # seconds between two views, at least
_SHARE = 20.0  # a view may take this part of the time
_STATUS = 1.0  # seconds for which a status is good
_FOLLOWS = "The recommendation follows."


@dataclass(frozen=True)
class Analysis:
    """All that a page shows of a source: its landscapes, and notes for the small print."""

    pages: Sequence[PageLandscape]
    notes: Sequence[str]


@dataclass(frozen=True)
class View:
    """The data of a page, and where each cell is in it."""

    version: str
    data: Mapping[str, Any] = field(repr=False)
    where: Mapping[tuple[Key, Place], tuple[int, int]] = field(repr=False)

    @cached_property
    def text(self) -> bytes:
        """Return the data as JSON."""
        return as_json(self.data)


class Watched:
    """A source and its viewers.

    `analyse` reads the source and recommends settings. It raises an error if there is nothing to
    show yet. `began` tells this server from an earlier one. `fixed` are more data for the page.
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
        self._lock = threading.Lock()
        self._store = Store(path) if path.is_dir() else None
        self._standing = None if self._store is None else Standing(path, clock)
        self._runs: dict[tuple[Key, Place], dict[int, Run]] = {}
        self._changed: OrderedDict[tuple[Key, Place], int] = OrderedDict()
        self._rows: dict[tuple[Key, Place], list[Any]] = {}
        self._read = self._sequence = self._views = 0
        self._seen: object = None
        self._status: dict[str, Any] = {}
        self._checked = self._next = self._ended = -float("inf")
        self._worker: threading.Thread | None = None
        self._trouble = ""
        with self._lock:
            self._look()
        self._view = self._made(thorough=self._store is None)

    @property
    def view(self) -> View:
        """Return the newest view."""
        return self._view

    def news(self, version: str, after: int) -> dict[str, Any]:
        """Return the status, and the cells that have changed after a place in the order of news.

        Viewers of another version get none: they need the whole view.
        """
        with self._lock:
            self._look()
            view, told = self._view, []
            if version == view.version:
                for cell, number in reversed(self._changed.items()):
                    if number <= after:
                        break
                    if cell in view.where:
                        told.append([*view.where[cell], *self._row(cell)])
            self._work()
            return {
                "version": view.version,
                "after": self._sequence,
                "cells": told,
                "status": self._status | {"trouble": self._trouble},
            }

    def finish(self) -> None:
        """Wait for the view that is being computed, if there is one."""
        worker = self._worker
        if worker is not None:
            worker.join()

    def _look(self) -> None:
        """Read what is new, at most once in a while, however many viewers ask."""
        now = self._clock()
        if now - self._checked < _STATUS:
            return
        self._checked = now
        if self._store is None or self._standing is None:
            return
        ledger = self._store.refresh()
        names = list(ledger.results)
        new = {run: ledger.results[run] for run in names[self._read :]}
        self._read = len(names)
        for run in self._store.read(new):
            self._take(run)
        self._status = self._standing.status()

    def _take(self, run: Run) -> None:
        if not run.records:
            return
        key = apart(run.config)
        cell = key, (run.config.lr, getattr(run.config, key[1]))
        # Curves are in the next view: until then, the last epoch is enough.
        self._runs.setdefault(cell, {}).setdefault(
            run.config.seed, replace(run, records=run.records[-1:])
        )
        self._sequence += 1
        self._changed[cell] = self._sequence
        self._changed.move_to_end(cell)
        self._rows.pop(cell, None)

    def _row(self, cell: tuple[Key, Place]) -> list[Any]:
        """Return a cell as a page has it: seeds, diverged ones, and the errors of each split."""
        if cell not in self._rows:
            self._rows[cell] = self._computed(cell)
        return self._rows[cell]

    def _computed(self, cell: tuple[Key, Place]) -> list[Any]:
        runs = list(self._runs[cell].values())
        [scape] = landscapes(runs, of=self._of)
        [own] = cell_runs([scape], runs)
        errors = {}
        for split, one in by_split(scape, own).items():
            found = errors_of(one)
            errors[split] = [found[name][0] for name in ("values", "texts", "spreads")]
        return [len(runs), sum(run.diverged for run in runs), errors]

    def _work(self) -> None:
        """Begin a new view if something has changed and the last one is old enough.

        Once all is trained, nobody is slowed down any more.
        """
        busy = self._worker is not None and self._worker.is_alive()
        over = self._standing is not None and self._standing.over
        due = self._ended + _SOON if over else self._next
        if busy or self._clock() < due or self._stamp() == self._seen:
            return
        self._worker = threading.Thread(target=self._renew, daemon=True)
        self._worker.start()

    def _renew(self) -> None:
        started = self._clock()
        try:
            self._view = self._made(thorough=True)
            self._trouble = ""
        except (OSError, ValueError) as error:
            self._trouble = str(error)
        self._ended = self._clock()
        self._next = self._ended + max(_SOON, _SHARE * (self._ended - started))

    def _stamp(self) -> object:
        """Return what changes when the source does."""
        if self._standing is None:
            found = self._path.stat()
            return found.st_mtime_ns, found.st_size
        return self._standing.stamp()

    def _made(self, *, thorough: bool) -> View:
        with self._lock:
            stamp, after = self._stamp(), self._sequence
            plan: Plan = {} if self._standing is None else self._standing.plan()
            there = [run for own in self._runs.values() for run in own.values()]
        try:
            early = self._store is not None and not there
            found = self._analyse() if thorough and not early else self._glance(there)
        except (FileNotFoundError, ValueError):
            if not plan:
                raise
            found = Analysis([], [])
        every = {**planned(run.config for run in there), **plan}
        pages = [_titled(page, titles(every)) for page in found.pages]
        data, where = with_planned(pages, every)
        self._views += 1
        # The first view leaves out what takes long: the next one is due at once.
        self._seen = stamp if thorough else None
        version = f"{self._began}-{self._views}"
        told = {"answers": answers(pages), "notes": list(found.notes)}
        live = {"version": version, "after": after}
        return View(version, {**data, **self._fixed, **told, "live": live}, where)

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


def _titled(page: PageLandscape, named: Mapping[Key, str]) -> PageLandscape:
    """Return a landscape with its title among all that are planned."""
    config = page.landscape.run_config
    if config is None:
        return page
    return replace(page, title=named.get(apart(config), page.title))


def as_json(values: Mapping[str, Any]) -> bytes:
    """Return plain values as JSON."""
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
