"""What one sweep has done, taken over into another, line by line."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from weightdecay.records import or_infinite
from weightdecay.records.codec import Cost, Entry, as_line, read, with_checksum
from weightdecay.records.ledger import Place
from weightdecay.sweeps.store import Store, Writer

# So many lines are in memory at a time, and are written at once.
_TOGETHER = 1000


@dataclass(frozen=True)
class Conflict:
    """A cell that was trained in both folders, and came to different records."""

    run: str
    #: Test errors after the last epoch.
    here: float
    there: float


@dataclass
class Merged:
    """How many results were taken over, and which were not, because others are there already."""

    taken: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    #: Cells whose results agree, and whose repeats do not: a result is what counts.
    repeats: list[Conflict] = field(default_factory=list)


def merge(store: Store, other: Store) -> Merged:
    """Take over the results and repeats that another folder has and this one has not.

    Cells that either folder plans are planned; of one without a plan those that are done.
    """
    mine, theirs = store.refresh(), other.refresh()
    merged = Merged()
    both = {run: place for run, place in theirs.results.items() if run in mine.results}
    merged.conflicts += _conflicts(store, mine.results, other, both)
    told = {one.run for one in merged.conflicts}
    again = mine.repeated.keys() - told
    both = {run: place for run, place in theirs.repeated.items() if run in again}
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
    """Yield the cells whose records differ; where they were trained may differ."""
    with store.log.reading() as here, other.log.reading() as there:
        for run in sorted(both):
            place, elsewhere = own[run], both[run]
            if with_checksum(here(place)) != with_checksum(there(elsewhere)):
                # What cannot be read is left out, and said.
                mine, theirs = store.read({run: place}), other.read({run: elsewhere})
                for one, two in zip(mine, theirs, strict=False):
                    if one.records != two.records:
                        errors = (or_infinite(side.last.test_error) for side in (one, two))
                        yield Conflict(run, *errors)


def _copy(other: Store, places: Mapping[str, Place], writer: Writer) -> None:
    """Write the lines at these places of another log, and what they cost."""
    names = list(places)
    with other.log.reading() as line_at:
        for start in range(0, len(names), _TOGETHER):
            lines: list[Entry] = []
            for run in names[start : start + _TOGETHER]:
                line = line_at(places[run])
                kind, value, _ = read(line)
                lines.append((kind, value, with_checksum(line)))
                if kind == "result" and run in other.ledger.costs:
                    cost = asdict(Cost(run, *other.ledger.costs[run], 1))
                    lines.append(("timing", cost, as_line({"timing": cost})))
            writer.append(lines)


def _cells(*stores: Store) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cells that any of these plan, once."""
    seen: set[str] = set()
    for store in stores:
        for run, config in store.cells():
            if run not in seen:
                seen.add(run)
                yield run, config
