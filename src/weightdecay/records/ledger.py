"""What a sweep's log comes to: which cells are done, failed or left out, and where to read more."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weightdecay.records.codec import Failure, may_be_result, name_in, read

# So many lines that are left out are named; the others are counted.
_NAMED = 20
#: A file of the log, and where in it a line begins.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Damage:
    """A line that cannot be used: why, and the cell that it was the result of, if that is legible.

    It does no harm once the cell has another result, or if it was no result.
    """

    said: str
    run: str | None = None
    may_be_result: bool = True

    @classmethod
    def of(cls, line: bytes, said: str) -> "Damage":
        """Return the damage of a line."""
        return cls(said, name_in(line), may_be_result(line))


@dataclass
class Ledger:
    """What the log says: of each cell the first result, and else the last failure."""

    #: Finished cells, and whether each diverged.
    finished: dict[str, bool] = field(default_factory=dict)
    #: Where the first result of each cell is, and the first of those trained a second time.
    results: dict[str, Place] = field(default_factory=dict)
    repeated: dict[str, Place] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: Seconds spent on a cell, and the epochs that they were spent on.
    costs: dict[str, tuple[float, int]] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    #: The last lines of files whose writers are gone, where these are torn.
    torn: list[Damage] = field(default_factory=list)
    #: Results of other semantics: the name that each cell has now, where it has one.
    outdated: dict[str, str | None] = field(default_factory=dict)
    #: The number of lines without a checksum.
    unchecked: int = 0

    def take(self, line: bytes, place: Place, number: int) -> None:
        """Take in a line that was read, or note why it cannot be used."""
        name, _ = place
        try:
            kind, value, checked = read(line)
        except ValueError as error:
            why = str(error).rstrip(".")
            said = f"Line {number} of {name} is left out: {why}."
            self.damage.append(Damage.of(line, said))
        else:
            self.unchecked += not checked
            self.note(kind, value, place)

    def note(self, kind: str, value: Mapping[str, Any], place: Place) -> None:
        """Take in what a line says."""
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
        """Leave out what was counted, and has been damaged since."""
        is_result = self.results.get(run) == place
        if is_result:
            del self.results[run], self.finished[run]
        else:
            self.repeated.pop(run, None)
        said = f"The result of {run} in {place[0]} is left out: {why}."
        self.damage.append(Damage(said, run, is_result))

    @property
    def left_out(self) -> list[str]:
        """Say what the log has that does not count."""
        again = {True: " The cell has another result, which counts.", False: ""}
        damage = self.damage + self.torn
        said = [one.said + again[one.run in self.finished] for one in damage[:_NAMED]]
        if more := len(damage) - len(said):
            said.append(f"{more} more are left out.")
        if gone := sum(now not in self.finished for now in self.outdated.values()):
            said.append(
                f"{gone} result{'s' * (gone != 1)} left out: another version of weightdecay "
                "trained these cells, in another way. Sweep again to train them anew."
            )
        return said

    def has_lost(self, done: Container[str]) -> bool:
        """Whether a result is left out, and its cell, if that is known, is not among those done."""
        damage = self.damage + self.torn
        return any(one.may_be_result and one.run not in done for one in damage) or any(
            now not in done for now in self.outdated.values()
        )
