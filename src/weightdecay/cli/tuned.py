"""What the tuner of a folder recommends, for the commands that show the folder."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay.decay import TITLES

if TYPE_CHECKING:
    from weightdecay.tune import Recommendation, Tuner

#: What landscapes of a tuner's runs are for.
LANDSCAPES = (
    "Each landscape has the runs of one length alone: it shows where the tuner has looked, and its "
    "setting is drawn from these few runs. For the long run, use the tuner's, which is drawn from "
    "the runs of all lengths."
)


@dataclass(frozen=True)
class Tuned:
    """The tuner of a folder, with what it was told; if it cannot be read, `why` says the reason."""

    tuner: "Tuner | None"
    why: str = ""

    def lines(self) -> list[str]:
        """Return what is spent and what is recommended, in lines."""
        if self.tuner is None:
            return [self.why]
        found = self.tuner.recommendation()
        spent = f"{found.spent:.2f} of {self.tuner.spend:g} long runs spent."
        return [f"{spent} The tuner recommends:", *(f"  {line}" for line in str(found).split("\n"))]

    def paragraph(self) -> str:
        """Return the same as a paragraph."""
        return " ".join(line.strip() for line in self.lines())

    def values(self) -> dict[str, Any] | None:
        """Return the same as plain values; None if it cannot be read."""
        if self.tuner is None:
            return None
        return {"spend": self.tuner.spend, **recommended(self.tuner.recommendation())}


def is_tuners(folder: Path) -> bool:
    """Whether a folder is a tuner's."""
    return (folder / "tuner.json").is_file()


def tuned(folder: Path) -> Tuned | None:
    """Return the tuner of a folder; None if the folder is a sweep's."""
    if not is_tuners(folder):
        return None
    from weightdecay.tune.folder import tuner_in

    try:
        return Tuned(tuner_in(folder))
    except ValueError as error:
        return Tuned(None, str(error))


def recommended(found: "Recommendation") -> dict[str, Any]:
    """Return a recommendation as plain values."""
    decay = {name: getattr(found.decay, name) for name in TITLES}
    rule = found.carrying
    carrying = None if rule is None else {"kept": rule.kept, **asdict(rule)}
    return {**asdict(found), "decay": decay, "carrying": carrying}
