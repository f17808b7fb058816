"""Summarizes a sweep's log: which cells are done or failed, and where each result is."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weightdecay.records.codec import Failure, may_be_result, name_in, read

# At most this many left-out lines are described; the others are only counted.
_MOST_DESCRIBED = 20
#: A file of the log, and the offset of a line in it.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Damage:
    """A line that cannot be used: why, and which cell's result it was, if that can be read.

    Nothing is lost if the cell has another result, or if the line was not a result.
    """

    text: str
    run: str | None = None
    may_be_result: bool = True

    @classmethod
    def of(cls, line: bytes, text: str) -> "Damage":
        """Return the damage of a line, described by a text."""
        return cls(text, name_in(line), may_be_result(line))


@dataclass
class Ledger:
    """The state of each cell: its first result, or else its last failure."""

    #: Finished cells, and whether each diverged.
    finished: dict[str, bool] = field(default_factory=dict)
    #: Where the first result of each cell is, and its first repeat.
    results: dict[str, Place] = field(default_factory=dict)
    repeated: dict[str, Place] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: Seconds spent on each cell, and the epochs trained in them.
    costs: dict[str, tuple[float, int]] = field(default_factory=dict)
    #: The number of workers of each file's writer.
    workers: dict[str, int] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    #: Incomplete last lines of files whose writers are gone.
    torn: list[Damage] = field(default_factory=list)
    #: Results of other semantics, and the name that each cell has now, if any.
    outdated: dict[str, str | None] = field(default_factory=dict)
    #: The number of lines without a checksum.
    unchecked: int = 0

    def take(self, line: bytes, place: Place, number: int) -> None:
        """Count a line that was read, or note why it cannot be used."""
        name, _ = place
        try:
            kind, value, checked = read(line)
        except ValueError as error:
            why = str(error).rstrip(".")
            self.damage.append(Damage.of(line, f"Line {number} of {name} is left out: {why}."))
        else:
            self.unchecked += not checked
            self.note(kind, value, place)

    def note(self, kind: str, value: Mapping[str, Any], place: Place) -> None:
        """Count the values of a line."""
        match kind:
            case "result":
                self.finished.setdefault(value["run"], value["records"]["diverged"][-1])
                self.results.setdefault(value["run"], place)
                self.failures.pop(value["run"], None)
            case "repeat":
                self.repeated.setdefault(value["run"], place)
            case "outdated":
                self.outdated[value["run"]] = value["now"]
            case "failure" if value["run"] not in self.finished:
                self.failures[value["run"]] = Failure(
                    value["run"], value["reason"], value.get("trace", "")
                )
            case "timing":
                self.costs.setdefault(value["run"], (value["seconds"], value["epochs"]))
            case "writer":
                self.workers[place[0]] = value["workers"]

    def take_back(self, run: str, place: Place, why: ValueError) -> None:
        """Leave out a line that was counted and turned out to be damaged later."""
        is_result = self.results.get(run) == place
        if is_result:
            del self.results[run], self.finished[run]
        else:
            self.repeated.pop(run, None)
        text = f"The result of {run} in {place[0]} is left out: {why}."
        self.damage.append(Damage(text, run, is_result))

    @property
    def left_out(self) -> list[str]:
        """Return one sentence for each line of the log that does not count."""
        again = {True: " The cell has another result, which counts.", False: ""}
        damage = self.damage + self.torn
        texts = [one.text + again[one.run in self.finished] for one in damage[:_MOST_DESCRIBED]]
        if more := len(damage) - len(texts):
            texts.append(f"{more} more lines are left out.")
        if outdated := sum(now not in self.finished for now in self.outdated.values()):
            texts.append(outdated_results(outdated))
        return texts

    def has_lost(self, done: Container[str]) -> bool:
        """Whether a result was left out whose cell is not among those done."""
        damage = self.damage + self.torn
        return any(one.may_be_result and one.run not in done for one in damage) or any(
            now not in done for now in self.outdated.values()
        )


def outdated_results(count: int) -> str:
    """Return that so many results are left out, and why."""
    return (
        f"{count} result{'s' * (count != 1)} left out: these cells were trained by a version of "
        "weightdecay that trains differently. Sweep again to retrain them."
    )
