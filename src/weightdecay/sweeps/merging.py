"""Copies the results of one sweep into another, line by line."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from weightdecay.records import or_infinite
from weightdecay.records.codec import Cost, Entry, as_line, read, with_checksum
from weightdecay.records.ledger import Place
from weightdecay.sweeps.store import Store, Writer

# Lines that are read and written at a time.
_BATCH = 1000


@dataclass(frozen=True)
class Conflict:
    """A cell that was trained in both folders, with different records."""

    run: str
    #: Test errors after the last epoch.
    here: float
    there: float


@dataclass
class Merged:
    """How many results were copied, and which were not because they differ from those there."""

    taken: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    #: Cells whose results agree but whose repeats do not.
    repeats: list[Conflict] = field(default_factory=list)


def merge(store: Store, other: Store) -> Merged:
    """Copy the results and repeats that only the other folder has.

    The new plan has the planned cells of both folders; a folder without a plan adds its finished
    cells.
    """
    mine, theirs = store.refresh(), other.refresh()
    merged = Merged()
    both = {run: place for run, place in theirs.results.items() if run in mine.results}
    merged.conflicts += _conflicts(store, mine.results, other, both)
    repeated = mine.repeated.keys() - {one.run for one in merged.conflicts}
    both = {run: place for run, place in theirs.repeated.items() if run in repeated}
    merged.repeats += _conflicts(store, mine.repeated, other, both)
    new = sorted(theirs.results.keys() - mine.results.keys())
    new_repeats = sorted(theirs.repeated.keys() - mine.repeated.keys())
    store.write_plan(_cells(store, other))
    if new or new_repeats:
        with store.writing(workers=0) as writer:
            _copy(other, {run: theirs.results[run] for run in new}, writer)
            _copy(other, {run: theirs.repeated[run] for run in new_repeats}, writer)
    merged.taken = len(new)
    return merged


def _conflicts(
    store: Store, own: Mapping[str, Place], other: Store, both: Mapping[str, Place]
) -> Iterator[Conflict]:
    """Yield the cells whose records differ; their environments may differ."""
    with store.log.reading() as here, other.log.reading() as there:
        for run in sorted(both):
            place, elsewhere = own[run], both[run]
            if with_checksum(here(place)) != with_checksum(there(elsewhere)):
                # Lines that cannot be read are left out and reported by the ledger.
                mine, theirs = store.read({run: place}), other.read({run: elsewhere})
                for one, two in zip(mine, theirs, strict=False):
                    if one.records != two.records:
                        errors = (or_infinite(side.last.test_error) for side in (one, two))
                        yield Conflict(run, *errors)


def _copy(other: Store, places: Mapping[str, Place], writer: Writer) -> None:
    """Copy the lines at these places of another log, with their costs."""
    names = list(places)
    with other.log.reading() as line_at:
        for start in range(0, len(names), _BATCH):
            lines: list[Entry] = []
            for run in names[start : start + _BATCH]:
                line = line_at(places[run])
                kind, value, _ = read(line)
                lines.append((kind, value, with_checksum(line)))
                if kind == "result" and run in other.ledger.costs:
                    cost = asdict(Cost(run, *other.ledger.costs[run], 1))
                    lines.append(("timing", cost, as_line({"timing": cost})))
            writer.append(lines)


def _cells(*stores: Store) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the planned cells of all stores, each once."""
    seen: set[str] = set()
    for store in stores:
        for run, config in store.cells():
            if run not in seen:
                seen.add(run)
                yield run, config
