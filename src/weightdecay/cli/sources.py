"""Reads runs from a sweep's folder, an exported table, or anybody's table of runs."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay.cli.tuned import Tuned, tuned
from weightdecay.records import Run

if TYPE_CHECKING:
    from weightdecay.results import Point

_ASK = """\
{file} was not written by `weightdecay export`, so say what its decay is:
  --convention torch: the weight_decay of torch.optim, which is L2 in rows of Adam and SGD
  --convention paper: λ, the fraction of a weight that one step removes
  --convention l2: the factor of L2 regularization; --convention normalized: λ_norm = λ·√N"""
_OURS = """\
{file} was written by `weightdecay export`, and its runs say what they are. Drop \
--convention and the other options: they are for tables made elsewhere."""
_OPTIONS = {"columns": "column", "labels": "label"}  # by the argument that they set
_COLUMN = r"""'(\w+)': (?:'([^']*)'|"([^"]*)"|…)"""
_NAMED = re.compile(rf"columns=\{{{_COLUMN}(?:, {_COLUMN})*\}}")


@dataclass(frozen=True)
class Source:
    """Finished runs, repeated runs, and notes about them.

    `points` are runs from somebody else's table, and `columns` says which of its columns were read.
    `complete` is false if results were left out and a planned cell has none. `tuned` is the tuner
    of a folder that has one.
    """

    runs: list[Run]
    repeats: list[Run]
    notes: list[str]
    complete: bool = True
    points: "Sequence[Point]" = field(default=())
    columns: Mapping[str, str] | None = None
    tuned: Tuned | None = None


def read(path: Path, foreign: Mapping[str, Any] | None = None) -> Source:
    """Read the runs of a folder or a table. It is an error if none has finished.

    `foreign` are the arguments of `results.read_points` for a table that we did not write.
    """
    if path.exists():
        check(path, foreign or {})
    source = _of_folder(path) if path.is_dir() else _of_table(path, foreign or {})
    if not source.runs and not source.points:
        raise ValueError(
            f"{path} must have a finished run, and has none yet. `weightdecay status {path}` shows "
            "the progress of its sweep."
        )
    return source


def check(path: Path, foreign: Mapping[str, Any]) -> None:
    """Raise if a path is a plan and not runs, or if options for tables are given for a folder.

    What is not there counts as a folder that is still to come.
    """
    if path.is_file():
        if path.suffix != ".toml":
            return
        raise ValueError(
            f"SOURCE must be runs, got {path}, which plans runs. Train them with `weightdecay "
            f"sweep {shlex.quote(str(path))} --out FOLDER`, and give that folder."
        )
    if given := [name for name, value in foreign.items() if value]:
        option, value = _OPTIONS.get(given[0], given[0]), _typed(foreign[given[0]])
        raise ValueError(
            f"`{option}` must be left out for the folder of a sweep, got {value}: its runs say "
            f"what they are. `{option}` is for a table of runs that you made elsewhere."
        )


def _typed(value: object) -> str:
    """Return the value of an option as it was typed."""
    if isinstance(value, Mapping):
        return ", ".join(f"{what}={name}" for what, name in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _of_folder(folder: Path) -> Source:
    from weightdecay.records.readers import StoreReader, not_a_sweep

    if not (folder / "log").is_dir():
        raise not_a_sweep(folder, lacks="log")
    store = StoreReader(folder)
    runs, repeats = store.runs(), store.repeats()
    planned = {run for run, _ in store.cells()}
    done = len(planned & store.ledger.finished.keys())
    notes = list(store.ledger.left_out)
    if done < len(planned):
        notes.insert(0, f"Done so far: {done} of {len(planned)} planned cells.")
    return Source(runs, repeats, notes, store.is_complete(), tuned=tuned(folder))


def _of_table(file: Path, foreign: Mapping[str, Any]) -> Source:
    from weightdecay import records
    from weightdecay.records.table_columns import ForeignTableError

    if not file.exists():
        raise FileNotFoundError(
            f"{file} does not exist. Give the folder of a sweep, or a CSV or Parquet file of runs."
        )
    if any(foreign.values()):
        return _of_foreign_table(file, foreign)
    try:
        ours = records.read(file)
    except ForeignTableError:
        raise ValueError(_ASK.format(file=file)) from None
    return Source(ours.runs, ours.repeats, ours.left_out, complete=not ours.left_out)


def _of_foreign_table(file: Path, foreign: Mapping[str, Any]) -> Source:
    from weightdecay.results import read_points

    if _is_ours(file):
        raise ValueError(_OURS.format(file=file))
    if not foreign.get("convention"):
        raise ValueError(_ASK.format(file=file))
    found = read_points(file, **foreign)
    notes = [as_options(remark.text) for remark in found.remarks]
    return Source([], [], notes, points=found, columns=found.columns)


def _is_ours(file: Path) -> bool:
    from weightdecay import records

    try:
        return bool(records.read(file).runs)
    except (OSError, ValueError):
        return False


def as_options(text: str) -> str:
    """Return what `results` says of its arguments in the words of the command line.

    "columns={'lr': 'rate'}" becomes "--column lr=rate".
    """
    text = _NAMED.sub(
        lambda found: " ".join(_option(*one) for one in re.findall(_COLUMN, found[0])), text
    )
    text = re.sub(r"\b(convention|metric|unit)='(\w+)'", r"--\1 \2", text)
    return text.replace("`columns`", "--column").replace("`labels`", "--label")


def _option(role: str, *quoted: str | None) -> str:
    [name] = filter(None, quoted) if any(quoted) else ["NAME"]
    return f"--column {shlex.quote(f'{role}={name}')}"
